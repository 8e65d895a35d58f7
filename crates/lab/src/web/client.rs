//! The client.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sutura_h3::{self as h3, BodyPiece, Event, Fields, Priority, ReceiveError, SendError};
use sutura_proto::StreamId;
use sutura_sim::{AppError, Pattern};

use super::news::News;
use super::{End, Http, Session, unexpected};
use crate::pages::{Load, Requests, Trigger};

/// How many bytes are read at a time.
const READ_SIZE: usize = 16 * 1024;

/// A request for a resource of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The header section.
    pub fields: Fields,
    /// The size of the response's body.
    pub bytes: u64,
    /// The priority and the protection that the client signals, if any.
    pub priority: Option<Priority>,
    /// When it is sent.
    pub trigger: Trigger,
}

impl Request {
    /// A request at the start, without a priority. Its path tells the server all that it needs to know;
    /// `number` is the index of the resource in the page.
    #[must_use]
    pub fn described(number: usize, bytes: u64) -> Self {
        Self {
            fields: Fields::request("GET", "https", "site.example", format!("/{number}/{bytes}")),
            bytes,
            priority: None,
            trigger: Trigger::Start(Duration::ZERO),
        }
    }
}

/// Bytes of a response that the client read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// The time since the start of the load.
    pub at: Duration,
    /// The index of the request in the page.
    pub request: usize,
    /// How many.
    pub bytes: u64,
}

/// Loads a page: sends each request when its trigger fires, and checks the responses. Times count
/// from the end of the handshake, when the client can send its first request.
pub struct Client {
    page: Vec<Request>,
    requests: Requests,
    /// Which request each stream carries.
    streams: BTreeMap<StreamId, usize>,
    /// A request that waits because the peer allows no further stream.
    waiting: Option<usize>,
    /// New priorities of requests, the earliest first.
    updates: VecDeque<(Duration, usize, Priority)>,
    started: Option<Instant>,
    arrivals: Vec<Arrival>,
    buffer: Vec<u8>,
    /// Whether bodies are read as they arrive, rather than in order.
    in_pieces: bool,
}

impl Client {
    /// A client that loads `page`.
    #[must_use]
    pub fn new(page: Vec<Request>) -> Self {
        Self {
            requests: Requests::new(page.iter().map(|request| (request.bytes, request.trigger))),
            page,
            streams: BTreeMap::new(),
            waiting: None,
            updates: VecDeque::new(),
            started: None,
            arrivals: Vec::new(),
            buffer: vec![0; READ_SIZE],
            in_pieces: false,
        }
    }

    /// Sends a PRIORITY_UPDATE (RFC 9218, section 7) for a request at time `at`, by which the request
    /// must have been sent. Calls must be in the order of time.
    #[must_use]
    pub fn update(mut self, at: Duration, request: usize, priority: Priority) -> Self {
        self.updates.push_back((at, request, priority));
        self
    }

    /// Reads bodies in the order of arrival.
    #[must_use]
    pub fn in_pieces(self) -> Self {
        Self { in_pieces: true, ..self }
    }

    /// The application.
    pub(super) fn app(self) -> Http<Self> {
        Http::new(h3::Connection::client(super::config()), self)
    }

    /// Whether the request with this index was sent, or waits for a stream.
    pub(super) fn has_asked_for(&self, request: usize) -> bool {
        self.requests.is_requested(request)
    }

    /// Whether an end has data to send: the handshake, or a response.
    pub(super) fn is_busy(&self) -> bool {
        self.started.is_none() || self.requests.are_under_way()
    }

    /// The times of the load, once it is complete.
    pub(super) fn load(&self) -> Option<Load> {
        self.updates.is_empty().then(|| self.requests.load()).flatten()
    }

    /// Which request each stream carries.
    pub(super) const fn streams(&self) -> &BTreeMap<StreamId, usize> {
        &self.streams
    }

    /// All arrivals of bytes so far, in order.
    pub(super) fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    fn time(&mut self, now: Instant) -> Duration {
        now.saturating_duration_since(*self.started.get_or_insert(now))
    }

