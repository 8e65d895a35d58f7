//! The broadcasts that are made: peers, links and rounds.

use std::fmt;
use std::time::Duration;
use sutura_link::{LinkConfig, ParseError};

/// An implementation with its settings. All else is as it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// quinn as it comes: CUBIC.
    Quinn,
    /// quinn with BBR.
    QuinnBbr,
    /// Sutura without redundancy.
    SuturaBare,
    /// Sutura as it comes: BBR and the redundancy policy `auto`.
    Sutura,
    /// Sutura with a smaller budget for redundancy.
    SuturaLess,
    /// Sutura told what the viewers' buffers hold, with a larger budget.
    SuturaWithin,
}

impl Peer {
    pub const ALL: [Self; 6] = [
        Self::Quinn,
        Self::QuinnBbr,
        Self::SuturaBare,
        Self::SuturaLess,
        Self::Sutura,
        Self::SuturaWithin,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Quinn => "quinn",
            Self::QuinnBbr => "quinn BBR",
            Self::SuturaBare => "sutura without redundancy",
            Self::SuturaLess => "sutura with 10 % redundancy",
            Self::Sutura => "sutura",
            Self::SuturaWithin => "sutura with a target and 50 % redundancy",
        }
    }
}

/// What a viewer's buffer holds beyond the delay of the path: frames that come later stall a picture that is to be as live
/// as can be. [`Peer::SuturaWithin`] knows it.
pub const SHORT_BUFFER: Duration = Duration::from_millis(50);
/// The same for a viewer with a longer buffer.
pub const LONG_BUFFER: Duration = Duration::from_millis(100);

/// A path to each of the viewers, alike in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    pub name: &'static str,
    /// As a [`LinkConfig`] is written, without the delay.
    rest: &'static str,
    /// One way.
    pub delay: Duration,
}

impl Path {
    const fn new(name: &'static str, rest: &'static str, delay_ms: u64) -> Self {
        Self { name, rest, delay: Duration::from_millis(delay_ms) }
    }

    /// The link as text.
    pub fn text(&self) -> String {
        format!("rate=10mbit queue=125000b delay={}ms {}", self.delay.as_millis(), self.rest)
    }

    pub fn link(&self) -> Result<LinkConfig, ParseError> {
        self.text().parse()
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} ms away", self.name, self.delay.as_millis())
    }
}

/// Times of 5 ms on average in which everything is lost, and good ones in between.
const SHORT: &str = "loss=gt:245,5,1,0";
/// The same of 10 ms.
const LONG: &str = "loss=gt:490,10,1,0";

/// The paths that are measured.
pub const PATHS: [Path; 10] = [
    Path::new("no loss", "loss=none", 25),
    Path::new("1 % at random", "loss=1%", 25),
    Path::new("5 % at random", "loss=5%", 25),
    Path::new("2 % in bursts of 5 ms", SHORT, 25),
    Path::new("2 % in bursts of 10 ms", LONG, 25),
    Path::new("no loss", "loss=none", 150),
    Path::new("1 % at random", "loss=1%", 150),
    Path::new("5 % at random", "loss=5%", 150),
    Path::new("2 % in bursts of 5 ms", SHORT, 150),
    Path::new("2 % in bursts of 10 ms", LONG, 150),
];

/// One broadcast.
#[derive(Debug, Clone)]
pub struct Job {
    pub peer: Peer,
    pub path: Path,
    pub link: LinkConfig,
    /// The seed of the first viewer's link; the next viewer has the next one.
    pub seed: u64,
    pub viewers: u64,
    /// Seconds that count.
    pub seconds: u64,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { peer, path, seed, .. } = self;
        write!(f, "{}, {path}, seed {seed}", peer.name())
    }
}

/// All broadcasts, those of the same seed next to each other.
pub fn jobs(seed: u64, rounds: u64, viewers: u64, seconds: u64) -> Result<Vec<Job>, ParseError> {
    let mut jobs = Vec::new();
    for round in 0..rounds {
        for path in PATHS {
            let link = path.link()?;
            jobs.extend(Peer::ALL.map(|peer| Job {
                peer,
                path,
                link: link.clone(),
                seed: seed + round * viewers,
                viewers,
                seconds,
            }));
        }
    }
    Ok(jobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_meet_the_same_seeds_and_rounds_others() {
        let jobs = jobs(7, 2, 3, 1).unwrap();
        assert_eq!(jobs.len(), 2 * PATHS.len() * Peer::ALL.len());
        let (first, second) = jobs.split_at(jobs.len() / 2);
        assert!(first.iter().all(|job| job.seed == 7));
        assert!(second.iter().all(|job| job.seed == 10));
    }

    #[test]
    fn paths_lose_what_their_names_say() {
        for path in PATHS {
            let share =
                path.name.split_once(' ').and_then(|(number, _)| number.parse::<f64>().ok());
            let mean = path.link().unwrap().loss.mean();
            assert!((mean - share.unwrap_or(0.0) / 100.0).abs() < 1e-9, "{path}: {mean}");
        }
    }
}
