//! How much memory a server's peers may take: the option `--memory`.

use std::str::FromStr;

use sutura::MemoryBudget;

/// The least that a server can work with: a few connections, one of them with a transfer.
const LEAST: usize = 1 << 20;

/// The option, for commands that accept connections.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct MemoryArgs {
    /// Memory that all clients together may make this server hold, such as 512MiB or 2GiB. Each gets a
    /// share, which shrinks as it fills up. An idle connection takes 26 KiB
    #[arg(long, value_name = "SIZE", default_value = "128MiB")]
    memory: Size,
}

impl MemoryArgs {
    /// A budget of this size.
    pub fn budget(self) -> MemoryBudget {
        MemoryBudget::new(self.memory.0)
    }
}

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size(usize);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // It is less than half of the address space.
        match bytes(text)? as usize {
            bytes if bytes < LEAST => Err("at least 1MiB is needed".to_owned()),
            bytes => Ok(Self(bytes)),
        }
    }
}

/// Reads a number of bytes with a unit.
///
/// # Errors
/// It is none, or larger than any memory.
pub fn bytes(text: &str) -> Result<u64, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        other => return Err(format!("no unit {other:?}: use KiB, MiB or GiB, as in 256MiB")),
    };
    let number: f64 =
        number.parse().map_err(|_| "expected a number and a unit, as in 256MiB".to_owned())?;
    let bytes = number * unit as f64;
    // Half of the address space is more than any machine has.
    if bytes > (usize::MAX / 2) as f64 {
        return Err("more than any machine has".to_owned());
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [
            ("128MiB", 128 << 20),
            ("1.5 GiB", 3 << 29),
            ("2g", 2 << 30),
            ("100MB", 100_000_000),
            ("2048k", 2 << 20),
            ("1048576", 1 << 20),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for (text, why) in [
            ("", "expected a number"),
            ("MiB", "expected a number"),
            ("1.2.3GiB", "expected a number"),
            ("12apples", "no unit \"apples\""),
            ("-5MiB", "no unit"),
            ("128", "at least 1MiB"),
            ("1KiB", "at least 1MiB"),
            ("99999999999TiB", "more than any machine has"),
        ] {
            let error = text.parse::<Size>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
