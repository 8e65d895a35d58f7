//! The kit accepts controllers that keep the contract, and reports those that do not.

use super::*;
use crate::ALGORITHMS;
use crate::loss_floor::LossFloor;
use crate::rtt::RttEstimator;
use crate::{Acked, Algorithm, FixedRate, Lost, PacketState, Sent};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use sutura_schedule::conformance::registry;
use sutura_schedule::registry::Registry;

/// The fault of an otherwise correct controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    Misnamed,
    Stingy,
    Boundless,
    StaleMtu,
    Static,
    Greedy,
    DeafToPersistentCongestion,
    DeafToLosses,
    DeafToMarks,
    Despondent,
    Resentful,
    Forgetful,
    Capricious,
    StartledByNothing,
    ShortLived,
    Sleepless,
}

#[derive(Debug)]
struct Faulty {
    fault: Fault,
    inner: Box<dyn CongestionController>,
    /// The time of the first call.
    created: Option<Instant>,
    /// A divisor that some faults use.
    divisor: u64,
    /// Number of queries of the window.
    asked: Cell<u64>,
}

#[derive(Debug)]
struct FaultyFactory(Fault);

/// Number of controllers built. With the capricious fault, every other one differs.
static BUILT: AtomicU64 = AtomicU64::new(0);

impl CongestionFactory for FaultyFactory {
    fn name(&self) -> &str {
        if self.0 == Fault::Misnamed { "faulty" } else { "newreno" }
    }

    fn build(&self, path: &PathParameters) -> Box<dyn CongestionController> {
        let mut path = *path;
        if self.0 == Fault::Boundless {
            path = PathParameters::new(path.mtu, path.seed);
        }
        let mut faulty = Faulty {
            fault: self.0,
            inner: Algorithm::NEW_RENO.build(&path),
            created: None,
            divisor: 1,
            asked: Cell::new(0),
        };
        if self.0 == Fault::Capricious {
            faulty.divisor += BUILT.fetch_add(1, Ordering::Relaxed) % 2;
        }
        Box::new(faulty)
    }
}

impl Faulty {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

impl CongestionController for Faulty {
    fn on_packet_sent(&mut self, now: Instant, packet: &Sent) -> PacketState {
        let lifetime = now - *self.created.get_or_insert(now);
        if self.is(Fault::ShortLived) {
            // Overflows after about four seconds.
            let nanos = u32::try_from(lifetime.as_nanos());
            assert!(nanos.is_ok(), "too old");
        }
        self.inner.on_packet_sent(now, packet)
    }

    fn on_packets_acked(
        &mut self,
        now: Instant,
        acked: &[Acked],
        rtt: &RttEstimator,
        in_flight: u64,
        app_limited: bool,
    ) {
        if self.is(Fault::Static) || (self.is(Fault::Despondent) && self.divisor > 1) {
            return;
        }
        let share = if self.is(Fault::Capricious) { self.divisor as usize } else { 1 };
        let heard = acked.len().div_ceil(share);
        let app_limited = app_limited && !self.is(Fault::Greedy);
        self.inner.on_packets_acked(now, &acked[..heard], rtt, in_flight, app_limited);
    }

    fn on_packets_lost(&mut self, now: Instant, lost: &[Lost], persistent: bool, in_flight: u64) {
        let deaf_to =
            if persistent { Fault::DeafToPersistentCongestion } else { Fault::DeafToLosses };
        if self.is(deaf_to) {
            return;
        }
        if self.is(Fault::Stingy) {
            self.divisor = 1_000;
        }
        if lost.is_empty() && self.is(Fault::StartledByNothing) {
            self.inner.on_ecn_ce(now, now, 1, in_flight);
        }
        self.inner.on_packets_lost(now, lost, persistent, in_flight);
        if self.is(Fault::Despondent) && self.inner.window() <= 2 * MTU {
            self.divisor = 2;
        }
    }

    fn on_ecn_ce(&mut self, now: Instant, sent: Instant, newly_marked: u64, in_flight: u64) {
        if !self.is(Fault::DeafToMarks) {
            self.inner.on_ecn_ce(now, sent, newly_marked, in_flight);
        }
    }

