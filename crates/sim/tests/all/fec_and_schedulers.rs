//! Repair symbols among streams of different urgency and weight: they wait for streams that are
//! more urgent than the data they protect, with rounds from the next round on, and count towards
//! the shares of the streams they protect.

use std::sync::Arc;
use std::time::Duration;

use crate::common::supply::{Entry, Supply, What, send, unlimited};
use crate::common::{MS, incremental, link};
use sutura_proto::{Algorithm, FecConfig, Priority, Protection, Scheme, TransportConfig};
use sutura_schedule::Weight;
use sutura_sim::Scenario;

const SECOND: Duration = Duration::from_secs(1);
const RTT: Duration = Duration::from_millis(100);

/// A bottleneck link, and a sender that keeps it busy without filling its queue.
fn over(path: &str, config: TransportConfig) -> Scenario {
    let congestion = Arc::new(Algorithm::BBR);
    let path = link(&format!("rate=10mbit delay=50ms {path}"));
    Scenario::new(1).link(&path, &path).transport(&config.with_congestion(congestion))
}

/// The indices of the two streams of [`in_turns`].
const URGENT: usize = 0;
const BACKGROUND: usize = 1;

/// The number of bursts on the urgent stream.
const BURSTS: u32 = 40;
/// The delay of the background stream's repair symbols.
const DELAY: Duration = Duration::from_millis(25);

/// A stream of urgency 0 that takes over the link from time to time, and a protected stream of
/// urgency 7 that writes as given by `background`.
fn in_turns(background: Vec<(Duration, usize)>) -> [Supply; 2] {
    let sizes = [20_000, 60_000, 90_000, 250_000];
    let bursts = (0..BURSTS).zip(sizes.iter().cycle());
    let bursts = bursts.map(|(i, size)| (2 * SECOND + 507 * MS * i, *size));
    [
        Supply {
            priority: Priority::new(0, false).unwrap(),
            protection: None,
            writes: bursts.collect(),
        },
        Supply {
            priority: Priority::new(7, true).unwrap(),
            protection: incremental(3, DELAY),
            writes: background,
        },
    ]
}

/// The periods in which urgent data waited.
fn waits(entries: &[Entry]) -> Vec<(Duration, Duration)> {
    let mut waits: Vec<(Duration, Duration)> = Vec::new();
    let mut waited = false;
    for entry in entries {
        let waiting = entry.waiting.contains(&URGENT);
        match waits.last_mut() {
            Some((_, end)) if waited => *end = entry.at,
            _ if waiting => waits.push((entry.at, entry.at)),
            _ => {}
        }
        waited = waiting;
    }
    waits
}

fn repairs(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    entries.iter().filter(|entry| matches!(entry.what, What::Repair(_)))
}

/// Whether repair symbols became due between `from` and `to` for data that cannot have been
/// acknowledged by then, and that was sent `since` then.
fn fell_due(entries: &[Entry], since: Duration, from: Duration, to: Duration) -> bool {
    entries.iter().any(|entry| {
        let due = entry.at + DELAY;
        let is_new = matches!(entry.what, What::New(BACKGROUND, _)) && entry.at > since;
        is_new && from < due && due < to && to < entry.at + RTT
    })
}

#[test]
fn repair_symbols_wait_for_more_urgent_data_and_for_nothing_else() {
    let pieces: Vec<_> = (0..1100).map(|i| (20 * MS * i, 4000)).collect();
    let busy = vec![(Duration::ZERO, 20_000_000)];
    for scheduler in [Scheme::EPS, Scheme::HMM, Scheme::HLS] {
        for (what, background) in [("pieces", &pieces), ("busy", &busy)] {
            let scenario = over("", unlimited().with_scheduler(Arc::new(scheduler)));
            let (entries, _) = send(&scenario, &in_turns(background.clone()));
            let waits = waits(&entries);
            // By rounds, the round that has begun ends first.
            let ends_round = |at| {
                let since = waits.iter().map(|(from, _)| *from).rfind(|from| *from <= at);
                let passed =
                    entries.iter().filter(|entry| Some(entry.at) >= since && entry.at <= at);
                let urgent = passed.filter(|entry| matches!(entry.what, What::New(URGENT, _)));
                scheduler == Scheme::HLS && urgent.count() == 0
            };
            let mut early = repairs(&entries).filter(|entry| entry.waiting.contains(&URGENT));
            assert_eq!(early.find(|entry| !ends_round(entry.at)), None, "{scheduler}, {what}");

            assert_eq!(waits.len(), BURSTS as usize, "{scheduler}, {what}");
            let mut held = 0;
            for (from, to) in waits {
                // A busy stream has repair symbols in flight that protect all that came before them.
                let last = repairs(&entries).map(|entry| entry.at).take_while(|at| *at < to).last();
                let since = last.filter(|_| what == "busy").unwrap_or_default();
                if fell_due(&entries, since, from, to) {
                    held += 1;
                    let next = repairs(&entries).find(|entry| entry.at >= to).unwrap().at - to;
                    // A busy stream's own data goes first for a quarter of a round trip.
                    assert!(
                        next <= DELAY + RTT / 4 + 5 * MS,
                        "{scheduler}, {what}: {to:?}, {next:?}"
                    );
                }
            }
            assert!(held >= BURSTS / 3, "{scheduler}, {what}: {held}");
            assert!(repairs(&entries).count() > 900, "{scheduler}, {what}");
        }
    }
}

