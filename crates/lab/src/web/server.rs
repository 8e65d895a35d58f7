//! The server.

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::Bytes;
use sutura_h3::{self as h3, Event, Fields, SendError};
use sutura_proto::{Priority, StreamId};
use sutura_sim::{AppError, Pattern};

use super::news::News;
use super::{End, Http, Session, unexpected};

/// How many bytes of a body are generated at a time.
const CHUNK: usize = 16 * 1024;

/// How a server answers a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The header section.
    pub head: Fields,
    /// The index of the resource in its page, which determines the bytes of the body.
    pub number: usize,
    /// The size of the body.
    pub bytes: u64,
    /// The priority for the scheduler, if it says more than HTTP/3's.
    pub priority: Option<Priority>,
}

impl Reply {
    /// The response to a [described](super::Request::described) request, with the priority that it
    /// asks for; `None` if it is another request.
    #[must_use]
    pub fn described(request: &Fields) -> Option<Self> {
        let path = std::str::from_utf8(request.get(":path")?).ok()?;
        let (number, bytes) = path.strip_prefix('/')?.split_once('/')?;
        let (number, bytes) = (number.parse().ok()?, bytes.parse::<u64>().ok()?);
        let head = Fields::response(200).with("content-length", bytes.to_string());
        Some(Self { head, number, bytes, priority: None })
    }
}

/// A body that is being sent.
struct Body {
    pattern: Pattern,
    sent: u64,
    bytes: u64,
}

/// Generates the responses.
pub struct Server<F> {
    answer: F,
    bodies: BTreeMap<StreamId, Body>,
    /// Whether each body is sent in one DATA frame.
    announces: bool,
}

impl<F: FnMut(&Fields) -> Option<Reply> + 'static> Server<F> {
    /// The application. It fails if `answer` has no reply to a request.
    #[must_use]
    pub fn app(answer: F) -> Http<Self> {
        Self::made(answer, false)
    }

    /// The same, where each body is one DATA frame, so that it can be read in the order of arrival.
    #[must_use]
    pub fn announcing(answer: F) -> Http<Self> {
        Self::made(answer, true)
    }

    fn made(answer: F, announces: bool) -> Http<Self> {
        let server = Self { answer, bodies: BTreeMap::new(), announces };
        Http::new(h3::Connection::server(super::config()), server)
    }

    fn answer(
        &mut self,
        session: &mut Session<'_>,
        stream: StreamId,
        request: &Fields,
    ) -> Result<(), AppError> {
        let reply = (self.answer)(request);
        let reply = reply.ok_or_else(|| unexpected("request", format_args!("{request:?}")))?;
        let sent = session.http.send_response(&mut session.quic, stream, &reply.head, false);
        sent.map_err(|error| unexpected("response", error))?;
        if let Some(priority) = reply.priority {
            let told = session.quic.connection.send_stream(stream).set_priority(priority);
            told.map_err(|error| unexpected("priority", error))?;
        }
        if self.announces {
            // A new stream has room for the head and the header of a frame.
            let announced = session.http.announce_body(&mut session.quic, stream, reply.bytes);
            announced.map_err(|error| unexpected("body", error))?;
        }
        let pattern = Pattern::new(reply.number as u64);
        self.bodies.insert(stream, Body { pattern, sent: 0, bytes: reply.bytes });
        Ok(())
    }

    /// Sends as much of a body as there is room for.
    fn send(&mut self, session: &mut Session<'_>, stream: StreamId) -> Result<(), AppError> {
        let Some(body) = self.bodies.get_mut(&stream) else { return Ok(()) };
        while body.sent < body.bytes {
            let left = usize::try_from(body.bytes - body.sent).unwrap_or(CHUNK);
            let mut chunk = vec![0; left.min(CHUNK)];
            body.pattern.fill(body.sent, &mut chunk);
            let size = chunk.len() as u64;
            match session.http.send_body_chunk(&mut session.quic, stream, Bytes::from(chunk)) {
                Ok(()) => body.sent += size,
                Err(SendError::Blocked) => return Ok(()),
                Err(error) => return Err(unexpected("body", error)),
            }
        }
        self.bodies.remove(&stream);
        session.http.finish(&mut session.quic, stream).map_err(|error| unexpected("end", error))
    }
}

impl<F: FnMut(&Fields) -> Option<Reply> + 'static> End for Server<F> {
    fn on_event(&mut self, session: &mut Session<'_>, event: Event) -> Result<(), AppError> {
        match News::of(event, "request")? {
            News::Head { stream, fields } => self.answer(session, stream, &fields),
            News::End { .. } | News::Nothing => Ok(()),
            News::Body { .. } => Err(unexpected("request", "a body")),
        }
    }

    fn poll(&mut self, session: &mut Session<'_>) -> Result<Option<Instant>, AppError> {
        // The transport reports room only once there is a lot of it, so try after every event.
        let streams: Vec<StreamId> = self.bodies.keys().copied().collect();
        for stream in streams {
            self.send(session, stream)?;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Request;
    use super::*;

    #[test]
    fn a_described_request_is_understood() {
        let reply = Reply::described(&Request::described(3, 35_000).fields).unwrap();
        assert_eq!((reply.number, reply.bytes, reply.priority), (3, 35_000, None));
        for path in ["", "/", "/3", "3/4", "/3/4/5", "/x/4", "/3/-4"] {
            let request = Fields::request("GET", "https", "site.example", path);
            assert_eq!(Reply::described(&request), None, "{path}");
        }
    }
}
