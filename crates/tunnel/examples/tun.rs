//! A whole machine in a tunnel, without the command: a proxy with a TUN device, and a machine's end. Linux, as root.
//!
//! ```sh
//! tun serve 192.0.2.1:4433 10.77.0.1/24 ip/10.9.0.0/24 # address, own network, what is allowed
//! tun connect 192.0.2.1:4433 10.9.0.0/24               # what is to be routed; all that is allowed if left out
//! ```
//! For tests: the proxy makes its certificate itself, asks nobody who it is, and the other end trusts anybody.

use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustls::pki_types::PrivatePkcs8KeyDer;
use sutura::http::{self, ALPN, Config, RequestStream};
use sutura::{ClientConfig, Endpoint, Incoming, ServerConfig, TransportConfig};
use sutura_tunnel::access::{AllowRule, Limits, Meter};
use sutura_tunnel::flow::Rules;
use sutura_tunnel::ip::Scope;
use sutura_tunnel::tun::{IpClient, IpNetwork};

type Failure = Box<dyn Error + Send + Sync>;

const CAPSULES: (&str, &[u8]) = ("capsule-protocol", b"?1");

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &words[..] {
        ["serve", address, own, allow @ ..] => serve(address, own, allow).await,
        ["connect", address, routes @ ..] => connect(address, routes).await,
        _ => {
            Err("expected serve ADDRESS NETWORK[,NETWORK] RULE... or connect ADDRESS ROUTE..."
                .into())
        }
    }
}

fn settings() -> Config {
    let mut config = Config::default();
    config.enable_connect_protocol = true;
    config.enable_datagrams = true;
    config
}

fn transport() -> TransportConfig {
    // A lost connection is noticed soon.
    TransportConfig::default()
        .with_keep_alive(Some(Duration::from_secs(1)))
        .with_max_idle_timeout(Some(Duration::from_secs(4)))
}

async fn serve(address: &str, own: &str, allow: &[&str]) -> Result<(), Failure> {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let config =
        ServerConfig::with_single_cert(vec![signed.cert.der().clone()], key.into(), &[ALPN])?;
    let endpoint = Endpoint::server(config.transport(transport()), address.parse()?)?;
    let own = own.split(',').map(str::parse).collect::<Result<_, _>>()?;
    let allow = allow.iter().map(|rule| rule.parse::<AllowRule>()).collect::<Result<_, _>>()?;
    let network = IpNetwork::open("suturap%d", own, allow, Rules::default())?;
    println!("serving on {}", network.device());
    let running = network.clone();
    tokio::spawn(async move { running.run().await });
    while let Some(incoming) = endpoint.accept().await {
        let network = network.clone();
        tokio::spawn(async move {
            if let Err(error) = serve_client(incoming, network).await {
                eprintln!("a client: {error}");
            }
        });
    }
    Ok(())
}

async fn serve_client(incoming: Incoming, network: IpNetwork) -> Result<(), Failure> {
    let mut server = http::Server::new(incoming.await?, settings());
    while let Some((request, mut stream)) = server.accept().await? {
        let is_known = request.protocol.as_deref() == Some("connect-ip")
            && request.path.parse() == Ok(Scope::default());
        if !is_known {
            stream.send_response(501, &[]).await?;
            stream.finish().await?;
            continue;
        }
        let network = network.clone();
        tokio::spawn(async move {
            let served = serve_stream(stream, &network).await;
            println!("served: {served:?}");
        });
    }
    Ok(())
}

async fn serve_stream(mut stream: RequestStream, network: &IpNetwork) -> Result<(), http::Error> {
    stream.send_response(200, &[CAPSULES]).await?;
    let meter = Arc::new(Mutex::new(Meter::new(Limits::default(), Instant::now())));
    let served = network.serve(stream, meter).await?;
    println!("{served:?}");
    Ok(())
}

/// Connects again and again, until it is killed. The device stays.
async fn connect(address: &str, routes: &[&str]) -> Result<(), Failure> {
    let address: std::net::SocketAddr = address.parse()?;
    let routes = routes.iter().map(|net| net.parse()).collect::<Result<_, _>>()?;
    let mut machine = IpClient::new("suturac%d", routes, Rules::default());
    let mut endpoint = Endpoint::client("0.0.0.0:0".parse()?)?;
    let config = ClientConfig::without_verification(&[ALPN])?;
    endpoint.set_default_client_config(config.transport(transport()));
    loop {
        let error = match attempt(&endpoint, address, &mut machine).await {
            Ok(()) => "over".into(),
            Err(error) => error,
        };
        println!("again: {error}");
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
}

async fn attempt(
    endpoint: &Endpoint,
    address: std::net::SocketAddr,
    machine: &mut IpClient,
) -> Result<(), Failure> {
    let connection = endpoint.connect(address, "localhost")?.await?;
    let client = http::Client::new(connection, settings()).await?;
    let path = Scope::default().to_string();
    let mut stream = client.connect("connect-ip", "localhost", &path, &[CAPSULES], None).await?;
    let response = stream.recv_response().await?;
    if response.status != 200 {
        return Err(format!("status {}", response.status).into());
    }
    let told = |attached: &sutura_tunnel::tun::Attached| {
        println!("device {} {:?} {:?}", attached.name(), attached.addresses, attached.routes);
    };
    Ok(machine.carry(stream, address.ip(), told).await?)
}
