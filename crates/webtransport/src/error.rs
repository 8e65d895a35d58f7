//! Why something failed.

use sutura::http::{Code, SessionClose, SessionEnd};
use sutura::{ConnectionError, http};

/// Why something failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The peer has closed the session.
    #[error("session closed by peer: code {code}, {reason:?}")]
    ClosedByPeer {
        /// The error code of its application; 0 also if the session simply ended.
        code: u32,
        /// Its text for people.
        reason: String,
    },
    /// This end has closed the session.
    #[error("session closed")]
    Closed,
    /// The peer's application has reset the stream with this error code; `None` if the peer gave no code of an
    /// application.
    #[error("stream reset by peer: {0:?}")]
    Reset(Option<u32>),
    /// The peer's application does not want more of the stream, with this error code, as for a reset.
    #[error("stream stopped by peer: {0:?}")]
    Stopped(Option<u32>),
    /// The stream was finished, reset or stopped at this end.
    #[error("stream closed")]
    ClosedStream,
    /// The stream is longer than this many bytes.
    #[error("stream longer than {0} bytes")]
    TooLong(usize),
    /// The datagram cannot be sent.
    #[error("{0}")]
    Datagram(#[from] http::SendDatagramError),
    /// The exchange that carries the session has failed.
    #[error("{0}")]
    Http(#[from] http::Error),
    /// The connection has failed.
    #[error("{0}")]
    Connection(#[from] ConnectionError),
    /// No connection could be begun.
    #[error("{0}")]
    Connect(String),
    /// The URL is none of a WebTransport server.
    #[error("no URL of WebTransport: {0}")]
    Url(String),
    /// The server does not support WebTransport, or no draft that this crate speaks.
    #[error("the server does not support WebTransport")]
    Unsupported,
    /// The server refuses the session, with this status of HTTP.
    #[error("the server refuses the session: status {0}")]
    Refused(u16),
    /// The server has chosen a sub-protocol that was not offered.
    #[error("the server has chosen a sub-protocol that was not offered")]
    Protocol,
}

impl Error {
    /// The error of a session that has ended.
    pub(crate) fn of_end(end: SessionEnd) -> Self {
        match end {
            SessionEnd::ClosedByPeer(SessionClose { code, reason }) => {
                Self::ClosedByPeer { code, reason }
            }
            SessionEnd::Closed(_) => Self::Closed,
            SessionEnd::Failed(http::Error::Connection(error)) => Self::Connection(error),
            SessionEnd::Failed(error) => Self::Http(error),
        }
    }
}

/// The error that has ended a session, if it has ended.
pub(crate) fn end_of(session: &http::Session) -> Option<Error> {
    session.end().map(Error::of_end)
}

/// The application's error that a code on the wire stands for.
pub(crate) fn application_error(code: u64) -> Option<u32> {
    Code(code).to_webtransport()
}

/// The code on the wire for an error of the application.
pub(crate) fn wire_code(error: u32) -> u64 {
    Code::of_webtransport(error).0
}
