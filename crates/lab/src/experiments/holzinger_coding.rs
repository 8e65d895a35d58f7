//! What it takes to make repair symbols and to recover early and late losses, by the size of the window (Holzinger et
//! al. 2025, section V-A, Fig. 2): bytes that the codes read, which are the same on every machine.

use serde::{Deserialize, Serialize};
use sutura_erasure::{Decoder, DecoderLimits, Encoder, RepairSymbol};
use sutura_random::Rng;

use crate::comparison::seed;
use crate::report::{Axis, Cell, Report, Series, Table, chart_of, report_of};
use crate::{Error, Options, parallel};

/// The windows, in symbols.
const WINDOWS: [usize; 8] = [10, 20, 50, 100, 200, 500, 1000, 2000];
/// Bytes of a symbol.
const SIZE: usize = 1500;
/// One in so many symbols is lost.
const ONE_IN: usize = 20;
/// What a core reads in a second, in bytes: about the least that `benches/erasure` measures with vector instructions.
const SPEED: f64 = 30e9;

named! {
    /// Where the lost symbols are in the window.
    enum LossPlace {
        Early = "early",
        Late = "late",
        Spread = "spread",
    }
}

impl LossPlace {
    /// The lost symbols of a window.
    fn lost(self, window: usize) -> Vec<u64> {
        let count = (window / ONE_IN).max(1);
        let all: Vec<usize> = match self {
            Self::Early => (0..count).collect(),
            Self::Late => (window - count..window).collect(),
            Self::Spread => (0..count).map(|n| n * (window / count) + window / count / 2).collect(),
        };
        all.into_iter().map(|symbol| symbol as u64).collect()
    }
}

/// What the recovery of a window takes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Recovery {
    lost: usize,
    /// Bytes that were read for all repair symbols, and for the last one.
    total: u64,
    last: u64,
}

experiment! {
    "holzinger-coding": "Work to make repair symbols and to recover early and late losses, by window",
    one in 1 takes 2 s
}

fn run(options: &Options) -> Result<Report, Error> {
    let jobs = WINDOWS.iter().flat_map(|window| LossPlace::ALL.map(|place| (*window, place)));
    let jobs: Vec<(usize, LossPlace)> = jobs.collect();
    let all = parallel::map(options, &jobs, |(window, place)| {
        Ok::<_, Error>(recover(*window, *place, options.seed))
    })?;
    let rows: Vec<_> = jobs.iter().zip(&all).collect();
    let series = LossPlace::ALL.map(|place| {
        let of_place = rows.iter().filter(|((_, of), _)| *of == place);
        let points = of_place.map(|((window, _), work)| (*window as f64, millis(work.total)));
        Series::line(place.name(), points.collect())
    });
    let axes = [Axis::log("window in symbols"), Axis::log("ms at 30 GB/s")];
    let chart = chart_of("recovery", "Recovery of a twentieth of a window", axes, series);
    let title = "The work of encoding and decoding";
    Ok(report_of(title, &TEXT, [encoding(), decoding(&rows)], [chart]))
}

/// Milliseconds that reading so many bytes takes.
fn millis(bytes: u64) -> f64 {
    1000.0 * bytes as f64 / SPEED
}

fn limits(window: usize) -> DecoderLimits {
    let room = window.max(64);
    DecoderLimits { symbols: room, bytes: room * SIZE, symbol_size: SIZE, repairs: room }
}

/// Gives a decoder all symbols of a window but the lost ones, and then as many repair symbols as are lost.
fn recover(window: usize, place: LossPlace, base: u64) -> Recovery {
    let (mut rng, limits) = (Rng::new(seed(base, window as u64)), limits(window));
    let (mut encoder, mut decoder) = (Encoder::new(limits.window()), Decoder::new(limits));
    let lost = place.lost(window);
    for id in 0..window as u64 {
        let symbol: Vec<u8> = (0..SIZE).map(|_| rng.next_u64() as u8).collect();
        // The window has room for all, and each comes once.
        let _ = encoder.push(&symbol);
        if !lost.contains(&id) {
            let _ = decoder.source(id, &symbol);
        }
    }
    let keys: Vec<u32> = (0..lost.len() as u32).collect();
    let mut payloads = vec![Vec::new(); keys.len()];
    let _ = encoder.repair_burst(encoder.window(), &keys, &mut payloads);
    let (mut before, mut last) = (decoder.work(), 0);
    for (key, payload) in keys.into_iter().zip(&payloads) {
        decoder.repair_burst(&[RepairSymbol { span: encoder.window(), key, payload }]);
        (last, before) = (decoder.work() - before, decoder.work());
    }
    let recovered = lost.iter().filter(|id| decoder.symbol(**id) == encoder.symbol(**id)).count();
    Recovery { lost: recovered, total: decoder.work(), last }
}

fn encoding() -> Table {
    Table::of(
        "A repair symbol over the whole window",
        WINDOWS,
        &[
            ("window", &|window| (*window).into()),
            ("kB read", &|window| Cell::Number((window * SIZE) as f64 / 1000.0)),
            ("ms at 30 GB/s", &|window| Cell::Number(millis((window * SIZE) as u64))),
        ],
    )
}

fn decoding(rows: &[(&(usize, LossPlace), &Recovery)]) -> Table {
    let megabytes = |bytes: u64| Cell::Number(bytes as f64 / 1e6);
    Table::of(
        "Recovery of one symbol in twenty by as many repair symbols, one at a time",
        rows,
        &[
            ("window", &|((window, _), _)| (*window).into()),
            ("losses", &|((_, place), _)| place.name().into()),
            ("recovered", &|(_, work)| work.lost.into()),
            ("MB read", &|(_, work)| megabytes(work.total)),
            ("MB for the last", &|(_, work)| megabytes(work.last)),
            ("ms at 30 GB/s", &|(_, work)| Cell::Number(millis(work.total))),
            ("ms for the last", &|(_, work)| Cell::Number(millis(work.last))),
        ],
    )
}

const TEXT: [&str; 2] = [
    "Holzinger et al. 2025, section V-A, Fig. 2: symbols of 1500 bytes with random contents, of which a twentieth is lost \
     at the beginning of the window, at its end or all over it, and as many repair symbols as losses, over the whole \
     window. The work is the bytes that the arithmetic of the code reads, which `Decoder::work` counts: it is the same on \
     every machine.",
    "Times are what that work takes at 30 GB/s, about the least that a core with vector instructions does. \
     `benches/erasure` measures the CPU time of the same windows (docs/results/erasure.md).",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_losses_are_recovered_wherever_they_are() {
        for window in [10, 100, 500] {
            let work = LossPlace::ALL.map(|place| recover(window, place, 1));
            let count = (window / ONE_IN).max(1);
            assert!(work.iter().all(|of| of.lost == count && of.last <= of.total), "{work:?}");
            let [early, late, _] = work.map(|of| of.total as f64);
            assert!((0.9..1.1).contains(&(early / late)), "{window}: {early} {late}");
        }
    }

    #[test]
    fn lost_symbols_are_where_they_are_said_to_be() {
        assert_eq!(LossPlace::Early.lost(100), [0, 1, 2, 3, 4]);
        assert_eq!(LossPlace::Late.lost(100), [95, 96, 97, 98, 99]);
        assert_eq!(LossPlace::Spread.lost(100), [10, 30, 50, 70, 90]);
        assert_eq!(LossPlace::Late.lost(10), [9]);
    }
}
