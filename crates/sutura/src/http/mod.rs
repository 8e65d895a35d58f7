//! HTTP/3 (RFC 9114) with extensible priorities (RFC 9218): requests and responses with bodies and
//! trailers, over a [`Connection`](crate::Connection).
//!
//! The `priority` field of a request decides how its response is sent: `u` and `i` its order,
//! `exp_w` its share, `exp_p` its classes, `exp_b` the number of repair symbols that protect it,
//! and `exp_d` how long they may be delayed.
//!
//! A server waits for a client that makes no progress as long as [`Timeouts`] says, and ends the connection
//! of a client that cancels too many requests ([`Config::cancelled_requests`]); its address is shut out for a
//! while if other clients from there do the same.
//!
//! There are two interfaces to the same exchanges. [`Client::request`] and [`Server::accept`] give a
//! [`RequestStream`], on which each part of a message is sent and received by a call.
//! [`Client::send`] and [`Server::accept_http`] use the types of the `http` and `http-body` crates;
//! the crate `sutura-tower` serves a `tower::Service` with them.

mod body;
mod client;
mod datagrams;
mod exchange;
mod halves;
mod refused;
mod server;
mod session;
mod state;
mod timeouts;
mod types;

pub use body::Body;
pub use client::Client;
pub use datagrams::Datagrams;
pub use exchange::{Piece, RequestStream, Response};
pub use halves::{RecvHalf, SendHalf};
pub use refused::{Refused, RefusedAnswer};
pub use server::{Request, Responder, Server};
pub use session::{Session, SessionEnd};
pub(crate) use state::HttpState;
pub use sutura_h3::{
    ALPN, CancelLimit, Capsule, CapsuleError, CapsuleReader, Class, Code, Config,
    DefaultProtection, DefaultProtections, Error as ProtocolError, Extension, Field, Fields,
    FrameAction, FrameContent, FrameEvent, MAX_CAPSULE_SIZE, MAX_CLASS_NAME, MAX_DEPTH, Priority,
    PriorityError, PriorityParameters, SendDatagramError, SendError, SessionClose, Urgency,
    WebTransportDraft, Weight, is_webtransport,
};
pub use timeouts::Timeouts;
pub use types::Protocol;

use sutura_proto::ConnectionError;

/// Why a request or response failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The connection is over.
    #[error("connection lost: {0}")]
    Connection(#[from] ConnectionError),
    /// The peer violated the HTTP/3 protocol.
    #[error("HTTP/3 protocol error: {0}")]
    Protocol(sutura_h3::Error),
    /// The peer abandoned its message.
    #[error("reset by peer: {0}")]
    Reset(Code),
    /// The peer does not want the rest of this end's message.
    #[error("stopped by peer: {0}")]
    Stopped(Code),
    /// The peer's message is malformed or exceeds a limit.
    #[error("{reason} ({code})")]
    Message {
        /// The code sent to the peer.
        code: Code,
        /// The fault in the message.
        reason: &'static str,
    },
    /// The peer's capsules are malformed or exceed a limit.
    #[error("{0}")]
    Capsule(#[from] CapsuleError),
    /// Pieces of the body were read although earlier bytes have not come yet, so that it cannot be read in
    /// order at present.
    #[error("pieces of the body are missing before those that were read")]
    OutOfOrder,
    /// A body that was to be sent failed, with this description.
    #[error("the body failed: {0}")]
    Body(String),
    /// The fields cannot be sent, or not at this point of the exchange.
    #[error("{0}")]
    Invalid(SendError),
    /// The request was sent in 0-RTT, which the server does not accept. It never existed for the server.
    #[error("0-RTT rejected")]
    ZeroRttRejected,
    /// The server accepts no more requests on this connection.
    #[error("the server is going away")]
    GoingAway,
    /// The WebTransport session is over.
    #[error("the session is over")]
    SessionOver,
}
