//! The configuration of each test case.

use std::net::SocketAddr;

use sutura::{
    ClientConfig, EndpointConfig, PreferredAddresses, ServerConfig, TransportConfig, Version,
};
use sutura_interop_endpoint::{
    Environment, Error, IDLE_TIMEOUT, SMALL_WINDOWS, TestCase, client_tls, server_tls,
};

fn transport(environment: &Environment) -> TransportConfig {
    let mut transport = TransportConfig::default().with_max_idle_timeout(Some(IDLE_TIMEOUT));
    match environment.case {
        TestCase::Transfer => {
            [transport.stream_receive_window, transport.receive_window] =
                SMALL_WINDOWS.map(u64::from);
        }
        TestCase::Multiplexing => transport.max_concurrent_bidi_streams = 1000,
        TestCase::Handshake
        | TestCase::ChaCha20
        | TestCase::Retry
        | TestCase::Resumption
        | TestCase::ZeroRtt
        | TestCase::Http3
        | TestCase::KeyUpdate
        | TestCase::Ecn
        | TestCase::MultiConnect
        | TestCase::V2
        | TestCase::ConnectionMigration => {}
    }
    transport
}

/// How to accept connections.
pub fn server(environment: &Environment) -> Result<ServerConfig, Error> {
    let config = ServerConfig::with_tls(server_tls(environment)?)?;
    let config = config.transport(transport(environment));
    Ok(if environment.case == TestCase::ZeroRtt { config.early_data() } else { config })
}

/// How to open connections.
pub fn client(environment: &Environment) -> Result<ClientConfig, Error> {
    let config = ClientConfig::with_tls(client_tls(environment)?)?;
    let config = config.transport(transport(environment));
    Ok(if environment.case == TestCase::ZeroRtt { config.early_data() } else { config })
}

/// The settings for all connections of a client.
pub fn client_endpoint(environment: &Environment) -> EndpointConfig {
    let mut config = EndpointConfig::default();
    if environment.case == TestCase::V2 {
        config.versions = vec![Version::V2, Version::V1];
        config.original_version = Some(Version::V1);
    }
    config
}

/// The settings for all connections of a server.
pub fn server_endpoint(environment: &Environment) -> EndpointConfig {
    let mut config = EndpointConfig::default();
    match environment.case {
        TestCase::Retry => config.retry_above = Some(0),
        TestCase::V2 => config.versions = vec![Version::V2, Version::V1],
        TestCase::ConnectionMigration => {
            let mut preferred = PreferredAddresses::default();
            match environment.preferred {
                Some(SocketAddr::V4(address)) => preferred.ipv4 = Some(address),
                Some(SocketAddr::V6(address)) => preferred.ipv6 = Some(address),
                None => {}
            }
            config.preferred_address = Some(preferred);
        }
        TestCase::Handshake
        | TestCase::Transfer
        | TestCase::Multiplexing
        | TestCase::ChaCha20
        | TestCase::Resumption
        | TestCase::ZeroRtt
        | TestCase::Http3
        | TestCase::KeyUpdate
        | TestCase::Ecn
        | TestCase::MultiConnect => {}
    }
    config
}
