//! HTTP/3, as qlog names it.

use serde::Serialize;
use std::borrow::Cow;
use sutura_proto::StreamId;

/// The data of `http:frame_parsed`.
#[derive(Debug, Serialize)]
pub(super) struct FrameParsed<'a> {
    stream_id: u64,
    frame: Frame<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
enum Frame<'a> {
    Headers {
        headers: Vec<Field<'a>>,
    },
    /// With the names that qvis looks for.
    PriorityUpdate {
        element_id: u64,
        value: Cow<'a, str>,
    },
}

#[derive(Debug, Serialize)]
struct Field<'a> {
    name: Cow<'a, str>,
    value: Cow<'a, str>,
}

impl<'a> FrameParsed<'a> {
    /// The header section of a request, as far as it is told.
    pub(super) fn request(stream: StreamId, fields: &[(&'a [u8], &'a [u8])]) -> Self {
        let text = String::from_utf8_lossy;
        let fields = fields.iter();
        let headers = fields.map(|(name, value)| Field { name: text(name), value: text(value) });
        Self { stream_id: stream.0, frame: Frame::Headers { headers: headers.collect() } }
    }

    /// A PRIORITY_UPDATE frame.
    pub(super) fn priority_update(stream: StreamId, element_id: u64, value: &'a [u8]) -> Self {
        let value = String::from_utf8_lossy(value);
        Self { stream_id: stream.0, frame: Frame::PriorityUpdate { element_id, value } }
    }
}
