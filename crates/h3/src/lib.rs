//! Sans-IO HTTP/3 (RFC 9114) with QPACK (RFC 9204), extensible priorities (RFC 9218) and the
//! priority parameters that ask for hierarchical sharing and erasure coding.
//!
//! [`Connection`] is either end of one connection. It owns no transport: every method that moves
//! bytes is given a [`Transport`], and time plays no part. Whoever drives it
//!
//! 1. tells it what happened to streams ([`Connection::readable`], [`Connection::writable`],
//!    [`Connection::stopped`]),
//! 2. calls [`Connection::process`],
//! 3. takes events out of [`Connection::poll_event`] until there are none,
//! 4. sends and reads messages by the other methods.
//!
//! Server push is not offered and not used. Bodies are never buffered here: a payload is read from
//! the transport into the caller's memory and written the other way alike.
#![forbid(unsafe_code)]

mod codec;
mod config;
mod connection;
mod error;
mod event;
mod fields;
mod frame;
mod message;
mod observe;
mod priority;
mod qpack;
mod quic;
mod settings;
mod transport;

#[doc(hidden)]
pub mod fuzz;

pub use config::Config;
pub use connection::{
    Connection, MAX_CONTROL_BACKLOG, MAX_CONTROL_PAYLOAD, MAX_DATA_COPY, MAX_INTERIM_RESPONSES,
    MAX_PRIORITY_OVERRIDES, MAX_PRIORITY_UPDATES, MAX_UNTYPED_STREAMS,
};
pub use error::{Code, Error, ReceiveError, SendError};
pub use event::Event;
pub use fields::{FIELD_OVERHEAD, Field, Fields};
pub use message::MessageError;
pub use observe::{FrameAction, FrameContent, FrameEvent};
pub use priority::{
    MAX_BURST, MAX_CLASS_NAME, MAX_DELAY, MAX_PRIORITY_SIZE, Priority, PriorityError,
    PriorityParameters,
};
pub use quic::Quic;
pub use settings::{MAX_SETTINGS, Settings};
pub use sutura_schedule::{Class, MAX_DEPTH, Urgency, Weight};
pub use transport::{Read, ReadError, Transport, WriteError};

/// The ALPN protocol identifier of HTTP/3 (RFC 9114 section 3.1).
pub const ALPN: &[u8] = b"h3";
