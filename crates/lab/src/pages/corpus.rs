//! Page loads: which resources, how large, and what asks for each of them.
//!
//! What the schemes go by is derived from what Chrome recorded: a script with high priority is in
//! the head, one with medium priority is behind the first image, one with low priority is `async`,
//! `defer` or injected; a style sheet with very high priority is in the head. Loads without
//! priorities: a script that a script asked for is deferred, and what starts later than the first
//! image is behind it. Above the fold are the document, style sheets and scripts of the head, fonts,
//! and the images that the browser reported in the viewport, or else the first large one.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::time::Duration;

use serde::Deserialize;
use sutura_research::marx::{Kind, Resource};

/// Real page loads, one in a line.
const PAGES: &[u8] = include_bytes!("../../data/pages.jsonl.gz");
/// The synthetic page of Meenan's tests, in which what is seen first is asked for last.
const SYNTHETIC: &str = include_str!("../../data/synthetic_meenan.json");
/// The smallest image that counts as one that people look at, in bytes.
const HERO: u64 = 10_000;
/// The size of a resource where none of its type has a known one, in bytes.
const UNKNOWN: u64 = 1000;

/// The shipped data cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// It does not unpack.
    #[error("the page corpus does not unpack: {0}")]
    Unpack(#[from] std::io::Error),
    /// It is not what it should be.
    #[error("the page corpus does not parse: {0}")]
    Parse(#[from] serde_json::Error),
    /// A page has no resources.
    #[error("page `{0}` has no resources")]
    Empty(String),
    /// A resource does not stand behind the one that names it.
    #[error("page `{page}`: resource {index} stands before the one that names it")]
    Order {
        /// The page.
        page: String,
        /// Where the resource stands.
        index: usize,
    },
}

/// Which times of the recording are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// None: a resource is asked for as soon as what names it has arrived, or so much of it as had
    /// arrived in the recording. What nothing is known to name is named by the whole document.
    #[default]
    Dependencies,
    /// In addition, the time that passed in the recording after the end of what names it. It
    /// contains what the browser computed, and whatever else it waited for, such as other hosts.
    Recorded,
}

