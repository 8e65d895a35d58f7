//! HTTP/3 applications: a client that sends requests and changes their priorities at given times,
//! and a server that responds as requested.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use sutura_h3::{
    ALPN, Config, Connection as Http, Event as HttpEvent, Fields, Priority, PriorityParameters,
    Quic, SendError,
};
use sutura_proto::crypto::null::{NullClientConfig, NullServerConfig};
use sutura_proto::{
    ClientConfig, Connection, Event, ServerConfig, StreamEvent, StreamId, TransportConfig,
};
use sutura_sim::{App, AppError, Clock, Host, Network};

use super::link;

/// An action of the client.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Requests `length` bytes with the `priority` field `wish`. The response has the `priority`
    /// field `own`.
    Get { length: usize, wish: Option<&'static str>, own: Option<&'static str> },
    /// Sends a PRIORITY_UPDATE with `wish` for the request with this index.
    Update { index: usize, wish: &'static str },
}

/// A request for `length` bytes with the priority `wish`.
pub const fn get(length: usize, wish: &'static str) -> Act {
    Act::Get { length, wish: Some(wish), own: None }
}

fn broken(what: impl std::fmt::Debug) -> AppError {
    AppError(format!("{what:?}"))
}

fn tell(http: &mut Http, event: &Event) {
    match *event {
        Event::Stream(StreamEvent::Readable { id }) => http.readable(id),
        Event::Stream(StreamEvent::Writable { id }) => http.writable(id),
        _ => {}
    }
}

struct Client {
    http: Http,
    clock: Clock,
    script: VecDeque<(Duration, Act)>,
    streams: Vec<StreamId>,
    arrivals: Vec<(usize, usize)>,
    finished: usize,
}

impl Client {
    fn act(&mut self, quic: &mut Quic<'_>, act: Act) -> Result<(), AppError> {
        match act {
            Act::Get { length, wish, own } => {
                let mut fields = Fields::request("GET", "https", "a", format!("/{length}"));
                for (name, value) in [("priority", wish), ("own", own)] {
                    fields =
                        value.into_iter().fold(fields, |fields, value| fields.with(name, value));
                }
                let stream = self.http.send_request(quic, &fields, None, true).map_err(broken)?;
                self.streams.push(stream);
                Ok(())
            }
            Act::Update { index, wish } => {
                let priority = PriorityParameters::parse(wish.as_bytes()).unwrap_or_default();
                let priority: Priority = priority.resolve();
                let stream = self.streams[index];
                self.http.send_priority_update(quic, stream, &priority).map_err(broken)
            }
        }
    }

    fn read(&mut self, quic: &mut Quic<'_>, stream: StreamId) {
        let index = self.streams.iter().position(|s| *s == stream).unwrap_or(usize::MAX);
        let mut buffer = [0; 16 * 1024];
        while let Ok(n @ 1..) = self.http.read_body(quic, stream, &mut buffer) {
            self.arrivals.push((index, n));
        }
    }
}

impl App<Connection> for Client {
    fn on_event(&mut self, _: Instant, _: &mut Connection, event: Event) -> Result<(), AppError> {
        tell(&mut self.http, &event);
        Ok(())
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        if quic.is_handshaking() {
            return Ok(None);
        }
        let mut quic = Quic { now, connection: quic };
        self.http.process(&mut quic).map_err(broken)?;
        let due = |at: Duration| self.clock.at(at);
        let mut now_due = Vec::new();
        while self.script.front().is_some_and(|(at, _)| due(*at) <= now) {
            now_due.extend(self.script.pop_front());
        }
        for (_, act) in now_due {
            self.act(&mut quic, act)?;
        }
        while let Some(event) = self.http.poll_event() {
            match event {
                HttpEvent::Data { stream } => self.read(&mut quic, stream),
                HttpEvent::Finished { .. } => self.finished += 1,
                HttpEvent::Headers { .. } | HttpEvent::Settings(_) => {}
                other => return Err(broken(other)),
            }
        }
        Ok(self.script.front().map(|(at, _)| self.clock.at(*at)))
    }
}

struct Server {
    http: Http,
    /// The remaining bytes of each response body.
    bodies: BTreeMap<StreamId, usize>,
}

impl Server {
    fn answer(
        &mut self,
        quic: &mut Quic<'_>,
        stream: StreamId,
        request: &Fields,
    ) -> Result<(), AppError> {
        let path = String::from_utf8_lossy(request.get(":path").unwrap_or_default()).into_owned();
        let length = path.trim_start_matches('/').parse().map_err(broken)?;
        let mut head = Fields::response(200);
        if let Some(own) = request.get("own") {
            head = head.with("priority", own.to_vec());
        }
        self.http.send_response(quic, stream, &head, false).map_err(broken)?;
        self.bodies.insert(stream, length);
        Ok(())
    }

