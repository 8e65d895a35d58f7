//! The test bed: flows that share a link each way, until all are complete or the time is over.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_link::LinkConfig;
use sutura_random::Rng;
use sutura_sim::{Clock, Failure, Network, Transfer};

use super::ends::Ends;
use super::meter::{Meter, Passage};
use super::sender::Sender;

/// A link each way, and how long to watch it.
#[derive(Clone, Copy, Debug)]
pub struct Bed<'a> {
    /// From the clients to the servers.
    pub up: &'a LinkConfig,
    /// From the servers to the clients.
    pub down: &'a LinkConfig,
    /// Bytes that flow control and buffers let a flow have in flight.
    pub window: u32,
    /// Transfers that are not complete by then are left incomplete.
    pub until: Duration,
}

/// A single download, or one download after the other until the time is over.
#[derive(Clone, Copy, Debug)]
pub struct Flow<'a> {
    /// The sender.
    pub sender: &'a Sender,
    /// The bytes of a download.
    pub bytes: u64,
    /// How long after the end of each download the next one begins; `None` for a single one.
    pub pause: Option<Duration>,
    /// When its connection is opened.
    pub start: Duration,
}

impl Flow<'_> {
    /// The downloads: the number that can begin in the time `until`.
    fn downloads(&self, until: Duration) -> (impl Iterator<Item = Transfer> + use<>, Duration) {
        let pause = self.pause.unwrap_or_default();
        let count = self.pause.map_or(1, |pause| until.as_nanos() / pause.as_nanos().max(1) + 1);
        let download = Transfer::download(self.bytes);
        (std::iter::repeat_n(download, usize::try_from(count).unwrap_or(usize::MAX)), pause)
    }
}

/// The outcome of a flow.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FlowOutcome {
    /// How long the transfer took after the handshake; `None` if it is not complete.
    pub time: Option<Duration>,
    /// How long each download took that is complete.
    pub downloads: Vec<Duration>,
    /// Repair symbols that were sent.
    pub repairs: u64,
    /// Bytes that were sent again.
    pub sent_again: u64,
    /// The fates of its packets.
    pub passage: Passage,
}

