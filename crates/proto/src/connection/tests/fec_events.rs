//! Erasure coding while the path, the keys or the size of packets change, and with 0-RTT.

use super::zero_rtt::{forgetful, resuming};
use super::*;
use crate::{Algorithm, Read};

const ALGORITHMS: [Algorithm; 3] = [Algorithm::NEW_RENO, Algorithm::CUBIC, Algorithm::BBR];
/// The bytes that a flow writes at a time, and the bytes of each datagram.
const PIECE: usize = 3_000;
/// No packet has room for two datagrams of this size.
const DATAGRAM: usize = 750;
/// How many pieces a flow sends between two events; it sends twice as many datagrams.
const PIECES: usize = 40;
const LOSS: f64 = 0.1;
/// The one-way delay, and the pause of a flow between two pieces: long enough for a piece, its datagrams and
/// their repair symbols, even in the smallest window.
const LATENCY: Duration = Duration::from_millis(20);
const INTERVAL: Duration = Duration::from_millis(300);

/// A stream and datagrams from one end to the other, all of them protected, on a path that loses some
/// of the packets that carry them.
struct Flow {
    pair: Pair,
    from: Side,
    id: StreamId,
    /// The data of the stream.
    data: Vec<u8>,
    written: usize,
    read: usize,
    datagrams: usize,
    /// Source symbols that were recovered.
    recovered: u64,
}

/// Loses some of the larger datagrams of an end, and all that are longer than the path carries.
fn lose(pair: &mut Pair, from: Side, carries: Rc<Cell<u16>>) {
    let mut random = Rng::new(7);
    pair.filter = Box::new(move |side, bytes| {
        let lost = side == from && bytes.len() > 100 && random.unit() < LOSS;
        !lost && bytes.len() <= carries.get().into()
    });
}

impl Flow {
    fn new(pair: Pair, from: Side) -> Self {
        let mut flow = Self {
            pair,
            from,
            id: StreamId(0),
            data: pattern(2_000_000),
            written: 0,
            read: 0,
            datagrams: 0,
            recovered: 0,
        };
        flow.pair.latency = LATENCY;
        flow.open();
        let datagrams = Protection::tail(1, Duration::ZERO);
        flow.sender().datagrams().protect(Some(datagrams));
        let carries = Rc::new(Cell::new(u16::MAX));
        lose(&mut flow.pair, from, carries);
        flow
    }

    fn open(&mut self) {
        self.id = self.pair.open(self.from, Some(Protection::incremental(2, Duration::ZERO)));
        (self.written, self.read) = (0, 0);
    }

    fn sender(&mut self) -> &mut Connection {
        let from = self.from;
        self.pair.end(from).conn()
    }

    fn receiver(&mut self) -> &mut Connection {
        let to = self.from.peer();
        self.pair.end(to).conn()
    }

    /// Writes a piece and two datagrams.
    fn send(&mut self) {
        let (id, at) = (self.id, self.written);
        let piece = self.data[at..at + PIECE].to_vec();
        assert_eq!(self.sender().send_stream(id).write(&piece), Ok(PIECE));
        self.written += PIECE;
        for _ in 0..2 {
            let datagram = Bytes::copy_from_slice(&piece[..DATAGRAM]);
            self.sender().datagrams().send(datagram).unwrap();
        }
    }

    /// Reads the data that has arrived and compares it with the data that was sent.
    fn receive(&mut self) {
        let mut buffer = [0; 16 * 1024];
        let id = self.id;
        while let Ok(Read::Data(n)) = self.receiver().recv_stream(id).read(&mut buffer) {
            assert!(buffer[..n] == self.data[self.read..self.read + n], "other bytes");
            self.read += n;
        }
        while let Some(datagram) = self.receiver().datagrams().recv() {
            let is_sent = |piece: &[u8]| piece[..DATAGRAM] == datagram[..];
            assert!(self.data.chunks_exact(PIECE).any(is_sent), "another datagram");
            self.datagrams += 1;
        }
    }

    /// Sends all the data that lies between two events. All of the stream arrives, and symbols of the stream
    /// as well as datagrams are recovered.
    fn goes_on(&mut self, when: &str) {
        let before = self.datagrams;
        for _ in 0..PIECES {
            self.send();
            self.pair.run_for(INTERVAL);
            self.receive();
        }
        self.pair.run_for(5 * SECOND);
        self.receive();
        self.pair.lives();
        assert_eq!(self.read, self.written, "{when}");
        assert!(self.datagrams - before >= PIECES, "{when}: {}", self.datagrams - before);
        let outcomes = std::iter::from_fn(|| self.sender().poll_message_outcome());
        let is_recovered = |how| how == MessageOutcome::Recovered;
        let datagrams = outcomes.filter(|(_, how)| is_recovered(*how)).count() as u64;
        let recovered = self.receiver().stats().fec.recovered;
        let all = recovered - std::mem::replace(&mut self.recovered, recovered);
        assert!(datagrams >= 1 && all >= datagrams + 3, "{when}: {datagrams} of {all}");
    }
}

fn connected(algorithm: Algorithm) -> Pair {
    Pair::with_both(|config| config.congestion = Arc::new(algorithm))
}

