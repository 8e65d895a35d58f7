//! The client.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sutura_h3::{self as h3, Event, Fields, Priority, ReceiveError, SendError};
use sutura_proto as quic;
use sutura_proto::StreamId;
use sutura_sim::{App, AppError, Quic};

use super::super::corpus::Page;
use super::super::requests::{Load, Requests};
use super::super::signals::chrome;
use crate::web::{pass_on, unexpected};

/// Bytes that are read at a time.
const READ_SIZE: usize = 16 * 1024;

/// Asks for what it finds in what it has.
pub(super) struct Browser {
    http: h3::Connection,
    page: Arc<Page>,
    requests: Requests,
    /// The resources under way, by stream.
    open: BTreeMap<StreamId, usize>,
    /// One that no stream was permitted for.
    waiting: Option<usize>,
    /// When the first request could be sent.
    started: Option<Instant>,
    buffer: Vec<u8>,
}

impl Browser {
    pub(super) fn new(page: &Arc<Page>) -> Self {
        Self {
            http: h3::Connection::client(h3::Config::default()),
            page: page.clone(),
            requests: Requests::new(page),
            open: BTreeMap::new(),
            waiting: None,
            started: None,
            buffer: vec![0; READ_SIZE],
        }
    }

    /// The times, once the page is complete.
    pub(super) fn load(&self) -> Option<Load> {
        self.requests.is_done().then(|| self.requests.load()).flatten()
    }

    fn request(&mut self, transport: &mut h3::Quic<'_>, at: Duration) -> Result<(), AppError> {
        while let Some(index) = self.waiting.take().or_else(|| self.requests.next(at)) {
            let (urgency, incremental) = chrome(&self.page.resources[index].resource);
            let priority = Priority { urgency, incremental, ..Priority::default() };
            let fields = Fields::request("GET", "https", "server.example", format!("/{index}"));
            match self.http.send_request(transport, &fields, Some(&priority), true) {
                Ok(stream) => {
                    self.open.insert(stream, index);
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

    fn read(
        &mut self,
        transport: &mut h3::Quic<'_>,
        stream: StreamId,
        at: Duration,
    ) -> Result<(), AppError> {
        let Some(&index) = self.open.get(&stream) else { return Ok(()) };
        loop {
            match self.http.read_body(transport, stream, &mut self.buffer) {
                // If the exchange is over, an event tells how.
                Ok(0) | Err(ReceiveError::Blocked | ReceiveError::UnknownStream) => return Ok(()),
                Ok(bytes) => self.requests.arrive(index, bytes as u64, at),
                Err(error) => return Err(unexpected("body", error)),
            }
        }
    }

    fn on_http(
        &mut self,
        transport: &mut h3::Quic<'_>,
        event: Event,
        at: Duration,
    ) -> Result<(), AppError> {
        match event {
            Event::Headers { stream, fields } if fields.status() != Some(200) => {
                Err(unexpected("status", format!("{:?} on {stream:?}", fields.status())))
            }
            Event::Headers { stream, .. } | Event::Data { stream } => {
                self.read(transport, stream, at)
            }
            Event::Finished { stream } => {
                let index = self.open.remove(&stream);
                match index.map(|index| self.requests.missing(index)) {
                    Some(0) => Ok(()),
                    missing => Err(unexpected("end", format!("{missing:?} bytes are missing"))),
                }
            }
            Event::Reset { code, .. } | Event::Failed { code, .. } => {
                Err(unexpected("response", code))
            }
            _ => Ok(()),
        }
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
        let started = *self.started.get_or_insert(now);
        let at = now.saturating_duration_since(started);
        let mut transport = h3::Quic { now, connection };
        self.http.process(&mut transport).map_err(|error| unexpected("HTTP/3", error))?;
        while let Some(event) = self.http.poll_event() {
            self.on_http(&mut transport, event, at)?;
        }
        self.request(&mut transport, at)?;
        let due = self.requests.next_due().filter(|_| self.waiting.is_none());
        Ok(due.map(|due| started + due))
    }
}
