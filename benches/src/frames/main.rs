//! What it costs to receive each type of frame from a hostile peer.
//!
//! Packets are made beforehand and processed by a connection in memory, without packet protection
//! and without a socket. What counts is CPU time, including what the connection answers.

mod attack;

use attack::{Attack, Payloads};
use clap::Parser;
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;
use sutura_analysis::report::Report;
use sutura_analysis::statistics::{Spread, quantile, sorted};
use sutura_analysis::table::{Cell, Table};
use sutura_benches::output::Output;
use sutura_benches::{Error, cpu, exit_code};
use sutura_proto::fuzz::Target;
use sutura_proto::{Connection, Dir, StreamId};

/// Bytes of an IPv4 and a UDP header, which every packet costs its sender as well.
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

/// All rounds of one attack.
#[derive(Debug, Serialize)]
struct Measurement {
    frame: &'static str,
    how: &'static str,
    /// Average size of a frame, with its share of the packet.
    bytes_per_frame: f64,
    /// A value for each round, by how many streams are open: 1, 100 and 1,000.
    nanoseconds_per_byte: [Vec<f64>; OPEN.len()],
}

impl Measurement {
    /// The median where it costs most.
    fn worst(&self) -> f64 {
        let medians = self.nanoseconds_per_byte.iter();
        medians.map(|rounds| quantile(&sorted(rounds.iter().copied()), 0.5)).fold(0.0, f64::max)
    }
}

/// Receives packets; returns bytes, frames and nanoseconds.
fn receive(
    target: &mut Target,
    payloads: &mut Payloads,
    count: usize,
) -> Result<(usize, usize, f64), Error> {
    let mut frames = 0;
    let mut packets = Vec::with_capacity(count);
    for _ in 0..count {
        let (payload, n) = payloads();
        frames += n;
        packets.push(target.seal(&payload));
    }
    let bytes = packets.iter().map(|packet| packet.len() + HEADERS).sum();
    let start = cpu::now();
    for packet in &mut packets {
        if !target.receive(packet) {
            return Err("the connection is over".into());
        }
    }
    let time = cpu::now() - start;
    Ok((bytes, frames, time.as_secs_f64() * 1e9))
}

/// What the application does: takes and reads everything, and ends its half of each stream.
fn consume(connection: &mut Connection, open: &mut Vec<StreamId>) {
    for dir in [Dir::Uni, Dir::Bi] {
        while let Some(id) = connection.accept(dir) {
            open.push(id);
            if dir == Dir::Bi {
                // It is over already if the peer has stopped it.
                let _ = connection.send_stream(id).finish();
            }
        }
    }
    open.retain(|&id| {
        loop {
            match connection.recv_stream(id).read_chunk(usize::MAX, true) {
                Ok(Some(_)) => {}
                Err(sutura_proto::ReadError::Blocked) => return true,
                Ok(None) | Err(_) => return false,
            }
        }
    });
    while connection.datagrams().recv().is_some() {}
}

/// Measures an attack once, on a connection with so many open streams.
fn measure(attack: &Attack, streams: u64, packets: usize) -> Result<(f64, f64), Error> {
    let mut target = Target::new(attack.side).ok_or("no connection")?;
    attack::open(&mut target, streams)?;
    let mut payloads = (attack.start)(&mut target)?;
    let mut open = Vec::new();
    let (mut bytes, mut frames, mut time) = (0, 0, 0.0);
    let mut received = 0;
    while received < packets {
        let (more_bytes, more_frames, more_time) =
            receive(&mut target, &mut payloads, attack.batch)?;
        consume(target.connection(), &mut open);
        target.settle();
        received += attack.batch;
        // What the first packets set up is not counted.
        if received > packets / 10 {
            bytes += more_bytes;
            frames += more_frames;
            time += more_time;
        }
    }
    Ok((time / bytes as f64, bytes as f64 / frames as f64))
}

fn report(measurements: &[Measurement], rounds: usize) -> Report {
    let mut types: BTreeMap<&str, f64> = BTreeMap::new();
    for entry in measurements {
        let worst = types.entry(entry.frame).or_default();
        *worst = worst.max(entry.worst());
    }
    let median = quantile(&sorted(types.values().copied()), 0.5);
    let mut table = Table::new(
        "Frames of each type",
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
        let [one, hundred, thousand] = &entry.nanoseconds_per_byte;
        let spread = |rounds: &[f64]| Cell::spread(Spread::of_deciles(rounds.iter().copied()), 1);
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
    let worst = types.values().copied().fold(0.0, f64::max);
    let text = vec![
        format!(
            "Nanoseconds of CPU time for each byte that a hostile peer sends, median [lower and upper \
             decile] of {rounds} interleaved rounds, without packet protection. Headers of IP and UDP \
             count. Packets are full of frames of one type, except where a frame must be the last of \
             its packet. The connection has 1, 100 or 1,000 streams of its own open, which share a \
             coding session."
        ),
        format!(
            "The median over the {} types, each at its costliest, is {median:.1} ns per byte; the \
             costliest is {:.1} times that.",
            types.len(),
            worst / median
        ),
    ];
    Report {
        name: "frames".to_owned(),
        title: "What it costs to receive frames".to_owned(),
        text,
        tables: vec![table],
        ..Report::default()
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
            nanoseconds_per_byte: Default::default(),
        })
        .collect();
    let mut failures = Vec::new();
    for round in 0..options.rounds.max(1) {
        for at in 0..attacks.len() {
            let at = (at + round) % attacks.len();
            let (Some(attack), Some(entry)) = (attacks.get(at), measurements.get_mut(at)) else {
                continue;
            };
            for (streams, rounds) in OPEN.into_iter().zip(&mut entry.nanoseconds_per_byte) {
                match measure(attack, streams, options.packets) {
                    Ok(measured) => {
                        rounds.push(measured.0);
                        entry.bytes_per_frame = measured.1;
                    }
                    Err(error) => failures.push(format!("{} {}: {error}", entry.frame, entry.how)),
                }
            }
        }
    }
    options.output.write("frames", &report(&measurements, options.rounds), &measurements)?;
    failures.dedup();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ").into()) }
}

fn main() -> ExitCode {
    exit_code("frames", run(&Options::parse()))
}
