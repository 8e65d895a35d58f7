//! The test cases.

use std::str::FromStr;

/// The task of an endpoint, as `interop/README.md` describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestCase {
    /// One connection, one request.
    Handshake,
    /// All requests at once on one connection.
    Transfer,
    /// A server that permits at most 1000 streams at first.
    Multiplexing,
    /// Only TLS_CHACHA20_POLY1305_SHA256.
    ChaCha20,
    /// The server answers the first Initial with a Retry.
    Retry,
    /// The second connection resumes the session of the first.
    Resumption,
    /// The second connection resumes the session and sends its requests in 0-RTT.
    ZeroRtt,
    /// HTTP/3.
    Http3,
    /// The client updates the keys.
    KeyUpdate,
    /// ECN marks are sent and reported.
    Ecn,
    /// A connection for each request.
    MultiConnect,
    /// The connection goes over from version 1 to version 2.
    V2,
    /// The server has a preferred address.
    ConnectionMigration,
}

impl FromStr for TestCase {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Ok(match text {
            "handshake" => Self::Handshake,
            "transfer" => Self::Transfer,
            "multiplexing" => Self::Multiplexing,
            "chacha20" => Self::ChaCha20,
            "retry" => Self::Retry,
            "resumption" => Self::Resumption,
            "zerortt" => Self::ZeroRtt,
            "http3" => Self::Http3,
            "keyupdate" => Self::KeyUpdate,
            "ecn" => Self::Ecn,
            "multiconnect" => Self::MultiConnect,
            "v2" => Self::V2,
            "connectionmigration" => Self::ConnectionMigration,
            _ => return Err(()),
        })
    }
}
