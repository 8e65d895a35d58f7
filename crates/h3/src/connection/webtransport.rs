//! WebTransport sessions (draft-ietf-webtrans-http3): the streams that belong to an exchange, and its end.
//!
//! A session begins with an extended CONNECT and has the identifier of its stream. Its streams begin with a header
//! that names it; once that has been read, they are the application's, and this module only knows that they are
//! there, to end them with the session.

use std::collections::VecDeque;

use bytes::Bytes;
use sutura_proto::{Dir, Side, StreamId, work};

use super::Connection;
use super::incoming::{Arrival, MAX_UNTYPED_STREAMS};
use super::receive::Order;
use crate::capsule::{Capsule, CapsuleReader};
use crate::error::{Code, Error, ReceiveError, SendError};
use crate::event::Event;
use crate::fields::Fields;
use crate::frame::{FrameType, HeaderReader};
use crate::transport::{Read, ReadError, Transport};
use crate::webtransport::{SessionClose, WebTransportDraft, is_webtransport, stream_header};

/// Most streams that wait for their session to begin (section 4.6). Further ones are rejected.
pub const MAX_BUFFERED_SESSION_STREAMS: usize = 64;

/// When a session has had this many streams, those that are over are removed. The next removal happens at twice the
/// number that this one has left, and no earlier than at this number.
const MIN_SWEPT: usize = 64;

/// Bytes of capsules read at a time.
const SCRATCH: usize = 1024;

/// A stream that was opened for a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedStream {
    /// The stream. Its first bytes are the header.
    pub id: StreamId,
    /// How many bytes of the header the transport did not take: almost always none. They are to be written
    /// before anything else.
    pub unsent: Bytes,
}

/// The sessions of a connection, and what belongs to none yet.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    /// The one session that may be open at a time.
    open: Option<Session>,
    /// Sessions that were closed, whose exchange the peer has not ended yet.
    closed: Vec<ClosedSession>,
    /// Streams that came before their session.
    waiting: Vec<Arrival>,
    /// Bidirectional streams from a server whose header has not arrived completely.
    headless: Vec<(StreamId, HeaderReader)>,
}

#[derive(Debug, Clone, Copy)]
struct ClosedSession {
    id: StreamId,
    /// Whether the peer has closed it, and so has nothing more to say.
    by_peer: bool,
}

#[derive(Debug)]
struct Session {
    id: StreamId,
    /// Whether the request was answered with success.
    established: bool,
    /// Streams from the peer that the application has not taken, by direction.
    arrived: [VecDeque<StreamId>; 2],
    /// All streams of the session that were not seen to be over.
    streams: Vec<StreamId>,
    /// How many streams there are when those that are over are looked for.
    sweep_at: usize,
    capsules: CapsuleReader,
    draining: bool,
}

impl Session {
    fn new(id: StreamId) -> Self {
        Self {
            id,
            established: false,
            arrived: Default::default(),
            streams: Vec::new(),
            sweep_at: MIN_SWEPT,
            capsules: CapsuleReader::new(&[Capsule::WT_CLOSE_SESSION, Capsule::WT_DRAIN_SESSION]),
            draining: false,
        }
    }

    /// Remembers a stream of the session.
    fn add<T: Transport>(&mut self, quic: &mut T, stream: StreamId) {
        if self.streams.len() >= self.sweep_at {
            work::steps(self.streams.len());
            self.streams.retain(|stream| quic.is_open(*stream));
            self.sweep_at = MIN_SWEPT.max(2 * self.streams.len());
        }
        self.streams.push(stream);
    }

    fn unaccepted(&self) -> usize {
        self.arrived.iter().map(VecDeque::len).sum()
    }

    /// Ends all its streams (section 6).
    fn end_streams<T: Transport>(&self, quic: &mut T) {
        let side = quic.side();
        for stream in &self.streams {
            end_stream(quic, side, self.id, *stream, Code::WT_SESSION_GONE);
        }
    }
}

/// Abandons a stream in all its directions. The header of one that this end has opened is delivered nevertheless, if
/// the peer can do that.
fn end_stream<T: Transport>(
    quic: &mut T,
    side: Side,
    session: StreamId,
    stream: StreamId,
    code: Code,
) {
    let is_own = stream.initiator() == side;
    if is_own {
        quic.reset_at(stream, code, stream_header(stream.dir(), session).1 as u64);
    } else if stream.dir() == Dir::Bi {
        quic.reset(stream, code);
    }
    if !is_own || stream.dir() == Dir::Bi {
        quic.stop(stream, code);
    }
}

