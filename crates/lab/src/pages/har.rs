//! Page loads as browsers save them: HAR 1.2 (HTTP Archive), with the members that Chrome adds to say who asked for a
//! resource (`_initiator`), how urgently (`_priority`) and for what (`_resourceType`).

use std::collections::BTreeMap;

use serde::Deserialize;
use sutura_research::marx::Kind;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::recording::{Header, Recorded, RecordedPage};

#[derive(Deserialize)]
struct Har {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<HarEntry>,
}

/// A request with its response.
#[derive(Deserialize)]
struct HarEntry {
    #[serde(default)]
    pageref: String,
    #[serde(rename = "startedDateTime")]
    started: String,
    /// Milliseconds from the start to the last byte.
    time: f64,
    request: HarRequest,
    response: HarResponse,
    timings: Option<Timings>,
    #[serde(rename = "_initiator")]
    initiator: Option<Initiator>,
    #[serde(rename = "_resourceType")]
    resource_type: Option<String>,
    #[serde(rename = "_priority")]
    priority: Option<String>,
    #[serde(rename = "_fromCache")]
    from_cache: Option<String>,
}

#[derive(Deserialize)]
struct HarRequest {
    url: String,
}

/// Sizes are -1 where they are not known.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarResponse {
    status: i64,
    #[serde(default)]
    content: HarContent,
    #[serde(default)]
    body_size: i64,
    #[serde(default)]
    headers_size: i64,
    #[serde(rename = "_transferSize")]
    transfer_size: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct HarContent {
    size: i64,
    mime_type: String,
}

/// Milliseconds, or -1 where a phase does not apply. The phases follow each other; `ssl` is a part of `connect`.
#[derive(Deserialize)]
struct Timings {
    blocked: Option<f64>,
    dns: Option<f64>,
    connect: Option<f64>,
    send: f64,
    wait: f64,
}

#[derive(Deserialize)]
struct Initiator {
    #[serde(default, rename = "type")]
    kind: String,
    url: Option<String>,
    stack: Option<Stack>,
}

#[derive(Deserialize)]
struct Stack {
    #[serde(default, rename = "callFrames")]
    frames: Vec<Frame>,
    parent: Option<Box<Self>>,
}

#[derive(Deserialize)]
struct Frame {
    #[serde(default)]
    url: String,
}

/// The page loads of an archive, each with its requests in their order. Requests that the network did not carry, for
/// data in URLs and from the cache, are left out.
///
/// # Errors
/// The text is not JSON, is no archive, or a time in it is none.
pub(super) fn read(text: &[u8]) -> Result<Vec<RecordedPage>, serde_json::Error> {
    use serde::de::Error;
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let Har { log } = serde_json::from_slice(text)?;
    let mut pages: BTreeMap<String, Vec<(i128, HarEntry)>> = BTreeMap::new();
    for entry in log.entries.into_iter().filter(HarEntry::is_carried) {
        let started = OffsetDateTime::parse(&entry.started, &Rfc3339);
        let started = started.map_err(|error| {
            serde_json::Error::custom(format!("startedDateTime `{}`: {error}", entry.started))
        })?;
        let at = started.unix_timestamp_nanos();
        pages.entry(entry.pageref.clone()).or_default().push((at, entry));
    }
    Ok(pages.into_values().map(page).collect())
}

/// Whether a text begins as an archive does.
pub(super) fn is_har(begin: &[u8]) -> bool {
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin).trim_ascii_start();
    let member = begin.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    member.is_some_and(|member| member.starts_with(b"\"log\""))
}

/// The load of these requests, each with its time in nanoseconds.
fn page(mut entries: Vec<(i128, HarEntry)>) -> RecordedPage {
    entries.sort_by_key(|(at, _)| *at);
    let begin = entries.first().map_or(0, |(at, _)| *at);
    // The last request for each address up to here.
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    let (mut resources, mut id) = (Vec::<Recorded>::new(), String::new());
    for (index, (at, entry)) in entries.into_iter().enumerate() {
        let at = (at - begin) as f64 / 1e6;
        let parent = entry.asked_for_by().find_map(|url| known.get(url).copied());
        let during = parent.and_then(|of| resources.get(of)?.e).map(|end| end > at);
        if id.is_empty() {
            id = without_scheme(&entry.request.url).to_owned();
        }
        resources.push(entry.recorded(at, parent, during));
        known.insert(entry.request.url, index);
    }
    RecordedPage { page: Header { id }, res: resources }
}

fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest)
}

impl HarEntry {
    fn is_carried(&self) -> bool {
        let from_cache = self.from_cache.as_ref().is_some_and(|cache| !cache.is_empty());
        let over_http = ["http://", "https://"].iter().any(|of| self.request.url.starts_with(of));
        // A status of 0 is of a request without a response.
        over_http && !from_cache && self.response.status > 0
    }

    /// The addresses of what asked for it, the most direct one first.
    fn asked_for_by(&self) -> impl Iterator<Item = &str> {
        let initiator = self.initiator.as_ref();
        let stacks = std::iter::successors(initiator.and_then(|of| of.stack.as_ref()), |stack| {
            stack.parent.as_deref()
        });
        let frames = stacks.flat_map(|stack| &stack.frames).map(|frame| frame.url.as_str());
        initiator.and_then(|of| of.url.as_deref()).into_iter().chain(frames)
    }

    fn recorded(&self, at: f64, parent: Option<usize>, during: Option<bool>) -> Recorded {
        let known = |bytes: i64| u64::try_from(bytes).ok();
        let HarResponse { status, content, body_size, headers_size, transfer_size } =
            &self.response;
        let with_headers = known(*body_size).map(|body| body + known(*headers_size).unwrap_or(0));
        Recorded {
            kind: self.kind().to_owned(),
            mime: content.mime_type.clone(),
            t: at,
            e: Some(at + self.time.max(0.0)),
            ttfb: self.timings.as_ref().map(|timings| at + timings.first_byte()),
            st: u16::try_from(*status).ok(),
            wire: transfer_size.and_then(known).or(with_headers),
            body: known(content.size),
            parent,
            during,
            how: self.initiator.as_ref().map(|of| of.kind.clone()),
            prio: self.priority.clone(),
            ..Recorded::default()
        }
    }

    /// Its type in the words of a corpus: as Chrome has it, or else by its media type.
    fn kind(&self) -> &'static str {
        match self.resource_type.as_deref() {
            Some("document") => "html",
            Some("stylesheet") => "css",
            Some("script") => "js",
            Some("image") => "image",
            Some("font") => "font",
            Some("xhr" | "fetch") => "xhr",
            Some("media") => "media",
            Some(_) => "other",
            None => match Kind::from_mime(&self.response.content.mime_type) {
                Kind::Html => "html",
                Kind::Css => "css",
                Kind::Js => "js",
                Kind::Image | Kind::Svg => "image",
                Kind::Font => "font",
                Kind::Xhr => "xhr",
                Kind::Video => "media",
                Kind::Other => "other",
            },
        }
    }
}

