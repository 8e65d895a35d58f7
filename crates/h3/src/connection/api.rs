//! Sending and receiving messages.

use bytes::Bytes;
use sutura_proto::{Dir, Side, StreamId};
use sutura_schedule::Extension;

use super::exchange::Exchange;
use super::outgoing::final_goaway;
use super::receive::{BodyPiece, Order};
use super::send::{Failure, Send, SendPhase};
use super::{Connection, receive};
use crate::codec::{VARINT_MAX, put_varint};
use crate::error::{Code, Error, ReceiveError, SendError};
use crate::fields::{Field, Fields};
use crate::frame::FrameType;
use crate::message;
use crate::observe::{FrameAction, FrameContent, FrameEvent};
use crate::priority::{DefaultProtection, Priority, PriorityParameters};
use crate::settings::Settings;
use crate::transport::Transport;

/// What a server lacks that did not announce extended CONNECT.
const NO_EXTENDED_CONNECT: &str = "the server has not announced extended CONNECT \
     (SETTINGS_ENABLE_CONNECT_PROTOCOL, RFC 9220 section 3)";

impl Connection {
    /// Which end this is.
    #[must_use]
    pub const fn side(&self) -> Side {
        self.side
    }

    /// The peer's SETTINGS, once they arrived.
    #[must_use]
    pub const fn peer_settings(&self) -> Option<&Settings> {
        self.peer.as_ref()
    }

    /// How many exchanges are in progress.
    #[must_use]
    pub fn exchanges(&self) -> usize {
        self.exchanges.len()
    }

    /// The requests whose head has not arrived completely (server), in any order.
    pub fn headless(&self) -> impl Iterator<Item = StreamId> {
        self.exchanges.iter().filter(|(_, exchange)| !exchange.has_head()).map(|(id, _)| id)
    }

    /// The priority of an exchange's response as both ends know it so far: the client's, overridden by the
    /// `priority` field of the response (RFC 9218 section 8).
    #[must_use]
    pub fn priority(&self, stream: StreamId) -> Option<Priority> {
        self.exchanges.get(stream).map(Exchange::priority)
    }

