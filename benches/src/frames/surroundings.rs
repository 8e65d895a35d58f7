//! The state that a connection holds while it receives frames.

use crate::attack;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use sutura_benches::Error;
use sutura_erasure::{Encoder, WindowLimits};
use sutura_groups::ReceiveGroups;
use sutura_proto::fuzz::Target;
use sutura_proto::policy::{Code, FixedRate, SlidingWindow};
use sutura_proto::wire_format::{Frame, Repair, RepairHeader, StreamFrame};
use sutura_proto::{
    CodeSet, Dir, FecConfig, MessageOptions, Protection, ReadError, Side, StreamId, TransportConfig,
};

/// The first stream that carries data for the surroundings. Frames of attacks begin with stream 0.
const FIRST: u64 = 2000;
/// Repair symbols in a session: as many as a decoder keeps, but too few to recover a symbol.
const EQUATIONS: u64 = 64;
/// Source symbols that each repair symbol covers.
const SPAN: u64 = 200;
/// Groups among which messages are spread, as many as are allowed.
const GROUPS: u64 = 64;
/// Bytes per second, so that all data is sent at once and little time passes.
const RATE: u64 = 1_000_000_000;

/// The kind of state that a connection holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Held {
    /// Streams of its own that share a coding session. All their data was acknowledged.
    Streams,
    /// Coding sessions with one stream each, and with a source symbol in flight.
    Sessions,
    /// Repair symbols that are too few to recover a symbol, 64 in each session.
    Equations,
    /// Messages of its own in flight, with deadlines.
    Messages,
    /// Protected datagrams of its own that were lost and wait to be mended.
    Lost,
    /// Messages of the peer in 64 groups that wait for other messages.
    Groups,
}

/// All kinds except streams: the name, and the numbers that count as few and as many.
pub const OTHERS: [(Held, &str, u64, u64); 5] = [
    (Held::Sessions, "sessions", 1, 64),
    (Held::Equations, "equations", 1, 1000),
    (Held::Messages, "messages", 1, 1000),
    (Held::Lost, "lost datagrams", 1, 1000),
    (Held::Groups, "messages of groups", 1, 1000),
];

/// A connection with its state, and its application.
pub struct Scene {
    pub target: Target,
    held: Held,
    open: Vec<StreamId>,
    groups: ReceiveGroups,
}

fn config() -> TransportConfig {
    let fec = Some(
        FecConfig::default()
            .with_codes(CodeSet::all())
            .with_max_sessions(64)
            .with_max_window_symbols(1024)
            .with_max_window_bytes(1536 * 1024),
    );
    let mut config = TransportConfig::default()
        .with_fec(fec)
        // No stream ends, because no data is acknowledged.
        .with_max_concurrent_uni_streams(4000)
        // None is over, because nothing is acknowledged.
        .with_max_concurrent_bidi_streams(20_000);
    if let Some(rate) = FixedRate::new(RATE) {
        config.congestion = Arc::new(rate);
    }
    config
}

impl Scene {
    /// A connection at `side` that holds `count` of `held`.
    pub fn new(side: Side, held: Held, count: u64) -> Result<Self, Error> {
        let target = match held {
            Held::Streams => Target::new(side),
            Held::Sessions | Held::Equations | Held::Messages | Held::Lost | Held::Groups => {
                Target::with(side, config())
            }
        };
        let target = target.ok_or("no connection")?;
        let groups = ReceiveGroups::new(side);
        let mut scene = Self { target, held, open: Vec::new(), groups };
        if held != Held::Streams {
            scene.warm_up()?;
        }
        scene.fill(count)?;
        Ok(scene)
    }

    /// Lets the connection learn a round-trip time, without which it keeps its window small.
    fn warm_up(&mut self) -> Result<(), Error> {
        for _ in 0..20 {
            self.target.connection().datagrams().send(Bytes::from_static(b"hello"))?;
            self.target.wait(Duration::from_millis(1));
            self.target.settle();
        }
        Ok(())
    }

    fn fill(&mut self, count: u64) -> Result<(), Error> {
        let target = &mut self.target;
        let before = target.connection().stats();
        match self.held {
            Held::Streams => attack::open(target, count)?,
            Held::Sessions => sessions(target, count)?,
            Held::Equations => equations(target, count)?,
            Held::Messages => messages(target, count)?,
            Held::Lost => lost_datagrams(target, count)?,
            Held::Groups => self.hold_messages(count)?,
        }
        // The frames of attacks name session 0 of either side.
        if self.held != Held::Sessions && self.held != Held::Streams {
            sessions(&mut self.target, 1)?;
        }
        let after = self.target.connection().stats();
        let sent = after.fec.source_symbols_sent - before.fec.source_symbols_sent;
        let is_there = match self.held {
            Held::Streams => after.bytes_in_flight == 0,
            Held::Sessions => sent == count && after.bytes_in_flight > 0,
            Held::Equations => after.fec.repair_symbols_received == count,
            Held::Messages => after.messages.sent - after.messages.arrived == count,
            Held::Lost => {
                let open = after.messages.sent - after.messages.arrived - after.messages.given_up;
                let lost = after.packets_lost - before.packets_lost;
                open >= count && lost >= count && after.messages.given_up == 0
            }
            Held::Groups => self.groups.held() as u64 == count,
        };
        let held = self.held;
        if is_there { Ok(()) } else { Err(format!("not {count} of {held:?}: {after:?}").into()) }
    }

