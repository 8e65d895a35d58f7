//! Tells the observer which figures of the path and of erasure coding have changed since the last report.

use super::Connection;
use crate::ecn::EcnState;
use crate::loss_floor::LossFloor;
use crate::observe::{Metrics, Observation};
use std::net::SocketAddr;
use std::time::Instant;

/// The figures that the observer was told last.
#[derive(Debug, Default)]
pub(super) struct Observed {
    floor: LossFloor,
    /// The peer's address, once it differs from the first one.
    remote: Option<SocketAddr>,
    mtu: Option<u16>,
    ecn: Option<EcnState>,
}

impl Connection {
    /// Tells the observer, if there is one, the figures of loss recovery and other figures that changed with
    /// them.
    pub(super) fn observe_metrics(&mut self, now: Instant) {
        let Some(observer) = &mut self.observer else { return };
        let (path, known) = (&self.path, &mut self.observed);
        let rtt = path.recovery.rtt();
        observer.observe(
            now,
            &Observation::Metrics(Metrics {
                smoothed_rtt: rtt.smoothed(),
                latest_rtt: rtt.latest(),
                min_rtt: rtt.min(),
                congestion_window: path.congestion.window(),
                bytes_in_flight: path.recovery.bytes_in_flight(),
                pacing_rate: path.congestion.pacing_rate(rtt),
            }),
        );
        let floor = path.loss_floor();
        if floor.contradicts(&known.floor) {
            known.floor = floor;
            observer.observe(now, &Observation::LossEstimateUpdated(floor));
        }
        if known.remote.replace(path.remote).is_some_and(|before| before != path.remote) {
            observer.observe(now, &Observation::PathChanged { remote: path.remote });
        }
        let new = path.mtu.size();
        if let Some(old) = known.mtu.replace(new).filter(|old| *old != new) {
            observer.observe(now, &Observation::MtuUpdated { old, new });
        }
        let ecn = path.ecn_state();
        if known.ecn.replace(ecn) != Some(ecn) {
            observer.observe(now, &Observation::EcnStateUpdated(ecn));
        }
        self.egress.take_coding_news(|session, protection, reason| {
            let news = Observation::RedundancyUpdated { session, protection, reason };
            observer.observe(now, &news);
        });
    }
}
