use proptest::prelude::*;

use super::*;
use crate::{Queue, Rate};

const US: Duration = Duration::from_micros(1);
const MS: Duration = Duration::from_millis(1);

fn link(config: &str, seed: u64) -> Link {
    Link::new(&config.parse().unwrap(), seed)
}

fn arrival(fate: Fate) -> Option<Duration> {
    match fate {
        Fate::Delivered(deliveries) => Some(deliveries.original.at),
        Fate::Dropped(_) => None,
    }
}

/// The fates of packets of 1200 bytes, one every millisecond.
fn fates(config: &str, seed: u64, packets: u32) -> Vec<Fate> {
    let mut link = link(config, seed);
    (0..packets).map(|n| link.send(n * MS, 1200)).collect()
}

fn arrivals(config: &str, seed: u64, packets: u32) -> Vec<Option<Duration>> {
    fates(config, seed, packets).into_iter().map(arrival).collect()
}

#[test]
fn a_perfect_link_delivers_at_once() {
    let fates = fates("perfect", 1, 10);
    for (n, fate) in (0..).zip(fates) {
        let original =
            Delivery { at: n * MS, queued: Duration::ZERO, marked: false, corrupt: None };
        assert_eq!(fate, Fate::Delivered(Deliveries { original, copy: None }));
    }
}

#[test]
fn the_rate_is_exact_and_counts_the_overhead() {
    // 1222 + 28 bytes are 10 000 bits: 1 ms at 10 Mbit/s.
    let mut busy = link("rate=10mbit delay=50ms queue=1000p", 1);
    for n in 1..=500 {
        assert_eq!(arrival(busy.send(Duration::ZERO, 1222)), Some((50 + n) * MS));
    }
    let mut bare = link("rate=10mbit overhead=0", 1);
    assert_eq!(arrival(bare.send(MS, 1250)), Some(2 * MS));
    // After a pause, the link is idle again.
    assert_eq!(arrival(busy.send(900 * MS, 1222)), Some(951 * MS));
}

#[test]
fn the_queue_is_bounded_in_packets_and_in_bytes() {
    let mut packets = link("rate=10mbit queue=10p", 1);
    let accepted = (0..50).filter(|_| arrival(packets.send(MS, 1222)).is_some()).count();
    assert_eq!(accepted, 11); // ten that wait, and one that is being sent
    assert_eq!(packets.backlog(MS), Backlog { packets: 10, bytes: 12_500 });
    assert_eq!(packets.stats().overflow, 39);
    assert_eq!(packets.backlog(3 * MS), Backlog { packets: 8, bytes: 10_000 });
    assert!(arrival(packets.send(3 * MS, 1222)).is_some());

    let mut bytes = link("rate=10mbit queue=5000b", 1);
    let accepted = (0..50).filter(|_| arrival(bytes.send(MS, 1222)).is_some()).count();
    assert_eq!(accepted, 5);
    assert_eq!(bytes.send(MS, 0), Fate::Dropped(DropCause::Overflow));
}

#[test]
fn the_delay_is_that_of_the_time_when_a_packet_leaves() {
    let mut link = link("rate=10mbit delay=50ms step=3ms,delay=10ms step=5ms,rate=20mbit", 1);
    let mut at = |now| arrival(link.send(now * MS, 1222));
    // The third packet leaves after 3 ms, but does not overtake the second.
    assert_eq!([0, 0, 0].map(&mut at), [51 * MS, 52 * MS, 52 * MS].map(Some));
    assert_eq!(at(60), Some(70 * MS + 500 * US));
}

#[test]
fn a_recorded_link_sends_when_the_record_says() {
    let mut recorded = link("paper trace=1,1,5,9 loss=none", 1);
    let sent = [0, 0, 0, 0, 0].map(|now| arrival(recorded.send(now * MS, 1472)));
    assert_eq!(sent, [51, 51, 55, 59, 60].map(|at| Some(at * MS)));
    assert_eq!(recorded.backlog(MS / 2), Backlog { packets: 4, bytes: 6000 });
    // A rate after the record takes its place.
    assert_eq!(arrival(link("trace=9 rate=12mbit", 1).send(MS, 1472)), Some(2 * MS));
    let mut full = link("trace=1,1,5,9 queue=1p", 1);
    assert_eq!(
        [0, 0, 0, 9].map(|now| arrival(full.send(now * MS, 1472)).is_some()),
        [true, true, false, true]
    );
}

