//! The paths on which a single flow is measured: a centre, from which one thing varies at a time.

use sutura_link::LinkConfig;

use super::super::Channel;
use crate::Error;

/// Rate in Mbit/s, round-trip time in milliseconds and queue in bandwidth-delay products of the centre.
const CENTRE: Base = Base { mbit: 10.0, rtt: 100.0, queue: 1.0 };
/// The shares of packets that lossy paths lose.
const LOSSES: [f64; 5] = [0.005, 0.01, 0.0235, 0.05, 0.1];
/// The loss of lossy paths where another property varies: the loss of the paper.
const LOSS: f64 = 0.0235;
/// Mean length of bursts of loss, in packets.
const BURST: f64 = 3.0;
/// The queues, in bandwidth-delay products.
const QUEUES: [f64; 4] = [0.1, 0.5, 1.0, 4.0];
/// The round-trip times, in milliseconds.
const RTTS: [f64; 5] = [5.0, 20.0, 50.0, 300.0, 600.0];
/// The rates, in Mbit/s.
const RATES: [f64; 3] = [1.0, 100.0, 1000.0];

/// The property that is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Axis {
    /// Independent losses on the way to the client, at the centre.
    Random,
    /// Bursts of losses, three packets long on average.
    Bursts,
    /// The channels of Holzinger et al. 2025, which lose in both directions.
    Paper,
    /// The queue, without and with loss.
    Queue,
    /// The round-trip time, without and with loss.
    Rtt,
    /// The rate, without and with loss.
    Rate,
    /// A step of rate or delay after three seconds.
    Step,
    /// Losses on the way to the server.
    Acks,
    /// Packets that later packets overtake.
    Reordering,
    /// A token bucket in place of the queue.
    Policer,
    /// A satellite, and a Wi-Fi.
    Access,
}

/// The size and shape of a path.
#[derive(Clone, Copy, Debug)]
struct Base {
    mbit: f64,
    rtt: f64,
    queue: f64,
}

impl Base {
    /// A bandwidth-delay product in bytes.
    fn product(self) -> f64 {
        self.mbit * self.rtt * 1e3 / 8.0
    }

    /// A direction with the given queue, and more settings.
    fn link(self, queue: &str, more: &str) -> Result<LinkConfig, Error> {
        let (rate, delay) = ((self.mbit * 1e6).round(), (self.rtt * 500.0).round());
        Ok(format!("rate={rate}bit delay={delay}us queue={queue} {more}").parse()?)
    }

    fn down(self, more: &str) -> Result<LinkConfig, Error> {
        // A packet fits in any case.
        self.link(&format!("{}b", (self.queue * self.product()).round().max(1500.0)), more)
    }

    /// The way of the acknowledgements, whose queue is never full.
    fn up(self, more: &str) -> Result<LinkConfig, Error> {
        self.link("100mb", more)
    }

    /// The same at a rate that is lower by `loss`. The queue keeps its bytes.
    fn slower(self, loss: f64) -> Self {
        let mbit = self.mbit * (1.0 - loss);
        Self { mbit, queue: self.queue * self.mbit / mbit, ..self }
    }
}

/// A path from the server to the client and back.
#[derive(Clone, Debug)]
pub struct VariedPath {
    /// The property that the path varies.
    pub axis: Axis,
    /// Its name in tables.
    pub name: String,
    /// Its place on the axis: a share of loss, or a queue in bandwidth-delay products. Other axes are not
    /// drawn.
    pub place: f64,
    /// From the client to the server.
    pub up: LinkConfig,
    /// From the server to the client.
    pub down: LinkConfig,
    /// The same path without the impairment, at a rate that is lower by the share of lost packets: the goal
    /// for senders. `None` if there is no impairment.
    pub reference: Option<(LinkConfig, LinkConfig)>,
    /// Whether redundancy could be of use, so that senders are measured with it, too.
    pub lossy: bool,
    /// Whether transfers are long enough only if they take several seconds.
    pub long: bool,
}

impl VariedPath {
    /// A path without a reference.
    fn plain(axis: Axis, name: String, place: f64, base: Base, more: &str) -> Result<Self, Error> {
        let (up, down) = (base.up("")?, base.down(more)?);
        Ok(Self { axis, name, place, up, down, reference: None, lossy: false, long: false })
    }

