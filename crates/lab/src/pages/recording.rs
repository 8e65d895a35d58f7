//! A page load as a browser recorded it, and the properties derived from the recording.
//!
//! The properties that the schemes go by are derived from Chrome's recording: a script with high priority is
//! in the head, a script with medium priority is behind the first image, a script with low priority is
//! `async`, `defer` or injected; a style sheet with very high priority is in the head. Loads without
//! priorities: a script that a script asked for is deferred, and resources that start later than the first
//! image are behind it. Above the fold are the document, style sheets and scripts of the head, fonts, and the
//! images that the browser reported in the viewport, or else the first large one.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;
use sutura_research::marx::{Kind, Resource};

use super::corpus::{MAX_PAGE, PageError};
use super::page::{Page, PageResource, Trigger};

/// The smallest image that may count as the main image of the page, in bytes.
const HERO: u64 = 10_000;
/// The size of a resource if no size of a resource of its type is known, in bytes.
const UNKNOWN: u64 = 1000;
/// The latest time of a recording, in milliseconds: a day.
const MAX_TIME: f64 = 86_400_000.0;

/// Which times of a recording are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// None: a resource is requested as soon as the resource that names it has arrived, or as much of
    /// it as in the recording. A resource that no known resource names waits for the document.
    #[default]
    Dependencies,
    /// Also the time from the end of the resource that names it to the request. It includes the browser's
    /// computations and other reasons to wait, such as other hosts.
    Recorded,
}

#[derive(Deserialize)]
pub(super) struct Header {
    pub id: String,
}

/// A page load as the corpus has it.
#[derive(Deserialize)]
pub(super) struct RecordedPage {
    pub page: Header,
    pub res: Vec<Recorded>,
}

/// A resource as the corpus has it.
#[derive(Default, Deserialize)]
pub(super) struct Recorded {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub mime: String,
    /// Start and end in milliseconds.
    #[serde(default)]
    pub t: f64,
    pub e: Option<f64>,
    /// When the first byte came, in milliseconds on the clock of `t` and `e`.
    pub ttfb: Option<f64>,
    pub st: Option<u16>,
    pub wire: Option<u64>,
    pub body: Option<u64>,
    pub parent: Option<usize>,
    pub how: Option<String>,
    /// Milliseconds from the parent's start.
    pub dps: Option<f64>,
    /// Whether the parent was not complete.
    pub during: Option<bool>,
    pub prio: Option<String>,
    pub prio0: Option<String>,
    pub viewport: Option<u8>,
    pub lcp: Option<u8>,
    /// Synthetic pages: when it is asked for, and whether it is critical and above the fold.
    pub when: Option<String>,
    pub crit: Option<u8>,
    pub atf: Option<u8>,
}

impl Recorded {
    fn kind(&self) -> Kind {
        match self.kind.as_str() {
            "html" => Kind::Html,
            "css" => Kind::Css,
            "js" => Kind::Js,
            "font" => Kind::Font,
            "image" if Kind::from_mime(&self.mime) == Kind::Svg => Kind::Svg,
            "image" => Kind::Image,
            "xhr" => Kind::Xhr,
            "media" => Kind::Video,
            _ => Kind::Other,
        }
    }

    /// The bytes of the response: on the wire if known, else decoded.
    fn size(&self) -> Option<u64> {
        self.wire.filter(|&wire| wire > 0).or(self.body.filter(|&body| body > 0))
    }

    fn priority(&self) -> Option<&str> {
        self.prio0.as_deref().or(self.prio.as_deref())
    }

    fn is_image(&self) -> bool {
        matches!(self.kind(), Kind::Image | Kind::Svg)
    }
}

impl RecordedPage {
    /// The page load, if it can be loaded.
    pub(super) fn page(self, timing: Timing) -> Result<Page, PageError> {
        if self.res.is_empty() {
            return Err(PageError::Empty(self.page.id));
        }
        for (index, recorded) in self.res.iter().enumerate() {
            if recorded.parent.is_some_and(|parent| parent >= index) {
                return Err(PageError::Order { page: self.page.id, index });
            }
            let times = [Some(recorded.t), recorded.e];
            if !times.iter().flatten().all(|time| (0.0..=MAX_TIME).contains(time)) {
                return Err(PageError::Time { page: self.page.id, index });
            }
        }
        let medians = self.medians();
        let main = self.main();
        let heroes = self.heroes();
        let first_image = self.res.iter().find(|r| r.is_image()).map_or(f64::MAX, |r| r.t);
        let known = |r: &Recorded| r.size().or(medians.get(r.kind.as_str()).copied());
        let resources = self.res.iter().enumerate().map(|(index, recorded)| PageResource {
            bytes: known(recorded).unwrap_or(UNKNOWN),
            resource: describe(recorded, index == main, heroes.contains(&index), first_image),
            trigger: self.trigger(recorded, index, main, timing),
        });
        let resources: Vec<PageResource> = resources.collect();
        let bytes = resources.iter().fold(0, |sum: u64, r| sum.saturating_add(r.bytes));
        if bytes > MAX_PAGE {
            return Err(PageError::Size(self.page.id));
        }
        Ok(Page { resources, id: self.page.id })
    }

