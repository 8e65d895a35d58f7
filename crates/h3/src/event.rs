//! Events for the application.

use sutura_proto::{Dir, StreamId};

use crate::error::Code;
use crate::fields::Fields;
use crate::priority::Priority;
use crate::settings::Settings;
use crate::webtransport::SessionClose;

/// An event from [`Connection::poll_event`](crate::Connection::poll_event).
///
/// An exchange ends with `Finished` (the peer's message is complete), `Reset`, `Failed` or
/// `Refused`. After `Reset`, `Failed` and `Refused`, its stream is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The peer's SETTINGS arrived. Once per connection.
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
    /// Body may be available: read until `Blocked`.
    Data {
        /// The exchange.
        stream: StreamId,
    },
    /// A datagram came for an exchange: take all datagrams from
    /// [`Connection::recv_datagram`](crate::Connection::recv_datagram). Datagrams may also have come before
    /// the head of a request.
    Datagram {
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
    /// The peer's message is complete and has been read to its end.
    Finished {
        /// The exchange.
        stream: StreamId,
    },
    /// Pending bytes were sent; sending is possible again.
    Writable {
        /// The exchange.
        stream: StreamId,
    },
    /// The peer abandoned its message before it was complete. Unsent parts of our message are
    /// abandoned too.
    Reset {
        /// The exchange.
        stream: StreamId,
        /// The peer's code.
        code: Code,
    },
    /// The peer asked us to stop sending our message. The peer's message may still come.
    Stopped {
        /// The exchange.
        stream: StreamId,
        /// The peer's code; [`Code::NO_ERROR`] if its response does not need the rest of the
        /// request.
        code: Code,
    },
    /// This end abandoned the exchange: the peer's message is malformed or exceeds a limit, or the
    /// server is going away without having processed the request ([`Code::REQUEST_REJECTED`]).
    Failed {
        /// The exchange.
        stream: StreamId,
        /// The code of the stream error (RFC 9114 section 8).
        code: Code,
        /// The fault in the peer's message, as text.
        reason: &'static str,
    },
    /// This end answered a request by itself, because its header section or the body that it announces
    /// exceeds the limits (server). The application never sees the request.
    Refused {
        /// The exchange.
        stream: StreamId,
        /// The status of the response.
        status: u16,
        /// The fault in the request, as text.
        reason: &'static str,
    },
    /// A client changed the priority of a request whose header section has arrived (server).
    PriorityUpdate {
        /// The exchange.
        stream: StreamId,
        /// The new priority that the client asks for.
        priority: Priority,
    },
    /// The peer is going away (RFC 9114 section 5.2). Repeated when the identifier shrinks.
    GoAway {
        /// From a server: requests from this stream identifier on were not and will not be
        /// processed. From a client: a push identifier.
        id: u64,
    },
    /// The peer has opened a stream of a WebTransport session: take all streams of this direction from
    /// [`Connection::accept_session_stream`](crate::Connection::accept_session_stream). The connection reads the body
    /// of the session's exchange itself.
    SessionStream {
        /// The exchange that began the session.
        session: StreamId,
        /// The direction of the stream.
        dir: Dir,
    },
    /// The peer wants a WebTransport session to end soon. Once for each session.
    SessionDraining {
        /// The exchange that began the session.
        session: StreamId,
    },
    /// A WebTransport session is over, and all its streams with it. Not for a session that
    /// [`Connection::close_session`](crate::Connection::close_session) has closed.
    SessionClosed {
        /// The exchange that began the session.
        session: StreamId,
        /// How the peer has closed it; `None` if the exchange was abandoned by either end or the request
        /// refused.
        close: Option<SessionClose>,
    },
}
