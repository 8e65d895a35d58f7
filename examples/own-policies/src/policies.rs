//! The policies together: the configuration with all of them, and the report of their counters.

use crate::congestion::Aimd;
use crate::delivery::NewestFirst;
use crate::flec::HeadFirst;
use crate::loss_reaction::DropLate;
use crate::redundancy::EveryFew;
use crate::scheduler::LeastSentFirst;
use std::sync::Arc;
use sutura::TransportConfig;

/// A factory for each seam.
#[derive(Debug, Clone, Default)]
pub struct Policies {
    /// Which stream sends next.
    pub scheduler: LeastSentFirst,
    /// When repair symbols are sent.
    pub redundancy: EveryFew,
    /// When repair symbols are sent for the picture on its way back.
    pub picture: HeadFirst,
    /// Whether lost data is sent again.
    pub loss_reaction: DropLate,
    /// Which received bytes the application gets next.
    pub delivery: NewestFirst,
    /// How many bytes may be in flight.
    pub congestion: Aimd,
}

impl Policies {
    /// A configuration in which all these policies decide.
    pub fn transport(&self) -> TransportConfig {
        let Self { scheduler, redundancy, loss_reaction, delivery, congestion, .. } = self.clone();
        TransportConfig::default()
            .with_scheduler(Arc::new(scheduler))
            .with_redundancy(Some(Arc::new(redundancy)))
            .with_loss_reaction(Arc::new(loss_reaction))
            .with_delivery(Arc::new(delivery))
            .with_congestion(Arc::new(congestion))
    }

    /// Prints the counters of the policies.
    ///
    /// # Errors
    /// A policy was never asked to act.
    pub fn report(&self) -> Result<(), String> {
        let Self { scheduler, redundancy, picture, loss_reaction, delivery, congestion } = self;
        println!("scheduler: {} bytes charged", scheduler.charged);
        println!("redundancy: {} repair symbols sent", redundancy.sent);
        println!("redundancy of the picture: {} repair symbols sent", picture.sent);
        let DropLate { resent, dropped } = loss_reaction;
        println!("loss reaction: {resent} frames resent, {dropped} given up");
        println!("delivery: {} pieces delivered", delivery.delivered);
        let Aimd { acked, cuts } = congestion;
        println!("congestion: {acked} packets acknowledged, window cut {cuts} times");
        let work = [
            ("scheduler", scheduler.charged.get()),
            ("redundancy", redundancy.sent.get()),
            ("redundancy of the picture", picture.sent.get()),
            ("loss reaction, sending again", resent.get()),
            ("loss reaction, giving up", dropped.get()),
            ("delivery", delivery.delivered.get()),
            ("congestion", acked.get()),
        ];
        match work.iter().find(|(_, count)| *count == 0) {
            Some((name, _)) => Err(format!("it was never asked: {name}")),
            None => Ok(()),
        }
    }
}
