//! From outcomes to tables.

use crate::Options;
use crate::plan::{Channel, DOWNLOADERS, Job, Peer, SIZES, STREAMERS, Workload};
use crate::session::Outcome;
use std::time::Duration;
use sutura_lab::{Cell, Distribution, Report, Series, Table};

/// The delay of the path, one way.
const ONE_WAY: Duration = Duration::from_millis(50);
/// A byte is late if it takes longer than the path by this: a message takes 4 ms to send.
const SLACK: Duration = Duration::from_millis(10);

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// All connections of one peer that did the same over the same channel.
struct Group<'a> {
    outcomes: Vec<&'a Outcome>,
    times: Distribution,
}

impl<'a> Group<'a> {
    fn new(outcomes: Vec<&'a Outcome>) -> Option<Self> {
        let times = Distribution::weighted(outcomes.iter().flat_map(|o| o.times.iter().copied()));
        (times.total() > 0).then_some(Self { outcomes, times })
    }

    /// The smallest and the largest of what each connection says.
    fn spread(&self, value: impl Fn(&Distribution) -> f64) -> (f64, f64) {
        let of_each = self.outcomes.iter().filter(|o| !o.times.is_empty());
        of_each
            .map(|outcome| value(&Distribution::weighted(outcome.times.iter().copied())))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    }

    fn spread_of_quantile(&self, q: f64) -> Cell {
        let (low, high) = self.spread(|d| millis(d.quantile(q)));
        Cell::Text(format!("{low:.0}..{high:.0}"))
    }

    fn spread_of_share(&self, limit: Duration) -> Cell {
        let (low, high) = self.spread(|d| 100.0 * d.share_above(limit));
        Cell::Text(format!("{low:.1}..{high:.1}"))
    }

    fn sum(&self, value: impl Fn(&Outcome) -> u64) -> f64 {
        self.outcomes.iter().map(|o| value(o)).sum::<u64>() as f64
    }

    fn wire(&self) -> [Cell; 3] {
        let packets = self.sum(|o| o.wire.packets).max(1.0);
        let bytes = self.sum(|o| o.wire.bytes);
        [
            Cell::Number(bytes / self.sum(|o| o.payload).max(1.0)),
            Cell::Share(self.sum(|o| o.wire.lost) / packets),
            Cell::Share(self.sum(|o| o.wire.overflow) / packets),
        ]
    }

    fn failures(&self) -> Cell {
        Cell::Count(self.outcomes.iter().filter(|o| o.failure.is_some()).count() as u64)
    }

    fn series(&self, label: String, x_label: &str, y_label: &str) -> Series {
        let (x, y) = self.times.curve();
        Series { label, x_label: x_label.to_owned(), y_label: y_label.to_owned(), x, y }
    }
}

fn is_download(workload: Workload, size: u64) -> bool {
    matches!(workload, Workload::Downloads { bytes, .. } if bytes == size)
}

fn is_stream(workload: Workload) -> bool {
    matches!(workload, Workload::Stream { .. })
}

/// Everything that was measured.
struct Results<'a> {
    jobs: &'a [Job],
    outcomes: &'a [Outcome],
}

