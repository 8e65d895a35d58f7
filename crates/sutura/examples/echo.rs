//! The smallest exchange: a server that echoes, and a client that trusts its certificate.
//!
//! ```sh
//! cargo run -p sutura --example echo -- "some words"
//! ```

use std::error::Error;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;
use sutura::{ClientConfig, Endpoint, Incoming, Protection, ServerConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words = std::env::args().nth(1).unwrap_or_else(|| "hello".to_owned());

    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let certificate = signed.cert.der().clone();
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into(), &[b"echo"])?;
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let address = server.local_addr()?;
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(async move {
                if let Err(error) = echo(incoming).await {
                    eprintln!("server: {error}");
                }
            });
        }
    });

    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = Endpoint::client("127.0.0.1:0".parse()?)?;
    client.set_default_client_config(ClientConfig::with_root_certificates(roots, &[b"echo"])?);
    let connection = client.connect(address, "localhost")?.await?;
    let (mut send, mut recv) = connection.open_bi().await?;
    // One repair symbol after the last bytes: if any packet is lost, nobody waits for a
    // retransmission.
    send.protect(Some(Protection::tail(1, Duration::ZERO)))?;
    send.write_all(words.as_bytes()).await?;
    send.finish()?;
    let answer = recv.read_to_end(64 * 1024).await?;
    println!("{}", String::from_utf8_lossy(&answer));
    println!("{} repair symbols sent", connection.stats().fec.repair_symbols_sent);
    connection.close(0, b"done");
    client.wait_idle().await;
    Ok(())
}

/// Echoes the data of the first stream of a connection.
async fn echo(incoming: Incoming) -> Result<(), Box<dyn Error + Send + Sync>> {
    let connection = incoming.await?;
    let (mut send, mut recv) = connection.accept_bi().await?;
    while let Some(chunk) = recv.read_chunk(usize::MAX, true).await? {
        send.write_chunk(chunk.bytes).await?;
    }
    send.finish()?;
    // The client closes the connection once it has everything.
    connection.closed().await;
    Ok(())
}
