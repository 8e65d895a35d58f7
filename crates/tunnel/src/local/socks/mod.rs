//! SOCKS version 5 (RFC 1928): CONNECT and UDP ASSOCIATE, without authentication.

mod associate;
mod wire;

use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::{HELLO_TIMEOUT, MAX_PROGRAMS, begin};
use crate::bounded_accept::accept_all;
use crate::client::Tunnel;
use crate::masque::Cause;

pub use wire::{Command, Greeting, Invalid, MAX_MESSAGE, Reply, SocksRequest, read_udp, write_udp};

/// Serves programs that speak SOCKS5, for ever.
pub async fn serve_socks(listener: TcpListener, tunnel: Tunnel) {
    accept_all(listener, MAX_PROGRAMS, |tcp| {
        let tunnel = tunnel.clone();
        async move {
            let peer = tcp.peer_addr();
            if let Err(why) = serve(tcp, &tunnel).await {
                let peer = peer.map_or_else(|_| "a program".into(), |peer| peer.to_string());
                tunnel.complain(&format!("{peer}: {why}"));
            }
        }
    })
    .await;
}

/// Serves one program.
async fn serve(mut tcp: TcpStream, tunnel: &Tunnel) -> Result<(), Invalid> {
    // The answers are short, and each is waited for.
    let _ = tcp.set_nodelay(true);
    let mut input = BytesMut::with_capacity(MAX_MESSAGE);
    let hello = timeout(HELLO_TIMEOUT, hello(&mut tcp, &mut input)).await;
    let request = match hello {
        Ok(Ok(Some(request))) => request,
        Ok(Ok(None)) => return Ok(()),
        Ok(Err(invalid)) => {
            if let Some(reply) = invalid.reply() {
                let _ = tcp.write_all(&reply.encode(None)).await;
            }
            return Err(invalid);
        }
        Err(_) => return Err(Invalid::Silent),
    };
    match request.command {
        Command::Connect => {
            let (reply, flow) = match begin(tunnel, &request.target).await {
                Ok(flow) => (Reply::Succeeded, Some(flow)),
                Err(refusal) => (reply_to(refusal.cause()), None),
            };
            let told = tcp.write_all(&reply.encode(None)).await;
            if let (Ok(()), Some(flow)) = (told, flow) {
                // What the program has sent before it was told to.
                flow.carry(tcp, input.freeze()).await;
            }
        }
        Command::Associate => associate::serve(tcp, tunnel).await,
    }
    Ok(())
}

/// Agrees about how to authenticate, and reads the request. `None` if the program is gone.
async fn hello(tcp: &mut TcpStream, input: &mut BytesMut) -> Result<Option<SocksRequest>, Invalid> {
    let Some(greeting) = read(tcp, input, Greeting::take).await? else { return Ok(None) };
    let method: [u8; 2] = greeting.answer();
    if tcp.write_all(&method).await.is_err() {
        return Ok(None);
    }
    if !greeting.is_acceptable() {
        return Err(Invalid::Method);
    }
    read(tcp, input, SocksRequest::take).await
}

/// Reads until `take` has its message. `None` if the program is gone.
async fn read<T>(
    tcp: &mut TcpStream,
    input: &mut BytesMut,
    take: impl Fn(&mut BytesMut) -> Result<Option<T>, Invalid>,
) -> Result<Option<T>, Invalid> {
    loop {
        if let Some(message) = take(input)? {
            return Ok(Some(message));
        }
        match tcp.read_buf(input).await {
            Ok(0) | Err(_) => return Ok(None),
            Ok(_) => {}
        }
    }
}

/// The reply for a cause.
fn reply_to(cause: Option<Cause>) -> Reply {
    match cause {
        Some(Cause::Prohibited | Cause::Denied) => Reply::NotAllowed,
        Some(Cause::Unroutable) => Reply::NetworkUnreachable,
        Some(Cause::DnsError | Cause::DnsTimeout) => Reply::HostUnreachable,
        Some(Cause::Refused | Cause::Terminated) => Reply::Refused,
        Some(Cause::Timeout) => Reply::TtlExpired,
        Some(Cause::Limit | Cause::Request | Cause::UnknownFlow | Cause::Internal) | None => {
            Reply::Failure
        }
    }
}

/// A datagram for a program: the header of SOCKS and the payload.
fn wrapped(from: &crate::access::Target, payload: &Bytes) -> Vec<u8> {
    let mut out = Vec::with_capacity(MAX_MESSAGE + payload.len());
    write_udp(&mut out, from);
    out.extend_from_slice(payload);
    out
}

/// Whether two addresses are of the same host.
fn same_host(a: SocketAddr, b: SocketAddr) -> bool {
    a.ip().to_canonical() == b.ip().to_canonical()
}
