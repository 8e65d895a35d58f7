//! The server: makes what a request asks for.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::PrivatePkcs8KeyDer;
use sutura::{
    Connection, Endpoint, MessageOptions, RecvStream, SendStream, ServerConfig, TransportConfig,
};
use tokio::time::{Instant, sleep_until};

use crate::request::{HEADER, Redundancy, Request};
use crate::{Error, PROTOCOL, now};

/// The longest request.
const MAX_REQUEST: usize = 1 << 20;

/// Serves until killed.
pub async fn run(
    listen: SocketAddr,
    certificate: &Path,
    transport: TransportConfig,
    redundancy: &Redundancy,
) -> Result<(), Error> {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    std::fs::write(certificate, signed.cert.der())?;
    let config = ServerConfig::with_single_cert(vec![signed.cert.into()], key.into(), &[PROTOCOL])?;
    let endpoint = Endpoint::server(config.transport(transport), listen)?;
    println!("{}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        let redundancy = redundancy.clone();
        tokio::spawn(async move {
            let served = async { answer_all(&incoming.await?, &redundancy).await };
            if let Err(error) = served.await {
                eprintln!("connection: {error}");
            }
        });
    }
    Ok(())
}

/// Answers the requests of a connection, one after the other.
async fn answer_all(connection: &Connection, redundancy: &Redundancy) -> Result<(), Error> {
    // The client closes the connection when it has all.
    while let Ok((send, recv)) = connection.accept_bi().await {
        answer(connection, send, recv, redundancy).await?;
    }
    Ok(())
}

async fn answer(
    connection: &Connection,
    mut send: SendStream,
    mut recv: RecvStream,
    redundancy: &Redundancy,
) -> Result<(), Error> {
    let request = serde_json::from_slice(&recv.read_to_end(MAX_REQUEST).await?)?;
    match request {
        Request::Download { bytes, .. } => {
            protect(&send, redundancy, false)?;
            send.write_all(&vec![1; bytes]).await?;
            send.finish()?;
        }
        Request::Messages { messages, ordered: true, .. } => {
            protect(&send, redundancy, true)?;
            stream(&mut send, &messages).await?;
            send.finish()?;
        }
        Request::Messages { messages, ordered: false, deadline_ms, .. } => {
            let deadline = deadline_ms.map(Duration::from_millis);
            send_messages(connection, &messages, deadline).await?;
        }
    }
    Ok(())
}

/// Protects a stream as the redundancy says, if it does: otherwise the connection's policy decides.
fn protect(send: &SendStream, redundancy: &Redundancy, incremental: bool) -> Result<(), Error> {
    match redundancy.protection(incremental) {
        Some(protection) => Ok(send.protect(Some(protection))?),
        None => Ok(()),
    }
}

/// A message that was made `late` ago.
fn message(size: usize, late: Duration) -> Vec<u8> {
    let mut message = vec![1; size.max(HEADER)];
    let made = now().saturating_sub(u64::try_from(late.as_micros()).unwrap_or(0));
    let size = u32::try_from(message.len()).unwrap_or(u32::MAX);
    let header = made.to_be_bytes().into_iter().chain(size.to_be_bytes());
    for (byte, of_header) in message.iter_mut().zip(header) {
        *byte = of_header;
    }
    message
}

/// Sends messages on one stream, each at its time or as soon as the stream takes it.
async fn stream(send: &mut SendStream, messages: &[(u64, usize)]) -> Result<(), Error> {
    let start = Instant::now();
    for &(at, size) in messages {
        let due = start + Duration::from_micros(at);
        sleep_until(due).await;
        send.write_all(&message(size, due.elapsed())).await?;
    }
    Ok(())
}

/// Sends messages each on its own stream.
async fn send_messages(
    connection: &Connection,
    messages: &[(u64, usize)],
    deadline: Option<Duration>,
) -> Result<(), Error> {
    let start = Instant::now();
    let times = messages.iter().map(|&(at, _)| start + Duration::from_micros(at));
    let mut next = times.skip(1);
    for &(at, size) in messages {
        let due = start + Duration::from_micros(at);
        sleep_until(due).await;
        let message = Bytes::from(message(size, due.elapsed()));
        let mut options = MessageOptions::default();
        options.deadline = deadline.map(|deadline| (due + deadline).into_std());
        connection.send_message(message, options).await?;
        connection.next_message_at(next.next().map(Instant::into_std));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_when_it_was_made_and_its_size() {
        let made = message(5000, Duration::from_secs(3600));
        assert_eq!(made.len(), 5000);
        assert_eq!(made[8..HEADER], 5000_u32.to_be_bytes());
        let at = u64::from_be_bytes(made[..8].try_into().unwrap());
        assert!(at <= now() - 3_600_000_000);
        assert_eq!(message(1, Duration::ZERO).len(), HEADER);
    }
}
