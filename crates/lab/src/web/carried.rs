//! Applications that use plain streams, over HTTP/3: each stream becomes an exchange, whose request asks for
//! the priority and the protection of the response.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use bytes::Bytes;
use sutura_h3::{self as h3, Event, Fields, Priority, ReceiveError, SendError};
use sutura_proto::{Protection, StreamId};
use sutura_sim::{App, AppError, Piece, Quic, Received};

use super::news::News;
use super::{End, Http, Session, unexpected};

/// An application whose streams are exchanges.
pub struct Carried<A> {
    app: A,
    state: ExchangeState,
}

/// The state of the exchanges.
#[derive(Debug)]
struct ExchangeState {
    /// The priority that requests ask for.
    priority: Priority,
    /// Requests that were not accepted yet.
    requests: VecDeque<StreamId>,
    /// Messages that were read completely.
    ended: BTreeSet<StreamId>,
}

/// The connection as the application sees it.
pub struct Exchanges<'a> {
    session: Session<'a>,
    state: &'a mut ExchangeState,
}

impl<A: for<'a> App<Exchanges<'a>>> Carried<A> {
    /// A client whose requests all ask for `priority`.
    #[must_use]
    pub fn client(app: A, priority: Priority) -> Http<Self> {
        Http::new(h3::Connection::client(super::config()), Self::new(app, priority))
    }

    /// A server that sends its responses as the requests ask for.
    #[must_use]
    pub fn server(app: A) -> Http<Self> {
        Http::new(h3::Connection::server(super::config()), Self::new(app, Priority::default()))
    }

    fn new(app: A, priority: Priority) -> Self {
        Self {
            app,
            state: ExchangeState { priority, requests: VecDeque::new(), ended: BTreeSet::new() },
        }
    }

    fn take(&mut self, event: Event) -> Result<(), AppError> {
        match News::of(event, "exchange")? {
            News::Head { stream, fields } if fields.get(":method").is_some() => {
                self.state.requests.push_back(stream);
            }
            News::Head { fields, .. } if fields.status() != Some(200) => {
                return Err(unexpected("exchange", format_args!("{fields:?}")));
            }
            News::End { stream } => {
                self.state.ended.insert(stream);
            }
            News::Head { .. } | News::Body { .. } | News::Nothing => {}
        }
        Ok(())
    }
}

impl<A> Http<Carried<A>> {
    /// The application that is carried.
    pub const fn carried(&self) -> &A {
        &self.end.app
    }
}

impl<A: for<'a> App<Exchanges<'a>>> End for Carried<A> {
    fn on_event(&mut self, _: &mut Session<'_>, event: Event) -> Result<(), AppError> {
        self.take(event)
    }

    fn poll(&mut self, session: &mut Session<'_>) -> Result<Option<Instant>, AppError> {
        loop {
            let now = session.quic.now;
            let quic = h3::Quic { now, connection: &mut *session.quic.connection };
            let inner = Session { http: &mut *session.http, quic };
            let mut exchanges = Exchanges { session: inner, state: &mut self.state };
            let at = self.app.poll(now, &mut exchanges)?;
            // Reading finds the ends of messages, which the application is to see at once.
            let mut news = false;
            while let Some(event) = session.http.poll_event() {
                self.take(event)?;
                news = true;
            }
            if !news {
                return Ok(at);
            }
        }
    }
}

impl Quic for Exchanges<'_> {
    type Event = Event;

    fn is_established(&self) -> bool {
        self.session.quic.connection.is_established()
    }

    fn open(&mut self) -> Option<u64> {
        let Session { http, quic } = &mut self.session;
        let request = Fields::request("POST", "https", "site.example", "/");
        let sent = http.send_request(quic, &request, Some(&self.state.priority), false);
        sent.ok().map(|stream| stream.0)
    }

    fn accept(&mut self) -> Option<u64> {
        let stream = self.state.requests.pop_front()?;
        let Session { http, quic } = &mut self.session;
        // If this fails, writing the body fails as well.
        let _ = http.send_response(quic, stream, &Fields::response(200), false);
        Some(stream.0)
    }

    fn write(&mut self, stream: u64, data: &[u8]) -> Result<usize, AppError> {
        let Session { http, quic } = &mut self.session;
        match http.send_body(quic, StreamId(stream), data) {
            Ok(size) => Ok(size),
            Err(SendError::Blocked) => Ok(0),
            Err(error) => Err(unexpected("body", error)),
        }
    }

    fn finish(&mut self, stream: u64) -> Result<(), AppError> {
        let Session { http, quic } = &mut self.session;
        http.finish(quic, StreamId(stream)).map_err(|error| unexpected("end", error))
    }

    fn read(&mut self, stream: u64, out: &mut [u8]) -> Result<Received, AppError> {
        let Session { http, quic } = &mut self.session;
        let stream = StreamId(stream);
        match http.read_body(quic, stream, out) {
            Ok(size) if size > 0 => Ok(Received::Data(size)),
            Ok(_) | Err(ReceiveError::Blocked | ReceiveError::UnknownStream) => {
                let ended = self.state.ended.remove(&stream);
                Ok(if ended { Received::End } else { Received::Nothing })
            }
            Err(error) => Err(unexpected("body", error)),
        }
    }

    fn read_piece(&mut self, _: u64) -> Result<Piece, AppError> {
        Err(AppError("bodies are read in order".to_owned()))
    }

    /// Does nothing: the request's priority says how the response is protected, and requests are not
    /// protected.
    fn protect(&mut self, _: u64, _: Option<Protection>) -> Result<(), AppError> {
        Ok(())
    }

    fn send_datagram(&mut self, _: Bytes) -> Result<(), AppError> {
        Err(AppError("there are no datagrams".to_owned()))
    }

    fn recv_datagram(&mut self) -> Option<Bytes> {
        None
    }
}
