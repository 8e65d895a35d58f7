//! Reads JSON values leniently: numbers may be strings, and long text is truncated.

use serde_json::Value;

use crate::error::{Error, ErrorKind, Position};
use crate::limits::MAX_TEXT_BYTES;

/// Converts an error of serde_json in JSON that began at `start`.
pub(super) fn error(error: &serde_json::Error, start: Position) -> Error {
    let line = start.line + (error.line() as u64).saturating_sub(1);
    let text = error.to_string();
    // serde_json appends a position relative to its input.
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(text, _)| text);
    ErrorKind::Json(format!("{text}, column {}", error.column()))
        .at(Position { line, offset: start.offset })
}

/// A non-negative integer. Some versions of qlog write 64-bit numbers as text.
pub(super) fn number(value: Option<&Value>) -> Option<u64> {
    match value? {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            (float.fract() == 0.0 && (0.0..9.0e15).contains(&float)).then_some(float as u64)
        }),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// A number of any kind.
pub(super) fn float(value: Option<&Value>) -> Option<f64> {
    let float = match value? {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    float.filter(|f: &f64| f.is_finite())
}

/// Text, truncated to [`MAX_TEXT_BYTES`].
pub(super) fn text(value: Option<&Value>) -> Option<&str> {
    let text = value?.as_str()?;
    Some(text.get(..text.floor_char_boundary(MAX_TEXT_BYTES)).unwrap_or_default())
}
