//! Policies by name: how the policies of a seam are listed, and how a text chooses a policy.
//!
//! The text is the name of a policy with its parameters behind a colon, as in `hmm`, `fixed:20mbit`
//! or `tail:burst=3,delay=25ms`. A policy describes itself and its parameters in an [`Entry`] in its own
//! file, [`policies!`](crate::policies) lists the entries of a crate, and a [`Registry`] finds them:
//!
//! ```
//! use std::sync::Arc;
//! use sutura_schedule::registry::{Entry, Registry};
//! use sutura_schedule::{Eps, SCHEDULERS, SchedulerFactory, Scheme};
//!
//! const TURNS: Scheme = Scheme::new("turns", || Box::new(Eps::new()));
//! const ENTRY: Entry<dyn SchedulerFactory> =
//!     Entry::new(TURNS.name(), "every stream in turn", |_| Ok(Arc::new(TURNS)));
//!
//! let registry = Registry::new("scheduler", SCHEDULERS).with([ENTRY]);
//! assert_eq!(registry.find("turns")?.name(), "turns");
//! assert!(registry.find("turns:length=2").is_err());
//! # Ok::<(), sutura_schedule::registry::UnknownPolicy>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Declares the modules of policies, and lists the `ENTRY` of each:
///
/// ```text
/// policies! {
///     /// The redundancy policies.
///     pub const ENTRIES: dyn RedundancyFactory = [tail, incremental, block];
/// }
/// ```
///
/// So a policy that comes with its crate is one file, and its name in this list. Its module is
/// private unless `pub` stands before the name. `rustfmt` does not find modules that are declared
/// here; give it the files by name.
#[macro_export]
macro_rules! policies {
    (
        $(#[$meta:meta])*
        $vis:vis const $table:ident: $factory:ty = [$($module_vis:vis $module:ident),* $(,)?];
    ) => {
        $($module_vis mod $module;)*

        $(#[$meta])*
        $vis const $table: &[$crate::registry::Entry<$factory>] = &[$($module::ENTRY),*];
    };
}

/// A policy of a seam; `F` is the factory of the policy, such as
/// [`dyn SchedulerFactory`](crate::SchedulerFactory).
pub struct Entry<F: ?Sized> {
    /// Its name.
    pub name: &'static str,
    /// A summary in a line.
    pub summary: &'static str,
    /// Its parameters with their defaults, as one would write them; empty if it has none.
    pub parameters: &'static str,
    /// Whether the name alone is not enough. The listed parameters are an example then.
    pub needs_parameters: bool,
    make: Make<F>,
}

type MakeFn<F> = fn(&mut Parameters<'_>) -> Result<Arc<F>, UnknownPolicy>;

enum Make<F: ?Sized> {
    Call(MakeFn<F>),
    Share(Arc<F>),
}

impl<F: ?Sized> Entry<F> {
    /// A policy without parameters.
    #[must_use]
    pub const fn new(name: &'static str, summary: &'static str, make: MakeFn<F>) -> Self {
        Self::with_parameters(name, summary, "", make)
    }

    /// A policy that is listed with `parameters` and their defaults, such as `burst=3,delay=0ms`.
    /// `make` takes the parameters that it knows; further ones are an error.
    #[must_use]
    pub const fn with_parameters(
        name: &'static str,
        summary: &'static str,
        parameters: &'static str,
        make: MakeFn<F>,
    ) -> Self {
        Self { name, summary, parameters, needs_parameters: false, make: Make::Call(make) }
    }

    /// Marks a policy that has no good default: its `make` refuses to go without parameters, and the listed
    /// ones are an example.
    #[must_use]
    pub const fn needing_parameters(mut self) -> Self {
        self.needs_parameters = true;
        self
    }

    /// A policy without parameters that exists already, when the table is made at run time.
    #[must_use]
    pub const fn made(name: &'static str, summary: &'static str, policy: Arc<F>) -> Self {
        let make = Make::Share(policy);
        Self { name, summary, parameters: "", needs_parameters: false, make }
    }

    /// The policy with `parameters`; missing parameters have their defaults.
    ///
    /// # Errors
    /// There is no such parameter, or its value is not valid.
    pub fn make(&self, parameters: &str) -> Result<Arc<F>, UnknownPolicy> {
        let mut parameters = Parameters::parse(parameters)?;
        let made = match &self.make {
            Make::Call(make) => make(&mut parameters)?,
            Make::Share(policy) => policy.clone(),
        };
        parameters.finish(self.name, self.parameters)?;
        Ok(made)
    }
}

impl<F: ?Sized> Clone for Entry<F> {
    fn clone(&self) -> Self {
        let make = match &self.make {
            Make::Call(make) => Make::Call(*make),
            Make::Share(policy) => Make::Share(policy.clone()),
        };
        Self { make, ..*self }
    }
}

impl<F: ?Sized> fmt::Debug for Entry<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The policies of a seam.
#[derive(Clone, Debug)]
pub struct Registry<F: ?Sized> {
    /// The noun for a policy of the seam, such as `scheduler`.
    pub seam: &'static str,
    entries: Vec<Entry<F>>,
}

impl<F: ?Sized> Registry<F> {
    /// A registry of `entries`.
    #[must_use]
    pub fn new(seam: &'static str, entries: &[Entry<F>]) -> Self {
        Self { seam, entries: entries.to_vec() }
    }

    /// The registry with more policies. A new policy takes the place of an old one of its name.
    #[must_use]
    pub fn with(mut self, entries: impl IntoIterator<Item = Entry<F>>) -> Self {
        for entry in entries {
            match self.entries.iter_mut().find(|old| old.name == entry.name) {
                Some(old) => *old = entry,
                None => self.entries.push(entry),
            }
        }
        self
    }

    /// The policies, in the order in which they are listed.
    #[must_use]
    pub fn entries(&self) -> &[Entry<F>] {
        &self.entries
    }

    /// The factory of the policy that `text` names.
    ///
    /// # Errors
    /// There is no such policy or parameter, or a parameter's value is not valid.
    pub fn find(&self, text: &str) -> Result<Arc<F>, UnknownPolicy> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let entry = self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let names: Vec<_> = self.entries.iter().map(|entry| entry.name).collect();
            let (seam, names) = (self.seam, names.join(", "));
            UnknownPolicy::new(format!("unknown {seam} `{name}`, expected one of: {names}"))
        })?;
        entry.make(parameters)
    }
}

