//! The client.

use crate::config::{ALPN, certificate, limits, server_address};
use crate::tickets::Tickets;
use crate::{Error, chacha20, variable};
use s2n_quic::Client;
use s2n_quic::client::Connect;
use s2n_quic::connection::Handle;
use s2n_quic::provider::tls;
use s2n_quic::stream::BidirectionalStream;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;
use tokio::task::JoinSet;

/// How long to wait for a session ticket.
const TICKET_TIMEOUT: Duration = Duration::from_secs(10);

pub async fn run(case: &str) -> Result<(), Error> {
    let requests = variable("REQUESTS")?;
    let paths: Vec<&str> = requests.split_whitespace().map(path_of).collect::<Result<_, _>>()?;
    let tickets = Tickets::new();
    let mut client = match case {
        "chacha20" => start(chacha20::client()?)?,
        _ => start(s2n_tls(&tickets)?)?,
    };
    match case {
        "multiconnect" => {
            for path in paths {
                fetch_all(&client, &[path]).await?.close(0u32.into());
            }
        }
        "resumption" => {
            let (first, rest) = paths.split_at_checked(1).ok_or("nothing to fetch")?;
            let connection = fetch_all(&client, first).await?;
            tokio::time::timeout(TICKET_TIMEOUT, tickets.came()).await?;
            connection.close(0u32.into());
            fetch_all(&client, rest).await?.close(0u32.into());
        }
        _ => fetch_all(&client, &paths).await?.close(0u32.into()),
    }
    Ok(client.wait_idle().await?)
}

/// TLS by s2n-tls, which resumes a session if there is a ticket.
fn s2n_tls(tickets: &Tickets) -> Result<tls::s2n_tls::Client, Error> {
    let mut builder = tls::s2n_tls::Client::builder()
        .with_empty_trust_store()?
        .with_certificate(certificate("ca.pem")?.as_path())?
        .with_application_protocols([ALPN])?
        .with_key_logging()?;
    let config = builder.config_mut();
    config.set_session_ticket_callback(tickets.clone())?;
    config.set_connection_initializer(tickets.clone())?;
    Ok(builder.build()?)
}

fn start<T: tls::Provider>(tls: T) -> Result<Client, Error> {
    let any_address: SocketAddr = match server_address()? {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let builder = Client::builder().with_limits(limits()?)?.with_io(any_address)?;
    let builder = builder.with_tls(tls).map_err(|error| error.to_string())?;
    Ok(builder.start()?)
}

/// The path in a URL.
fn path_of(url: &str) -> Result<&str, Error> {
    let rest = url.strip_prefix("https://").ok_or("not a URL of https")?;
    let start = rest.find('/').ok_or("a URL without a path")?;
    Ok(&rest[start..])
}

/// Fetches the files in parallel over a new connection.
async fn fetch_all(client: &Client, paths: &[&str]) -> Result<Handle, Error> {
    let connect = Connect::new(server_address()?).with_server_name("localhost");
    let mut connection = client.connect(connect).await?.handle();
    let mut fetches = JoinSet::new();
    for path in paths {
        let stream = connection.open_bidirectional_stream().await?;
        fetches.spawn(fetch(stream, (*path).to_owned()));
    }
    while let Some(result) = fetches.join_next().await {
        result??;
    }
    Ok(connection)
}

/// Fetches a file and saves it under its name.
async fn fetch(mut stream: BidirectionalStream, path: String) -> Result<(), Error> {
    stream.send(format!("GET {path}\r\n").into()).await?;
    stream.finish()?;
    let mut body = Vec::new();
    while let Some(chunk) = stream.receive().await? {
        body.extend_from_slice(&chunk);
    }
    let name = Path::new(&path).file_name().ok_or("a path without a name")?;
    Ok(std::fs::write(Path::new(&variable("DOWNLOADS")?).join(name), body)?)
}
