//! The built-in policies of every seam, by name, for the command, the lab and the documentation. [`Registry`]
//! says how a name is read, and how a crate adds its own policies.

use crate::congestion::{self, CongestionFactory};
use crate::fec::redundancy::{self, RedundancyFactory};
use crate::loss_reaction::{self, LossReactionFactory};
use crate::streams::delivery::{self, DeliveryFactory};
use crate::streams::resend_order::{self, ResendOrderFactory};
use sutura_schedule::{SCHEDULERS, SchedulerFactory};

pub use sutura_schedule::policies;
pub use sutura_schedule::registry::{Entry, Parameters, Registry, UnknownPolicy};

/// Which stream sends next.
#[must_use]
pub fn schedulers() -> Registry<dyn SchedulerFactory> {
    Registry::new("scheduler", SCHEDULERS)
}

/// When redundancy is sent.
#[must_use]
pub fn redundancy() -> Registry<dyn RedundancyFactory> {
    Registry::new("redundancy policy", redundancy::ENTRIES)
}

/// How lost data is dealt with.
#[must_use]
pub fn loss_reactions() -> Registry<dyn LossReactionFactory> {
    Registry::new("loss reaction", loss_reaction::ENTRIES)
}

/// When data that is sent again goes, relative to new data.
#[must_use]
pub fn resend_orders() -> Registry<dyn ResendOrderFactory> {
    Registry::new("order of resending", resend_order::ENTRIES)
}

/// In which order received data is handed out.
#[must_use]
pub fn deliveries() -> Registry<dyn DeliveryFactory> {
    Registry::new("delivery order", delivery::ENTRIES)
}

/// How much may be in flight.
#[must_use]
pub fn congestion() -> Registry<dyn CongestionFactory> {
    Registry::new("congestion control algorithm", congestion::ALGORITHMS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance;
    use crate::fec::Protection;
    use std::fmt::Debug;

    /// Checks the table of a seam, and each policy with the listed parameters by the seam's own kit.
    fn check<F: ?Sized + Debug>(registry: &Registry<F>, name: fn(&F) -> &str, kit: fn(&F)) {
        conformance::registry(registry, |factory| name(factory).to_owned());
        // A fixed rate keeps no contract of congestion control, see the kit's own tests.
        for entry in registry.entries().iter().filter(|entry| entry.name != "fixed") {
            kit(&*entry.make(entry.parameters).unwrap());
        }
    }

    #[test]
    fn every_built_in_policy_is_found_by_its_name_and_keeps_its_contract() {
        check(&schedulers(), |f| f.name(), conformance::scheduler);
        check(&redundancy(), |f| f.name(), conformance::redundancy);
        check(&loss_reactions(), |f| f.name(), conformance::loss_reaction);
        check(&resend_orders(), |f| f.name(), conformance::resend_order);
        check(&deliveries(), |f| f.name(), conformance::delivery);
        check(&congestion(), |f| f.name(), conformance::congestion);
    }

    #[test]
    fn parameters_are_read_or_refused() {
        let protection = |text| Protection::new(redundancy().find(text).unwrap()).to_string();
        assert_eq!(protection("tail"), "tail: burst=3, delay=0ns");
        assert_eq!(protection("tail:burst=5, delay=25ms"), "tail: burst=5, delay=25ms");
        assert_eq!(protection("incremental:delay=7"), "incremental: burst=3, delay=7ms");
        let literal = "incremental: literal, burst=3, delay=7ms";
        assert_eq!(protection("incremental:literal,delay=7"), literal);
        assert_eq!(protection("incremental:mode=literal, delay=7ms"), literal);
        assert_eq!(protection("incremental:pieces"), "incremental: burst=3, delay=0ns");
        assert_eq!(protection("block:source=10,parity=3"), "block: source=10, parity=3");
        assert_eq!(protection("block:source=25,code=2d"), "block: source=25, code=2d");
        let error = |text| redundancy().find(text).err().unwrap().to_string();
        assert!(error("tail:size=3").contains("burst=3,delay=0ms"));
        assert!(error("incremental:x").contains("neither pieces nor literal"));
        assert!(error("block:source=255,parity=1").contains("255"));
    }
}
