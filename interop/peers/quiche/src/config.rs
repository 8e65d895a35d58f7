//! The configuration of both roles.

use crate::{Error, optional, variable};
use quiche::{Config, Connection};
use std::fs::OpenOptions;
use std::io::BufWriter;
use std::net::SocketAddr;

/// Bytes of the connection identifiers that this endpoint chooses.
pub const CONNECTION_ID_LEN: usize = 16;

/// In milliseconds: longer than any handshake and any outage.
const IDLE_TIMEOUT: u64 = 120_000;

/// Smaller than the files, and raised as they arrive.
const STREAM_WINDOW: u64 = 256 << 10;
const CONNECTION_WINDOW: u64 = 1 << 20;

/// Streams that the peer may have open at a time.
const STREAMS: u64 = 100;

/// Connection identifiers to have in store for changes of a client's address.
const CONNECTION_IDS: u64 = 4;

/// The longest datagram to send, in bytes.
const DATAGRAM: usize = 1350;

/// The configuration for a test case.
pub fn config(case: &str) -> Result<Config, Error> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    let alpn: &[u8] = if case == "http3" { b"h3" } else { b"hq-interop" };
    config.set_application_protos(&[alpn])?;
    config.set_max_idle_timeout(IDLE_TIMEOUT);
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.set_initial_max_data(CONNECTION_WINDOW);
    config.set_initial_max_stream_data_bidi_local(STREAM_WINDOW);
    config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW);
    config.set_initial_max_stream_data_uni(STREAM_WINDOW);
    config.set_initial_max_streams_bidi(STREAMS);
    config.set_initial_max_streams_uni(STREAMS);
    config.set_active_connection_id_limit(CONNECTION_IDS);
    // The socket cannot be told when to send.
    config.enable_pacing(false);
    if case == "zerortt" {
        config.enable_early_data();
    }
    if optional("SSLKEYLOGFILE")?.is_some() {
        config.log_keys();
    }
    Ok(config)
}

/// Lets a connection write the keys and the qlog file for which the environment asks.
pub fn log(connection: &mut Connection) -> Result<(), Error> {
    if let Some(path) = optional("SSLKEYLOGFILE")? {
        let file = OpenOptions::new().append(true).create(true).open(path)?;
        connection.set_keylog(Box::new(file));
    }
    if let Some(directory) = optional("QLOGDIR")? {
        let role = variable("ROLE")?;
        let file = format!("{directory}/{}-{role}.sqlog", connection.trace_id());
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(file)?;
        connection.set_qlog(
            Box::new(BufWriter::new(file)),
            format!("quiche {role}"),
            String::new(),
        );
    }
    Ok(())
}

/// The address of the server.
pub fn server_address() -> Result<SocketAddr, Error> {
    Ok(variable("ADDRESS")?.parse()?)
}

/// `LEN` random bytes.
pub fn random<const LEN: usize>() -> Result<[u8; LEN], Error> {
    let mut bytes = [0; LEN];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}
