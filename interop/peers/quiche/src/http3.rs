//! HTTP/3.

use crate::outgoing::Outgoing;
use crate::{Error, client, files, server};
use quiche::Connection;
use quiche::h3::{self, Config, Event, Header, NameValue};
use std::collections::{HashMap, VecDeque};

/// Bytes that are read at a time.
const CHUNK: usize = 65_536;

/// The requests of a connection.
pub struct Client {
    config: Config,
    http: Option<h3::Connection>,
    waiting: VecDeque<String>,
    fetches: HashMap<u64, Fetch>,
    buffer: Vec<u8>,
}

struct Fetch {
    path: String,
    body: Vec<u8>,
}

impl Client {
    pub fn new(paths: VecDeque<String>) -> Result<Self, Error> {
        Ok(Self {
            config: Config::new()?,
            http: None,
            waiting: paths,
            fetches: HashMap::new(),
            buffer: vec![0; CHUNK],
        })
    }

    fn on_event(
        &mut self,
        http: &mut h3::Connection,
        connection: &mut Connection,
        stream: u64,
        event: Event,
    ) -> Result<(), Error> {
        let Some(fetch) = self.fetches.get_mut(&stream) else { return Ok(()) };
        match event {
            Event::Headers { list, .. } => match value(&list, b":status") {
                Some("200") => {}
                status => return Err(format!("{}: status {status:?}", fetch.path).into()),
            },
            Event::Data => {
                while let Ok(len) = http.recv_body(connection, stream, &mut self.buffer) {
                    fetch.body.extend_from_slice(&self.buffer[..len]);
                }
            }
            Event::Finished => {
                files::save(&fetch.path, &fetch.body)?;
                self.fetches.remove(&stream);
            }
            Event::Reset(code) => return Err(format!("{}: reset: {code:#x}", fetch.path).into()),
            Event::PriorityUpdate | Event::GoAway => {}
        }
        Ok(())
    }

    /// Sends as many requests as the connection takes.
    fn send_requests(
        &mut self,
        http: &mut h3::Connection,
        connection: &mut Connection,
    ) -> Result<(), Error> {
        while let Some(path) = self.waiting.front()
            && connection.peer_streams_left_bidi() > 0
        {
            let fields = [
                (":method", "GET"),
                (":scheme", "https"),
                (":authority", "localhost"),
                (":path", path),
            ];
            let request =
                fields.map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes()));
            match http.send_request(connection, &request, true) {
                Ok(stream) => {
                    let fetch = Fetch { path: path.clone(), body: Vec::new() };
                    self.fetches.insert(stream, fetch);
                    self.waiting.pop_front();
                }
                Err(h3::Error::StreamBlocked | h3::Error::Done) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl client::Fetch for Client {
    fn advance(&mut self, connection: &mut Connection) -> Result<(), Error> {
        let mut http = match self.http.take() {
            Some(http) => http,
            None => h3::Connection::with_transport(connection, &self.config)?,
        };
        self.send_requests(&mut http, connection)?;
        while let Some((stream, event)) = poll(&mut http, connection)? {
            self.on_event(&mut http, connection, stream, event)?;
        }
        self.http = Some(http);
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.fetches.is_empty()
    }
}

/// The responses of a connection.
pub struct Server {
    config: Config,
    http: Option<h3::Connection>,
    responses: HashMap<u64, Response>,
}

struct Response {
    /// The headers of the response, until they have been sent.
    headers: Option<Vec<Header>>,
    body: Outgoing,
}

impl Response {
    fn to(request: &[Header]) -> Self {
        let body = value(request, b":path").ok_or("no path".into()).and_then(files::read);
        let status: &[u8] = if body.is_ok() { b"200" } else { b"404" };
        let body = body.unwrap_or_default();
        let length = body.len().to_string();
        let headers = vec![
            Header::new(b":status", status),
            Header::new(b"content-length", length.as_bytes()),
        ];
        Self { headers: Some(headers), body: Outgoing::new(body) }
    }

    /// Sends as much as the connection takes.
    fn send(
        &mut self,
        http: &mut h3::Connection,
        connection: &mut Connection,
        stream: u64,
    ) -> Result<(), h3::Error> {
        if let Some(headers) = &self.headers {
            http.send_response(connection, stream, headers, false)?;
            self.headers = None;
        }
        self.body.send_with(|rest| http.send_body(connection, stream, rest, true))
    }
}

impl Server {
    pub fn new() -> Result<Self, Error> {
        Ok(Self { config: Config::new()?, http: None, responses: HashMap::new() })
    }
}

impl server::Serve for Server {
    fn advance(&mut self, connection: &mut Connection) -> Result<(), Error> {
        let mut http = match self.http.take() {
            Some(http) => http,
            None => h3::Connection::with_transport(connection, &self.config)?,
        };
        while let Some((stream, event)) = poll(&mut http, connection)? {
            if let Event::Headers { list, .. } = event {
                self.responses.insert(stream, Response::to(&list));
            }
        }
        self.responses.retain(|stream, response| {
            match response.send(&mut http, connection, *stream) {
                Ok(()) | Err(h3::Error::Done | h3::Error::StreamBlocked) => {
                    !response.body.is_ended()
                }
                // The client no longer wants the response.
                Err(_) => false,
            }
        });
        self.http = Some(http);
        Ok(())
    }
}

/// The next event, if there is one.
fn poll(
    http: &mut h3::Connection,
    connection: &mut Connection,
) -> Result<Option<(u64, Event)>, Error> {
    match http.poll(connection) {
        Ok(event) => Ok(Some(event)),
        Err(h3::Error::Done) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The value of a field.
fn value<'a>(headers: &'a [Header], name: &[u8]) -> Option<&'a str> {
    let header = headers.iter().find(|header| header.name() == name)?;
    str::from_utf8(header.value()).ok()
}
