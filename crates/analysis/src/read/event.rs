//! Reads events under their names in all versions.

use serde_json::Value;

use super::{json, packet};
use crate::trace::{EventKind, LossEstimate, Redundancy};

/// The result of reading an event.
#[derive(Debug)]
pub(super) enum Read {
    Event(EventKind),
    /// No analysis uses it.
    Other,
    /// A mandatory field is missing.
    Malformed,
}

impl From<Option<EventKind>> for Read {
    fn from(event: Option<EventKind>) -> Self {
        event.map_or(Self::Malformed, Self::Event)
    }
}

/// Reads an event. Only the part of its name after the last colon counts: the part before it
/// differs between versions.
pub(super) fn read(event: &Value) -> Read {
    let Some(name) = json::text(event.get("name")) else { return Read::Malformed };
    let name = name.rsplit(':').next().unwrap_or(name);
    let none = Value::Null;
    let data = event.get("data").unwrap_or(&none);
    match name {
        "packet_sent" => packet::read(data).map(EventKind::PacketSent).into(),
        "packet_received" => packet::read(data).map(EventKind::PacketReceived).into(),
        "packet_lost" => {
            let (space, number) = packet::number(data);
            number.map(|_| EventKind::PacketLost { space, number }).into()
        }
        "data_moved" | "stream_data_moved" => data_moved(data),
        "frame_created" | "frame_parsed" => http_frame(data),
        "priority_updated" => priority_updated(data),
        "symbol_recovered" => symbol_recovered(data).into(),
        "recovered_by_peer" => {
            json::number(data.get("count")).map(|count| EventKind::RecoveredByPeer { count }).into()
        }
        "loss_estimate_updated" => loss_estimate(data).map(EventKind::LossEstimateUpdated).into(),
        "redundancy_updated" => redundancy(data).map(EventKind::RedundancyUpdated).into(),
        _ => Read::Other,
    }
}

fn data_moved(data: &Value) -> Read {
    let end = |key: &str| json::text(data.get(key));
    let upwards = matches!(end("from"), None | Some("transport"))
        && matches!(end("to"), None | Some("application" | "user" | "http"));
    if !upwards {
        return Read::Other;
    }
    let length = packet::data_length(data);
    let stream = json::number(data.get("stream_id"));
    stream.zip(length).map(|(stream, length)| EventKind::DataMoved { stream, length }).into()
}

fn http_frame(data: &Value) -> Read {
    let Some(frame) = data.get("frame") else { return Read::Malformed };
    match json::text(frame.get("frame_type")) {
        Some("headers") => headers(data, frame),
        Some("priority_update") => {
            let stream = ["stream_id", "element_id", "prioritized_element_id"]
                .iter()
                .find_map(|key| json::number(frame.get(*key)));
            // A priority update for a push has no stream.
            let Some(stream) = stream else { return Read::Other };
            let value = ["priority_field_value", "value"];
            let value = value.iter().find_map(|key| json::text(frame.get(*key)));
            value.map(|value| EventKind::PriorityUpdate { stream, priority: value.into() }).into()
        }
        Some(_) => Read::Other,
        None => Read::Malformed,
    }
}

fn headers(data: &Value, frame: &Value) -> Read {
    let Some(stream) = json::number(data.get("stream_id")) else { return Read::Malformed };
    let fields = ["headers", "header_fields", "fields"];
    let fields = fields.iter().find_map(|key| frame.get(*key)?.as_array());
    // Trailers, and files that omit fields for privacy.
    let Some(fields) = fields else { return Read::Other };
    let field = |name: &str| {
        let mut named =
            fields.iter().filter(|f| f.get("name").and_then(Value::as_str) == Some(name));
        json::text(named.next().and_then(|f| f.get("value")))
    };
    let priority = field("priority").map(Into::into);
    if let Some(path) = field(":path") {
        return Read::Event(EventKind::Request { stream, path: path.into(), priority });
    }
    if let Some(status) = field(":status") {
        return Read::Event(EventKind::Response { stream, status: status.into(), priority });
    }
    Read::Other
}

fn priority_updated(data: &Value) -> Read {
    let Some(stream) = json::number(data.get("stream_id")) else { return Read::Other };
    json::text(data.get("new"))
        .map(|new| EventKind::PriorityUpdate { stream, priority: new.into() })
        .into()
}

fn symbol_recovered(data: &Value) -> Option<EventKind> {
    Some(EventKind::SymbolRecovered {
        session: json::number(data.get("session"))?,
        id: json::number(data.get("symbol_id"))?,
        frames: packet::stream_frames(data),
    })
}

fn loss_estimate(data: &Value) -> Option<LossEstimate> {
    let float = |key: &str| json::float(data.get(key));
    Some(LossEstimate {
        rate: float("rate")?,
        low: float("low")?,
        high: float("high")?,
        burst: float("burst").unwrap_or(1.0),
        burst_ms: float("burst_time"),
    })
}

fn redundancy(data: &Value) -> Option<Box<Redundancy>> {
    Some(Box::new(Redundancy {
        session: json::number(data.get("session"))?,
        policy: json::text(data.get("name"))?.into(),
        reason: json::text(data.get("reason")).map(Into::into),
        repairs: json::number(data.get("repairs")),
    }))
}
