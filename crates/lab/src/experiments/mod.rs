//! One module per experiment.

/// Declares the experiment of a file, which its `run` runs: its name and its purpose, which [options](Taken) it takes in
/// brackets, and how much of it a [survey](crate::survey) runs: all, if it does not say.
macro_rules! experiment {
    ($name:literal: $about:literal $(($($takes:ident),+))?) => {
        experiment! { $name: $about $(($($takes),+))?, one in 1 takes 5 s }
    };
    (
        $name:literal: $about:literal $(($($takes:ident),+))?,
        one in $one_in:literal takes $seconds:literal s
    ) => {
        pub(super) const EXPERIMENT: $crate::Experiment = $crate::Experiment {
            name: $name,
            about: $about,
            takes: &[$($($crate::Taken::$takes),+)?],
            portion: $crate::experiments::Portion { one_in: $one_in, seconds: $seconds },
            run,
        };
    };
}

mod draw;
mod flec_path;
#[cfg(test)]
mod flec_targets;
mod holzinger_way;
mod marx_figures;
mod paper_path;
mod seeded;

pub use holzinger_way::Way;
pub use paper_path::Channel;

use crate::report::Report;
use crate::{Error, Options};

/// Declares the modules and lists their experiments.
macro_rules! experiments {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*

        /// All experiments.
        pub const EXPERIMENTS: &[Experiment] = &[$($module::EXPERIMENT),*];
    };
}

// A line for each experiment: the name of its file, which has an `experiment!`.
experiments! {
    auto_bulk,
    auto_shared,
    auto_zoo,
    campaign,
    controllers,
    controllers_paths,
    controllers_shared,
    drawings,
    eghbal_2022,
    eghbal_2025,
    eghbal_order,
    fec_bottleneck,
    flec_buffer,
    flec_buffer_design,
    flec_bulk,
    flec_controllers,
    flec_messages,
    flec_messages_design,
    flec_starlink,
    holzinger_bulk,
    holzinger_coding,
    holzinger_http,
    holzinger_page,
    holzinger_stream,
    loss_floor,
    marx_pages,
    marx_link,
    marx_stacks,
    meetings,
    own_paths,
    survival,
    vnc_scenes,
}

/// An experiment by its name.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name.
    pub name: &'static str,
    /// Its purpose, in one line.
    pub about: &'static str,
    /// The options that it takes in addition to the seed and the size.
    pub takes: &'static [Taken],
    /// How much of it a survey of all experiments runs.
    pub portion: Portion,
    /// Runs it.
    pub run: fn(&Options) -> Result<Report, Error>,
}

/// An option that some experiments take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// [`Options::seeds`].
    Seeds,
    /// [`Options::paths`].
    Paths,
    /// [`Options::only`].
    Only,
    /// [`Options::seconds`].
    Seconds,
    /// [`Options::policies`].
    Policies,
    /// [`Options::traces`].
    Traces,
    /// [`Options::pages`].
    Pages,
    /// [`Options::corpus`].
    Corpus,
    /// [`Options::links`].
    Links,
    /// [`Options::apps`].
    Apps,
    /// [`Options::recorded`].
    Recorded,
}

impl Taken {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Seeds,
        Self::Paths,
        Self::Only,
        Self::Seconds,
        Self::Policies,
        Self::Traces,
        Self::Pages,
        Self::Corpus,
        Self::Links,
        Self::Apps,
        Self::Recorded,
    ];

    /// As it is written on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Seeds => "--seeds",
            Self::Paths => "--paths",
            Self::Only => "--only",
            Self::Seconds => "--seconds",
            Self::Policies => "--policy",
            Self::Traces => "--trace",
            Self::Pages => "--pages",
            Self::Corpus => "--corpus",
            Self::Links => "--path",
            Self::Apps => "--app",
            Self::Recorded => "--qlog",
        }
    }

    /// Whether the options have it.
    fn is_given(self, options: &Options) -> bool {
        match self {
            Self::Seeds => options.seeds.is_some(),
            Self::Paths => options.paths.is_some(),
            Self::Only => options.only.is_some(),
            Self::Seconds => options.seconds.is_some(),
            Self::Policies => !options.policies.is_empty(),
            Self::Traces => !options.traces.is_empty(),
            Self::Pages => options.pages.is_some(),
            Self::Corpus => options.corpus.is_some(),
            Self::Links => !options.links.is_empty(),
            Self::Apps => !options.apps.is_empty(),
            Self::Recorded => !options.recorded.is_empty(),
        }
    }

    /// The experiments that take it.
    pub fn takers(self) -> impl Iterator<Item = &'static str> {
        EXPERIMENTS.iter().filter(move |of| of.takes.contains(&self)).map(|of| of.name)
    }
}

impl Experiment {
    /// Whether it takes all options that are given: one that has no effect is a mistake.
    ///
    /// # Errors
    /// It does not take one.
    pub(crate) fn check(&self, options: &Options) -> Result<(), Error> {
        let foreign = |of: &Taken| of.is_given(options) && !self.takes.contains(of);
        let Some(option) = Taken::ALL.into_iter().find(foreign) else { return Ok(()) };
        let takers: Vec<&str> = option.takers().collect();
        let (name, option) = (self.name, option.name());
        Err(Error::NotTaken { name, option, takers: format!("these do: {}", takers.join(", ")) })
    }
}

/// A part of an experiment that is large enough to show what it shows.
#[derive(Clone, Copy, Debug)]
pub struct Portion {
    /// Runs only one in this many repetitions ([`Options::reduce`]).
    pub one_in: u32,
    /// About how many seconds that takes on two processors, for those who wait.
    pub seconds: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_without_effect_is_told() {
        let check = |name: &str, options: &Options| {
            let experiment = EXPERIMENTS.iter().find(|of| of.name == name).unwrap();
            experiment.check(options).map_err(|error| error.to_string())
        };
        assert_eq!(check("marx-pages", &Options::default()), Ok(()));
        let seeds = Options { seeds: Some(3), ..Options::default() };
        assert_eq!(check("flec-bulk", &seeds), Ok(()));
        let error = check("marx-pages", &seeds).unwrap_err();
        assert!(error.starts_with("marx-pages does not take --seeds; these do: auto-bulk, "));
        let apps = Options { apps: vec!["files".to_owned()], ..Options::default() };
        let error = check("auto-zoo", &apps).unwrap_err();
        assert_eq!(error, "auto-zoo does not take --app; these do: own-paths");
    }

    #[test]
    fn every_option_is_taken_by_an_experiment() {
        for option in Taken::ALL {
            assert!(option.takers().count() > 0, "{}", option.name());
        }
    }
}
