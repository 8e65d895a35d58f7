//! From outcomes to tables.

use crate::broadcast::{MAX_AGE, PROTOCOL, WARM_UP};
use crate::outcome::{NEVER, Outcome, share_late, skipped};
use crate::over_sutura::{LESS, target};
use crate::plan::{Job, LONG_BUFFER, PATHS, Path, Peer, SHORT_BUFFER};
use crate::video::{DELTAS, GROUP, KEY, RATE};
use std::time::Duration;
use sutura_analysis::figure::{Axis, Chart, Panel, Series};
use sutura_analysis::report::Report;
use sutura_analysis::statistics::{Distribution, Spread};
use sutura_analysis::table::{Cell, Table};
use sutura_benches::links::conditions;

/// All broadcasts of a peer over a path.
struct Group<'a> {
    path: Path,
    peer: Peer,
    outcomes: Vec<&'a Outcome>,
    delays: Distribution,
}

impl<'a> Group<'a> {
    /// `None` if there was no such broadcast.
    fn of(path: Path, peer: Peer, jobs: &[Job], outcomes: &'a [Outcome]) -> Option<Self> {
        let all = jobs.iter().zip(outcomes);
        let own = all.filter(|(job, _)| job.path == path && job.peer == peer);
        let outcomes: Vec<_> = own.map(|(_, outcome)| outcome).collect();
        // Frames of one viewer are not independent.
        let viewers = outcomes.iter().flat_map(|outcome| &outcome.delays);
        let delays =
            Distribution::of_parts(viewers.map(|viewer| viewer.iter().map(|delay| (*delay, 1))));
        (!outcomes.is_empty()).then_some(Self { path, peer, outcomes, delays })
    }

    /// How long a share of the frames took at most.
    fn quantile(&self, q: f64) -> Cell {
        match self.delays.quantile(q) {
            NEVER => "never".into(),
            _ => self.delays.quantile(q).into(),
        }
    }

    fn late(&self, buffer: Duration) -> Cell {
        Cell::Share(self.delays.share_above(self.path.delay + buffer))
    }

    /// The share of late frames of the luckiest and the unluckiest viewer.
    fn late_of_viewers(&self, buffer: Duration) -> Cell {
        let viewers = self.outcomes.iter().flat_map(|outcome| &outcome.delays);
        let shares = viewers.map(|viewer| 100.0 * share_late(viewer, self.path.delay + buffer));
        Spread::of(shares).map(|s| format!("{:.1}..{:.1}", s.low, s.high)).into()
    }

    fn skipped(&self) -> Cell {
        let viewers = self.outcomes.iter().flat_map(|outcome| &outcome.delays);
        viewers.map(|viewer| skipped(viewer)).sum::<u64>().into()
    }

    /// Bytes for each byte of frames that were made.
    fn per_byte(&self, bytes: impl Fn(&Outcome) -> u64) -> Cell {
        let sum = |bytes: &dyn Fn(&Outcome) -> u64| {
            self.outcomes.iter().map(|outcome| bytes(outcome)).sum::<u64>() as f64
        };
        Cell::Number(sum(&bytes) / sum(&|outcome| outcome.payload).max(1.0))
    }

    /// Processor time for a broadcast, in seconds.
    fn cpu(&self) -> Cell {
        let cpu: Duration = self.outcomes.iter().map(|outcome| outcome.cpu).sum();
        Cell::Number(cpu.as_secs_f64() / self.outcomes.len().max(1) as f64)
    }
}

