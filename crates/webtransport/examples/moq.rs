//! Media over QUIC with the crate `moq-net` over Sutura: a publisher of a clock, or a subscriber.
//!
//! ```text
//! cargo run -p sutura-webtransport --features web-transport-trait --example moq
//! ```
//!
//! Both are in this one process, on loopback. The line that is Sutura's is marked.

use std::error::Error;
use std::time::{Duration, Instant};

use moq_net::{Client, Hop, Server, Timestamp, origin, time};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use sutura::http::ALPN;
use sutura::{ClientConfig, Endpoint, ServerConfig};
use sutura_webtransport::Connect;
use sutura_webtransport::traits::Polled;

/// The version of MoQ that both ends speak.
const PROTOCOL: &str = "moq-lite-05";

fn origin(hop: u64) -> Result<origin::Producer, Box<dyn Error + Send + Sync>> {
    let (producer, driver) = origin::Producer::new(origin::Config::new(Hop::new(hop)?));
    tokio::spawn(time::run(driver));
    Ok(producer)
}

async fn publish(endpoint: Endpoint) -> Result<(), Box<dyn Error + Send + Sync>> {
    let publisher = origin(1)?;
    let broadcast = publisher.create_broadcast("clock")?;
    let mut track = broadcast.create_track("seconds", None)?;
    broadcast.announce(Default::default())?;
    let connection = endpoint.accept().await.ok_or("no client")?.await?;
    let mut requests = sutura_webtransport::Server::new(connection);
    let request = requests.accept().await?.ok_or("no request")?;
    // Over Sutura instead of another transport.
    let transport = Polled::from(request.ok_with(PROTOCOL).await?);
    let server = Server::new().with_publisher(publisher.consume());
    let (_session, driver) = server.accept(Instant::now(), transport).await?;
    tokio::spawn(time::run(driver));
    for second in 0..1000u64 {
        track.write_frame(Timestamp::from_millis(1000 * second)?, second.to_string())?;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let certificate = CertificateDer::from(signed.cert);
    let config = ServerConfig::with_single_cert(vec![certificate.clone()], key.into(), &[ALPN])?;
    let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
    let url = format!("https://localhost:{}/", server.local_addr()?.port());
    let publisher = tokio::spawn(publish(server));

    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let mut endpoint = Endpoint::client("127.0.0.1:0".parse()?)?;
    endpoint.set_default_client_config(ClientConfig::with_root_certificates(roots, &[ALPN])?);
    // Over Sutura instead of another transport.
    let transport = Polled::from(Connect::new(&url)?.protocol(PROTOCOL).connect(&endpoint).await?);
    let subscriber = origin(2)?;
    let client = Client::new().with_subscriber(subscriber.clone());
    let (_session, driver) = client.connect(Instant::now(), transport).await?;
    tokio::spawn(time::run(driver));
    let consumer = subscriber.consume();
    consumer.routed("clock").await.ok_or("there is no clock")?;
    let broadcast = consumer.request_broadcast("clock").await?;
    let mut track = broadcast.track("seconds")?.subscribe(None).await?;
    for _ in 0..10 {
        let mut group = track.recv_group().await?.ok_or("the track has ended")?;
        while let Some(frame) = group.read_frame().await? {
            println!("{}", String::from_utf8_lossy(&frame.payload));
        }
    }
    publisher.abort();
    Ok(())
}