    fn on_loss_floor(&mut self, floor: &LossFloor) {
        self.inner.on_loss_floor(floor);
    }

    fn on_spurious_loss(&mut self, now: Instant, packets: &[Lost]) {
        if self.is(Fault::Resentful) {
            self.inner.on_ecn_ce(now + Duration::from_secs(1), now, 1, 0);
        } else {
            self.inner.on_spurious_loss(now, packets);
        }
    }

    fn on_mtu_changed(&mut self, mtu: u16) {
        if !self.is(Fault::StaleMtu) {
            self.inner.on_mtu_changed(mtu);
        }
    }

    fn window(&self) -> u64 {
        self.asked.set(self.asked.get() + 1);
        let window = self.inner.window();
        if self.is(Fault::Stingy) {
            window / self.divisor
        } else if self.is(Fault::Forgetful) {
            window + self.asked.get() % 2
        } else {
            window
        }
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        // Gives the same answer to two queries in a row, but another one after many.
        let sleepless = self.is(Fault::Sleepless).then(|| self.asked.get());
        sleepless.or_else(|| self.inner.slow_start_threshold())
    }

    fn name(&self) -> &str {
        self.inner.name()
    }
}

/// The message with which the kit panics.
fn verdict(kit: impl Fn()) -> String {
    match catch_unwind(AssertUnwindSafe(kit)) {
        Ok(()) => "accepted".to_owned(),
        Err(panic) => panic.downcast_ref::<String>().cloned().unwrap_or_else(|| {
            panic.downcast_ref::<&str>().map_or_else(String::new, |text| (*text).to_owned())
        }),
    }
}

#[test]
fn every_built_in_algorithm_is_found_by_its_name_and_keeps_the_contract() {
    registry(&Registry::new("algorithm", ALGORITHMS), |factory| factory.name().to_owned());
    // A fixed rate yields to nothing, see below.
    for entry in ALGORITHMS.iter().filter(|entry| entry.name != "fixed") {
        congestion(&*entry.make(entry.parameters).unwrap());
    }
}

#[test]
fn each_fault_is_named() {
    for (fault, named) in [
        (Fault::None, "accepted"),
        (Fault::Misnamed, "what its factory is called"),
        (Fault::Stingy, "below two datagrams"),
        (Fault::Boundless, "above the maximum"),
        (Fault::StaleMtu, "on_mtu_changed: the window"),
        (Fault::Static, "does not send more than at first"),
        (Fault::Greedy, "the application limited the sender"),
        (Fault::DeafToPersistentCongestion, "persistent congestion, and neither"),
        (Fault::DeafToLosses, "three packets of ten are lost"),
        (Fault::DeafToMarks, "round trips were marked"),
        (Fault::Despondent, "the path has carried packets again"),
        (Fault::Resentful, "losses turned out to be none"),
        (Fault::Forgetful, "a question changed the answer"),
        (Fault::Capricious, "two controllers of one seed differ"),
        (Fault::StartledByNothing, "on_packets_lost: news of no packets"),
        (Fault::ShortLived, "too old"),
        (Fault::Sleepless, "questions or news of no packets"),
    ] {
        let said = verdict(|| congestion(&FaultyFactory(fault)));
        assert!(said.contains(named), "{fault:?}: {said}");
    }
}

#[test]
fn a_fixed_rate_is_refused_wherever_yielding_is_asked_for() {
    let fixed = FixedRate::new(2_000_000).unwrap();
    assert_ne!(verdict(|| congestion(&fixed)), "accepted");
    type Rule = fn(&dyn CongestionFactory);
    let yields: [(Rule, &str); 3] = [
        (yields_to_persistent_congestion, "persistent congestion, and neither"),
        (yields_to_heavy_loss, "three packets of ten are lost"),
        (yields_to_marks, "round trips were marked"),
    ];
    for (rule, named) in yields {
        let said = verdict(|| rule(&fixed));
        assert!(said.contains(named), "{said}");
    }
}
