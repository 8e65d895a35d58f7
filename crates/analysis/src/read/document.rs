//! Reads a file that is a single JSON document.

use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;

use super::collect::{Collector, Kept};
use super::header::Header;
use super::{json, truncated};
use crate::error::{Error, ErrorKind, Position};
use crate::limits::{MAX_RECORD_BYTES, MAX_TRACES};
use crate::trace::Trace;

#[derive(Debug, Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    qlog_version: Option<&'a RawValue>,
    #[serde(borrow)]
    file_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    traces: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct TraceDocument<'a> {
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    vantage_point: Option<&'a RawValue>,
    #[serde(borrow)]
    common_fields: Option<&'a RawValue>,
    #[serde(borrow)]
    configuration: Option<&'a RawValue>,
    #[serde(borrow)]
    event_fields: Option<&'a RawValue>,
    #[serde(borrow)]
    events: Option<&'a RawValue>,
}

/// The text of a document and its position in the file.
#[derive(Debug, Clone, Copy)]
struct Source<'a> {
    text: &'a str,
    start: Position,
}

impl Source<'_> {
    /// The position of `part`, a part of the text.
    fn position(&self, part: &str) -> Position {
        self.start.after(before(self.text, part))
    }

    /// Parses a part of the text.
    fn parse<'b, T: Deserialize<'b>>(&self, part: &'b str) -> Result<T, Error> {
        serde_json::from_str(part).map_err(|e| json::error(&e, self.position(part)))
    }

    /// Builds an object from the fields that are present.
    fn object(&self, fields: &[(&str, Option<&RawValue>)]) -> Result<Value, Error> {
        let mut object = serde_json::Map::new();
        for (name, raw) in fields {
            let Some(raw) = raw else { continue };
            if raw.get().len() > MAX_RECORD_BYTES {
                return Err(ErrorKind::RecordTooLong.at(self.position(raw.get())));
            }
            object.insert((*name).to_owned(), self.parse(raw.get())?);
        }
        Ok(object.into())
    }
}

/// Reads a document that begins at `start` in its file.
pub(super) fn read(bytes: &[u8], start: Position) -> Result<Vec<Trace>, Error> {
    let text = match str::from_utf8(bytes) {
        Ok(text) => text,
        // A truncated file may end in the middle of a character.
        Err(e) if e.error_len().is_none() => {
            str::from_utf8(bytes.get(..e.valid_up_to()).unwrap_or_default()).unwrap_or_default()
        }
        Err(e) => {
            let valid = bytes.get(..e.valid_up_to()).unwrap_or_default();
            return Err(ErrorKind::Json("not UTF-8".to_owned()).at(start.after(valid)));
        }
    };
    let result = serde_json::from_str::<Document<'_>>(text);
    if let Err(error) = result
        && error.is_eof()
        && let Some(closed) = truncated::close(text)
    {
        let mut traces = read_text(&closed, start)?;
        if let Some(last) = traces.last_mut() {
            last.truncated = true;
            return Ok(traces);
        }
    }
    read_text(text, start)
}

fn read_text(text: &str, start: Position) -> Result<Vec<Trace>, Error> {
    let source = Source { text, start };
    let document: Document<'_> = source.parse(text)?;
    let about = source.object(&[
        ("qlog_version", document.qlog_version),
        ("file_schema", document.file_schema),
        ("title", document.title),
    ])?;
    let header = Header::of_file(&about).map_err(|kind| kind.at(start))?;
    let Some(list) = document.traces else { return Ok(Vec::new()) };
    let mut traces = Vec::new();
    let mut kept = Kept::default();
    each(source, list, &mut |part| {
        let trace: TraceDocument<'_> = source.parse(part)?;
        // Traces that a tool could not convert have an error in place of events.
        let Some(events) = trace.events else { return Ok(()) };
        if traces.len() >= MAX_TRACES {
            return Err(ErrorKind::TooManyTraces.at(source.position(part)));
        }
        let about = source.object(&[
            ("title", trace.title),
            ("vantage_point", trace.vantage_point),
            ("common_fields", trace.common_fields),
            ("configuration", trace.configuration),
        ])?;
        let mut header = header.clone();
        header.read_trace(&about);
        if let Some(names) =
            trace.event_fields.filter(|names| names.get().len() <= MAX_RECORD_BYTES)
        {
            header.read_columns(&source.parse(names.get())?);
        }
        let mut collector = Collector::new(header);
        collector.kept = std::mem::take(&mut kept);
        read_events(source, events, &mut collector)?;
        kept = std::mem::take(&mut collector.kept);
        traces.extend(collector.finish());
        kept.traces = traces.len();
        Ok(())
    })?;
    Ok(traces)
}

fn read_events(
    source: Source<'_>,
    events: &RawValue,
    collector: &mut Collector,
) -> Result<(), Error> {
    // Counting on from the previous event keeps this linear.
    let mut position = source.position(events.get());
    let mut last = events.get();
    each(source, events, &mut |part| {
        let between = before(last, part);
        position = position.after(between);
        last = last.get(between.len()..).unwrap_or_default();
        if part.len() > MAX_RECORD_BYTES {
            return Err(ErrorKind::RecordTooLong.at(position));
        }
        collector.event(source.parse(part)?, position)
    })
}

/// The text before a part of it.
fn before<'a>(text: &'a str, part: &str) -> &'a [u8] {
    let offset = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    text.as_bytes().get(..offset).unwrap_or_default()
}

/// Calls `act` with each element of a JSON array, holding only one at a time.
fn each<'a>(
    source: Source<'a>,
    array: &'a RawValue,
    act: &mut dyn FnMut(&'a str) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut failure = None;
    let mut deserializer = serde_json::Deserializer::from_str(array.get());
    let result = Each { act, failure: &mut failure }.deserialize(&mut deserializer);
    match (failure, result) {
        (Some(failure), _) => Err(failure),
        (None, Err(error)) => Err(json::error(&error, source.position(array.get()))),
        (None, Ok(())) => Ok(()),
    }
}

struct Each<'a, 'b> {
    act: &'b mut dyn FnMut(&'a str) -> Result<(), Error>,
    failure: &'b mut Option<Error>,
}

impl<'a> DeserializeSeed<'a> for Each<'a, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'a> Visitor<'a> for Each<'a, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut array: A) -> Result<(), A::Error> {
        while let Some(element) = array.next_element::<&'a RawValue>()? {
            if let Err(error) = (self.act)(element.get()) {
                *self.failure = Some(error);
                return Err(serde::de::Error::custom("stopped"));
            }
        }
        Ok(())
    }
}
