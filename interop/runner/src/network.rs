//! The network of each case.

use std::time::Duration;

use sutura_link::{LinkConfig, Loss, Outage, Trace};
use sutura_random::Rng;
use sutura_relay::{Change, Rebinding};

/// The path of the interop runner, unless a case says otherwise.
const PATH: &str = "rate=10mbit delay=15ms queue=25p";

/// Packets of a trace: enough for any transfer here, because a trace starts again when it ends.
const TRACE: usize = 1 << 17;

/// The most packets that are lost in a row.
const MAX_BURST: usize = 3;

/// How long rebindings and outages go on: longer than any transfer.
const LONG: u64 = 60;

/// The behaviour of the network.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Network {
    /// The path of the interop runner, without disturbances.
    Plain,
    /// A round trip takes 1.5 s.
    Slow,
    /// The network works for 5 s, then loses all packets for 2 s, in turns.
    Blackhole,
    /// This share of the packets is lost, each way.
    Lossy(f64),
    /// This share of the packets is damaged, each way.
    Damaging(f64),
    /// The client's datagrams 2 to 7 are lost.
    LosesSecondFlight,
    /// The client gets another port or address after a second and then every five.
    Rebinds(Change),
}

/// The links of both directions, and the changes of the client's address.
#[derive(Debug, Clone)]
pub struct Links {
    pub up: LinkConfig,
    pub down: LinkConfig,
    pub rebindings: Vec<Rebinding>,
}

impl Network {
    /// The links of the network.
    pub fn links(self, seed: u64) -> Result<Links, sutura_link::ParseError> {
        let plain: LinkConfig = PATH.parse()?;
        let mut links = Links { up: plain.clone(), down: plain, rebindings: Vec::new() };
        match self {
            Self::Plain => {}
            Self::Slow => {
                links.up.delay = Duration::from_millis(750);
                links.down.delay = Duration::from_millis(750);
            }
            Self::Blackhole => {
                let outages: Vec<_> = (5..LONG).step_by(7).map(outage).collect();
                links.up.outages.clone_from(&outages);
                links.down.outages = outages;
            }
            Self::Lossy(share) => {
                links.up.loss = bursts(share, seed);
                links.down.loss = bursts(share, !seed);
            }
            Self::Damaging(share) => {
                let share = share.to_string().parse()?;
                links.up.corrupt = share;
                links.down.corrupt = share;
            }
            Self::LosesSecondFlight => {
                let lost: Vec<bool> = (0..TRACE).map(|n| (1..7).contains(&n)).collect();
                links.up.loss = Trace::new(lost).map_or(Loss::None, Loss::Trace);
            }
            Self::Rebinds(change) => {
                let at = std::iter::once(1).chain((6..LONG).step_by(5)).map(Duration::from_secs);
                links.rebindings = at.map(|at| Rebinding { at, change }).collect();
            }
        }
        Ok(links)
    }
}

fn outage(from: u64) -> Outage {
    Outage { from: Duration::from_secs(from), to: Duration::from_secs(from + 2) }
}

/// Losses of this share of the packets, at most three in a row.
fn bursts(share: f64, seed: u64) -> Loss {
    let mut rng = Rng::new(seed);
    let mut lost = Vec::with_capacity(TRACE);
    let threshold = (share * u32::MAX as f64) as u64;
    let mut row = 0;
    while lost.len() < TRACE {
        let now = row < MAX_BURST && rng.below(u64::from(u32::MAX)) < threshold;
        row = if now { row + 1 } else { 0 };
        lost.push(now);
    }
    Trace::new(lost).map_or(Loss::None, Loss::Trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_come_in_short_bursts_at_the_rate_that_was_asked_for() {
        for share in [0.02, 0.3] {
            let Loss::Trace(trace) = bursts(share, 7) else { unreachable!() };
            assert!((trace.mean() - share).abs() < 0.02, "{}", trace.mean());
            let longest = trace.as_slice().split(|lost| !lost).map(<[bool]>::len).max();
            assert!(longest.is_some_and(|longest| (2..=MAX_BURST).contains(&longest)));
        }
    }

    #[test]
    fn every_network_can_be_built() {
        for network in [
            Network::Plain,
            Network::Slow,
            Network::Blackhole,
            Network::Lossy(0.3),
            Network::Damaging(0.02),
            Network::LosesSecondFlight,
            Network::Rebinds(Change::Address),
        ] {
            network.links(1).unwrap();
        }
    }
}