impl<'a> Results<'a> {
    fn group(
        &self,
        peer: Peer,
        channel: Channel,
        kind: impl Fn(Workload) -> bool,
    ) -> Option<Group<'a>> {
        let all = self.jobs.iter().zip(self.outcomes);
        let own =
            all.filter(|(job, _)| job.peer == peer && job.channel == channel && kind(job.workload));
        Group::new(own.map(|(_, outcome)| outcome).collect())
    }

    fn downloads(&self, bytes: u64, series: &mut Vec<Series>) -> Table {
        let columns = [
            "channel",
            "peer",
            "n",
            "p50",
            "of connections",
            "p90",
            "p99",
            "max",
            "waited",
            "of connections, %",
            "wire/byte",
            "lost",
            "queue drops",
            "cut short",
        ];
        let mut rows = Vec::new();
        for channel in Channel::ALL {
            for peer in DOWNLOADERS {
                let kind = |workload| is_download(workload, bytes);
                let Some(group) = self.group(peer, channel, kind) else { continue };
                let reference = self.group(peer.unprotected(), Channel::Lossless, kind);
                // As far as half a round trip behind; the distribution counts what is above.
                let limit = reference.map(|r| {
                    (r.times.quantile(0.5) + ONE_WAY).saturating_sub(Duration::from_nanos(1))
                });
                let none = || Cell::from("-");
                let mut row = vec![
                    channel.name().into(),
                    Cell::Text(peer.to_string()),
                    Cell::Count(group.times.total()),
                    group.times.quantile(0.5).into(),
                    group.spread_of_quantile(0.5),
                    group.times.quantile(0.9).into(),
                    group.times.quantile(0.99).into(),
                    group.times.quantile(1.0).into(),
                    limit.map_or_else(none, |l| Cell::Share(group.times.share_above(l))),
                    limit.map_or_else(none, |l| group.spread_of_share(l)),
                ];
                row.extend(group.wire());
                row.push(group.failures());
                rows.push(row);
                let label = format!("{bytes} bytes, {}, {peer}", channel.name());
                series.push(group.series(label, "time to completion in ms", "share of transfers"));
            }
        }
        Table {
            caption: format!("Downloads of {bytes} bytes"),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
        }
    }

    fn streams(&self, series: &mut Vec<Series>) -> Table {
        let columns = [
            "channel",
            "peer",
            "bytes",
            "late",
            "of connections, %",
            "p50",
            "p99",
            "of connections",
            "p99.9",
            "max",
            "wire/byte",
            "lost",
            "queue drops",
            "cut short",
        ];
        let mut rows = Vec::new();
        for channel in Channel::ALL {
            for peer in STREAMERS {
                let Some(group) = self.group(peer, channel, is_stream) else { continue };
                let mut row = vec![
                    channel.name().into(),
                    Cell::Text(peer.to_string()),
                    Cell::Count(group.times.total()),
                    Cell::Share(group.times.share_above(ONE_WAY + SLACK)),
                    group.spread_of_share(ONE_WAY + SLACK),
                    group.times.quantile(0.5).into(),
                    group.times.quantile(0.99).into(),
                    group.spread_of_quantile(0.99),
                    group.times.quantile(0.999).into(),
                    group.times.quantile(1.0).into(),
                ];
                row.extend(group.wire());
                row.push(group.failures());
                rows.push(row);
                let label = format!("stream, {}, {peer}", channel.name());
                series.push(group.series(label, "delay of a byte in ms", "share of bytes"));
            }
        }
        Table {
            caption: "Bytes of a stream of 5 kB at 60 Hz".to_owned(),
            columns: columns.map(str::to_owned).to_vec(),
            rows,
        }
    }

    /// How well the relays kept to time, and what did not come to an end.
    fn conditions(&self) -> String {
        let relays = || self.outcomes.iter().map(|outcome| &outcome.relay);
        let means = Distribution::of(relays().map(|stats| stats.late_mean()));
        let worst = Distribution::of(relays().map(|stats| stats.late_max));
        let missed: u64 = relays().map(|stats| stats.unsent + stats.refused).sum();
        format!(
            "Relays sent datagrams on late by {:.2} ms on average (the median relay; {:.2} ms the \
             worst one), and by {:.1} ms at most (the median; {:.1} ms the worst). {missed} \
             datagrams found no room in a socket.",
            millis(means.quantile(0.5)),
            millis(means.quantile(1.0)),
            millis(worst.quantile(0.5)),
            millis(worst.quantile(1.0)),
        )
    }

    fn failures(&self) -> Vec<String> {
        let all = self.jobs.iter().zip(self.outcomes);
        all.filter_map(|(job, o)| Some(format!("Cut short: {job}: {}.", o.failure.as_ref()?)))
            .collect()
    }
}

pub fn report(jobs: &[Job], outcomes: &[Outcome], options: &Options, took: Duration) -> Report {
    let results = Results { jobs, outcomes };
    let mut series = Vec::new();
    let mut tables: Vec<Table> =
        SIZES.iter().map(|bytes| results.downloads(*bytes, &mut series)).collect();
    tables.push(results.streams(&mut series));
    let mut text = vec![
        format!("Seed {}, {} jobs at a time, {} s.", options.seed, options.parallel, took.as_secs()),
        results.conditions(),
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
        series,
        ..Report::default()
    }
}
