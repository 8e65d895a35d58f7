//! Why a connection ends: transport error codes (RFC 9000 section 20) and what the user is told.

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
    /// A frame came for a stream whose state does not allow it.
    STREAM_STATE_ERROR = 0x5;
    /// Data past the final size, or a final size that changed.
    FINAL_SIZE_ERROR = 0x6;
    /// A frame could not be decoded.
    FRAME_ENCODING_ERROR = 0x7;
    /// Transport parameters were malformed, missing or forbidden.
    TRANSPORT_PARAMETER_ERROR = 0x8;
    /// More connection identifiers than advertised.
    CONNECTION_ID_LIMIT_ERROR = 0x9;
    /// The peer broke the protocol in another way.
    PROTOCOL_VIOLATION = 0xa;
    /// An Initial carried an invalid token.
    INVALID_TOKEN = 0xb;
    /// The application closed the connection before 1-RTT keys.
    APPLICATION_ERROR = 0xc;
    /// More CRYPTO data out of order than is buffered.
    CRYPTO_BUFFER_EXCEEDED = 0xd;
    /// A key update broke the rules.
    KEY_UPDATE_ERROR = 0xe;
    /// A key was used too often.
    AEAD_LIMIT_REACHED = 0xf;
    /// No path can carry the connection.
    NO_VIABLE_PATH = 0x10;
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

/// A transport error: found here, or reported by the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportError {
    /// What kind of error.
    pub code: TransportErrorCode,
    /// The type of the frame that caused it, if known.
    pub frame: Option<u64>,
    /// A human-readable reason.
    pub reason: Cow<'static, str>,
}

impl TransportError {
    /// An error found here.
    pub fn new(code: TransportErrorCode, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { code, frame: None, reason: reason.into() }
    }

    /// Names the frame type that caused the error, unless one is named already.
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

/// Why a connection is over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionError {
    /// This end found an error in what the peer did.
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
    /// Nothing was heard for the idle timeout.
    #[error("timed out")]
    TimedOut,
    /// This end closed the connection.
    #[error("closed")]
    LocallyClosed,
    /// The peer offered no version that we speak.
    #[error("no common QUIC version")]
    VersionMismatch,
    /// The peer lost its state and said so with a stateless reset.
    #[error("reset by peer")]
    Reset,
}

impl From<TransportError> for ConnectionError {
    fn from(error: TransportError) -> Self {
        Self::Transport(error)
    }
}
