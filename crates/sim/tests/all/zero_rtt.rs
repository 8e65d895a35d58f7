//! 0-RTT over paths that lose packets.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::{MS, address, link, linked};
use sutura_proto::crypto::null::{NullClientConfig, NullServerConfig};
use sutura_proto::{ClientConfig, Connection, ConnectionHandle, Dir, Read, ServerConfig, StreamId};
use sutura_sim::{App, AppError, Host, Network, NodeId};

const ONE_WAY: Duration = Duration::from_millis(20);
const SIZE: usize = 6000;

/// When all of a connection's first stream was read.
type Arrival = Arc<Mutex<Option<Instant>>>;

/// Reads the first stream.
struct Reader {
    arrival: Arrival,
    stream: Option<StreamId>,
    bytes: usize,
}

impl App<Connection> for Reader {
    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        self.stream = self.stream.or_else(|| quic.accept(Dir::Uni));
        let Some(id) = self.stream else { return Ok(None) };
        let mut buffer = [0; 4096];
        while let Ok(read) = quic.recv_stream(id).read(&mut buffer) {
            match read {
                Read::Data(n) => self.bytes += n,
                Read::Fin => {
                    assert_eq!(self.bytes, SIZE);
                    *self.arrival.lock().unwrap() = Some(now);
                    break;
                }
            }
        }
        Ok(None)
    }
}

/// Does nothing by itself.
struct Idle;

impl App<Connection> for Idle {
    fn poll(&mut self, _: Instant, _: &mut Connection) -> Result<Option<Instant>, AppError> {
        Ok(None)
    }
}

struct Path {
    network: Network,
    client: NodeId,
    config: ClientConfig,
    arrival: Arrival,
}

impl Path {
    fn new(seed: u64, loss: u64) -> Self {
        let alpn = vec![b"early".to_vec()];
        let arrival = Arrival::default();
        let of_server = arrival.clone();
        let accept = Box::new(move || {
            Box::new(Reader { arrival: of_server.clone(), stream: None, bytes: 0 }) as _
        });
        let server = ServerConfig::new(
            Arc::new(NullServerConfig::new(alpn.clone()).with_early_data()),
            Arc::default(),
        );
        let server = Host::server(Arc::new(server), accept, 2 * seed + 1);
        let path = link(&format!("rate=50mbit delay={}ms loss=bern:{loss}%", ONE_WAY.as_millis()));
        let (network, client, _) = linked(seed, &path, Host::client(2 * seed), server);
        let crypto = Arc::new(NullClientConfig::new(alpn).with_early_data());
        let config = ClientConfig::new(crypto, Arc::default());
        Self { network, client, config, arrival }
    }

    fn now(&self) -> Instant {
        self.network.clock().at(self.network.now())
    }

    fn host(&mut self) -> &mut Host {
        self.network.node_mut(self.client).unwrap()
    }

    fn connect(&mut self) -> ConnectionHandle {
        let (now, config) = (self.now(), self.config.clone());
        self.host().connect(now, config, address(2), "server.example", Idle).unwrap()
    }

    /// Makes a connection and ends it again, which leaves the client with a ticket.
    fn prepare(&mut self) {
        let handle = self.connect();
        let until = self.network.now() + Duration::from_secs(10);
        self.network.run_until(until).unwrap();
        let now = self.now();
        self.host().close(now, handle, 0, b"");
        while self.network.step().unwrap() {}
    }

    /// Opens a connection and sends a stream on it as soon as possible. Returns how long that took to
    /// arrive.
    fn send(&mut self, early: bool) -> Duration {
        let handle = self.connect();
        let start = self.now();
        if early {
            assert!(self.host().connection_mut(handle).unwrap().start_0rtt(start));
        }
        let mut written = false;
        loop {
            let connection = self.host().connection_mut(handle).unwrap();
            if !written && let Some(id) = connection.open(Dir::Uni) {
                assert_eq!(connection.send_stream(id).write(&[7; SIZE]), Ok(SIZE));
                connection.send_stream(id).finish().unwrap();
                written = true;
                self.network.flush().unwrap();
            }
            if let Some(at) = self.arrival.lock().unwrap().take() {
                return at - start;
            }
            assert!(self.network.step().unwrap(), "the stream stalled");
            assert!(self.now() - start < Duration::from_secs(60));
            let host = self.network.node::<Host>(self.client).unwrap();
            assert_eq!((host.connection_error(), host.app_error()), (None, None));
        }
    }
}

#[test]
fn what_is_sent_in_0rtt_arrives_before_a_round_trip() {
    let mut path = Path::new(1, 0);
    path.prepare();
    let (early, later) = (path.send(true), path.send(false));
    assert!((ONE_WAY..ONE_WAY + 5 * MS).contains(&early), "{early:?}");
    assert!((3 * ONE_WAY..3 * ONE_WAY + 10 * MS).contains(&later), "{later:?}");
}

#[test]
fn losses_delay_0rtt_no_more_than_the_handshake() {
    const SEEDS: u64 = 40;
    for loss in [1, 5, 15] {
        let (mut early, mut later, mut at_once) = (Duration::ZERO, Duration::ZERO, 0);
        for seed in 0..SEEDS {
            let mut path = Path::new(seed, loss);
            path.prepare();
            let took = path.send(true);
            at_once += u64::from(took < 2 * ONE_WAY);
            early += took;
            let mut path = Path::new(seed, loss);
            path.prepare();
            later += path.send(false);
        }
        assert!(early < later, "{loss}%: {early:?} with 0-RTT, {later:?} without");
        // The stream takes six packets.
        let lucky = (1.0 - loss as f64 / 100.0).powi(6) * SEEDS as f64;
        assert!(at_once as f64 > 0.6 * lucky, "{loss}%: {at_once} of {SEEDS} before a round trip");
    }
}
