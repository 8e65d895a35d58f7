//! The HTTP/3 side of a connection: the protocol state and the tasks that wait for it.

use super::Error;
use super::refused::{Listener, Refused, RefusedAnswer};
use crate::connection::enlist;
use std::collections::{HashMap, VecDeque};
use std::task::{Context, Waker};
use std::time::Instant;
use sutura_h3 as h3;
use sutura_h3::{Code, Config, Event, Fields, Quic};
use sutura_proto::{Connection, StreamEvent, StreamId};

/// Bytes that an open request takes until it is accepted: what HTTP/3 knows of it, and its head.
const EXCHANGE_COST: usize = 2048;
/// Bytes that the task of a request takes that was accepted.
const TASK_COST: usize = 8192;

/// HTTP/3 on one connection.
#[derive(Debug)]
pub(crate) struct HttpState {
    pub(crate) h3: h3::Connection,
    exchanges: HashMap<StreamId, Exchange>,
    /// Requests that the application has not accepted yet.
    incoming: VecDeque<(StreamId, Fields)>,
    /// Tasks that wait for a request (server), for a stream to send one on (client), or for what the
    /// peer says about the connection.
    accepting: Vec<Waker>,
    pub(crate) error: Option<h3::Error>,
    pub(super) refused: Listener,
    /// Whether the peer accepts (server) or sends (client) no more requests.
    pub(crate) going_away: bool,
    over: bool,
    /// How to start over.
    config: Config,
}

/// One request and its response.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    pub(crate) head: Option<Fields>,
    /// Interim responses that the application has not read; HTTP/3 limits their number.
    pub(crate) interim: VecDeque<Fields>,
    pub(crate) trailers: Option<Fields>,
    /// Whether the peer's message is complete.
    pub(crate) finished: bool,
    /// Why the rest of the peer's message will not come.
    pub(crate) failed: Option<Error>,
    /// The code with which the peer stopped this end's message.
    pub(crate) stopped: Option<Code>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Exchange {
    fn wake(&mut self) {
        for waker in [self.reader.take(), self.writer.take()].into_iter().flatten() {
            waker.wake();
        }
    }

    pub(crate) fn wait_readable(&mut self, cx: &Context<'_>) {
        self.reader = Some(cx.waker().clone());
    }

    pub(crate) fn wait_writable(&mut self, cx: &Context<'_>) {
        self.writer = Some(cx.waker().clone());
    }
}

impl HttpState {
    pub(crate) fn client(config: Config) -> Self {
        Self::new(h3::Connection::client(config.clone()), config)
    }

    pub(crate) fn server(config: Config) -> Self {
        Self::new(h3::Connection::server(config.clone()), config)
    }

    fn new(h3: h3::Connection, config: Config) -> Self {
        Self {
            h3,
            config,
            exchanges: HashMap::new(),
            incoming: VecDeque::new(),
            accepting: Vec::new(),
            error: None,
            refused: Listener::default(),
            going_away: false,
            over: false,
        }
    }

    /// Starts over, on a client whose 0-RTT was rejected: nothing was sent yet.
    pub(crate) fn start_over(&mut self) {
        self.wake_all();
        self.exchanges.clear();
        self.h3 = h3::Connection::client(self.config.clone());
    }

    /// Passes an event of a stream to HTTP/3.
    pub(crate) fn on_stream_event(&mut self, event: &StreamEvent) {
        match *event {
            StreamEvent::Readable { id } => self.h3.readable(id),
            StreamEvent::Writable { id } => self.h3.writable(id),
            StreamEvent::Stopped { id, code } => self.h3.stopped(id, Code(code)),
            _ => {}
        }
    }

    /// Lets HTTP/3 process what arrived.
    pub(crate) fn process(&mut self, now: Instant, connection: &mut Connection, over: bool) {
        self.over = over;
        if let Err(error) = self.h3.process(&mut Quic { now, connection }) {
            self.error = Some(error);
        }
        self.pump();
        if over || self.error.is_some() {
            self.wake_all();
        }
    }

