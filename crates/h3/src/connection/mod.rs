//! An HTTP/3 connection: processes received frames. Messages are sent and read in `api`.

mod api;
mod cancellation;
mod control;
mod datagram;
mod exchange;
mod exchanges;
mod incoming;
mod outgoing;
mod qpack;
mod receive;
mod send;
mod updates;
mod webtransport;

use std::collections::VecDeque;

use sutura_proto::work;
use sutura_proto::{Dir, Offence, Side, StreamId};

use self::cancellation::Cancellations;
use self::control::ControlFrame;
use self::datagram::Datagrams;
use self::exchange::Exchange;
use self::exchanges::Exchanges;
use self::incoming::{Arrival, IncomingStreams};
use self::outgoing::OutgoingStreams;
use self::receive::{Fault, Limits, Progress, TooLarge};
use self::send::SendPhase;
use self::updates::{Overrides, PriorityUpdates};
use self::webtransport::Sessions;
use crate::config::Config;
use crate::error::{Code, Error};
use crate::event::Event;
use crate::fields::{Field, Fields};
use crate::observe::{FrameAction, FrameContent, FrameEvent};
use crate::priority::PriorityParameters;
use crate::qpack::{Decoder, Encoder};
use crate::settings::Settings;
use crate::transport::{Transport, WriteError};

pub use self::control::MAX_CONTROL_PAYLOAD;
pub use self::datagram::{
    MAX_QUEUED_DATAGRAM_BYTES, MAX_QUEUED_DATAGRAM_BYTES_IN_ALL, MAX_QUEUED_DATAGRAMS,
    MAX_QUEUED_DATAGRAMS_IN_ALL,
};
pub use self::exchange::MAX_INTERIM_RESPONSES;
pub use self::incoming::MAX_UNTYPED_STREAMS;
pub use self::outgoing::MAX_CONTROL_BACKLOG;
pub use self::receive::BodyPiece;
pub use self::send::MAX_DATA_COPY;
pub use self::updates::{MAX_PRIORITY_OVERRIDES, MAX_PRIORITY_UPDATES};
pub use self::webtransport::{MAX_BUFFERED_SESSION_STREAMS, OpenedStream};

/// Room for this many events is kept when there are none.
const FEW_EVENTS: usize = 8;

/// One end of an HTTP/3 connection.
///
/// There is one exchange (a request and its response) for each bidirectional stream that the
/// transport permits at a time. The crate's documentation shows how to drive a connection.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    config: Config,
    /// Why the connection is closed.
    error: Option<Error>,
    events: VecDeque<Event>,
    outgoing: OutgoingStreams,
    incoming: IncomingStreams,
    peer: Option<Settings>,
    encoder: Encoder,
    decoder: Decoder,
    exchanges: Exchanges,
    /// Exchanges that `process` will handle.
    queue: Vec<StreamId>,
    updates: PriorityUpdates,
    /// Only once there are any, as are the datagrams.
    overrides: Option<Box<Overrides>>,
    datagrams: Option<Box<Datagrams>>,
    /// Only with WebTransport, once there is a session or a stream of one.
    sessions: Option<Box<Sessions>>,
    cancellations: Cancellations,
    /// Streams that were stopped before they were accepted. Only until the next
    /// [`process`](Self::process), which accepts them.
    stopped_early: Vec<(StreamId, Code)>,
    /// Index of the next request that the server accepts.
    next_request: u64,
    max_push_id: Option<u64>,
    goaway_sent: Option<u64>,
    goaway_received: Option<u64>,
    /// Whether a GOAWAY event is waiting to be polled.
    told_goaway: bool,
    /// Memory for the next HEADERS frame.
    memory: Vec<u8>,
}

impl Connection {
    /// The client end, which sends requests.
    #[must_use]
    pub fn client(config: Config) -> Self {
        Self::new(Side::Client, config)
    }

