//! A WebTransport server that echoes, and a client that tries all of it.
//!
//! ```text
//! cargo run -p sutura-webtransport --example echo -- serve 127.0.0.1:4433
//! cargo run -p sutura-webtransport --example echo -- try https://localhost:4433/echo FINGERPRINT
//! ```
//!
//! The server says in a line of JSON where it listens and what its certificate's fingerprint is, which browsers take as
//! one of `serverCertificateHashes`, and then, in a line for each, how sessions ended. What a client sends on a
//! bidirectional stream comes back on it, on a unidirectional one on another, in a datagram in another. But a
//! bidirectional stream with the text `bi` or `uni` makes the server open a stream, `reset` has the stream reset and
//! `close` the session closed. `interop/webtransport.sh` runs this with others.

use std::error::Error as StdError;
use std::time::Duration;

use rustls::pki_types::PrivatePkcs8KeyDer;
use sutura::http::ALPN;
use sutura::{ClientConfig, Endpoint, ServerConfig, certificate_fingerprint};
use sutura_webtransport::{Connect, Error, RecvStream, SendStream, Server, Session};

/// Most bytes of a stream.
const LIMIT: usize = 4 << 20;
/// The text on streams that the server opens.
const GREETING: &[u8] = b"from the server";
/// Sub-protocols that the server speaks.
const PROTOCOL: &str = "echo-1";
/// How long to wait for the echo of a datagram before another is sent.
const DATAGRAM_PATIENCE: Duration = Duration::from_millis(200);

type Outcome<T> = Result<T, Box<dyn StdError + Send + Sync>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", address] => serve(address.parse()?).await,
        ["try", url, fingerprint] => try_all(url, fingerprint).await,
        _ => Err("usage: echo serve ADDRESS | echo try URL FINGERPRINT".into()),
    }
}

/// A certificate for a few days, as browsers want it that are told its fingerprint.
fn server_config() -> Outcome<(ServerConfig, [u8; 32])> {
    let key = rcgen::KeyPair::generate()?;
    let mut parameters = rcgen::CertificateParams::new(vec!["localhost".into()])?;
    let now = time::OffsetDateTime::from(std::time::SystemTime::now());
    parameters.not_before = now - time::Duration::days(1);
    parameters.not_after = now + time::Duration::days(10);
    let certificate = parameters.self_signed(&key)?;
    let fingerprint = certificate_fingerprint(certificate.der());
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let chain = vec![certificate.der().clone()];
    Ok((ServerConfig::with_single_cert(chain, key.into(), &[ALPN])?, fingerprint))
}

async fn serve(address: std::net::SocketAddr) -> Outcome<()> {
    let (config, fingerprint) = server_config()?;
    let endpoint = Endpoint::server(config, address)?;
    let fingerprint: String = fingerprint.iter().map(|byte| format!("{byte:02x}")).collect();
    let port = endpoint.local_addr()?.port();
    println!(r#"{{"port": {port}, "fingerprint": "{fingerprint}"}}"#);
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            if let Ok(connection) = incoming.await {
                let ended = answer_connection(Server::new(connection)).await;
                ended.unwrap_or_else(|error| eprintln!("{error}"));
            }
        });
    }
    Ok(())
}

async fn answer_connection(mut server: Server) -> Result<(), Error> {
    while let Some(request) = server.accept().await? {
        if request.path() != "/echo" {
            request.reject(404).await?;
            continue;
        }
        let protocol = request.head().protocol.as_deref().unwrap_or_default();
        let is_02 = request.head().field("sec-webtransport-http3-draft02").is_some();
        eprintln!("{protocol}, draft 02: {is_02}, from {:?}", request.origin());
        let session = if request.protocols().iter().any(|protocol| protocol == PROTOCOL) {
            request.ok_with(PROTOCOL).await?
        } else {
            request.ok().await?
        };
        tokio::spawn(answer_session(session));
    }
    Ok(())
}