/// There is no such policy, or not with these parameters. The text lists the valid ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownPolicy(String);

impl UnknownPolicy {
    /// An error that says `text`.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// The parameters of a text: `name=value`, separated by commas. The first may be a value alone, if
/// the policy says which parameter that is.
#[derive(Debug)]
pub struct Parameters<'a> {
    named: BTreeMap<&'a str, &'a str>,
    unnamed: Option<&'a str>,
}

/// The units of rates, in bits per second.
const RATE_UNITS: [(&str, f64); 4] = [("gbit", 1e9), ("mbit", 1e6), ("kbit", 1e3), ("bit", 1.0)];

fn is_no_pair(text: &str) -> UnknownPolicy {
    UnknownPolicy(format!("`{text}` is not of the form name=value"))
}

impl<'a> Parameters<'a> {
    fn parse(text: &'a str) -> Result<Self, UnknownPolicy> {
        let (mut named, mut unnamed) = (BTreeMap::new(), None);
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        for (index, part) in parts.enumerate() {
            match part.split_once('=') {
                Some((name, value)) => {
                    named.insert(name.trim(), value.trim());
                }
                None if index == 0 => unnamed = Some(part),
                None => return Err(is_no_pair(part)),
            }
        }
        Ok(Self { named, unnamed })
    }

    /// Makes a value without a name, if there is one, the value of the parameter `name`.
    pub fn first_is(&mut self, name: &'a str) {
        if let Some(value) = self.unnamed.take_if(|_| !self.named.contains_key(name)) {
            self.named.insert(name, value);
        }
    }

