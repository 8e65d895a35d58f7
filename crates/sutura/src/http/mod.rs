//! HTTP/3 (RFC 9114) with extensible priorities (RFC 9218): requests and responses with bodies and
//! trailers, over a [`Connection`](crate::Connection).
//!
//! The `priority` of a request decides how its response is sent: `u` and `i` its turn, `exp_w` its
//! share and `exp_p` the classes that it belongs to, `exp_b` and `exp_d` how many repair symbols
//! protect it and how long they may wait.

mod client;
mod exchange;
mod server;
mod state;

pub use client::Client;
pub use exchange::{RequestStream, Response};
pub use server::{Request, Server};
pub(crate) use state::HttpState;
pub use sutura_h3::{
    ALPN, Class, Code, Config, Field, Fields, FrameAction, FrameContent, FrameEvent,
    MAX_CLASS_NAME, MAX_DEPTH, PriorityError, PriorityParameters, Urgency, Weight,
};

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
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
///
/// ```
/// use sutura::http::{Class, Priority, Weight};
///
/// let images = Class { name: Some("images".into()), ..Class::default() };
/// let hero = Priority { incremental: true, burst: 3, ..Priority::default() }
///     .with_weight(Weight::new(2500).ok_or("no weight")?)
///     .within(images);
/// assert_eq!(hero.to_string(), r#"i, exp_w=2.5, exp_b=3, exp_p=("images")"#);
/// assert_eq!(hero.to_string().parse(), Ok(hero));
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Priority {
    /// 0 (first) to 7.
    pub urgency: u8,
    /// Whether parts of the response are of use before the whole.
    pub incremental: bool,
    /// The share among siblings of the same urgency, for schedulers with weights.
    pub weight: Weight,
    /// The classes above the response, its direct parent first, at most [`MAX_DEPTH`], with names
    /// of at most [`MAX_CLASS_NAME`] bytes of printable ASCII; for schedulers with classes. Empty
    /// for a response on the root. Responses that name the same class under the same parents share
    /// it, and what the latest of them says of it holds.
    pub parents: Arc<[Class]>,
    /// Burst loss tolerance: repair symbols per occasion; 0 for no protection.
    pub burst: u32,
    /// Repair delay tolerance in milliseconds.
    pub delay_ms: u64,
}

impl Priority {
    /// With that weight.
    #[must_use]
    pub fn with_weight(self, weight: Weight) -> Self {
        Self { weight, ..self }
    }

    /// With one class more above: the first is the direct parent, each further one the parent of
    /// the one before.
    #[must_use]
    pub fn within(self, class: Class) -> Self {
        let parents = self.parents.iter().cloned().chain([class]).collect();
        Self { parents, ..self }
    }
}

impl Default for Priority {
    fn default() -> Self {
        sutura_h3::Priority::default().into()
    }
}

impl From<sutura_h3::Priority> for Priority {
    fn from(p: sutura_h3::Priority) -> Self {
        let delay_ms = u64::try_from(p.delay.as_millis()).unwrap_or(u64::MAX);
        Self {
            urgency: p.urgency,
            incremental: p.incremental,
            weight: p.weight,
            parents: p.parents,
            burst: p.burst,
            delay_ms,
        }
    }
}

impl From<Priority> for sutura_h3::Priority {
    fn from(p: Priority) -> Self {
        Self {
            urgency: p.urgency.min(7),
            incremental: p.incremental,
            weight: p.weight,
            parents: p.parents,
            burst: p.burst,
            delay: Duration::from_millis(p.delay_ms),
        }
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&sutura_h3::Priority::from(self.clone()).to_field_value())
    }
}

impl FromStr for Priority {
    type Err = PriorityError;

    /// Reads what a person wrote: nothing in it may be unknown or out of range. What a peer sent is
    /// for [`PriorityParameters::parse`], which skips such things.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.parse::<PriorityParameters>()?.resolve().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_read_as_they_are_written() {
        let p: Priority = "u=1, i, exp_b=3, exp_d=25".parse().unwrap();
        let (weight, parents) = (Weight::default(), Arc::default());
        let expected =
            Priority { urgency: 1, incremental: true, weight, parents, burst: 3, delay_ms: 25 };
        assert_eq!(p, expected);
        assert_eq!(p.to_string().parse(), Ok(p));
        let p: Priority = r#"exp_w=0.5, exp_p=("a";u=1;i "b";exp_w=2)"#.parse().unwrap();
        assert_eq!((p.weight.thousandths(), p.parents.len()), (500, 2));
        assert_eq!(p.to_string().parse(), Ok(p));
        assert_eq!("".parse(), Ok(Priority::default()));
        assert!("u=;".parse::<Priority>().is_err());
        assert!("u=8".parse::<Priority>().is_err());
        assert!("w=1".parse::<Priority>().is_err());
    }

    #[test]
    fn classes_are_added_from_the_inside_out() {
        let class = |name: &str| Class { name: Some(name.into()), ..Class::default() };
        let p = Priority::default().within(class("in view")).within(class("images"));
        assert_eq!(p.to_string(), r#"exp_p=("in view" "images")"#);
    }
}
