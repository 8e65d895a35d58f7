//! Looks for ISA-L, and links it if it is installed.
//!
//! ISA-L is in the usual directories, or in the directory named by `ISAL_DIR` (with `include/` and `lib/` in
//! it). Without ISA-L, the bench still runs and says what is missing.

use std::{env, fs, path::Path};

/// Where distributions put headers, and where they put the libraries for these headers.
const INCLUDE: [&str; 3] = ["/usr/include", "/usr/local/include", "/opt/homebrew/include"];
const LIB: [&str; 7] = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib64",
    "/usr/local/lib",
    "/opt/homebrew/lib",
];
const FILES: [&str; 3] = ["libisal.so", "libisal.dylib", "libisal.a"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=ISAL_DIR");
    let (include, lib) = match env::var("ISAL_DIR") {
        Ok(dir) => (vec![format!("{dir}/include")], vec![format!("{dir}/lib")]),
        Err(_) => (INCLUDE.map(String::from).to_vec(), LIB.map(String::from).to_vec()),
    };
    let found = include.iter().find_map(|dir| Some((dir, version(dir)?)));
    let Some((include, version)) = found else { return };
    let Some(dir) = lib.iter().find(|dir| FILES.iter().any(|f| Path::new(dir).join(f).exists()))
    else {
        return;
    };
    println!("cargo::rerun-if-changed={include}/isa-l.h");
    println!("cargo::rustc-cfg=isal");
    println!("cargo::rustc-env=ISAL_VERSION={version}");
    println!("cargo::rustc-link-search=native={dir}");
    println!("cargo::rustc-link-lib=isal");
}

/// The version that the header in a directory names.
fn version(include: &str) -> Option<String> {
    let header = fs::read_to_string(Path::new(include).join("isa-l.h")).ok()?;
    let part = |name: &str| {
        let line = header.lines().find(|line| line.contains(&format!("ISAL_{name}_VERSION ")))?;
        line.split_whitespace().last()?.parse::<u32>().ok()
    };
    Some(format!("{}.{}.{}", part("MAJOR")?, part("MINOR")?, part("PATCH")?))
}