    /// Lets the application take bare datagrams and the data of streams, and end its half of each stream.
    /// Where messages are held, all streams of the peer belong to groups.
    pub fn consume(&mut self) {
        let connection = self.target.connection();
        let dirs: &[Dir] =
            if self.held == Held::Groups { &[Dir::Bi] } else { &[Dir::Uni, Dir::Bi] };
        for dir in dirs {
            while let Some(id) = connection.accept(*dir) {
                self.open.push(id);
                if *dir == Dir::Bi {
                    // This fails if the peer has stopped the stream, which is then over already.
                    let _ = connection.send_stream(id).finish();
                }
            }
        }
        self.open.retain(|&id| {
            loop {
                match connection.recv_stream(id).read_chunk(usize::MAX, true) {
                    Ok(Some(_)) => {}
                    Err(ReadError::Blocked) => return true,
                    Ok(None) | Err(_) => return false,
                }
            }
        });
        while connection.datagrams().recv().is_some() {}
        match self.held {
            Held::Streams | Held::Equations | Held::Groups => self.target.settle(),
            // Acknowledged data would no longer be in flight.
            Held::Sessions | Held::Messages | Held::Lost => {}
        }
    }

    /// Lets the groups read the received messages, which is part of the cost of frames where there are
    /// groups.
    pub fn read_groups(&mut self) {
        let events = self.target.take_events();
        if self.held != Held::Groups {
            return;
        }
        events.iter().for_each(|event| self.groups.on_event(event));
        let now = self.target.now();
        // Streams with other data than messages are stopped. An application would close the connection.
        while self.groups.receive(now, self.target.connection()).is_err() {}
        while self.groups.pop().is_some() {}
    }

    /// Messages that wait for the first message of their group.
    fn hold_messages(&mut self, count: u64) -> Result<(), Error> {
        for n in 0..count {
            let mut message = Vec::new();
            attack::message(n % GROUPS, 1 + n, n, &mut message);
            let peer = self.target.connection().side().peer();
            let id = StreamId::new(peer, Dir::Uni, FIRST + n);
            let mut payload = Vec::new();
            Frame::Stream(StreamFrame { id, offset: 0, fin: true, data: &message })
                .encode(&mut payload);
            attack::send(&mut self.target, &payload)?;
            self.read_groups();
        }
        Ok(())
    }
}

fn sessions(target: &mut Target, count: u64) -> Result<(), Error> {
    let tail = Protection::tail(1, Duration::from_secs(10));
    for _ in 0..count {
        let connection = target.connection();
        let id = connection.open(Dir::Uni).ok_or("no stream")?;
        connection.send_stream(id).protect(Some(tail.clone()))?;
        connection.send_stream(id).write(&[7; 50])?;
    }
    target.wait(Duration::from_millis(2));
    Ok(())
}

fn equations(target: &mut Target, count: u64) -> Result<(), Error> {
    let mut encoder = Encoder::new(WindowLimits::default());
    for _ in 0..SPAN {
        encoder.push(&[0x31, 0])?;
    }
    for n in 0..count {
        // The frames of attacks are in session 0.
        let (session, key) = (1 + n / EQUATIONS, n % EQUATIONS);
        let (session, key) = (u16::try_from(session)?, u32::try_from(key)?);
        let header = RepairHeader::new(session, SlidingWindow.id(), &(0..SPAN), key);
        let (mut symbol, mut payload) = (Vec::new(), Vec::new());
        SlidingWindow.encode(&encoder, 0..SPAN, key, &mut symbol)?;
        Frame::Repair(Repair { header, payload: &symbol }).encode(&mut payload);
        attack::send(target, &payload)?;
    }
    Ok(())
}

fn messages(target: &mut Target, count: u64) -> Result<(), Error> {
    let deadline = Some(target.now() + Duration::from_secs(60));
    for _ in 0..count {
        let options = MessageOptions::default().with_deadline(deadline);
        target.connection().send_message(Bytes::from_static(b"message"), options)?;
    }
    target.wait(Duration::from_millis(2));
    Ok(())
}

/// Datagrams that arrive, so that the datagrams before them are known to be lost.
const LAST: u64 = 8;

fn lost_datagrams(target: &mut Target, count: u64) -> Result<(), Error> {
    // A repair symbol is to come, much later.
    let late = Protection::tail(1, Duration::from_secs(10));
    target.connection().datagrams().protect(Some(late));
    for n in 0..count + LAST {
        // Each datagram fills most of a packet, so that no packet carries two.
        target.connection().datagrams().send(Bytes::from_static(&[7; 700]))?;
        if n % 20 == 0 {
            target.wait(Duration::from_micros(100));
        }
    }
    target.wait(Duration::from_millis(1));
    target.acknowledge_newest();
    Ok(())
}
