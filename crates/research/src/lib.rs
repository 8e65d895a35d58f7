//! Published ways of scheduling streams, to compare with: the dependency tree of HTTP/2 ([`h2`]), the
//! schemes of Marx 2020 ([`marx`]), and what ten stacks did by default in 2020 ([`stacks`]).
//!
//! This crate only uses the public interfaces of `sutura-schedule` and `sutura-proto`, as any crate
//! with policies of its own does. What a stream carries and what it depends on is an
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

pub mod marx;
pub mod stacks;
#[cfg(test)]
mod testing;
mod tree;

use sutura_proto::TransportConfig;
use sutura_proto::registry::{self, Registry, UnknownPolicy};
use sutura_schedule::{SchedulerFactory, policies};

use stacks::Preset;

policies! {
    /// The schedulers that are neither schemes of Marx 2020 nor defaults of stacks.
    pub const SCHEDULERS: dyn SchedulerFactory = [pub h2];
}

/// All schedulers: the built-in ones and those of this crate.
#[must_use]
pub fn schedulers() -> Registry<dyn SchedulerFactory> {
    let own = SCHEDULERS.iter().chain(marx::SCHEDULERS).cloned();
    registry::schedulers().with(own.chain(Preset::ALL.iter().map(Preset::entry)))
}

/// Configures the scheduler that `text` names. If it is the default of a stack, the connection also
/// does everything else as that stack does ([`Preset::apply`]).
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
    use sutura_schedule::conformance;

    #[test]
    fn every_scheduler_is_found_and_keeps_every_rule() {
        conformance::registry(&schedulers(), |factory| factory.name().to_owned());
        for entry in schedulers().entries() {
            let factory = entry.make("").unwrap();
            conformance::extended_scheduler(&*factory, &testing::any_extension);
        }
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
