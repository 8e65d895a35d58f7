//! Links as users describe them, and traces of them: when each could send.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use sutura_link::{LinkConfig, Opportunities, ParseError};

/// The largest file, in bytes.
const LARGEST: u64 = 64 << 20;

/// Why a trace cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkTraceError {
    /// The file cannot be read, or is no text.
    #[error("{file}: {error}")]
    Read {
        /// The file.
        file: String,
        /// Why.
        error: std::io::Error,
    },
    /// The file is larger than 64 MiB.
    #[error("{file}: larger than {} MiB", LARGEST >> 20)]
    TooLarge {
        /// The file.
        file: String,
    },
    /// The text is no trace.
    #[error("{file}: {error}")]
    Wrong {
        /// The file.
        file: String,
        /// What is wrong where.
        error: ParseError,
    },
    /// The description of a link is wrong.
    #[error(transparent)]
    Link(#[from] ParseError),
}

/// Reads the file of a trace, which may be a pipe or a device.
///
/// # Errors
/// The file cannot be read, is larger than 64 MiB, or is no text.
pub fn read_text(file: &Path) -> Result<String, LinkTraceError> {
    let name = || file.display().to_string();
    let mut text = String::new();
    let opened = File::open(file);
    let read = opened.and_then(|opened| opened.take(LARGEST + 1).read_to_string(&mut text));
    match read {
        Err(error) => Err(LinkTraceError::Read { file: name(), error }),
        Ok(_) if text.len() as u64 > LARGEST => Err(LinkTraceError::TooLarge { file: name() }),
        Ok(_) => Ok(text),
    }
}

/// Reads the description of a link, and the files that it names: `trace=@FILE` is a trace in the form of Mahimahi, and
/// `loss=trace:@FILE` has a 1 for each lost packet and a 0 for each other.
///
/// # Errors
/// A file cannot be read, or the description is wrong.
pub fn read_link(text: &str) -> Result<LinkConfig, LinkTraceError> {
    let words: Result<Vec<String>, LinkTraceError> =
        text.split_whitespace().map(read_setting).collect();
    Ok(words?.join(" ").parse()?)
}

/// A setting with the trace of the file that it names, if it names one.
fn read_setting(setting: &str) -> Result<String, LinkTraceError> {
    match setting.split_once('@') {
        Some(("trace=", file)) => {
            Ok(format!("trace={}", LinkTrace::read(file.as_ref())?.opportunities))
        }
        Some(("loss=trace:", file)) => {
            let losses = read_text(file.as_ref())?;
            Ok(format!("loss=trace:{}", losses.split_whitespace().collect::<String>()))
        }
        _ => Ok(setting.to_owned()),
    }
}

/// When a link could send, as recorded in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkTrace {
    /// The file.
    pub file: PathBuf,
    /// When the link could send.
    pub opportunities: Opportunities,
}

impl LinkTrace {
    /// Reads a file in the form of the emulator Mahimahi: one time in milliseconds in each line.
    ///
    /// # Errors
    /// The file cannot be read, is larger than 64 MiB, or is no trace.
    pub fn read(file: &Path) -> Result<Self, LinkTraceError> {
        match read_text(file)?.parse() {
            Ok(opportunities) => Ok(Self { file: file.to_owned(), opportunities }),
            Err(error) => Err(LinkTraceError::Wrong { file: file.display().to_string(), error }),
        }
    }
}

impl fmt::Display for LinkTrace {
    /// The name of the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_may_name_files() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = directory.path().join(name);
            std::fs::write(&file, text).unwrap();
            file.display().to_string()
        };
        let [lte, lost] = [write("lte.down", "3\n7\n"), write("lost", "01\n0\n")];
        let read = read_link(&format!("trace=@{lte} delay=5ms loss=trace:@{lost}"));
        assert_eq!(read.unwrap().to_string(), "trace=3,7 delay=5ms loss=trace:010");
        assert_eq!(read_link("paper trace=1,2").unwrap().rate, None);
        let told = |text: &str| read_link(text).unwrap_err().to_string();
        assert!(told("trace=@none.down").starts_with("none.down: "));
        let error = told(&format!("trace=@{lost} delay=5ms"));
        assert!(error.contains("lost: trace `0`: expected no earlier time"), "{error}");
        assert!(told("delay=5").starts_with("duration `5`"), "{}", told("delay=5"));
    }

    #[test]
    fn a_record_is_read_and_what_is_none_says_where() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("lte.down");
        std::fs::write(&file, "0\n12\n12\n20\n").unwrap();
        let trace = LinkTrace::read(&file).unwrap();
        assert_eq!(trace.opportunities.as_slice(), [0, 12, 12, 20]);
        assert_eq!(trace.to_string(), file.display().to_string());
        std::fs::write(&file, "0\n12.5\n").unwrap();
        let error = LinkTrace::read(&file).unwrap_err().to_string();
        assert!(
            error.ends_with("lte.down: trace `12.5`: expected a number of milliseconds as time 2"),
            "{error}"
        );
        let error = LinkTrace::read(&directory.path().join("none")).unwrap_err();
        assert!(matches!(error, LinkTraceError::Read { .. }), "{error:?}");
        File::create(&file).unwrap().set_len(LARGEST + 1).unwrap();
        let error = LinkTrace::read(&file).unwrap_err();
        assert!(matches!(error, LinkTraceError::TooLarge { .. }), "{error:?}");
    }
}