impl Timings {
    /// Milliseconds from the start to the first byte of the response.
    fn first_byte(&self) -> f64 {
        let phases = [self.blocked, self.dns, self.connect, Some(self.send), Some(self.wait)];
        phases.into_iter().flatten().map(|phase| phase.max(0.0)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{Page, Timing, Trigger};
    use super::*;

    /// A document, a script that it names while it arrives, an image that the script asks for, an image from the
    /// cache, data in a URL, and a request without a response.
    const HAR: &str = r#"
{ "log": { "version": "1.2", "pages": [{"id": "p1", "title": "x"}], "entries": [
 {"pageref": "p1", "startedDateTime": "2026-01-02T03:04:05.500Z", "time": 200.0,
  "request": {"url": "https://example.org/"},
  "response": {"status": 200, "content": {"size": 5000, "mimeType": "text/html; charset=utf-8"},
               "headersSize": 100, "bodySize": 900, "_transferSize": 1100},
  "timings": {"blocked": -1, "dns": 10, "connect": 20, "ssl": 15, "send": 1, "wait": 69, "receive": 100},
  "_initiator": {"type": "other"}, "_resourceType": "document", "_priority": "VeryHigh"},
 {"pageref": "p1", "startedDateTime": "2026-01-02T04:04:05.850+01:00", "time": 50,
  "request": {"url": "https://example.org/a.png"},
  "response": {"status": 200, "content": {"size": 30000, "mimeType": "image/png"}, "headersSize": -1,
               "bodySize": 20000},
  "timings": {"send": 0, "wait": 10, "receive": 40},
  "_initiator": {"type": "script", "stack": {"callFrames": [], "parent": {"callFrames":
    [{"url": "https://example.org/a.js"}]}}}, "_resourceType": "image", "_priority": "Low"},
 {"pageref": "p1", "startedDateTime": "2026-01-02T03:04:05.650Z", "time": 100,
  "request": {"url": "https://example.org/a.js"},
  "response": {"status": 200, "content": {"size": 70, "mimeType": "text/javascript"}, "headersSize": -1,
               "bodySize": -1},
  "_initiator": {"type": "parser", "url": "https://example.org/"}, "_resourceType": "script", "_priority": "Low"},
 {"pageref": "p1", "startedDateTime": "2026-01-02T03:04:05.9Z", "time": 1, "_fromCache": "memory",
  "request": {"url": "https://example.org/b.png"}, "response": {"status": 200}},
 {"pageref": "p1", "startedDateTime": "2026-01-02T03:04:05.9Z", "time": 1,
  "request": {"url": "data:image/png;base64,AA"}, "response": {"status": 200}},
 {"pageref": "p1", "startedDateTime": "2026-01-02T03:04:05.9Z", "time": 1,
  "request": {"url": "https://blocked.example.org/"}, "response": {"status": 0}}
]}}"#;

    fn pages(text: &str) -> Vec<Page> {
        let pages = read(text.as_bytes()).unwrap();
        pages.into_iter().map(|page| page.page(Timing::Recorded).unwrap()).collect()
    }

    #[test]
    fn an_archive_is_read_as_the_browser_saw_it() {
        let [page] = pages(HAR).try_into().unwrap();
        assert_eq!(page.id, "example.org/");
        let seen: Vec<(u64, Trigger)> =
            page.resources.iter().map(|r| (r.bytes, r.trigger)).collect();
        let ms = Duration::from_millis;
        let expected = [
            (1100, Trigger::Start(ms(0))),
            // The document arrives from 100 to 200 ms.
            (70, Trigger::During(0, 0.5)),
            (20_000, Trigger::After(1, ms(100))),
        ];
        assert_eq!(seen, expected);
        assert!(page.resources[0].resource.main && page.resources[1].resource.deferred);
    }

    /// Firefox and others say neither who asked nor how urgently.
    #[test]
    fn without_the_members_of_chrome_the_document_asks_for_all() {
        let text =
            HAR.replace("_initiator", "-").replace("_resourceType", "-").replace("_priority", "-");
        let [page] = pages(&text).try_into().unwrap();
        let kinds: Vec<Kind> = page.resources.iter().map(|r| r.resource.kind).collect();
        assert_eq!(kinds, [Kind::Html, Kind::Js, Kind::Image]);
        assert!(page.resources.iter().all(|r| matches!(r.trigger, Trigger::Start(_))));
    }

    #[test]
    fn loads_of_several_pages_are_told_apart() {
        let text = HAR.replacen("\"pageref\": \"p1\"", "\"pageref\": \"p2\"", 1);
        let ids: Vec<String> = pages(&text).into_iter().map(|page| page.id).collect();
        assert_eq!(ids, ["example.org/a.js", "example.org/"]);
    }

    #[test]
    fn what_is_no_archive_says_where() {
        assert!(
            is_har(b"\xef\xbb\xbf{\n \"log\": {}}") && !is_har(b"{\"page\": 1}") && !is_har(b"{")
        );
        let told = |text: &str| read(text.as_bytes()).err().map(|error| error.to_string()).unwrap();
        assert!(told(r#"{"log": {}}"#).contains("missing field `entries`"));
        let error = told(&HAR.replace("03:04:05.500Z", "now"));
        assert!(error.contains("startedDateTime `2026-01-02Tnow`"), "{error}");
        let error = told(&HAR.replace("\"time\": 200.0,", ""));
        assert!(error.contains("missing field `time` at line"), "{error}");
    }
}
