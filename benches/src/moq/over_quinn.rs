//! The broadcast over quinn, with the crate `web-transport-quinn`.

use crate::broadcast::{self, PROTOCOL, Place, Publisher, Viewer, serve};
use crate::outcome::Outcome;
use crate::plan::Peer;
use quinn::congestion::BbrConfig;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use std::net::Ipv4Addr;
use std::sync::Arc;
use sutura_benches::Error;
use sutura_benches::tls;
use tokio::task::spawn_local;
use url::Url;
use web_transport_quinn::proto::{ConnectRequest, ConnectResponse};
use web_transport_quinn::{ALPN, Request, Session};

/// As quinn's and its WebTransport's defaults are, but for the congestion controller of [`Peer::QuinnBbr`].
fn transport(peer: Peer) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    if peer == Peer::QuinnBbr {
        transport.congestion_controller_factory(Arc::new(BbrConfig::default()));
    }
    Arc::new(transport)
}

fn server(place: &Place<'_>) -> Result<Endpoint, Error> {
    let mut tls = place.identity.server_tls(tls::defaults())?;
    tls.alpn_protocols = vec![ALPN.as_bytes().to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport(place.job.peer));
    Ok(Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into())?)
}

fn client(place: &Place<'_>) -> Result<ClientConfig, Error> {
    let mut tls = place.identity.client_tls(tls::defaults())?;
    tls.alpn_protocols = vec![ALPN.as_bytes().to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport(place.job.peer));
    Ok(config)
}

async fn accept(incoming: quinn::Incoming) -> Result<Session, Error> {
    let request = Request::accept(incoming.await?).await?;
    let response = ConnectResponse::default().with_protocol(PROTOCOL);
    Ok(request.respond(response).await?)
}

/// Makes the broadcast of a job.
pub async fn run(place: &Place<'_>) -> Result<Outcome, Error> {
    let publisher = Publisher::new()?;
    let endpoint = server(place)?;
    let relays = place.relays(endpoint.local_addr()?)?;
    let offer = publisher.offer();
    spawn_local(async move {
        while let Some(incoming) = endpoint.accept().await {
            let offer = offer.clone();
            spawn_local(async move { serve(offer, accept(incoming).await?).await });
        }
    });
    let config = client(place)?;
    let (mut viewers, mut endpoints) = (Vec::new(), Vec::new());
    for (hop, relay) in (2..).zip(&relays) {
        let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
        let to = relay.local_addr();
        let connection = endpoint.connect_with(config.clone(), to, "localhost")?.await?;
        let url: Url = format!("https://localhost:{}/live", to.port()).parse()?;
        let request = ConnectRequest::new(url).with_protocol(PROTOCOL);
        let session = Session::connect(connection, request).await?;
        viewers.push(Viewer::connect(session, hop).await?);
        endpoints.push(endpoint);
    }
    broadcast::run(place.job, publisher, viewers, relays).await
}
