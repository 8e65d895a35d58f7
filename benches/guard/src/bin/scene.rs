//! Plays the scene of a row or of a point of a curve, for callgrind. Its arguments are the number of the row, or
//! those of the curve, the series and the point. The allocator is the system's, as in applications.

use std::process::ExitCode;
use sutura_guard::{CURVES, Error, ROWS};

/// Callgrind is told this name, and counts only within this function.
#[inline(never)]
fn measured_by_callgrind(work: &mut dyn FnMut()) {
    std::hint::black_box(work)();
}

fn play(numbers: &[usize]) -> Result<u64, Error> {
    let unknown = "the arguments are not the numbers of a row, or of a curve, a series and a point";
    match *numbers {
        [row] => ROWS.get(row).ok_or(unknown)?.run(measured_by_callgrind),
        [curve, series, point] => {
            let curve = CURVES.get(curve).ok_or(unknown)?;
            let point = *curve.points.get(point).ok_or(unknown)?;
            curve.series.get(series).ok_or(unknown)?.run(measured_by_callgrind, point)
        }
        _ => Err(unknown.into()),
    }
}

fn main() -> ExitCode {
    let numbers = std::env::args().skip(1).map(|number| number.parse());
    let played = numbers.collect::<Result<Vec<_>, _>>().map_err(Error::from).and_then(|n| play(&n));
    match played {
        Ok(_times) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