fn table(groups: &[Group<'_>]) -> Table {
    Table::of(
        "Frames at the viewers",
        groups,
        &[
            ("path", &|g| g.path.to_string().into()),
            ("peer", &|g| g.peer.name().into()),
            ("frames", &|g| g.delays.total().into()),
            ("p50", &|g| g.quantile(0.5)),
            ("p99", &|g| g.quantile(0.99)),
            ("p99.9", &|g| g.quantile(0.999)),
            ("late by 50 ms", &|g| g.late(SHORT_BUFFER)),
            ("of viewers, %", &|g| g.late_of_viewers(SHORT_BUFFER)),
            ("late by 100 ms", &|g| g.late(LONG_BUFFER)),
            ("skipped", &|g| g.skipped()),
            ("sent/byte", &|g| g.per_byte(|outcome| outcome.down)),
            ("back/byte", &|g| g.per_byte(|outcome| outcome.up)),
            ("CPU s", &|g| g.cpu()),
        ],
    )
}

fn chart(path: Path, groups: &[Group<'_>]) -> Option<Chart> {
    let own = groups.iter().filter(|group| group.path == path);
    let series: Vec<_> =
        own.map(|g| Series::line(g.peer.name().to_owned(), g.delays.tail(0.001))).collect();
    (!series.is_empty()).then(|| Chart {
        name: path.to_string(),
        title: format!("Frames that take longer: {path}"),
        x: Axis::linear("delay in ms"),
        y: Axis::log("share of frames"),
        baseline: None,
        panels: vec![Panel::of(series)],
    })
}

/// What is sent, and to whom.
fn method(jobs: &[Job], seed: u64, took: Duration) -> String {
    let Some(job) = jobs.first() else { return String::new() };
    let rounds = jobs.iter().filter(|other| other.path == job.path && other.peer == job.peer);
    let [a, b, c, d, e] = DELTAS;
    format!(
        "The program is one publisher and {} viewers of the crate `moq-net` ({PROTOCOL}); quinn has the crate \
         `web-transport-quinn` in between, Sutura `sutura-webtransport`. Of each of {} broadcasts of each peer over each \
         path, {} s count, after {} s in which congestion controllers learn the paths. Frames come {RATE} times a second, \
         {GROUP} of them in a group, which is a stream: a key frame of {KEY} bytes, then frames of {a}, {b}, {c}, {d} and \
         {e} bytes in turn. A viewer gives a group up that is {} ms behind. Seed {seed}; {} s in all.",
        job.viewers,
        rounds.count(),
        job.seconds,
        WARM_UP / u64::from(RATE),
        MAX_AGE.as_millis(),
        took.as_secs(),
    )
}

fn paths(jobs: &[Job]) -> String {
    let measured = PATHS.iter().filter(|path| jobs.iter().any(|job| job.path == **path));
    let list: Vec<_> = measured.map(|path| format!("{path}: `{}`", path.text())).collect();
    format!("Each viewer has a link of its own, alike in both directions. {}.", list.join("; "))
}

fn targets(jobs: &[Job]) -> String {
    let mut all: Vec<_> = jobs.iter().map(target).collect();
    all.sort();
    all.dedup();
    format!(
        "Peers have their defaults: quinn CUBIC, Sutura BBR and the redundancy policy `auto`. Others are named in \
         `TransportConfig::redundancy` of the publisher: 10 % redundancy is `{LESS}`, and a target says what the application \
         knows of the viewers' buffers, `{}`.",
        all.join("`, `")
    )
}

pub fn report(jobs: &[Job], outcomes: &[Outcome], seed: u64, took: Duration) -> Report {
    let pairs = PATHS.iter().flat_map(|path| Peer::ALL.map(|peer| (*path, peer)));
    let groups: Vec<_> =
        pairs.filter_map(|(path, peer)| Group::of(path, peer, jobs, outcomes)).collect();
    Report {
        name: "moq".to_owned(),
        title: "A Media over QUIC broadcast on Sutura and on quinn".to_owned(),
        text: vec![
            method(jobs, seed, took),
            paths(jobs),
            targets(jobs),
            conditions(outcomes.iter().flat_map(|outcome| &outcome.relays)),
            "Delays are from when a frame was made until the viewer had read all of it, the path included. A frame is \
             late if that is more than the path's delay and the buffer, or if it was skipped: it never came. *of viewers* \
             is the smallest and the largest share of single viewers that were late by 50 ms. *sent/byte* is UDP payload \
             from the publisher, lost or not, for each byte of frames that were made, and *back/byte* that of the viewers; \
             *CPU s* the processor time of both ends of a broadcast, without the links."
                .to_owned(),
        ],
        tables: vec![table(&groups)],
        charts: PATHS.iter().filter_map(|path| chart(*path, &groups)).collect(),
        ..Report::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan;

    #[test]
    fn skipped_frames_are_late_and_the_longest() {
        let jobs = plan::jobs(1, 1, 1, 1).unwrap();
        let path = PATHS[0];
        let ms = |n| path.delay + Duration::from_millis(n);
        let mut delays = vec![ms(1); 97];
        delays.extend([ms(60), ms(200), NEVER]);
        let outcome =
            Outcome { delays: vec![delays], down: 300, payload: 200, ..Outcome::default() };
        let outcomes = vec![outcome; jobs.len()];
        let group = Group::of(path, Peer::Sutura, &jobs, &outcomes).unwrap();
        assert_eq!(group.outcomes.len(), 1);
        assert_eq!(group.late(SHORT_BUFFER), Cell::Share(0.03));
        assert_eq!(group.late(LONG_BUFFER), Cell::Share(0.02));
        assert_eq!(group.late_of_viewers(SHORT_BUFFER), "3.0..3.0".into());
        assert_eq!(group.skipped(), Cell::Count(1));
        assert_eq!(group.quantile(0.99), ms(200).into());
        assert_eq!(group.quantile(1.0), "never".into());
        assert_eq!(group.per_byte(|outcome| outcome.down), Cell::Number(1.5));
    }
}
