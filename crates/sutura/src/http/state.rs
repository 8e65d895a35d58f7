//! The HTTP/3 side of a connection: the protocol state and the tasks that wait for it.

use super::Error;
use super::refused::{Listener, Refused, RefusedAnswer};
use super::session::{SessionEnd, SessionState};
use super::timeouts::{Awaited, Timeouts, Watch};
use crate::connection::Upper;
use crate::sync::{enlist, wake};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};
use sutura_h3 as h3;
use sutura_h3::{Code, Config, Event, Fields, Quic};
use sutura_proto::{self as quic, Connection, StreamEvent, StreamId, Uptake};

/// When this many responses are watched, those that clients have taken are removed. The next removal happens
/// at twice the number of responses that this one has left, and no earlier than at this number.
const MIN_WATCHED: usize = 256;

/// How long after its last exchange a connection rests: longer than most clients take to acknowledge a response, or to send
/// the next request of a page.
const REST_DELAY: Duration = Duration::from_millis(250);

/// Bytes that an open request takes until it is accepted: its state in HTTP/3, and its head.
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
    /// Tasks that wait for a request (server), for a stream to send one on (client), or for the peer's
    /// SETTINGS or GOAWAY.
    accepting: Vec<Waker>,
    pub(crate) error: Option<h3::Error>,
    pub(super) refused: Listener,
    /// Whether the peer accepts (server) or sends (client) no more requests.
    pub(crate) going_away: bool,
    over: bool,
    pub(super) timeouts: Timeouts,
    /// On a server: exchanges of which something was awaited at the last look, and responses that were handed
    /// over completely.
    watched: BTreeMap<StreamId, Watch>,
    /// How many exchanges are watched when those that are over are looked for.
    sweep_at: u32,
    /// When to look at these again.
    look_at: Option<Instant>,
    /// On a client: how to start over.
    config: Option<Box<Config>>,
    /// WebTransport sessions, once there are any.
    sessions: Option<Box<Sessions>>,
}

/// The WebTransport sessions of a connection.
#[derive(Debug, Default)]
struct Sessions {
    by_stream: BTreeMap<StreamId, SessionState>,
}

/// A request and its response.
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
    /// How often some of the peer's body was there to be read.
    pub(crate) pieces: u64,
    /// Whether this end has begun to answer.
    pub(crate) responding: bool,
    /// Whether it is a tunnel, in which there may be silence.
    tunnel: bool,
    /// The code with which the peer stopped this end's message.
    pub(crate) stopped: Option<Code>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// The task that waits for datagrams alone.
    datagram_reader: Option<Waker>,
}

impl Exchange {
    fn wake(&mut self) {
        let tasks = [self.reader.take(), self.writer.take(), self.datagram_reader.take()];
        tasks.into_iter().flatten().for_each(Waker::wake);
    }

    /// Whether the application waits for more of the request before it answers.
    fn awaits_body(&self) -> bool {
        self.reader.is_some() && !self.finished && !self.responding
    }

    pub(crate) fn wait_readable(&mut self, cx: &Context<'_>) {
        self.reader = Some(cx.waker().clone());
    }

    pub(crate) fn wait_writable(&mut self, cx: &Context<'_>) {
        self.writer = Some(cx.waker().clone());
    }

    pub(crate) fn wait_datagram(&mut self, cx: &Context<'_>) {
        self.datagram_reader = Some(cx.waker().clone());
    }
}

/// The step that is awaited of the client in an exchange whose head has arrived, if the application still
/// holds the exchange. `all` stands for the client's uptake of all responses together.
fn awaited(exchange: Option<&Exchange>, uptake: Option<&Uptake>, all: Awaited) -> Awaited {
    match (exchange, uptake) {
        (Some(exchange), _) if exchange.tunnel => Awaited::Nothing,
        (_, Some(uptake)) if uptake.is_blocked => Awaited::Credit(uptake.acked, uptake.credit),
        (_, Some(_)) => all,
        (Some(exchange), None) if exchange.awaits_body() => Awaited::Body(exchange.pieces),
        (_, None) => Awaited::Nothing,
    }
}

