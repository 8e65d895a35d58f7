//! A sender's measurements of the losses of its path from a steady stream: 5 kB at 60 Hz, five packets at a
//! time.

use std::time::Duration;

use crate::common::{MS, incremental, link, median, tail};
use sutura_proto::Protection;
use sutura_proto::policy::LossFloor;
use sutura_sim::{Ends, Scenario, StreamPlan};

/// Streams `messages` messages over `down` and returns the counts of both ends.
fn stream(seed: u64, down: &str, messages: u64, protection: Option<Protection>) -> Ends {
    let plan = StreamPlan { protection, ..StreamPlan::frames(messages) };
    let up = link("rate=10mbit delay=50ms");
    Scenario::new(seed).link(&up, &link(down)).stream(plan).unwrap().ends
}

/// The share of the server's packets that the link lost.
fn lost(ends: &Ends) -> f64 {
    (ends.down.lost + ends.down.overflow) as f64 / ends.down.sent as f64
}

#[test]
fn a_steady_stream_soon_knows_its_losses() {
    const LOSS: f64 = 0.0235;
    const SEEDS: u64 = 60;
    let near = |share: f64| (LOSS / 2.0..=LOSS * 2.0).contains(&share);
    for (model, kind) in [("bern:0.0235", "random"), ("gt:200,4.8,1,0", "bursts")] {
        let down = format!("rate=10mbit delay=50ms queue=187500b loss={model}");
        for messages in [20, 40, 80, 160, 320, 640] {
            let (mut estimated, mut possible, mut held) = (0, 0, 0);
            for seed in 0..SEEDS {
                let ends = stream(seed, &down, messages, None);
                let floor = ends.server.loss_floor;
                estimated += u64::from(near(floor.rate));
                possible += u64::from(near(lost(&ends)));
                held += u64::from(floor.low <= LOSS && LOSS <= floor.high);
            }
            println!(
                "{kind}, {messages} messages, {} packets, {} round trips: within a factor of two in \
                 {estimated} of {SEEDS}, of those lost {possible}; within its bounds {held}",
                5 * messages,
                messages / 6
            );
            if messages == 320 {
                assert!(estimated + SEEDS / 6 >= possible, "{kind}: {estimated}, {possible}");
            }
            assert!(held * 10 >= SEEDS * 8, "{kind}, {messages} messages: {held}");
        }
    }
}

#[test]
fn it_knows_the_bursts_of_clumps() {
    for preset in ["paper-time", "paper-background"] {
        let all: Vec<_> = (0..9).map(|seed| stream(seed, preset, 3_600, None)).collect();
        let floor = |value: fn(&LossFloor) -> f64| {
            median(all.iter().map(move |ends| value(&ends.server.loss_floor)))
        };
        let rate = floor(|floor| floor.rate);
        let burst = floor(|floor| floor.burst);
        let time = floor(|floor| floor.burst_time.as_secs_f64() * 1e3);
        println!("{preset}: {rate:.4} of the packets, {burst:.2} in a row, {time:.2} ms");
        let truth = median(all.iter().map(lost));
        assert!((0.6..1.5).contains(&(rate / truth)), "{preset}: {rate} instead of {truth}");
        // Bad periods last for 4.8 ms on average, and the five packets leave within 4 ms.
        assert!((1.5..5.0).contains(&burst), "{preset}: {burst}");
        assert!((2.4..9.6).contains(&time), "{preset}: {time}");
    }
}

#[test]
fn losses_that_were_mended_count() {
    let down = "rate=10mbit delay=50ms queue=187500b loss=gt:200,4.8,1,0";
    let mut mended = 0;
    for (seed, protection) in [(1, tail(4)), (2, incremental(4, 5 * MS)), (3, tail(2))] {
        let ends = stream(seed, down, 3_600, protection);
        let (fec, floor) = (ends.server.fec, ends.server.loss_floor);
        println!("{floor:?} {fec:?}");
        mended += fec.recovered_by_peer;
        // Only losses of the link count as losses.
        assert_eq!(ends.server.packets_lost - ends.server.spurious_losses, ends.down.lost);
        let truth = lost(&ends);
        assert!(floor.low <= truth && truth <= floor.high, "{truth} {floor:?}");
        assert_eq!(fec.repair_symbols_useful, fec.recovered_by_peer);
        assert_eq!(fec.recovered_by_peer, ends.client.fec.recovered);
        assert_eq!(fec.repair_symbols_wasted, fec.repair_symbols_sent - fec.repair_symbols_useful);
        // A retransmission takes 9/8 of a round trip and the way; a repair symbol arrives earlier.
        let saved = fec.time_saved.as_secs_f64() / fec.recovered_by_peer as f64;
        assert!((0.02..0.125).contains(&saved), "{saved} s saved by each");
    }
    assert!(mended > 300, "{mended}");
}

#[test]
fn nothing_is_saved_where_nothing_is_lost() {
    let ends = stream(5, "rate=10mbit delay=50ms queue=187500b", 600, tail(2));
    let (fec, floor) = (ends.server.fec, ends.server.loss_floor);
    assert!(fec.repair_symbols_sent >= 1_000, "{fec:?}");
    assert_eq!((fec.repair_symbols_useful, fec.time_saved), (0, Duration::ZERO));
    assert_eq!(fec.repair_bytes_wasted, fec.repair_bytes_sent);
    assert_eq!((floor.rate, floor.burst_time), (0.0, Duration::ZERO));
    assert!(floor.high < 0.01, "{floor:?}");
}