#[test]
fn what_is_protected_survives_a_client_that_moves_to_other_hosts() {
    let both = |algorithm| [(algorithm, Side::Client), (algorithm, Side::Server)];
    for (algorithm, from) in ALGORITHMS.into_iter().flat_map(both) {
        for on_purpose in [false, true] {
            let mut flow = Flow::new(connected(algorithm), from);
            // So that it speaks when it hears nothing.
            flow.pair.keep_alive(Side::Client, true);
            flow.goes_on("at home");
            for n in 1..4 {
                let host: SocketAddr = ([192, 0, 2, n], 1).into();
                // Some of the data is on the way.
                flow.send();
                flow.pair.run_for(10 * MS);
                match on_purpose {
                    true => flow.pair.move_client(host),
                    false => flow.pair.client.address = host,
                }
                let when = format!("{algorithm:?} from {from:?} at {host}, {on_purpose}");
                flow.goes_on(&when);
                assert_eq!(flow.pair.server.conn().remote_address(), host, "{when}");
            }
        }
    }
}

/// The estimates of losses belong to a path; the coding windows do not, and their symbols mend losses of the
/// path before.
#[test]
fn a_client_that_moves_forgets_the_losses_of_the_path_and_keeps_its_windows() {
    let mut flow = Flow::new(connected(Algorithm::BBR), Side::Client);
    flow.goes_on("at home");
    assert!(flow.sender().stats().loss_estimate > 0.02);
    let recovered = flow.receiver().stats().fec.recovered;
    // One of three source symbols is lost; their repair symbols come when the client is elsewhere.
    flow.pair.lose(Side::Client, |n| n == 2);
    let late = Protection::incremental(2, 30 * MS);
    let id = flow.id;
    flow.sender().send_stream(id).protect(Some(late)).unwrap();
    let piece = flow.data[flow.written..][..PIECE].to_vec();
    assert_eq!(flow.sender().send_stream(id).write(&piece), Ok(PIECE));
    flow.written += PIECE;
    flow.pair.run_for(5 * MS);
    flow.pair.move_client(([192, 0, 2, 1], 1).into());
    assert!(flow.sender().stats().loss_estimate.abs() < f64::EPSILON);
    let before = flow.sender().stats();
    flow.pair.run_for(100 * MS);
    flow.receive();
    assert_eq!(flow.read, flow.written, "mended before it could be sent again");
    assert_eq!(flow.receiver().stats().fec.recovered, recovered + 1);
    let after = flow.sender().stats();
    assert_eq!(after.stream_bytes_retransmitted, before.stream_bytes_retransmitted);
}

#[test]
fn what_is_protected_survives_updates_of_the_keys() {
    for from in [Side::Client, Side::Server] {
        let mut flow = Flow::new(Pair::connected(), from);
        for update in 1..6 {
            let side = if update % 2 == 0 { from } else { from.peer() };
            // The update comes in the middle of a transfer, so that symbols of one session are under the keys
            // of both phases.
            flow.send();
            assert!(flow.pair.end(side).conn().update_keys(), "{update}");
            flow.goes_on(&format!("from {from:?}, update {update}"));
            assert_eq!(flow.receiver().stats().key_updates, update);
            assert_eq!(flow.receiver().stats().undecryptable, 0);
        }
    }
}

#[test]
fn what_is_protected_survives_packets_that_become_smaller_and_larger() {
    for from in [Side::Client, Side::Server] {
        let socket = SocketFeatures { ecn: false, unfragmented: true };
        let mut flow = Flow::new(Pair::with_sockets(socket).ready(), from);
        let carries = Rc::new(Cell::new(1500));
        lose(&mut flow.pair, from, carries.clone());
        let size = |flow: &mut Flow| flow.sender().stats().udp_payload_size;
        assert_eq!(size(&mut flow), 1452);
        flow.goes_on("large packets");
        carries.set(MIN_UDP_PAYLOAD);
        flow.send();
        flow.goes_on("into the black hole");
        assert_eq!(size(&mut flow), MIN_UDP_PAYLOAD);
        flow.goes_on("small packets");
        carries.set(1500);
        for _ in 0..12 {
            flow.pair.run_for(10 * SECOND);
            flow.send();
        }
        flow.pair.run_for(SECOND);
        assert_eq!(size(&mut flow), 1452);
        flow.goes_on("large packets again");
    }
}

/// Data in 0-RTT packets is never a symbol, so that no coding window spans data that a server may reject; the
/// data that follows under 1-RTT keys is.
#[test]
fn protection_begins_with_1rtt_whether_or_not_0rtt_is_accepted() {
    for accepted in [true, false] {
        let mut pair = resuming(Default::default(), &Default::default());
        if !accepted {
            pair.server.endpoint.set_server_config(Some(forgetful()));
        }
        let mut flow = Flow::new(pair, Side::Client);
        let before = flow.id;
        (0..3).for_each(|_| flow.send());
        while flow.sender().zero_rtt_accepted().is_none() {
            assert_eq!(flow.sender().stats().fec.source_symbols_sent, 0);
            assert!(flow.pair.step(flow.pair.now + 10 * SECOND), "the handshake stalled");
        }
        assert_eq!(flow.sender().zero_rtt_accepted(), Some(accepted));
        assert_eq!(flow.sender().stats().fec.repair_symbols_sent, 0);
        if !accepted {
            assert!(flow.pair.client.events.contains(&Event::ZeroRttRejected));
            flow.open();
            assert_eq!(flow.id, before, "the same identifier again");
        }
        for part in ["one", "two", "three"] {
            flow.goes_on(&format!("part {part}, 0-RTT accepted: {accepted}"));
        }
        let server = flow.receiver().stats().fec;
        assert!(server.source_symbols_received > 0);
        // A window begins with the first symbol, and no data of 0-RTT is in it.
        assert!(flow.sender().egress.is_coding_quiet(), "no symbol is left in a window");
    }
}
