//! The output and qlog files of our own end.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::Error;

/// The connections as our end saw them.
#[derive(Debug, Default)]
pub struct Evidence {
    /// The JSON object that our end printed for each connection.
    pub connections: Vec<Value>,
    /// The events of our end's qlog files.
    events: Vec<Value>,
}

impl Evidence {
    /// Reads what our end has printed and recorded.
    pub fn read(output: &str, qlog: &Path) -> Result<Self, Error> {
        let connections =
            output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let mut events = Vec::new();
        for entry in fs::read_dir(qlog)? {
            let text = fs::read_to_string(entry?.path())?;
            let records = text.split(['\u{1e}', '\n']).filter(|record| !record.trim().is_empty());
            events.extend(records.filter_map(|record| serde_json::from_str(record).ok()));
        }
        Ok(Self { connections, events })
    }

    fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["name"] == name).map(|event| &event["data"])
    }

    /// How many frames of a type are in the packets of the events with this name, such as
    /// `transport:packet_received`.
    pub fn frames(&self, event: &str, frame: &str) -> usize {
        let frames = self.named(event).filter_map(|data| data["frames"].as_array()).flatten();
        frames.filter(|found| found["frame_type"] == frame).count()
    }

    /// How many bytes of streams are in packets of this type, in the events with this name.
    pub fn stream_bytes(&self, event: &str, packet_type: &str) -> usize {
        let packets = self.named(event).filter(|data| data["header"]["packet_type"] == packet_type);
        let frames = packets.filter_map(|data| data["frames"].as_array()).flatten();
        let streams = frames.filter(|frame| frame["frame_type"] == "stream");
        let bytes: u64 = streams.filter_map(|frame| frame["length"].as_u64()).sum();
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// A transport parameter that was set by one end.
    pub fn parameter(&self, owner: &str, name: &str) -> Option<u64> {
        let mut set = self.named("transport:parameters_set").filter(|data| data["owner"] == owner);
        set.find_map(|data| data[name].as_u64())
    }

    /// Whether our end has gone over to this port of its peer.
    pub fn goes_to(&self, port: u16) -> bool {
        self.named("connectivity:path_assigned").any(|data| {
            let remote = &data["path_remote"];
            remote["port_v4"] == port || remote["port_v6"] == port
        })
    }

    /// Whether the value of `key` satisfies `holds` for any connection.
    pub fn any(&self, key: &str, holds: impl Fn(&Value) -> bool) -> bool {
        self.connections.iter().any(|connection| holds(&connection[key]))
    }
}
