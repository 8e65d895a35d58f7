//! The applications of the demo, each on one connection.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sutura_link::{LinkConfig, Loss};
use sutura_proto::{Protection, Scheme, TransportConfig};
use sutura_sim::{DatagramPlan, Ends, MessagePlan, Scenario, StreamPlan, Transfer};

use super::links::{GAME_LINKS, LINKS, Link};
use crate::comparison::{Policy, redundancy};
use crate::{Error, message_trace};

/// Bytes of a file.
pub(super) const FILE: u64 = 1_000_000;
/// Files that a connection fetches, one after another.
const FILES: usize = 8;
/// The time between them.
const PAUSE: Duration = Duration::from_millis(500);
/// Bytes that the downloading client buffers.
pub(super) const BUFFER: u64 = 100_000;
/// The time from one packet of the game to the next.
const TICK: Duration = Duration::from_nanos(1_000_000_000 / 60);
/// Bytes of a packet of the game.
const PACKET: usize = 200;

/// An application over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum App {
    /// A game over UDP: 60 small datagrams a second, each answered.
    Game,
    /// A game or desktop: 5 kB at 60 Hz on one stream.
    Stream,
    /// A video conference: a message for each frame, with a deadline.
    Messages,
    /// Files for a client with a small receive buffer.
    Download,
}

impl App {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Game, Self::Stream, Self::Messages, Self::Download];

    /// A heading.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Game => "UDP game through datagrams",
            Self::Stream => "Game or desktop stream",
            Self::Messages => "Message feed with deadlines",
            Self::Download => "Download with a small receive buffer",
        }
    }

    /// The quantity that is measured.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Game => {
                "60 datagrams of 200 bytes a second, each answered with one like it. Neither is sent \
                 again if it is lost. An input is late if its answer takes longer than the link there \
                 and back and three packets of the game, or never comes."
            }
            Self::Stream => {
                "5 kB frames at 60 Hz on one stream. A byte is late if it takes longer than the link \
                 and the time of a frame."
            }
            Self::Messages => {
                "The frames of a video conference, each a message. A message is late after its \
                 deadline."
            }
            Self::Download => {
                "Files of 1 MB, eight on a connection, to a client with a buffer of 100 kB. The times \
                 are from request to end."
            }
        }
    }

    /// The fixed redundancy that a person would choose.
    #[must_use]
    pub const fn fixed(self) -> &'static str {
        match self {
            Self::Stream => "incremental:burst=1",
            Self::Game | Self::Messages => "tail:burst=1",
            Self::Download => "tail:burst=3",
        }
    }

    /// How long data may take on `link` without being late; `None` if there is no such limit.
    ///
    /// # Errors
    /// As for [`Link::config`].
    pub fn tolerance(self, link: &Link) -> Result<Option<Duration>, Error> {
        Ok(match self {
            Self::Game => Some(2 * link.config()?.delay + 3 * TICK),
            Self::Stream => Some(link.config()?.delay + slack()),
            Self::Messages => Some(link.deadline()),
            Self::Download => None,
        })
    }

    /// The links on which it is measured.
    #[must_use]
    pub const fn links(self) -> &'static [Link] {
        match self {
            Self::Game => &GAME_LINKS,
            Self::Stream | Self::Messages | Self::Download => &LINKS,
        }
    }

    /// The quantiles of the times to show, with their names.
    #[must_use]
    pub const fn quantiles(self) -> &'static [(&'static str, f64)] {
        match self {
            Self::Game | Self::Stream | Self::Messages => {
                &[("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)]
            }
            Self::Download => &[("p10", 0.1), ("p50", 0.5), ("p90", 0.9)],
        }
    }
}

/// How long the stream and the feed run before they count, in seconds: the congestion window opens.
pub const WARM_UP: u32 = 3;

/// By how much a byte of the stream may exceed the delay of the link: by the time of a frame.
pub fn slack() -> Duration {
    StreamPlan::frames(0).interval
}

/// The frames of the stream in `seconds` seconds.
pub fn frames(seconds: u32) -> u64 {
    u64::from(seconds) * 60
}

/// A configuration.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The application.
    pub app: App,
    /// The link in both directions.
    pub path: LinkConfig,
    /// How long a message of the feed may take.
    pub deadline: Duration,
    /// The redundancy, as text; `None` for none.
    pub policy: Option<String>,
}

/// The outcome of one connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// How long each byte, message, answer or file took, with its weight; [`Duration::MAX`] if it
    /// never came.
    pub times: Vec<(Duration, u64)>,
    /// When the first frame was made, since the link came up.
    pub began: Duration,
    /// Bytes of UDP payload that the server sent; of the game, that both ends sent.
    pub bytes: u64,
    /// Repair symbols among them.
    pub repairs: u64,
    /// Repair symbols with which data was recovered.
    pub useful: u64,
    /// Why repair symbols were sent at the end, or none.
    pub reason: Option<String>,
}

impl Run {
    fn new(times: Vec<(Duration, u64)>, ends: &Ends) -> Self {
        let fec = &ends.server.fec;
        Self {
            times,
            began: Duration::ZERO,
            bytes: ends.down.sent_bytes,
            repairs: fec.repair_symbols_sent,
            useful: fec.repair_symbols_useful,
            reason: ends.reason.map(|reason| reason.to_string()),
        }
    }
}

