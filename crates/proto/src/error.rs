//! Why a connection ends: transport error codes (RFC 9000 section 20) and errors for the
//! application.

use std::borrow::Cow;
use std::fmt;

/// A transport error code on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TransportErrorCode(pub u64);

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal;)*) => {
        impl TransportErrorCode {
            $($(#[$doc])* pub const $name: Self = Self($value);)*
        }
        impl fmt::Display for TransportErrorCode {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    $($value => f.write_str(stringify!($name)),)*
                    0x100..=0x1ff => write!(f, "CRYPTO_ERROR(alert {})", self.0 & 0xff),
                    other => write!(f, "error {other:#x}"),
                }
            }
        }
    };
}

codes! {
    /// Closed without an error.
    NO_ERROR = 0x0;
    /// The endpoint cannot continue.
    INTERNAL_ERROR = 0x1;
    /// The server refuses the connection.
    CONNECTION_REFUSED = 0x2;
    /// More data was received than was permitted.
    FLOW_CONTROL_ERROR = 0x3;
    /// More streams were opened than were permitted.
    STREAM_LIMIT_ERROR = 0x4;
    /// A frame arrived for a stream whose state does not allow it.
    STREAM_STATE_ERROR = 0x5;
    /// Data exceeded the final size, or the final size changed.
    FINAL_SIZE_ERROR = 0x6;
    /// A frame could not be decoded.
    FRAME_ENCODING_ERROR = 0x7;
    /// Transport parameters were malformed, missing or forbidden.
    TRANSPORT_PARAMETER_ERROR = 0x8;
    /// The peer issued more connection identifiers than allowed.
    CONNECTION_ID_LIMIT_ERROR = 0x9;
    /// The peer violated the protocol in another way.
    PROTOCOL_VIOLATION = 0xa;
    /// An Initial carried an invalid token.
    INVALID_TOKEN = 0xb;
    /// The application closed the connection before 1-RTT keys were available.
    APPLICATION_ERROR = 0xc;
    /// More out-of-order CRYPTO data arrived than the receiver can buffer.
    CRYPTO_BUFFER_EXCEEDED = 0xd;
    /// A key update violated the protocol.
    KEY_UPDATE_ERROR = 0xe;
    /// A key was used for too many packets.
    AEAD_LIMIT_REACHED = 0xf;
    /// No path can carry the connection.
    NO_VIABLE_PATH = 0x10;
    /// The ends do not agree on the version (RFC 9368).
    VERSION_NEGOTIATION_ERROR = 0x11;
}

impl TransportErrorCode {
    /// The code of a TLS alert (RFC 9001 section 4.8).
    #[must_use]
    pub const fn crypto(alert: u8) -> Self {
        Self(0x100 | alert as u64)
    }
}

impl fmt::Debug for TransportErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A transport error: detected by this end or reported by the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportError {
    /// The kind of error.
    pub code: TransportErrorCode,
    /// The type of the frame that caused it, if known.
    pub frame: Option<u64>,
    /// A human-readable reason.
    pub reason: Cow<'static, str>,
}

impl TransportError {
    /// Creates an error detected by this end.
    pub fn new(code: TransportErrorCode, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { code, frame: None, reason: reason.into() }
    }

    /// Sets the frame type that caused the error, unless it is already set.
    #[must_use]
    pub fn in_frame(mut self, frame: u64) -> Self {
        self.frame.get_or_insert(frame);
        self
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.code, f)?;
        if let Some(frame) = self.frame {
            write!(f, " in frame {frame:#x}")?;
        }
        if !self.reason.is_empty() {
            write!(f, ": {}", self.reason)?;
        }
        Ok(())
    }
}

impl std::error::Error for TransportError {}

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectionError {
    /// This end detected an error in the peer's behaviour.
    #[error("{0}")]
    Transport(TransportError),
    /// The peer closed the connection with a transport error.
    #[error("closed by peer: {0}")]
    ClosedByPeer(TransportError),
    /// The peer's application closed the connection.
    #[error("closed by peer's application: code {code}{}{}", if .reason.is_empty() { "" } else { ": " }, String::from_utf8_lossy(.reason))]
    ApplicationClosed {
        /// The application's code.
        code: u64,
        /// The application's reason.
        reason: Vec<u8>,
    },
    /// Nothing was received for the idle timeout.
    #[error("timed out")]
    TimedOut,
    /// This end closed the connection.
    #[error("closed")]
    LocallyClosed,
    /// The peer offered no version that we support.
    #[error("no common QUIC version")]
    VersionMismatch,
    /// The peer lost its state and sent a stateless reset.
    #[error("reset by peer")]
    Reset,
}

impl From<TransportError> for ConnectionError {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}
