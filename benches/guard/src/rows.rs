//! The rows that are measured.

use crate::Error;
use crate::bulk::Bulk;
use crate::exchange::Exchanges;
use crate::gauge::{Gauge, Meter};
use crate::load::{Load, in_turn, play};
use crate::loopback;
use crate::pair::{Pair, REST};
use crate::sockets;
use crate::web::Web;
use std::sync::Arc;
use std::time::Duration;
use sutura_proto::policy::{Auto, Block};
use sutura_proto::{Protection, Scheme, Side, TransportConfig};

/// The kind of cost that is counted in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The cost of work.
    Work,
    /// The memory that is held afterwards.
    State,
}

/// One measurement at one side.
#[derive(Debug)]
pub struct Row {
    /// The name, which says what is measured and at which side.
    pub name: &'static str,
    side: Side,
    /// The kind of cost.
    pub kind: Kind,
    scene: fn(Meter) -> Result<u64, Error>,
}

impl Row {
    const fn work(name: &'static str, side: Side, scene: fn(Meter) -> Result<u64, Error>) -> Self {
        Self { name, side, kind: Kind::Work, scene }
    }

    const fn state(name: &'static str, side: Side, scene: fn(Meter) -> Result<u64, Error>) -> Self {
        Self { name, side, kind: Kind::State, scene }
    }

    /// Plays the scene, measures the work of its side, and returns how many times the measured work was done.
    ///
    /// # Errors
    /// The scene does not come to its end.
    pub fn run(&self, gauge: Gauge) -> Result<u64, Error> {
        (self.scene)(Meter::new(self.side, gauge))
    }
}