/// When a resource is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trigger {
    /// So long after the start.
    Start(Duration),
    /// When this share of the resource with the index has arrived, 0 to 1.
    During(usize, f64),
    /// So long after the resource with the index is complete.
    After(usize, Duration),
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
    /// The real page loads, the smallest first.
    ///
    /// # Errors
    /// The shipped data is broken.
    pub fn corpus(timing: Timing) -> Result<Vec<Self>, CorpusError> {
        Self::read(PAGES, timing)
    }

    /// The synthetic page.
    ///
    /// # Errors
    /// The shipped data is broken.
    pub fn synthetic() -> Result<Self, CorpusError> {
        serde_json::from_str::<RecordedPage>(SYNTHETIC)?.page(Timing::Dependencies)
    }

    /// Reads page loads, one JSON object a line, packed by gzip.
    ///
    /// # Errors
    /// They do not unpack or parse, a page is empty, or a resource is named by a later one.
    pub fn read(packed: impl Read, timing: Timing) -> Result<Vec<Self>, CorpusError> {
        let mut text = String::new();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut text)?;
        let page = |line| serde_json::from_str::<RecordedPage>(line)?.page(timing);
        let mut pages = text.lines().map(page).collect::<Result<Vec<Self>, CorpusError>>()?;
        pages.sort_by_key(Self::bytes);
        Ok(pages)
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
    /// Milliseconds from the start to the first byte.
    #[serde(default)]
    ttfb: Option<f64>,
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
    fn page(self, timing: Timing) -> Result<Page, CorpusError> {
        if self.res.is_empty() {
            return Err(CorpusError::Empty(self.page.id));
        }
        let behind =
            |(index, r): (usize, &Recorded)| r.parent.is_some_and(|parent| parent >= index);
        if let Some(index) = self.res.iter().enumerate().position(behind) {
            return Err(CorpusError::Order { page: self.page.id, index });
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
        Ok(Page { resources: resources.collect(), id: self.page.id })
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

    /// The document: the first one that is no redirection.
    fn main(&self) -> usize {
        let is_document =
            |r: &Recorded| r.kind() == Kind::Html && r.st.is_none_or(|st| st / 100 == 2);
        self.res.iter().position(is_document).unwrap_or(0)
    }

    /// The images that people see first: those known to be in the viewport, else the first large
    /// one.
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
            let first_byte = from.t + from.ttfb.unwrap_or(0.0);
            let begin = if first_byte < end { first_byte } else { from.t };
            return Trigger::During(parent, ((start - begin) / (end - begin)).clamp(0.0, 1.0));
        }
        Trigger::After(parent, kept(recorded.t - end))
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
    use std::io::Write;

    use super::*;

    #[test]
    fn the_corpus_is_what_it_is_said_to_be() {
        for timing in [Timing::Dependencies, Timing::Recorded] {
            let pages = Page::corpus(timing).unwrap();
            assert_eq!(pages.len(), 40);
            assert!(pages.is_sorted_by_key(Page::bytes));
            for page in &pages {
                let count = |of: fn(&Resource) -> bool| {
                    page.resources.iter().filter(|r| of(&r.resource)).count()
                };
                assert_eq!(count(|r| r.main), 1, "{}", page.id);
                assert!(count(|r| r.above_the_fold) > 0, "{}", page.id);
                assert!(page.resources.iter().all(|r| r.bytes > 0), "{}", page.id);
                for (index, resource) in page.resources.iter().enumerate() {
                    match resource.trigger {
                        Trigger::Start(at) => {
                            assert!(timing == Timing::Recorded || at.is_zero());
                        }
                        Trigger::During(parent, share) => {
                            assert!(parent < index && (0.0..=1.0).contains(&share));
                        }
                        Trigger::After(parent, wait) => {
                            assert!(parent < index);
                            assert!(timing == Timing::Recorded || wait.is_zero());
                        }
                    }
                }
            }
            assert!(pages.iter().map(|page| page.resources.len()).sum::<usize>() > 5000);
        }
    }

    #[test]
    fn the_synthetic_page_has_its_four_late_and_important_resources() {
        let page = Page::synthetic().unwrap();
        assert_eq!((page.resources.len(), page.bytes()), (36, 3_477_676));
        let atf = page.resources.iter().filter(|r| r.resource.above_the_fold);
        let atf: Vec<u64> = atf.map(|r| r.bytes).collect();
        assert_eq!(atf, [3379, 50_034, 12_052, 104_484, 100_036]);
    }

    fn packed(text: &str) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(text.as_bytes()).unwrap();
        packer.finish().unwrap()
    }

    fn read(text: &str) -> Result<Vec<Page>, CorpusError> {
        Page::read(&packed(text)[..], Timing::Recorded)
    }

    /// A document that arrives from 100 to 300 ms, a script found in the middle of that, an image
    /// without a size that the script asked for, and an image that belongs to nothing.
    const PAGE: &str = concat!(
        r#"{"page":{"id":"x"},"res":["#,
        r#"{"type":"html","t":0,"ttfb":100,"e":300,"wire":900,"parent":null},"#,
        r#"{"type":"js","t":200,"e":400,"wire":0,"body":70,"parent":0,"dps":200,"during":true,"#,
        r#""prio0":"Low"},"#,
        r#"{"type":"image","t":450,"e":500,"parent":1,"how":"script"},"#,
        r#"{"type":"image","t":600,"e":700,"wire":20000,"parent":null}]}"#,
    );

    #[test]
    fn a_page_is_read_as_the_recording_says() {
        let page = read(PAGE).unwrap().remove(0);
        let ms = Duration::from_millis;
        let triggers: Vec<Trigger> = page.resources.iter().map(|r| r.trigger).collect();
        let expected = [
            Trigger::Start(ms(0)),
            Trigger::During(0, 0.5),
            Trigger::After(1, ms(50)),
            Trigger::Start(ms(600)),
        ];
        assert_eq!(triggers, expected);
        let bytes: Vec<u64> = page.resources.iter().map(|r| r.bytes).collect();
        assert_eq!(bytes, [900, 70, 20_000, 20_000]);
        let [html, js, unknown, hero] = [0, 1, 2, 3].map(|i: usize| page.resources[i].resource);
        assert!(html.main && html.critical && html.above_the_fold);
        assert!(js.deferred && !js.in_head && !js.above_the_fold);
        assert!(!unknown.above_the_fold && hero.above_the_fold && !hero.critical);

        let page = Page::read(&packed(PAGE)[..], Timing::Dependencies).unwrap().remove(0);
        let triggers: Vec<Trigger> = page.resources.iter().skip(2).map(|r| r.trigger).collect();
        assert_eq!(triggers, [Trigger::After(1, ms(0)), Trigger::After(0, ms(0))]);
    }

    #[test]
    fn bad_input_is_an_error() {
        let wrong = |text: &str| read(text).unwrap_err();
        assert!(matches!(Page::read(&b"{}"[..], Timing::Recorded), Err(CorpusError::Unpack(_))));
        let cut = &packed(PAGE)[..40];
        assert!(matches!(Page::read(cut, Timing::Recorded), Err(CorpusError::Unpack(_))));
        assert!(matches!(wrong("page"), CorpusError::Parse(_)));
        assert!(matches!(wrong(r#"{"page":{"id":"x"}}"#), CorpusError::Parse(_)));
        let bytes = PAGE.replace("900", "-900");
        assert!(matches!(wrong(&bytes), CorpusError::Parse(_)));
        let empty = r#"{"page":{"id":"x"},"res":[]}"#;
        assert_eq!(wrong(empty).to_string(), "page `x` has no resources");
        for parent in ["1", "3", "99"] {
            let text = PAGE.replace(r#""parent":0"#, &format!(r#""parent":{parent}"#));
            let error = wrong(&text);
            assert!(matches!(error, CorpusError::Order { index: 1, .. }), "{error}");
        }
        assert_eq!(read("").unwrap(), []);
    }
}
