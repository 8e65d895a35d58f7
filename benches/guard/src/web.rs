//! Requests and answers over HTTP/3 on a pair.

use crate::Error;
use crate::load::{ANSWER, Load};
use crate::pair::Pair;
use sutura_h3::{Code, Config, Connection, Event, Fields, Quic, ReceiveError};
use sutura_proto::{Event as QuicEvent, Side, StreamEvent};

/// A client that asks and a server that answers.
#[derive(Debug)]
pub struct Web {
    pair: Pair,
    client: Client,
    server: Server,
}

#[derive(Debug)]
struct Client {
    http: Connection,
    /// Answers that are complete.
    finished: usize,
    /// Bytes of bodies.
    received: usize,
}

#[derive(Debug)]
struct Server {
    http: Connection,
}

/// Passes the events of streams to HTTP/3, and lets it work.
fn process(
    http: &mut Connection,
    quic: &mut Quic<'_>,
    events: impl IntoIterator<Item = QuicEvent>,
) -> Result<(), Error> {
    for event in events {
        match event {
            QuicEvent::Stream(StreamEvent::Readable { id }) => http.readable(id),
            QuicEvent::Stream(StreamEvent::Writable { id }) => http.writable(id),
            QuicEvent::Stream(StreamEvent::Stopped { id, code }) => http.stopped(id, Code(code)),
            _ => {}
        }
    }
    Ok(http.process(quic)?)
}

impl Client {
    fn ask(&mut self, quic: &mut Quic<'_>) -> Result<(), Error> {
        let fields = Fields::request("GET", "https", "example.org", "/index.html")
            .with("user-agent", "guard/1.0")
            .with("accept", "*/*");
        self.http.send_request(quic, &fields, None, true)?;
        Ok(())
    }

    fn work(&mut self, quic: &mut Quic<'_>, events: Vec<QuicEvent>) -> Result<(), Error> {
        process(&mut self.http, quic, events)?;
        while let Some(event) = self.http.poll_event() {
            match event {
                Event::Data { stream } => {
                    let mut buffer = [0; 2 * ANSWER];
                    loop {
                        match self.http.read_body(quic, stream, &mut buffer) {
                            Ok(0) | Err(ReceiveError::Blocked | ReceiveError::UnknownStream) => {
                                break;
                            }
                            Ok(bytes) => self.received += bytes,
                            Err(error) => return Err(error.into()),
                        }
                    }
                }
                Event::Finished { .. } => self.finished += 1,
                _ => {}
            }
        }
        Ok(())
    }
}

impl Server {
    fn work(&mut self, quic: &mut Quic<'_>, events: Vec<QuicEvent>) -> Result<(), Error> {
        process(&mut self.http, quic, events)?;
        while let Some(event) = self.http.poll_event() {
            if let Event::Headers { stream, .. } = event {
                let fields = Fields::response(200)
                    .with("content-type", "text/html")
                    .with("content-length", "1000");
                self.http.send_response(quic, stream, &fields, false)?;
                self.http.send_body(quic, stream, &[b'x'; ANSWER])?;
                self.http.finish(quic, stream)?;
            }
        }
        Ok(())
    }
}

impl Web {
    /// HTTP/3 on a pair whose handshake may be under way.
    pub fn new(pair: Pair) -> Self {
        let meter = pair.meter;
        let made = meter.run(Side::Client, || Some(Connection::client(Config::default())));
        let client = made.unwrap_or_else(|| Connection::client(Config::default()));
        let made = meter.run(Side::Server, || Some(Connection::server(Config::default())));
        let server = made.unwrap_or_else(|| Connection::server(Config::default()));
        Self {
            pair,
            client: Client { http: client, finished: 0, received: 0 },
            server: Server { http: server },
        }
    }

    /// Lets HTTP/3 work at a side, if there is a connection.
    fn work_at(&mut self, side: Side) -> Result<(), Error> {
        let now = self.pair.now;
        let end = self.pair.end(side);
        let events: Vec<_> = std::iter::from_fn(|| end.poll_event()).collect();
        if end.connection().is_err() {
            return Ok(());
        }
        let (client, server) = (&mut self.client, &mut self.server);
        self.pair.work(side, |connection| {
            let mut quic = Quic { now, connection };
            match side {
                Side::Client => client.work(&mut quic, events),
                Side::Server => server.work(&mut quic, events),
            }
        })
    }
}

impl Load for Web {
    fn pair(&mut self) -> &mut Pair {
        &mut self.pair
    }

    fn work(&mut self) -> Result<(), Error> {
        self.work_at(Side::Client)?;
        self.work_at(Side::Server)
    }

    fn send(&mut self) -> Result<(), Error> {
        let (now, client) = (self.pair.now, &mut self.client);
        self.pair.work(Side::Client, |connection| client.ask(&mut Quic { now, connection }))
    }

    fn answered(&self) -> usize {
        self.client.finished
    }

    fn received(&self) -> usize {
        self.client.received
    }
}