    /// Of each type, the median of the sizes that are known.
    fn medians(&self) -> BTreeMap<&str, u64> {
        let mut sizes: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for recorded in &self.res {
            sizes.entry(&recorded.kind).or_default().extend(recorded.size());
        }
        let median = |mut sizes: Vec<u64>| {
            sizes.sort_unstable();
            sizes.get(sizes.len() / 2).copied()
        };
        sizes.into_iter().filter_map(|(kind, sizes)| Some((kind, median(sizes)?))).collect()
    }

    /// The document: the first document that is no redirection.
    fn main(&self) -> usize {
        let is_document =
            |r: &Recorded| r.kind() == Kind::Html && r.st.is_none_or(|st| st / 100 == 2);
        self.res.iter().position(is_document).unwrap_or(0)
    }

    /// The images that are seen first: the images known to be in the viewport, or else the first large one.
    fn heroes(&self) -> BTreeSet<usize> {
        let images = || self.res.iter().enumerate().filter(|(_, r)| r.is_image());
        let is_seen = |r: &Recorded| [r.viewport, r.lcp, r.atf].contains(&Some(1));
        let seen: BTreeSet<usize> = images().filter(|(_, r)| is_seen(r)).map(|(i, _)| i).collect();
        if !seen.is_empty() {
            return seen;
        }
        images().find(|(_, r)| r.size().unwrap_or(0) >= HERO).map(|(i, _)| i).into_iter().collect()
    }

    fn trigger(&self, recorded: &Recorded, index: usize, main: usize, timing: Timing) -> Trigger {
        let kept = |wait: f64| match timing {
            Timing::Dependencies => Duration::ZERO,
            Timing::Recorded => Duration::try_from_secs_f64(wait / 1000.0).unwrap_or_default(),
        };
        let parent = recorded.parent.and_then(|parent| Some((parent, self.res.get(parent)?)));
        let Some((parent, from)) = parent else {
            return match timing {
                Timing::Dependencies if index > main => Trigger::After(main, Duration::ZERO),
                _ => Trigger::Start(kept(recorded.t)),
            };
        };
        match recorded.when.as_deref() {
            Some("during") => return Trigger::During(parent, 0.0),
            Some("layout" | "after") => return Trigger::After(parent, Duration::ZERO),
            _ => {}
        }
        let end = from.e.unwrap_or(from.t).max(from.t);
        if recorded.during == Some(true) && end > from.t {
            let start = recorded.dps.map_or(recorded.t, |dps| from.t + dps);
            // In some recordings the time is outside of the response and means nothing.
            let first_byte = from.ttfb.filter(|ttfb| (from.t..end).contains(ttfb));
            let begin = first_byte.unwrap_or(from.t);
            return Trigger::During(parent, ((start - begin) / (end - begin)).clamp(0.0, 1.0));
        }
        Trigger::After(parent, kept(recorded.t - end))
    }
}

/// The properties of a resource that the schemes know.
fn describe(recorded: &Recorded, main: bool, hero: bool, first_image: f64) -> Resource {
    let kind = recorded.kind();
    let priority = recorded.priority();
    let injected = recorded.how.as_deref().is_some_and(|how| how.starts_with("script"));
    let late = recorded.t > first_image;
    let (in_head, after_first_image, deferred) = match (kind, priority) {
        (Kind::Css, Some(priority)) => (priority == "VeryHigh", false, false),
        (Kind::Css, None) => (!late, false, false),
        (Kind::Js, Some(priority)) => match priority {
            "High" | "VeryHigh" => (recorded.when.as_deref() != Some("after"), false, false),
            "Medium" if recorded.when.is_some() => (true, false, false),
            "Medium" => (false, true, false),
            _ => (false, false, true),
        },
        (Kind::Js, None) => (!injected && !late, !injected && late, injected),
        _ => (false, false, false),
    };
    let derived = main || in_head || kind == Kind::Font;
    let critical = recorded.crit.map_or(derived, |crit| crit == 1);
    Resource {
        kind,
        main,
        in_head,
        after_first_image,
        deferred,
        preload: false,
        critical,
        above_the_fold: recorded.atf.map_or(critical || hero, |atf| atf == 1),
        ..Resource::default()
    }
}
