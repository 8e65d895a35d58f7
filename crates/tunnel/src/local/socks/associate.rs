//! UDP ASSOCIATE (RFC 1928 section 7).

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::sleep;

use super::super::UDP_IDLE;
use super::super::udp::FlowTable;
use super::wire::MAX_MESSAGE;
use super::{Reply, read_udp, same_host, wrapped};
use crate::access::Target;
use crate::bounded_accept::PAUSE;
use crate::client::Tunnel;
use crate::datagrams::MAX_READ;

/// Carries a program's datagrams until it closes its connection.
pub(super) async fn serve(mut tcp: TcpStream, tunnel: &Tunnel) {
    let (Ok(local), Ok(peer)) = (tcp.local_addr(), tcp.peer_addr()) else { return };
    let socket = match UdpSocket::bind((local.ip(), 0)).await {
        Ok(socket) => Arc::new(socket),
        Err(error) => {
            tunnel.complain(&format!("cannot open a UDP socket at {}: {error}", local.ip()));
            let _ = tcp.write_all(&Reply::Failure.encode(None)).await;
            return;
        }
    };
    let Ok(address) = socket.local_addr() else { return };
    if tcp.write_all(&Reply::Succeeded.encode(Some(address))).await.is_err() {
        return;
    }
    tokio::select! {
        () = carry(&socket, peer, tunnel) => {}
        () = closed(&mut tcp) => {}
    }
}

/// Waits until the program closes its connection, on which it has nothing more to say.
async fn closed(tcp: &mut TcpStream) {
    let mut ignored = [0; 64];
    while tcp.read(&mut ignored).await.is_ok_and(|size| size > 0) {}
}

/// Hands datagrams on. Only the program's host may send them, and only the first address of it that does.
async fn carry(socket: &Arc<UdpSocket>, peer: SocketAddr, tunnel: &Tunnel) {
    let mut program: Option<SocketAddr> = None;
    let mut flows: FlowTable<Target> = FlowTable::new();
    let mut buffer = Vec::with_capacity(MAX_MESSAGE + MAX_READ);
    loop {
        buffer.clear();
        let from = match socket.recv_buf_from(&mut buffer).await {
            Ok((_, from)) => from,
            Err(_) => {
                sleep(PAUSE).await;
                continue;
            }
        };
        let is_program = program.map_or_else(|| same_host(from, peer), |known| known == from);
        let Some((target, at)) = read_udp(&buffer).filter(|_| is_program) else { continue };
        program = Some(from);
        let payload = Bytes::copy_from_slice(buffer.get(at..).unwrap_or_default());
        flows.send(target.clone(), payload, || {
            let (socket, source) = (socket.clone(), target.clone());
            let reply = move |datagram: &Bytes| {
                socket.try_send_to(&wrapped(&source, datagram), from).map(drop)
            };
            tunnel.udp(&target, UDP_IDLE, reply)
        });
    }
}
