//! Parsing and formatting of configurations.

use std::fmt;
use std::str::FromStr;

use super::LinkConfig;
use crate::text::{BytesText, DurationText, parse_bytes};
use crate::{ParseError, parse_duration};

/// Named configurations, and the settings that they stand for.
///
/// The `paper` presets are the path on which Holzinger et al. (2025) evaluated FEC for HTTP/3, with
/// a queue of 1.5 bandwidth-delay products. The published numbers of the loss model can be read as
/// fractions or as percentages, hence `paper-percent`. `paper-time` has the same loss in bad
/// periods that last as long as four packets of 1500 bytes at 10 Mbit/s, whatever is sent.
/// `paper-background` adds its cross traffic.
pub const PRESETS: &[(&str, &str)] = &[
    ("perfect", ""),
    ("paper", "rate=10mbit queue=187500b delay=50ms loss=ge:0.005,0.25,0.95,0.005"),
    ("paper-percent", "rate=10mbit queue=187500b delay=50ms loss=ge:0.005%,0.25%,0.95%,0.005%"),
    ("paper-time", "rate=10mbit queue=187500b delay=50ms loss=gt:240,4.8,0.95,0.005"),
    (
        "paper-background",
        "rate=10mbit queue=187500b delay=50ms loss=ge:0.005,0.25,0.95,0.005 background=10mbit",
    ),
];

const KEYS: &str = "rate, trace, overhead, mtu, queue, mark, delay, jitter, reorder, duplicate, \
                    corrupt, loss, background, outage, step";

impl LinkConfig {
    /// Applies settings in order; later ones override earlier ones.
    pub(super) fn with<'a>(
        mut self,
        settings: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, ParseError> {
        for setting in settings {
            let (key, value) = setting.split_once('=').ok_or_else(|| {
                ParseError::new("link", setting, "expected a setting such as delay=50ms")
            })?;
            self.set(key, value)?;
        }
        Ok(self)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), ParseError> {
        match key {
            "rate" => (self.rate, self.trace) = (optional(value)?, None),
            "trace" => (self.rate, self.trace) = (None, optional(value)?),
            "overhead" => {
                let problem = "expected a number of bytes";
                let number = value.parse();
                self.overhead = number.map_err(|_| ParseError::new("overhead", value, problem))?;
            }
            "mtu" => self.mtu = parse_bytes("mtu", value)?,
            "mark" => self.mark = parse_bytes("mark", value)?,
            "queue" => self.queue = value.parse()?,
            "delay" => self.delay = parse_duration(value)?,
            "jitter" => self.jitter = value.parse()?,
            "reorder" => self.reorder = optional(value)?,
            "duplicate" => self.duplicate = value.parse()?,
            "corrupt" => self.corrupt = value.parse()?,
            "loss" => self.loss = value.parse()?,
            "background" => self.background = optional(value)?,
            "outage" => match optional(value)? {
                Some(outage) => self.outages.push(outage),
                None => self.outages.clear(),
            },
            "step" => match optional(value)? {
                Some(step) => self.steps.push(step),
                None => self.steps.clear(),
            },
            _ => {
                let problem = format!("expected one of {KEYS}");
                return Err(ParseError::new("link setting", key, problem));
            }
        }
        Ok(())
    }
}

fn optional<T: FromStr>(value: &str) -> Result<Option<T>, T::Err> {
    if value == "none" { Ok(None) } else { value.parse().map(Some) }
}

impl FromStr for LinkConfig {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut words = text.split_whitespace().peekable();
        let preset = words.next_if(|word| !word.contains('='));
        let start = match preset {
            None => Self::default(),
            Some(name) => Self::preset(name).ok_or_else(|| {
                let names: Vec<&str> = PRESETS.iter().map(|&(name, _)| name).collect();
                let problem = format!(
                    "expected a setting such as delay=50ms, or one of {}",
                    names.join(", ")
                );
                ParseError::new("link", name, problem)
            })?,
        };
        start.with(words)
    }
}

impl fmt::Display for LinkConfig {
    /// Writes the settings that differ from the default, or `perfect` if there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn given<T: fmt::Display>(value: &Option<T>) -> Option<&dyn fmt::Display> {
            value.as_ref().map(|value| value as &dyn fmt::Display)
        }
        fn changed<'a, T: fmt::Display + PartialEq>(
            value: &'a T,
            normal: &T,
        ) -> Option<&'a dyn fmt::Display> {
            (value != normal).then_some(value)
        }
        let normal = Self::default();
        let [delay, no_delay] = [self.delay, normal.delay].map(DurationText);
        let [mtu, mark] = [self.mtu, self.mark].map(|bytes| bytes.map(BytesText));
        let settings = [
            ("rate", given(&self.rate)),
            ("trace", given(&self.trace)),
            ("overhead", changed(&self.overhead, &normal.overhead)),
            ("mtu", given(&mtu)),
            ("queue", changed(&self.queue, &normal.queue)),
            ("mark", given(&mark)),
            ("delay", changed(&delay, &no_delay)),
            ("jitter", changed(&self.jitter, &normal.jitter)),
            ("reorder", given(&self.reorder)),
            ("duplicate", changed(&self.duplicate, &normal.duplicate)),
            ("corrupt", changed(&self.corrupt, &normal.corrupt)),
            ("loss", changed(&self.loss, &normal.loss)),
            ("background", given(&self.background)),
        ];
        let outages =
            self.outages.iter().map(|outage| ("outage", Some(outage as &dyn fmt::Display)));
        let steps = self.steps.iter().map(|step| ("step", Some(step as &dyn fmt::Display)));
        let mut separator = "";
        for (key, value) in settings.into_iter().chain(outages).chain(steps) {
            if let Some(value) = value {
                write!(f, "{separator}{key}={value}")?;
                separator = " ";
            }
        }
        if separator.is_empty() { f.write_str("perfect") } else { Ok(()) }
    }
}
