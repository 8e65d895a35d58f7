//! The server.

use std::time::Instant;

use bytes::Bytes;
use sutura_h3::{self as h3, Event, Fields, SendError};
use sutura_proto as quic;
use sutura_proto::StreamId;
use sutura_sim::{App, AppError, Quic};

use super::{Coverage, Place, pass_on, unexpected};

/// Bytes that are made at a time.
const CHUNK: u64 = 16 * 1024;

struct Reply {
    stream: StreamId,
    place: Place,
    sent: u64,
}

impl Reply {
    /// Sends what finds room. Returns whether that was the rest.
    fn poll(
        &mut self,
        http: &mut h3::Connection,
        transport: &mut h3::Quic<'_>,
    ) -> Result<bool, AppError> {
        while self.sent < self.place.bytes {
            let n = CHUNK.min(self.place.bytes - self.sent);
            let mut chunk = vec![0; n as usize];
            self.place.pattern().fill(self.sent, &mut chunk);
            match http.send_body_chunk(transport, self.stream, Bytes::from(chunk)) {
                Ok(()) => self.sent += n,
                Err(SendError::Blocked) => return Ok(false),
                Err(error) => return Err(unexpected("body", error)),
            }
        }
        let finished = http.finish(transport, self.stream);
        finished.map_err(|error| unexpected("body", error))?;
        Ok(true)
    }
}

/// Answers [`Browser`](super::Browser), with the priority and the protection that it asks for.
pub struct Site {
    http: h3::Connection,
    replies: Vec<Reply>,
    coverage: Option<Coverage>,
}

impl Site {
    /// Tells `coverage` what its connection sends.
    #[must_use]
    pub fn new(coverage: Coverage) -> Self {
        Self {
            http: h3::Connection::server(h3::Config::default()),
            replies: Vec::new(),
            coverage: Some(coverage),
        }
    }

    fn answer(
        &mut self,
        transport: &mut h3::Quic<'_>,
        stream: StreamId,
        fields: &Fields,
    ) -> Result<(), AppError> {
        let place = fields.get(":path").and_then(Place::parse);
        let place = place.ok_or_else(|| unexpected("request", format_args!("{fields:?}")))?;
        let response = Fields::response(200).with("content-length", place.bytes.to_string());
        let sent = self.http.send_response(transport, stream, &response, false);
        sent.map_err(|error| unexpected("response", error))?;
        self.replies.push(Reply { stream, place, sent: 0 });
        Ok(())
    }
}

impl App<quic::Connection> for Site {
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
        if let Some(coverage) = self.coverage.take() {
            connection.set_observer(now, Box::new(coverage));
        }
        if !connection.is_established() {
            return Ok(None);
        }
        let transport = &mut h3::Quic { now, connection };
        self.http.process(transport).map_err(|error| unexpected("HTTP/3", error))?;
        while let Some(event) = self.http.poll_event() {
            match event {
                Event::Headers { stream, fields } => self.answer(transport, stream, &fields)?,
                Event::Reset { .. } | Event::Failed { .. } | Event::Stopped { .. } => {
                    return Err(unexpected("request", format_args!("{event:?}")));
                }
                _ => {}
            }
        }
        let mut i = 0;
        while let Some(reply) = self.replies.get_mut(i) {
            if reply.poll(&mut self.http, transport)? {
                self.replies.remove(i);
            } else {
                i += 1;
            }
        }
        Ok(None)
    }
}