/// A priority that shares with other streams of its urgency by weight.
fn shared(weight: u32) -> Priority {
    let weight = Weight::new(1000 * weight).unwrap();
    Priority::new(3, true).unwrap().with_weight(weight)
}

/// The bytes sent per stream while all streams are busy: data only, and data plus repair symbols.
fn shares<const N: usize>(entries: &[Entry]) -> ([f64; N], [f64; N]) {
    let (mut data, mut all) = ([0.0; N], [0.0; N]);
    for entry in entries.iter().filter(|entry| (SECOND..6 * SECOND).contains(&entry.at)) {
        match &entry.what {
            What::New(stream, bytes) | What::Again(stream, bytes) => {
                data[*stream] += *bytes as f64;
                all[*stream] += *bytes as f64;
            }
            What::Repair(shares) => shares.iter().for_each(|(stream, bytes)| all[*stream] += bytes),
        }
    }
    (data, all)
}

fn assert_near(a: f64, b: f64, tolerance: f64, what: &str) {
    assert!((a / b - 1.0).abs() <= tolerance, "{what}: {a:.4} instead of {b:.4}");
}

const WEIGHTS: [u32; 3] = [1, 2, 4];

/// Streams that always have data to send. The streams in `protected` are protected.
fn busy_streams(protected: &[usize]) -> Vec<Supply> {
    let protection = |i| protected.contains(&i).then(|| incremental(3, Duration::ZERO)).flatten();
    let supply = |(i, w)| Supply::bulk(shared(w), protection(i), 1_400_000 * w as usize);
    WEIGHTS.into_iter().enumerate().map(supply).collect()
}

/// The protected streams pay for their protection: the shares match the weights if repair symbols
/// count, and would not match if they did not.
#[test]
fn busy_streams_share_by_weight_with_their_repair_symbols() {
    let protected: [&[usize]; 6] = [&[0], &[1], &[2], &[0, 1], &[0, 2], &[1, 2]];
    // With a single session, equally protected streams share it.
    let cases = [("", 16, 0.01), ("", 1, 0.01), ("loss=bern:0.01", 16, 0.03)];
    for scheduler in [Scheme::HMM, Scheme::HLS] {
        for (path, max_sessions, tolerance) in cases {
            for protected in protected {
                let what = format!("{scheduler}, {path}, {max_sessions}, {protected:?}");
                let fec = Some(FecConfig::default().with_max_sessions(max_sessions));
                let scenario =
                    over(path, unlimited().with_scheduler(Arc::new(scheduler)).with_fec(fec));
                let (entries, ends) = send(&scenario, &busy_streams(protected));
                let (data, all) = shares::<3>(&entries);
                let (data_sum, all_sum): (f64, f64) = (data.iter().sum(), all.iter().sum());
                for (i, weight) in WEIGHTS.into_iter().enumerate() {
                    let fair = f64::from(weight) / 7.0;
                    assert_near(all[i] / all_sum, fair, tolerance, &what);
                    let differs = (data[i] / data_sum / fair - 1.0).abs();
                    assert!(differs > 0.01, "{what}: {differs}");
                }
                assert!(ends.server.fec.repair_symbols_sent > 100, "{what}");
            }
        }
    }
}

/// A stream that sends 200 kB/s in pieces, each followed by repair symbols, next to two busy
/// streams.
fn pieces_beside_busy_streams(
    scheduler: Scheme,
    weight: u32,
    protection: Option<Protection>,
) -> ([f64; 3], [f64; 3]) {
    let plan = [
        Supply {
            priority: shared(weight),
            protection,
            writes: (0..700).map(|i| (10 * MS * i, 2000)).collect(),
        },
        Supply::bulk(shared(1), None, 3_500_000),
        Supply::bulk(shared(2), None, 7_000_000),
    ];
    let scenario = over("", unlimited().with_scheduler(Arc::new(scheduler)));
    shares::<3>(&send(&scenario, &plan).0)
}

/// Repair symbols go before data of the same urgency, but only within the stream's share: if they
/// use it up, the data of the stream has to wait. If they do not, the data does not wait.
///
/// By rounds, the stream has 1 to 5 % less than its share: at each gap it gives back the rest of its
/// turn, before it pays for the repair symbols that follow.
#[test]
fn a_stream_with_gaps_has_no_more_than_its_share_for_its_repair_symbols() {
    for (scheduler, given_back, tolerance) in [(Scheme::HMM, 0.0, 0.02), (Scheme::HLS, 0.03, 0.025)]
    {
        for burst in [3, 20] {
            let protection = incremental(burst, Duration::ZERO);
            let what = format!("{scheduler}, {burst}");
            let (_, all) = pieces_beside_busy_streams(scheduler, 1, protection.clone());
            let share = all[0] / all.iter().sum::<f64>();
            assert_near(share, 0.25 * (1.0 - given_back), tolerance, &what);
            assert_near(all[2] / all[1], 2.0, 0.01, &what);

            let (data, all) = pieces_beside_busy_streams(scheduler, 4, protection);
            assert!(all[0] / all.iter().sum::<f64>() <= 4.0 / 7.0, "{what}: {all:?}");
            assert!(all[0] > 2.0 * data[0], "{what}: {all:?}");
            assert_near(data[0], 1_000_000.0, 0.02, &what);
            assert_near(all[2] / all[1], 2.0, 0.01, &what);
        }
    }
}