    /// Takes the value of a parameter, if it has one.
    pub fn take(&mut self, name: &str) -> Option<&'a str> {
        self.named.remove(name)
    }

    /// Takes a parameter that is a rate, such as `20mbit` or `1.5gbit`, in bits per second. The
    /// prefixes are decimal.
    ///
    /// # Errors
    /// The value is not a rate, or less than a bit per second.
    pub fn rate(&mut self, name: &str) -> Result<Option<u64>, UnknownPolicy> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let text = value.to_ascii_lowercase();
        let unit =
            RATE_UNITS.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)));
        let bits = unit.and_then(|(number, size)| Some(number.trim().parse::<f64>().ok()? * size));
        match bits.filter(|bits| (1.0..1e18).contains(bits)) {
            Some(bits) => Ok(Some(bits.round() as u64)),
            None => Err(UnknownPolicy(format!("{name}: `{value}` is not a rate such as 20mbit"))),
        }
    }

    /// Takes a parameter that is a number.
    ///
    /// # Errors
    /// The value is not a number of that type.
    pub fn number<T: FromStr>(&mut self, name: &str, default: T) -> Result<T, UnknownPolicy> {
        let Some(value) = self.take(name) else { return Ok(default) };
        value.parse().map_err(|_| UnknownPolicy(format!("{name}: `{value}` is not a number")))
    }

    /// Takes a parameter that is `on` or `off`.
    ///
    /// # Errors
    /// Its value is neither.
    pub fn switch(&mut self, name: &str, default: bool) -> Result<bool, UnknownPolicy> {
        match self.take(name) {
            None => Ok(default),
            Some("on") => Ok(true),
            Some("off") => Ok(false),
            Some(value) => Err(UnknownPolicy(format!("{name}: `{value}` is neither on nor off"))),
        }
    }

    /// Takes a parameter that is a time in milliseconds, with or without the unit: `25ms`.
    ///
    /// # Errors
    /// Its value is none.
    pub fn millis(&mut self, name: &str, default: Duration) -> Result<Duration, UnknownPolicy> {
        let Some(value) = self.take(name) else { return Ok(default) };
        let number = value.strip_suffix("ms").unwrap_or(value).parse().ok();
        number.map(Duration::from_millis).ok_or_else(|| {
            UnknownPolicy(format!("{name}: `{value}` is not a number of milliseconds"))
        })
    }

    /// Refuses parameters that the policy did not take.
    fn finish(self, policy: &str, known: &str) -> Result<(), UnknownPolicy> {
        if let Some(text) = self.unnamed {
            return Err(is_no_pair(text));
        }
        let Some(name) = self.named.keys().next() else { return Ok(()) };
        let known = if known.is_empty() { "none" } else { known };
        Err(UnknownPolicy(format!("`{policy}` has no parameter `{name}` (it has: {known})")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Entry<str> =
        Entry::with_parameters("hold", "holds", "time=5ms,times=1,why=so", |parameters| {
            let time = parameters.millis("time", Duration::from_millis(5))?;
            let times = parameters.number::<u32>("times", 1)?;
            Ok(format!("{times} times {time:?} {}", parameters.take("why").unwrap_or("so")).into())
        });

    const RUN: Entry<str> =
        Entry::<str>::with_parameters("run", "runs", "pace=5bit", |parameters| {
            parameters.first_is("pace");
            let pace = parameters.rate("pace")?.ok_or_else(|| UnknownPolicy::new("how fast?"))?;
            Ok(format!("at {pace}").into())
        })
        .needing_parameters();

    fn registry() -> Registry<str> {
        Registry::new("verb", &[HOLD, RUN, Entry::made("go", "goes", "gone".into())])
    }

    #[test]
    fn parameters_are_read_or_refused() {
        let made = |text| registry().find(text).map(|made| made.to_string());
        assert_eq!(made("hold"), Ok("1 times 5ms so".to_owned()));
        assert_eq!(made("hold: time = 7,why=x y,"), Ok("1 times 7ms x y".to_owned()));
        assert_eq!(made("hold:time=7ms, times=2"), Ok("2 times 7ms so".to_owned()));
        assert_eq!(made("go"), Ok("gone".to_owned()));
        for (text, error) in [
            ("stay:x", "unknown verb `stay`, expected one of: hold, run, go"),
            ("hold:time", "`time` is not of the form name=value"),
            ("hold:time=-1", "time: `-1` is not a number of milliseconds"),
            ("hold:times=x", "times: `x` is not a number"),
            ("hold:x=1", "`hold` has no parameter `x` (it has: time=5ms,times=1,why=so)"),
            ("go:x=1", "`go` has no parameter `x` (it has: none)"),
        ] {
            assert_eq!(made(text).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn one_parameter_may_go_without_its_name() {
        let made = |text| registry().find(text).map(|made| made.to_string());
        for (text, pace) in [
            ("run:20mbit", 20_000_000),
            ("run:pace=1.5Gbit", 1_500_000_000),
            ("run: 64 kbit", 64_000),
            ("run:1bit", 1),
        ] {
            assert_eq!(made(text), Ok(format!("at {pace}")), "{text}");
        }
        for (text, error) in [
            ("run", "how fast?"),
            ("run:20", "pace: `20` is not a rate such as 20mbit"),
            ("run:0mbit", "pace: `0mbit` is not a rate such as 20mbit"),
            ("run:-1mbit", "pace: `-1mbit` is not a rate such as 20mbit"),
            ("run:1e30gbit", "pace: `1e30gbit` is not a rate such as 20mbit"),
            ("run:nanbit", "pace: `nanbit` is not a rate such as 20mbit"),
            ("run:20mbit,pace=3mbit", "`20mbit` is not of the form name=value"),
            ("run:pace=3mbit,20mbit", "`20mbit` is not of the form name=value"),
        ] {
            assert_eq!(made(text).unwrap_err().to_string(), error, "{text}");
        }
    }

    #[test]
    fn an_entry_takes_the_place_of_another_of_its_name() {
        let entry = |name| Entry::made(name, "is there", name.into());
        let registry = registry().with([entry("go"), entry("come")]);
        let names: Vec<_> = registry.entries().iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["hold", "run", "go", "come"]);
        assert_eq!(registry.find("go").as_deref(), Ok("go"));
    }
}
