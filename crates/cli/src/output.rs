//! Writes to the terminal, or wherever output is redirected.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
pub use sutura_analysis::statistics::millis;

use crate::failure::{Exit, Failure};
use crate::file::{self, Readers, cannot_write};

/// Writes text and a line break to standard output.
///
/// # Errors
/// Standard output cannot be written. If nobody reads it any more, the failure has no message.
pub fn line(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|e| stdout_failure(&e))
}

/// Writes a value as a line of JSON to standard output.
///
/// # Errors
/// As for [`line()`].
pub fn json(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string(value);
    line(&text.map_err(|e| Failure::new(Exit::Other, format!("cannot write JSON: {e}")))?)
}

/// The failure for an error of standard output.
pub fn stdout_failure(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::new(Exit::Other, "");
    }
    Failure::local(format!("cannot write to standard output: {error}"))
}

/// Writes a file, replacing an existing one.
///
/// # Errors
/// It cannot be written.
pub fn write_file(path: &Path, content: &str) -> Result<(), Failure> {
    file::write(path, content.as_bytes(), Readers::Usual).map_err(|e| cannot_write(path, &e))
}

/// Writes a line to standard error. Errors cannot be reported, and are ignored.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", clean(text));
}

/// Writes a line about a problem to standard error.
pub fn complain(text: &str) {
    note(&format!("sutura: {text}"));
}

/// Reports a failure to the user. Returns the exit code.
pub fn report(failure: &Failure) -> Exit {
    if !failure.message.is_empty() {
        complain(&failure.message);
    }
    failure.exit
}

/// Turns untrusted text into one line without terminal control sequences.
pub fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_control() || is_invisible(character) {
            let _ = write!(clean, "{}", character.escape_unicode());
        } else {
            clean.push(character);
        }
    }
    clean
}

/// Whether a character changes how its neighbours are displayed.
fn is_invisible(character: char) -> bool {
    matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A progress bar on standard error in the style of `template`.
pub fn bar(total: u64, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total), ProgressDrawTarget::stderr());
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

/// A number of bytes with a suitable unit.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if count < 1000 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1000.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_made_visible() {
        assert_eq!(clean("a\n\u{1b}[31mb\u{202e}é"), "a\\u{a}\\u{1b}[31mb\\u{202e}é");
    }

    #[test]
    fn numbers_of_bytes_are_short() {
        for (count, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (999_949, "999.9 kB"),
            (999_950, "1.0 MB"),
            (1_500_000_000, "1.5 GB"),
            (u64::MAX, "18446744.1 TB"),
        ] {
            assert_eq!(bytes(count), text);
        }
    }
}
