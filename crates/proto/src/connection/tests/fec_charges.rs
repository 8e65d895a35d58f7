//! Redundancy is paid for by the streams that it protects.

use super::pair::{Pair, pattern};
use crate::{Dir, FecConfig, Priority, Protection, Side, StreamId, TransportConfig};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use sutura_schedule::{Eps, Grant, Scheduler, StreamKey};

/// Bytes that each stream was charged.
type Ledger = Arc<Mutex<BTreeMap<StreamKey, u64>>>;

/// Schedules as [`Eps`], and keeps accounts.
#[derive(Debug, Default)]
struct Accountant {
    eps: Eps,
    ledger: Ledger,
}

impl Scheduler for Accountant {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        self.eps.insert(stream, priority);
    }
    fn remove(&mut self, stream: StreamKey) {
        self.eps.remove(stream);
    }
    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        self.eps.reprioritize(stream, priority);
    }
    fn activate(&mut self, stream: StreamKey) {
        self.eps.activate(stream);
    }
    fn deactivate(&mut self, stream: StreamKey) {
        self.eps.deactivate(stream);
    }
    fn next(&self, room: usize) -> Option<Grant> {
        self.eps.next(room)
    }
    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        *self.ledger.lock().unwrap().entry(stream).or_default() += bytes as u64;
        self.eps.charge(stream, bytes);
    }
    fn is_empty(&self) -> bool {
        self.eps.is_empty()
    }
}

const TAIL: Protection = Protection { burst: 3, delay: Duration::ZERO, incremental: false };

/// A pair of which the server keeps accounts.
fn pair(max_sessions: u16) -> (Pair, Ledger) {
    let fec = Some(FecConfig { max_sessions, ..FecConfig::default() });
    let config = TransportConfig { fec, ..TransportConfig::default() };
    let mut pair = Pair::with(config, TransportConfig::default());
    pair.handshake();
    let accountant = Accountant::default();
    let ledger = accountant.ledger.clone();
    pair.server.conn().streams.set_scheduler(Box::new(accountant));
    (pair, ledger)
}

/// A stream of the server in turn with others, with `len` bytes.
fn stream(pair: &mut Pair, len: usize, protection: Option<Protection>) -> StreamId {
    let id = pair.server.conn().open(Dir::Uni).unwrap();
    let mut stream = pair.server.conn().send_stream(id);
    stream.set_priority(Priority::new(3, true).unwrap()).unwrap();
    stream.protect(protection).unwrap();
    stream.write(&pattern(len)).unwrap();
    stream.finish().unwrap();
    id
}

#[test]
fn a_repair_symbol_is_charged_to_the_stream_that_it_protects() {
    let (mut pair, ledger) = pair(16);
    let protected = stream(&mut pair, 5_000, Some(TAIL));
    let bare = stream(&mut pair, 5_000, None);
    pair.run_for(Duration::from_secs(1));
    let stats = pair.server.conn().stats();
    assert!(stats.fec.repair_symbols_sent > 0);
    let ledger = ledger.lock().unwrap();
    assert_eq!(ledger[&protected.0], 5_000 + stats.fec.repair_bytes_sent);
    assert_eq!(ledger[&bare.0], 5_000);
}

#[test]
fn streams_of_one_session_share_what_protects_them_in_proportion() {
    let (mut pair, ledger) = pair(1);
    let small = stream(&mut pair, 1_500, Some(TAIL));
    let large = stream(&mut pair, 6_000, Some(TAIL));
    pair.run_for(Duration::from_secs(1));
    let repair = pair.server.conn().stats().fec.repair_bytes_sent;
    let ledger = ledger.lock().unwrap();
    let [small, large] = [ledger[&small.0] - 1_500, ledger[&large.0] - 6_000];
    assert_eq!(small + large, repair, "rounding loses nothing");
    assert!(0 < small && small < large, "{small} {large}");
}

#[test]
fn what_is_sent_again_is_charged_as_a_symbol_and_as_a_frame() {
    for protection in [Some(TAIL), None] {
        let (mut pair, ledger) = pair(16);
        let mut n = 0;
        pair.filter = Box::new(move |from, _| {
            n += u32::from(from == Side::Server);
            from == Side::Client || ![1, 2, 3, 4].contains(&n)
        });
        let id = stream(&mut pair, 6_000, protection);
        pair.run_for(Duration::from_secs(3));
        let stats = pair.server.conn().stats();
        assert!(stats.stream_bytes_retransmitted > 0, "{protection:?}");
        let bytes = 6_000 + stats.stream_bytes_retransmitted + stats.fec.repair_bytes_sent;
        assert_eq!(ledger.lock().unwrap()[&id.0], bytes, "{protection:?}");
    }
}
