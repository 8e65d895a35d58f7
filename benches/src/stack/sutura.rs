//! Sutura.

use super::{CONNECTION_WINDOW, STREAM_WINDOW, Setting, Settings, Stack};
use crate::Error;
use bytes::Bytes;
use rustls::crypto::CryptoProvider;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use sutura::qlog::QlogWriter;
use sutura::{
    ClientConfig, Connection, Endpoint, Incoming, Protection, RecvStream, SendStream, ServerConfig,
    TransportConfig,
};

/// Sutura, which always offers erasure coding, even if no stream uses it.
pub struct Sutura;

fn transport(settings: &Settings<'_>) -> TransportConfig {
    if settings.setting == Setting::Default {
        return TransportConfig::default();
    }
    TransportConfig::default()
        .with_udp_payload_size(settings.payload)
        .with_stream_receive_window(STREAM_WINDOW.into())
        .with_max_stream_receive_window(STREAM_WINDOW.into())
        .with_receive_window(CONNECTION_WINDOW.into())
        .with_max_receive_window(CONNECTION_WINDOW.into())
        .with_send_buffer(settings.stream_send_buffer as usize)
        .with_congestion(Arc::new(settings.congestion))
        .with_redundancy(settings.redundancy.cloned())
        .with_max_idle_timeout(Some(settings.idle_timeout))
}

fn observe(endpoint: &Endpoint, settings: &Settings<'_>) {
    if let Some((directory, title)) = settings.qlog {
        let (directory, title) = (directory.to_owned(), title.to_owned());
        endpoint.observe_with(move |side| QlogWriter::create(&directory, side, &title).ok());
    }
}

fn server(
    settings: &Settings<'_>,
    provider: Arc<CryptoProvider>,
    workers: usize,
) -> Result<Endpoint, Error> {
    let tls = settings.identity.server_tls(provider)?;
    let config = ServerConfig::with_tls(tls)?.transport(transport(settings));
    let endpoint = Endpoint::server_workers(config, (Ipv4Addr::LOCALHOST, 0).into(), workers)?;
    observe(&endpoint, settings);
    Ok(endpoint)
}

fn client(settings: &Settings<'_>, provider: Arc<CryptoProvider>) -> Result<Endpoint, Error> {
    let tls = settings.identity.client_tls(provider)?;
    let config = ClientConfig::with_tls(tls)?.transport(transport(settings));
    let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    observe(&endpoint, settings);
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

fn with_address(endpoint: Endpoint) -> Result<(Endpoint, SocketAddr), Error> {
    let address = endpoint.local_addr()?;
    Ok((endpoint, address))
}

impl Sutura {
    /// A server with several workers on a port of its own choice.
    pub fn server_with(settings: &Settings<'_>, workers: usize) -> Result<Endpoint, Error> {
        server(settings, settings.provider(), workers)
    }
}

impl Stack for Sutura {
    same_names!();

    fn server(settings: &Settings<'_>) -> Result<(Endpoint, SocketAddr), Error> {
        with_address(Self::server_with(settings, 1)?)
    }

    fn client(settings: &Settings<'_>) -> Result<Endpoint, Error> {
        client(settings, settings.provider())
    }

    fn repairs(connection: &Connection) -> (u64, u64) {
        let stats = connection.stats().fec;
        (stats.repair_symbols_sent, stats.repair_symbols_received)
    }

    fn protect(stream: &SendStream, protection: Protection) -> Result<(), Error> {
        Ok(stream.protect(Some(protection))?)
    }
}

/// Sutura with the ciphers and groups of AWS-LC.
#[cfg(feature = "aws-lc-rs")]
pub struct SuturaAwsLc;

#[cfg(feature = "aws-lc-rs")]
impl Stack for SuturaAwsLc {
    same_names!();

    fn server(settings: &Settings<'_>) -> Result<(Endpoint, SocketAddr), Error> {
        with_address(server(settings, settings.provider_of_aws_lc(), 1)?)
    }

    fn client(settings: &Settings<'_>) -> Result<Endpoint, Error> {
        client(settings, settings.provider_of_aws_lc())
    }

    fn repairs(connection: &Connection) -> (u64, u64) {
        Sutura::repairs(connection)
    }

    fn protect(stream: &SendStream, protection: Protection) -> Result<(), Error> {
        Sutura::protect(stream, protection)
    }
}
