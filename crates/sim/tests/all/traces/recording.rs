//! Records a run as text, and summarizes it.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sutura_link::{DropCause, Fate};
use sutura_sim::{NodeId, TraceEvent, Tracer};

/// The client is the first node of a scenario.
const CLIENT: NodeId = NodeId(0);

/// The comment at the beginning of the recorded file.
const HEADER: &str = "# name seed datagrams-up datagrams-down bytes-up bytes-down done-at digest \
                      digest-without-payloads\n";

/// FNV-1a with 64 bits.
#[derive(Clone, Copy, Debug)]
struct Digest(u64);

impl Digest {
    const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn of(bytes: &[u8]) -> Self {
        let mut digest = Self::EMPTY;
        digest.add(bytes);
        digest
    }
}

/// The totals of one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sent {
    datagrams: u64,
    bytes: u64,
}

/// The summary of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub name: String,
    seed: u64,
    up: Sent,
    down: Sent,
    /// When the work was done, in seconds.
    done_at: String,
    digest: u64,
    without_payloads: u64,
}

impl Summary {
    /// Whether the datagrams of both runs differ only in their payloads.
    pub fn same_but_for_payloads(&self, other: &Self) -> bool {
        *self == Self { digest: self.digest, ..other.clone() }
    }

    fn parse(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, seed, datagrams_up, datagrams_down, bytes_up, bytes_down, done_at, digests @ ..] =
            &words[..]
        else {
            return None;
        };
        let [digest, without_payloads] = digests else { return None };
        let sent = |datagrams: &str, bytes: &str| {
            Some(Sent { datagrams: datagrams.parse().ok()?, bytes: bytes.parse().ok()? })
        };
        Some(Self {
            name: (*name).to_owned(),
            seed: seed.parse().ok()?,
            up: sent(datagrams_up, bytes_up)?,
            down: sent(datagrams_down, bytes_down)?,
            done_at: (*done_at).to_owned(),
            digest: u64::from_str_radix(digest, 16).ok()?,
            without_payloads: u64::from_str_radix(without_payloads, 16).ok()?,
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, seed, up, down, done_at, digest, without_payloads } = self;
        write!(
            f,
            "{name} {seed} {} {} {} {} {done_at} {digest:016x} {without_payloads:016x}",
            up.datagrams, down.datagrams, up.bytes, down.bytes
        )
    }
}

/// The contents of a recorded file.
pub fn to_text(summaries: &[Summary]) -> String {
    let lines = summaries.iter().map(|summary| format!("{summary}\n"));
    std::iter::once(HEADER.to_owned()).chain(lines).collect()
}

/// Parses a recorded file.
///
/// # Panics
///
/// Panics if the file is malformed.
pub fn from_text(text: &str) -> Vec<Summary> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| Summary::parse(line).unwrap_or_else(|| panic!("recorded: {line}"))).collect()
}

/// A time in seconds, to the nanosecond.
fn seconds(time: Duration) -> String {
    format!("{}.{:09}", time.as_secs(), time.subsec_nanos())
}

fn describe(fate: Fate) -> String {
    match fate {
        Fate::Dropped(DropCause::Loss) => "lost".to_owned(),
        Fate::Dropped(DropCause::Outage) => "lost in an outage".to_owned(),
        Fate::Dropped(DropCause::TooLong) => "too long".to_owned(),
        Fate::Dropped(DropCause::Overflow) => "overflow".to_owned(),
        Fate::Delivered(deliveries) => {
            let arrival = |delivery: sutura_link::Delivery| {
                let damaged = if delivery.corrupt.is_some() { " damaged" } else { "" };
                format!("arrives {}{damaged}", seconds(delivery.at))
            };
            let arrivals: Vec<String> = deliveries.into_iter().map(arrival).collect();
            arrivals.join(", ")
        }
    }
}

struct Recording {
    up: Sent,
    down: Sent,
    digest: Digest,
    without_payloads: Digest,
    /// All lines, if this is a dump.
    text: Option<String>,
}

/// Records the datagrams that are handed to the links: time, direction, size, digest of the
/// payload, and fate. The digests are computed over the lines of a dump.
#[derive(Clone)]
pub struct Recorder(Arc<Mutex<Recording>>);

impl Recorder {
    /// Creates a recorder. It keeps all lines if `dump` is set.
    pub fn new(dump: bool) -> Self {
        Self(Arc::new(Mutex::new(Recording {
            up: Sent::default(),
            down: Sent::default(),
            digest: Digest::EMPTY,
            without_payloads: Digest::EMPTY,
            text: dump.then(String::new),
        })))
    }

    /// The summary of the run, and its lines if this is a dump.
    pub fn finish(&self, name: &str, seed: u64, done_at: Duration) -> (Summary, String) {
        let mut recording = self.0.lock().unwrap();
        let summary = Summary {
            name: name.to_owned(),
            seed,
            up: recording.up,
            down: recording.down,
            done_at: seconds(done_at),
            digest: recording.digest.0,
            without_payloads: recording.without_payloads.0,
        };
        (summary, recording.text.take().unwrap_or_default())
    }
}

impl Tracer for Recorder {
    fn record(&mut self, at: Duration, event: &TraceEvent<'_>) {
        let TraceEvent::Sent { from, payload, fate, .. } = *event else { return };
        let mut recording = self.0.lock().unwrap();
        let up = from == CLIENT;
        let sent = if up { &mut recording.up } else { &mut recording.down };
        sent.datagrams += 1;
        sent.bytes += payload.len() as u64;
        let way = if up { "up" } else { "down" };
        let sent = format!("{:>13} {way:<4} {:>4}", seconds(at), payload.len());
        let digest = format!(" {:016x}", Digest::of(payload).0);
        let fate = format!(" {}\n", describe(fate));
        recording.digest.add(format!("{sent}{digest}{fate}").as_bytes());
        recording.without_payloads.add(format!("{sent}{fate}").as_bytes());
        if let Some(text) = &mut recording.text {
            text.extend([sent, digest, fate]);
        }
    }
}