impl Bed<'_> {
    /// Runs `flows`, which are in the order of their starts.
    ///
    /// # Errors
    /// The simulation fails, or an application finds a byte wrong.
    pub fn run(&self, flows: &[Flow<'_>], seed: u64) -> Result<Vec<FlowOutcome>, Failure> {
        self.try_run(flows, seed).map_err(|failure| Failure { seed: Some(seed), ..failure })
    }

    fn try_run(&self, flows: &[Flow<'_>], seed: u64) -> Result<Vec<FlowOutcome>, Failure> {
        let mut seeds = Rng::new(seed);
        let mut network = Network::new(Clock::default());
        let links = [seeds.next_u64(), seeds.next_u64()];
        let mut ends: Vec<Ends> = Vec::new();
        for (index, flow) in (1..).zip(flows) {
            let own = [seeds.next_u64(), seeds.next_u64()];
            ends.push(Ends::new(&mut network, index, flow.sender, self.window, own));
        }
        self.lay(&mut network, &ends, links);
        let meter = Meter::new(ends.iter().map(|ends| ends.server));
        network.set_tracer(Box::new(meter.clone()));
        for (ends, flow) in ends.iter_mut().zip(flows) {
            network.run_until(flow.start)?;
            let (downloads, pause) = flow.downloads(self.until);
            ends.open(&mut network, downloads, pause)?;
        }
        network.flush()?;
        while ends.iter().any(|ends| ends.completed(&network).is_none()) {
            if network.next_time().is_none_or(|next| next > self.until) {
                break;
            }
            network.step()?;
        }
        ends.iter().try_for_each(|ends| ends.check(&network))?;
        let outcomes = ends.iter().zip(meter.take()).map(|(ends, passage)| FlowOutcome {
            time: ends.completed(&network),
            downloads: ends.downloads(&network),
            repairs: ends.repair_symbols(&network),
            sent_again: ends.sent_again(&network),
            passage,
        });
        Ok(outcomes.collect())
    }

    /// Lays the links between the ends of the first flow, and lets the other flows share them.
    fn lay(&self, network: &mut Network, ends: &[Ends], [up, down]: [u64; 2]) {
        let Some((first, others)) = ends.split_first() else { return };
        network.connect(first.client, first.server, self.up, up);
        network.connect(first.server, first.client, self.down, down);
        for other in others {
            network.share(other.client, other.server, (first.client, first.server));
            network.share(other.server, other.client, (first.server, first.client));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long each sender takes for a megabyte, and its passage.
    fn alone(down: &str) -> Vec<(String, FlowOutcome)> {
        let (up, down) = ("rate=10mbit delay=50ms".parse().unwrap(), down.parse().unwrap());
        let bed = Bed { up: &up, down: &down, window: 1 << 22, until: Duration::from_secs(60) };
        let senders = Sender::ours().into_iter().chain(Sender::quinn());
        let run = |sender: Sender| {
            let start = Duration::ZERO;
            let flow = Flow { sender: &sender, bytes: 1_000_000, pause: None, start };
            (sender.to_string(), bed.run(&[flow], 7).unwrap().remove(0))
        };
        senders.map(run).collect()
    }

    #[test]
    fn every_sender_completes_and_nobody_beats_the_link() {
        for (name, outcome) in alone("rate=10mbit delay=50ms queue=125kb") {
            // 1 MB takes 800 ms, and a round trip goes by until the first byte arrives.
            let time = outcome.time.unwrap();
            let (least, most) = (Duration::from_millis(900), Duration::from_millis(2500));
            assert!(least < time && time < most, "{name}: {time:?}");
            let Passage { sent, overflow, passed, queued, intervals } = outcome.passage;
            assert_eq!(sent, overflow + passed, "{name}");
            assert_eq!(intervals.iter().map(|i| i.passed).sum::<u64>(), passed, "{name}");
            assert_eq!(intervals.iter().map(|i| i.queued).sum::<Duration>(), queued, "{name}");
            assert!(intervals.iter().map(|i| i.arrived).sum::<u64>() > 1_000_000, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_complete_is_left_incomplete() {
        for (name, outcome) in alone("rate=10kbit delay=50ms") {
            assert_eq!(outcome.time, None, "{name}");
        }
    }

    #[test]
    fn flows_share_the_link() {
        let link: LinkConfig = "rate=10mbit delay=20ms queue=50kb".parse().unwrap();
        let until = Duration::from_secs(5);
        let bed = Bed { up: &link, down: &link, window: 1 << 20, until };
        let (ours, [theirs, _]) = (Sender::ours(), Sender::quinn());
        let flows = [&ours[0], &theirs].map(|sender| Flow {
            sender,
            bytes: 100_000_000,
            pause: None,
            start: Duration::ZERO,
        });
        let outcomes = bed.run(&flows, 1).unwrap();
        let arrived = |outcome: &FlowOutcome| -> u64 {
            outcome.passage.intervals.iter().map(|interval| interval.arrived).sum()
        };
        let arrived: Vec<u64> = outcomes.iter().map(arrived).collect();
        assert!(arrived.iter().all(|bytes| *bytes > 1_000_000), "{arrived:?}");
        let most = 10_000_000 / 8 * 5;
        let sum: u64 = arrived.iter().sum();
        assert!((most / 10 * 8..=most).contains(&sum), "{arrived:?}");
        assert!(outcomes.iter().all(|outcome| outcome.time.is_none()));
    }

    #[test]
    fn downloads_follow_each_other_after_a_pause() {
        let link: LinkConfig = "rate=10mbit delay=20ms queue=50kb".parse().unwrap();
        let until = Duration::from_secs(10);
        let bed = Bed { up: &link, down: &link, window: 1 << 20, until };
        for sender in [&Sender::ours()[0], &Sender::quinn()[0]] {
            let pause = Some(Duration::from_millis(950));
            let flow = Flow { sender, bytes: 10_000, pause, start: Duration::ZERO };
            let outcome = bed.run(&[flow], 1).unwrap().remove(0);
            assert_eq!(outcome.time, None, "{sender}: the time is over first");
            let count = outcome.downloads.len();
            assert!((8..=10).contains(&count), "{sender}: {count} of about a second each");
            assert!(outcome.downloads.iter().all(|time| *time < Duration::from_millis(200)));
        }
    }
}