/// All rows. Their names are the names in the table.
pub const ROWS: &[Row] = &[
    Row::work("handshake at the client", Side::Client, handshake),
    Row::work("handshake at the server", Side::Server, handshake),
    Row::work("request alone at the client", Side::Client, |meter| requests(meter, 1, EPS)),
    Row::work("request alone at the server", Side::Server, |meter| requests(meter, 1, EPS)),
    Row::work("request alone at the server by hmm", Side::Server, |meter| requests(meter, 1, HMM)),
    Row::work("request alone at the server by hls", Side::Server, |meter| requests(meter, 1, HLS)),
    Row::work("request in turn at the client", Side::Client, |meter| {
        in_turn(Web::new(plain(meter)?))
    }),
    Row::work("request in turn at the server", Side::Server, |meter| {
        in_turn(Web::new(plain(meter)?))
    }),
    Row::work("request among 100 at the client", Side::Client, |meter| requests(meter, 100, EPS)),
    Row::work("request among 100 at the server", Side::Server, |meter| requests(meter, 100, EPS)),
    Row::work("request among 100 at the server by hmm", Side::Server, |m| requests(m, 100, HMM)),
    Row::work("request among 100 at the server by hls", Side::Server, |m| requests(m, 100, HLS)),
    Row::work("request among 1000 at the client", Side::Client, |meter| requests(meter, 1000, EPS)),
    Row::work("request among 1000 at the server", Side::Server, |meter| requests(meter, 1000, EPS)),
    Row::work("exchange alone at the client", Side::Client, |meter| exchanges(meter, 1)),
    Row::work("exchange alone at the server", Side::Server, |meter| exchanges(meter, 1)),
    Row::work("exchange in turn at the client", Side::Client, |m| {
        in_turn(Exchanges::new(plain(m)?))
    }),
    Row::work("exchange in turn at the server", Side::Server, |m| {
        in_turn(Exchanges::new(plain(m)?))
    }),
    Row::work("exchange among 100 at the client", Side::Client, |meter| exchanges(meter, 100)),
    Row::work("exchange among 100 at the server", Side::Server, |meter| exchanges(meter, 100)),
    Row::work("exchange among 1000 at the client", Side::Client, |meter| exchanges(meter, 1000)),
    Row::work("exchange among 1000 at the server", Side::Server, |meter| exchanges(meter, 1000)),
    Row::work("loopback exchange in turn at the client", Side::Client, |m| loopback::untuned(m, 1)),
    Row::work("loopback exchange in turn at the server", Side::Server, |m| loopback::untuned(m, 1)),
    Row::work("loopback exchange among 100 at the client", Side::Client, |m| {
        loopback::untuned(m, 100)
    }),
    Row::work("loopback exchange among 100 at the server", Side::Server, |m| {
        loopback::untuned(m, 100)
    }),
    Row::work("tuned loopback exchange in turn at the client", Side::Client, |m| {
        loopback::tuned(m, 1)
    }),
    Row::work("tuned loopback exchange in turn at the server", Side::Server, |m| {
        loopback::tuned(m, 1)
    }),
    Row::work("tuned loopback exchange among 100 at the client", Side::Client, |m| {
        loopback::tuned(m, 100)
    }),
    Row::work("tuned loopback exchange among 100 at the server", Side::Server, |m| {
        loopback::tuned(m, 100)
    }),
    Row::work("exchange in turn over sockets at both ends", Side::Client, sockets::exchanges),
    Row::work("bulk packet sent", Side::Client, |meter| bulk(meter, None, EPS)),
    Row::work("bulk packet sent by hmm", Side::Client, |meter| bulk(meter, None, HMM)),
    Row::work("bulk packet sent by hls", Side::Client, |meter| bulk(meter, None, HLS)),
    Row::work("bulk packet received", Side::Server, |meter| bulk(meter, None, EPS)),
    Row::work("bulk packet sent with auto", Side::Client, |m| bulk(m, auto(), EPS)),
    Row::work("bulk packet received with auto", Side::Server, |m| bulk(m, auto(), EPS)),
    Row::work("protected bulk packet sent", Side::Client, |m| bulk(m, protection(), EPS)),
    Row::work("protected bulk packet received", Side::Server, |m| bulk(m, protection(), EPS)),
    Row::work("bulk packet sent in blocks", Side::Client, |m| bulk(m, blocks(), EPS)),
    Row::work("bulk packet received in blocks", Side::Server, |m| bulk(m, blocks(), EPS)),
    Row::work("look with nothing to do", Side::Client, looks),
    Row::work("probe timeout", Side::Client, probes),
    Row::state("half-open connection at the server", Side::Server, half_open),
    Row::state("idle connection at the client", Side::Client, idle),
    Row::state("idle connection at the server", Side::Server, idle),
    Row::state("idle connection with HTTP/3 at the client", Side::Client, idle_web),
    Row::state("idle connection with HTTP/3 at the server", Side::Server, idle_web),
];

/// The default scheduler, and the schedulers that are compared with it without weights or classes.
const EPS: Scheme = Scheme::EPS;
const HMM: Scheme = Scheme::HMM;
const HLS: Scheme = Scheme::HLS;

/// The default settings with a scheduler.
fn scheduled(scheme: Scheme) -> TransportConfig {
    TransportConfig::default().with_scheduler(Arc::new(scheme))
}

/// A repair symbol where the application has no more data: each packet is a source symbol.
fn protection() -> Option<Protection> {
    Some(Protection::tail(1, Duration::ZERO))
}

/// What streams have by default, which finds nothing to protect.
fn auto() -> Option<Protection> {
    Some(Protection::new(Arc::new(Auto::default())))
}

/// One repair symbol after every ten packets, which count as well.
fn blocks() -> Option<Protection> {
    Some(Protection::new(Arc::new(Block::new(10, 1)?)))
}

/// A pair with the default settings after its handshake, with the meter switched off.
fn plain(meter: Meter) -> Result<Pair, Error> {
    Pair::connected(&TransportConfig::default(), meter)
}

