//! The cost of receiving each type of frame from a hostile peer.
//!
//! Packets are made beforehand and processed by a connection in memory, without packet protection and without
//! a socket. The cost is CPU time, including the time for the connection's answers.

mod attack;
mod surroundings;

use attack::{Attack, Payloads};
use clap::Parser;
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;
use surroundings::{Held, OTHERS, Scene};
use sutura_analysis::report::Report;
use sutura_analysis::statistics::{Spread, quantile, sorted};
use sutura_analysis::table::{Cell, Table};
use sutura_benches::output::Output;
use sutura_benches::{Error, cpu, exit_code};

/// Bytes of an IPv4 and a UDP header, which the sender pays for every packet as well.
const HEADERS: usize = 20 + 8;

/// How many protected streams the connection has open.
const OPEN: [u64; 3] = [1, 100, 1000];

/// Nanoseconds for each byte of hostile frames, by type.
#[derive(Debug, Parser)]
struct Options {
    /// How often everything is measured
    #[arg(long, default_value_t = 21)]
    rounds: usize,
    /// Packets of each measurement
    #[arg(long, default_value_t = 400)]
    packets: usize,
    /// Only frames of this type, as qlog names it
    #[arg(long)]
    only: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Nanoseconds for each byte, a value for each round.
type Rounds = Vec<f64>;

fn median(rounds: &Rounds) -> f64 {
    quantile(&sorted(rounds.iter().copied()), 0.5)
}

/// All rounds of one attack.
#[derive(Debug, Serialize)]
struct Measurement {
    frame: &'static str,
    how: &'static str,
    /// Average size of a frame, with its share of the packet.
    bytes_per_frame: f64,
    /// The rounds with 1, 100 and 1,000 open streams.
    streams: [Rounds; OPEN.len()],
    /// The rounds with few and with many of each of [`OTHERS`].
    others: [[Rounds; 2]; OTHERS.len()],
}

impl Measurement {
    /// The median in the costliest surroundings.
    fn worst(&self) -> f64 {
        self.streams.iter().chain(self.others.iter().flatten()).map(median).fold(0.0, f64::max)
    }

