//! A fixed rate, whatever the losses, for links that the sender has to itself.
//!
//! This is no congestion control. It keeps to the rate that it was told when packets are lost or
//! marked and when queues grow, as UDPBlast does (Eghbal 2022), so that other flows at the bottleneck get the
//! rest. `conformance::congestion` therefore refuses it.
//!
//! With a `makeup`, it raises the rate to make up for losses, as Hysteria's Brutal does, by at most that
//! share of the rate; Brutal's bound is 25 %. By default it does not: if the stated rate is all that a link
//! carries, anything on top would overflow the link's queue.
//!
//! The pacer keeps the rate. The window is only a bound: twice what the rate sends in a round trip,
//! and at most the path's largest window. Flow control limits this sender like any other.

use super::arithmetic::{bytes_within, percent};
use super::{Acked, CongestionController, CongestionFactory, Lost, PathParameters, WindowLimits};
use crate::rtt::{INITIAL_RTT, RttEstimator};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_schedule::registry::{Entry, UnknownPolicy};

const NAME: &str = "fixed";

pub(super) const ENTRY: Entry<dyn CongestionFactory> =
    Entry::<dyn CongestionFactory>::with_parameters(
        NAME,
        "always the same rate, for links of your own: it does not yield to others",
        "rate=20mbit,makeup=0",
        |parameters| {
            parameters.first_is("rate");
            let bits = parameters.rate("rate")?.ok_or_else(|| {
                UnknownPolicy::new("`fixed` needs the rate to send at, as in fixed:20mbit")
            })?;
            let makeup = parameters.number("makeup", 0)?;
            let fixed = FixedRate::new(bits / 8).and_then(|fixed| fixed.with_makeup(makeup));
            let fixed = fixed.ok_or_else(|| {
                UnknownPolicy::new(format!(
                    "`fixed` sends at 8kbit to {}gbit and makes up for at most {MAX_MAKEUP} per cent",
                    MAX_RATE / 125_000_000
                ))
            })?;
            Ok(Arc::new(fixed))
        },
    )
    .needing_parameters();

/// The window, in percent of the bytes sent in a round trip: enough that acknowledgements which come late or
/// in bursts do not stop the pacer.
const WINDOW_GAIN: u64 = 200;
/// The lowest rate in bytes per second; the pacer knows none below it.
const MIN_RATE: u64 = 1_000;
/// The highest rate in bytes per second: more than any device sends, so that a user who asks for more has
/// mistaken the unit.
const MAX_RATE: u64 = 125_000_000_000;
/// The largest makeup, in percent.
const MAX_MAKEUP: u64 = 100;
/// About how many packets back losses count towards the share of lost packets.
const MEMORY: f64 = 500.0;

/// Sends at a fixed rate. Not for shared networks: it does not yield to other flows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedRate {
    /// Bytes per second.
    rate: u64,
    /// In percent of the rate.
    makeup: u64,
}

impl FixedRate {
    /// Sends at `rate` bytes of UDP payload per second: `None` if it is below 1000, or above 125 billion.
    #[must_use]
    pub fn new(rate: u64) -> Option<Self> {
        (MIN_RATE..=MAX_RATE).contains(&rate).then_some(Self { rate, makeup: 0 })
    }

    /// Makes up for losses by sending up to `makeup` percent more; `None` if that is above 100.
    #[must_use]
    pub fn with_makeup(self, makeup: u64) -> Option<Self> {
        (makeup <= MAX_MAKEUP).then_some(Self { makeup, ..self })
    }
}

impl CongestionFactory for FixedRate {
    fn name(&self) -> &str {
        NAME
    }

    fn build(&self, path: &PathParameters) -> Box<dyn CongestionController> {
        let limits = path.limits();
        Box::new(Fixed { settings: *self, limits, rtt: INITIAL_RTT, packets: 0.0, lost: 0.0 })
    }
}

/// The sender of a path.
#[derive(Debug)]
struct Fixed {
    settings: FixedRate,
    limits: WindowLimits,
    rtt: Duration,
    /// Packets whose outcome is known, and how many of them were lost. Older packets count less.
    packets: f64,
    lost: f64,
}

impl Fixed {
    fn count(&mut self, packets: usize, lost: usize) {
        let kept = (1.0 - packets as f64 / MEMORY).max(0.0);
        self.packets = self.packets * kept + packets as f64;
        self.lost = self.lost * kept + lost as f64;
    }