    /// Sends the requests that are due.
    fn ask(&mut self, session: &mut Session<'_>, at: Duration) -> Result<(), AppError> {
        while let Some(index) = self.waiting.take().or_else(|| self.requests.next(at)) {
            let Request { fields, priority, .. } = &self.page[index];
            match session.http.send_request(&mut session.quic, fields, priority.as_ref(), true) {
                Ok(stream) => {
                    self.streams.insert(stream, index);
                }
                Err(SendError::StreamsBlocked) => {
                    self.waiting = Some(index);
                    return Ok(());
                }
                Err(error) => return Err(unexpected("request", error)),
            }
        }
        Ok(())
    }

    /// Sends the updates that are due.
    fn reprioritize(&mut self, session: &mut Session<'_>, at: Duration) -> Result<(), AppError> {
        while let Some((_, request, priority)) = self.updates.pop_front_if(|(due, ..)| *due <= at) {
            let stream = self.streams.iter().find(|(_, carried)| **carried == request);
            let (stream, _) = stream.ok_or_else(|| unexpected("update", "no request yet"))?;
            let sent = session.http.send_priority_update(&mut session.quic, *stream, &priority);
            sent.map_err(|error| unexpected("update", error))?;
        }
        Ok(())
    }

    /// Reads the available part of a response.
    fn read(&mut self, session: &mut Session<'_>, stream: StreamId) -> Result<(), AppError> {
        let at = self.time(session.quic.now);
        let request = self.request(stream)?;
        loop {
            let (quic, buffer) = (&mut session.quic, &mut self.buffer);
            let in_order = self.requests.arrived(request);
            let piece = if self.in_pieces {
                session.http.read_body_piece(quic, stream, buffer)
            } else {
                let read = session.http.read_body(quic, stream, buffer);
                read.map(|bytes| BodyPiece { offset: in_order, bytes })
            };
            let BodyPiece { offset, bytes } = match piece {
                // If the exchange is over, an event says how it ended.
                Ok(BodyPiece { bytes: 0, .. })
                | Err(ReceiveError::Blocked | ReceiveError::UnknownStream) => return Ok(()),
                Ok(piece) => piece,
                Err(error) => return Err(unexpected("response", error)),
            };
            let (read, pattern) = (&self.buffer[..bytes], Pattern::new(request as u64));
            if let Some(wrong) = pattern.mismatch(offset, read) {
                return Err(unexpected("response", format_args!("byte {wrong} is wrong")));
            }
            self.requests.arrive(request, bytes as u64, at);
            self.arrivals.push(Arrival { at, request, bytes: bytes as u64 });
        }
    }

    fn finish(&mut self, stream: StreamId, at: Duration) -> Result<(), AppError> {
        let request = self.request(stream)?;
        // Completes a response without a body, of which no bytes arrive.
        self.requests.arrive(request, 0, at);
        match (self.requests.arrived(request), self.page[request].bytes) {
            (arrived, bytes) if arrived == bytes => Ok(()),
            (arrived, bytes) => {
                Err(unexpected("response", format_args!("{arrived} bytes instead of {bytes}")))
            }
        }
    }

    fn request(&self, stream: StreamId) -> Result<usize, AppError> {
        let request = self.streams.get(&stream).copied();
        request.ok_or_else(|| unexpected("response", format_args!("on {stream:?}")))
    }
}

impl End for Client {
    fn on_event(&mut self, session: &mut Session<'_>, event: Event) -> Result<(), AppError> {
        match News::of(event, "response")? {
            News::Head { fields, .. } if fields.status() != Some(200) => {
                Err(unexpected("response", format_args!("{fields:?}")))
            }
            News::Body { stream } => self.read(session, stream),
            News::End { stream } => {
                let at = self.time(session.quic.now);
                self.finish(stream, at)
            }
            News::Head { .. } | News::Nothing => Ok(()),
        }
    }

    fn poll(&mut self, session: &mut Session<'_>) -> Result<Option<Instant>, AppError> {
        let at = self.time(session.quic.now);
        self.ask(session, at)?;
        self.reprioritize(session, at)?;
        let request = self.requests.next_due().filter(|_| self.waiting.is_none());
        let update = self.updates.front().map(|(at, ..)| *at);
        let due = request.into_iter().chain(update).min();
        Ok(due.and_then(|due| Some(self.started? + due)))
    }
}