impl Connection {
    /// The draft of WebTransport that both ends speak: the newest that both have announced. `None` as long as the
    /// peer's SETTINGS have not arrived, too.
    #[must_use]
    pub fn webtransport_draft(&self) -> Option<WebTransportDraft> {
        let ours = self.config.settings().webtransport;
        self.peer.and_then(|peer| peer.webtransport.newest_common(ours))
    }

    /// Whether a WebTransport session is open, or asked for.
    pub(super) fn has_session(&self) -> bool {
        self.sessions.as_ref().is_some_and(|sessions| sessions.open.is_some())
    }

    fn session(&mut self, id: StreamId) -> Option<&mut Session> {
        self.sessions.as_mut()?.open.as_mut().filter(|session| session.id == id)
    }

    /// Whether a request begins a session.
    pub(super) fn begins_session(&self, fields: &Fields) -> bool {
        self.config.enable_webtransport && fields.get(":protocol").is_some_and(is_webtransport)
    }

    /// Checks that a client may begin a session (sections 3.1 and 5.1).
    pub(super) fn check_session(&self, fields: &Fields) -> Result<(), SendError> {
        let draft = self.webtransport_draft().filter(|_| self.has_datagrams());
        let Some(draft) = draft else {
            return Err(SendError::InvalidState("the server has not announced WebTransport"));
        };
        if fields.get(":protocol") != Some(draft.protocol().as_bytes()) {
            return Err(SendError::InvalidState("the server speaks another draft of WebTransport"));
        }
        if self.has_session() {
            return Err(SendError::InvalidState("another session is open"));
        }
        Ok(())
    }

    /// Begins a session, which is not established yet. The streams that came before it belong to it.
    pub(super) fn begin_session(&mut self, id: StreamId) -> Vec<Arrival> {
        let sessions = self.sessions.get_or_insert_default();
        sessions.open = Some(Session::new(id));
        let (own, others) = sessions.waiting.iter().partition(|arrival| arrival.session == id.0);
        sessions.waiting = others;
        own
    }

