//! From outcomes to tables.

use crate::Options;
use crate::plan::{Channel, DOWNLOADERS, Job, Peer, SIZES, STREAMERS, Workload};
use crate::session::Outcome;
use std::time::Duration;
use sutura_analysis::figure::{Axis, Chart, Panel, Series};
use sutura_analysis::report::Report;
use sutura_analysis::statistics::{Distribution, Spread, millis};
use sutura_analysis::table::{Cell, Table};
use sutura_benches::links::conditions;

/// The delay of the path, one way.
const ONE_WAY: Duration = Duration::from_millis(50);
/// A byte is late if it takes more than this time longer than the path: a message takes 4 ms to send.
const SLACK: Duration = Duration::from_millis(10);

/// All connections of one peer that did the same over the same channel.
struct Group<'a> {
    peer: Peer,
    channel: Channel,
    outcomes: Vec<&'a Outcome>,
    times: Distribution,
    /// The time from which on a download or byte takes too long, if it is known.
    limit: Option<Duration>,
}

impl Group<'_> {
    /// The smallest and the largest value of the connections, with `digits` digits.
    fn spread(&self, digits: usize, value: impl Fn(&Distribution) -> f64) -> Cell {
        let of_each = self.outcomes.iter().filter(|o| !o.times.is_empty());
        let values = of_each.map(|o| value(&Distribution::weighted(o.times.iter().copied())));
        let spread = Spread::of(values);
        spread.map(|s| format!("{:.digits$}..{:.digits$}", s.low, s.high)).into()
    }

    fn quantile(&self, q: f64) -> Cell {
        self.times.quantile(q).into()
    }

    fn spread_of_quantile(&self, q: f64) -> Cell {
        self.spread(0, |times| millis(times.quantile(q)))
    }

    fn share_above_limit(&self) -> Cell {
        self.limit.map(|limit| Cell::Share(self.times.share_above(limit))).into()
    }

    fn spread_of_share(&self) -> Cell {
        self.limit.map(|limit| self.spread(1, |times| 100.0 * times.share_above(limit))).into()
    }

    fn sum(&self, value: impl Fn(&Outcome) -> u64) -> f64 {
        self.outcomes.iter().map(|o| value(o)).sum::<u64>() as f64
    }

    /// Bytes on the wire for each byte that the application read.
    fn wire_per_byte(&self) -> Cell {
        Cell::Number(self.sum(|o| o.wire.bytes) / self.sum(|o| o.payload).max(1.0))
    }

    /// A share of the packets on the wire.
    fn share(&self, value: impl Fn(&Outcome) -> u64) -> Cell {
        Cell::Share(self.sum(value) / self.sum(|o| o.wire.packets).max(1.0))
    }

    fn failures(&self) -> Cell {
        self.outcomes.iter().filter(|o| o.failure.is_some()).count().into()
    }

    /// The group's label in charts.
    fn label(&self) -> String {
        format!("{}, {}", self.channel.name(), self.peer)
    }
}

fn is_download(workload: Workload, size: u64) -> bool {
    matches!(workload, Workload::Downloads { bytes, .. } if bytes == size)
}

fn is_stream(workload: Workload) -> bool {
    matches!(workload, Workload::Stream { .. })
}

/// All measurements.
struct Results<'a> {
    jobs: &'a [Job],
    outcomes: &'a [Outcome],
}

impl<'a> Results<'a> {
    /// `None` if no such job was measured.
    fn group(
        &self,
        peer: Peer,
        channel: Channel,
        kind: impl Fn(Workload) -> bool,
    ) -> Option<Group<'a>> {
        let all = self.jobs.iter().zip(self.outcomes);
        let own =
            all.filter(|(job, _)| job.peer == peer && job.channel == channel && kind(job.workload));
        let outcomes: Vec<_> = own.map(|(_, outcome)| outcome).collect();
        let times = Distribution::weighted(outcomes.iter().flat_map(|o| o.times.iter().copied()));
        let is_any = times.total() > 0;
        is_any.then_some(Group { peer, channel, outcomes, times, limit: None })
    }

    fn groups(&self, peers: &[Peer], kind: impl Fn(Workload) -> bool) -> Vec<Group<'a>> {
        let pairs = Channel::ALL.iter().flat_map(|channel| peers.iter().map(move |p| (p, channel)));
        pairs.filter_map(|(peer, channel)| self.group(*peer, *channel, &kind)).collect()
    }

    /// The downloads of `bytes` bytes. A download takes too long if it takes half a round trip more than the
    /// median of the same peer without loss and protection.
    fn downloads(&self, bytes: u64) -> Vec<Group<'a>> {
        let kind = |workload| is_download(workload, bytes);
        let mut groups = self.groups(&DOWNLOADERS, kind);
        for group in &mut groups {
            let reference = self.group(group.peer.unprotected(), Channel::Lossless, kind);
            // The distribution counts the times above the limit.
            let limit = |r: Group| r.times.quantile(0.5) + ONE_WAY - Duration::from_nanos(1);
            group.limit = reference.map(limit);
        }
        groups
    }

    fn streams(&self) -> Vec<Group<'a>> {
        let mut groups = self.groups(&STREAMERS, is_stream);
        groups.iter_mut().for_each(|group| group.limit = Some(ONE_WAY + SLACK));
        groups
    }

    fn failures(&self) -> Vec<String> {
        let all = self.jobs.iter().zip(self.outcomes);
        all.filter_map(|(job, o)| Some(format!("Cut short: {job}: {}.", o.failure.as_ref()?)))
            .collect()
    }
}

