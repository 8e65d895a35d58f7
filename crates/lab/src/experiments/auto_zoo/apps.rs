//! The generator of applications.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sutura_link::{DurationText, ParseError, parse_duration, parse_size};
use sutura_proto::Algorithm;
use sutura_random::Rng;
use sutura_sim::TimedMessage;

use crate::experiments::draw::{log_uniform, millis, pick, rounded, uniform};
use crate::own::OwnPath;

use super::paths::Extent;

/// Packets of a flow, more or less.
const PACKETS: f64 = 2500.0;
/// Bytes of the application in a packet.
const IN_A_PACKET: f64 = 1150.0;
/// The shortest and the longest feed in seconds.
const SHORTEST: f64 = 5.0;
const LONGEST: f64 = 60.0;
/// The most files of a flow, and the fewest.
const FILES: [f64; 2] = [2.0, 8.0];

/// How the data of a feed travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carriage {
    /// Each message on a stream of its own.
    Streams,
    /// Each message in a datagram, which is not sent again.
    Datagrams,
}

impl Carriage {
    fn name(self) -> &'static str {
        match self {
            Self::Streams => "messages",
            Self::Datagrams => "datagrams",
        }
    }
}

/// Messages at a steady pace, or in bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feed {
    pub carriage: Carriage,
    /// Bytes of a message.
    pub size: usize,
    /// The mean time from one message to the next.
    pub every: Duration,
    /// How many are made at once.
    pub burst: u32,
    pub count: u32,
    /// How long each may take, as the transport is told.
    pub within: Option<Duration>,
}

/// What the measured flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZooApp {
    Feed(Feed),
    /// Files, each on a connection of its own, from the same host to the same host.
    Files {
        bytes: u64,
        count: u32,
        /// The time from one to the next.
        pause: Duration,
    },
}

impl Feed {
    pub fn messages(&self) -> impl Iterator<Item = TimedMessage> + use<> {
        let Self { size, every, burst, count, .. } = *self;
        (0..count).map(move |n| TimedMessage { at: every * (n / burst * burst), size })
    }

    /// From the first message to the last.
    pub fn length(&self) -> Duration {
        self.every * self.count
    }
}

impl ZooApp {
    /// A name of its kind for tables.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Feed(Feed { within: Some(_), carriage: Carriage::Streams, .. }) => {
                "messages in time"
            }
            Self::Feed(feed) => feed.carriage.name(),
            Self::Files { .. } => "files",
        }
    }

    /// How long it keeps a path busy that carries this many bits per second, roughly.
    pub fn length(&self, rate: f64, rtt: Duration) -> Duration {
        match self {
            Self::Feed(feed) => feed.length(),
            Self::Files { bytes, count, pause } => {
                let pass = Duration::from_secs_f64(8.0 * *bytes as f64 / rate);
                *count * (pass + *pause + 4 * rtt)
            }
        }
    }

    /// An application for a path that carries `rate` bits per second, with this round-trip time.
    pub fn draw(rng: &mut Rng, rate: f64, rtt: Duration) -> Self {
        match pick(rng, &[(0, 50), (1, 20), (2, 30)]) {
            Some(0) => Self::Feed(feed(rng, rate, rtt, Carriage::Streams)),
            Some(1) => Self::Feed(feed(rng, rate, rtt, Carriage::Datagrams)),
            _ => {
                // A path is not kept busy for longer than a feed.
                let most = (rate / 8.0 * LONGEST / FILES[0]).clamp(20_000.0, 10e6);
                let bytes = rounded(log_uniform(rng, 10_000.0, most));
                let count = (PACKETS * IN_A_PACKET / bytes).clamp(FILES[0], FILES[1]);
                let pause = millis(log_uniform(rng, 100.0, 3000.0));
                Self::Files { bytes: bytes as u64, count: count as u32, pause }
            }
        }
    }

    /// Small and large files, frames of a video call and moves of a game, which take no more than a third of a path.
    pub fn usual(path: &OwnPath) -> Vec<Self> {
        let Extent { rate, rtt } = Extent::of(&path.up, &path.down);
        let files =
            |bytes, count| Self::Files { bytes, count, pause: Duration::from_secs(1) + rtt };
        let feed = |carriage, most: f64, every_ms, seconds: u32, slack_ms| {
            let every = Duration::from_millis(every_ms);
            let size = most.min(rate / 8.0 / 3.0 * every.as_secs_f64()) as usize;
            let within = Some(path.down.delay + Duration::from_millis(slack_ms));
            let count = (f64::from(seconds) / every.as_secs_f64()) as u32;
            Self::Feed(Feed { carriage, size, every, burst: 1, count, within })
        };
        vec![
            files(50_000, 5),
            files(1_000_000, 2),
            feed(Carriage::Streams, 6000.0, 33, 30, 100),
            feed(Carriage::Datagrams, 200.0, 10, 20, 50),
        ]
    }

    /// The bytes that the application hands over.
    pub fn payload(&self) -> u64 {
        match self {
            Self::Feed(feed) => feed.size as u64 * u64::from(feed.count),
            Self::Files { bytes, count, .. } => bytes * u64::from(*count),
        }
    }
}

