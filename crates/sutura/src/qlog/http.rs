//! HTTP/3 events with the field names of qlog.

use serde::Serialize;
use std::borrow::Cow;
use sutura_h3::{FrameAction, FrameContent, FrameEvent};

/// The data of `http:frame_created` and `http:frame_parsed`.
#[derive(Debug, Serialize)]
pub(super) struct FrameData<'a> {
    stream_id: u64,
    frame: Frame<'a>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "frame_type", rename_all = "snake_case")]
enum Frame<'a> {
    Headers {
        headers: Vec<Field<'a>>,
    },
    /// Uses the names that qvis expects.
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

/// The name and the data of an event.
pub(super) fn event(event: &FrameEvent) -> (&'static str, FrameData<'_>) {
    let name = match event.action {
        FrameAction::Created => "http:frame_created",
        FrameAction::Parsed => "http:frame_parsed",
    };
    let text = String::from_utf8_lossy;
    let frame = match &event.content {
        FrameContent::Headers(fields) => Frame::Headers {
            headers: fields
                .iter()
                .map(|field| Field { name: text(&field.name), value: text(&field.value) })
                .collect(),
        },
        FrameContent::PriorityUpdate { element, value } => {
            Frame::PriorityUpdate { element_id: element.0, value: text(value) }
        }
    };
    (name, FrameData { stream_id: event.stream.0, frame })
}
