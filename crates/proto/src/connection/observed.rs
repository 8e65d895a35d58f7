//! The observer of a connection. Tells it which figures of the path and of erasure coding have changed since the last report.

use super::Connection;
use crate::ecn::EcnState;
use crate::loss_floor::LossFloor;
use crate::observe::{Metrics, Observation, Observer};
use std::any::Any;
use std::net::SocketAddr;
use std::time::Instant;

/// The observer, and the figures that it was told last.
pub(super) struct Observed {
    observer: Box<dyn Observer>,
    floor: LossFloor,
    /// The peer's address, once it differs from the first one.
    remote: Option<SocketAddr>,
    mtu: Option<u16>,
    ecn: Option<EcnState>,
}

impl Observed {
    fn new(observer: Box<dyn Observer>) -> Self {
        Self { observer, floor: LossFloor::default(), remote: None, mtu: None, ecn: None }
    }
}

impl Connection {
    /// Sets an observer, which is told of everything from now on.
    pub fn set_observer(&mut self, now: Instant, mut observer: Box<dyn Observer>) {
        let original_dcid = self.handshake.original_dcid;
        observer.observe(now, &Observation::Started { side: self.side, original_dcid });
        let parameters = &self.handshake.local.get(self.side);
        observer.observe(now, &Observation::Parameters { local: true, parameters });
        self.observed = Some(Box::new(Observed::new(observer)));
    }

    /// Reports an event of the protocol above to the observer, if there is one.
    pub fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        if let Some(observed) = &mut self.observed {
            observed.observer.observe(now, observation);
        }
    }

    /// Reports an event of the protocol above as [`Observation::Application`]. Without an observer
    /// the event is not even constructed.
    pub fn observe_application<E: Any>(&mut self, now: Instant, event: impl FnOnce() -> E) {
        if let Some(observed) = &mut self.observed {
            observed.observer.observe(now, &Observation::Application(&event()));
        }
    }

    /// Tells the observer, if there is one, the figures of loss recovery and other figures that changed with
    /// them.
    pub(super) fn observe_metrics(&mut self, now: Instant) {
        let (path, Some(known)) = (&self.path, &mut self.observed) else { return };
        let observer = &mut known.observer;
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