async fn answer_session(session: Session) {
    tokio::spawn(echo_datagrams(session.clone()));
    tokio::spawn(echo_unidirectional(session.clone()));
    while let Ok((send, recv)) = session.accept_bi().await {
        let session = session.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(&session, send, recv).await {
                eprintln!("a stream ended: {error}");
            }
        });
    }
    match session.closed().await {
        Error::ClosedByPeer { code, reason } => {
            println!(r#"{{"closed_by_peer": {code}, "reason": {reason:?}}}"#);
        }
        Error::Closed => println!(r#"{{"closed": true}}"#),
        error => println!(r#"{{"failed": {:?}}}"#, error.to_string()),
    }
}

async fn echo_datagrams(session: Session) -> Result<(), Error> {
    loop {
        let payload = session.recv_datagram().await?;
        session.send_datagram(&payload)?;
    }
}

async fn echo_unidirectional(session: Session) -> Result<(), Error> {
    loop {
        let mut recv = session.accept_uni().await?;
        let session = session.clone();
        tokio::spawn(async move {
            let data = recv.read_to_end(LIMIT).await?;
            let mut send = session.open_uni().await?;
            send.write_all(&data).await?;
            send.finish()
        });
    }
}

/// Answers a bidirectional stream.
async fn answer(
    session: &Session,
    mut send: SendStream,
    mut recv: RecvStream,
) -> Result<(), Error> {
    let data = match recv.read_to_end(LIMIT).await {
        Err(Error::Reset(Some(code))) => return send.reset(code.wrapping_add(1)),
        data => data?,
    };
    match &data[..] {
        b"reset" => return send.reset(42),
        b"close" => {
            session.close(1234, "good bye");
            return Ok(());
        }
        b"bi" => {
            let (mut own, mut answer) = session.open_bi().await?;
            own.write_all(GREETING).await?;
            own.finish()?;
            send.write_all(&answer.read_to_end(LIMIT).await?).await?;
        }
        b"uni" => {
            let mut own = session.open_uni().await?;
            own.write_all(GREETING).await?;
            own.finish()?;
        }
        data => send.write_all(data).await?,
    }
    send.finish()
}

async fn begin(endpoint: &Endpoint, url: &str) -> Result<Session, Error> {
    Connect::new(url)?.protocol("echo-2").protocol(PROTOCOL).connect(endpoint).await
}

async fn try_all(url: &str, fingerprint: &str) -> Outcome<()> {
    let mut expected = [0; 32];
    for (at, byte) in expected.iter_mut().enumerate() {
        let digits = fingerprint.get(2 * at..2 * at + 2).ok_or("a fingerprint has 64 digits")?;
        *byte = u8::from_str_radix(digits, 16)?;
    }
    let mut endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    endpoint.set_default_client_config(ClientConfig::with_fingerprint(expected, &[ALPN])?);
    let session = begin(&endpoint, url).await?;
    check("the sub-protocol", session.protocol() == Some(PROTOCOL))?;
    try_streams(&session).await?;
    try_datagrams(&session).await?;
    session.close(99, "that was all");
    check("the close of this end", session.closed().await == Error::Closed)?;

    let session = begin(&endpoint, url).await?;
    let _ = ask(&session, b"close").await;
    let closed = session.closed().await;
    let expected = Error::ClosedByPeer { code: 1234, reason: "good bye".to_owned() };
    check(&format!("the server's close: {closed}"), closed == expected)?;
    // The server hears of the first close before this program ends.
    tokio::time::sleep(Duration::from_millis(300)).await;
    Ok(())
}

fn check(what: &str, is_so: bool) -> Outcome<()> {
    if !is_so {
        return Err(format!("wrong: {what}").into());
    }
    println!("ok: {what}");
    Ok(())
}

/// What the server answers on a bidirectional stream.
async fn ask(session: &Session, data: &[u8]) -> Result<Vec<u8>, Error> {
    let (mut send, mut recv) = session.open_bi().await?;
    let write = async {
        send.write_all(data).await?;
        send.finish()
    };
    let (written, answer) = tokio::join!(write, recv.read_to_end(LIMIT));
    written.and(answer)
}

async fn try_streams(session: &Session) -> Outcome<()> {
    let data: Vec<u8> = (0..1_000_000u32).map(|at| (at % 251) as u8).collect();
    check("a bidirectional stream", ask(session, &data).await? == data)?;
    let mut send = session.open_uni().await?;
    send.write_all(&data).await?;
    send.finish()?;
    let echoed = session.accept_uni().await?.read_to_end(LIMIT).await?;
    check("unidirectional streams", echoed == data)?;

    let reply = async {
        let (mut send, mut recv) = session.accept_bi().await?;
        let greeting = recv.read_to_end(LIMIT).await?;
        send.write_all(b"a reply").await?;
        send.finish()?;
        Ok::<_, Error>(greeting)
    };
    let (answer, greeting) = tokio::join!(ask(session, b"bi"), reply);
    let is_right = greeting? == GREETING && answer? == b"a reply";
    check("a bidirectional stream of the server", is_right)?;
    check("a request for a stream", ask(session, b"uni").await?.is_empty())?;
    let greeting = session.accept_uni().await?.read_to_end(LIMIT).await?;
    check("a unidirectional stream of the server", greeting == GREETING)?;

    let reset = ask(session, b"reset").await;
    check(&format!("the server's reset: {reset:?}"), reset == Err(Error::Reset(Some(42))))?;
    let (mut send, mut recv) = session.open_bi().await?;
    send.write_all(b"x").await?;
    // webtransport-go 0.13 takes a stream for broken whose reset comes with its header.
    tokio::time::sleep(Duration::from_millis(200)).await;
    send.reset(7)?;
    let reset = recv.read_to_end(LIMIT).await;
    check(&format!("the answer to a reset: {reset:?}"), reset == Err(Error::Reset(Some(8))))
}

async fn try_datagrams(session: &Session) -> Outcome<()> {
    for attempt in 0..20 {
        session.send_datagram(b"a datagram")?;
        let echo = tokio::time::timeout(DATAGRAM_PATIENCE, session.recv_datagram()).await;
        if let Ok(payload) = echo {
            return check(&format!("datagram {attempt}"), payload? == b"a datagram"[..]);
        }
    }
    check("datagrams", false)
}