    /// The server end, which answers them.
    #[must_use]
    pub fn server(config: Config) -> Self {
        Self::new(Side::Server, config)
    }

    fn new(side: Side, config: Config) -> Self {
        Self {
            side,
            error: None,
            events: VecDeque::new(),
            outgoing: OutgoingStreams::new(&config),
            incoming: IncomingStreams::new(side, config.enable_webtransport),
            encoder: Encoder::default(),
            decoder: qpack::decoder(&config),
            config,
            peer: None,
            exchanges: Exchanges::default(),
            queue: Vec::new(),
            updates: PriorityUpdates::default(),
            overrides: None,
            datagrams: None,
            sessions: None,
            cancellations: Cancellations::default(),
            stopped_early: Vec::new(),
            next_request: 0,
            max_push_id: None,
            goaway_sent: None,
            goaway_received: None,
            told_goaway: false,
            memory: Vec::new(),
        }
    }

    /// Gives back the memory that is kept for the next exchanges. For those who know that the connection will be
    /// silent for a while; otherwise the same memory is soon allocated again.
    pub fn rest(&mut self) {
        self.events.shrink_to_fit();
        self.queue.shrink_to_fit();
        self.stopped_early.shrink_to_fit();
        self.memory = Vec::new();
        self.exchanges.rest();
        self.incoming.rest();
        self.outgoing.rest();
        self.encoder.rest();
        self.decoder.rest();
    }

    /// Tells that the transport has bytes, an end or a reset for `id`.
    pub fn readable(&mut self, id: StreamId) {
        match id.dir() {
            Dir::Uni => self.incoming.readable(id),
            Dir::Bi => self.queue(id),
        }
    }

    /// Tells that the transport accepts bytes for `id` again.
    pub fn writable(&mut self, id: StreamId) {
        // Control and QPACK streams are handled in every call of `process`.
        self.queue(id);
    }

    /// Tells that the peer sent STOP_SENDING with `code` for `id`.
    pub fn stopped(&mut self, id: StreamId, code: Code) {
        if self.outgoing.is_critical(id) {
            let reason = "critical stream stopped";
            self.error.get_or_insert(Error::new(Code::CLOSED_CRITICAL_STREAM, reason));
        } else if let Some(exchange) = self.exchanges.get_mut(id) {
            exchange.stopped = Some(code);
            self.queue(id);
        } else if self.side.is_server() && id.index() >= self.next_request {
            self.stopped_early.push((id, code));
        }
    }

    fn queue(&mut self, id: StreamId) {
        if let Some(exchange) = self.exchanges.get_mut(id)
            && !std::mem::replace(&mut exchange.queued, true)
        {
            self.queue.push(id);
        }
    }

    /// Accepts streams, processes received data, and sends pending data. Call it whenever the transport made
    /// progress, and once at the start.
    ///
    /// # Errors
    /// The connection error (RFC 9114 section 8) with which the transport was closed. All later
    /// calls return the same error.
    pub fn process<T: Transport>(&mut self, quic: &mut T) -> Result<(), Error> {
        let outcome = match self.error {
            Some(error) => Err(error),
            None => self.drive(quic),
        };
        outcome.map_err(|error| self.fail(quic, error))?;
        self.keep_alive(quic);
        Ok(())
    }

    /// Keeps the connection alive while responses are outstanding (RFC 9114 section 5.1).
    fn keep_alive<T: Transport>(&self, quic: &mut T) {
        if self.side.is_client() {
            quic.keep_alive(!self.exchanges.is_empty());
        }
    }

    /// Closes the connection with an error.
    fn fail<T: Transport>(&mut self, quic: &mut T, error: Error) -> Error {
        if error.code != Code::INTERNAL_ERROR {
            quic.blame(Offence::Connection);
        }
        quic.close(error.code, error.reason.as_bytes());
        self.exchanges.clear();
        self.queue.clear();
        self.error = Some(error);
        error
    }

