//! The configuration of each test case.

use std::net::SocketAddr;
use std::sync::Arc;

use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, ServerConfig, TransportConfig, VarInt};
use sutura_interop_endpoint::{
    Environment, Error, IDLE_TIMEOUT, INITIAL, SMALL_WINDOWS, TestCase, client_tls, server_tls,
};

fn transport(environment: &Environment) -> Result<Arc<TransportConfig>, Error> {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IDLE_TIMEOUT.try_into()?));
    if environment.case == TestCase::Transfer {
        let [stream, connection] = SMALL_WINDOWS.map(VarInt::from_u32);
        transport.stream_receive_window(stream);
        transport.receive_window(connection);
    }
    if environment.case == TestCase::Multiplexing {
        transport.max_concurrent_bidi_streams(VarInt::from_u32(1000));
    }
    Ok(Arc::new(transport))
}

fn initial() -> Result<rustls::quic::Suite, Error> {
    Ok(INITIAL.tls13().and_then(|suite| suite.quic_suite()).ok_or("no suite for QUIC")?)
}

/// How to accept connections.
pub fn server(environment: &Environment) -> Result<ServerConfig, Error> {
    let mut tls = server_tls(environment)?;
    if environment.case == TestCase::ZeroRtt {
        tls.max_early_data_size = u32::MAX;
    }
    let crypto = QuicServerConfig::with_initial(Arc::new(tls), initial()?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport(environment)?);
    if environment.case == TestCase::ConnectionMigration {
        match environment.preferred {
            Some(SocketAddr::V4(address)) => drop(config.preferred_address_v4(Some(address))),
            Some(SocketAddr::V6(address)) => drop(config.preferred_address_v6(Some(address))),
            None => {}
        }
    }
    Ok(config)
}

/// How to open connections.
pub fn client(environment: &Environment) -> Result<ClientConfig, Error> {
    let mut tls = client_tls(environment)?;
    tls.enable_early_data = environment.case == TestCase::ZeroRtt;
    let crypto = QuicClientConfig::with_initial(Arc::new(tls), initial()?)?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(transport(environment)?);
    Ok(config)
}
