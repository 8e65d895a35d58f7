//! From measurements to tables.

use crate::Options;
use crate::job::StackName;
use serde::Serialize;
use sutura_benches::spread::Spread;

/// One bulk download.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Bulk {
    pub stack: StackName,
    pub payload: u16,
    pub seconds: f64,
    pub bytes: u64,
    /// Seconds of CPU time.
    pub server_cpu: f64,
    pub client_cpu: f64,
}

impl Bulk {
    fn gigabits_per_second(&self) -> f64 {
        self.bytes as f64 * 8e-9 / self.seconds
    }

    fn per_gib(&self, cpu: f64) -> f64 {
        cpu / (self.bytes as f64 / f64::from(1 << 30))
    }

    fn gigabits_per_cpu_second(&self) -> f64 {
        self.bytes as f64 * 8e-9 / (self.server_cpu + self.client_cpu)
    }
}

/// The memory of one stack's processes.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Memory {
    pub stack: StackName,
    /// KiB that an idle connection adds to the server and to the client.
    pub idle_server_kib: Option<f64>,
    pub idle_client_kib: Option<f64>,
    /// Resident memory of a server before anybody came, and its peak under concurrent downloads.
    pub base_kib: Option<u64>,
    pub peak_kib: Option<u64>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            stack: StackName::Sutura,
            idle_server_kib: None,
            idle_client_kib: None,
            base_kib: None,
            peak_kib: None,
        }
    }
}

/// Everything that was measured.
#[derive(Debug, Default, Serialize)]
pub struct Measurements {
    pub bulk: Vec<Bulk>,
    pub memory: Vec<Memory>,
}

fn cell(spread: Option<Spread>) -> String {
    spread.map_or_else(|| "-".into(), |s| s.to_string())
}

impl Measurements {
    fn of(&self, stack: StackName, payload: u16) -> impl Iterator<Item = &Bulk> + Clone {
        self.bulk.iter().filter(move |b| b.stack == stack && b.payload == payload)
    }

    /// `a` over `b`, round by round.
    fn ratio(
        &self,
        payload: u16,
        (a, b): (StackName, StackName),
        figure: impl Fn(&Bulk) -> f64,
    ) -> Option<Spread> {
        let pairs = self.of(a, payload).zip(self.of(b, payload));
        Spread::of(pairs.map(|(a, b)| figure(a) / figure(b)))
    }
}

/// Prints the tables.
pub fn print(measurements: &Measurements, options: &Options) {
    println!("Bulk download of {} MiB, median [min max]", options.bytes >> 20);
    println!();
    println!("| payload | stack | Gbit/s | server CPU s/GiB | client CPU s/GiB | Gbit per CPU s |");
    println!("|---|---|---|---|---|---|");
    for &payload in &options.payload {
        for &stack in &options.stacks {
            let runs = measurements.of(stack, payload);
            let spread = |figure: &dyn Fn(&Bulk) -> f64| cell(Spread::of(runs.clone().map(figure)));
            println!(
                "| {payload} | {stack} | {} | {} | {} | {} |",
                spread(&Bulk::gigabits_per_second),
                spread(&|b| b.per_gib(b.server_cpu)),
                spread(&|b| b.per_gib(b.client_cpu)),
                spread(&Bulk::gigabits_per_cpu_second),
            );
        }
    }
    print_ratios(measurements, options);
    print_memory(measurements, options);
}

fn print_ratios(measurements: &Measurements, options: &Options) {
    let Some((&first, others)) = options.stacks.split_first() else { return };
    if others.is_empty() {
        return;
    }
    println!();
    println!("Ratios of the same round, median [min max]; above 1, {first} does better");
    println!();
    println!("| payload | to | goodput | goodput per CPU |");
    println!("|---|---|---|---|");
    for &payload in &options.payload {
        for &other in others {
            let pair = (first, other);
            println!(
                "| {payload} | {other} | {} | {} |",
                cell(measurements.ratio(payload, pair, Bulk::gigabits_per_second)),
                cell(measurements.ratio(payload, pair, Bulk::gigabits_per_cpu_second)),
            );
        }
    }
}

fn print_memory(measurements: &Measurements, options: &Options) {
    if measurements.memory.is_empty() {
        return;
    }
    println!();
    println!(
        "Memory: per idle connection, of {}; of a server with {} downloads of 1 MB at a time",
        options.idle, options.concurrent
    );
    println!();
    println!("| stack | idle, server KiB | idle, client KiB | server at rest MiB | its peak MiB |");
    println!("|---|---|---|---|---|");
    let kib = |v: Option<f64>| v.map_or_else(|| "-".into(), |v| format!("{v:.1}"));
    let mib =
        |v: Option<u64>| v.map_or_else(|| "-".into(), |v| format!("{:.1}", v as f64 / 1024.0));
    for memory in &measurements.memory {
        println!(
            "| {} | {} | {} | {} | {} |",
            memory.stack,
            kib(memory.idle_server_kib),
            kib(memory.idle_client_kib),
            mib(memory.base_kib),
            mib(memory.peak_kib),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        let run = |stack, seconds| Bulk {
            stack,
            payload: 1200,
            seconds,
            bytes: 1 << 30,
            server_cpu: 1.0,
            client_cpu: 1.0,
        };
        let measurements = Measurements {
            bulk: vec![
                run(StackName::Sutura, 1.0),
                run(StackName::Quinn, 2.0),
                run(StackName::Quinn, 40.0),
                run(StackName::Sutura, 10.0),
            ],
            memory: Vec::new(),
        };
        let pair = (StackName::Sutura, StackName::Quinn);
        let ratio = measurements.ratio(1200, pair, Bulk::gigabits_per_second);
        assert_eq!(ratio.map(|s| s.to_string()).as_deref(), Some("3.00 [2.00 4.00]"));
    }
}
