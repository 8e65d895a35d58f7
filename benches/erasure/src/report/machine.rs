//! The conditions of the measurements.

use crate::{memory, peers::isal};
use std::fs;
use sutura_analysis::report::machine;
use sutura_erasure::kernel::Kernel;

/// The numbers of runnable tasks in the last 1, 5 and 15 minutes, where Linux tells.
pub fn load() -> Option<String> {
    let load = fs::read_to_string("/proc/loadavg").ok()?;
    Some(load.split_whitespace().take(3).collect::<Vec<_>>().join(" "))
}

/// How much of the memory of the entries with huge pages, and how much of all other memory, is in huge pages,
/// where Linux tells.
pub fn huge_pages() -> Option<String> {
    let (resident, huge) = memory::resident()?;
    let all = fs::read_to_string("/proc/self/smaps_rollup").ok()?;
    let line = all.lines().find(|line| line.starts_with("AnonHugePages:"))?;
    let all: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    let elsewhere = all.saturating_sub(huge);
    Some(format!("{huge} of {resident} KiB where they are wanted, {elsewhere} KiB elsewhere"))
}

/// The kernels that run here.
pub fn kernels() -> Vec<&'static str> {
    Kernel::available().map(|kernel| kernel.tier().name()).collect()
}

pub fn describe() -> Vec<String> {
    let mut lines = Vec::new();
    if cfg!(debug_assertions) {
        lines.push("built without --release: the figures mean nothing".to_owned());
    }
    lines.push(format!("machine: {}", machine()));
    lines.extend(load().map(|load| format!("load at the end: {load}")));
    let none = || "none to be had, so what is decided in them is not measured".to_owned();
    lines.push(format!("huge pages: {}", huge_pages().unwrap_or_else(none)));
    lines.push(format!("kernels: {}", kernels().join(", ")));
    lines.push(isal::describe());
    lines.push("rlnc-simdx: ".to_owned() + rlnc_simdx::active_kernel());
    lines.push(
        "libmoepgf, QUIRL's solver and klauspost/reedsolomon are in no package registry for Rust; \
         stand-ins for the first are our own kernels in its form"
            .into(),
    );
    lines.push(
        "GB = 1e9 bytes of source symbols times destinations, 1500 bytes a symbol; kernels, also \
         those of others, work on aligned slots of 1536"
            .into(),
    );
    lines
}
