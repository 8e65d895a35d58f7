//! Page loads: which resources, how large, and what asks for each of them.
//!
//! What the schemes go by is derived from what Chrome recorded: a script with high priority is in
//! the head, one with medium priority is behind the first image, one with low priority is `async`,
//! `defer` or injected; a style sheet with very high priority is in the head. Loads without
//! priorities: a script that a script asked for is deferred, and what starts later than the first
//! image is behind it.

use std::collections::BTreeMap;
use std::io::Read;

use serde::Deserialize;
use sutura_schedule::{Kind, Resource};

/// Real page loads, one in a line.
const PAGES: &[u8] = include_bytes!("../../data/pages.jsonl.gz");
/// The synthetic page of Meenan's tests, in which what is seen first is asked for last.
const SYNTHETIC: &str = include_str!("../../data/synthetic_meenan.json");
/// The smallest image that counts as one that people look at, in bytes.
const HERO: u64 = 10_000;
/// From the end of a document to the requests of its layout, in milliseconds.
const LAYOUT: f64 = 20.0;

/// The shipped data cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// It does not unpack.
    #[error("the page corpus does not unpack: {0}")]
    Unpack(#[from] std::io::Error),
    /// It is not what it should be.
    #[error("the page corpus does not parse: {0}")]
    Parse(#[from] serde_json::Error),
}

/// When a resource is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trigger {
    /// So many milliseconds after the start.
    Start(f64),
    /// When this share of the resource with the index has arrived, 0 to 1.
    During(usize, f64),
    /// So many milliseconds after the resource with the index is complete.
    After(usize, f64),
}

/// A resource of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageResource {
    /// What its response takes.
    pub bytes: u64,
    /// What the schemes go by.
    pub resource: Resource,
    /// When it is asked for.
    pub trigger: Trigger,
}

/// A page load.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Its name in the corpus.
    pub id: String,
    /// By index; what a trigger names has a smaller one.
    pub resources: Vec<PageResource>,
}

impl Page {
    /// The real page loads.
    ///
    /// # Errors
    /// The shipped data is broken.
    pub fn corpus() -> Result<Vec<Self>, CorpusError> {
        let mut text = String::new();
        flate2::read::GzDecoder::new(PAGES).read_to_string(&mut text)?;
        let loads = text.lines().map(serde_json::from_str::<RecordedPage>);
        Ok(loads.map(|load| load.map(|load| load.page())).collect::<Result<_, _>>()?)
    }

    /// The synthetic page.
    ///
    /// # Errors
    /// The shipped data is broken.
    pub fn synthetic() -> Result<Self, CorpusError> {
        Ok(serde_json::from_str::<RecordedPage>(SYNTHETIC)?.page())
    }

    /// Bytes of all resources.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.resources.iter().map(|r| r.bytes).sum()
    }
}

#[derive(Deserialize)]
struct Header {
    id: String,
}

#[derive(Deserialize)]
struct RecordedPage {
    page: Header,
    res: Vec<Recorded>,
}

/// A resource as the corpus has it.
#[derive(Deserialize)]
struct Recorded {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    mime: String,
    /// Start and end in milliseconds.
    #[serde(default)]
    t: f64,
    #[serde(default)]
    e: Option<f64>,
    #[serde(default)]
    st: Option<u16>,
    #[serde(default)]
    wire: Option<u64>,
    #[serde(default)]
    body: Option<u64>,
    parent: Option<usize>,
    #[serde(default)]
    how: Option<String>,
    /// Milliseconds from the parent's start.
    #[serde(default)]
    dps: Option<f64>,
    /// Whether the parent was not complete.
    #[serde(default)]
    during: Option<bool>,
    #[serde(default)]
    prio: Option<String>,
    #[serde(default)]
    prio0: Option<String>,
    #[serde(default)]
    viewport: Option<u8>,
    #[serde(default)]
    lcp: Option<u8>,
    /// Synthetic pages: when it is asked for, and whether it is critical and above the fold.
    #[serde(default)]
    when: Option<String>,
    #[serde(default)]
    crit: Option<u8>,
    #[serde(default)]
    atf: Option<u8>,
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
    fn page(self) -> Page {
        let medians = self.medians();
        let heroes = self.heroes();
        let main = self.main();
        let first_image = self.res.iter().find(|r| r.is_image()).map_or(f64::MAX, |r| r.t);
        let resources = self.res.iter().enumerate().map(|(index, recorded)| PageResource {
            bytes: recorded.size().unwrap_or(medians[recorded.kind.as_str()]),
            resource: describe(recorded, index == main, heroes[index], first_image),
            trigger: self.trigger(index),
        });
        Page { resources: resources.collect(), id: self.page.id }
    }

