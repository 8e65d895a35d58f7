//! A case of the zoo: a path, an application, and perhaps a flow beside it.

use std::fmt;
use std::time::Duration;

use sutura_link::{LinkConfig, Queue};
use sutura_proto::Algorithm;
use sutura_random::Rng;

use super::apps::{Beside, Feed, ZooApp, draw_controller};
use super::paths::{Extent, Kinds, Traced, links};
use crate::link_trace::LinkTrace;
use crate::own::OwnPath;
use crate::{Error, comparison::seed};

/// What a byte may take longer than the path without being late, where the application has no deadline.
const PATIENCE: Duration = Duration::from_millis(10);
/// The fastest path and the longest round trip, in milliseconds; beside another flow, whose packets take time
/// to simulate, they are smaller.
const ALONE: (f64, f64) = (200e6, 800.0);
const TOGETHER: (f64, f64) = (10e6, 300.0);

/// A case. One of the zoo is determined by its number and the seed of the zoo.
#[derive(Clone, Debug, PartialEq)]
pub struct ZooCase {
    pub number: u64,
    /// The kinds that it was drawn from; `None` of a path that somebody described.
    pub kinds: Option<Kinds>,
    pub size: Extent,
    /// When the link from the server can send, if a trace says so.
    pub traced: Option<Traced>,
    /// From the client to the server.
    pub up: LinkConfig,
    /// From the server, which sends, to the client.
    pub down: LinkConfig,
    pub app: ZooApp,
    pub congestion: Algorithm,
    pub beside: Option<Beside>,
}

impl ZooCase {
    /// Case `number` of the zoo of a seed, over one of the traces if there are some.
    ///
    /// # Errors
    /// The random choices do not make valid links, which is a bug.
    pub fn draw(zoo: u64, number: u64, traces: &[LinkTrace]) -> Result<Self, Error> {
        let mut rng = Rng::new(seed(zoo, number));
        let kinds = Kinds::draw(&mut rng);
        let beside = rng.chance(0.25).then(|| Beside::draw(&mut rng));
        let (fastest, longest) = if beside.is_some() { TOGETHER } else { ALONE };
        let mut size = Extent::draw(&mut rng, fastest, longest);
        let trace = traces.get(number as usize % traces.len().max(1));
        let traced = trace.map(|trace| Traced::draw(&mut rng, trace));
        if let Some(traced) = &traced {
            size.rate = traced.opportunities.mean_rate();
        }
        // A neighbour leaves half of the path.
        let rate = if beside.is_some() { size.rate / 2.0 } else { size.rate };
        let mut app = ZooApp::draw(&mut rng, rate, size.rtt);
        if let (Some(_), ZooApp::Feed(feed)) = (beside, &mut app) {
            // As many packets of the neighbour as of other flows.
            let seconds = (60e6 / size.rate).max(5.0) / feed.every.as_secs_f64();
            feed.count = feed.count.min(seconds as u32);
        }
        let congestion = draw_controller(&mut rng);
        let [up, mut down] = links(&mut rng, size, kinds, app.length(size.rate, size.rtt))?;
        if let Some(traced) = &traced {
            (down.rate, down.trace) = (None, Some(traced.opportunities.clone()));
        }
        Ok(Self { number, kinds: Some(kinds), size, traced, up, down, app, congestion, beside })
    }

    /// An application over a path that somebody described.
    pub fn of(
        number: u64,
        OwnPath { up, down, .. }: OwnPath,
        app: ZooApp,
        congestion: Algorithm,
    ) -> Self {
        let size = Extent::of(&up, &down);
        let (kinds, traced, beside) = (None, None, None);
        Self { number, kinds, size, traced, up, down, app, congestion, beside }
    }

    /// Whether a code can be told from the packets what it could have done: losses are not made by what is
    /// sent, or by nobody else.
    pub fn is_plain(&self) -> bool {
        self.beside.is_none() && matches!(self.down.queue, Queue::Bytes(_) | Queue::Packets(_))
    }

    /// How long a message of the feed may take: its deadline, or as long as the path takes at its slowest for a
    /// burst of them, and a little longer.
    pub fn limit(&self, feed: &Feed) -> Duration {
        if let Some(within) = feed.within {
            return within;
        }
        let delays = self.down.steps.iter().filter_map(|step| step.delay);
        let delay = delays.chain([self.down.delay]).max().unwrap_or_default();
        let rates = self.down.steps.iter().filter_map(|step| step.rate);
        let rates = rates.map(|rate| rate.bits_per_second() as f64);
        let rate = rates.fold(self.size.rate, f64::min);
        let bytes = 1.06 * (feed.size as f64 + 60.0) * f64::from(feed.burst);
        let sending = match &self.down.trace {
            Some(trace) => trace.longest(bytes as u64),
            None => Duration::from_secs_f64(8.0 * bytes / rate),
        };
        delay + self.down.jitter.max + sending + PATIENCE
    }
}

impl fmt::Display for ZooCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cc={}", self.app, self.congestion)?;
        if let Some(beside) = self.beside {
            write!(f, " beside={}", beside.name())?;
        }
        match &self.traced {
            None => write!(f, " | {}", self.down)?,
            Some(Traced { file, turn, .. }) => {
                let rest = LinkConfig { trace: None, ..self.down.clone() };
                write!(f, " | {rest}, by {file} from turn {turn} on")?;
            }
        }
        write!(f, " | back {}", self.up)
    }
}
