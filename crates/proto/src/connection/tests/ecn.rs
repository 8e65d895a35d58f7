//! Explicit congestion notification (RFC 9000 section 13.4).

use super::*;
use crate::EcnCodepoint;

const ECT0: EcnCodepoint = EcnCodepoint::Ect0;
const SOCKET: SocketFeatures = SocketFeatures { ecn: true, unfragmented: false };
const CE: EcnCodepoint = EcnCodepoint::Ce;

/// Carries 300 kB over a path on which marks arrive as `remark` says; returns the pair.
fn marking(
    remark: impl FnMut(Option<EcnCodepoint>) -> Option<Option<EcnCodepoint>> + 'static,
) -> Pair {
    let mut pair = Pair::with_sockets(SOCKET);
    pair.remark = Box::new(remark);
    pair.handshake();
    pair.carry(Side::Client, 300_000);
    pair.run_for(SECOND);
    pair
}

#[test]
fn packets_are_marked_where_marks_arrive() {
    let marked = Rc::new(Cell::new(0));
    let counter = marked.clone();
    let mut pair = marking(move |mark| {
        counter.set(counter.get() + u32::from(mark == Some(ECT0)));
        Some(mark)
    });
    assert!(marked.get() > 250, "{} packets were marked", marked.get());
    for side in [Side::Client, Side::Server] {
        assert!(pair.end(side).stats().ecn_capable, "{side:?}");
    }
    assert_eq!(pair.client.stats().packets_lost, 0);
}

#[test]
fn marks_that_are_cleared_or_changed_are_no_longer_sent() {
    for (what, arrives) in [("cleared", None), ("changed", Some(EcnCodepoint::Ect1))] {
        let mut pair = marking(move |mark| Some(mark.and(arrives)));
        assert!(!pair.client.stats().ecn_capable, "{what}");
        let now = pair.now;
        pair.send(Side::Client, Dir::Uni, b"more");
        let transmit = pair.client.conn().poll_transmit(now, 1, &mut Vec::new());
        assert_eq!(transmit.and_then(|transmit| transmit.ecn), None, "{what}");
    }
}

#[test]
fn a_path_that_drops_marked_packets_costs_a_moment() {
    let pair = marking(|mark| mark.is_none().then_some(mark));
    assert!(!pair.client.stats().ecn_capable);
}

#[test]
fn congestion_reported_by_marks_shrinks_the_window() {
    let window = |every: u32| {
        let mut count = 0;
        let pair = marking(move |mark| {
            count += 1;
            Some(mark.map(|mark| if count % every == 0 { CE } else { mark }))
        });
        let stats = pair.client.stats();
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
    pair.carry(Side::Client, 10_000);
}

/// The counts of overtaken frames are lower than the known counts, and say nothing (RFC 9000 section
/// 13.4.2.1).
#[test]
fn acknowledgements_that_were_overtaken_do_not_end_it() {
    let mut pair = Pair::with_sockets(SOCKET).ready();
    let mut random = Rng::new(5);
    pair.copies = Box::new(move |from, _| {
        let late = if from == Side::Server { random.below(30) as u32 } else { 0 };
        vec![late * MS]
    });
    pair.carry(Side::Client, 300_000);
    pair.run_for(SECOND);
    assert!(pair.client.stats().ecn_capable);
}
