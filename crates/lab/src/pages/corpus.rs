//! Reading page loads: the shipped ones, and files.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::har;
use super::page::Page;
use super::recording::{RecordedPage, Timing};

/// Real page loads, one per line.
const PAGES: &[u8] = include_bytes!("../../data/pages.jsonl.gz");
/// The synthetic page of Meenan's tests, in which the resource that is seen first is requested last.
const SYNTHETIC: &str = include_str!("../../data/synthetic_meenan.json");
/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The longest line, in bytes.
const MAX_LINE: u64 = 4 << 20;
/// The largest corpus after unpacking, in bytes.
const MAX_TEXT: u64 = 256 << 20;
/// The largest number of resources in a corpus.
const MAX_RESOURCES: usize = 200_000;
/// The largest page, in bytes.
pub(super) const MAX_PAGE: u64 = 1 << 30;

/// A corpus cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// The file does not exist, or cannot be unpacked or read.
    #[error("{file}: {error}")]
    Read {
        /// Its path.
        file: String,
        /// The error of the system.
        error: std::io::Error,
    },
    /// A line is not a page that can be loaded.
    #[error("{file}, line {line}: {error}")]
    Line {
        /// Its path.
        file: String,
        /// The line, counted from 1.
        line: usize,
        /// The fault in the line.
        error: PageError,
    },
    /// The file is an archive of a browser that cannot be read.
    #[error("{file}: {error}")]
    Har {
        /// Its path.
        file: String,
        /// The fault.
        error: serde_json::Error,
    },
    /// A page load of an archive cannot be loaded.
    #[error("{file}: {error}")]
    HarPage {
        /// Its path.
        file: String,
        /// The fault.
        error: PageError,
    },
    /// The corpus has no pages.
    #[error("{file}: it has no pages")]
    Empty {
        /// Its path.
        file: String,
    },
}

/// Why a line is not a page that can be loaded.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The line is not JSON, or not a page.
    #[error("column {column}: {problem}")]
    Parse {
        /// Where parsing stopped.
        column: usize,
        /// Why.
        problem: String,
    },
    /// The line is too long.
    #[error("longer than {MAX_LINE} bytes")]
    Length,
    /// The text up to this line is too long.
    #[error("more than {MAX_TEXT} bytes of text up to here")]
    Text,
    /// There are too many resources.
    #[error("more than {MAX_RESOURCES} resources up to here")]
    Resources,
    /// The page has no resources.
    #[error("page `{0}` has no resources")]
    Empty(String),
    /// A resource comes before the resource that names it.
    #[error("page `{page}`: resource {index} does not stand behind its parent")]
    Order {
        /// The page.
        page: String,
        /// Where the resource stands.
        index: usize,
    },
    /// A resource starts or ends before the load, or more than a day after its start.
    #[error("page `{page}`: resource {index} has a time that is not within a day")]
    Time {
        /// The page.
        page: String,
        /// Where the resource stands.
        index: usize,
    },
    /// The page is too large.
    #[error("page `{0}` has more than {MAX_PAGE} bytes")]
    Size(String),
}

impl From<serde_json::Error> for PageError {
    fn from(error: serde_json::Error) -> Self {
        let (column, problem) = (error.column(), error.to_string());
        let place = format!(" at line {} column {column}", error.line());
        let problem = problem.strip_suffix(&place).unwrap_or(&problem).to_owned();
        Self::Parse { column, problem }
    }
}

impl Page {
    /// The page loads that come with this crate, the smallest first.
    ///
    /// # Errors
    /// The shipped data is broken.
    pub fn corpus(timing: Timing) -> Result<Vec<Self>, CorpusError> {
        Self::read(PAGES, "the shipped corpus", timing)
    }

    /// The synthetic page.
    ///
    /// # Errors
    /// The shipped data is broken.
    pub fn synthetic() -> Result<Self, CorpusError> {
        let file = "the synthetic page".to_owned();
        let page = Self::parse(SYNTHETIC.as_bytes(), Timing::Dependencies);
        page.map_err(|error| CorpusError::Line { file, line: 1, error })
    }

