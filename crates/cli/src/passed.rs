//! Sockets that a supervisor opened, such as systemd (socket activation): so that they stay open while the server is
//! started again, and that it needs no rights for low ports. And what an earlier process left with the supervisor.

use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::net::{SocketType, sockopt::socket_type};

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
        let PassedSockets { udp, tcp, count, stored: _ } = PassedSockets::take(&[])?;
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
    PassedSockets::take(&[])?.one_for_udp()
}

/// The same, and the descriptors with one of these names, which an earlier process has stored.
///
/// # Errors
/// There are others.
pub fn one_for_udp_and_stored(
    names: &[&'static str],
) -> Result<(Option<UdpSocket>, Vec<Stored>), Failure> {
    let mut passed = PassedSockets::take(names)?;
    let stored = std::mem::take(&mut passed.stored);
    Ok((passed.one_for_udp()?, stored))
}

/// A descriptor that an earlier process has stored, and its name.
pub type Stored = (&'static str, OwnedFd);

/// All that was passed to this process.
struct PassedSockets {
    udp: Vec<UdpSocket>,
    tcp: Vec<TcpListener>,
    /// How many there were beside those that were stored, also others.
    count: usize,
    stored: Vec<Stored>,
}

impl PassedSockets {
    /// Takes all. Those with one of these names count as stored.
    fn take(names: &[&'static str]) -> Result<Self, Failure> {
        let unusable = |why: &dyn std::fmt::Display| {
            Failure::local(format!("what was passed to this process is not usable: {why}"))
        };
        let all = sd_listen_fds::get().map_err(|error| unusable(&error))?;
        let mut passed = Self { udp: Vec::new(), tcp: Vec::new(), count: 0, stored: Vec::new() };
        for (name, descriptor) in all {
            let descriptor = descriptor.into_std();
            // What this process starts is to have none of them.
            fcntl_setfd(&descriptor, FdFlags::CLOEXEC).map_err(|error| unusable(&error))?;
            let known = names.iter().find(|known| name.as_deref() == Some(**known));
            match known {
                Some(name) => passed.stored.push((*name, descriptor)),
                None => passed.add(descriptor),
            }
        }
        Ok(passed)
    }

    fn add(&mut self, descriptor: OwnedFd) {
        self.count += 1;
        match socket_type(&descriptor) {
            Ok(SocketType::DGRAM) => self.udp.push(descriptor.into()),
            Ok(SocketType::STREAM) => self.tcp.push(descriptor.into()),
            Ok(_) | Err(_) => {}
        }
    }

    fn one_for_udp(self) -> Result<Option<UdpSocket>, Failure> {
        let Self { udp, tcp: _, count, stored: _ } = self;
        match <[UdpSocket; 1]>::try_from(udp) {
            Ok([socket]) if count == 1 => Ok(Some(socket)),
            Ok(_) | Err(_) if count == 0 => Ok(None),
            Ok(_) | Err(_) => Err(Failure::local(format!(
                "{count} sockets were passed to this process: pass one for UDP (ListenDatagram=)"
            ))),
        }
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
