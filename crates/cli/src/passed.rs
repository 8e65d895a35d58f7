//! PassedSockets that a supervisor opened, such as systemd (socket activation): so that they stay open while the server
//! is started again, and that it needs no rights for low ports.

use std::io;
use std::net::{TcpListener, UdpSocket};

use listenfd::ListenFd;

use crate::failure::Failure;

/// The sockets of a site.
#[derive(Debug)]
pub struct Passed {
    pub udp: UdpSocket,
    /// At the same port.
    pub tcp: TcpListener,
    /// For clients of plain HTTP, at another port.
    pub plain: Option<TcpListener>,
}

impl Passed {
    /// The sockets that were passed to this process, if any were.
    ///
    /// # Errors
    /// They are not one for UDP and one or two for TCP, one of them at the port of the first.
    pub fn take() -> Result<Option<Self>, Failure> {
        let PassedSockets { udp, tcp, count } = PassedSockets::take();
        if count == 0 {
            return Ok(None);
        }
        Self::sort(udp, tcp, count).map(Some)
    }

    fn sort(
        mut udp: Vec<UdpSocket>,
        tcp: Vec<TcpListener>,
        passed: usize,
    ) -> Result<Self, Failure> {
        let wrong = || {
            Failure::local(format!(
                "{passed} sockets were passed to this process, and not those of a site: pass one for UDP \
                 (ListenDatagram=), one for TCP at the same port (ListenStream=), and if clients of plain \
                 HTTP are to be redirected, one more for TCP"
            ))
        };
        let unusable =
            |error: io::Error| Failure::local(format!("a socket passed to this process: {error}"));
        let udp = udp.pop().filter(|_| udp.is_empty()).ok_or_else(wrong)?;
        let port = udp.local_addr().map_err(unusable)?.port();
        let (mut same, mut others) = (Vec::new(), Vec::new());
        for socket in tcp {
            socket.set_nonblocking(true).map_err(unusable)?;
            let is_same = socket.local_addr().map_err(unusable)?.port() == port;
            if is_same { &mut same } else { &mut others }.push(socket);
        }
        let tcp = same.pop().filter(|_| same.is_empty()).ok_or_else(wrong)?;
        let plain = others.pop();
        if !others.is_empty() || 2 + usize::from(plain.is_some()) != passed {
            return Err(wrong());
        }
        Ok(Self { udp, tcp, plain })
    }
}

/// The socket that was passed to this process for a server of QUIC alone, if any was.
///
/// # Errors
/// There are others.
pub fn one_for_udp() -> Result<Option<UdpSocket>, Failure> {
    let PassedSockets { udp, tcp: _, count } = PassedSockets::take();
    match <[UdpSocket; 1]>::try_from(udp) {
        Ok([socket]) if count == 1 => Ok(Some(socket)),
        Ok(_) | Err(_) if count == 0 => Ok(None),
        Ok(_) | Err(_) => Err(Failure::local(format!(
            "{count} sockets were passed to this process: pass one for UDP (ListenDatagram=)"
        ))),
    }
}

/// All sockets that were passed to this process.
struct PassedSockets {
    udp: Vec<UdpSocket>,
    tcp: Vec<TcpListener>,
    /// How many there were, also others.
    count: usize,
}

impl PassedSockets {
    fn take() -> Self {
        let mut all = ListenFd::from_env();
        let (mut udp, mut tcp) = (Vec::new(), Vec::new());
        for index in 0..all.len() {
            if let Ok(socket) = all.take_udp_socket(index) {
                udp.extend(socket);
            } else if let Ok(socket) = all.take_tcp_listener(index) {
                tcp.extend(socket);
            }
        }
        Self { udp, tcp, count: all.len() }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    const ANY: &str = "127.0.0.1:0";

    fn listener() -> (TcpListener, SocketAddr) {
        let tcp = TcpListener::bind(ANY).unwrap();
        let address = tcp.local_addr().unwrap();
        (tcp, address)
    }

    #[test]
    fn sockets_are_known_by_their_ports() {
        let ((tcp, address), (plain, plain_address)) = (listener(), listener());
        let udp = UdpSocket::bind(address).unwrap();
        let passed = Passed::sort(vec![udp], vec![plain, tcp], 3).unwrap();
        assert_eq!(passed.tcp.local_addr().unwrap(), address);
        assert_eq!(passed.plain.unwrap().local_addr().unwrap(), plain_address);
    }

    #[test]
    fn others_than_those_of_a_site_are_refused() {
        let (one, address) = listener();
        let (same, other) = (UdpSocket::bind(address).unwrap(), UdpSocket::bind(ANY).unwrap());
        let udp = |socket: &UdpSocket| vec![socket.try_clone().unwrap()];
        let tcp = || vec![one.try_clone().unwrap()];
        for (udp, tcp, passed) in [
            (vec![], tcp(), 1),
            (udp(&same), vec![], 1),
            (udp(&other), tcp(), 2),
            (udp(&same), tcp(), 3),
        ] {
            let failure = Passed::sort(udp, tcp, passed).unwrap_err();
            assert!(failure.message.contains("ListenDatagram="), "{}", failure.message);
        }
    }
}
