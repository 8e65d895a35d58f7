//! Traces of messages: when each was made, and how large it is.
//!
//! The format is the same as in the evaluation of FlEC (Michel et al. 2022): a line for each message, with a
//! letter for its type, the time in microseconds and the size in bytes, such as `?63721,1591`.

use std::time::Duration;

use sutura_sim::TimedMessage;

/// A video conference of Tixeo: the first 2416 frames, 86.6 s, 15 and later 29 a second, with which FlEC
/// was evaluated. See `NOTICE` for its origin.
const TIXEO: &str = include_str!("../data/tixeo_trace.repr");

/// Why a trace cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the trace is not a type, a time and a size: `{text}`")]
pub struct TraceError {
    /// The number of the line, from 1.
    pub line: usize,
    /// Its text.
    pub text: String,
}

/// The video conference of Tixeo.
///
/// # Errors
/// None, as long as the data of this crate are whole.
pub fn tixeo() -> Result<Vec<TimedMessage>, TraceError> {
    parse(TIXEO)
}

/// Reads a trace.
///
/// # Errors
/// A line is not in the format.
pub fn parse(text: &str) -> Result<Vec<TimedMessage>, TraceError> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
    let read = lines.map(|(index, line)| {
        message(line).ok_or_else(|| TraceError { line: index + 1, text: line.to_owned() })
    });
    read.collect()
}

fn message(line: &str) -> Option<TimedMessage> {
    let fields = line.strip_prefix(|kind: char| "IPB?".contains(kind))?;
    let (micros, size) = fields.split_once(',')?;
    let at = Duration::from_micros(micros.parse().ok()?);
    Some(TimedMessage { at, size: size.trim_end().parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_type_a_time_and_a_size() {
        let at = |micros, size| TimedMessage { at: Duration::from_micros(micros), size };
        assert_eq!(parse("?0,9567\nP63721,1591\r\n\n"), Ok(vec![at(0, 9567), at(63_721, 1591)]));
        for (text, line) in [("?0,1\n63721,1591", 2), ("X0,1", 1), ("?0", 1), ("?-1,1", 1)] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}");
        }
    }

    #[test]
    fn the_video_conference_is_as_published() {
        let trace = tixeo().unwrap();
        assert_eq!(trace.len(), 2416);
        assert!(trace.iter().map(|message| message.size).sum::<usize>() < 5_000_000);
        assert!(trace.is_sorted_by_key(|message| message.at));
        assert_eq!(trace.last().unwrap().at.as_secs(), 86);
    }
}