    /// Handles the head of the peer's message. Returns false if the exchange was abandoned, so that the application
    /// is not to hear of it.
    pub(super) fn on_head<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        fields: &Fields,
    ) -> bool {
        if self.side.is_client() {
            self.on_answer(quic, id, fields.status().unwrap_or(0));
            return true;
        }
        if !self.begins_session(fields) {
            self.reject_waiting(quic, id);
            return true;
        }
        if self.has_session() {
            // Section 5.1, as this end has no flow control of sessions.
            self.reject_waiting(quic, id);
            self.abandon(quic, id, Code::REQUEST_REJECTED);
            return false;
        }
        let early = self.begin_session(id);
        for Arrival { stream, .. } in early {
            self.add_arrival(quic, id, stream);
        }
        true
    }

    /// Rejects the streams that wait for a session which will not be.
    fn reject_waiting<T: Transport>(&mut self, quic: &mut T, id: StreamId) {
        let Some(sessions) = &mut self.sessions else { return };
        let side = self.side;
        sessions.waiting.retain(|arrival| {
            let stays = arrival.session != id.0;
            if !stays {
                let code = Code::WT_BUFFERED_STREAM_REJECTED;
                end_stream(quic, side, id, arrival.stream, code);
            }
            stays
        });
    }

    /// Handles a final answer to the request of a session.
    pub(super) fn on_answer<T: Transport>(&mut self, quic: &mut T, id: StreamId, status: u16) {
        let Some(session) = self.session(id) else { return };
        if (200..300).contains(&status) {
            session.established = true;
        } else {
            self.end_session(quic, None);
        }
    }

    /// Ends the session that is open, and its streams.
    fn end_session<T: Transport>(&mut self, quic: &mut T, close: Option<SessionClose>) {
        let open = self.sessions.as_mut().and_then(|sessions| sessions.open.take());
        if let Some(session) = open {
            session.end_streams(quic);
            self.events.push_back(Event::SessionClosed { session: session.id, close });
        }
    }

    /// Takes streams whose header has been read.
    pub(super) fn on_arrivals<T: Transport>(
        &mut self,
        quic: &mut T,
        arrivals: &[Arrival],
    ) -> Result<(), Error> {
        for arrival in arrivals {
            self.on_arrival(quic, *arrival)?;
        }
        Ok(())
    }

    fn on_arrival<T: Transport>(&mut self, quic: &mut T, arrival: Arrival) -> Result<(), Error> {
        work::steps(1);
        let id = StreamId(arrival.session);
        let is_request = (id.initiator(), id.dir()) == (Side::Client, Dir::Bi);
        if !is_request || (self.side.is_server() && id.index() >= quic.stream_limit(Dir::Bi)) {
            return Err(Error::new(Code::ID_ERROR, "stream of a session that cannot be"));
        }
        let is_awaited = self.side.is_server()
            && match self.exchanges.get(id) {
                Some(exchange) => !exchange.has_head(),
                None => id.index() >= self.next_request,
            };
        let is_known = self.exchanges.get(id).is_some();
        let sessions = self.sessions.get_or_insert_default();
        let pending = sessions.open.as_ref().filter(|session| !session.established);
        let buffered = sessions.waiting.len() + pending.map_or(0, Session::unaccepted);
        let has_room = buffered < MAX_BUFFERED_SESSION_STREAMS;
        let code = match &sessions.open {
            Some(open) if open.id == id && (open.established || has_room) => {
                self.add_arrival(quic, id, arrival.stream);
                return Ok(());
            }
            Some(open) if open.id == id => Code::WT_BUFFERED_STREAM_REJECTED,
            _ if is_awaited && has_room => {
                sessions.waiting.push(arrival);
                return Ok(());
            }
            _ if sessions.closed.iter().any(|closed| closed.id == id) => Code::WT_SESSION_GONE,
            _ if is_awaited || is_known => Code::WT_BUFFERED_STREAM_REJECTED,
            _ => Code::WT_SESSION_GONE,
        };
        end_stream(quic, self.side, id, arrival.stream, code);
        Ok(())
    }

    /// Adds a stream from the peer to its session, which is open.
    fn add_arrival<T: Transport>(&mut self, quic: &mut T, id: StreamId, stream: StreamId) {
        let Some(session) = self.session(id) else { return };
        session.add(quic, stream);
        let queue = &mut session.arrived[stream.dir().index()];
        queue.push_back(stream);
        if queue.len() == 1 {
            let dir = stream.dir();
            self.events.push_back(Event::SessionStream { session: id, dir });
        }
    }

    /// Takes the bidirectional streams of a server, all of which belong to sessions (section 4.3).
    pub(super) fn accept_from_server<T: Transport>(&mut self, quic: &mut T) -> Result<(), Error> {
        loop {
            let headless = self.sessions.as_ref().map_or(0, |sessions| sessions.headless.len());
            if headless > 0 {
                self.read_headers(quic)?;
            }
            if headless >= MAX_UNTYPED_STREAMS {
                return Ok(());
            }
            let Some(id) = quic.accept(Dir::Bi) else { return Ok(()) };
            let sessions = self.sessions.get_or_insert_default();
            sessions.headless.push((id, HeaderReader::default()));
            self.read_headers(quic)?;
        }
    }

    /// Reads on in the headers of bidirectional streams from a server.
    fn read_headers<T: Transport>(&mut self, quic: &mut T) -> Result<(), Error> {
        let Some(sessions) = &mut self.sessions else { return Ok(()) };
        let (mut arrivals, mut fault) = (Vec::new(), None);
        sessions.headless.retain_mut(|(id, reader)| match read_header(quic, *id, reader) {
            HeaderRead::Blocked => true,
            HeaderRead::Gone => {
                quic.reset(*id, Code::REQUEST_CANCELLED);
                false
            }
            HeaderRead::Session(session) => {
                arrivals.push(Arrival { stream: *id, session });
                false
            }
            HeaderRead::Other => {
                let reason = "bidirectional stream of a server without a session";
                fault = Some(Error::new(Code::STREAM_CREATION_ERROR, reason));
                true
            }
        });
        self.on_arrivals(quic, &arrivals)?;
        fault.map_or(Ok(()), Err)
    }

    /// Reads capsules, and notices that sessions are over.
    pub(super) fn tend_sessions<T: Transport>(&mut self, quic: &mut T) -> Result<(), Error> {
        let Some(sessions) = &mut self.sessions else { return Ok(()) };
        let closed = std::mem::take(&mut sessions.closed);
        let open = sessions.open.as_ref().map(|session| (session.id, session.established));
        let mut still = Vec::new();
        for session in closed {
            if self.discard_capsules(quic, session)? {
                still.push(session);
            }
        }
        if let Some(sessions) = &mut self.sessions {
            sessions.closed = still;
        }
        if let Some((id, established)) = open {
            if established {
                self.read_capsules(quic, id)?;
            }
            let is_over = match self.exchanges.get(id) {
                Some(exchange) => exchange.send.is_ended(),
                None => true,
            };
            if is_over && self.session(id).is_some() {
                self.end_session(quic, None);
            }
        }
        Ok(())
    }

    /// Reads on in the body of an exchange; `None` at its end.
    fn read_some<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, ReceiveError> {
        let read = self.read_on(quic, id, buffer, Order::Stream)?;
        Ok((read.bytes > 0).then_some(read.bytes))
    }

    /// Reads what the peer still says in a session that was closed. Returns whether more may come.
    fn discard_capsules<T: Transport>(
        &mut self,
        quic: &mut T,
        session: ClosedSession,
    ) -> Result<bool, Error> {
        let mut scratch = [0; SCRATCH];
        loop {
            match self.read_some(quic, session.id, &mut scratch) {
                Ok(Some(_)) if session.by_peer => {
                    self.abandon(quic, session.id, Code::MESSAGE_ERROR);
                    return Ok(false);
                }
                Ok(Some(_)) => {}
                Ok(None) | Err(ReceiveError::UnknownStream) => return Ok(false),
                Err(ReceiveError::Connection(error)) => return Err(error),
                Err(ReceiveError::Blocked | ReceiveError::OutOfOrder) => return Ok(true),
            }
        }
    }

    /// Reads the capsules of a session that is established.
    fn read_capsules<T: Transport>(&mut self, quic: &mut T, id: StreamId) -> Result<(), Error> {
        let mut scratch = [0; SCRATCH];
        loop {
            match self.read_some(quic, id, &mut scratch) {
                Ok(Some(bytes)) => {
                    let Some(session) = self.session(id) else { return Ok(()) };
                    session.capsules.push(&scratch[..bytes]);
                    self.on_capsules(quic, id);
                }
                Ok(None) => {
                    // Section 6: a clean end is a close without an error.
                    let Some(session) = self.session(id) else { return Ok(()) };
                    let is_whole = session.capsules.finish().is_ok();
                    return self.on_close(quic, id, is_whole.then(SessionClose::default));
                }
                Err(ReceiveError::Connection(error)) => return Err(error),
                Err(ReceiveError::Blocked) => return Ok(()),
                Err(ReceiveError::UnknownStream | ReceiveError::OutOfOrder) => {
                    self.end_session(quic, None);
                    return Ok(());
                }
            }
            if self.session(id).is_none() {
                return Ok(());
            }
        }
    }

    fn on_capsules<T: Transport>(&mut self, quic: &mut T, id: StreamId) {
        while let Some(session) = self.session(id) {
            match session.capsules.read() {
                Ok(None) => return,
                Ok(Some(Capsule { kind: Capsule::WT_DRAIN_SESSION, .. })) => {
                    if !std::mem::replace(&mut session.draining, true) {
                        self.events.push_back(Event::SessionDraining { session: id });
                    }
                }
                Ok(Some(Capsule { value, .. })) => {
                    // Section 6: nothing may follow, and the text is short and UTF-8.
                    let close = SessionClose::of_capsule(&value)
                        .filter(|_| session.capsules.finish().is_ok());
                    // The end of the connection is reported by its next `process`.
                    let _ = self.on_close(quic, id, close);
                    return;
                }
                Err(_) => {
                    self.end_session(quic, None);
                    self.abandon(quic, id, Code::DATAGRAM_ERROR);
                    return;
                }
            }
        }
    }

    /// The peer has closed the session; without a `close`, in a way that is malformed.
    fn on_close<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        close: Option<SessionClose>,
    ) -> Result<(), Error> {
        let is_malformed = close.is_none();
        self.end_session(quic, close);
        if is_malformed {
            self.abandon(quic, id, Code::MESSAGE_ERROR);
            return Ok(());
        }
        // This end's message may be over already.
        if let Err(SendError::Connection(error)) = self.finish(quic, id) {
            return Err(error);
        }
        if let Some(sessions) = &mut self.sessions
            && self.exchanges.get(id).is_some()
        {
            sessions.closed.push(ClosedSession { id, by_peer: true });
        }
        Ok(())
    }

    /// Closes a session, and ends all its streams (section 6).
    ///
    /// # Errors
    /// `UnknownStream` if there is no such session, or if it is over; `Blocked` if earlier bytes of the exchange
    /// are still to be sent, and nothing has changed.
    pub fn close_session<T: Transport>(
        &mut self,
        quic: &mut T,
        session: StreamId,
        close: &SessionClose,
    ) -> Result<(), SendError> {
        self.check()?;
        let is_established = self.session(session).ok_or(SendError::UnknownStream)?.established;
        if !is_established {
            let code = if self.side.is_client() {
                Code::REQUEST_CANCELLED
            } else {
                Code::REQUEST_REJECTED
            };
            self.drop_session(quic);
            self.abandon(quic, session, code);
            return Ok(());
        }
        if *close != SessionClose::default() {
            // On other errors, the peer is past listening.
            let capsule = close.to_capsule().encode();
            if let Err(SendError::Blocked) = self.send_body_chunk(quic, session, capsule) {
                return Err(SendError::Blocked);
            }
        }
        let _ = self.finish(quic, session);
        self.drop_session(quic);
        if let Some(sessions) = &mut self.sessions
            && self.exchanges.get(session).is_some()
        {
            sessions.closed.push(ClosedSession { id: session, by_peer: false });
        }
        Ok(())
    }

    /// Ends the session that is open without an event.
    fn drop_session<T: Transport>(&mut self, quic: &mut T) {
        if let Some(open) = self.sessions.as_mut().and_then(|sessions| sessions.open.take()) {
            open.end_streams(quic);
        }
    }

    /// Asks the peer to end a session soon; both ends may go on using it (section 4.7).
    ///
    /// # Errors
    /// `UnknownStream` if there is no such session; else as for [`Self::send_body_chunk`].
    pub fn drain_session<T: Transport>(
        &mut self,
        quic: &mut T,
        session: StreamId,
    ) -> Result<(), SendError> {
        self.check()?;
        self.session(session).ok_or(SendError::UnknownStream)?;
        let capsule = Capsule { kind: Capsule::WT_DRAIN_SESSION, value: Bytes::new() };
        self.send_body_chunk(quic, session, capsule.encode())
    }

    /// Opens a stream of a session and writes its header. A server can do so as soon as it has the request, a
    /// client when it has sent it.
    ///
    /// # Errors
    /// `UnknownStream` if there is no such session, or if it is over; `StreamsBlocked`.
    pub fn open_session_stream<T: Transport>(
        &mut self,
        quic: &mut T,
        session: StreamId,
        dir: Dir,
    ) -> Result<OpenedStream, SendError> {
        self.check()?;
        let open = self.session(session).ok_or(SendError::UnknownStream)?;
        let id = quic.open(dir).ok_or(SendError::StreamsBlocked)?;
        open.add(quic, id);
        let (header, length) = stream_header(dir, session);
        let header = &header[..length];
        // A new stream takes so few bytes, unless the whole connection has no room.
        let written = quic.write(id, header).unwrap_or(0);
        Ok(OpenedStream { id, unsent: Bytes::copy_from_slice(&header[written..]) })
    }

    /// How many bytes the header of a session's streams takes. To be given to [`Transport::reset_at`], so that the
    /// peer learns of the session even if the stream is reset at once (section 4.4).
    #[must_use]
    pub fn session_header_size(session: StreamId, dir: Dir) -> usize {
        stream_header(dir, session).1
    }

    /// Takes the next stream that the peer has opened for a session. Its header has been read.
    pub fn accept_session_stream(&mut self, session: StreamId, dir: Dir) -> Option<StreamId> {
        self.session(session)?.arrived[dir.index()].pop_front()
    }
}

/// What has been read of the header of a bidirectional stream.
enum HeaderRead {
    Blocked,
    /// The stream ended or was reset before its header was complete.
    Gone,
    Session(u64),
    /// The stream belongs to no session.
    Other,
}

fn read_header<T: Transport>(quic: &mut T, id: StreamId, reader: &mut HeaderReader) -> HeaderRead {
    loop {
        work::steps(1);
        match quic.read(id, reader.spare()) {
            Ok(Read { bytes, finished }) => match reader.advance(bytes) {
                Some(header) if header.kind == FrameType::WT_STREAM => {
                    return HeaderRead::Session(header.len);
                }
                Some(_) => return HeaderRead::Other,
                None if finished => return HeaderRead::Gone,
                None if bytes == 0 => return HeaderRead::Blocked,
                None => {}
            },
            Err(ReadError::Blocked | ReadError::Closed) => return HeaderRead::Blocked,
            Err(ReadError::Reset(_)) => return HeaderRead::Gone,
        }
    }
}