    /// The largest factor by which the median grows from few to many, and the name of what there are few or
    /// many of.
    fn growth(&self) -> (f64, &'static str) {
        let [one, .., thousand] = &self.streams;
        let streams = (median(thousand) / median(one), "streams");
        let others = OTHERS.iter().zip(&self.others);
        let others = others.map(|((_, name, ..), [few, many])| (median(many) / median(few), *name));
        others.fold(streams, |most, next| if next.0 > most.0 { next } else { most })
    }
}

/// Receives packets; returns bytes, frames and nanoseconds.
fn receive(
    scene: &mut Scene,
    payloads: &mut Payloads,
    count: usize,
) -> Result<(usize, usize, f64), Error> {
    let mut frames = 0;
    let mut packets = Vec::with_capacity(count);
    for _ in 0..count {
        let (payload, n) = payloads();
        frames += n;
        packets.push(scene.target.seal(&payload));
    }
    let bytes = packets.iter().map(|packet| packet.len() + HEADERS).sum();
    let start = cpu::now();
    for packet in &mut packets {
        if !scene.target.receive(packet) {
            return Err("the connection is over".into());
        }
        scene.read_groups();
    }
    let time = cpu::now() - start;
    Ok((bytes, frames, time.as_secs_f64() * 1e9))
}

/// Measures an attack once, on a connection that holds `count` of `held`.
fn measure(attack: &Attack, held: Held, count: u64, packets: usize) -> Result<(f64, f64), Error> {
    let mut scene = Scene::new(attack.side, held, count)?;
    let mut payloads = (attack.start)(&mut scene.target)?;
    let (mut bytes, mut frames, mut time) = (0, 0, 0.0);
    let mut received = 0;
    while received < packets {
        let (more_bytes, more_frames, more_time) =
            receive(&mut scene, &mut payloads, attack.batch)?;
        scene.consume();
        received += attack.batch;
        // The first packets set up state, and are not counted.
        if received > packets / 10 {
            bytes += more_bytes;
            frames += more_frames;
            time += more_time;
        }
    }
    Ok((time / bytes as f64, bytes as f64 / frames as f64))
}

/// The costs of all types among streams.
fn streams_table(measurements: &[Measurement], median: f64) -> Table {
    let mut table = Table::new(
        "Among streams that share a coding session",
        [
            "frame",
            "how",
            "bytes per frame",
            "1 stream",
            "100 streams",
            "1,000 streams",
            "of the median",
        ],
    );
    for entry in measurements {
        let [one, hundred, thousand] = &entry.streams;
        let spread = |rounds: &Rounds| Cell::spread(Spread::of_deciles(rounds.iter().copied()), 1);
        table.row([
            entry.frame.into(),
            entry.how.into(),
            Cell::from(format!("{:.1}", entry.bytes_per_frame)),
            spread(one),
            spread(hundred),
            spread(thousand),
            format!("{:.2}", entry.worst() / median).into(),
        ]);
    }
    table
}

/// The costs on a connection that holds much other state, and how much more than on a connection that holds
/// little.
fn others_table(measurements: &[Measurement]) -> Table {
    let names = OTHERS.iter().map(|(_, name, few, many)| format!("{many} {name}, of {few}"));
    let columns = ["frame".to_owned(), "how".to_owned()].into_iter().chain(names);
    let columns = columns.chain(["grows by at most".to_owned()]);
    let mut table = Table::new("Among other things", columns);
    for entry in measurements {
        let (growth, what) = entry.growth();
        let cells = entry.others.iter().map(|[few, many]| {
            let (few, many) = (median(few), median(many));
            Cell::from(format!("{many:.1} ({:.2})", many / few))
        });
        let ends = Cell::from(format!("{growth:.2} ({what})"));
        table.row([entry.frame.into(), entry.how.into()].into_iter().chain(cells).chain([ends]));
    }
    table
}

fn report(measurements: &[Measurement], rounds: usize) -> Report {
    let mut types: BTreeMap<&str, f64> = BTreeMap::new();
    for entry in measurements {
        let worst = types.entry(entry.frame).or_default();
        *worst = worst.max(entry.worst());
    }
    let middle = quantile(&sorted(types.values().copied()), 0.5);
    let worst = types.values().copied().fold(0.0, f64::max);
    let most = measurements.iter().map(|entry| (entry.growth(), entry));
    let most = most.max_by(|(a, _), (b, _)| a.0.total_cmp(&b.0));
    let most = most.map_or_else(String::new, |((growth, what), entry)| {
        format!(
            " What grows most is {} {} among {what}: {growth:.2} times, to at most {:.1} ns.",
            entry.frame,
            entry.how,
            entry.worst()
        )
    });
    let text = vec![
        format!(
            "Nanoseconds of CPU time for each byte that a hostile peer sends, median [lower and upper \
             decile] of {rounds} interleaved rounds, without packet protection. Headers of IP and UDP \
             count. Packets are full of frames of one type, except where a frame must be the last of \
             its packet. What the connection answers is included."
        ),
        format!(
            "The median over the {} types, each at its costliest, is {middle:.1} ns per byte; the \
             costliest is {worst:.1} ns, {:.1} times that.{most}",
            types.len(),
            worst / middle
        ),
        "The first table is for a connection with streams of its own; all was acknowledged. The second \
         has the medians where a connection holds much of something, and in parentheses how many times \
         those where it holds one. *Sessions*: coding sessions, each with a source symbol in flight; no more \
         than 64 are ever used. *Equations*: repair symbols that do not suffice for anything, 64 in each \
         session, which is all that a session keeps. *Messages* are in flight and have deadlines. *Lost \
         datagrams* are protected and wait for repair symbols. *Messages of groups* came from the peer, in 64 \
         groups, which is all that there may be, and wait for others; reading groups is included."
            .to_owned(),
    ];
    Report {
        name: "frames".to_owned(),
        title: "What it costs to receive frames".to_owned(),
        text,
        tables: vec![streams_table(measurements, middle), others_table(measurements)],
        ..Report::default()
    }
}

/// Measures an attack once in each of the surroundings.
fn measure_all(
    attack: &Attack,
    entry: &mut Measurement,
    packets: usize,
    failures: &mut Vec<String>,
) {
    let streams = OPEN.map(|count| (Held::Streams, count));
    let others = OTHERS.iter().flat_map(|(held, _, few, many)| [(*held, *few), (*held, *many)]);
    let rounds = entry.streams.iter_mut().chain(entry.others.iter_mut().flatten());
    for ((held, count), rounds) in streams.into_iter().chain(others).zip(rounds) {
        match measure(attack, held, count, packets) {
            Ok((nanoseconds, bytes)) => {
                rounds.push(nanoseconds);
                entry.bytes_per_frame = bytes;
            }
            Err(error) => {
                let (frame, how) = (entry.frame, entry.how);
                failures.push(format!("{frame} {how} among {count} of {held:?}: {error}"));
            }
        }
    }
}

fn run(options: &Options) -> Result<(), Error> {
    let is_wanted =
        |attack: &Attack| options.only.as_ref().is_none_or(|only| only == attack.kind.info().name);
    let attacks: Vec<Attack> = attack::all().into_iter().filter(is_wanted).collect();
    let mut measurements: Vec<Measurement> = attacks
        .iter()
        .map(|attack| Measurement {
            frame: attack.kind.info().name,
            how: attack.how,
            bytes_per_frame: 0.0,
            streams: Default::default(),
            others: Default::default(),
        })
        .collect();
    let mut failures = Vec::new();
    for round in 0..options.rounds.max(1) {
        for at in 0..attacks.len() {
            let at = (at + round) % attacks.len();
            if let (Some(attack), Some(entry)) = (attacks.get(at), measurements.get_mut(at)) {
                measure_all(attack, entry, options.packets, &mut failures);
            }
        }
    }
    options.output.write("frames", &report(&measurements, options.rounds), &measurements)?;
    failures.sort_unstable();
    failures.dedup();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ").into()) }
}

fn main() -> ExitCode {
    exit_code("frames", run(&Options::parse()))
}