fn feed(rng: &mut Rng, rate: f64, rtt: Duration, carriage: Carriage) -> Feed {
    let largest = match carriage {
        Carriage::Streams => 50_000.0,
        Carriage::Datagrams => 1100.0,
    };
    let size = log_uniform(rng, 100.0, largest);
    let every = millis(1000.0 / log_uniform(rng, 10.0, 120.0));
    // The path carries most feeds, many of them just so, and some not quite.
    let most = if rng.chance(0.95) { uniform(rng, 0.1, 1.0) } else { uniform(rng, 1.0, 1.1) };
    let size = size.min(most * rate / 8.0 * every.as_secs_f64()).max(100.0);
    let bursts = rng.chance(0.3);
    let burst = if bursts { log_uniform(rng, 2.0, 20.0) as u32 } else { 1 };
    let hurry = carriage == Carriage::Datagrams || rng.chance(0.4);
    let within = rtt.as_secs_f64() * 1000.0 * (0.5 + log_uniform(rng, 0.1, 4.0));
    let within = millis(within.max(10.0));
    let packets = (size / IN_A_PACKET).ceil();
    let [least, most] = [SHORTEST, LONGEST].map(|seconds| seconds / every.as_secs_f64());
    Feed {
        carriage,
        size: rounded(size) as usize,
        every,
        burst,
        count: (PACKETS / packets).clamp(least, most) as u32,
        within: hurry.then_some(within),
    }
}

impl fmt::Display for ZooApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Feed(feed) => {
                let (kind, every) = (feed.carriage.name(), DurationText(feed.every));
                write!(f, "{kind}={}b every={every} count={}", feed.size, feed.count)?;
                if feed.burst > 1 {
                    write!(f, " burst={}", feed.burst)?;
                }
                match feed.within {
                    Some(within) => write!(f, " within={}", DurationText(within)),
                    None => Ok(()),
                }
            }
            Self::Files { bytes, count, pause } => {
                write!(f, "files={bytes}b count={count} pause={}", DurationText(*pause))
            }
        }
    }
}

/// How an application is written.
const FORMS: &str = "expected files=SIZE count=N pause=TIME, or messages=SIZE every=TIME count=N [burst=N] \
                     [within=TIME], or datagrams=SIZE in place of messages";
/// The most messages or files, and the most bytes of each.
const MOST: u64 = 1_000_000;
const LARGEST: u64 = 1 << 30;

impl FromStr for ZooApp {
    type Err = ParseError;

