//! The client: times what a server makes.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use sutura::{ClientConfig, Connection, Endpoint, RecvStream, TransportConfig};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::request::{HEADER, Request};
use crate::{Error, PROTOCOL, now};

/// The longest message.
const MAX_MESSAGE: usize = 16 << 20;

/// Makes a request and prints the times in milliseconds; `null` for a message that did not arrive.
pub async fn run(
    server: SocketAddr,
    certificate: &Path,
    transport: TransportConfig,
    request: &str,
) -> Result<(), Error> {
    let parsed: Request = serde_json::from_str(request)?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(std::fs::read(certificate)?.into())?;
    let config = ClientConfig::with_root_certificates(roots, &[PROTOCOL])?.transport(transport);
    let mut endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    endpoint.set_default_client_config(config);
    let times = match parsed {
        Request::Download { bytes, count, fresh } => {
            let mut times = Vec::new();
            let connections = if fresh { count } else { 1 };
            for _ in 0..connections {
                let connection = endpoint.connect(server, "localhost")?.await?;
                for _ in 0..count / connections {
                    let start = Instant::now();
                    download(&mut ask(&connection, request).await?, bytes).await?;
                    times.push(Some(start.elapsed().as_secs_f64() * 1e3));
                }
                connection.close(0, b"");
            }
            times
        }
        Request::Messages { messages, ordered, drain_s, .. } => {
            let connection = endpoint.connect(server, "localhost")?.await?;
            let mut recv = ask(&connection, request).await?;
            let last = messages.last().map_or(0, |&(at, _)| at);
            let limit = Duration::from_micros(last) + Duration::from_secs_f64(drain_s);
            let mut times = vec![None; messages.len()];
            // What is missing by then counts as lost.
            let received = if ordered {
                timeout(limit, stream(&mut recv, &mut times)).await
            } else {
                timeout(limit, messages_of(&connection, &mut times)).await
            };
            received.unwrap_or(Ok(()))?;
            connection.close(0, b"");
            times
        }
    };
    endpoint.wait_idle().await;
    println!("{}", json!({ "values_ms": times }));
    Ok(())
}

/// Sends a request on a stream of its own.
async fn ask(connection: &Connection, request: &str) -> Result<RecvStream, Error> {
    let (mut send, recv) = connection.open_bi().await?;
    send.write_all(request.as_bytes()).await?;
    send.finish()?;
    Ok(recv)
}

async fn download(recv: &mut RecvStream, bytes: usize) -> Result<(), Error> {
    let (mut buffer, mut received) = (vec![0; 64 << 10], 0);
    while let Some(length) = recv.read(&mut buffer).await? {
        received += length;
    }
    if received == bytes { Ok(()) } else { Err(format!("{received} bytes of {bytes}").into()) }
}

/// How long ago a message with this header was made, in milliseconds, and its size.
fn read_header(message: &[u8]) -> Option<(f64, usize)> {
    let (made, size) = (message.get(..8)?, message.get(8..HEADER)?);
    let made = u64::from_be_bytes(made.try_into().ok()?);
    let size = u32::from_be_bytes(size.try_into().ok()?);
    Some((now().saturating_sub(made) as f64 / 1e3, size as usize))
}

async fn stream(recv: &mut RecvStream, times: &mut [Option<f64>]) -> Result<(), Error> {
    let mut header = [0; HEADER];
    for time in times {
        recv.read_exact(&mut header).await?;
        let (_, size) = read_header(&header).ok_or("no header")?;
        if size > MAX_MESSAGE {
            return Err(format!("a message of {size} bytes").into());
        }
        recv.read_exact(&mut vec![0; size.saturating_sub(HEADER)]).await?;
        *time = read_header(&header).map(|(took, _)| took);
    }
    Ok(())
}

async fn messages_of(connection: &Connection, times: &mut [Option<f64>]) -> Result<(), Error> {
    let mut readers = JoinSet::new();
    let (mut accepted, mut times) = (0, times.iter_mut());
    let expected = times.len();
    loop {
        tokio::select! {
            stream = connection.accept_uni(), if accepted < expected => {
                let mut stream = stream?;
                accepted += 1;
                readers.spawn(async move {
                    let message = stream.read_to_end(MAX_MESSAGE).await.ok()?;
                    read_header(&message).map(|(took, _)| took)
                });
            }
            Some(read) = readers.join_next() => {
                if let Some(time) = times.next() {
                    *time = read?;
                }
            }
            else => return Ok(()),
        }
    }
}