impl Upper for HttpState {
    fn on_event(&mut self, _quic: &mut Connection, event: &quic::Event) {
        match *event {
            quic::Event::Stream(StreamEvent::Readable { id }) => self.h3.readable(id),
            quic::Event::Stream(StreamEvent::Writable { id }) => self.h3.writable(id),
            quic::Event::Stream(StreamEvent::Stopped { id, code }) => {
                self.h3.stopped(id, Code(code));
            }
            quic::Event::ZeroRttRejected => self.start_over(),
            _ => {}
        }
    }

    fn process(&mut self, now: Instant, connection: &mut Connection, over: bool) -> bool {
        self.over = over;
        if let Err(error) = self.h3.process(&mut Quic { now, connection }) {
            self.error = Some(error);
        }
        self.pump();
        if over || self.error.is_some() {
            self.wake_all();
        }
        let is_waiting = self.h3.side().is_server() && self.h3.exchanges() > 0;
        if is_waiting && self.look_at.is_none() && self.timeouts.interval().is_some() {
            // The task that waits for requests starts to look whether they come to an end.
            wake(&mut self.accepting);
        }
        self.has_ended_session()
    }

    fn wake_all(&mut self) {
        wake(&mut self.accepting);
        if let Some(sessions) = &mut self.sessions {
            sessions.by_stream.values_mut().for_each(SessionState::wake);
        }
        self.exchanges.values_mut().for_each(Exchange::wake);
    }

    /// Bytes that the requests take, on a server with the tasks that answer them, and their unread datagrams.
    fn memory(&self) -> usize {
        let tasks = if self.h3.side().is_server() { self.accepted() } else { 0 };
        self.exchanges.len() * EXCHANGE_COST + tasks * TASK_COST + self.h3.datagram_memory()
    }

    /// One request is never held back, so that the application always makes progress.
    fn holds_back(&self, left: usize) -> bool {
        left < TASK_COST && self.accepted() > 0
    }

    fn wake_held_back(&mut self) {
        if !self.incoming.is_empty() {
            wake(&mut self.accepting);
        }
    }

    fn out_of_memory(&self) -> Option<u64> {
        Some(Code::EXCESSIVE_LOAD.0)
    }
}

impl HttpState {
    pub(crate) fn client(config: Config) -> Self {
        Self::new(h3::Connection::client(config.clone()), Some(Box::new(config)))
    }

    pub(crate) fn server(config: Config) -> Self {
        Self::new(h3::Connection::server(config), None)
    }

