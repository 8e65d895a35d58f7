//! The conditions of a path, which are of no use on another path (RFC 9000 section 9.4).

use super::ecn::EcnValidation;
use super::held::HeldBack;
use super::loss_estimate::LossEstimate;
use super::{Mtu, Path};
use crate::congestion::{CongestionController, CongestionFactory, Pacer, PathParameters};
use crate::loss_floor::{LossFloorEstimator, LossMemory};
use crate::rtt::RttEstimator;
use std::time::{Duration, Instant};

/// The round-trip time, the losses, the congestion control of a path, whether it carries ECN marks, and the
/// size of datagrams.
#[derive(Debug)]
pub struct Conditions {
    rtt: RttEstimator,
    congestion: Box<dyn CongestionController>,
    pacer: Pacer,
    ecn: EcnValidation,
    mtu: Mtu,
    loss: LossEstimate,
    floor: LossFloorEstimator,
}

impl Conditions {
    /// The conditions of an unknown path.
    pub fn unknown(
        mtu: Mtu,
        initial_rtt: Duration,
        ecn: bool,
        congestion: &dyn CongestionFactory,
        seed: u64,
    ) -> Self {
        let size = mtu.size();
        Self {
            rtt: RttEstimator::new(initial_rtt),
            congestion: congestion.build(&PathParameters::new(size, seed)),
            pacer: Pacer::new(size),
            ecn: EcnValidation::new(ecn),
            mtu,
            loss: LossEstimate::default(),
            floor: LossFloorEstimator::new(LossMemory::default(), seed),
        }
    }
}

impl Path {
    /// Goes over to other conditions; returns the present ones. Packets in flight no longer count.
    pub fn replace_conditions(&mut self, now: Instant, new: Conditions) -> Conditions {
        let Conditions { rtt, congestion, pacer, ecn, mtu, loss, floor } = new;
        let old = Conditions {
            rtt: self.recovery.change_path(rtt),
            congestion: std::mem::replace(&mut self.congestion, congestion),
            pacer: std::mem::replace(&mut self.pacer, pacer),
            ecn: std::mem::replace(&mut self.ecn, ecn),
            mtu: std::mem::replace(&mut self.mtu, mtu),
            loss: std::mem::replace(&mut self.loss, loss),
            floor: std::mem::replace(&mut self.floor, floor),
        };
        self.app_limited = true;
        self.held = HeldBack::default();
        self.await_acks(now);
        self.update_pacer(now);
        old
    }
}