fn download_table(bytes: u64, groups: &[Group]) -> Table {
    Table::of(
        format!("Downloads of {bytes} bytes"),
        groups,
        &[
            ("channel", &|g| g.channel.name().into()),
            ("peer", &|g| g.peer.to_string().into()),
            ("n", &|g| g.times.total().into()),
            ("p50", &|g| g.quantile(0.5)),
            ("of connections", &|g| g.spread_of_quantile(0.5)),
            ("p90", &|g| g.quantile(0.9)),
            ("p99", &|g| g.quantile(0.99)),
            ("max", &|g| g.quantile(1.0)),
            ("waited", &|g| g.share_above_limit()),
            ("of connections, %", &|g| g.spread_of_share()),
            ("wire/byte", &|g| g.wire_per_byte()),
            ("lost", &|g| g.share(|o| o.wire.lost)),
            ("queue drops", &|g| g.share(|o| o.wire.overflow)),
            ("cut short", &|g| g.failures()),
        ],
    )
}

fn stream_table(groups: &[Group]) -> Table {
    Table::of(
        "Bytes of a stream of 5 kB at 60 Hz",
        groups,
        &[
            ("channel", &|g| g.channel.name().into()),
            ("peer", &|g| g.peer.to_string().into()),
            ("bytes", &|g| g.times.total().into()),
            ("late", &|g| g.share_above_limit()),
            ("of connections, %", &|g| g.spread_of_share()),
            ("p50", &|g| g.quantile(0.5)),
            ("p99", &|g| g.quantile(0.99)),
            ("of connections", &|g| g.spread_of_quantile(0.99)),
            ("p99.9", &|g| g.quantile(0.999)),
            ("max", &|g| g.quantile(1.0)),
            ("wire/byte", &|g| g.wire_per_byte()),
            ("lost", &|g| g.share(|o| o.wire.lost)),
            ("queue drops", &|g| g.share(|o| o.wire.overflow)),
            ("cut short", &|g| g.failures()),
        ],
    )
}

fn chart(name: String, x: &str, y: &str, groups: &[Group]) -> Chart {
    let series = groups.iter().map(|group| Series::line(group.label(), group.times.curve()));
    Chart {
        title: name.clone(),
        name,
        x: Axis::linear(x),
        y: Axis::linear(y),
        baseline: None,
        panels: vec![Panel::of(series)],
    }
}

pub fn report(jobs: &[Job], outcomes: &[Outcome], options: &Options, took: Duration) -> Report {
    let results = Results { jobs, outcomes };
    let (mut tables, mut charts) = (Vec::new(), Vec::new());
    for bytes in SIZES {
        let groups = results.downloads(bytes);
        tables.push(download_table(bytes, &groups));
        let (x, y) = ("time to completion in ms", "share of transfers");
        charts.push(chart(format!("downloads of {bytes} bytes"), x, y, &groups));
    }
    let groups = results.streams();
    tables.push(stream_table(&groups));
    charts.push(chart("stream".to_owned(), "delay of a byte in ms", "share of bytes", &groups));
    let mut text = vec![
        format!("Seed {}, {} jobs at a time, {} s.", options.seed, options.parallel, took.as_secs()),
        conditions(outcomes.iter().map(|outcome| &outcome.relay)),
        "`of connections` is the smallest and the largest of what single connections had. A \
         download waited if it took half a round trip or more longer than the median of the same \
         peer without loss and without repair symbols. A byte is late if it took more than the path \
         and 10 ms from when its message was made until the application read it in order. \
         `wire/byte` is UDP payload from the server, dropped or not, per byte that the application \
         read; `lost` is the link's doing, `queue drops` the sender's."
            .to_owned(),
    ];
    text.extend(results.failures());
    Report {
        name: "lossy".to_owned(),
        title: "Sutura and quinn over a lossy link".to_owned(),
        text,
        tables: tables.into_iter().filter(|table| !table.rows.is_empty()).collect(),
        charts,
        ..Report::default()
    }
}
