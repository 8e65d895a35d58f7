//! Explicit congestion notification (RFC 9000 section 13.4).

use super::pair::{Pair, pattern};
use crate::{Dir, EcnCodepoint, Side, SocketFeatures};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const ECT0: EcnCodepoint = EcnCodepoint::Ect0;
const CE: EcnCodepoint = EcnCodepoint::Ce;

/// Carries 300 kB over a path on which marks arrive as `remark` says; returns the pair.
fn carry(
    remark: impl FnMut(Option<EcnCodepoint>) -> Option<Option<EcnCodepoint>> + 'static,
) -> Pair {
    let mut pair = Pair::with_sockets(SocketFeatures { ecn: true, ..SocketFeatures::default() });
    pair.remark = Box::new(remark);
    pair.handshake();
    let data = pattern(300_000);
    pair.send(Side::Client, Dir::Uni, &data);
    assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), data);
    pair.run_for(Duration::from_secs(1));
    pair
}

#[test]
fn packets_are_marked_where_marks_arrive() {
    let marked = Rc::new(Cell::new(0));
    let counter = marked.clone();
    let mut pair = carry(move |mark| {
        counter.set(counter.get() + u32::from(mark == Some(ECT0)));
        Some(mark)
    });
    assert!(marked.get() > 250, "{} packets were marked", marked.get());
    for side in [Side::Client, Side::Server] {
        assert!(pair.end(side).conn().stats().ecn_capable, "{side:?}");
    }
    assert_eq!(pair.client.conn().stats().packets_lost, 0);
}

#[test]
fn marks_that_are_cleared_or_changed_are_no_longer_sent() {
    for (what, arrives) in [("cleared", None), ("changed", Some(EcnCodepoint::Ect1))] {
        let mut pair = carry(move |mark| Some(mark.and(arrives)));
        assert!(!pair.client.conn().stats().ecn_capable, "{what}");
        let now = pair.now;
        pair.send(Side::Client, Dir::Uni, b"more");
        let transmit = pair.client.conn().poll_transmit(now, 1, &mut Vec::new());
        assert_eq!(transmit.and_then(|transmit| transmit.ecn), None, "{what}");
    }
}

#[test]
fn a_path_that_drops_marked_packets_costs_a_moment() {
    let mut pair = carry(|mark| mark.is_none().then_some(mark));
    assert!(!pair.client.conn().stats().ecn_capable);
}

#[test]
fn congestion_reported_by_marks_shrinks_the_window() {
    let window = |every: u32| {
        let mut count = 0;
        let mut pair = carry(move |mark| {
            count += 1;
            Some(mark.map(|mark| if count % every == 0 { CE } else { mark }))
        });
        let stats = pair.client.conn().stats();
        assert!(stats.ecn_capable && stats.packets_lost == 0);
        stats.congestion_window
    };
    let (never, often) = (window(u32::MAX), window(2));
    assert!(often < never / 2, "{often} of {never}");
}

#[test]
fn an_end_that_cannot_mark_sends_no_marks() {
    let mut pair = Pair::new();
    pair.remark = Box::new(|mark| {
        assert_eq!(mark, None);
        Some(mark)
    });
    pair.handshake();
    pair.send(Side::Client, Dir::Uni, &pattern(10_000));
    pair.accept_and_read(Side::Server, Dir::Uni);
}

/// The counts of overtaken frames are lower than the known counts, and say nothing (RFC 9000 section
/// 13.4.2.1).
#[test]
fn acknowledgements_that_were_overtaken_do_not_end_it() {
    let mut pair = Pair::with_sockets(SocketFeatures { ecn: true, ..SocketFeatures::default() });
    pair.handshake();
    let mut random = sutura_random::Rng::new(5);
    pair.copies = Box::new(move |from, _| {
        let late = if from == Side::Server { random.below(30) as u32 } else { 0 };
        vec![late * Duration::from_millis(1)]
    });
    let data = pattern(300_000);
    pair.send(Side::Client, Dir::Uni, &data);
    assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), data);
    pair.run_for(Duration::from_secs(1));
    assert!(pair.client.conn().stats().ecn_capable);
}
