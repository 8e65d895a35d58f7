//! From measurements to tables.

mod floors;

use crate::Options;
use crate::job::{Latency, Subject};
use serde::Serialize;
use std::fmt;
use sutura_analysis::report::Report;
use sutura_analysis::statistics::Spread;
use sutura_analysis::table::{Cell, Column, Table};
use sutura_benches::costs::Costs;
use sutura_benches::stack::Setting;

/// One bulk download.
#[derive(Debug, Clone, Serialize)]
pub struct Bulk {
    pub subject: Subject,
    /// `None` if it is what the stack has found itself.
    pub payload: Option<u16>,
    pub bytes: u64,
    /// The costs of the whole download.
    #[serde(flatten)]
    pub costs: Costs,
    /// Repair symbols that the server sent, and that the client received.
    pub repairs_sent: u64,
    pub repairs_received: u64,
}

impl Bulk {
    fn gigabits_per_second(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.costs.seconds
    }

    fn per_gib(&self, cpu: f64) -> f64 {
        cpu / (self.bytes as f64 / f64::from(1 << 30))
    }

    fn gigabits_per_cpu_second(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.costs.cpu()
    }
}

/// The memory of one stack's processes.
#[derive(Debug, Clone, Serialize)]
pub struct Memory {
    pub subject: Subject,
    /// KiB that an idle connection adds to the server and to the client.
    pub idle_server_kib: Option<f64>,
    pub idle_client_kib: Option<f64>,
    /// Resident memory of a server before the first client, and its peak during concurrent downloads.
    pub base_kib: Option<u64>,
    pub peak_kib: Option<u64>,
}

/// A load of small operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Requests with small answers, each on a stream of its own.
    Requests { at_once: u64 },
    /// Handshakes, one after another.
    Handshakes,
    /// The same while both ends share a core, where no time goes into waking another.
    HandshakesOnOneCore,
}

impl Load {
    /// Whether there is a measurement of `subject` with it.
    pub fn suits(self, subject: &Subject) -> bool {
        !subject.is_floor() || !matches!(self, Self::Requests { at_once: 2.. })
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests { at_once: 1 } => f.write_str("requests, one after another"),
            Self::Requests { at_once } => write!(f, "requests, {at_once} at a time"),
            Self::Handshakes => f.write_str("handshakes"),
            Self::HandshakesOnOneCore => f.write_str("handshakes on one core"),
        }
    }
}

/// The costs of one small operation.
#[derive(Debug, Clone, Serialize)]
pub struct Small {
    pub subject: Subject,
    pub load: Load,
    #[serde(flatten)]
    pub costs: Costs,
    /// How long the client waited for each.
    pub latency: Option<Latency>,
}

/// All measurements.
#[derive(Debug, Default, Serialize)]
pub struct Measurements {
    pub bulk: Vec<Bulk>,
    pub small: Vec<Small>,
    pub memory: Vec<Memory>,
}

/// The first subject with each of the others that have the same settings.
fn pairs(subjects: &[Subject]) -> impl Iterator<Item = (&Subject, &Subject)> {
    let of = move |setting| subjects.iter().filter(move |s| s.setting == setting && !s.is_floor());
    [Setting::Tuned, Setting::Default].into_iter().flat_map(move |setting| {
        let first = of(setting).next();
        first.into_iter().flat_map(move |first| of(setting).skip(1).map(move |s| (first, s)))
    })
}

/// What the subjects are, as the head of a column.
fn kind_of_subjects(options: &Options) -> &'static str {
    if options.policies.is_empty() { "stack" } else { "policy" }
}

/// The size of datagrams in a table.
fn payload_cell(payload: Option<u16>) -> Cell {
    payload.map_or_else(|| "own".into(), |payload| u64::from(payload).into())
}

/// The settings of a subject in a table.
fn settings_cell(subject: &Subject) -> Cell {
    (!subject.is_floor()).then(|| subject.setting.to_string()).into()
}

