//! The generator of paths.

use std::time::Duration;

use sutura_link::{LinkConfig, Opportunities, ParseError, Queue};
use sutura_random::Rng;

use crate::experiments::draw::{log_uniform, millis, pick, rounded, share, uniform};
use crate::link_trace::LinkTrace;

/// The bytes that every queue has room for.
const LEAST_QUEUE: f64 = 8000.0;

named! {
    /// The queue at the bottleneck.
    pub enum QueueKind {
        /// 0.25 to 4 bandwidth-delay products.
        DropTail = "drop-tail",
        Red = "RED",
        Codel = "CoDel",
        Policer = "policer",
    }
}

named! {
    /// The losses that do not come of the queue.
    pub enum Lossy {
        None = "none",
        /// Each packet on its own.
        Random = "random",
        /// Bursts of some packets.
        Bursts = "bursts of packets",
        /// Bursts of some milliseconds, whatever is sent.
        Fades = "bursts of time",
        /// States of 0.1 to 10 s.
        States = "on and off",
        /// A share that changes now and then.
        Steps = "steps of loss",
    }
}

named! {
    /// What changes on the way.
    pub enum Course {
        Same = "none",
        /// Rate and round-trip time.
        Steps = "steps of rate and delay",
        /// Outages of 50 ms to 2 s.
        Handovers = "handovers",
    }
}

/// The kinds that a path is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds {
    pub bottleneck: QueueKind,
    pub lossy: Lossy,
    pub course: Course,
    /// Whether packets arrive with jitter or out of order.
    pub unsteady: bool,
    /// Whether the way back is slower.
    pub asymmetric: bool,
}

impl Kinds {
    pub fn draw(rng: &mut Rng) -> Self {
        let bottlenecks = [
            (QueueKind::DropTail, 55),
            (QueueKind::Red, 10),
            (QueueKind::Codel, 15),
            (QueueKind::Policer, 20),
        ];
        let lossy = [
            (Lossy::None, 15),
            (Lossy::Random, 25),
            (Lossy::Bursts, 20),
            (Lossy::Fades, 15),
            (Lossy::States, 15),
            (Lossy::Steps, 10),
        ];
        let courses = [(Course::Same, 75), (Course::Steps, 15), (Course::Handovers, 10)];
        Self {
            bottleneck: pick(rng, &bottlenecks).unwrap_or(QueueKind::DropTail),
            lossy: pick(rng, &lossy).unwrap_or(Lossy::None),
            course: pick(rng, &courses).unwrap_or(Course::Same),
            unsteady: rng.chance(0.2),
            asymmetric: rng.chance(0.3),
        }
    }
}

/// Rate and round-trip time of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// Bits per second.
    pub rate: f64,
    pub rtt: Duration,
}

impl Extent {
    /// That of a path with these links; one without a rate has a gigabit.
    pub fn of(up: &LinkConfig, down: &LinkConfig) -> Self {
        const UNLIMITED: f64 = 1e9;
        let traced = down.trace.as_ref().map(Opportunities::mean_rate);
        let limited = down.rate.map(|rate| rate.bits_per_second() as f64);
        Self { rate: traced.or(limited).unwrap_or(UNLIMITED), rtt: up.delay + down.delay }
    }

    /// A path that is not faster and not longer than this.
    pub fn draw(rng: &mut Rng, fastest: f64, longest: f64) -> Self {
        let rate = rounded(log_uniform(rng, 1e6, fastest));
        Self { rate, rtt: 2 * millis(log_uniform(rng, 2.0, longest) / 2.0) }
    }

    /// The bytes that are in flight at this rate.
    fn product(self) -> f64 {
        self.rate / 8.0 * self.rtt.as_secs_f64()
    }
}

/// When the bottleneck of a path could send, by a trace from a random time on.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    /// The file.
    pub file: String,
    /// The turn after which the path begins.
    pub turn: usize,
    pub opportunities: Opportunities,
}

impl Traced {
    pub fn draw(rng: &mut Rng, trace: &LinkTrace) -> Self {
        let turn = rng.index(trace.opportunities.as_slice().len());
        Self { file: trace.to_string(), turn, opportunities: trace.opportunities.from_turn(turn) }
    }
}

/// The links to the server and from it.
///
/// # Errors
/// A link's text is wrong, which is a bug.
pub fn links(
    rng: &mut Rng,
    size: Extent,
    kinds: Kinds,
    length: Duration,
) -> Result<[LinkConfig; 2], ParseError> {
    let delay = size.rtt / 2;
    let mut down = line(size.rate, delay);
    down.push_str(&format!(" queue={}", queue(rng, size, kinds.bottleneck)));
    let lossy = loss(rng, kinds.lossy, length);
    down.push_str(&lossy);
    down.push_str(&course(rng, size, kinds.course, length));
    if kinds.unsteady {
        down.push_str(&unsteadiness(rng, size));
    }
    let (slower, longer) = if kinds.asymmetric {
        (log_uniform(rng, 0.05, 0.5), uniform(rng, 0.5, 2.0))
    } else {
        (1.0, 1.0)
    };
    let back = delay.as_secs_f64() * 1000.0 * longer;
    let mut up = line(rounded((size.rate * slower).max(200_000.0)), millis(back));
    // Acknowledgements are lost on half of the paths where data is, and in every outage.
    if rng.chance(0.5) {
        up.push_str(&lossy);
    }
    let down: LinkConfig = down.parse()?;
    let up = LinkConfig { outages: down.outages.clone(), ..up.parse()? };
    Ok([up, down])
}

