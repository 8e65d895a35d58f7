//! Reads the header: everything before the events.

use serde_json::Value;

use super::json;
use crate::error::ErrorKind;
use crate::trace::{Format, Trace, Vantage};

/// The reference of event times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum TimeFormat {
    /// A point in time common to all events.
    #[default]
    Fixed,
    /// The previous event.
    Delta,
}

/// Header fields of a file and of one of its traces.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) version: String,
    pub(super) format: Format,
    title: String,
    vantage: Vantage,
    pub(super) group: Option<String>,
    pub(super) time_format: TimeFormat,
    /// The unit of time, in milliseconds.
    pub(super) unit: f64,
    /// In versions whose events are arrays: the key of each column that is used.
    columns: Vec<Option<&'static str>>,
}

impl Header {
    /// Reads the header of the file.
    pub(super) fn of_file(file: &Value) -> Result<Self, ErrorKind> {
        let version = json::text(file.get("qlog_version"));
        let version = version.or_else(|| json::text(file.get("file_schema")));
        let version = version.ok_or(ErrorKind::NotQlog)?;
        Ok(Self {
            version: version.to_owned(),
            format: Format::Json,
            title: json::text(file.get("title")).unwrap_or_default().to_owned(),
            vantage: Vantage::Unknown,
            group: None,
            time_format: TimeFormat::Fixed,
            unit: 1.0,
            columns: Vec::new(),
        })
    }

    /// Adds the header of the trace.
    pub(super) fn read_trace(&mut self, trace: &Value) {
        if let Some(title) = json::text(trace.get("title")).filter(|t| !t.is_empty()) {
            title.clone_into(&mut self.title);
        }
        let point = trace.get("vantage_point");
        let kind = |key: &str| json::text(point.and_then(|p| p.get(key)));
        // A trace recorded in the network may have been recorded from the viewpoint of one end.
        let kind = kind("flow").or(kind("type"));
        self.vantage = match kind {
            Some("client") => Vantage::Client,
            Some("server") => Vantage::Server,
            _ => Vantage::Unknown,
        };
        let fields = trace.get("common_fields");
        let field = |key: &str| fields.and_then(|f| f.get(key));
        let group = json::text(field("group_id")).or(json::text(field("ODCID")));
        self.group = group.map(str::to_owned);
        self.time_format = match json::text(field("time_format")) {
            Some("delta" | "relative_to_previous_event") => TimeFormat::Delta,
            _ => TimeFormat::Fixed,
        };
        let configuration = trace.get("configuration");
        let units = configuration.and_then(|c| c.get("time_units")).or(field("time_units"));
        if json::text(units) == Some("us") {
            self.unit = 1e-3;
        }
    }

    /// Reads the column names of draft-01 and earlier.
    pub(super) fn read_columns(&mut self, names: &Value) {
        let names = names.as_array().map_or(&[][..], Vec::as_slice);
        self.columns = names
            .iter()
            .map(|name| {
                let name = json::text(Some(name)).unwrap_or_default().to_ascii_lowercase();
                match name.as_str() {
                    "time" | "relative_time" => Some("time"),
                    "delta_time" => {
                        self.time_format = TimeFormat::Delta;
                        Some("time")
                    }
                    "event" | "event_type" => Some("name"),
                    "data" => Some("data"),
                    // The category is ignored too: only the name itself counts.
                    _ => None,
                }
            })
            .collect();
    }

    /// The event with named fields, whatever the file's version.
    pub(super) fn named(&self, event: Value) -> Value {
        let Value::Array(places) = event else { return event };
        let pairs = self.columns.iter().zip(places);
        let named = pairs.filter_map(|(key, value)| Some(((*key)?.to_owned(), value)));
        Value::Object(named.collect())
    }

    /// A trace without events that has this header.
    pub(super) fn to_trace(&self) -> Trace {
        Trace {
            version: self.version.clone(),
            format: self.format,
            title: self.title.clone(),
            vantage: self.vantage,
            group: self.group.clone(),
            ..Trace::default()
        }
    }
}
