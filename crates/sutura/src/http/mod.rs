//! HTTP/3 (RFC 9114) with extensible priorities (RFC 9218): requests and responses with bodies and
//! trailers, over a [`Connection`](crate::Connection).
//!
//! The `priority` of a request decides how its response is sent: `u` and `i` its turn, `exp_b` and
//! `exp_d` how many repair symbols protect it and how long they may wait.

mod client;
mod exchange;
mod server;
mod state;

pub use client::Client;
pub use exchange::{RequestStream, Response};
pub use server::{Request, Server};
pub(crate) use state::HttpState;
pub use sutura_h3::{ALPN, Code, Config, Field, Fields};

use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use sutura_proto::ConnectionError;

/// Why a request or response failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The connection is over.
    #[error("connection lost: {0}")]
    Connection(#[from] ConnectionError),
    /// The peer broke the rules of HTTP/3.
    #[error("HTTP/3 protocol error: {0}")]
    Protocol(sutura_h3::Error),
    /// The peer abandoned its message.
    #[error("reset by peer: {0}")]
    Reset(Code),
    /// The peer wants no more of our message.
    #[error("stopped by peer: {0}")]
    Stopped(Code),
    /// The peer's message is malformed or beyond a limit.
    #[error("{reason} ({code})")]
    Message {
        /// The code that the peer was told.
        code: Code,
        /// What was wrong.
        reason: &'static str,
    },
    /// The fields cannot be sent, or not at this point of the exchange.
    #[error("{0}")]
    Invalid(sutura_h3::SendError),
    /// The server takes no more requests on this connection.
    #[error("the server is going away")]
    GoingAway,
}

/// What a client asks of the order and protection of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Priority {
    /// 0 (first) to 7.
    pub urgency: u8,
    /// Whether parts of the response are of use before the whole.
    pub incremental: bool,
    /// Burst loss tolerance: repair symbols per occasion; 0 for no protection.
    pub burst: u32,
    /// Repair delay tolerance in milliseconds.
    pub delay_ms: u64,
}

impl Default for Priority {
    fn default() -> Self {
        sutura_h3::Priority::default().into()
    }
}

impl From<sutura_h3::Priority> for Priority {
    fn from(p: sutura_h3::Priority) -> Self {
        let delay_ms = u64::try_from(p.delay.as_millis()).unwrap_or(u64::MAX);
        Self { urgency: p.urgency, incremental: p.incremental, burst: p.burst, delay_ms }
    }
}

impl From<Priority> for sutura_h3::Priority {
    fn from(p: Priority) -> Self {
        let delay = Duration::from_millis(p.delay_ms);
        Self { urgency: p.urgency.min(7), incremental: p.incremental, burst: p.burst, delay }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&sutura_h3::Priority::from(*self).to_field_value())
    }
}

/// A priority that is no structured field (RFC 9651).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid priority {0:?} (expected, for example, \"u=1, i, exp_b=3, exp_d=25\")")]
pub struct ParsePriorityError(String);

impl FromStr for Priority {
    type Err = ParsePriorityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parameters = sutura_h3::PriorityParameters::parse(text.as_bytes());
        let parameters = parameters.ok_or_else(|| ParsePriorityError(text.to_owned()))?;
        Ok(parameters.resolve().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_read_as_they_are_written() {
        let p: Priority = "u=1, i, exp_b=3, exp_d=25".parse().unwrap();
        assert_eq!(p, Priority { urgency: 1, incremental: true, burst: 3, delay_ms: 25 });
        assert_eq!(p.to_string().parse(), Ok(p));
        assert_eq!("".parse(), Ok(Priority::default()));
        assert!("u=;".parse::<Priority>().is_err());
    }
}
