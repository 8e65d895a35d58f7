//! Bounds that no sender can beat, and the results of a model whose schedule is fixed beforehand.

use std::time::Duration;

use super::apps::{self, BUFFER, FILE};
use super::{App, Link, Trials};
use crate::comparison::seed;
use crate::ideal::{Plan, Trace, Workload, late_bytes, least_late};
use crate::{Error, Options};

/// The clairvoyant sender of the model looks every millisecond whether the link lets something pass.
/// A sender that looks all the time is earlier by less than this.
const LOOK: Duration = Duration::from_millis(1);

/// The stream of one configuration in the [model](crate::ideal), on the losses of its connections.
pub(super) struct Model {
    workload: Workload,
    traces: Vec<Trace>,
    /// Repair symbols for each frame that the connections sent.
    repairs: f64,
}

impl Model {
    pub(super) fn new(outcome: &Trials<'_>, seconds: u32, options: &Options) -> Self {
        let [count, warm_up] = [seconds, apps::WARM_UP].map(apps::frames);
        let workload = Workload::frames(outcome.setup.path.clone(), count, warm_up);
        let traces = (0..).zip(&outcome.runs).map(|(connection, run)| {
            let [_, down] = outcome.setup.scenario(seed(options.seed, connection)).link_seeds();
            Trace { seed: down, start: run.began }
        });
        let frames = (count + warm_up) * outcome.runs.len() as u64;
        let repairs = outcome.sum(|run| run.repairs) as f64 / frames.max(1) as f64;
        Self { workload, traces: traces.collect(), repairs }
    }

    /// The least share of late bytes with the same number of repair symbols at times that are fixed
    /// beforehand. A policy that looks at the path can do better.
    pub(super) fn open_loop(&self) -> f64 {
        least_late(&self.workload, &self.traces, self.repairs, apps::slack())
    }

    /// The share of late bytes of a sender that knows all losses beforehand and sends lost data again as soon
    /// as the link lets it pass. No policy has a lower share.
    pub(super) fn bound(&self) -> f64 {
        let plan = Plan::Clairvoyant { copies: u64::MAX };
        let slack = [apps::slack() + LOOK];
        let late = |trace: &Trace| -> u64 {
            late_bytes(&self.workload, *trace, plan, &slack).iter().sum()
        };
        let late: u64 = self.traces.iter().map(late).sum();
        let bytes = self.workload.bytes() * self.traces.len() as u64;
        late as f64 / bytes.max(1) as f64
    }
}

/// The time that no file can beat, from request to end, whatever the losses: the request and the last byte
/// cross the link, and all bytes pass at its rate. With a small buffer, no more bytes are under way in any
/// round trip than the buffer takes.
///
/// # Errors
/// As for [`Link::config`].
pub(super) fn least_time(app: App, link: &Link) -> Result<Option<Duration>, Error> {
    if app != App::Download {
        return Ok(None);
    }
    let config = link.config()?;
    let pass = |bytes: u64| {
        let second = |rate: u64| 8.0 * bytes as f64 / rate as f64;
        let rate = config.rate.map(|rate| rate.bits_per_second());
        Duration::from_secs_f64(rate.map_or(0.0, second))
    };
    let round_trip = 2 * config.delay;
    // The last buffer leaves when each earlier buffer has made the way and its credit has come.
    let buffers = u32::try_from(FILE.div_ceil(BUFFER)).unwrap_or(u32::MAX).max(1);
    let last = FILE - BUFFER * u64::from(buffers - 1);
    let by_buffer = round_trip * (buffers - 1) + pass(last);
    Ok(Some(round_trip + by_buffer.max(pass(FILE))))
}

#[cfg(test)]
mod tests {
    use super::super::LINKS;
    use super::*;

    #[test]
    fn a_small_buffer_or_the_rate_bounds_a_download() {
        let least = |link| least_time(App::Download, link).unwrap().unwrap().as_millis();
        // Ten round trips, and the last 100 kB at the rate of the link; on Wi-Fi, all of the file.
        assert_eq!(LINKS.each_ref().map(least), [840, 4100, 430]);
        assert_eq!(least_time(App::Stream, &LINKS[0]).unwrap(), None);
    }
}
