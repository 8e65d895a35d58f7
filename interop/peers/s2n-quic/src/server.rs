//! The server.

use crate::config::{ALPN, certificate, limits, server_address};
use crate::{Error, chacha20, variable};
use s2n_quic::provider::endpoint_limits::{ConnectionAttempt, Limiter, Outcome};
use s2n_quic::provider::tls;
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Connection, Server};
use std::path::Path;
use std::time::SystemTime;
use tokio::signal::unix::{SignalKind, signal};

/// Bytes of a request.
const MAX_REQUEST: usize = 4096;

/// The name and the contents of the key for session tickets. The key need not be secret, because the server
/// serves only tests.
const TICKET_KEY: (&[u8], &[u8]) = (b"interop", &[7; 32]);

pub async fn run(case: &str) -> Result<(), Error> {
    let retry = Retry(case == "retry");
    let mut server = match case {
        "chacha20" => start(chacha20::server()?, retry)?,
        _ => start(s2n_tls()?, retry)?,
    };
    let mut terminated = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            _ = terminated.recv() => return Ok(()),
            connection = server.accept() => match connection {
                Some(connection) => drop(tokio::spawn(serve(connection))),
                None => return Err("the endpoint has closed".into()),
            },
        }
    }
}

/// TLS by s2n-tls, with session tickets.
fn s2n_tls() -> Result<tls::s2n_tls::Server, Error> {
    let (chain, key) = (certificate("cert.pem")?, certificate("priv.key")?);
    let mut builder = tls::s2n_tls::Server::builder()
        .with_certificate(chain.as_path(), key.as_path())?
        .with_application_protocols([ALPN])?
        .with_key_logging()?;
    let (name, secret) = TICKET_KEY;
    builder.config_mut().add_session_ticket_key(name, secret, SystemTime::now())?;
    Ok(builder.build()?)
}

fn start<T: tls::Provider>(tls: T, retry: Retry) -> Result<Server, Error> {
    let builder = Server::builder().with_limits(limits()?)?.with_io(server_address()?)?;
    let builder = builder.with_endpoint_limits(retry)?;
    let builder = builder.with_tls(tls).map_err(|error| error.to_string())?;
    Ok(builder.start()?)
}

/// Whether clients have to validate their addresses.
struct Retry(bool);

impl Limiter for Retry {
    fn on_connection_attempt(&mut self, _attempt: &ConnectionAttempt) -> Outcome {
        if self.0 { Outcome::retry() } else { Outcome::allow() }
    }
}

/// Serves the requests of one connection over HTTP/0.9.
async fn serve(mut connection: Connection) {
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        tokio::spawn(answer(stream));
    }
}

async fn answer(mut stream: BidirectionalStream) {
    let result = match requested(&mut stream).await {
        // s2n-quic sends the rest and the end of the stream after the stream was dropped.
        Ok(body) => {
            stream.send(body.into()).await.and_then(|()| stream.finish()).map_err(Into::into)
        }
        Err(error) => {
            stream.reset(0u32.into()).ok();
            Err(error)
        }
    };
    if let Err(error) = result {
        eprintln!("s2n-quic: a request: {error}");
    }
}

/// Reads a request and its file.
async fn requested(stream: &mut BidirectionalStream) -> Result<Vec<u8>, Error> {
    let mut request = Vec::new();
    while let Some(chunk) = stream.receive().await? {
        request.extend_from_slice(&chunk);
        if request.len() > MAX_REQUEST {
            return Err("too long".into());
        }
    }
    let path = str::from_utf8(&request)?.trim().strip_prefix("GET ").ok_or("no GET")?;
    let name = Path::new(path).file_name().ok_or("a path without a name")?;
    Ok(std::fs::read(Path::new(&variable("WWW")?).join(name))?)
}