    /// The rate in bytes per second: losses subtracted, the stated rate arrives, as far as the makeup allows.
    fn rate(&self) -> u64 {
        let FixedRate { rate, makeup } = self.settings;
        let arrives = 1.0 - self.lost / self.packets.max(MEMORY);
        let needed = (rate as f64 / arrives.max(f64::EPSILON)) as u64;
        needed.clamp(rate, percent(rate, 100 + makeup))
    }
}

impl CongestionController for Fixed {
    fn on_packets_acked(
        &mut self,
        _now: Instant,
        acked: &[Acked],
        rtt: &RttEstimator,
        _in_flight: u64,
        _app_limited: bool,
    ) {
        self.count(acked.len(), 0);
        if !acked.is_empty() {
            self.rtt = rtt.smoothed();
        }
    }

    fn on_packets_lost(&mut self, _now: Instant, lost: &[Lost], _persistent: bool, _: u64) {
        self.count(lost.len(), lost.len());
    }

    fn on_ecn_ce(&mut self, _now: Instant, _sent: Instant, _newly_marked: u64, _in_flight: u64) {}

    fn on_spurious_loss(&mut self, _now: Instant, packets: &[Lost]) {
        self.lost = (self.lost - packets.len() as f64).max(0.0);
    }

    fn on_mtu_changed(&mut self, mtu: u16) {
        self.limits = WindowLimits::new(mtu, self.limits.max());
    }

    fn window(&self) -> u64 {
        let sent = bytes_within(self.rate(), self.rtt);
        self.limits.clamp(percent(sent, WINDOW_GAIN).max(self.limits.initial()))
    }

    fn pacing_rate(&self, _rtt: &RttEstimator) -> Option<u64> {
        Some(self.rate())
    }

    fn name(&self) -> &str {
        NAME
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ALGORITHMS;
    use crate::bottleneck::{BottleneckPath, MTU, Simulation};
    use sutura_schedule::registry::Registry;

    const RATE: u64 = 1_250_000;

    fn find(text: &str) -> Result<Arc<dyn CongestionFactory>, UnknownPolicy> {
        Registry::new("congestion control algorithm", ALGORITHMS).find(text)
    }

    fn run(text: &str, loss_ppm: u64) -> Simulation<Box<dyn CongestionController>> {
        let factory = find(text).unwrap();
        let mut path = BottleneckPath::new(20, 100, 100);
        path.loss_ppm = loss_ppm;
        let controller = factory.build(&PathParameters::new(MTU as u16, 1));
        let mut simulation = Simulation::new(controller, path);
        simulation.run(20.0);
        simulation
    }

    /// Whether two rates are the same but for 2 %.
    fn near(a: u64, b: u64) -> bool {
        a.abs_diff(b) <= b / 50
    }

    #[test]
    fn losses_do_not_change_the_rate() {
        for loss in [0, 20_000, 200_000] {
            let simulation = run("fixed:10mbit", loss);
            let arrives = RATE * (1_000_000 - loss) / 1_000_000;
            let goodput = simulation.goodput(2.0, 20.0);
            assert!(near(goodput, arrives), "{goodput} instead of {arrives}");
            let most = simulation.moments.iter().map(|moment| moment.in_flight).max();
            assert!(most <= Some(RATE / 10 * 13 / 10), "the pacer is the limit: {most:?}");
        }
    }

    #[test]
    fn losses_are_made_up_for_within_bounds() {
        for (loss, arrives) in [(0, RATE), (100_000, RATE), (400_000, RATE * 5 / 4 * 6 / 10)] {
            let goodput = run("fixed:rate=10mbit,makeup=25", loss).goodput(5.0, 20.0);
            assert!(near(goodput, arrives), "{loss}: {goodput} instead of {arrives}");
        }
    }

    #[test]
    fn the_largest_window_holds() {
        let fixed = FixedRate::new(1 << 36).unwrap();
        let path = PathParameters { max_window: 50_000, ..PathParameters::new(MTU as u16, 1) };
        assert_eq!(fixed.build(&path).window(), 50_000);
    }

    #[test]
    fn its_text_is_read_or_refused() {
        let made = |text| find(text).map(|f| format!("{f:?}"));
        let expected = FixedRate { rate: 2_500_000, makeup: 25 };
        assert_eq!(made("fixed:20mbit,makeup=25"), Ok(format!("{expected:?}")));
        for (text, why) in [
            ("fixed", "needs the rate"),
            ("fixed:20", "not a rate"),
            ("fixed:7kbit", "8kbit to 1000gbit"),
            ("fixed:99999gbit", "8kbit to 1000gbit"),
            ("fixed:20mbit,makeup=101", "at most 100"),
            ("fixed:20mbit,loss=1", "no parameter `loss`"),
        ] {
            let error = made(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
