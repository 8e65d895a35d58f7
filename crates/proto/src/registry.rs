//! The built-in policies of every seam, by name: what the command, the lab and the documentation
//! list.
//!
//! A policy is chosen by a text: its name, and its parameters behind a colon, as in `hmm` or
//! `tail:burst=3,delay=25ms`.

use crate::congestion::{Algorithm, CongestionFactory};
use crate::fec::redundancy::{Block, Incremental, RedundancyFactory, Tail};
use crate::loss_reaction::{HoldForRepair, LossReactionFactory, ResendAtOnce};
use crate::streams::delivery::{self, DeliveryFactory};
use crate::streams::resend_order::{ResendApproach, ResendOrderFactory};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use sutura_schedule::{SchedulerFactory, Scheme};

/// A policy of a seam.
pub struct Entry<F: ?Sized> {
    /// Its name.
    pub name: String,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Its parameters with their defaults, as one would write them; empty if it has none.
    pub parameters: &'static str,
    make: Make<F>,
}

type Make<F> = Box<dyn Fn(&mut Parameters<'_>) -> Result<Arc<F>, UnknownPolicy>>;

impl<F: ?Sized> fmt::Debug for Entry<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The policies of a seam.
#[derive(Debug)]
pub struct Registry<F: ?Sized> {
    /// What is chosen, for people: `scheduler`.
    pub seam: &'static str,
    /// The policies, in the order in which they are listed.
    pub entries: Vec<Entry<F>>,
}

impl<F: ?Sized> Registry<F> {
    /// The factory that `text` names.
    ///
    /// # Errors
    /// There is no such policy or parameter, or a parameter has no such value.
    pub fn find(&self, text: &str) -> Result<Arc<F>, UnknownPolicy> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let entry = self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let names: Vec<_> = self.entries.iter().map(|entry| &*entry.name).collect();
            let (seam, names) = (self.seam, names.join(", "));
            UnknownPolicy(format!("unknown {seam} `{name}`, expected one of: {names}"))
        })?;
        let mut parameters = Parameters::parse(parameters)?;
        let made = (entry.make)(&mut parameters)?;
        parameters.finish(name, entry.parameters)?;
        Ok(made)
    }
}

/// There is no such policy, or not with these parameters. The text says what there is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownPolicy(String);

/// The parameters of a text, as `name=value` separated by commas.
struct Parameters<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Parameters<'a> {
    fn parse(text: &'a str) -> Result<Self, UnknownPolicy> {
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| match pair.split_once('=') {
            Some((name, value)) => Ok((name.trim(), value.trim())),
            None => Err(UnknownPolicy(format!("`{pair}` is not of the form name=value"))),
        });
        Ok(Self(pairs.collect::<Result<_, _>>()?))
    }

    fn number(&mut self, name: &str, default: u32) -> Result<u32, UnknownPolicy> {
        let Some(value) = self.0.remove(name) else { return Ok(default) };
        value.parse().map_err(|_| UnknownPolicy(format!("{name}: `{value}` is not a number")))
    }

    fn millis(&mut self, name: &str) -> Result<Duration, UnknownPolicy> {
        let Some(value) = self.0.remove(name) else { return Ok(Duration::ZERO) };
        let number = value.strip_suffix("ms").unwrap_or(value).parse().ok();
        number.map(Duration::from_millis).ok_or_else(|| {
            UnknownPolicy(format!("{name}: `{value}` is not a number of milliseconds"))
        })
    }

    /// Refuses what no policy took.
    fn finish(self, policy: &str, known: &str) -> Result<(), UnknownPolicy> {
        let Some(name) = self.0.keys().next() else { return Ok(()) };
        let known = if known.is_empty() { "none" } else { known };
        Err(UnknownPolicy(format!("`{policy}` has no parameter `{name}` (it has: {known})")))
    }
}

/// An entry without parameters.
fn plain<F: ?Sized + 'static>(
    name: impl Into<String>,
    summary: &'static str,
    factory: Arc<F>,
) -> Entry<F> {
    let name = name.into();
    Entry { name, summary, parameters: "", make: Box::new(move |_| Ok(factory.clone())) }
}

/// Who sends next.
#[must_use]
pub fn schedulers() -> Registry<dyn SchedulerFactory> {
    let entries = Scheme::all().map(|scheme| {
        plain::<dyn SchedulerFactory>(scheme.name(), scheme.summary(), Arc::new(scheme))
    });
    Registry { seam: "scheduler", entries: entries.collect() }
}

/// When redundancy is sent.
#[must_use]
pub fn redundancy() -> Registry<dyn RedundancyFactory> {
    let entries: Vec<Entry<dyn RedundancyFactory>> = vec![
        Entry {
            name: "tail".to_owned(),
            summary: "repair symbols at the end of what was sent (Holzinger 2025, II-D4)",
            parameters: "burst=3,delay=0ms",
            make: Box::new(|p| Ok(Arc::new(Tail::new(p.number("burst", 3)?, p.millis("delay")?)))),
        },
        Entry {
            name: "incremental".to_owned(),
            summary: "repair symbols a little after each piece of data (Holzinger 2025, II-D5)",
            parameters: "burst=3,delay=0ms",
            make: Box::new(|p| {
                Ok(Arc::new(Incremental::new(p.number("burst", 3)?, p.millis("delay")?)))
            }),
        },
        Entry {
            name: "block".to_owned(),
            summary: "Reed-Solomon blocks: parity symbols after each block of data",
            parameters: "source=20,parity=2",
            make: Box::new(|p| {
                let block = Block::new(p.number("source", 20)?, p.number("parity", 2)?);
                let block = block.ok_or_else(|| {
                    UnknownPolicy("a block has 1 to 255 symbols, source and parity together".into())
                })?;
                Ok(Arc::new(block))
            }),
        },
    ];
    Registry { seam: "redundancy policy", entries }
}