impl Setup {
    /// A configuration over `link`.
    ///
    /// # Errors
    /// As for [`Link::config`].
    pub fn new(app: App, link: &Link, policy: Option<String>) -> Result<Self, Error> {
        Ok(Self { app, path: link.config()?, deadline: link.deadline(), policy })
    }

    /// The same without redundancy and without loss.
    #[must_use]
    pub fn lossless(&self) -> Self {
        let path = LinkConfig { loss: Loss::None, ..self.path.clone() };
        Self { path, policy: None, ..self.clone() }
    }

    /// A connection over the link. With the same `seed` it always meets the same losses, as far as
    /// these depend on time.
    #[must_use]
    pub fn scenario(&self, seed: u64) -> Scenario {
        Scenario::new(seed).link(&self.path, &self.path)
    }

    /// Runs the application on one connection: the stream and the feed for `seconds` seconds that count,
    /// after the warm-up.
    ///
    /// # Errors
    /// The simulation fails, or there is no such policy.
    pub fn run(&self, seconds: u32, seed: u64) -> Result<Run, Error> {
        let redundancy = redundancy(self.policy.as_deref())?;
        match self.app {
            App::Game => self.game(redundancy, seconds, seed),
            App::Stream => self.stream(redundancy, seconds, seed),
            App::Messages => self.messages(redundancy, seconds, seed),
            App::Download => self.download(redundancy, seed),
        }
    }

    /// Both ends protect their datagrams alike.
    fn game(&self, redundancy: Policy, seconds: u32, seed: u64) -> Result<Run, Error> {
        let (skip, count) = (frames(WARM_UP), frames(WARM_UP + seconds));
        let plan = DatagramPlan { size: PACKET, interval: TICK, count };
        let protection = redundancy.map(Protection::new);
        let outcome = self.scenario(seed).echoes(plan, protection)?;
        let came: Vec<_> = outcome.delays.iter().filter(|(number, _)| *number >= skip).collect();
        let lost = (count - skip).saturating_sub(came.len() as u64);
        let times = came.iter().map(|(_, delay)| (*delay, 1));
        let times = times.chain((lost > 0).then_some((Duration::MAX, lost))).collect();
        let Ends { client, server, up, down, .. } = &outcome.ends;
        Ok(Run {
            bytes: up.sent_bytes + down.sent_bytes,
            repairs: client.fec.repair_symbols_sent + server.fec.repair_symbols_sent,
            useful: client.fec.repair_symbols_useful + server.fec.repair_symbols_useful,
            ..Run::new(times, &outcome.ends)
        })
    }

    fn stream(&self, redundancy: Policy, seconds: u32, seed: u64) -> Result<Run, Error> {
        let protection = redundancy.clone().map(Protection::new);
        let plan = StreamPlan { protection, ..StreamPlan::frames(frames(WARM_UP + seconds)) };
        let outcome = self.scenario(seed).transport(&transport(redundancy)).stream(plan)?;
        let mut skip = frames(WARM_UP) * StreamPlan::frames(0).size as u64;
        let times = outcome.delays.iter().map(|delay| {
            let skipped = skip.min(delay.bytes);
            skip -= skipped;
            (delay.delay, delay.bytes - skipped)
        });
        let times = times.filter(|(_, bytes)| *bytes > 0).collect();
        Ok(Run { began: outcome.began, ..Run::new(times, &outcome.ends) })
    }

    /// The transport is told the deadlines and when the next message comes, whatever the redundancy.
    fn messages(&self, redundancy: Policy, seconds: u32, seed: u64) -> Result<Run, Error> {
        let end = Duration::from_secs((WARM_UP + seconds).into());
        let trace = message_trace::tixeo()?;
        let messages = || trace.iter().copied().take_while(|message| message.at < end);
        let begin = Duration::from_secs(WARM_UP.into());
        let skip = messages().take_while(|message| message.at < begin).count();
        let plan = MessagePlan {
            deadline: Some(self.deadline),
            announce: true,
            ..MessagePlan::new(messages())
        };
        let scheduler = Arc::new(Scheme::DEADLINE);
        let transport = transport(redundancy).with_scheduler(scheduler);
        let outcome = self.scenario(seed).transport(&transport).messages(plan)?;
        let took = |delay: &Option<Duration>| (delay.unwrap_or(Duration::MAX), 1);
        let times = outcome.delays.iter().skip(skip).map(took).collect();
        Ok(Run::new(times, &outcome.ends))
    }

    fn download(&self, redundancy: Policy, seed: u64) -> Result<Run, Error> {
        let client = transport(None)
            .with_stream_receive_window(BUFFER)
            .with_max_stream_receive_window(BUFFER)
            .with_receive_window(BUFFER)
            .with_max_receive_window(BUFFER);
        let protection = redundancy.clone().map(Protection::new);
        let scenario = self.scenario(seed).client(&client).server(&transport(redundancy));
        let files = std::iter::repeat_n(Transfer::download(FILE), FILES);
        let outcome = scenario.protect(protection).transfers(files).gap(PAUSE).run()?;
        let times = outcome.transfers.iter().map(|transfer| (transfer.time, 1)).collect();
        Ok(Run::new(times, &outcome.ends))
    }
}

/// The defaults, with this redundancy.
fn transport(redundancy: Policy) -> TransportConfig {
    TransportConfig::default().with_redundancy(redundancy)
}
