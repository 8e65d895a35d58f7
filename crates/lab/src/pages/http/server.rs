//! The server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use sutura_h3::{self as h3, Event, Fields, SendError};
use sutura_proto as quic;
use sutura_proto::StreamId;
use sutura_sim::{App, AppError};

use super::super::corpus::Page;
use super::super::priority;
use crate::web::{pass_on, unexpected};

/// What all bodies are made of.
static ZEROS: [u8; 16 * 1024] = [0; 16 * 1024];

/// Answers the client, and tells the scheduler all that is known of a resource.
pub(super) struct Origin {
    http: h3::Connection,
    page: Arc<Page>,
    /// Bytes that have not been sent, by stream.
    replies: BTreeMap<StreamId, u64>,
}

impl Origin {
    pub(super) fn new(page: Arc<Page>) -> Self {
        Self { http: h3::Connection::server(h3::Config::default()), page, replies: BTreeMap::new() }
    }

    fn answer(
        &mut self,
        transport: &mut h3::Quic<'_>,
        stream: StreamId,
        request: &Fields,
    ) -> Result<(), AppError> {
        let path = request.get(":path").and_then(|path| std::str::from_utf8(path).ok());
        let index = path.and_then(|path| path.strip_prefix('/')?.parse::<usize>().ok());
        let resource = index.and_then(|index| self.page.resources.get(index));
        let resource = resource.ok_or_else(|| unexpected("request", format!("{path:?}")))?;
        let sent = self.http.send_response(transport, stream, &Fields::response(200), false);
        sent.map_err(|error| unexpected("response", error))?;
        // Says more than the request does, which HTTP/3 has gone by.
        let told = transport.connection.send_stream(stream).set_priority(priority(resource));
        told.map_err(|error| unexpected("priority", error))?;
        self.replies.insert(stream, resource.bytes);
        self.send(transport, stream)
    }

    /// Sends what finds room.
    fn send(&mut self, transport: &mut h3::Quic<'_>, stream: StreamId) -> Result<(), AppError> {
        let Some(left) = self.replies.get_mut(&stream) else { return Ok(()) };
        while *left > 0 {
            let size = usize::try_from(*left).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
            let chunk = Bytes::from_static(&ZEROS[..size]);
            match self.http.send_body_chunk(transport, stream, chunk) {
                Ok(()) => *left -= size as u64,
                Err(SendError::Blocked) => return Ok(()),
                Err(error) => return Err(unexpected("body", error)),
            }
        }
        self.replies.remove(&stream);
        self.http.finish(transport, stream).map_err(|error| unexpected("end", error))
    }
}

impl App<quic::Connection> for Origin {
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
        let mut transport = h3::Quic { now, connection };
        self.http.process(&mut transport).map_err(|error| unexpected("HTTP/3", error))?;
        while let Some(event) = self.http.poll_event() {
            match event {
                Event::Headers { stream, fields } => {
                    self.answer(&mut transport, stream, &fields)?;
                }
                Event::Writable { stream } => self.send(&mut transport, stream)?,
                Event::Reset { code, .. }
                | Event::Stopped { code, .. }
                | Event::Failed { code, .. } => return Err(unexpected("request", code)),
                _ => {}
            }
        }
        Ok(None)
    }
}