fn line(rate: f64, delay: Duration) -> String {
    format!("rate={}bit delay={}us", rate as u64, delay.as_micros())
}

fn queue(rng: &mut Rng, size: Extent, kind: QueueKind) -> Queue {
    let bytes = |value: f64| rounded(value.max(LEAST_QUEUE)) as u64;
    let products = log_uniform(rng, 0.25, 4.0);
    match kind {
        QueueKind::DropTail => Queue::Bytes(bytes(products * size.product())),
        // The thresholds are below the room.
        QueueKind::Red => Queue::Red(bytes(2.0 * products * size.product()).max(30_000)),
        QueueKind::Codel => Queue::Codel(bytes(size.product().max(size.rate / 8.0)).max(100_000)),
        QueueKind::Policer => {
            // From ten packets to what the rate carries in half a second.
            Queue::Policer(bytes(log_uniform(rng, 12_000.0, (size.rate / 16.0).max(30_000.0))))
        }
    }
}

fn loss(rng: &mut Rng, kind: Lossy, length: Duration) -> String {
    let mean = log_uniform(rng, 0.0005, 0.1);
    match kind {
        Lossy::None => String::new(),
        Lossy::Random => format!(" loss=bern:{}", share(mean)),
        Lossy::Bursts => {
            let burst = log_uniform(rng, 1.5, 30.0);
            let bad = uniform(rng, 0.5, 1.0);
            // The share of packets in the bad state is what makes the mean.
            let within = (mean / bad).min(0.5);
            let begins = within / (1.0 - within) / burst;
            let [p, r, bad] = [begins, 1.0 / burst, bad].map(share);
            format!(" loss=ge:{p},{r},{bad},0")
        }
        Lossy::Fades => {
            let burst = log_uniform(rng, 1.0, 100.0);
            let good = burst * (1.0 - mean) / mean;
            format!(
                " loss=gt:{},{},{},0",
                rounded(good),
                rounded(burst),
                share(uniform(rng, 0.7, 1.0))
            )
        }
        Lossy::States => {
            let [good, bad] = [(); 2].map(|()| rounded(log_uniform(rng, 100.0, 10_000.0)));
            let least = if rng.chance(0.5) { 0.0 } else { uniform(rng, 0.0, 0.005) };
            let most = log_uniform(rng, 0.01, 0.3);
            format!(" loss=gt:{good},{bad},{},{}", share(most), share(least))
        }
        Lossy::Steps => {
            let shares = [0.0, mean, mean / 4.0, 0.0, (2.0 * mean).min(0.15)];
            let from = rng.index(shares.len());
            let at = |n: usize| length.as_millis() as usize * n / 8;
            let step = |n: usize| {
                format!(" step={}ms,loss={}", at(n), share(shares[(from + n) % shares.len()]))
            };
            (0..8).map(step).collect()
        }
    }
}

fn course(rng: &mut Rng, size: Extent, kind: Course, length: Duration) -> String {
    let seconds = length.as_secs_f64();
    let mut text = String::new();
    match kind {
        Course::Same => {}
        Course::Steps => {
            for n in 1..=rng.range(2..7) {
                let at = millis(1000.0 * seconds * (n as f64 - rng.unit()) / 6.0);
                let rate = rounded(size.rate * uniform(rng, 0.5, 1.5)) as u64;
                let delay = size.rtt.as_micros() as f64 / 2.0 * uniform(rng, 0.7, 1.5);
                let (at, delay) = (at.as_micros(), rounded(delay) as u64);
                text.push_str(&format!(" step={at}us,rate={rate}bit,delay={delay}us"));
            }
        }
        Course::Handovers => {
            let every = uniform(rng, 2.0, 10.0).min(seconds / 2.0);
            let lasts = log_uniform(rng, 50.0, 2000.0).min(400.0 * every);
            for n in 1..=((seconds / every) as u64).min(20) {
                let from = millis(1000.0 * every * (n as f64 - 0.5 * rng.unit()));
                let to = from + millis(lasts);
                text.push_str(&format!(" outage={}us..{}us", from.as_micros(), to.as_micros()));
            }
        }
    }
    text
}

fn unsteadiness(rng: &mut Rng, size: Extent) -> String {
    let most = (0.2 * size.rtt.as_micros() as f64).clamp(200.0, 20_000.0);
    let jitter = rounded(log_uniform(rng, 100.0, most)) as u64;
    let kind = rng.below(3);
    let held = share(log_uniform(rng, 0.001, 0.03));
    match kind {
        0 => format!(" jitter={jitter}us"),
        1 => format!(" jitter={jitter}us,reorder"),
        _ => format!(" reorder={held},{jitter}us"),
    }
}
