//! HTTP/0.9, as the interop runner does it.

use crate::outgoing::Outgoing;
use crate::{Error, client, files, server};
use quiche::Connection;
use std::collections::{HashMap, VecDeque};

/// Bytes of a request.
const MAX_REQUEST: usize = 4096;

/// Bytes that are read at a time.
const CHUNK: usize = 65_536;

/// The distance between the numbers of bidirectional streams of a client (RFC 9000 section 2.1).
const STREAM_STEP: u64 = 4;

/// The requests of a connection.
pub struct Client {
    waiting: VecDeque<String>,
    next_stream: u64,
    fetches: HashMap<u64, Fetch>,
    buffer: Vec<u8>,
}

struct Fetch {
    path: String,
    request: Outgoing,
    body: Vec<u8>,
}

impl Client {
    pub fn new(paths: VecDeque<String>) -> Self {
        let buffer = vec![0; CHUNK];
        Self { waiting: paths, next_stream: 0, fetches: HashMap::new(), buffer }
    }

    /// Saves the files of streams that are at their end without being readable: quiche does not call a stream
    /// readable if the end comes with a repetition of bytes that were read already.
    fn save_finished(&mut self, connection: &Connection) -> Result<(), Error> {
        let is_finished = |stream: &u64, fetch: &mut Fetch| {
            fetch.request.is_ended() && connection.stream_finished(*stream)
        };
        for (_, fetch) in self.fetches.extract_if(is_finished) {
            files::save(&fetch.path, &fetch.body)?;
        }
        Ok(())
    }

    /// Reads the available bytes of a stream. Saves the file if they were the last bytes.
    fn receive(&mut self, connection: &mut Connection, stream: u64) -> Result<(), Error> {
        let Some(fetch) = self.fetches.get_mut(&stream) else { return Ok(()) };
        loop {
            match connection.stream_recv(stream, &mut self.buffer) {
                Ok((len, ended)) => {
                    fetch.body.extend_from_slice(&self.buffer[..len]);
                    if ended {
                        files::save(&fetch.path, &fetch.body)?;
                        self.fetches.remove(&stream);
                        return Ok(());
                    }
                }
                Err(quiche::Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl client::Fetch for Client {
    fn advance(&mut self, connection: &mut Connection) -> Result<(), Error> {
        let allowed = usize::try_from(connection.peer_streams_left_bidi())?;
        for path in self.waiting.drain(..allowed.min(self.waiting.len())) {
            let request = Outgoing::new(format!("GET {path}\r\n").into_bytes());
            self.fetches.insert(self.next_stream, Fetch { path, request, body: Vec::new() });
            self.next_stream += STREAM_STEP;
        }
        // A stream counts as opened once data was written to it, so lower streams have to come first.
        let mut unsent: Vec<_> =
            self.fetches.iter_mut().filter(|(_, fetch)| !fetch.request.is_ended()).collect();
        unsent.sort_by_key(|(stream, _)| **stream);
        for (stream, fetch) in unsent {
            fetch.request.send(connection, *stream)?;
        }
        for stream in connection.readable() {
            self.receive(connection, stream)?;
        }
        self.save_finished(connection)
    }

    fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.fetches.is_empty()
    }
}

/// The requests that a connection has received, and the data that is still to be sent.
#[derive(Default)]
pub struct Server {
    requests: HashMap<u64, Vec<u8>>,
    responses: HashMap<u64, Outgoing>,
}

impl Server {
    /// Reads a request. Returns whether the request is complete.
    fn receive(&mut self, connection: &mut Connection, stream: u64) -> Result<bool, Error> {
        let request = self.requests.entry(stream).or_default();
        let mut buffer = [0; MAX_REQUEST];
        loop {
            match connection.stream_recv(stream, &mut buffer) {
                Ok((len, ended)) if request.len() + len <= MAX_REQUEST => {
                    request.extend_from_slice(&buffer[..len]);
                    if ended {
                        return Ok(true);
                    }
                }
                Ok(_) => return Err("a request that is too long".into()),
                Err(quiche::Error::Done) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Answers a request, if it is complete.
    fn answer(&mut self, connection: &mut Connection, stream: u64) -> Result<(), Error> {
        if self.receive(connection, stream)? {
            let request = self.requests.remove(&stream).unwrap_or_default();
            let path = str::from_utf8(&request)?.trim().strip_prefix("GET ").ok_or("no GET")?;
            self.responses.insert(stream, Outgoing::new(files::read(path)?));
        }
        Ok(())
    }
}

impl server::Serve for Server {
    fn advance(&mut self, connection: &mut Connection) -> Result<(), Error> {
        for stream in connection.readable() {
            if let Err(error) = self.answer(connection, stream) {
                eprintln!("quiche: request {stream}: {error}");
                self.requests.remove(&stream);
                server::refuse(connection, stream);
            }
        }
        self.responses.retain(|stream, response| {
            // An error means that the client no longer wants the response.
            response.send(connection, *stream).is_ok() && !response.is_ended()
        });
        Ok(())
    }
}
