//! A link between one client and a server that loses datagrams.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::UdpSocket;

/// One datagram in this many is lost, in each direction.
const LOSS: u64 = 15;

/// Passes datagrams on, in a task of its own; returns the address to which the client has to send.
///
/// # Errors
/// The sockets cannot be opened.
pub async fn start(server: SocketAddr) -> io::Result<SocketAddr> {
    let near = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let far = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    far.connect(server).await?;
    let address = near.local_addr()?;
    tokio::spawn(async move {
        if let Err(error) = relay(&near, &far).await {
            eprintln!("link: {error}");
        }
    });
    Ok(address)
}

async fn relay(near: &UdpSocket, far: &UdpSocket) -> io::Result<()> {
    let (mut up, mut down) = ([0; 2048], [0; 2048]);
    let (mut sent_up, mut sent_down) = (0, 0);
    let mut client = None;
    loop {
        tokio::select! {
            datagram = near.recv_from(&mut up) => {
                let (length, from) = datagram?;
                client = Some(from);
                sent_up += 1;
                if sent_up % LOSS != 0 {
                    far.send(&up[..length]).await?;
                }
            }
            datagram = far.recv(&mut down) => {
                let length = datagram?;
                sent_down += 1;
                if let Some(client) = client.filter(|_| sent_down % LOSS != 0) {
                    near.send_to(&down[..length], client).await?;
                }
            }
        }
    }
}