    /// Dispatches the events of HTTP/3.
    pub(crate) fn pump(&mut self) {
        while let Some(event) = self.h3.poll_event() {
            self.on_event(event);
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::Headers { stream, fields } if self.h3.side().is_server() => {
                self.exchanges.entry(stream).or_default();
                self.incoming.push_back((stream, fields));
                self.accepting.drain(..).for_each(Waker::wake);
            }
            Event::Headers { stream, fields } => self.change(stream, |x| x.head = Some(fields)),
            Event::Trailers { stream, fields } => {
                self.change(stream, |x| x.trailers = Some(fields));
            }
            Event::Finished { stream } => self.change(stream, |x| x.finished = true),
            Event::Interim { stream, fields } => {
                self.change(stream, |x| x.interim.push_back(fields));
            }
            Event::Refused { stream, status, reason } => {
                let answer = RefusedAnswer::Status(status);
                self.refused.tell(Refused { stream, answer, reason });
            }
            Event::Failed { stream, code, reason }
                if self.withdraw(stream) || !self.exchanges.contains_key(&stream) =>
            {
                let answer = RefusedAnswer::Reset(code);
                self.refused.tell(Refused { stream, answer, reason });
            }
            Event::Reset { stream, .. } if self.withdraw(stream) => {}
            Event::Reset { stream, code } => {
                self.change(stream, |x| x.failed = Some(Error::Reset(code)));
            }
            Event::Failed { stream, code: Code::REQUEST_REJECTED, .. } => {
                self.change(stream, |x| x.failed = Some(Error::GoingAway));
            }
            Event::Failed { stream, code, reason } => {
                self.change(stream, |x| x.failed = Some(Error::Message { code, reason }));
            }
            Event::Stopped { stream, code } => self.change(stream, |x| x.stopped = Some(code)),
            Event::Data { stream } | Event::Writable { stream } | Event::Datagram { stream } => {
                self.change(stream, |_| {});
            }
            // Whoever waits for a stream need not wait any more.
            Event::GoAway { .. } => {
                self.going_away = true;
                self.accepting.drain(..).for_each(Waker::wake);
            }
            Event::Settings(_) => self.accepting.drain(..).for_each(Waker::wake),
            Event::PriorityUpdate { .. } => {}
        }
    }

    /// Forgets a request that is over before the application has accepted it, so that requests which
    /// are reset at once do not pile up. Returns whether there was such a request.
    fn withdraw(&mut self, stream: StreamId) -> bool {
        let Some(at) = self.incoming.iter().position(|(id, _)| *id == stream) else {
            return false;
        };
        self.incoming.remove(at);
        self.exchanges.remove(&stream);
        true
    }

    /// Changes an exchange, if the application still holds it, and wakes the tasks that wait for
    /// it.
    fn change(&mut self, stream: StreamId, change: impl FnOnce(&mut Exchange)) {
        if let Some(exchange) = self.exchanges.get_mut(&stream) {
            change(exchange);
            exchange.wake();
        }
    }

    pub(crate) fn wake_all(&mut self) {
        self.accepting.drain(..).for_each(Waker::wake);
        self.exchanges.values_mut().for_each(Exchange::wake);
    }

    pub(crate) fn open(&mut self, stream: StreamId) {
        self.exchanges.insert(stream, Exchange::default());
    }

    pub(crate) fn exchange(&mut self, stream: StreamId) -> &mut Exchange {
        self.exchanges.entry(stream).or_default()
    }

    pub(crate) fn forget(&mut self, stream: StreamId) {
        self.exchanges.remove(&stream);
        self.wake_for_requests();
    }

    /// Requests that the application has accepted and not finished.
    fn accepted(&self) -> usize {
        self.exchanges.len().saturating_sub(self.incoming.len())
    }

    /// Bytes that the requests take, on a server with the tasks that answer them.
    pub(crate) fn memory(&self) -> usize {
        let tasks = if self.h3.side().is_server() { self.accepted() } else { 0 };
        self.exchanges.len() * EXCHANGE_COST + tasks * TASK_COST
    }

    /// Whether the application is to accept no further request if the connection may hold only so many
    /// bytes more: it answers one at any rate.
    pub(crate) fn holds_back(&self, left: usize) -> bool {
        left < TASK_COST && self.accepted() > 0
    }

    /// Lets whoever accepts requests look again whether there is one.
    pub(crate) fn wake_for_requests(&mut self) {
        if !self.incoming.is_empty() {
            self.accepting.drain(..).for_each(Waker::wake);
        }
    }

    pub(crate) fn next_request(&mut self) -> Option<(StreamId, Fields)> {
        self.incoming.pop_front()
    }

    pub(crate) fn wait_request(&mut self, cx: &Context<'_>) {
        enlist(&mut self.accepting, cx);
    }

    /// Fails if HTTP/3 is over, with the cause.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.error.map_or(Ok(()), |error| Err(Error::Protocol(error)))
    }
}