    /// A path that loses `loss` of the packets to the client, in the way that `model` says.
    fn lossy(axis: Axis, name: String, base: Base, loss: f64, model: &str) -> Result<Self, Error> {
        let path = Self::plain(axis, name, loss, base, &format!("loss={model}"))?;
        let slower = base.slower(loss);
        Ok(Self { reference: Some((slower.up("")?, slower.down("")?)), lossy: true, ..path })
    }
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 1e2)
}

/// Independent losses.
fn random(loss: f64) -> String {
    format!("bern:{loss}")
}

/// Bursts in which every packet is lost.
fn bursts(loss: f64) -> String {
    let ends = 1.0 / BURST;
    let begins = ends * loss / (1.0 - loss);
    format!("ge:{begins:.6},{ends:.6},1,0")
}

/// All paths.
///
/// # Errors
/// None, as long as the link crate reads the settings here.
pub fn all() -> Result<Vec<VariedPath>, Error> {
    let mut paths = vec![VariedPath::plain(Axis::Random, "no loss".to_owned(), 0.0, CENTRE, "")?];
    for loss in LOSSES {
        let name = format!("random {}", percent(loss));
        paths.push(VariedPath::lossy(Axis::Random, name, CENTRE, loss, &random(loss))?);
    }
    for loss in LOSSES {
        let name = format!("bursts {}", percent(loss));
        paths.push(VariedPath::lossy(Axis::Bursts, name, CENTRE, loss, &bursts(loss))?);
    }
    for channel in [Channel::Fractions, Channel::Percentages, Channel::Time] {
        paths.push(paper(channel)?);
    }
    for queue in QUEUES {
        let base = Base { queue, ..CENTRE };
        varied(&mut paths, Axis::Queue, &format!("queue {queue} BDP"), queue, base)?;
    }
    for rtt in RTTS {
        varied(&mut paths, Axis::Rtt, &format!("rtt {rtt} ms"), rtt, Base { rtt, ..CENTRE })?;
    }
    for mbit in RATES {
        varied(&mut paths, Axis::Rate, &format!("{mbit} Mbit/s"), mbit, Base { mbit, ..CENTRE })?;
    }
    steps(&mut paths)?;
    acks(&mut paths)?;
    reordering(&mut paths)?;
    policers(&mut paths)?;
    access(&mut paths)?;
    Ok(paths)
}

/// A path without and with loss.
fn varied(
    paths: &mut Vec<VariedPath>,
    axis: Axis,
    name: &str,
    place: f64,
    base: Base,
) -> Result<(), Error> {
    paths.push(VariedPath::plain(axis, name.to_owned(), place, base, "")?);
    let name = format!("{name}, random {}", percent(LOSS));
    let path = VariedPath::lossy(axis, name, base, LOSS, &random(LOSS))?;
    paths.push(VariedPath { place, ..path });
    Ok(())
}

fn paper(channel: Channel) -> Result<VariedPath, Error> {
    let link = channel.link()?;
    let loss = link.loss.mean();
    // 10 Mbit/s, 50 ms each way and a queue of one and a half products, as in the preset.
    let slower = Base { queue: 1.5, ..CENTRE }.slower(loss);
    Ok(VariedPath {
        axis: Axis::Paper,
        name: format!("paper, {}", channel.name()),
        place: loss,
        up: link.clone(),
        down: link,
        reference: Some((slower.up("")?, slower.down("")?)),
        lossy: true,
        long: false,
    })
}

fn steps(paths: &mut Vec<VariedPath>) -> Result<(), Error> {
    for (name, step) in [
        ("rate halves", "rate=5mbit"),
        ("rate doubles", "rate=20mbit"),
        ("rtt doubles", "delay=100ms"),
        ("rtt halves", "delay=25ms"),
    ] {
        let step = format!("step=3s,{step}");
        let path = VariedPath::plain(Axis::Step, name.to_owned(), 0.0, CENTRE, &step)?;
        let up = if step.contains("delay") { CENTRE.up(&step)? } else { path.up.clone() };
        paths.push(VariedPath { up, long: true, ..path });
    }
    Ok(())
}

