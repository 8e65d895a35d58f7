//! What happened, for the application.

use sutura_proto::StreamId;

use crate::error::Code;
use crate::fields::Fields;
use crate::priority::Priority;
use crate::settings::Settings;

/// What [`Connection::poll_event`](crate::Connection::poll_event) tells.
///
/// An exchange ends with `Finished` (the peer's message is whole), `Reset` or `Failed`; after the
/// latter two its stream is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The peer's SETTINGS arrived. Once a connection.
    Settings(Settings),
    /// A request (server) or a final response (client).
    Headers {
        /// The exchange.
        stream: StreamId,
        /// Its well-formed header section.
        fields: Fields,
    },
    /// An interim response, status 1xx (client).
    Interim {
        /// The exchange.
        stream: StreamId,
        /// Its well-formed header section.
        fields: Fields,
    },
    /// There may be body to read, up to `Blocked`.
    Data {
        /// The exchange.
        stream: StreamId,
    },
    /// The trailer section after the body.
    Trailers {
        /// The exchange.
        stream: StreamId,
        /// Its well-formed trailer section.
        fields: Fields,
    },
    /// The peer's message is whole and all of it was read.
    Finished {
        /// The exchange.
        stream: StreamId,
    },
    /// Pending bytes were sent; sending is possible again.
    Writable {
        /// The exchange.
        stream: StreamId,
    },
    /// The peer abandoned its message before it was whole, and so is ours if not yet sent.
    Reset {
        /// The exchange.
        stream: StreamId,
        /// The peer's code.
        code: Code,
    },
    /// The peer asked us to stop sending our message. Its own message may still come.
    Stopped {
        /// The exchange.
        stream: StreamId,
        /// The peer's code; [`Code::NO_ERROR`] if its response needs no more of the request.
        code: Code,
    },
    /// This end abandoned the exchange: the peer's message is malformed or beyond a limit, or the
    /// server goes away without having processed the request ([`Code::REQUEST_REJECTED`]).
    Failed {
        /// The exchange.
        stream: StreamId,
        /// The code of the stream error (RFC 9114 section 8).
        code: Code,
        /// What was wrong, as text.
        reason: &'static str,
    },
    /// A client changed the priority of a request whose header section has arrived (server).
    PriorityUpdate {
        /// The exchange.
        stream: StreamId,
        /// The client's priority now.
        priority: Priority,
    },
    /// The peer goes away (RFC 9114 section 5.2). Told again when the identifier shrinks.
    GoAway {
        /// From a server: requests from this stream identifier on were not and will not be
        /// processed. From a client: a push identifier.
        id: u64,
    },
}
