//! Published policies, to compare with. Ways of scheduling streams: the dependency trees of HTTP/2
//! ([`h2`]) and of HTTP/3's drafts ([`h3_draft`]), the schemes of Marx 2020 ([`marx`]), and the defaults of
//! ten stacks in 2020 ([`stacks`]). And ways of sending redundancy: the policies of FlEC ([`flec`]) and QUIRL
//! ([`quirl`]).
//!
//! This crate only uses the public interfaces of `sutura-schedule` and `sutura-proto`, as any crate
//! with policies of its own does. The resource that a stream carries and the stream that it depends on are an
//! [`Extension`](sutura_schedule::Extension) of its priority:
//!
//! ```
//! use sutura_research::marx::Resource;
//! use sutura_schedule::Priority;
//!
//! let mut scheduler = sutura_research::schedulers().find("dfifo")?.build();
//! for (stream, mime) in [(0, "image/png"), (4, "text/css")] {
//!     scheduler.insert(stream, Priority::default().with_extension(Resource::from_mime(mime)));
//!     scheduler.activate(stream);
//! }
//! assert_eq!(scheduler.next(1200).map(|grant| grant.stream), Some(4));
//! # Ok::<(), sutura_proto::registry::UnknownPolicy>(())
//! ```
#![forbid(unsafe_code)]

pub mod flec;
pub mod marx;
mod needs;
pub mod quirl;
pub mod stacks;
#[cfg(test)]
mod testing;
mod tree;

use std::sync::Arc;

use sutura_proto::TransportConfig;
use sutura_proto::policy::{FirstBy, RedundancyFactory, ResendOrderFactory};
use sutura_proto::registry::{self, Entry, Registry, UnknownPolicy};
use sutura_schedule::{SchedulerFactory, policies};

pub use needs::Needs;
use stacks::Preset;

policies! {
    /// The schedulers that are neither schemes of Marx 2020 nor defaults of stacks.
    pub const SCHEDULERS: dyn SchedulerFactory = [pub h2, pub h3_draft];
}

/// All schedulers: the built-in ones and this crate's.
#[must_use]
pub fn schedulers() -> Registry<dyn SchedulerFactory> {
    let own = SCHEDULERS.iter().chain(marx::SCHEDULERS).cloned();
    registry::schedulers().with(own.chain(Preset::ALL.iter().map(Preset::entry)))
}

/// All redundancy policies: the built-in ones, and the policies of [`flec`] and [`quirl`].
#[must_use]
pub fn redundancy() -> Registry<dyn RedundancyFactory> {
    registry::redundancy().with(flec::POLICIES.iter().chain(quirl::POLICIES).cloned())
}

/// All orders of resending: the built-in ones, of which `first-by` takes any of [`schedulers`].
#[must_use]
pub fn resend_orders() -> Registry<dyn ResendOrderFactory> {
    registry::resend_orders().with([FIRST_BY])
}

/// Approach 3 of Marx 2020, section 2.1. The sequential scheme that mvfst had is the default.
const FIRST_BY: Entry<dyn ResendOrderFactory> = Entry::with_parameters(
    "first-by",
    "lost data goes first, ordered by a scheduler of its own (approach 3)",
    "scheduler=fifo",
    |parameters| {
        parameters.first_is("scheduler");
        let name = parameters.take("scheduler").unwrap_or("fifo");
        Ok(Arc::new(FirstBy(schedulers().find(name)?)))
    },
);

/// Configures the scheduler that `text` names. If it is the default of a stack, the connection also behaves
/// otherwise as that stack does ([`Preset::apply`]).
///
/// # Errors
/// There is no such scheduler.
pub fn configure(config: &mut TransportConfig, text: &str) -> Result<(), UnknownPolicy> {
    let scheduler = schedulers().find(text)?;
    match Preset::by_name(scheduler.name()) {
        Some(preset) => preset.apply(config),
        None => config.scheduler = scheduler,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_schedule::{Priority, conformance};

    #[test]
    fn every_scheduler_is_found_and_keeps_every_rule() {
        conformance::registry(&schedulers(), |factory| factory.name().to_owned());
        for entry in schedulers().entries() {
            let factory = entry.make("").unwrap();
            conformance::extended_scheduler(&*factory, &testing::any_extension);
        }
    }

    #[test]
    fn every_redundancy_policy_is_found_and_keeps_its_contract() {
        sutura_proto::conformance::registry(&redundancy(), |made| made.name().to_owned());
        for entry in flec::POLICIES.iter().chain(quirl::POLICIES) {
            let made = entry.make(entry.parameters).unwrap();
            sutura_proto::conformance::redundancy(&*made);
        }
        for name in ["ac-rlnc:literal", "buffer:literal", "bulk:literal", "messages:literal"] {
            sutura_proto::conformance::redundancy(&*redundancy().find(name).unwrap());
        }
    }

    #[test]
    fn every_approach_to_resending_is_found_by_its_name() {
        sutura_proto::conformance::registry(&resend_orders(), |made| made.name().to_owned());
        // The first two frames of each of two streams are lost.
        for (name, expected) in [
            ("in-turn", [0, 4, 0, 4]),
            ("first", [0, 4, 0, 4]),
            ("first-by", [0, 0, 4, 4]),
            ("first-by:rr", [0, 4, 0, 4]),
            ("first-by:scheduler=picoquic", [4, 4, 0, 0]),
        ] {
            let mut order = resend_orders().find(name).unwrap().build(&|| marx::rr::SCHEME.build());
            for stream in [0, 4] {
                order.insert(stream, &Priority::default());
                order.queued(stream);
                order.queued(stream);
            }
            let mut left = [2, 2];
            let served = expected.map(|_| {
                let stream = order.next().unwrap();
                let left = &mut left[stream as usize / 4];
                *left -= 1;
                order.charge(stream, 1200);
                order.dequeued(stream, *left);
                stream
            });
            assert_eq!(served, expected, "{name}");
        }
        assert!(resend_orders().find("first-by:nobody").is_err());
    }

    #[test]
    fn a_connection_is_configured_by_name() {
        let mut config = TransportConfig::default();
        configure(&mut config, "dfifo").unwrap();
        assert_eq!((config.scheduler.name(), config.mix_streams), ("dfifo", false));
        configure(&mut config, "mvfst").unwrap();
        assert_eq!((config.scheduler.name(), config.mix_streams), ("mvfst", true));
        let error = configure(&mut config, "Mvfst").unwrap_err().to_string();
        assert!(error.contains("eps, ") && error.ends_with("picoquic-alt"), "{error}");
        assert_eq!(config.scheduler.name(), "mvfst");
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