    fn new(h3: h3::Connection, config: Option<Box<Config>>) -> Self {
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
            timeouts: Timeouts::default(),
            watched: BTreeMap::new(),
            sweep_at: MIN_WATCHED as u32,
            look_at: None,
            sessions: None,
        }
    }

    /// What is known of a WebTransport session.
    pub(super) fn session(&mut self, id: StreamId) -> &mut SessionState {
        self.sessions.get_or_insert_default().by_stream.entry(id).or_default()
    }

    /// Whether a session has ended, and its streams with it, since this was last asked.
    fn has_ended_session(&mut self) -> bool {
        let mut ended = false;
        let sessions =
            self.sessions.iter_mut().flat_map(|sessions| sessions.by_stream.values_mut());
        for session in sessions {
            ended |= std::mem::take(&mut session.has_ended);
        }
        ended
    }

    /// Starts over, on a client whose 0-RTT was rejected: nothing was sent yet.
    fn start_over(&mut self) {
        self.wake_all();
        self.exchanges.clear();
        if let Some(config) = self.config.as_deref() {
            self.h3 = h3::Connection::client(config.clone());
        }
    }

    /// Ends exchanges in which the client makes no progress. Returns when to call this next, if anything is
    /// awaited, and whether anything was ended.
    pub(crate) fn look(&mut self, now: Instant, quic: &mut Quic<'_>) -> (Option<Instant>, bool) {
        let Some(interval) = self.timeouts.interval() else { return (None, false) };
        if self.look_at.is_some_and(|at| now < at) {
            return (self.look_at, false);
        }
        let headless: BTreeSet<StreamId> = self.h3.headless().collect();
        for stream in headless.iter().chain(self.exchanges.keys()) {
            self.watched.entry(*stream).or_insert_with(|| Watch::new(now));
        }
        let uptakes: Vec<_> = self.watched.keys().map(|id| quic.uptake(*id)).collect();
        let taken = uptakes.iter().flatten().map(|uptake| uptake.acked).sum();
        let all = Awaited::Uptake(taken, quic.connection.send_credit());
        let mut over = Vec::new();
        let mut watched = std::mem::take(&mut self.watched);
        for ((id, watch), uptake) in watched.iter_mut().zip(&uptakes) {
            let awaited = match self.exchanges.get(id) {
                _ if headless.contains(id) => Awaited::Head,
                exchange => awaited(exchange, uptake.as_ref(), all),
            };
            if watch.look(now, awaited, &self.timeouts) {
                over.push((*id, awaited));
            }
        }
        let is_held = |id: &StreamId| headless.contains(id) || self.exchanges.contains_key(id);
        watched.retain(|id, _| is_held(id) || quic.uptake(*id).is_some());
        self.watched = watched;
        for (id, awaited) in &over {
            self.expire(*id, *awaited, quic);
        }
        let idle = self.watched.is_empty() && self.h3.exchanges() == 0;
        let rests = idle && self.rest(quic.connection);
        self.look_at = (!rests).then(|| now + interval);
        (self.look_at, !over.is_empty())
    }

    /// Brings the next look forward, as the last exchange is over: if no other follows soon, the connection rests before
    /// many more have come and taken memory of their own.
    fn look_soon(&mut self, now: Instant) {
        let soon = now + REST_DELAY;
        if self.look_at.is_some_and(|at| at > soon) {
            self.look_at = Some(soon);
            wake(&mut self.accepting);
        }
    }

    /// Gives back the memory that requests have needed, on a connection that may be silent from now on. Returns whether
    /// all of it was given back, for which nothing may be in flight.
    fn rest(&mut self, connection: &mut Connection) -> bool {
        self.exchanges.shrink_to_fit();
        self.incoming.shrink_to_fit();
        // A tree that went empty keeps its last node.
        self.watched = BTreeMap::new();
        self.h3.rest();
        connection.rest()
    }

    /// Ends an exchange in which the client makes no progress.
    fn expire(&mut self, stream: StreamId, awaited: Awaited, quic: &mut Quic<'_>) {
        let code = match awaited {
            Awaited::Head => Code::REQUEST_REJECTED,
            _ => Code::REQUEST_CANCELLED,
        };
        if self.h3.cancel(quic, stream, code).is_err() {
            // HTTP/3 has handed all of the response over.
            quic.abandon(stream, code);
        }
        self.watched.remove(&stream);
        let reason = "the peer makes no progress";
        self.change(stream, |x| x.failed = Some(Error::Message { code, reason }));
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
                let exchange = self.exchanges.entry(stream).or_default();
                exchange.tunnel = fields.get(":method") == Some(b"CONNECT");
                self.incoming.push_back((stream, fields));
                wake(&mut self.accepting);
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
            Event::Data { stream } => self.change(stream, |x| x.pieces += 1),
            Event::Writable { stream } | Event::Datagram { stream } => {
                self.change(stream, |_| {});
            }
            // Tasks that wait for a stream need not wait any more.
            Event::GoAway { .. } => {
                self.going_away = true;
                wake(&mut self.accepting);
            }
            Event::Settings(_) => wake(&mut self.accepting),
            Event::PriorityUpdate { .. } => {}
            Event::SessionStream { session, .. } => self.session(session).wake(),
            Event::SessionDraining { session } => self.session(session).drain(),
            Event::SessionClosed { session, close } => {
                let failed = self.exchanges.get(&session).and_then(|x| x.failed.clone());
                self.session(session).end(SessionEnd::of_peer(close, failed));
            }
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
        if let Some(sessions) = &mut self.sessions {
            sessions.by_stream.remove(&stream);
        }
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

    pub(crate) fn open(&mut self, stream: StreamId) {
        self.exchanges.insert(stream, Exchange::default());
    }

    pub(crate) fn exchange(&mut self, stream: StreamId) -> &mut Exchange {
        self.exchanges.entry(stream).or_default()
    }

    pub(crate) fn forget(&mut self, stream: StreamId, quic: &mut Quic<'_>) {
        self.exchanges.remove(&stream);
        if let Some(sessions) = &mut self.sessions {
            sessions.by_stream.remove(&stream);
        }
        self.wake_held_back();
        if self.h3.side().is_client() {
            return;
        }
        if self.exchanges.is_empty() {
            self.look_soon(quic.now);
        }
        if quic.uptake(stream).is_none() {
            return;
        }
        if self.watched.len() >= self.sweep_at as usize {
            // Most were taken meanwhile.
            let headless: BTreeSet<StreamId> = self.h3.headless().collect();
            let exchanges = &self.exchanges;
            let is_held = |id: &StreamId| headless.contains(id) || exchanges.contains_key(id);
            self.watched.retain(|id, _| is_held(id) || quic.uptake(*id).is_some());
            let next = MIN_WATCHED.max(2 * self.watched.len());
            self.sweep_at = u32::try_from(next).unwrap_or(u32::MAX);
        }
        self.watched.entry(stream).or_insert_with(|| Watch::new(quic.now));
    }

    /// Requests that the application has accepted and not finished.
    fn accepted(&self) -> usize {
        self.exchanges.len().saturating_sub(self.incoming.len())
    }

    /// Takes the next request whose answer is still wanted.
    pub(crate) fn next_request(&mut self, quic: &mut Quic<'_>) -> Option<(StreamId, Fields)> {
        loop {
            let (stream, fields) = self.incoming.pop_front()?;
            if self.exchanges.get(&stream).is_none_or(|exchange| exchange.stopped.is_none()) {
                return Some((stream, fields));
            }
            // If HTTP/3 has forgotten the request, too, there is nothing to cancel.
            let _ = self.h3.cancel(quic, stream, Code::REQUEST_REJECTED);
            self.forget(stream, quic);
        }
    }

    pub(crate) fn wait_request(&mut self, cx: &Context<'_>) {
        enlist(&mut self.accepting, cx);
    }

    /// Fails if HTTP/3 is over, with the cause.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.error.map_or(Ok(()), |error| Err(Error::Protocol(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every connection with HTTP/3 has one. 1,280 is a size of allocations; the next one is 1,536.
    #[test]
    fn the_state_of_a_connection_is_small() {
        assert!(size_of::<HttpState>() <= 1280, "{}", size_of::<HttpState>());
    }

    #[test]
    fn the_look_after_the_last_exchange_is_soon_and_is_not_put_off() {
        let mut http = HttpState::server(Config::default());
        let (start, later) = (Instant::now(), Duration::from_secs(4));
        http.look_soon(start);
        assert_eq!(http.look_at, None, "nothing has needed memory");
        http.look_at = Some(start + later);
        http.look_soon(start);
        assert_eq!(http.look_at, Some(start + REST_DELAY));
        http.look_soon(start + REST_DELAY / 2);
        assert_eq!(http.look_at, Some(start + REST_DELAY));
    }
}