    /// Of each type, the median of the sizes that are known; at least 1.
    fn medians(&self) -> BTreeMap<&str, u64> {
        let mut sizes: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for recorded in &self.res {
            sizes.entry(&recorded.kind).or_default().extend(recorded.size());
        }
        let median = |mut sizes: Vec<u64>| {
            sizes.sort_unstable();
            sizes.get(sizes.len() / 2).copied().unwrap_or(1000)
        };
        sizes.into_iter().map(|(kind, sizes)| (kind, median(sizes))).collect()
    }

    /// The document: the first one that is no redirection.
    fn main(&self) -> usize {
        let is_document =
            |r: &Recorded| r.kind() == Kind::Html && r.st.is_none_or(|st| st / 100 == 2);
        self.res.iter().position(is_document).unwrap_or(0)
    }

    /// The images that people see first: those known to be in the viewport, else the first large
    /// one.
    fn heroes(&self) -> Vec<bool> {
        let is_known = |r: &Recorded| {
            r.is_image() && (r.viewport == Some(1) || r.lcp == Some(1) || r.atf == Some(1))
        };
        if self.res.iter().any(is_known) {
            return self.res.iter().map(is_known).collect();
        }
        let first = self.res.iter().position(|r| r.is_image() && r.size().unwrap_or(0) >= HERO);
        (0..self.res.len()).map(|index| Some(index) == first).collect()
    }

    fn trigger(&self, index: usize) -> Trigger {
        let recorded = &self.res[index];
        let Some(parent) = recorded.parent.filter(|&parent| parent < index) else {
            return Trigger::Start(if index == 0 { 0.0 } else { recorded.t.max(0.0) });
        };
        match recorded.when.as_deref() {
            Some("during") => return Trigger::During(parent, 0.0),
            Some("layout") => return Trigger::After(parent, LAYOUT),
            Some("after") => return Trigger::After(parent, 0.0),
            _ => {}
        }
        let from = &self.res[parent];
        let end = from.e.unwrap_or(from.t).max(from.t);
        if recorded.during == Some(true) && end > from.t {
            let elapsed = recorded.dps.unwrap_or(recorded.t - from.t);
            return Trigger::During(parent, (elapsed / (end - from.t)).clamp(0.0, 1.0));
        }
        Trigger::After(parent, (recorded.t - end).max(0.0))
    }
}

/// What the schemes go by.
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_corpus_is_what_it_is_said_to_be() {
        let pages = Page::corpus().unwrap();
        assert_eq!(pages.len(), 40);
        for page in &pages {
            assert!(page.resources.iter().all(|r| r.bytes > 0), "{}", page.id);
            assert_eq!(page.resources.iter().filter(|r| r.resource.main).count(), 1, "{}", page.id);
            let atf = page.resources.iter().filter(|r| r.resource.above_the_fold).count();
            assert!(atf > 0 && atf <= page.resources.len());
            for (index, resource) in page.resources.iter().enumerate() {
                match resource.trigger {
                    Trigger::Start(at) => assert!(at >= 0.0),
                    Trigger::During(parent, share) => {
                        assert!(parent < index && (0.0..=1.0).contains(&share));
                    }
                    Trigger::After(parent, delay) => assert!(parent < index && delay >= 0.0),
                }
            }
        }
        assert!(pages.iter().map(|page| page.resources.len()).sum::<usize>() > 5000);
    }

    #[test]
    fn the_synthetic_page_has_its_four_late_and_important_resources() {
        let page = Page::synthetic().unwrap();
        assert_eq!((page.resources.len(), page.bytes()), (36, 3_477_676));
        let atf = page.resources.iter().filter(|r| r.resource.above_the_fold);
        let atf: Vec<u64> = atf.map(|r| r.bytes).collect();
        assert_eq!(atf, [3379, 50_034, 12_052, 104_484, 100_036]);
    }
}
