//! The broadcast over Sutura, with the crate `sutura-webtransport`.

use crate::broadcast::{self, PROTOCOL, Place, Publisher, Viewer, serve};
use crate::outcome::Outcome;
use crate::plan::{Job, Peer, SHORT_BUFFER};
use std::net::Ipv4Addr;
use sutura::http::ALPN;
use sutura::qlog::QlogWriter;
use sutura::{ClientConfig, Endpoint, Incoming, ServerConfig, TransportConfig};
use sutura_benches::Error;
use sutura_benches::tls;
use sutura_webtransport::traits::Polled;
use sutura_webtransport::{Connect, Server};
use tokio::task::spawn_local;

/// The redundancy policy of [`Peer::SuturaLess`].
pub const LESS: &str = "auto:budget=0.1";

/// The redundancy policy of [`Peer::SuturaWithin`]: nearly all frames are to be there before the short buffer is empty, for
/// up to half as many packets again, because bursts take whole frames.
pub fn target(job: &Job) -> String {
    let within = (job.path.delay + SHORT_BUFFER).as_millis();
    format!("auto:budget=0.5,within={within}ms,share=0.999")
}

fn transport(job: &Job) -> Result<TransportConfig, Error> {
    let transport = TransportConfig::default();
    let policy = |name: &str| sutura::registry::redundancy().find(name);
    Ok(match job.peer {
        Peer::SuturaBare => transport.with_redundancy(None),
        Peer::SuturaLess => transport.with_redundancy(Some(policy(LESS)?)),
        Peer::SuturaWithin => transport.with_redundancy(Some(policy(&target(job))?)),
        Peer::Quinn | Peer::QuinnBbr | Peer::Sutura => transport,
    })
}

fn observe(endpoint: &Endpoint, place: &Place<'_>) {
    if let Some(directory) = place.qlog {
        let (directory, title) = (directory.to_owned(), place.job.to_string());
        endpoint.observe_with(move |side| QlogWriter::create(&directory, side, &title).ok());
    }
}

fn server(place: &Place<'_>) -> Result<Endpoint, Error> {
    let mut tls = place.identity.server_tls(tls::defaults())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    let config = ServerConfig::with_tls(tls)?.transport(transport(place.job)?);
    let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into())?;
    observe(&endpoint, place);
    Ok(endpoint)
}

fn client(place: &Place<'_>) -> Result<ClientConfig, Error> {
    let mut tls = place.identity.client_tls(tls::defaults())?;
    tls.alpn_protocols = vec![ALPN.to_vec()];
    Ok(ClientConfig::with_tls(tls)?.transport(transport(place.job)?))
}

async fn accept(incoming: Incoming, offer: moq_net::origin::Consumer) -> Result<(), Error> {
    let mut server = Server::new(incoming.await?);
    let request = server.accept().await?.ok_or("no request")?;
    serve(offer, Polled::from(request.ok_with(PROTOCOL).await?)).await
}

/// Makes the broadcast of a job.
pub async fn run(place: &Place<'_>) -> Result<Outcome, Error> {
    let publisher = Publisher::new()?;
    let endpoint = server(place)?;
    let relays = place.relays(endpoint.local_addr()?)?;
    let offer = publisher.offer();
    spawn_local(async move {
        while let Some(incoming) = endpoint.accept().await {
            spawn_local(accept(incoming, offer.clone()));
        }
    });
    let config = client(place)?;
    let (mut viewers, mut endpoints) = (Vec::new(), Vec::new());
    for (hop, relay) in (2..).zip(&relays) {
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
        observe(&endpoint, place);
        let to = relay.local_addr();
        let connection = endpoint.connect_with(config.clone(), to, "localhost")?.await?;
        let url = format!("https://localhost:{}/live", to.port());
        let connect = Connect::new(&url)?.protocol(PROTOCOL);
        let session = Polled::from(connect.connect_over(connection).await?);
        viewers.push(Viewer::connect(session, hop).await?);
        endpoints.push(endpoint);
    }
    broadcast::run(place.job, publisher, viewers, relays).await
}
