//! What stands before the events.

use serde_json::Value;

use super::json;
use crate::error::ErrorKind;
use crate::trace::{Format, Trace, Vantage};

/// What the times of events count from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum TimeFormat {
    /// From a point of time that is the same for all events.
    #[default]
    Fixed,
    /// From the event before.
    Delta,
}

/// What is said about a file and one of its traces.
#[derive(Debug, Clone)]
pub(super) struct Header {
    pub(super) version: String,
    pub(super) format: Format,
    title: String,
    vantage: Vantage,
    pub(super) group: Option<String>,
    pub(super) time_format: TimeFormat,
    /// Milliseconds of the unit of time.
    pub(super) unit: f64,
    /// In versions whose events are arrays: the key of each element, if it is of interest.
    columns: Vec<Option<&'static str>>,
}

impl Header {
    /// Reads what is said about the file.
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

    /// Adds what is said about the trace.
    pub(super) fn read_trace(&mut self, trace: &Value) {
        if let Some(title) = json::text(trace.get("title")).filter(|t| !t.is_empty()) {
            title.clone_into(&mut self.title);
        }
        let point = trace.get("vantage_point");
        let kind = |key: &str| json::text(point.and_then(|p| p.get(key)));
        // What a network saw, it may have seen as if it were one of the ends.
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

    /// Reads the names of the columns of draft-01 and before.
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
                    // The category, too: only the name itself is looked at.
                    _ => None,
                }
            })
            .collect();
    }

    /// An event with named fields, whatever the file has.
    pub(super) fn named(&self, event: Value) -> Value {
        let Value::Array(places) = event else { return event };
        let pairs = self.columns.iter().zip(places);
        let named = pairs.filter_map(|(key, value)| Some(((*key)?.to_owned(), value)));
        Value::Object(named.collect())
    }

    /// A trace that nothing is known of yet but this.
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
