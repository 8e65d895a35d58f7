//! The configuration of both roles.

use crate::{Error, variable};
use s2n_quic::provider::limits::Limits;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The interop runner's name for HTTP/0.9.
pub const ALPN: &str = "hq-interop";

/// Longer than any handshake and any outage.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Smaller than the files, and raised as they arrive.
const STREAM_WINDOW: u64 = 256 << 10;
const CONNECTION_WINDOW: u64 = 1 << 20;

pub fn limits() -> Result<Limits, Error> {
    Ok(Limits::new()
        .with_max_handshake_duration(TIMEOUT)?
        .with_max_idle_timeout(TIMEOUT)?
        .with_data_window(CONNECTION_WINDOW)?
        .with_bidirectional_local_data_window(STREAM_WINDOW)?
        .with_bidirectional_remote_data_window(STREAM_WINDOW)?)
}

/// The address of the server.
pub fn server_address() -> Result<SocketAddr, Error> {
    Ok(variable("ADDRESS")?.parse()?)
}

/// A file in the directory of certificates.
pub fn certificate(name: &str) -> Result<PathBuf, Error> {
    Ok(PathBuf::from(variable("CERTS")?).join(name))
}
