//! Error codes (RFC 9114 section 8.1, RFC 9204 section 6) and the errors of this crate's methods.

use std::fmt;

use crate::message::MessageError;

/// An HTTP/3 or QPACK error code, as in RESET_STREAM, STOP_SENDING and CONNECTION_CLOSE.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Code(pub u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl Code {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// The code's name in its RFC, if it has one.
            #[must_use]
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// An HTTP datagram or a capsule is malformed (RFC 9297).
    DATAGRAM_ERROR = 0x33, "H3_DATAGRAM_ERROR";
    /// No error; the connection or stream is being closed.
    NO_ERROR = 0x100, "H3_NO_ERROR";
    /// The peer broke the protocol in a way that no other code describes.
    GENERAL_PROTOCOL_ERROR = 0x101, "H3_GENERAL_PROTOCOL_ERROR";
    /// This end cannot continue.
    INTERNAL_ERROR = 0x102, "H3_INTERNAL_ERROR";
    /// The peer opened a stream that is not acceptable.
    STREAM_CREATION_ERROR = 0x103, "H3_STREAM_CREATION_ERROR";
    /// A stream that the connection needs was closed or reset.
    CLOSED_CRITICAL_STREAM = 0x104, "H3_CLOSED_CRITICAL_STREAM";
    /// A frame was received where it is not permitted.
    FRAME_UNEXPECTED = 0x105, "H3_FRAME_UNEXPECTED";
    /// A frame's layout or size is wrong.
    FRAME_ERROR = 0x106, "H3_FRAME_ERROR";
    /// The peer's behaviour could exhaust this end.
    EXCESSIVE_LOAD = 0x107, "H3_EXCESSIVE_LOAD";
    /// A stream or push identifier was used wrongly.
    ID_ERROR = 0x108, "H3_ID_ERROR";
    /// A SETTINGS frame is malformed.
    SETTINGS_ERROR = 0x109, "H3_SETTINGS_ERROR";
    /// The control stream does not begin with SETTINGS.
    MISSING_SETTINGS = 0x10a, "H3_MISSING_SETTINGS";
    /// The request was not processed at all; it may be sent again.
    REQUEST_REJECTED = 0x10b, "H3_REQUEST_REJECTED";
    /// The request or its response is no longer wanted.
    REQUEST_CANCELLED = 0x10c, "H3_REQUEST_CANCELLED";
    /// The request's stream ended before the request was complete.
    REQUEST_INCOMPLETE = 0x10d, "H3_REQUEST_INCOMPLETE";
    /// A message is malformed.
    MESSAGE_ERROR = 0x10e, "H3_MESSAGE_ERROR";
    /// The connection behind a CONNECT was reset or closed abnormally.
    CONNECT_ERROR = 0x10f, "H3_CONNECT_ERROR";
    /// The request cannot be served over HTTP/3.
    VERSION_FALLBACK = 0x110, "H3_VERSION_FALLBACK";
    /// A field section could not be decoded.
    QPACK_DECOMPRESSION_FAILED = 0x200, "QPACK_DECOMPRESSION_FAILED";
    /// The peer's encoder stream carries an invalid instruction.
    QPACK_ENCODER_STREAM_ERROR = 0x201, "QPACK_ENCODER_STREAM_ERROR";
    /// The peer's decoder stream carries an invalid instruction.
    QPACK_DECODER_STREAM_ERROR = 0x202, "QPACK_DECODER_STREAM_ERROR";
    /// The WebTransport session of a stream is over (draft-ietf-webtrans-http3-15 section 6).
    WT_SESSION_GONE = 0x170d_7b68, "WT_SESSION_GONE";
    /// The WebTransport peer lacks what the protocol needs (draft-ietf-webtrans-http3-15 section 3.1).
    WT_REQUIREMENTS_NOT_MET = 0x212c_0d48, "WT_REQUIREMENTS_NOT_MET";
    /// The session of a WebTransport stream is not known, and no more such streams are kept
    /// (draft-ietf-webtrans-http3-15 section 4.6).
    WT_BUFFERED_STREAM_REJECTED = 0x3994_bd84, "WT_BUFFERED_STREAM_REJECTED";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "code {:#x}", self.0),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A connection error: the connection was closed with `code` (RFC 9114 section 8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {reason}")]
pub struct Error {
    /// The code with which the transport was closed.
    pub code: Code,
    /// The peer's fault, as text.
    pub reason: &'static str,
}

impl Error {
    pub(crate) const fn new(code: Code, reason: &'static str) -> Self {
        Self { code, reason }
    }
}

/// Why a call could not send its data. Such a call sends nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Bytes sent earlier are still pending; [`Event::Writable`](crate::Event::Writable) tells when
    /// to try again.
    #[error("blocked")]
    Blocked,
    /// The transport permits no further stream now; try again when it does.
    #[error("no further stream is permitted now")]
    StreamsBlocked,
    /// The peer is going away and accepts no further requests (RFC 9114 section 5.2).
    #[error("the peer is going away")]
    GoingAway,
    /// No such exchange: it never existed, is complete, or was reset.
    #[error("unknown stream")]
    UnknownStream,
    /// The frame or field section may not be sent at this point of the exchange.
    #[error("{0}")]
    InvalidState(&'static str),
    /// The peer asked us to stop sending the message.
    #[error("stopped by the peer: {0}")]
    Stopped(Code),
    /// The fields do not form a well-formed message.
    #[error("malformed message: {0}")]
    Malformed(#[from] MessageError),
    /// The field section exceeds the peer's SETTINGS_MAX_FIELD_SECTION_SIZE (in bytes).
    #[error("field section exceeds the peer's limit of {0} bytes")]
    FieldSectionTooLarge(u64),
    /// The connection is closed.
    #[error("connection closed: {0}")]
    Connection(#[from] Error),
}

/// Why a datagram was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendDatagramError {
    /// One of the ends, or the transport of one, does not support HTTP datagrams, or the peer's
    /// SETTINGS have not arrived.
    #[error("datagrams were not agreed on")]
    Unsupported,
    /// The datagram is longer than [`Connection::max_datagram_size`](crate::Connection::max_datagram_size).
    #[error("datagram too large")]
    TooLarge,
    /// No such exchange, or its message from this end is complete or abandoned.
    #[error("unknown stream")]
    UnknownStream,
    /// The connection is closed.
    #[error("connection closed")]
    Closed,
}

/// Why no body was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// No bytes are available; [`Event::Data`](crate::Event::Data) tells when to try again.
    #[error("blocked")]
    Blocked,
    /// No such exchange: it never existed, is complete, or was reset.
    #[error("unknown stream")]
    UnknownStream,
    /// Pieces of the body were read although earlier bytes have not come yet, so that it cannot be read in
    /// order at present.
    #[error("pieces are missing before those that were read")]
    OutOfOrder,
    /// The connection is closed.
    #[error("connection closed: {0}")]
    Connection(#[from] Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_values_of_the_registry() {
        assert_eq!(Code(0x10d), Code::REQUEST_INCOMPLETE);
        assert_eq!(Code(0x202), Code::QPACK_DECODER_STREAM_ERROR);
        assert_eq!(Code::VERSION_FALLBACK.to_string(), "H3_VERSION_FALLBACK");
        assert_eq!(Code(0x111).to_string(), "code 0x111");
    }
}