    /// The page loads of a file, the smallest first: one JSON object per line, or an archive of a browser (HAR); plain
    /// or compressed with gzip. Blank lines are ignored.
    ///
    /// # Errors
    /// The file cannot be read or unpacked, has no pages, a line is not a page, or a limit is exceeded
    /// (4 MiB per line, 256 MiB of text and 200,000 resources in all).
    pub fn read_file(path: &Path, timing: Timing) -> Result<Vec<Self>, CorpusError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Self::read(file, &name, timing),
            Err(error) => Err(CorpusError::Read { file: name, error }),
        }
    }

    fn read(source: impl Read, name: &str, timing: Timing) -> Result<Vec<Self>, CorpusError> {
        let failed = |error| CorpusError::Read { file: name.to_owned(), error };
        let mut source = BufReader::new(source);
        let is_packed = source.fill_buf().map_err(failed)?.starts_with(&GZIP);
        let mut lines: Box<dyn BufRead> = if is_packed {
            Box::new(BufReader::new(MultiGzDecoder::new(source)))
        } else {
            Box::new(source)
        };
        let mut pages = if har::is_har(lines.fill_buf().map_err(failed)?) {
            Self::archived(lines, name, timing)?
        } else {
            Self::lines(lines, name, timing)?
        };
        if pages.is_empty() {
            return Err(CorpusError::Empty { file: name.to_owned() });
        }
        pages.sort_by_key(Self::bytes);
        Ok(pages)
    }

    /// The page loads of an archive.
    fn archived(source: impl Read, name: &str, timing: Timing) -> Result<Vec<Self>, CorpusError> {
        let file = || name.to_owned();
        let wrong = |error| CorpusError::HarPage { file: file(), error };
        let mut text = Vec::new();
        let read = source.take(MAX_TEXT + 1).read_to_end(&mut text);
        if read.map_err(|error| CorpusError::Read { file: file(), error })? as u64 > MAX_TEXT {
            return Err(wrong(PageError::Text));
        }
        let pages = har::read(&text).map_err(|error| CorpusError::Har { file: file(), error })?;
        if pages.iter().map(|page| page.res.len()).sum::<usize>() > MAX_RESOURCES {
            return Err(wrong(PageError::Resources));
        }
        pages.into_iter().map(|page| page.page(timing).map_err(wrong)).collect()
    }

    /// The page loads of a text with a JSON object in each line.
    fn lines(
        mut lines: impl BufRead,
        name: &str,
        timing: Timing,
    ) -> Result<Vec<Self>, CorpusError> {
        let failed = |error| CorpusError::Read { file: name.to_owned(), error };
        let (mut pages, mut line, mut text) = (Vec::new(), Vec::new(), 0);
        let mut resources = 0;
        for number in 1.. {
            line.clear();
            let read = (&mut lines).take(MAX_LINE + 1).read_until(b'\n', &mut line);
            let read = read.map_err(failed)? as u64;
            text += read;
            let page = match read {
                0 => break,
                _ if read > MAX_LINE => Err(PageError::Length),
                _ if text > MAX_TEXT => Err(PageError::Text),
                _ if line.trim_ascii().is_empty() => continue,
                _ => Self::parse(&line, timing),
            };
            let page = page.and_then(|page| {
                resources += page.resources.len();
                if resources > MAX_RESOURCES { Err(PageError::Resources) } else { Ok(page) }
            });
            let wrong = |error| CorpusError::Line { file: name.to_owned(), line: number, error };
            pages.push(page.map_err(wrong)?);
        }
        Ok(pages)
    }

    fn parse(line: &[u8], timing: Timing) -> Result<Self, PageError> {
        serde_json::from_slice::<RecordedPage>(line)?.page(timing)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use sutura_research::marx::Resource;

    use super::super::page::Trigger;
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
        Page::read(text.as_bytes(), "x.jsonl", Timing::Recorded)
    }

    fn told(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    /// A document that arrives from 100 to 300 ms, a script found in the middle of that, an image
    /// without a size that the script asked for, and an image that no resource names.
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

        let page = Page::parse(PAGE.as_bytes(), Timing::Dependencies).unwrap();
        let triggers: Vec<Trigger> = page.resources.iter().skip(2).map(|r| r.trigger).collect();
        assert_eq!(triggers, [Trigger::After(1, ms(0)), Trigger::After(0, ms(0))]);
    }

    /// The share of a document from 1000 to 1500 ms at which a script at 1400 ms is asked for, by when
    /// the first byte of the document came.
    fn share(ttfb: &str) -> f64 {
        let page = format!(
            r#"{{"page":{{"id":"x"}},"res":[{{"type":"html","t":1000,{ttfb}"e":1500,"parent":null}},{}}}]}}"#,
            r#"{"type":"js","t":1400,"e":1450,"parent":0,"dps":400,"during":true"#
        );
        match read(&page).unwrap()[0].resources[1].trigger {
            Trigger::During(0, share) => share,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_first_byte_is_a_time_since_the_start_of_the_load() {
        assert_eq!(share(r#""ttfb":1300,"#), 0.5);
        // A time outside of the response has no effect.
        for unknown in ["", r#""ttfb":300,"#, r#""ttfb":1500,"#, r#""ttfb":1700,"#] {
            assert_eq!(share(unknown), 0.8, "{unknown}");
        }
    }

    #[test]
    fn plain_and_packed_text_are_the_same_pages() {
        let other = PAGE.replace(r#""id":"x""#, r#""id":"y""#);
        let text = format!("{PAGE}\r\n\n  \n{other}\n");
        let pages = read(&text).unwrap();
        assert_eq!(pages.iter().map(|page| &page.id[..]).collect::<Vec<_>>(), ["x", "y"]);
        // Packed files may follow each other.
        let halves = [packed(&format!("{PAGE}\n")), packed(&other)].concat();
        for packed in [packed(&text), halves] {
            assert_eq!(Page::read(&packed[..], "x.jsonl.gz", Timing::Recorded).unwrap(), pages);
        }
    }

    #[test]
    fn an_archive_of_a_browser_is_a_corpus_too() {
        let har = r#"{"log": {"entries": [{"startedDateTime": "2026-01-02T03:04:05Z", "time": 10,
            "request": {"url": "https://example.org/"},
            "response": {"status": 200, "content": {"mimeType": "text/html"}, "bodySize": 700}}]}}"#;
        let plain = read(har).unwrap();
        assert_eq!((plain.len(), plain[0].bytes(), plain[0].id.as_str()), (1, 700, "example.org/"));
        let packed = packed(har);
        assert_eq!(Page::read(&packed[..], "x.har.gz", Timing::Recorded).unwrap(), plain);
        assert_eq!(told(r#"{"log": {"entries": []}}"#), "x.jsonl: it has no pages");
        assert!(told(r#"{"log": 3}"#).starts_with("x.jsonl: invalid type: integer `3`"));
        let large = har.replace("700", "1073741825");
        assert!(told(&large).contains("more than 1073741824 bytes"), "{}", told(&large));
    }

    #[test]
    fn bad_input_is_an_error_that_says_where() {
        let cut = &packed(PAGE)[..40];
        let error = Page::read(cut, "x", Timing::Recorded).unwrap_err();
        assert!(matches!(error, CorpusError::Read { .. }), "{error}");
        assert_eq!(told("page"), "x.jsonl, line 1: column 1: expected value");
        let text = format!("{PAGE}\n\n{}", r#"{"page":{"id":"x"}}"#);
        assert_eq!(told(&text), "x.jsonl, line 3: column 19: missing field `res`");
        assert!(told(&PAGE.replace("900", "-900")).contains("invalid value: integer `-900`"));
        let empty = r#"{"page":{"id":"x"},"res":[]}"#;
        assert_eq!(told(empty), "x.jsonl, line 1: page `x` has no resources");
        for parent in ["1", "3", "99"] {
            let text = PAGE.replace(r#""parent":0"#, &format!(r#""parent":{parent}"#));
            let error = "x.jsonl, line 1: page `x`: resource 1 does not stand behind its parent";
            assert_eq!(told(&text), error);
        }
        for time in ["-1", "86400001", "1e300"] {
            let text = PAGE.replace("450", time);
            assert!(told(&text).contains("resource 2 has a time that is not within a day"));
        }
        for size in ["1073741824", "18446744073709551615"] {
            assert!(told(&PAGE.replace("20000", size)).contains("more than 1073741824 bytes"));
        }
        for nothing in ["", "\n \n"] {
            assert_eq!(told(nothing), "x.jsonl: it has no pages");
        }
    }

    #[test]
    fn no_input_takes_more_memory_than_there_are_limits() {
        let spaces = " ".repeat(MAX_LINE as usize);
        assert_eq!(
            told(&format!("{PAGE}\n{spaces}{PAGE}")),
            "x.jsonl, line 2: longer than 4194304 bytes"
        );
        // A text without an end is read up to the limit.
        let endless = Page::read(std::io::repeat(b'{'), "x", Timing::Recorded).unwrap_err();
        assert!(matches!(endless, CorpusError::Line { error: PageError::Length, .. }), "{endless}");
        // Packed, which takes little.
        let blank = packed(&format!("{}\n", " ".repeat(1 << 20))).repeat(256);
        let blank = Page::read(&blank[..], "x", Timing::Recorded).unwrap_err().to_string();
        assert_eq!(blank, "x, line 256: more than 268435456 bytes of text up to here");
        let many = vec![r#"{"type":"css","parent":null}"#; 100_000].join(",");
        let many = format!("{}\n", format_args!(r#"{{"page":{{"id":"x"}},"res":[{many}]}}"#));
        assert_eq!(read(&many.repeat(2)).unwrap().len(), 2);
        assert!(told(&many.repeat(3)).ends_with("line 3: more than 200000 resources up to here"));
    }
}