/// Handshakes, until they are completely over.
fn handshake(meter: Meter) -> Result<u64, Error> {
    const HANDSHAKES: u64 = 20;
    let transport = TransportConfig::default();
    for _ in 0..HANDSHAKES {
        let mut pair = Pair::new(&transport, meter)?;
        pair.pass(REST);
        for side in [Side::Client, Side::Server] {
            if pair.end(side).connection()?.is_handshaking() {
                return Err("a handshake does not end".into());
            }
        }
    }
    Ok(HANDSHAKES)
}

/// Requests with answers of 1 kB, `at_once` at a time, on a connection that has answered some before. Each
/// round goes on until all data is acknowledged.
fn requests(meter: Meter, at_once: usize, scheme: Scheme) -> Result<u64, Error> {
    let pair = Pair::connected(&with_streams(scheduled(scheme), at_once), meter)?;
    play(Web::new(pair), at_once)
}

/// The same on streams without HTTP/3.
fn exchanges(meter: Meter, at_once: usize) -> Result<u64, Error> {
    let pair = Pair::connected(&with_streams(TransportConfig::default(), at_once), meter)?;
    play(Exchanges::new(pair), at_once)
}

/// Settings that allow this many requests at once. The limit is raised by several streams at a time, and is a
/// little lower in between.
pub fn with_streams(transport: TransportConfig, at_once: usize) -> TransportConfig {
    transport.with_max_concurrent_bidi_streams(100.max(2 * at_once as u64))
}

/// A packet of a long stream without losses. The sender's cost includes the handling of acknowledgements, the
/// receiver's the sending of them.
fn bulk(meter: Meter, protection: Option<Protection>, scheme: Scheme) -> Result<u64, Error> {
    const BYTES: usize = 4 << 20;
    const PRACTICE: usize = 1 << 20;
    let mut bulk = Bulk::new(Pair::connected(&scheduled(scheme), meter)?, protection, BYTES)?;
    bulk.until(PRACTICE)?;
    let sent = bulk.pair.client.sent;
    bulk.pair.meter.switch(true);
    bulk.until(BYTES)?;
    Ok(bulk.pair.client.sent - sent)
}

/// Looks at the timers and for data to send while no timer is due and no data waits.
fn looks(meter: Meter) -> Result<u64, Error> {
    const LOOKS: u64 = 1000;
    let mut pair = Pair::connected(&TransportConfig::default(), meter)?;
    pair.meter.switch(true);
    let now = pair.now;
    let mut out = Vec::with_capacity(1 << 16);
    for _ in 0..LOOKS {
        pair.work(Side::Client, |connection| {
            connection.handle_timeout(now);
            if connection.poll_transmit(now, 1, &mut out).is_some() {
                return Err("there was something to send".into());
            }
            connection.poll_timeout().map(drop).ok_or_else(|| "no timer is set".into())
        })?;
    }
    Ok(LOOKS)
}

/// A timer that is due, and the probes that it has sent.
fn probes(meter: Meter) -> Result<u64, Error> {
    let transport = TransportConfig::default().with_max_idle_timeout(None);
    Pair::connected(&transport, meter)?.probe(Side::Client)
}

/// The server has answered the client's first datagram, and has not heard of the client since.
fn half_open(meter: Meter) -> Result<u64, Error> {
    let mut pair = Pair::new(&TransportConfig::default(), meter)?;
    while pair.server.sent == 0 {
        if !pair.step(pair.now + REST) {
            return Err("the server does not answer".into());
        }
        pair.transmit(Side::Server);
    }
    Ok(1)
}

/// The handshake is over, and no data was sent since.
fn idle(meter: Meter) -> Result<u64, Error> {
    let mut pair = Pair::new(&TransportConfig::default(), meter)?;
    pair.pass(REST);
    Ok(1)
}

/// One request has been answered.
fn idle_web(meter: Meter) -> Result<u64, Error> {
    let mut pair = Pair::new(&TransportConfig::default(), meter)?;
    pair.pass(Duration::from_secs(1));
    let mut web = Web::new(pair);
    web.ask(1)?;
    web.pass(REST)?;
    Ok(1)
}