fn acks(paths: &mut Vec<VariedPath>) -> Result<(), Error> {
    for loss in [0.05, 0.2] {
        let name = format!("ACKs lost, {}", percent(loss));
        let path = VariedPath::plain(Axis::Acks, name, loss, CENTRE, "")?;
        let reference = Some((path.up.clone(), path.down.clone()));
        let up = CENTRE.up(&format!("loss={}", random(loss)))?;
        paths.push(VariedPath { up, reference, lossy: true, ..path });
    }
    Ok(())
}

fn reordering(paths: &mut Vec<VariedPath>) -> Result<(), Error> {
    let base = Base { mbit: 50.0, ..CENTRE };
    for late in [10, 50] {
        let name = format!("50 Mbit/s, 30 % late by {late} ms");
        let more = format!("reorder=0.3,{late}ms");
        let path = VariedPath::plain(Axis::Reordering, name, 0.0, base, &more)?;
        let reference = Some((base.up("")?, base.down("")?));
        paths.push(VariedPath { reference, lossy: true, ..path });
    }
    Ok(())
}

fn policers(paths: &mut Vec<VariedPath>) -> Result<(), Error> {
    for depth in [0.1, 1.0] {
        let bucket = format!("policer:{}b", (depth * CENTRE.product()).round());
        paths.push(VariedPath {
            down: CENTRE.link(&bucket, "")?,
            reference: Some((CENTRE.up("")?, CENTRE.down("")?)),
            ..VariedPath::plain(
                Axis::Policer,
                format!("policer of {depth} BDP"),
                depth,
                CENTRE,
                "",
            )?
        });
    }
    Ok(())
}

fn access(paths: &mut Vec<VariedPath>) -> Result<(), Error> {
    let satellite = Base { mbit: 20.0, rtt: 600.0, queue: 1.0 };
    let name = "satellite, 20 Mbit/s, 600 ms, 1 %".to_owned();
    paths.push(VariedPath::lossy(Axis::Access, name, satellite, 0.01, &random(0.01))?);
    // Frames wait for their turn on the air, and interference takes half of the packets for some
    // milliseconds, twice a second.
    let wifi = Base { mbit: 40.0, rtt: 30.0, queue: 2.0 };
    let name = "Wi-Fi, 40 Mbit/s, 30 ms, jitter and bursts".to_owned();
    let mut path = VariedPath::lossy(Axis::Access, name, wifi, 0.0, "gt:490,10,0.5,0.001")?;
    let loss = path.down.loss.mean();
    path.down.jitter = "10ms".parse()?;
    path.up.jitter = "10ms".parse()?;
    let slower = wifi.slower(loss);
    path.reference = Some((slower.up("jitter=10ms")?, slower.down("jitter=10ms")?));
    paths.push(path);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_link::{Queue, Rate};

    #[test]
    fn references_are_slower_by_the_loss_and_have_none() {
        for path in all().unwrap() {
            let Some((up, down)) = &path.reference else {
                assert_eq!(path.down.loss.mean(), 0.0, "{}", path.name);
                continue;
            };
            assert_eq!((up.loss.mean(), down.loss.mean()), (0.0, 0.0), "{}", path.name);
            assert_eq!((down.reorder, down.delay), (None, path.down.delay), "{}", path.name);
            let [slow, fast] = [down, &path.down].map(|link| link.rate.map(Rate::bits_per_second));
            let ratio = slow.unwrap() as f64 / fast.unwrap() as f64;
            let expected = 1.0 - path.down.loss.mean();
            assert!((ratio - expected).abs() < 1e-5, "{}: {ratio} {expected}", path.name);
            if let (Queue::Bytes(slow), Queue::Bytes(fast)) = (down.queue, path.down.queue) {
                assert!(slow.abs_diff(fast) <= 1, "{}: {slow} {fast}", path.name);
            }
        }
    }

    #[test]
    fn bursts_lose_their_share_and_paths_have_names_of_their_own() {
        let paths = all().unwrap();
        for path in paths.iter().filter(|p| matches!(p.axis, Axis::Random | Axis::Bursts)) {
            let found = path.down.loss.mean();
            assert!((found - path.place).abs() < 1e-5, "{}: {found}", path.name);
        }
        let names: std::collections::BTreeSet<_> = paths.iter().map(|path| &path.name).collect();
        assert_eq!(names.len(), paths.len());
    }
}
