//! Plays the scene of a row, for callgrind: its argument is the number of the row. The allocator is the
//! system's, as in applications.

use std::process::ExitCode;
use sutura_guard::ROWS;

/// Callgrind is told this name, and counts only within this function.
#[inline(never)]
fn measured_by_callgrind(work: &mut dyn FnMut()) {
    std::hint::black_box(work)();
}

fn main() -> ExitCode {
    let number = std::env::args().nth(1).and_then(|number| number.parse::<usize>().ok());
    let Some(row) = number.and_then(|number| ROWS.get(number)) else {
        eprintln!("the argument is not the number of a row");
        return ExitCode::FAILURE;
    };
    match row.run(measured_by_callgrind) {
        Ok(_times) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", row.name);
            ExitCode::FAILURE
        }
    }
}