    fn drive<T: Transport>(&mut self, quic: &mut T) -> Result<(), Error> {
        debug_assert_eq!(quic.side(), self.side, "the transport is the other end's");
        self.outgoing.process(quic, &self.config, self.goaway_sent)?;
        let mut arrivals = Vec::new();
        self.incoming.accept(quic, &mut arrivals)?;
        self.accept_requests(quic)?;
        for (id, code) in self.stopped_early.drain(..) {
            if let Some(exchange) = self.exchanges.get_mut(id) {
                exchange.stopped = Some(code);
            }
        }
        // Before requests, so that updates of their priorities are known.
        while let Some(frame) = self.incoming.next(quic, &mut self.encoder, &mut self.decoder)? {
            self.on_control_frame(quic, frame)?;
        }
        while let Some(id) = self.decoder.unblocked() {
            self.queue(id);
        }
        self.receive_datagrams(quic)?;
        let mut queue = std::mem::take(&mut self.queue);
        for &id in &queue {
            work::steps(1);
            let Some(exchange) = self.exchanges.get_mut(id) else {
                continue;
            };
            exchange.queued = false;
            let sends = exchange.send.has_more();
            if let Some(code) = exchange.stopped.take() {
                if self.side.is_server() && !exchange.has_head() {
                    self.on_stopped_headless(quic, id)?;
                    continue;
                }
                self.on_stopped(quic, id, code);
            }
            if sends {
                self.flush(quic, id);
            }
            self.receive(quic, id, true)?;
        }
        // Nothing was queued meanwhile: only hints and new streams are.
        queue.clear();
        self.queue = queue;
        // Behind the requests, so that the sessions which those begin are known.
        self.on_arrivals(quic, &arrivals)?;
        self.tend_sessions(quic)?;
        if self.config.cancelled_requests.is_some_and(|limit| self.cancellations.exceeds(limit)) {
            return Err(Error::new(Code::EXCESSIVE_LOAD, "too many cancelled requests"));
        }
        self.send_instructions(quic)
    }