#[test]
fn a_recorded_link_polices_by_its_record() {
    let mut policer = link("trace=10,20,30,40 queue=policer:3kb", 1);
    let passed =
        [0, 0, 0, 10, 11, 20, 21].map(|now| arrival(policer.send(now * MS, 1472)).is_some());
    assert_eq!(passed, [true, true, false, false, true, false, true]);
}

#[test]
fn a_lost_packet_takes_no_capacity() {
    let mut lossy = link("rate=10mbit loss=trace:10", 1);
    for n in 1..=10 {
        assert_eq!(lossy.send(Duration::ZERO, 1222), Fate::Dropped(DropCause::Loss));
        assert_eq!(arrival(lossy.send(Duration::ZERO, 1222)), Some(n * MS));
    }
}

#[test]
fn jitter_is_uniform_within_its_bounds_and_keeps_the_order() {
    // Packets 10 ms apart never reach each other, so the jitter shows in full.
    let mut sparse = link("delay=50ms jitter=8ms", 1);
    let extra: Vec<Duration> = (0..4000)
        .filter_map(|n| Some(arrival(sparse.send(n * 10 * MS, 1200))? - n * 10 * MS - 50 * MS))
        .collect();
    assert_eq!(extra.len(), 4000);
    assert!(extra.iter().all(|&extra| extra <= 8 * MS));
    for quarter in 0..4u32 {
        let within =
            |extra: &&Duration| (quarter * 2 * MS..(quarter + 1) * 2 * MS).contains(*extra);
        let count = extra.iter().filter(within).count();
        assert!((880..1120).contains(&count), "quarter {quarter}: {count}");
    }
    let dense = arrivals("delay=50ms jitter=8ms", 1, 4000);
    assert!(dense.is_sorted());
    assert!(dense.iter().zip(0u32..).all(|(at, n)| *at <= Some((n + 58) * MS)));
    assert!(!arrivals("delay=50ms jitter=8ms,reorder", 1, 4000).is_sorted());
}

#[test]
fn a_packet_held_back_is_overtaken_and_holds_up_no_other() {
    let plain = arrivals("delay=50ms", 3, 10_000);
    let mixed = arrivals("delay=50ms reorder=0.1,5ms", 3, 10_000);
    let mut held = 0;
    for (plain, mixed) in plain.iter().zip(&mixed) {
        if plain != mixed {
            held += 1;
            assert_eq!(plain.map(|at| at + 5 * MS), *mixed);
        }
    }
    assert!((800..1200).contains(&held), "{held}");
    let mut link = link("reorder=0.1,5ms", 3);
    for n in 0..10_000 {
        link.send(n * MS, 1200);
    }
    assert_eq!(link.stats().held_back, held);
}

#[test]
fn a_duplicate_takes_capacity_and_room_of_its_own() {
    let mut double = link("rate=10mbit queue=2p duplicate=1", 1);
    let Fate::Delivered(deliveries) = double.send(Duration::ZERO, 1222) else {
        panic!("the link was idle")
    };
    let times: Vec<Duration> = deliveries.into_iter().map(|delivery| delivery.at).collect();
    assert_eq!(times, [MS, 2 * MS]);
    // There is room for one delivery: the copy overflows.
    let Fate::Delivered(deliveries) = double.send(Duration::ZERO, 1222) else {
        panic!("there was room")
    };
    assert_eq!((deliveries.original.at, deliveries.copy), (3 * MS, None));
    assert_eq!(double.send(Duration::ZERO, 1222), Fate::Dropped(DropCause::Overflow));
    let expected = LinkStats {
        sent: 3,
        sent_bytes: 3666,
        duplicated: 2,
        overflow: 2,
        delivered: 3,
        delivered_bytes: 3666,
        ..LinkStats::default()
    };
    assert_eq!(*double.stats(), expected);
}