    /// Gives the scheduler information about a response that no `priority` field has, such as the kind of
    /// resource (server). It is in effect at once, counts beside later wishes of the client, and can be
    /// changed at any time. Once a response was handed to the transport completely, its extension can be
    /// changed only if it had an extension or a `priority` field by then, and is one of the latest
    /// [`MAX_PRIORITY_OVERRIDES`](crate::MAX_PRIORITY_OVERRIDES) such responses.
    ///
    /// # Errors
    /// `UnknownStream` before the request has arrived, and if the response is not remembered any more;
    /// `InvalidState` at a client.
    pub fn set_extension<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        extension: Option<Extension>,
    ) -> Result<(), SendError> {
        self.check()?;
        if self.side.is_client() {
            return Err(SendError::InvalidState("clients schedule no responses"));
        }
        match self.exchanges.get_mut(stream) {
            Some(exchange) if exchange.has_head() => {
                exchange.set_extension(quic, stream, extension);
            }
            Some(_) => return Err(SendError::UnknownStream),
            None => {
                let overrides = self.overrides.as_mut();
                let said = overrides.and_then(|overrides| overrides.extend(stream, extension));
                quic.set_priority(stream, said.ok_or(SendError::UnknownStream)?.of_stream());
            }
        }
        Ok(())
    }

    /// The protection of the response when neither end asks for one
    /// ([`Config::protections`](crate::Config::protections), server). `None` if an end asks for one, or if
    /// the configuration leaves the choice to the transport.
    #[must_use]
    pub fn default_protection(&self, stream: StreamId) -> Option<&DefaultProtection> {
        let parameters = self.exchanges.get(stream)?.parameters();
        let is_open = parameters.burst.is_none();
        self.config.protections.get(&parameters.resolve()).filter(|_| is_open)
    }

    /// Sends a request (client). `priority` becomes its `priority` field, unless `fields` has one,
    /// and sets the order in which the request's own body is sent. Set `fin` if neither body nor trailers
    /// follow.
    ///
    /// # Errors
    /// `StreamsBlocked`, `GoingAway`, `Malformed`, `FieldSectionTooLarge`; `InvalidState` at a
    /// server, and for an extended CONNECT (RFC 9220) if the server's SETTINGS do not permit it or
    /// have not arrived. Nothing was sent then.
    pub fn send_request<T: Transport>(
        &mut self,
        quic: &mut T,
        fields: &Fields,
        priority: Option<&Priority>,
        fin: bool,
    ) -> Result<StreamId, SendError> {
        self.check()?;
        if self.side.is_server() {
            return Err(SendError::InvalidState("servers send no requests"));
        }
        if self.goaway_received.is_some() || self.goaway_sent.is_some() {
            return Err(SendError::GoingAway);
        }
        let head = message::check_request(fields)?;
        if head.extended && !self.peer.is_some_and(|peer| peer.enable_connect_protocol) {
            return Err(SendError::InvalidState(NO_EXTENDED_CONNECT));
        }
        let begins_session = self.begins_session(fields);
        if begins_session {
            self.check_session(fields)?;
        }
        let field = priority
            .filter(|_| fields.get("priority").is_none())
            .map(|priority| Field::new("priority", priority.to_field_value()));
        let size = fields.size().saturating_add(field.as_ref().map_or(0, Field::size));
        self.check_size(size)?;
        let stream = quic.open(Dir::Bi).ok_or(SendError::StreamsBlocked)?;
        let mut exchange = Exchange::new(self.side);
        exchange.method = head.method;
        if let Some(priority) = priority {
            exchange.client = priority.into();
            quic.set_priority(stream, priority.of_stream(None));
        }
        self.exchanges.insert(stream, exchange);
        self.keep_alive(quic);
        self.send_section(quic, stream, fields.iter().chain(&field), SendPhase::Body, fin)?;
        if begins_session {
            self.begin_session(stream);
        }
        Ok(stream)
    }

    /// Sends a response (server): any number of interim responses, then the final one. Set `fin` if
    /// neither body nor trailers follow.
    ///
    /// The stream has had the priority that the request asked for since the request arrived. The
    /// `priority` field in `fields` now overrides it, and protection of the stream begins.
    ///
    /// # Errors
    /// `InvalidState` before the request, after the final response, or for `fin` with an interim
    /// response; `Blocked` if an earlier response is still pending; `Malformed`,
    /// `FieldSectionTooLarge`, `Stopped`, `UnknownStream`.
    pub fn send_response<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        fields: &Fields,
        fin: bool,
    ) -> Result<(), SendError> {
        self.check()?;
        if self.side.is_client() {
            return Err(SendError::InvalidState("clients send no responses"));
        }
        let head = message::check_response(fields)?;
        if fin && head.is_interim() {
            return Err(SendError::InvalidState("a final response follows an interim one"));
        }
        self.check_size(fields.size())?;
        let exchange = self.exchanges.get_mut(stream).ok_or(SendError::UnknownStream)?;
        if !exchange.has_head() {
            return Err(SendError::InvalidState("the request has not arrived"));
        }
        self.send(quic, stream, |quic, send| send.ready(quic, stream, SendPhase::Head))?;
        if let Some(exchange) = self.exchanges.get_mut(stream) {
            let own = (!head.is_interim()).then(|| PriorityParameters::from_fields(fields));
            exchange.begin_response(quic, stream, own, &self.config.protections);
        }
        let phase = if head.is_interim() { SendPhase::Head } else { SendPhase::Body };
        self.send_section(quic, stream, fields, phase, fin)?;
        if !head.is_interim() {
            self.on_answer(quic, stream, head.status);
        }
        Ok(())
    }

    /// Announces the next `length` bytes of body, which are then sent in one DATA frame, however many calls
    /// they come in, so that the peer can [read](Self::read_body_piece) them in any order. All of them must
    /// be sent before anything else of the message.
    ///
    /// # Errors
    /// As for [`Self::send_body`]; `InvalidState` as long as announced bytes are still to be sent.
    pub fn announce_body<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        length: u64,
    ) -> Result<(), SendError> {
        if length > VARINT_MAX {
            return Err(SendError::InvalidState("a body longer than any frame"));
        }
        self.send_in_body(quic, stream, |quic, send| send.announce(quic, stream, length))
    }

    /// Sends a prefix of `data`, at most [`MAX_DATA_COPY`](crate::MAX_DATA_COPY) bytes, as body.
    /// Returns its length.
    ///
    /// # Errors
    /// `Blocked` if nothing can be sent now, `InvalidState` before the head or after the end,
    /// `Stopped`, `UnknownStream`.
    pub fn send_body<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        data: &[u8],
    ) -> Result<usize, SendError> {
        self.send_in_body(quic, stream, |quic, send| Ok(send.data(quic, stream, data)?))
    }

    /// How many bytes of body the transport has room for, so that a server need not fetch body that
    /// would have to wait. Never 0.
    ///
    /// # Errors
    /// As for [`Self::send_body`].
    pub fn body_room<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
    ) -> Result<usize, SendError> {
        self.send_in_body(quic, stream, |quic, send| send.room(quic, stream))
    }

    /// Sends as much of `chunk` as body as there is room for, and returns how many bytes that is: at least
    /// one, if there are any. Keeps no unsent bytes.
    ///
    /// # Errors
    /// As for [`Self::send_body`]; nothing was sent then.
    pub fn send_body_part<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        chunk: Bytes,
    ) -> Result<usize, SendError> {
        self.send_in_body(quic, stream, |quic, send| send.part(quic, stream, chunk))
    }

    /// Sends all of `chunk` as body, without copying it. Bytes for which there is no room are kept until
    /// there is.
    ///
    /// # Errors
    /// As for [`Self::send_body`]; `InvalidState` if it is longer than the rest of the announced body.
    /// `chunk` was not sent then.
    pub fn send_body_chunk<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        chunk: Bytes,
    ) -> Result<(), SendError> {
        self.send_in_body(quic, stream, |quic, send| send.chunk(quic, stream, chunk))
    }

    /// Ends a message with a trailer section.
    ///
    /// # Errors
    /// `Blocked` if body is still pending; `InvalidState` before the head, after the end, or for
    /// CONNECT or if announced body is missing; `Malformed`, `FieldSectionTooLarge`, `Stopped`,
    /// `UnknownStream`.
    pub fn send_trailers<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        fields: &Fields,
    ) -> Result<(), SendError> {
        self.check()?;
        message::check_trailers(fields)?;
        self.check_size(fields.size())?;
        let exchange = self.exchanges.get(stream).ok_or(SendError::UnknownStream)?;
        if exchange.method == message::Method::Connect {
            return Err(SendError::InvalidState("a tunnel has no trailers"));
        }
        self.send(quic, stream, |quic, send| {
            send.ready(quic, stream, SendPhase::Body)?;
            send.check_complete()
        })?;
        self.send_section(quic, stream, fields, SendPhase::Body, true)
    }

    /// Ends a message after the body sent so far. Never `Blocked`.
    ///
    /// # Errors
    /// `InvalidState` before the head or after the end or if announced body is missing, `Stopped`,
    /// `UnknownStream`.
    pub fn finish<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
    ) -> Result<(), SendError> {
        self.check()?;
        self.send(quic, stream, |quic, send| {
            match send.ready(quic, stream, SendPhase::Body) {
                Ok(()) | Err(Failure::Rule(SendError::Blocked)) => {}
                Err(failure) => return Err(failure),
            }
            send.check_complete()?;
            Ok(send.finish(quic, stream)?)
        })
    }

    /// Sends a section of the message on `stream`, whose earlier bytes were handed to the transport. The message
    /// is then at `phase`, or ends if `fin` is set.
    pub(super) fn send_section<'a, T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        fields: impl IntoIterator<Item = &'a Field> + Clone,
        phase: SendPhase,
        fin: bool,
    ) -> Result<(), SendError> {
        let frame = self.encode(quic, stream, fields);
        let sent = self.send(quic, stream, |quic, send| {
            send.phase = phase;
            send.section(quic, stream, &frame)?;
            if fin { Ok(send.finish(quic, stream)?) } else { Ok(()) }
        });
        self.memory = frame.into_memory();
        sent
    }

    /// Runs `act` on the sending half of an exchange and handles transport errors.
    fn send<T: Transport, R>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        act: impl FnOnce(&mut T, &mut Send) -> Result<R, Failure>,
    ) -> Result<R, SendError> {
        let exchange = self.exchanges.get_mut(stream).ok_or(SendError::UnknownStream)?;
        let outcome = act(quic, &mut exchange.send);
        match outcome {
            Ok(result) => {
                if exchange.is_done() {
                    self.retire(stream);
                }
                Ok(result)
            }
            Err(Failure::Rule(error)) => Err(error),
            Err(Failure::Transport(error)) => {
                self.on_write_error(quic, stream, error);
                Err(match error {
                    crate::transport::WriteError::Stopped(code) => SendError::Stopped(code),
                    _ => SendError::UnknownStream,
                })
            }
        }
    }

    /// Calls `act` once nothing is left to be sent before more body, and handles its outcome.
    fn send_in_body<T: Transport, R>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        act: impl FnOnce(&mut T, &mut Send) -> Result<R, Failure>,
    ) -> Result<R, SendError> {
        self.check()?;
        self.send(quic, stream, |quic, send| {
            send.ready(quic, stream, SendPhase::Body)?;
            act(quic, send)
        })
    }

    /// Reads body into `buffer`, which must not be empty, and returns the number of bytes. `Ok(0)`
    /// follows the last byte, when trailers or the end have been found; events tell which.
    ///
    /// # Errors
    /// `Blocked` if no bytes are available or the head has not arrived; `UnknownStream` once the
    /// exchange is over, which events report; `OutOfOrder` after
    /// [`read_body_piece`](Self::read_body_piece) has left out bytes that have not come yet.
    pub fn read_body<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        buffer: &mut [u8],
    ) -> Result<usize, ReceiveError> {
        self.read(quic, stream, buffer, Order::Stream).map(|piece| piece.bytes)
    }

    /// Reads some of the body into `buffer`, which must not be empty: the first bytes that have arrived, also
    /// if bytes before them are missing. No bytes follow the last ones, as for
    /// [`read_body`](Self::read_body).
    ///
    /// The header of a DATA frame is known when all data before it has arrived. A body in one frame
    /// ([`announce_body`](Self::announce_body)) does not wait for lost data; in a body of several frames,
    /// later frames wait until the present one is complete. Header and trailer sections are always read in
    /// their turn.
    ///
    /// # Errors
    /// As for [`read_body`](Self::read_body).
    pub fn read_body_piece<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        buffer: &mut [u8],
    ) -> Result<BodyPiece, ReceiveError> {
        self.read(quic, stream, buffer, Order::Arrival)
    }

    fn read<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        buffer: &mut [u8],
        order: Order,
    ) -> Result<BodyPiece, ReceiveError> {
        self.check()?;
        let exchange = self.exchanges.get_mut(stream).ok_or(ReceiveError::UnknownStream)?;
        if order == Order::Stream && exchange.receive.is_scattered() {
            return Err(ReceiveError::OutOfOrder);
        }
        exchange.told_data = false;
        if buffer.is_empty() {
            return Ok(BodyPiece::default());
        }
        let outcome = self.read_on(quic, stream, buffer, order);
        let outcome = self.send_instructions(quic).map_err(ReceiveError::from).and(outcome);
        self.keep_alive(quic);
        outcome.map_err(|error| match error {
            ReceiveError::Connection(error) => self.fail(quic, error).into(),
            error => error,
        })
    }

    pub(super) fn read_on<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        buffer: &mut [u8],
        order: Order,
    ) -> Result<BodyPiece, ReceiveError> {
        const END: BodyPiece = BodyPiece { offset: 0, bytes: 0 };
        // At most twice: up to a payload, and then from it.
        loop {
            let exchange = self.exchanges.get_mut(stream).ok_or(ReceiveError::UnknownStream)?;
            if exchange.receive.in_data() {
                let read = match exchange.receive.read_data(quic, stream, buffer, order) {
                    Ok(read) => read,
                    Err(fault) => {
                        self.on_fault(quic, stream, fault)?;
                        return Err(ReceiveError::UnknownStream);
                    }
                };
                // If the end is already known, it is reported now rather than with the next packet.
                if exchange.receive.at_end() {
                    self.receive(quic, stream, false)?;
                }
                return read.ok_or(ReceiveError::Blocked);
            }
            if exchange.receive.is_done() {
                return Ok(END);
            }
            self.receive(quic, stream, false)?;
            let Some(exchange) = self.exchanges.get(stream) else {
                // Complete, or abandoned.
                let finished = self.events.back() == Some(&crate::Event::Finished { stream });
                return if finished { Ok(END) } else { Err(ReceiveError::UnknownStream) };
            };
            match exchange.receive.phase {
                _ if exchange.receive.in_data() => {}
                receive::Phase::Trailed | receive::Phase::Done => return Ok(END),
                receive::Phase::Head | receive::Phase::Body => return Err(ReceiveError::Blocked),
            }
        }
    }

    /// Abandons this end's message (RFC 9114 section 4.1.1).
    ///
    /// # Errors
    /// `UnknownStream`.
    pub fn reset<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        code: Code,
    ) -> Result<(), SendError> {
        self.check()?;
        let exchange = self.exchanges.get_mut(stream).ok_or(SendError::UnknownStream)?;
        if !exchange.send.is_done() {
            exchange.send.give_up(None);
            quic.reset(stream, code);
        }
        self.retire(stream);
        Ok(())
    }

    /// Asks the peer to stop sending its message. With [`Code::NO_ERROR`], a server says that it
    /// does not need the rest of the request (RFC 9114 section 4.1).
    ///
    /// # Errors
    /// `UnknownStream`.
    pub fn stop<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        code: Code,
    ) -> Result<(), SendError> {
        self.check()?;
        let exchange = self.exchanges.get_mut(stream).ok_or(SendError::UnknownStream)?;
        if !exchange.receive.is_done() {
            exchange.receive.give_up();
            self.stop_reading(quic, stream, code);
        }
        self.retire(stream);
        Ok(())
    }

    /// Abandons an exchange in both directions: [`Code::REQUEST_CANCELLED`] cancels it,
    /// [`Code::REQUEST_REJECTED`] tells a client that its request was not processed at all.
    ///
    /// # Errors
    /// `UnknownStream`.
    pub fn cancel<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        code: Code,
    ) -> Result<(), SendError> {
        self.check()?;
        if self.exchanges.get(stream).is_none() {
            return Err(SendError::UnknownStream);
        }
        self.abandon(quic, stream, code);
        Ok(())
    }

    /// Changes the priority of a request's response (client, RFC 9218 section 7.2).
    ///
    /// # Errors
    /// `UnknownStream` once the exchange is over, `Blocked` if too much is pending on the control
    /// stream, `InvalidState` at a server.
    pub fn send_priority_update<T: Transport>(
        &mut self,
        quic: &mut T,
        stream: StreamId,
        priority: &Priority,
    ) -> Result<(), SendError> {
        self.check()?;
        if self.side.is_server() {
            return Err(SendError::InvalidState("servers send no PRIORITY_UPDATE"));
        }
        let exchange = self.exchanges.get_mut(stream).ok_or(SendError::UnknownStream)?;
        let value = priority.to_field_value();
        let mut payload = Vec::new();
        put_varint(&mut payload, stream.0);
        payload.extend_from_slice(value.as_bytes());
        let kind = FrameType::PRIORITY_UPDATE_REQUEST;
        let control = self.outgoing.push_control(kind, &payload).ok_or(SendError::Blocked)?;
        quic.observe(|| FrameEvent {
            action: FrameAction::Created,
            stream: control,
            content: FrameContent::PriorityUpdate { element: stream, value: value.into() },
        });
        exchange.client = priority.into();
        quic.set_priority(stream, priority.of_stream(None));
        self.flush_control(quic)
    }

    /// Asks the peer to send no further requests; requests that it still sends are answered (RFC 9114 section
    /// 5.2). Call [`Self::goaway`] a round trip or more later to set the final limit.
    ///
    /// # Errors
    /// `Blocked` if too much is pending on the control stream.
    pub fn announce_goaway<T: Transport>(&mut self, quic: &mut T) -> Result<(), SendError> {
        let largest = VARINT_MAX & !0b11;
        self.send_goaway(quic, if self.side.is_server() { largest } else { 0 })
    }

    /// Accepts no further requests: requests that have not arrived yet are rejected, so that the peer can
    /// safely send them elsewhere (RFC 9114 section 5.2). A client sends no further requests.
    ///
    /// # Errors
    /// `Blocked` if too much is pending on the control stream.
    pub fn goaway<T: Transport>(&mut self, quic: &mut T) -> Result<(), SendError> {
        self.send_goaway(quic, final_goaway(self.side, self.next_request))
    }

    fn send_goaway<T: Transport>(&mut self, quic: &mut T, id: u64) -> Result<(), SendError> {
        self.check()?;
        if self.goaway_sent.is_some_and(|sent| sent <= id) {
            return Ok(());
        }
        let mut payload = Vec::new();
        put_varint(&mut payload, id);
        // If the control stream is not open yet, it will begin with this.
        if self.outgoing.is_open()
            && self.outgoing.push_control(FrameType::GOAWAY, &payload).is_none()
        {
            return Err(SendError::Blocked);
        }
        self.goaway_sent = Some(id);
        self.flush_control(quic)
    }

    fn flush_control<T: Transport>(&mut self, quic: &mut T) -> Result<(), SendError> {
        let outcome = self.outgoing.process(quic, &self.config, self.goaway_sent);
        outcome.map_err(|error| self.fail(quic, error).into())
    }

    /// Whether the connection is open.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.error.map_or(Ok(()), Err)
    }

    /// Checks that the peer accepts a section of this size (RFC 9114 section 4.2.2).
    fn check_size(&self, size: u64) -> Result<(), SendError> {
        match self.peer.and_then(|peer| peer.max_field_section_size) {
            Some(limit) if size > limit => Err(SendError::FieldSectionTooLarge(limit)),
            _ => Ok(()),
        }
    }
}
