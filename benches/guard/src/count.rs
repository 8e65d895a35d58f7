//! Counting.

use crate::table::{Counts, Line};
use allocation_counter::{AllocationInfo, measure};
use std::cell::Cell;
use std::process::{Command, Stdio};
use sutura_guard::{CURVES, Error, Gauge, Kind, ROWS, Row};

thread_local! {
    static COUNTED: Cell<AllocationInfo> = const { Cell::new(NOTHING) };
}

const NOTHING: AllocationInfo = AllocationInfo {
    count_total: 0,
    count_current: 0,
    count_max: 0,
    bytes_total: 0,
    bytes_current: 0,
    bytes_max: 0,
};

fn gauge(work: &mut dyn FnMut()) {
    let info = measure(work);
    let mut counted = COUNTED.get();
    counted += info;
    COUNTED.set(counted);
}

/// Plays a scene, and returns by how much its costs are to be divided, and what was allocated.
fn allocations(
    scene: impl FnOnce(Gauge) -> Result<u64, Error>,
) -> Result<(u64, AllocationInfo), Error> {
    COUNTED.set(NOTHING);
    let times = scene(gauge)?;
    Ok((times, COUNTED.get()))
}

/// Counts the cost of a series of a curve at a point, each by its number: the instructions of work, or the bytes
/// that are held.
pub fn point(curve: usize, series: usize, point: usize) -> Result<f64, Error> {
    let numbers = [curve, series, point];
    let curve = CURVES.get(curve).ok_or("there is no such curve")?;
    let (series, point) = (curve.series.get(series), curve.points.get(point));
    let (series, point) = series.zip(point).ok_or("there is no such point")?;
    let (times, info) = allocations(|gauge| series.run(gauge, *point))
        .map_err(|error| format!("{}: {error}", series.name))?;
    let total = match series.kind {
        Kind::Work => instructions(&numbers)? as f64,
        Kind::State => info.bytes_current as f64,
    };
    Ok(total / times as f64)
}

/// Counts the costs of all rows.
pub fn rows() -> Result<Vec<Line>, Error> {
    let row = |(number, row): (usize, &Row)| {
        let (times, info) = allocations(|gauge| row.run(gauge))
            .map_err(|error| format!("{}: {error}", row.name))?;
        let each = |total: u64| total as f64 / times as f64;
        let counts = match row.kind {
            Kind::Work => Counts {
                instructions: Some(each(instructions(&[number])?)),
                allocations: Some(each(info.count_total)),
                allocated: Some(each(info.bytes_total)),
                held: None,
            },
            Kind::State => Counts { held: Some(info.bytes_current as f64), ..Counts::default() },
        };
        Ok(Line { name: row.name.to_owned(), counts })
    };
    ROWS.iter().enumerate().map(row).collect()
}

/// The tools on which the figures depend besides the sources: the compiler, the target, the C library with
/// its allocator and copies, and the processor that valgrind pretends to be.
pub fn toolchain() -> Result<String, Error> {
    let rustc = output(Command::new("rustc").arg("-vV"))?;
    let version = rustc.lines().next().unwrap_or_default();
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
    let libc = output(Command::new("getconf").arg("GNU_LIBC_VERSION"))?;
    let valgrind = output(Command::new("valgrind").arg("--version"))?;
    Ok(format!("{version}, {host}, {}, {}, {}", vectors(), libc.trim(), valgrind.trim()))
}

/// The variants that the codes and the C library choose on this processor.
fn vectors() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return "with AVX2";
    }
    "without AVX2"
}

fn output(command: &mut Command) -> Result<String, Error> {
    let output = command.stderr(Stdio::inherit()).output();
    let failed = |what: String| format!("{}: {what}", command_name(command));
    let output = output.map_err(|error| failed(error.to_string()))?;
    if !output.status.success() {
        return Err(failed(output.status.to_string()).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

fn command_name(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Has callgrind count the instructions of the scene with these numbers. Its output file stays beside the build,
/// by the numbers, for `callgrind_annotate`.
fn instructions(numbers: &[usize]) -> Result<u64, Error> {
    let numbers: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    let scene = std::env::current_exe()?.with_file_name("scene");
    if !scene.try_exists()? {
        let scene = scene.display();
        return Err(
            format!("{scene} is missing: `cargo build` builds it, `cargo run` does not").into()
        );
    }
    let folder = scene.with_file_name("guard-callgrind");
    std::fs::create_dir_all(&folder)?;
    let file = folder.join(numbers.join("-"));
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--quiet", "--tool=callgrind", "--toggle-collect=*measured_by_callgrind*"]);
    valgrind.arg(format!("--callgrind-out-file={}", file.display()));
    valgrind.arg(scene).args(numbers);
    // The environment is on the stack, so that its size would move the data below.
    valgrind.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    output(&mut valgrind)?;
    total(&std::fs::read_to_string(&file)?)
        .ok_or_else(|| format!("callgrind counted nothing: {}", file.display()).into())
}

/// The number of instructions in an output file of callgrind.
fn total(profile: &str) -> Option<u64> {
    let line = profile.lines().find_map(|line| line.strip_prefix("totals: "))?;
    line.trim().parse().ok().filter(|total| *total > 0)
}