    /// Handles STOP_SENDING for a stream on which no request has arrived.
    fn on_stopped_headless<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
    ) -> Result<(), Error> {
        if self.config.enable_webtransport {
            // A stream of a session goes on in its other direction.
            self.receive(quic, id, true)?;
        }
        if self.exchanges.get(id).is_some_and(|exchange| !exchange.has_head()) {
            self.reject(quic, id);
        }
        Ok(())
    }

    /// Forgets a request whose answer nobody wants, before the application has seen it (RFC 9114 section
    /// 4.1.1).
    fn reject<T: Transport>(&mut self, quic: &mut T, id: StreamId) {
        self.on_cancelled(quic, id);
        self.abandon(quic, id, Code::REQUEST_REJECTED);
    }

    /// Counts a request that the client cancels before it is answered.
    fn on_cancelled<T: Transport>(&mut self, quic: &mut T, id: StreamId) {
        let Some(limit) = self.config.cancelled_requests.filter(|_| self.side.is_server()) else {
            return;
        };
        let Some(exchange) = self.exchanges.get_mut(id) else { return };
        let is_new = !exchange.send.is_done() && !std::mem::replace(&mut exchange.cancelled, true);
        if is_new && self.cancellations.on_cancelled(quic.now(), limit) {
            quic.blame(Offence::Request);
        }
    }

    /// Takes the peer's bidirectional streams (RFC 9114 section 6.1).
    fn accept_requests<T: Transport>(&mut self, quic: &mut T) -> Result<(), Error> {
        if self.side.is_client() && self.config.enable_webtransport {
            return self.accept_from_server(quic);
        }
        while let Some(id) = quic.accept(Dir::Bi) {
            if self.side.is_client() {
                let reason = "bidirectional stream from a server";
                return Err(Error::new(Code::STREAM_CREATION_ERROR, reason));
            }
            self.next_request = self.next_request.max(id.index() + 1);
            let update = self.updates.remove(id);
            let is_late = self.goaway_sent.is_some_and(|goaway| id.0 >= goaway);
            if is_late && !self.has_session() {
                self.stop_reading(quic, id, Code::REQUEST_REJECTED);
                quic.reset(id, Code::REQUEST_REJECTED);
                continue;
            }
            let mut exchange = Exchange::new(self.side);
            exchange.updated = update.is_some();
            exchange.client = update.unwrap_or_default();
            exchange.late = is_late;
            self.exchanges.insert(id, exchange);
            self.queue(id);
        }
        Ok(())
    }

    fn on_control_frame<T: Transport>(
        &mut self,
        quic: &mut T,
        frame: ControlFrame,
    ) -> Result<(), Error> {
        match frame {
            ControlFrame::Settings(settings) => {
                if settings.h3_datagram
                    && self.config.enable_datagrams
                    && quic.max_datagram_size().is_none()
                {
                    let reason = "HTTP datagrams without QUIC datagrams";
                    return Err(Error::new(Code::SETTINGS_ERROR, reason));
                }
                self.peer = Some(settings);
                self.use_peers_table(&settings);
                self.events.push_back(Event::Settings(settings));
                Ok(())
            }
            ControlFrame::GoAway(id) => self.on_goaway(quic, id),
            ControlFrame::MaxPushId(id) => {
                // RFC 9114 section 7.2.7.
                if self.max_push_id.replace(id).is_some_and(|before| id < before) {
                    return Err(Error::new(Code::ID_ERROR, "MAX_PUSH_ID shrinks"));
                }
                Ok(())
            }
            ControlFrame::PriorityUpdate { id, value } => {
                self.on_priority_update(quic, StreamId(id), &value)
            }
        }
    }

    /// RFC 9114 section 5.2.
    fn on_goaway<T: Transport>(&mut self, quic: &mut T, id: u64) -> Result<(), Error> {
        let stream = StreamId(id);
        if self.side.is_client() && (stream.initiator(), stream.dir()) != (Side::Client, Dir::Bi) {
            return Err(Error::new(Code::ID_ERROR, "GOAWAY names no request"));
        }
        match self.goaway_received.replace(id) {
            Some(before) if id > before => {
                return Err(Error::new(Code::ID_ERROR, "GOAWAY grows"));
            }
            Some(before) if id == before => return Ok(()),
            _ => {}
        }
        if !std::mem::replace(&mut self.told_goaway, true) {
            self.events.push_back(Event::GoAway { id });
        }
        if self.side.is_client() {
            for id in self.exchanges.streams_from(stream) {
                self.abandon(quic, id, Code::REQUEST_CANCELLED);
                let (code, reason) = (Code::REQUEST_REJECTED, "the server is going away");
                self.events.push_back(Event::Failed { stream: id, code, reason });
            }
        }
        Ok(())
    }

    /// RFC 9218 section 7.2.
    fn on_priority_update<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        value: &[u8],
    ) -> Result<(), Error> {
        let is_request = (id.initiator(), id.dir()) == (Side::Client, Dir::Bi);
        if !is_request || id.index() >= quic.stream_limit(Dir::Bi) {
            return Err(Error::new(Code::ID_ERROR, "PRIORITY_UPDATE names no request"));
        }
        let Some(parameters) = PriorityParameters::parse(value) else {
            return Ok(());
        };
        let Some(exchange) = self.exchanges.get_mut(id) else {
            if id.index() >= self.next_request {
                self.updates.insert(id, parameters);
            } else {
                // The response was handed to the transport completely, but may still have to be
                // sent. The transport ignores streams that are gone.
                let said = self.overrides.get_or_insert_default().update(id, parameters);
                let protection = self.config.protections.protection(&said.parameters());
                quic.set_priority(id, said.of_stream());
                match protection {
                    Some(protection) => quic.protect(id, protection),
                    None => quic.protect_by_default(id),
                }
            }
            return Ok(());
        };
        exchange.client = parameters;
        exchange.updated = true;
        if exchange.has_head() {
            exchange.apply_priority(quic, id, &self.config.protections);
        }
        if exchange.has_head() && !std::mem::replace(&mut exchange.told_update, true) {
            let priority = exchange.priority();
            self.events.push_back(Event::PriorityUpdate { stream: id, priority });
        }
        Ok(())
    }

    /// Continues reading an exchange. `tell`: whether to report body.
    fn receive<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        tell: bool,
    ) -> Result<(), Error> {
        let limits = Limits {
            fields: self.config.limits(),
            body: self.config.max_body_size,
            webtransport: self.config.enable_webtransport,
        };
        loop {
            let Some(exchange) = self.exchanges.get_mut(id) else {
                return Ok(());
            };
            if exchange.receive.is_done() {
                return Ok(());
            }
            let outcome = match exchange.receive.next(quic, id, &mut self.decoder, limits) {
                Ok(Progress::Blocked) => return Ok(()),
                Ok(Progress::Data) => {
                    if tell && !std::mem::replace(&mut exchange.told_data, true) {
                        self.events.push_back(Event::Data { stream: id });
                    }
                    return Ok(());
                }
                Ok(Progress::Section(fields)) => {
                    quic.observe(|| FrameEvent {
                        action: FrameAction::Parsed,
                        stream: id,
                        content: FrameContent::headers(&fields),
                    });
                    let is_request = self.side.is_server() && !exchange.has_head();
                    let event = exchange.on_section(self.side, &self.config, id, fields);
                    if is_request && event.is_ok() {
                        exchange.apply_priority(quic, id, &self.config.protections);
                    }
                    event
                }
                Ok(Progress::Session(session)) => {
                    self.exchanges.remove(id);
                    self.forget_datagrams(id);
                    return self.on_arrivals(quic, &[Arrival { stream: id, session }]);
                }
                Ok(Progress::End) => {
                    exchange.receive.end().map(|()| Event::Finished { stream: id })
                }
                Err(fault) => Err(fault),
            };
            let is_done = exchange.is_done();
            match outcome {
                Ok(Event::Headers { fields, .. })
                    if self.config.enable_webtransport && !self.on_head(quic, id, &fields) =>
                {
                    return Ok(());
                }
                Ok(event) => self.events.push_back(event),
                Err(fault) => return self.on_fault(quic, id, fault),
            }
            if is_done {
                self.retire(id);
            }
        }
    }

    /// Ends the connection or the exchange with an error.
    fn on_fault<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        fault: Fault,
    ) -> Result<(), Error> {
        match fault {
            Fault::Connection(error) => return Err(error),
            Fault::Stream(code, reason) => {
                self.abandon(quic, id, code);
                self.events.push_back(Event::Failed { stream: id, code, reason });
            }
            Fault::TooLarge(what) if self.refuse(quic, id, what) => {}
            Fault::TooLarge(what) => {
                let (code, reason) = (Code::EXCESSIVE_LOAD, what.reason());
                return self.on_fault(quic, id, Fault::Stream(code, reason));
            }
            Fault::Reset(code) => {
                self.on_cancelled(quic, id);
                // A server cannot answer half a request, and a client gets no further part of the answer (RFC
                // 9114 section 4.1.1).
                if let Some(exchange) = self.exchanges.get_mut(id) {
                    exchange.receive.give_up();
                    self.decoder.cancel(id);
                }
                self.abandon(quic, id, Code::REQUEST_CANCELLED);
                self.events.push_back(Event::Reset { stream: id, code });
            }
        }
        Ok(())
    }

    /// Answers a request whose head is too large, before the application sees it (RFC 9114 section 4.2.2).
    /// Returns false, and does nothing, on a client or if the head has arrived already.
    fn refuse<T: Transport>(&mut self, quic: &mut T, id: StreamId, what: TooLarge) -> bool {
        let head_missing = |exchange: &&mut Exchange| !exchange.has_head();
        let Some(exchange) = self.exchanges.get_mut(id).filter(head_missing) else { return false };
        if self.side.is_client() {
            return false;
        }
        exchange.receive.give_up();
        self.stop_reading(quic, id, Code::NO_ERROR);
        let mut response = Fields::response(what.status());
        response.push(Field::new("content-length", "0"));
        // The answer need not arrive.
        let _ = self.send_section(quic, id, &response, SendPhase::Body, true);
        let (status, reason) = (what.status(), what.reason());
        self.events.push_back(Event::Refused { stream: id, status, reason });
        self.retire(id);
        true
    }

    /// Abandons the rest of an exchange in both directions, and forgets it.
    fn abandon<T: Transport>(&mut self, quic: &mut T, id: StreamId, code: Code) {
        let Some(exchange) = self.exchanges.remove(id) else {
            return;
        };
        self.forget_datagrams(id);
        if !exchange.receive.is_done() {
            self.stop_reading(quic, id, code);
        }
        if !exchange.send.is_done() {
            quic.reset(id, code);
        }
    }

    /// Forgets an exchange if it is complete.
    fn retire(&mut self, id: StreamId) {
        if self.exchanges.get(id).is_some_and(Exchange::is_done)
            && let Some(exchange) = self.exchanges.remove(id)
        {
            self.forget_datagrams(id);
            if !exchange.cancelled {
                self.cancellations.on_answered();
            }
            let said = exchange.into_said();
            if said.is_of_server() {
                self.overrides.get_or_insert_default().insert(id, said);
            }
        }
    }

    /// Sends the pending part of this end's message.
    fn flush<T: Transport>(&mut self, quic: &mut T, id: StreamId) {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            return;
        };
        if exchange.send.is_done() {
            return;
        }
        match exchange.send.flush(quic, id) {
            Ok(_) => {
                if exchange.send.take_wakeup() {
                    self.events.push_back(Event::Writable { stream: id });
                }
                self.retire(id);
            }
            Err(error) => self.on_write_error(quic, id, error),
        }
    }

    fn on_write_error<T: Transport>(&mut self, quic: &mut T, id: StreamId, error: WriteError) {
        match error {
            WriteError::Blocked => {}
            WriteError::Stopped(code) => self.on_stopped(quic, id, code),
            WriteError::Closed => {
                if let Some(exchange) = self.exchanges.get_mut(id) {
                    exchange.send.give_up(None);
                }
                self.retire(id);
            }
        }
    }

    /// The peer wants no more of our message. Its own message is not affected (RFC 9114 section 4.1).
    fn on_stopped<T: Transport>(&mut self, quic: &mut T, id: StreamId, code: Code) {
        let Some(exchange) = self.exchanges.get_mut(id) else {
            return;
        };
        if exchange.send.is_done() {
            return;
        }
        self.on_cancelled(quic, id);
        let Some(exchange) = self.exchanges.get_mut(id) else {
            return;
        };
        exchange.send.give_up(Some(code));
        quic.reset(id, Code::REQUEST_CANCELLED);
        self.events.push_back(Event::Stopped { stream: id, code });
        self.retire(id);
    }

    /// Returns the next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        loop {
            let Some(event) = self.events.pop_front() else {
                // The room that many events at once have taken is given back.
                if self.events.capacity() > FEW_EVENTS {
                    self.events = VecDeque::new();
                }
                return None;
            };
            match event {
                Event::PriorityUpdate { stream, .. } => {
                    // Updates that came since are reported as one.
                    let Some(exchange) = self.exchanges.get_mut(stream) else {
                        continue;
                    };
                    exchange.told_update = false;
                    return Some(Event::PriorityUpdate { stream, priority: exchange.priority() });
                }
                Event::GoAway { id } => {
                    self.told_goaway = false;
                    return Some(Event::GoAway { id: self.goaway_received.unwrap_or(id) });
                }
                event => return Some(event),
            }
        }
    }
}
