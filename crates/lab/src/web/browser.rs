//! The client.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sutura_h3::{self as h3, Event, Fields, Priority, ReceiveError};
use sutura_proto as quic;
use sutura_proto::StreamId;
use sutura_sim::{App, AppError, Quic};

use super::{Place, pass_on, unexpected};

/// Bytes that are read at a time.
const READ_SIZE: usize = 16 * 1024;

/// A resource to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its size.
    pub bytes: u64,
    /// The priority that is asked for, and the protection.
    pub priority: Priority,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The page that it belongs to, counted from 0.
    pub page: usize,
    /// The stream that carried it.
    pub stream: StreamId,
    /// When it was sent.
    pub asked: Instant,
    /// When the first of the response arrived, if it did.
    pub began: Option<Instant>,
    /// When the response was complete, if it is.
    pub complete: Option<Instant>,
}

/// Bytes of a response that could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// Of which request, counted from 0 over all pages.
    pub request: usize,
    /// How many.
    pub bytes: u64,
}

struct Active {
    index: usize,
    place: Place,
    received: u64,
}

/// Loads pages one after the other. All resources of a page are asked for at once, in order.
pub struct Browser {
    http: h3::Connection,
    pages: VecDeque<Vec<Request>>,
    gap: Duration,
    next_at: Option<Instant>,
    begun: usize,
    loaded: Vec<Loaded>,
    arrivals: Vec<Arrival>,
    active: Vec<Active>,
}

impl Browser {
    /// Loads `pages`, each `gap` after the one before is complete.
    #[must_use]
    pub fn new(pages: impl IntoIterator<Item = Vec<Request>>, gap: Duration) -> Self {
        Self {
            http: h3::Connection::client(h3::Config::default()),
            pages: pages.into_iter().collect(),
            gap,
            next_at: None,
            begun: 0,
            loaded: Vec::new(),
            arrivals: Vec::new(),
            active: Vec::new(),
        }
    }

    /// How many pages were asked for.
    #[must_use]
    pub const fn begun(&self) -> usize {
        self.begun
    }

    /// All requests so far, in order.
    #[must_use]
    pub fn loaded(&self) -> &[Loaded] {
        &self.loaded
    }

    /// Everything that was read so far, in order.
    #[must_use]
    pub fn arrivals(&self) -> &[Arrival] {
        &self.arrivals
    }

    /// Whether a page is being loaded.
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        !self.active.is_empty()
    }

    /// Whether all pages are complete.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.pages.is_empty() && self.active.is_empty()
    }

    /// Asks for the next page, if it is time.
    fn ask(&mut self, now: Instant, connection: &mut quic::Connection) -> Result<(), AppError> {
        if self.is_busy() || self.next_at.is_some_and(|at| at > now) {
            return Ok(());
        }
        let Some(page) = self.pages.pop_front() else { return Ok(()) };
        for request in page {
            let place = Place { number: self.loaded.len() as u64, bytes: request.bytes };
            let fields = Fields::request("GET", "https", "site.example", place.path());
            let transport = &mut h3::Quic { now, connection: &mut *connection };
            let sent = self.http.send_request(transport, &fields, Some(&request.priority), true);
            let stream = sent.map_err(|error| unexpected("request", error))?;
            self.active.push(Active { index: self.loaded.len(), place, received: 0 });
            let page = self.begun;
            self.loaded.push(Loaded { page, stream, asked: now, began: None, complete: None });
        }
        self.begun += 1;
        Ok(())
    }

    /// The head of a response arrived.
    fn begin(&mut self, now: Instant, stream: StreamId, head: &Fields) -> Result<(), AppError> {
        if head.status() != Some(200) {
            return Err(unexpected("response", format_args!("{head:?}")));
        }
        if let Some(loaded) = self.loaded.iter_mut().find(|loaded| loaded.stream == stream) {
            loaded.began = Some(now);
        }
        Ok(())
    }

    /// Reads what there is of a response.
    fn read(
        &mut self,
        now: Instant,
        connection: &mut quic::Connection,
        stream: StreamId,
    ) -> Result<(), AppError> {
        let mut buffer = [0; READ_SIZE];
        let loaded = &self.loaded;
        let active = self.active.iter_mut().find(|a| loaded[a.index].stream == stream);
        let Some(active) = active else { return Ok(()) };
        loop {
            let transport = &mut h3::Quic { now, connection: &mut *connection };
            let n = match self.http.read_body(transport, stream, &mut buffer) {
                Ok(0) | Err(ReceiveError::Blocked) => return Ok(()),
                Ok(n) => n,
                Err(error) => return Err(unexpected("response", error)),
            };
            if let Some(wrong) = active.place.pattern().mismatch(active.received, &buffer[..n]) {
                return Err(unexpected("response", format_args!("byte {wrong} is wrong")));
            }
            active.received += n as u64;
            self.arrivals.push(Arrival { at: now, request: active.index, bytes: n as u64 });
        }
    }

    /// A response is complete.
    fn finish(&mut self, now: Instant, stream: StreamId) -> Result<(), AppError> {
        let loaded = &mut self.loaded;
        let position = self.active.iter().position(|a| loaded[a.index].stream == stream);
        let Some(position) = position else { return Ok(()) };
        let Active { index, place, received } = self.active.remove(position);
        if received != place.bytes {
            let why = format_args!("{received} bytes instead of {}", place.bytes);
            return Err(unexpected("response", why));
        }
        loaded[index].complete = Some(now);
        if self.active.is_empty() {
            self.next_at = Some(now + self.gap);
        }
        Ok(())
    }
}

impl App<quic::Connection> for Browser {
    fn on_event(
        &mut self,
        _: Instant,
        _: &mut quic::Connection,
        event: quic::Event,
    ) -> Result<(), AppError> {
        pass_on(&mut self.http, &event);
        Ok(())
    }

    fn poll(
        &mut self,
        now: Instant,
        connection: &mut quic::Connection,
    ) -> Result<Option<Instant>, AppError> {
        if !connection.is_established() {
            return Ok(None);
        }
        let processed = self.http.process(&mut h3::Quic { now, connection: &mut *connection });
        processed.map_err(|error| unexpected("HTTP/3", error))?;
        while let Some(event) = self.http.poll_event() {
            match event {
                Event::Data { stream } => self.read(now, connection, stream)?,
                Event::Finished { stream } => self.finish(now, stream)?,
                Event::Headers { stream, fields } => self.begin(now, stream, &fields)?,
                Event::Reset { .. } | Event::Failed { .. } | Event::Stopped { .. } => {
                    return Err(unexpected("response", format_args!("{event:?}")));
                }
                _ => {}
            }
        }
        self.ask(now, connection)?;
        Ok(self.next_at.filter(|at| *at > now && !self.pages.is_empty()))
    }
}