    /// Writes as much of the bodies as there is room for.
    fn write(&mut self, quic: &mut Quic<'_>) -> Result<(), AppError> {
        let mut complete = Vec::new();
        for (&stream, left) in &mut self.bodies {
            while *left > 0 {
                let chunk = [0; 4096];
                let chunk = &chunk[..chunk.len().min(*left)];
                match self.http.send_body(quic, stream, chunk) {
                    Ok(n) => *left -= n,
                    Err(SendError::Blocked) => break,
                    Err(error) => return Err(broken(error)),
                }
            }
            if *left == 0 {
                self.http.finish(quic, stream).map_err(broken)?;
                complete.push(stream);
            }
        }
        for stream in complete {
            self.bodies.remove(&stream);
        }
        Ok(())
    }
}

impl App<Connection> for Server {
    fn on_event(&mut self, _: Instant, _: &mut Connection, event: Event) -> Result<(), AppError> {
        tell(&mut self.http, &event);
        Ok(())
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        if quic.is_handshaking() {
            return Ok(None);
        }
        let mut quic = Quic { now, connection: quic };
        self.http.process(&mut quic).map_err(broken)?;
        while let Some(event) = self.http.poll_event() {
            match event {
                HttpEvent::Headers { stream, fields } => self.answer(&mut quic, stream, &fields)?,
                HttpEvent::Failed { .. } | HttpEvent::Reset { .. } => return Err(broken(event)),
                _ => {}
            }
        }
        self.write(&mut quic)?;
        Ok(None)
    }
}

/// The outcome of a script.
#[derive(Debug)]
pub struct Outcome {
    /// The pieces of body that arrived, in order: the index of the request and the number of bytes.
    pub arrivals: Vec<(usize, usize)>,
}

impl Outcome {
    /// The requests in the order in which their bytes arrived. A request appears again whenever its
    /// bytes follow those of another one.
    pub fn runs(&self) -> Vec<usize> {
        let mut runs: Vec<usize> = self.arrivals.iter().map(|(index, _)| *index).collect();
        runs.dedup();
        runs
    }

    /// The largest difference in received bytes between two requests until one of them is complete.
    pub fn spread(&self, a: usize, b: usize, length: usize) -> usize {
        let (mut got, mut spread) = ([0; 2], 0);
        for &(index, n) in &self.arrivals {
            let Some(at) = [a, b].iter().position(|x| *x == index) else { continue };
            got[at] += n;
            if got.contains(&length) {
                break;
            }
            spread = spread.max(usize::abs_diff(got[0], got[1]));
        }
        spread
    }
}

/// Runs a script over a link of 8 Mbit/s with a round-trip time of 20 ms. `up` holds further
/// settings of the link that carries the requests.
pub fn play(server: &TransportConfig, up: &str, script: &[(Duration, Act)]) -> Outcome {
    let clock = Clock::default();
    let mut network = Network::new(clock);
    let address = |host: u8| SocketAddr::from((Ipv4Addr::new(192, 0, 2, host), 4433));
    let alpn = || vec![ALPN.to_vec()];
    let config = ServerConfig {
        crypto: Arc::new(NullServerConfig::new(alpn())),
        transport: Arc::new(server.clone()),
    };
    let accept = Box::new(|| {
        let http = Http::server(Config::default());
        Box::new(Server { http, bodies: BTreeMap::new() }) as Box<dyn App<Connection>>
    });
    let client = network.add(address(1), Host::client(1));
    let server = network.add(address(2), Host::server(Arc::new(config), accept, 2));
    network.connect(client, server, &link(&format!("rate=8mbit delay=10ms {up}")), 3);
    network.connect(server, client, &link("rate=8mbit delay=10ms"), 4);
    let config = ClientConfig {
        crypto: Arc::new(NullClientConfig::new(alpn())),
        transport: Arc::new(TransportConfig::default()),
    };
    let app = Client {
        http: Http::client(Config::default()),
        clock,
        script: script.iter().copied().collect(),
        streams: Vec::new(),
        arrivals: Vec::new(),
        finished: 0,
    };
    let host = network.node_mut::<Host>(client).unwrap();
    let handle = host.connect(clock.at(Duration::ZERO), config, address(2), "a", app).unwrap();
    loop {
        assert!(network.step().unwrap() && network.now() < Duration::from_secs(60), "it stalls");
        for node in [client, server] {
            let host = network.node::<Host>(node).unwrap();
            assert_eq!((host.connection_error(), host.app_error()), (None, None));
        }
        let app = network.node::<Host>(client).unwrap().app::<Client>(handle).unwrap();
        if app.script.is_empty() && app.finished == app.streams.len() {
            return Outcome { arrivals: app.arrivals.clone() };
        }
    }
}