#[test]
fn duplicates_and_damage_have_their_probability() {
    let mut link = link("duplicate=0.05 corrupt=2%", 11);
    let mut seeds = Vec::new();
    for n in 0..20_000 {
        if let Fate::Delivered(deliveries) = link.send(n * MS, 1200) {
            seeds.extend(deliveries.into_iter().filter_map(|delivery| delivery.corrupt));
        }
    }
    let stats = link.stats();
    assert!((850..1150).contains(&stats.duplicated), "{stats:?}");
    assert!((340..500).contains(&stats.corrupted), "{stats:?}");
    assert_eq!(seeds.len() as u64, stats.corrupted);
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len() as u64, stats.corrupted, "each damage has a seed of its own");
}

#[test]
fn everything_is_lost_during_an_outage_and_nothing_else_changes() {
    let with = fates("delay=50ms jitter=9ms loss=ge:0.05,0.25,0.9,0.01 outage=2s..3s", 5, 6000);
    let without = fates("delay=50ms jitter=9ms,reorder loss=ge:0.05,0.25,0.9,0.01", 5, 6000);
    for (n, (with, without)) in with.iter().zip(&without).enumerate() {
        if (2000..3000).contains(&n) {
            assert_eq!(*with, Fate::Dropped(DropCause::Outage));
        } else {
            let dropped = |fate: &Fate| matches!(fate, Fate::Dropped(_));
            assert_eq!(dropped(with), dropped(without), "packet {n}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_fates_and_another_seed_gives_others() {
    let config = "paper jitter=2ms,reorder reorder=0.01,5ms duplicate=0.01 corrupt=0.01 \
                  background=1mbit";
    assert_eq!(fates(config, 1, 5000), fates(config, 1, 5000));
    assert_ne!(fates(config, 1, 5000), fates(config, 2, 5000));
}

/// Pins the fates that a seed produces: a change here changes the results of every experiment.
#[test]
fn the_fates_of_a_seed_are_these_for_ever() {
    let lost = |config: &str| {
        let fates = fates(config, 42, 400);
        let lost = |(n, fate): (usize, &Fate)| matches!(fate, Fate::Dropped(_)).then_some(n);
        fates.iter().enumerate().filter_map(lost).collect::<Vec<_>>()
    };
    assert_eq!(lost("loss=bern:0.02"), [60, 68, 87, 146, 160, 172, 233, 308, 311, 376, 396]);
    assert_eq!(
        lost("loss=ge:0.02,0.25,0.95,0.005"),
        [
            29, 30, 31, 60, 109, 110, 111, 112, 113, 160, 206, 207, 266, 267, 268, 270, 271, 317,
            318, 319, 345, 356, 357, 358, 359, 360, 361, 362, 363, 376
        ]
    );
    assert_eq!(
        lost("loss=ge:0.02,0.25,0.95,0.005 background=10mbit"),
        [
            29, 30, 31, 60, 109, 110, 111, 112, 154, 155, 156, 157, 160, 166, 202, 203, 237, 251,
            266, 267, 268, 317, 335, 336, 345, 356, 357, 364, 376
        ]
    );
    assert_eq!(
        lost("loss=gt:60,4.8,0.95,0.005"),
        [
            14, 15, 16, 17, 18, 60, 160, 164, 168, 169, 170, 171, 172, 219, 220, 221, 222, 223,
            224, 225, 226, 227, 228, 230, 231, 288, 289, 347, 348, 349, 350, 351, 352, 353, 354,
            355, 356, 357, 358, 359, 376
        ]
    );
    let jittered = arrivals("delay=50ms jitter=3ms,reorder", 42, 4);
    let expected = [50_105_357, 52_875_515, 54_328_019, 54_231_545];
    assert_eq!(jittered, expected.map(|at| Some(Duration::from_nanos(at))));
}

#[test]
fn switching_one_thing_on_leaves_the_draws_of_the_others() {
    let base = "delay=50ms jitter=4ms,reorder";
    let plain = arrivals(base, 9, 3000);
    // Lost packets do not arrive; all others arrive at the same time as before.
    let lossy = arrivals(&format!("{base} loss=bern:0.3"), 9, 3000);
    assert!(lossy.iter().zip(&plain).all(|(lossy, plain)| lossy.is_none() || lossy == plain));
    assert!(lossy.iter().filter(|at| at.is_none()).count() > 700);
    // The same applies to duplication and corruption.
    let doubled = arrivals(&format!("{base} duplicate=0.5 corrupt=0.5"), 9, 3000);
    assert_eq!(doubled, plain);
    // No other setting affects which packets are lost.
    let lost = |config: &str| -> Vec<bool> {
        fates(config, 9, 3000).iter().map(|fate| matches!(fate, Fate::Dropped(_))).collect()
    };
    for loss in ["loss=bern:0.1", "loss=ge:0.05,0.25,0.9,0.01", "loss=gt:20,5,0.9,0.01"] {
        let alone = lost(loss);
        let rest = "rate=100mbit delay=9ms jitter=9ms reorder=0.1,9ms duplicate=0.2 corrupt=0.3";
        assert_eq!(lost(&format!("{loss} {rest}")), alone, "{loss}");
    }
    assert_ne!(arrivals("jitter=4ms,reorder", 8, 3000), arrivals("jitter=4ms,reorder", 9, 3000));
}

#[test]
fn time_does_not_go_back() {
    let mut link = link("rate=10mbit delay=5ms", 1);
    assert_eq!(arrival(link.send(10 * MS, 1222)), Some(16 * MS));
    assert_eq!(arrival(link.send(2 * MS, 1222)), Some(17 * MS));
    assert_eq!(link.backlog(MS).packets, 1);
}

#[test]
fn extremes_do_not_overflow() {
    let mut link = link("rate=1bit delay=18446744073s jitter=18446744073s,reorder queue=5p", 1);
    for _ in 0..10 {
        link.send(Duration::MAX, usize::MAX);
    }
    assert_eq!(link.stats().sent, 10);
}

#[test]
fn what_is_too_long_is_dropped() {
    let mut link = Link::new(&"mtu=1228b step=1s,mtu=1500b".parse().unwrap(), 1);
    let too_long = Fate::Dropped(DropCause::TooLong);
    assert_ne!(link.send(Duration::ZERO, 1200), too_long);
    assert_eq!(link.send(Duration::ZERO, 1201), too_long);
    assert_ne!(link.send(1000 * MS, 1472), too_long);
    assert_eq!(link.stats().too_long, 1);
}

#[test]
fn a_queue_marks_what_finds_too_much_waiting() {
    // One packet is being sent, so the third finds one waiting.
    let mut link = Link::new(&"rate=10mbit overhead=0 queue=5p mark=1kb".parse().unwrap(), 1);
    let marked = (0..4).map(|_| match link.send(Duration::ZERO, 1000) {
        Fate::Delivered(deliveries) => deliveries.original.marked,
        Fate::Dropped(_) => panic!("dropped"),
    });
    assert_eq!(marked.collect::<Vec<_>>(), [false, false, true, true]);
    assert_eq!(link.stats().marked, 2);
}

/// A link with any combination of features, for property tests.
fn any_link() -> impl Strategy<Value = LinkConfig> {
    let p = || prop_oneof![Just(0.0), 0.0..0.5f64];
    let p = move || p().prop_map(|p| Probability::new(p).unwrap());
    let queue = prop_oneof![
        (0..50u64).prop_map(Queue::Packets),
        (0..50_000u64).prop_map(Queue::Bytes),
        (0..50_000u64).prop_map(Queue::Policer),
        (0..50_000u64).prop_map(Queue::Codel),
        (0..50_000u64).prop_map(Queue::Red),
    ];
    let time = || (0..20_000u32).prop_map(|us| us * US);
    (
        prop::option::of(1_000u64..1_000_000_000),
        queue,
        (time(), time(), any::<bool>()),
        prop::option::of((p(), time())),
        (p(), p(), p(), p()),
        any::<(bool, bool)>(),
    )
        .prop_map(|(rate, queue, (delay, max, reorders), reorder, chances, (outage, step))| {
            let (duplicate, corrupt, loss_bad, loss_good) = chances;
            let change = Probability::new(0.1).unwrap();
            LinkConfig {
                rate: rate.and_then(Rate::from_bits_per_second),
                queue,
                delay,
                jitter: Jitter { max, reorders },
                reorder: reorder.map(|(probability, delay)| Reorder { probability, delay }),
                duplicate,
                corrupt,
                loss: crate::Loss::GilbertElliott { p: change, r: change, loss_bad, loss_good },
                steps: if step {
                    ["5ms,rate=1mbit", "9ms,delay=30ms"].map(|s| s.parse().unwrap()).to_vec()
                } else {
                    Vec::new()
                },
                outages: outage.then(|| "10ms..20ms".parse().unwrap()).into_iter().collect(),
                ..LinkConfig::default()
            }
        })
}

proptest! {
    #[test]
    fn every_packet_is_accounted_for(
        config in any_link(),
        seed in any::<u64>(),
        packets in prop::collection::vec((0..2_000u32, 0..1500usize), 1..300),
    ) {
        let mut link = Link::new(&config, seed);
        let mut seen = LinkStats::default();
        let mut now = Duration::ZERO;
        let mut in_order = Vec::new();
        for (gap, size) in packets {
            now += gap * US;
            seen.sent += 1;
            seen.sent_bytes += size as u64;
            match link.send(now, size) {
                Fate::Dropped(DropCause::Loss) => seen.lost += 1,
                Fate::Dropped(DropCause::Outage) => seen.outage += 1,
                Fate::Dropped(DropCause::Overflow) => seen.overflow += 1,
                Fate::Dropped(DropCause::TooLong) => {
                    seen.too_long += 1;
                    prop_assert!(config.mtu.is_some_and(|mtu| size as u64 + 28 > mtu));
                }
                Fate::Delivered(deliveries) => for delivery in deliveries {
                    seen.delivered += 1;
                    seen.delivered_bytes += size as u64;
                    seen.corrupted += u64::from(delivery.corrupt.is_some());
                    seen.marked += u64::from(delivery.marked);
                    prop_assert!(delivery.at >= now + config.delay.min(30 * MS) + delivery.queued);
                    in_order.push(delivery.at);
                },
            }
            let backlog = link.backlog(now);
            match config.queue {
                Queue::Packets(limit) => prop_assert!(backlog.packets <= limit),
                Queue::Bytes(limit) | Queue::Codel(limit) | Queue::Red(limit) => {
                    prop_assert!(backlog.bytes <= limit);
                }
                Queue::Policer(_) => prop_assert_eq!(backlog, Backlog::default()),
            }
        }
        let stats = *link.stats();
        let copies_lost = stats.overflow - seen.overflow;
        prop_assert_eq!(
            stats.sent + stats.duplicated,
            stats.lost + stats.outage + stats.overflow + stats.delivered
        );
        prop_assert!(copies_lost <= stats.duplicated);
        let LinkStats { duplicated, held_back, .. } = stats;
        let overflow = seen.overflow + copies_lost;
        prop_assert_eq!(stats, LinkStats { duplicated, held_back, overflow, ..seen });
        if config.reorder.is_none() && !config.jitter.reorders {
            prop_assert!(in_order.is_sorted());
        }
    }

    #[test]
    fn no_interval_carries_more_than_the_rate(
        bits in 1_000u64..10_000_000_000,
        packets in prop::collection::vec((0..3_000u32, 0..1500usize), 1..200),
    ) {
        let rate = Rate::from_bits_per_second(bits).unwrap();
        let config = LinkConfig { rate: Some(rate), ..LinkConfig::default() };
        let mut link = Link::new(&config, 0);
        let (mut now, mut busy_from, mut sent, mut last) = (Duration::ZERO, 0, 0u128, 0);
        for (gap, size) in packets {
            now += gap * US;
            if now.as_nanos() >= last {
                (busy_from, sent) = (now.as_nanos(), 0);
            }
            sent += (size as u128 + 28) * 8;
            // The link has sent exactly at its rate since it was last idle.
            last = busy_from + (sent * 1_000_000_000).div_ceil(u128::from(bits));
            let at = arrival(link.send(now, size)).map(|at| at.as_nanos());
            prop_assert_eq!(at, Some(last));
        }
    }
}

#[test]
fn a_step_of_loss_lasts_until_the_next_one() {
    let config: LinkConfig = "step=1s,loss=0.5 step=2s,loss=0".parse().unwrap();
    let mut link = Link::new(&config, 1);
    let lost: Vec<bool> = (0..3000)
        .map(|at| link.send(Duration::from_millis(at), 100) == Fate::Dropped(DropCause::Loss))
        .collect();
    let count = |part: &[bool]| part.iter().filter(|lost| **lost).count();
    assert_eq!([count(&lost[..1000]), count(&lost[2000..])], [0, 0]);
    assert!((450..550).contains(&count(&lost[1000..2000])));
}
