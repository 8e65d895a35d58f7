//! An exchange: a request and its response on one bidirectional stream.

use sutura_proto::{Protection, Side, StreamId};
use sutura_schedule::{Extension, Priority as StreamPriority};

use super::receive::{Fault, Phase, Receive, TooLarge};
use super::send::Send;
use super::updates::Said;
use crate::config::Config;
use crate::error::Code;
use crate::event::Event;
use crate::fields::Fields;
use crate::message::{self, MessageError, Method, ResponseHead};
use crate::priority::{DefaultProtections, Priority, PriorityParameters};
use crate::transport::Transport;

/// Most interim responses to one request; more are excessive load.
pub const MAX_INTERIM_RESPONSES: u32 = 16;

/// The state of an exchange, at either end.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) receive: Receive,
    pub(super) send: Send,
    pub(super) method: Method,
    /// The client's wishes, and whether they came by PRIORITY_UPDATE rather than by the header.
    pub(super) client: PriorityParameters,
    pub(super) updated: bool,
    /// The response's own `priority` field.
    pub(super) server: PriorityParameters,
    /// The server's additional information for its scheduler.
    extension: Option<Extension>,
    /// Whether the response has begun, so that its protection applies.
    responding: bool,
    protected: bool,
    interim: u32,
    /// Whether it is in the connection's queue of exchanges to process.
    pub(super) queued: bool,
    /// Whether the peer stopped our message, and the code.
    pub(super) stopped: Option<Code>,
    /// Whether the peer has cancelled the request before it was answered.
    pub(super) cancelled: bool,
    /// Whether the server was going away when the stream came: it is taken only if it belongs to a session.
    pub(super) late: bool,
    /// Whether data, updates or datagrams were reported: a report waits to be polled, and need not be queued
    /// again.
    pub(super) told_data: bool,
    pub(super) told_update: bool,
    pub(super) told_datagram: bool,
}

impl Exchange {
    /// A new exchange at `side`.
    pub(super) fn new(side: Side) -> Self {
        Self {
            receive: Receive::new(side),
            send: Send::new(),
            method: Method::Other,
            client: PriorityParameters::default(),
            updated: false,
            server: PriorityParameters::default(),
            extension: None,
            responding: false,
            protected: false,
            interim: 0,
            queued: false,
            stopped: None,
            cancelled: false,
            late: false,
            told_data: false,
            told_update: false,
            told_datagram: false,
        }
    }

    /// Whether nothing more can happen in it.
    pub(super) fn is_done(&self) -> bool {
        self.receive.is_done() && self.send.is_done()
    }

    /// Whether the peer's head has arrived.
    pub(super) fn has_head(&self) -> bool {
        self.receive.phase != Phase::Head
    }

    /// The response's priority (RFC 9218 section 8).
    pub(super) fn priority(&self) -> Priority {
        self.parameters().resolve()
    }

    pub(super) fn parameters(&self) -> PriorityParameters {
        self.client.overridden_by(&self.server)
    }

    /// Both ends' statements about the response's priority, which outlast the exchange.
    pub(super) fn into_said(self) -> Said {
        Said { client: self.client, server: self.server, extension: self.extension }
    }

    /// The priority of the response's stream.
    fn of_stream(&self) -> StreamPriority {
        if self.client.is_empty() && self.server.is_empty() {
            let mut priority = StreamPriority::default();
            priority.extension = self.extension.clone();
            return priority;
        }
        self.priority().of_stream(self.extension.clone())
    }

    /// Sets the priority of the response's stream and, once the response has begun, its protection.
    pub(super) fn apply_priority<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        defaults: &DefaultProtections,
    ) {
        quic.set_priority(id, self.of_stream());
        self.apply_protection(quic, id, defaults);
    }

    /// Changes the server's additional information for its scheduler.
    pub(super) fn set_extension<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        extension: Option<Extension>,
    ) {
        if self.extension != extension {
            self.extension = extension;
            quic.set_priority(id, self.of_stream());
        }
    }

    /// Begins the response; the final one carries its own priority. The stream has had its priority
    /// since the request came, and it is set again only if the response changes it: later requests
    /// may have redefined its classes meanwhile.
    pub(super) fn begin_response<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        own: Option<PriorityParameters>,
        defaults: &DefaultProtections,
    ) {
        self.responding = true;
        let own = own.unwrap_or_default();
        if own != self.server {
            let before = self.of_stream();
            self.server = own;
            let after = self.of_stream();
            if after != before {
                quic.set_priority(id, after);
            }
        }
        self.apply_protection(quic, id, defaults);
    }

    fn apply_protection<T: Transport>(
        &mut self,
        quic: &mut T,
        id: StreamId,
        defaults: &DefaultProtections,
    ) {
        let wish = if self.responding { self.wish(defaults) } else { None };
        let had_wish = std::mem::replace(&mut self.protected, wish.is_some());
        match wish {
            Some(protection) => quic.protect(id, protection),
            None if had_wish => quic.protect_by_default(id),
            None => {}
        }
    }

    /// The erasure coding of the response, unless the choice is the transport's.
    fn wish(&self, defaults: &DefaultProtections) -> Option<Option<Protection>> {
        let is_asked = self.client.burst.is_some() || self.server.burst.is_some();
        if !is_asked && defaults.is_empty() {
            return None;
        }
        defaults.protection(&self.parameters())
    }

    /// Handles a field section and returns the event for it.
    pub(super) fn on_section(
        &mut self,
        side: Side,
        config: &Config,
        stream: StreamId,
        fields: Fields,
    ) -> Result<Event, Fault> {
        if self.has_head() {
            message::check_trailers(&fields)?;
            self.receive.phase = Phase::Trailed;
            return Ok(Event::Trailers { stream, fields });
        }
        match side {
            Side::Server if self.late => {
                return Err(Fault::Stream(Code::REQUEST_REJECTED, "the server is going away"));
            }
            Side::Server => {
                let head = message::check_request(&fields)?;
                if head.extended && !config.enable_connect_protocol {
                    return Err(MessageError::UnexpectedPseudo.into());
                }
                if head.content_length.is_some_and(|length| length > config.max_body_size) {
                    return Err(Fault::TooLarge(TooLarge::Body));
                }
                self.method = head.method;
                self.receive.tunnel = head.method == Method::Connect;
                if !self.updated {
                    self.client = PriorityParameters::from_fields(&fields);
                }
                self.receive.begin_body(head.content_length);
            }
            Side::Client => {
                let head = message::check_response(&fields)?;
                if head.is_interim() {
                    return self.on_interim(stream, fields);
                }
                self.on_response(head);
            }
        }
        Ok(Event::Headers { stream, fields })
    }

    fn on_response(&mut self, head: ResponseHead) {
        let success = (200..300).contains(&head.status);
        self.receive.tunnel = self.method == Method::Connect && success;
        self.receive.begin_body(head.body_length(self.method));
    }

    fn on_interim(&mut self, stream: StreamId, fields: Fields) -> Result<Event, Fault> {
        self.interim += 1;
        if self.interim > MAX_INTERIM_RESPONSES {
            return Err(Fault::Stream(Code::EXCESSIVE_LOAD, "too many interim responses"));
        }
        Ok(Event::Interim { stream, fields })
    }
}
