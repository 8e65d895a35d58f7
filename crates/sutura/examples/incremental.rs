//! A stream whose every part is useful at once, such as a screen or a game's state, over a link
//! that loses packets. Without protection, a lost part arrives a round trip late and delays those
//! behind it.
//!
//! ```sh
//! cargo run --release -p sutura --example incremental -- "delay=40ms loss=bern:3%"
//! ```

use std::error::Error;
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use sutura::{ClientConfig, Connection, Endpoint, Protection, ServerConfig};
use sutura_relay::{Config, Relay};

const PARTS: u32 = 150;
const PART: usize = 1000;
const INTERVAL: Duration = Duration::from_millis(50);
const PROTOCOL: &[u8] = b"parts";

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> Result<()> {
    let link = std::env::args().nth(1).unwrap_or_else(|| "delay=40ms loss=bern:3%".to_owned());
    println!("{PARTS} parts of {PART} bytes, one each {INTERVAL:?}, over {link}");
    // A repair symbol for the data sent so far, whenever there is nothing more to send.
    let incremental = Protection::incremental(1, Duration::ZERO);
    for (name, protection) in [("plain", None), ("protected", Some(incremental))] {
        let (mut delays, recovered) = measure(&link, protection).await?;
        delays.sort_unstable();
        let at = |share: f64| delays[((delays.len() - 1) as f64 * share) as usize];
        println!(
            "{name:>9}: median {:?}, 95 % {:?}, 99 % {:?}, {recovered} packets recovered",
            at(0.5),
            at(0.95),
            at(0.99),
        );
    }
    Ok(())
}

/// How long each part took, and how many lost packets the decoder recovered.
async fn measure(link: &str, protection: Option<Protection>) -> Result<(Vec<Duration>, u64)> {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let certificate: CertificateDer<'static> = signed.cert.into();
    let config =
        ServerConfig::with_single_cert(vec![certificate.clone()], key.into(), &[PROTOCOL])?;
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let config = Config::new("127.0.0.1:0".parse()?, server.local_addr()?);
    let relay = Relay::start(&config.link(&link.parse()?).seed(7))?;

    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = Endpoint::client("127.0.0.1:0".parse()?)?;
    client.set_default_client_config(ClientConfig::with_root_certificates(roots, &[PROTOCOL])?);
    let connecting = client.connect(relay.local_addr(), "localhost")?;
    let accept = async { server.accept().await.ok_or("no connection")?.await.map_err(Into::into) };
    let (connection, accepted) = tokio::join!(connecting, accept);
    let (connection, accepted): (Connection, Result<Connection>) = (connection?, accepted);
    let accepted = accepted?;

    // Both ends share a clock here, so the one-way delay of a part can be measured.
    let start = Instant::now();
    let sender = tokio::spawn(async move { send(&connection, protection, start).await });
    let mut recv = accepted.accept_uni().await?;
    let mut delays = Vec::new();
    let mut part = [0; PART];
    for _ in 0..PARTS {
        recv.read_exact(&mut part).await?;
        let mut sent = [0; 8];
        sent.copy_from_slice(&part[..8]);
        delays.push(start.elapsed() - Duration::from_micros(u64::from_be_bytes(sent)));
    }
    sender.await??;
    Ok((delays, accepted.stats().fec.recovered))
}

/// Sends parts that begin with their sending time.
async fn send(
    connection: &Connection,
    protection: Option<Protection>,
    start: Instant,
) -> Result<()> {
    let mut stream = connection.open_uni().await?;
    stream.protect(protection)?;
    let mut ticks = tokio::time::interval(INTERVAL);
    for _ in 0..PARTS {
        ticks.tick().await;
        let mut part = vec![0; PART];
        let now = u64::try_from(start.elapsed().as_micros())?;
        part[..8].copy_from_slice(&now.to_be_bytes());
        stream.write_all(&part).await?;
    }
    stream.finish()?;
    stream.stopped().await?;
    Ok(())
}