    /// The inverse of [`Display`](fmt::Display).
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |problem: &str| ParseError::new("application", text, problem);
        let inside = |error: ParseError| error.inside("application", text);
        let words: Option<Vec<(&str, &str)>> =
            text.split_whitespace().map(|word| word.split_once('=')).collect();
        let words = words.ok_or_else(|| wrong(FORMS))?;
        let Some((&(kind, size), settings)) = words.split_first() else { return Err(wrong(FORMS)) };
        let known: &[&str] = match kind {
            "files" => &["count", "pause"],
            "messages" | "datagrams" => &["every", "count", "burst", "within"],
            _ => return Err(wrong(FORMS)),
        };
        if settings.iter().any(|(key, _)| !known.contains(key)) {
            return Err(wrong(FORMS));
        }
        let given =
            |key| settings.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| *value);
        let needed = |key| given(key).ok_or_else(|| wrong(FORMS));
        let time = |text: &str| match parse_duration(text).map_err(inside)? {
            Duration::ZERO => Err(wrong("a time must be above 0")),
            time => Ok(time),
        };
        let number = |value: &str| match value.parse() {
            Ok(number) if (1..=MOST).contains(&u64::from(number)) => Ok(number),
            _ => Err(wrong(&format!("`{value}` is not a number from 1 to {MOST}"))),
        };
        let bytes = parse_size(size).map_err(inside)?;
        let largest = if kind == "datagrams" { IN_A_PACKET as u64 } else { LARGEST };
        if !(1..=largest).contains(&bytes) {
            return Err(wrong(&format!("a size must be from 1 to {largest} bytes")));
        }
        let count: u32 = number(needed("count")?)?;
        if kind == "files" {
            return Ok(Self::Files { bytes, count, pause: time(needed("pause")?)? });
        }
        let carriage = if kind == "datagrams" { Carriage::Datagrams } else { Carriage::Streams };
        Ok(Self::Feed(Feed {
            carriage,
            size: bytes as usize,
            every: time(needed("every")?)?,
            burst: given("burst").map_or(Ok(1), number)?,
            count,
            within: given("within").map(time).transpose()?,
        }))
    }
}

named! {
    /// The flow beside the measured one.
    pub enum Beside {
        /// Downloads of ours, one after the other, with CUBIC.
        Ours = "cubic",
        /// Downloads of quinn, likewise.
        Quinn = "quinn-cubic",
        /// Messages, each on a stream of its own.
        Messages = "messages",
    }
}

impl Beside {
    pub fn draw(rng: &mut Rng) -> Self {
        Self::ALL[rng.index(Self::ALL.len())]
    }
}

/// The controller of the measured flow.
pub fn draw_controller(rng: &mut Rng) -> Algorithm {
    if rng.chance(0.75) { Algorithm::BBR } else { Algorithm::CUBIC }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_are_as_long_as_they_are_to_be_and_most_fit_their_path() {
        let rtt = Duration::from_millis(50);
        let feeds: Vec<Feed> =
            (0..300).map(|seed| feed(&mut Rng::new(seed), 5e6, rtt, Carriage::Streams)).collect();
        for feed in &feeds {
            let seconds = feed.length().as_secs_f64();
            assert!((SHORTEST - 0.2..=LONGEST).contains(&seconds), "{feed:?}");
            assert!((100..=50_000).contains(&feed.size), "{feed:?}");
            assert_eq!(feed.messages().count(), feed.count as usize);
        }
        let load = |feed: &Feed| 8.0 * feed.size as f64 / feed.every.as_secs_f64();
        let heavy = feeds.iter().filter(|feed| load(feed) > 0.78 * 5e6).count();
        assert!((5..40).contains(&heavy), "{heavy}");
        assert!(feeds.iter().any(|feed| feed.within.is_some() && feed.burst > 1));
    }

    #[test]
    fn an_application_is_read_as_it_is_written() {
        for seed in 0..200 {
            let app = ZooApp::draw(&mut Rng::new(seed), 5e6, Duration::from_millis(40));
            assert_eq!(app.to_string().parse(), Ok(app), "{app}");
        }
        for (wrong, why) in [
            ("", "expected files="),
            ("files", "expected files="),
            ("files=1kb count=3", "expected files="),
            ("files=1kb count=3 pause=1s every=1s", "expected files="),
            ("files=0b count=3 pause=1s", "from 1 to"),
            ("files=1kb count=0 pause=1s", "`0` is not a number"),
            ("files=1kb count=3 pause=0ms", "above 0"),
            ("datagrams=1200b every=1ms count=3", "from 1 to 1150"),
            ("messages=1kb every=1 count=3", "expected a number and a unit"),
        ] {
            let error = wrong.parse::<ZooApp>().unwrap_err().to_string();
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_burst_is_made_at_once() {
        let every = Duration::from_millis(10);
        let carriage = Carriage::Streams;
        let feed = Feed { carriage, size: 100, every, burst: 3, count: 7, within: None };
        let times: Vec<u128> = feed.messages().map(|m| m.at.as_millis()).collect();
        assert_eq!(times, [0, 0, 0, 30, 30, 30, 60]);
    }
}