/// The columns of a table that say something: policies are compared with the same settings, and without floors, and
/// stacks without redundancy.
fn chosen<'a, T>(
    options: &Options,
    columns: &[Column<'a, T>],
    over_floor: &[Column<'a, T>],
) -> Vec<Column<'a, T>> {
    let floors = if options.floors { over_floor } else { &[] };
    let says = |head: &str| match head {
        "settings" => options.policies.is_empty(),
        "repairs sent" | "repairs received" => !options.policies.is_empty(),
        _ => true,
    };
    columns.iter().chain(floors).filter(|(head, _)| says(head)).copied().collect()
}

/// A figure of a download.
type Figure<'a> = &'a dyn Fn(&Bulk) -> f64;

/// A figure of a small load.
type SmallFigure<'a> = &'a dyn Fn(&Costs) -> f64;

/// Two subjects whose downloads with a size of datagrams are compared.
type Compared<'a> = (Option<u16>, (&'a Subject, &'a Subject));

impl Measurements {
    fn of(&self, subject: &Subject, payload: Option<u16>) -> impl Iterator<Item = &Bulk> {
        self.bulk.iter().filter(move |b| b.subject == *subject && b.payload == payload)
    }

    /// `a` over `b`, round by round.
    fn ratio(
        &self,
        payload: Option<u16>,
        (a, b): (&Subject, &Subject),
        figure: Figure<'_>,
    ) -> Option<Spread> {
        let pairs = self.of(a, payload).zip(self.of(b, payload));
        Spread::of(pairs.map(|(a, b)| figure(a) / figure(b)))
    }
}

impl Measurements {
    pub fn report(&self, options: &Options) -> Report {
        let tables = [
            self.bulk_table(options),
            self.ratios(options),
            self.small_table(options),
            self.small_ratios(options),
            self.memory_table(),
        ];
        let downloads = format!(
            "Downloads of {} MiB; {} rounds, median [smallest largest]",
            options.bytes >> 20,
            options.rounds,
        );
        let (title, text) = if options.policies.is_empty() {
            let memory = format!(
                "{downloads}; idle memory is per connection, of {} of them; the peak is that of a \
                 server with {} downloads of 1 MB at a time.",
                options.idle, options.concurrent
            );
            ("Sutura beside other stacks over the loopback device", memory)
        } else {
            ("Redundancy policies over the loopback device", format!("{downloads}."))
        };
        Report {
            name: "loopback".to_owned(),
            title: title.to_owned(),
            text: vec![text],
            tables: tables.into_iter().filter(|table| !table.rows.is_empty()).collect(),
            ..Report::default()
        }
    }

