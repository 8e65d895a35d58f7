//! Several sockets at one address.

use super::{UdpSocket, open};
use socket2::{SockAddr, Socket};
use std::io;
use std::net::SocketAddr;

impl UdpSocket {
    /// Binds `count` sockets to `local`, or to the same free port of it. All datagrams between two addresses
    /// arrive at the same socket.
    ///
    /// # Errors
    /// The address cannot be bound. The system does not spread datagrams over sockets, and `count` is above 1
    /// (`Unsupported`).
    pub fn share(local: SocketAddr, count: usize) -> io::Result<Vec<std::net::UdpSocket>> {
        let first = open(local)?;
        // Shared only once it is bound, so that the address is not another's already.
        first.bind(&local.into())?;
        let mut sockets = vec![first];
        if count > 1 {
            let address = sockets[0].local_addr()?;
            allow_more(&sockets[0])?;
            for _ in 1..count {
                sockets.push(another(local, &address)?);
            }
        }
        Ok(sockets.into_iter().map(Into::into).collect())
    }
}

/// One more socket at `address`, of the same kind as the one for `local`.
fn another(local: SocketAddr, address: &SockAddr) -> io::Result<Socket> {
    let socket = open(local)?;
    allow_more(&socket)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Lets other sockets of the same user have the address of this one, too.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn allow_more(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn allow_more(_: &Socket) -> io::Result<()> {
    let problem = "this system does not spread datagrams over several sockets at one address";
    Err(io::Error::new(io::ErrorKind::Unsupported, problem))
}