/// What becomes of lost data.
#[must_use]
pub fn loss_reactions() -> Registry<dyn LossReactionFactory> {
    let hold = "lost data waits while a repair symbol in flight may mend it";
    let resend = "lost data is sent again at once";
    let built_in: [(Arc<dyn LossReactionFactory>, &str); 2] =
        [(Arc::new(HoldForRepair), hold), (Arc::new(ResendAtOnce), resend)];
    let entries =
        built_in.map(|(factory, summary)| plain(factory.name().to_owned(), summary, factory));
    Registry { seam: "loss reaction", entries: entries.into() }
}

/// When data that is sent again goes, relative to new data.
#[must_use]
pub fn resend_orders() -> Registry<dyn ResendOrderFactory> {
    let entries = ResendApproach::ALL.map(|approach| {
        plain::<dyn ResendOrderFactory>(approach.name(), approach.summary(), Arc::new(approach))
    });
    Registry { seam: "order of resending", entries: entries.into() }
}

/// In which order received data is handed out.
#[must_use]
pub fn deliveries() -> Registry<dyn DeliveryFactory> {
    let entries = delivery::built_in()
        .map(|(factory, summary)| plain(factory.name().to_owned(), summary, factory));
    Registry { seam: "delivery order", entries: entries.into() }
}

/// How much may be in flight.
#[must_use]
pub fn congestion() -> Registry<dyn CongestionFactory> {
    let entries = Algorithm::ALL.map(|algorithm| {
        plain::<dyn CongestionFactory>(algorithm.name(), algorithm.summary(), Arc::new(algorithm))
    });
    Registry { seam: "congestion control algorithm", entries: entries.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fec::Protection;
    use std::path::Path;

    /// Every entry is found by its name and makes a policy of that name.
    fn check<F: ?Sized>(registry: &Registry<F>, name: impl Fn(&F) -> String) {
        assert!(!registry.entries.is_empty());
        for entry in &registry.entries {
            let made = registry.find(&entry.name).unwrap();
            assert_eq!(name(&made), entry.name);
            assert!(!entry.summary.is_empty());
            // The defaults that are listed are those that there are.
            assert!(registry.find(&format!("{}:{}", entry.name, entry.parameters)).is_ok());
            assert!(registry.find(&format!("{}:nonsense=1", entry.name)).is_err());
        }
        let error = registry.find("no such thing").err().unwrap().to_string();
        assert!(registry.entries.iter().all(|entry| error.contains(&entry.name)), "{error}");
    }

    #[test]
    fn every_built_in_policy_is_found_by_its_name() {
        check(&schedulers(), |f| f.name().to_owned());
        check(&redundancy(), |f| f.name().to_owned());
        check(&loss_reactions(), |f| f.name().to_owned());
        check(&resend_orders(), |f| f.name().to_owned());
        check(&deliveries(), |f| f.name().to_owned());
        check(&congestion(), |f| f.name().to_owned());
    }

    /// What is listed of a seam: names with their parameters.
    fn listed<F: ?Sized>(registry: &Registry<F>) -> (&'static str, Vec<String>) {
        let text = |entry: &Entry<F>| match entry.parameters {
            "" => entry.name.clone(),
            parameters => format!("{}:{parameters}", entry.name),
        };
        (registry.seam, registry.entries.iter().map(text).collect())
    }

    #[test]
    fn the_documentation_lists_what_is_built_in() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        if !root.join("crates/proto").exists() {
            return; // The crate was packaged without its repository.
        }
        let page = std::fs::read_to_string(root.join("docs/architecture.md")).unwrap();
        let (_, table) = page.split_once("| seam | name and parameters |").unwrap();
        let seams = [
            listed(&schedulers()),
            listed(&redundancy()),
            listed(&loss_reactions()),
            listed(&resend_orders()),
            listed(&deliveries()),
            listed(&congestion()),
        ];
        for (seam, names) in seams {
            let start = format!("| {seam} |");
            let row = table.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
            // Every second part is within backquotes.
            let documented: Vec<_> = row.split('`').skip(1).step_by(2).collect();
            assert_eq!(documented, names, "{seam}");
        }
    }

    #[test]
    fn parameters_are_read_or_refused() {
        let protection = |text| Protection::new(redundancy().find(text).unwrap()).to_string();
        assert_eq!(protection("tail"), "tail: burst=3, delay=0ns");
        assert_eq!(protection("tail:burst=5, delay=25ms"), "tail: burst=5, delay=25ms");
        assert_eq!(protection("incremental:delay=7"), "incremental: burst=3, delay=7ms");
        assert_eq!(protection("block:source=10,parity=3"), "block: source=10, parity=3");
        let error = |text| redundancy().find(text).err().unwrap().to_string();
        assert_eq!(error("tail:burst"), "`burst` is not of the form name=value");
        assert_eq!(error("tail:burst=x"), "burst: `x` is not a number");
        assert_eq!(error("tail:delay=-1"), "delay: `-1` is not a number of milliseconds");
        assert!(error("tail:size=3").contains("burst=3,delay=0ms"));
        assert!(error("block:source=255,parity=1").contains("255"));
    }
}
