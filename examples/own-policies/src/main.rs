//! A client and a server in which policies of our own decide, over a link that loses datagrams.
//!
//! ```sh
//! cargo run
//! ```

mod lossy_link;

use own_policies::delivery::NewestFirst;
use own_policies::loss_reaction::TOO_LATE;
use own_policies::observer::Counter;
use own_policies::policies::Policies;
use own_policies::redundancy::EveryFew;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use sutura::{
    ClientConfig, Connection, Endpoint, Message, Protection, ReadError, RecvStream, ServerConfig,
};

const PROTOCOL: &[u8] = b"own-policies";
const LOCALHOST: &str = "127.0.0.1:0";
/// Bytes that are sent there and back.
const PICTURE: usize = 400_000;
/// Messages that are of use only at once, and the size of each in bytes.
const MESSAGES: usize = 200;
const MESSAGE: usize = 800;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let policies = Policies::default();
    let (server, certificate) = listen(&policies)?;
    let link = lossy_link::start(server.local_addr()?).await?;
    let client = async {
        let connection = connect(&policies, link, certificate).await?;
        let counter = Counter::default();
        connection.observe(Box::new(counter.clone()));
        send_messages(&connection).await?;
        exchange_picture(&connection, &policies).await?;
        Ok((connection, counter))
    };
    // The client keeps the connection until the server knows that all data arrived.
    let (whole, (connection, counter)) = tokio::try_join!(serve(&server, &policies), client)?;
    connection.close(0, b"done");

    println!("{MESSAGES} messages, {whole} in time; {PICTURE} bytes there and back");
    println!("client: {counter}");
    policies.report()?;
    Ok(())
}

/// A server, and its certificate.
fn listen(policies: &Policies) -> Result<(Endpoint, CertificateDer<'static>)> {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let certificate: CertificateDer<'static> = signed.cert.into();
    let config =
        ServerConfig::with_single_cert(vec![certificate.clone()], key.into(), &[PROTOCOL])?
            .transport(policies.transport());
    Ok((Endpoint::server(config, LOCALHOST.parse()?)?, certificate))
}

async fn connect(
    policies: &Policies,
    address: SocketAddr,
    certificate: CertificateDer<'static>,
) -> Result<Connection> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let config =
        ClientConfig::with_root_certificates(roots, &[PROTOCOL])?.transport(policies.transport());
    let endpoint = Endpoint::client(LOCALHOST.parse()?)?;
    Ok(endpoint.connect_with(config, address, "localhost")?.await?)
}

/// Sends messages, on a stream each, that are not worth sending twice.
async fn send_messages(connection: &Connection) -> Result<()> {
    for _ in 0..MESSAGES {
        let mut send = connection.open_uni().await?;
        // Otherwise the server might recover messages from repair symbols that the client gives up.
        send.protect(None)?;
        let (deadline, size) = (Some(Instant::now()), MESSAGE as u64);
        send.announce(Message::default().with_deadline(deadline).with_size(size))?;
        send.write_all(&[1; MESSAGE]).await?;
        send.finish()?;
    }
    Ok(())
}

/// Sends a picture and gets it back. This stream has policies of its own instead of the policies of the
/// configuration.
async fn exchange_picture(connection: &Connection, policies: &Policies) -> Result<()> {
    let (mut send, mut recv) = connection.open_bi().await?;
    let often = EveryFew { longest: 20, ..policies.redundancy.clone() };
    send.protect(Some(Protection::new(Arc::new(often))))?;
    recv.set_delivery(&NewestFirst::clone(&policies.delivery))?;
    let picture: Vec<u8> = (0..PICTURE).map(|at| (at / 7) as u8).collect();
    send.write_all(&picture).await?;
    send.finish()?;
    if read_all(&mut recv).await? != picture {
        return Err("the picture came back changed".into());
    }
    Ok(())
}

/// Serves one connection; returns how many messages came in time.
async fn serve(endpoint: &Endpoint, policies: &Policies) -> Result<usize> {
    let connection = endpoint.accept().await.ok_or("no connection")?.await?;
    let messages = tokio::spawn(receive_messages(connection.clone()));
    let (mut send, mut recv) = connection.accept_bi().await?;
    let picture = read_all(&mut recv).await?;
    send.protect(Some(Protection::new(Arc::new(policies.picture.clone()))))?;
    send.write_all(&picture).await?;
    send.finish()?;
    send.stopped().await?;
    messages.await?
}

async fn receive_messages(connection: Connection) -> Result<usize> {
    let mut whole = 0;
    for _ in 0..MESSAGES {
        match read_all(&mut connection.accept_uni().await?).await {
            Ok(_) => whole += 1,
            Err(ReadError::Reset(TOO_LATE)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(whole)
}

/// Puts together the pieces of a stream, in whichever order they come.
async fn read_all(recv: &mut RecvStream) -> std::result::Result<Vec<u8>, ReadError> {
    let mut all = Vec::new();
    while let Some(chunk) = recv.read_chunk(usize::MAX, false).await? {
        let start = usize::try_from(chunk.offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(chunk.bytes.len());
        // The peer may send no more than a window beyond the bytes that were read, so `end` is not far beyond
        // `all`.
        if end > all.len() {
            all.resize(end, 0);
        }
        all[start..end].copy_from_slice(&chunk.bytes);
    }
    Ok(all)
}