    fn bulk_table(&self, options: &Options) -> Table {
        type Row = (Option<u16>, Subject);
        let spread = |(payload, subject): &Row, figure: Figure<'_>, places| {
            Cell::spread(Spread::of(self.of(subject, *payload).map(figure)), places)
        };
        let what = kind_of_subjects(options);
        let columns: &[Column<'_, Row>] = &[
            ("payload", &|row| payload_cell(row.0)),
            (what, &|row| row.1.to_string().into()),
            ("settings", &|row| settings_cell(&row.1)),
            ("Gbit/s", &|row| spread(row, &Bulk::gigabits_per_second, 2)),
            ("server CPU s/GiB", &|row| spread(row, &|b| b.per_gib(b.costs.server_cpu), 2)),
            ("client CPU s/GiB", &|row| spread(row, &|b| b.per_gib(b.costs.client_cpu), 2)),
            ("Gbit per CPU s", &|row| spread(row, &Bulk::gigabits_per_cpu_second, 2)),
            ("repairs sent", &|row| spread(row, &|b| b.repairs_sent as f64, 0)),
            ("repairs received", &|row| spread(row, &|b| b.repairs_received as f64, 0)),
        ];
        let of_floor = |row: &Row, figure: Figure<'_>| self.bulk_over_floor(options, row, figure);
        let over_floor: &[Column<'_, Row>] = &[
            ("goodput over the floor's", &|row| of_floor(row, &Bulk::gigabits_per_second)),
            ("CPU over the floor's", &|row| of_floor(row, &|b| b.per_gib(b.costs.cpu()))),
        ];
        Table::of("Bulk download", options.downloads(), &chosen(options, columns, over_floor))
    }

    fn ratios(&self, options: &Options) -> Table {
        let (payloads, subjects) = (options.payloads(), options.subjects());
        let rows = payloads.iter().flat_map(|p| pairs(&subjects).map(move |pair| (*p, pair)));
        let rows: Vec<_> = rows.filter(|(payload, (first, _))| first.takes(*payload)).collect();
        if options.policies.is_empty() {
            self.stack_ratios(&rows)
        } else {
            self.policy_ratios(&rows)
        }
    }

    fn stack_ratios(&self, rows: &[Compared<'_>]) -> Table {
        let ratio = |row: &Compared<'_>, figure: Figure<'_>| {
            Cell::spread(self.ratio(row.0, row.1, figure), 2)
        };
        Table::of(
            "The first stack over another, round by round; above 1 the first does better",
            rows,
            &[
                ("payload", &|row| payload_cell(row.0)),
                ("over", &|row| row.1.1.to_string().into()),
                ("settings", &|row| settings_cell(row.1.1)),
                ("goodput", &|row| ratio(row, &Bulk::gigabits_per_second)),
                ("goodput per CPU", &|row| ratio(row, &Bulk::gigabits_per_cpu_second)),
            ],
        )
    }

    fn policy_ratios(&self, rows: &[Compared<'_>]) -> Table {
        let ratio = |(payload, (first, other)): &Compared<'_>, figure: Figure<'_>| {
            Cell::spread(self.ratio(*payload, (*other, *first), figure), 3)
        };
        Table::of(
            "Each policy over the first, round by round",
            rows,
            &[
                ("payload", &|row| payload_cell(row.0)),
                ("policy", &|row| row.1.1.to_string().into()),
                ("goodput", &|row| ratio(row, &Bulk::gigabits_per_second)),
                ("server CPU", &|row| ratio(row, &|b| b.costs.server_cpu)),
                ("client CPU", &|row| ratio(row, &|b| b.costs.client_cpu)),
                ("CPU", &|row| ratio(row, &|b| b.costs.cpu())),
            ],
        )
    }

    fn small_of(&self, load: Load, subject: &Subject) -> impl Iterator<Item = &Small> {
        self.small.iter().filter(move |s| s.load == load && s.subject == *subject)
    }

    fn small_table(&self, options: &Options) -> Table {
        type Row = (Load, Subject);
        let spread = |(load, subject): &Row, figure: SmallFigure<'_>, places| {
            Cell::spread(
                Spread::of(self.small_of(*load, subject).map(|s| figure(&s.costs))),
                places,
            )
        };
        let latency = |(load, subject): &Row, figure: &dyn Fn(Latency) -> f64| {
            let latencies = self.small_of(*load, subject).filter_map(|small| small.latency);
            Cell::spread(Spread::of(latencies.map(|latency| figure(latency) * 1e6)), 1)
        };
        let what = kind_of_subjects(options);
        let columns: &[Column<'_, Row>] = &[
            ("load", &|row| row.0.to_string().into()),
            (what, &|row| row.1.to_string().into()),
            ("settings", &|row| settings_cell(&row.1)),
            ("per second", &|row| spread(row, &Costs::per_second, 0)),
            ("p50 us", &|row| latency(row, &|latency| latency.p50)),
            ("p99 us", &|row| latency(row, &|latency| latency.p99)),
            ("server CPU us", &|row| spread(row, &|costs| costs.server_cpu * 1e6, 1)),
            ("client CPU us", &|row| spread(row, &|costs| costs.client_cpu * 1e6, 1)),
        ];
        let of_floor = |row: &Row, figure: SmallFigure<'_>| self.small_over_floor(row, figure);
        let over_floor: &[Column<'_, Row>] = &[
            ("rate over the floor's", &|row| of_floor(row, &Costs::per_second)),
            ("CPU over the floor's", &|row| of_floor(row, &Costs::cpu)),
        ];
        Table::of("Small operations", options.small(), &chosen(options, columns, over_floor))
    }

    fn small_ratios(&self, options: &Options) -> Table {
        let (subjects, loads) = (options.subjects(), options.loads());
        let rows =
            loads.iter().flat_map(|(load, _)| pairs(&subjects).map(move |pair| (*load, pair)));
        let ratio = |(load, (a, b)): (Load, (&Subject, &Subject)), figure: SmallFigure<'_>| {
            let both = self.small_of(load, a).zip(self.small_of(load, b));
            Cell::spread(Spread::of(both.map(|(a, b)| figure(&a.costs) / figure(&b.costs))), 2)
        };
        Table::of(
            "Small operations of the first over another, round by round",
            rows,
            &[
                ("load", &|row| row.0.to_string().into()),
                ("over", &|row| row.1.1.to_string().into()),
                ("settings", &|row| settings_cell(row.1.1)),
                ("rate", &|row| ratio(*row, &Costs::per_second)),
                ("CPU", &|row| ratio(*row, &Costs::cpu)),
            ],
        )
    }

    fn memory_table(&self) -> Table {
        let kib = |value: Option<f64>| Cell::from(value.map(|kib| format!("{kib:.1}")));
        let mib = |value: Option<u64>| kib(value.map(|kib| kib as f64 / 1024.0));
        Table::of(
            "Memory",
            &self.memory,
            &[
                ("stack", &|memory| memory.subject.to_string().into()),
                ("settings", &|memory| settings_cell(&memory.subject)),
                ("idle, server KiB", &|memory| kib(memory.idle_server_kib)),
                ("idle, client KiB", &|memory| kib(memory.idle_client_kib)),
                ("server at rest MiB", &|memory| mib(memory.base_kib)),
                ("its peak MiB", &|memory| mib(memory.peak_kib)),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_benches::stack::Name;

    #[test]
    fn pairs_have_the_same_settings_and_no_floor() {
        let subject = |stack: Name, setting| Subject { setting, ..stack.into() };
        let subjects = [
            subject(Name::Sutura, Setting::Tuned),
            subject(Name::Quinn, Setting::Tuned),
            subject(Name::Sutura, Setting::Default),
            subject(Name::Quinn, Setting::Default),
            Name::Floor.into(),
        ];
        let [sutura, quinn, own_sutura, own_quinn, _] = &subjects;
        let pairs: Vec<_> = pairs(&subjects).collect();
        assert_eq!(pairs, [(sutura, quinn), (own_sutura, own_quinn)]);
    }

    #[test]
    fn ratios_are_of_the_same_round() {
        let run = |stack: Name, seconds| Bulk {
            subject: stack.into(),
            payload: Some(1200),
            bytes: 1 << 30,
            costs: Costs { seconds, server_cpu: 1.0, client_cpu: 1.0 },
            repairs_sent: 0,
            repairs_received: 0,
        };
        let measurements = Measurements {
            bulk: vec![
                run(Name::Sutura, 1.0),
                run(Name::Quinn, 2.0),
                run(Name::Quinn, 40.0),
                run(Name::Sutura, 10.0),
            ],
            ..Measurements::default()
        };
        let pair = (&Name::Sutura.into(), &Name::Quinn.into());
        let ratio = measurements.ratio(Some(1200), pair, &Bulk::gigabits_per_second);
        assert_eq!(ratio, Some(Spread { median: 2.0, low: 2.0, high: 4.0 }));
    }
}
