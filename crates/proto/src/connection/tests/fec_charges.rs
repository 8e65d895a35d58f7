//! Redundancy is charged to the streams that it protects.

use super::*;
use crate::streams::tests::Accountant;
use std::collections::BTreeMap;
use sutura_schedule::{Class, StreamKey, Urgency};

/// How many bytes each stream was charged.
type Ledger = Arc<Mutex<BTreeMap<StreamKey, u64>>>;

/// A pair whose server records charges.
fn pair(max_sessions: u16) -> (Pair, Ledger) {
    let mut pair = Pair::with_client(|client| fec(client).max_sessions = max_sessions);
    let accountant = Accountant::default();
    let ledger = accountant.ledger.clone();
    pair.server.conn().streams.set_scheduler(Box::new(accountant));
    (pair, ledger)
}

/// An incremental stream of the server with `len` bytes.
fn stream(pair: &mut Pair, len: usize, protection: Option<Protection>) -> StreamId {
    let id = pair.send_protected(Side::Server, len, protection);
    let priority = Priority::new(3, true).unwrap();
    pair.server.conn().send_stream(id).set_priority(priority).unwrap();
    id
}

#[test]
fn a_repair_symbol_is_charged_to_the_stream_that_it_protects() {
    let (mut pair, ledger) = pair(16);
    let protected = stream(&mut pair, 5_000, Some(tail()));
    let bare = stream(&mut pair, 5_000, None);
    pair.run_for(SECOND);
    let stats = pair.server.stats();
    assert!(stats.fec.repair_symbols_sent > 0);
    let ledger = ledger.lock().unwrap();
    assert_eq!(ledger[&protected.0], 5_000 + stats.fec.repair_bytes_sent);
    assert_eq!(ledger[&bare.0], 5_000);
}

#[test]
fn streams_of_one_session_share_what_protects_them_in_proportion() {
    let (mut pair, ledger) = pair(1);
    let small = stream(&mut pair, 1_500, Some(tail()));
    let large = stream(&mut pair, 6_000, Some(tail()));
    pair.run_for(SECOND);
    let repair = pair.server.stats().fec.repair_bytes_sent;
    let ledger = ledger.lock().unwrap();
    let [small, large] = [ledger[&small.0] - 1_500, ledger[&large.0] - 6_000];
    assert_eq!(small + large, repair, "rounding loses nothing");
    assert!(0 < small && small < large, "{small} {large}");
}

#[test]
fn what_is_sent_again_is_charged_as_a_symbol_and_as_a_frame() {
    for protection in [Some(tail()), None] {
        let (mut pair, ledger) = pair(16);
        pair.lose(Side::Server, |n| [1, 2, 3, 4].contains(&n));
        let id = stream(&mut pair, 6_000, protection.clone());
        pair.run_for(3 * SECOND);
        let stats = pair.server.stats();
        assert!(stats.stream_bytes_retransmitted > 0, "{protection:?}");
        let bytes = 6_000 + stats.stream_bytes_retransmitted + stats.fec.repair_bytes_sent;
        assert_eq!(ledger.lock().unwrap()[&id.0], bytes, "{protection:?}");
    }
}

/// How many repair symbols the server sends before new data of a stream of urgency 3. They protect
/// a stream of urgency 0, whose class has urgency `class` if there is one.
fn repairs_before_others(class: Option<u8>) -> u64 {
    let mut pair = Pair::with_server(|server| server.scheduler = Arc::new(Scheme::HMM));
    let parents = class.map(|urgency| {
        let urgency = Urgency::new(urgency).unwrap();
        Arc::from([Class::default().with_urgency(urgency)])
    });
    let protected = pair.send_protected(Side::Server, 3_000, Some(tail()));
    let priority = Priority::new(0, false).unwrap().with_parents(parents);
    pair.server.conn().send_stream(protected).set_priority(priority).unwrap();
    let now = pair.now;
    let poll = |pair: &mut Pair, packets: usize| {
        for _ in 0..packets {
            pair.server.conn().poll_transmit(now, 1, &mut Vec::new()).unwrap();
        }
        pair.server.stats().fec.repair_symbols_sent
    };
    assert_eq!(poll(&mut pair, 3), 0);
    let bare = pair.open(Side::Server, None);
    pair.write(Side::Server, bare, 2_200);
    let before = poll(&mut pair, 2);
    assert_eq!(poll(&mut pair, 3), 3, "all of them go in the end");
    before
}

#[test]
fn a_repair_symbol_is_as_urgent_as_the_class_of_what_it_protects() {
    assert_eq!(repairs_before_others(None), 2);
    assert_eq!(repairs_before_others(Some(2)), 2);
    assert_eq!(repairs_before_others(Some(7)), 0);
}
