//! What is in a directory, for people and for programs: the option `--listing`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use hyper::Response;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue, VARY};
use hyper::http::request::Parts;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::StaticFormatDescription;
use time::macros::format_description;
use tokio::task::spawn_blocking;

use super::message::{Reply, content};
use super::paths::{is_hidden, percent_decode};
use crate::output;

/// Most names in a listing.
const MAX_ENTRIES: usize = 10_000;
/// Characters of a name that a link needs not encode.
const IN_LINK: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const WHEN: StaticFormatDescription =
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
const STYLE: &str = "\
:root { color-scheme: light dark; font-family: system-ui, sans-serif }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
table { border-collapse: collapse; width: 100% }
th, td { padding: .25rem .5rem; text-align: left; border-bottom: 1px solid color-mix(in srgb, currentcolor 15%, transparent) }
td:nth-child(n+2), th:nth-child(n+2) { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
a { text-decoration: none } a:hover { text-decoration: underline }";

/// A name in a directory.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// Directories come first.
    is_file: bool,
    name: String,
    length: u64,
    modified: Option<SystemTime>,
}

/// The listing of a directory below `root`; `None` if it is none, or cannot be read.
pub async fn reply(root: &Arc<Path>, directory: PathBuf, request: &Parts) -> Option<Reply> {
    let root = root.clone();
    let (entries, are_all) = spawn_blocking(move || entries(&root, &directory)).await.ok()?.ok()?;
    let path = percent_decode(request.uri.path()).unwrap_or_default();
    let accepts = request.headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    let (kind, text) = if accepts.is_some_and(|kinds| kinds.starts_with("application/json")) {
        let all: Vec<Value> = entries.iter().map(Entry::to_json).collect();
        ("application/json", Value::from(all).to_string())
    } else {
        ("text/html; charset=utf-8", page(&path, &entries, are_all).into_string())
    };
    let mut reply = Response::new(content(text));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    Some(reply)
}

/// The names in a directory that are served, and whether these are all.
fn entries(root: &Path, directory: &Path) -> io::Result<(Vec<Entry>, bool)> {
    let directory = fs::canonicalize(directory)?;
    if !directory.starts_with(root) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut all: Vec<Entry> = Vec::new();
    for found in fs::read_dir(directory)? {
        // A name that is no UTF-8 cannot be asked for.
        let Ok(name) =
            found.as_ref().map_err(drop).and_then(|f| f.file_name().into_string().map_err(drop))
        else {
            continue;
        };
        if is_hidden(&name) {
            continue;
        }
        // Behind symbolic links, which may lead out of the site.
        let Ok(path) = found.and_then(|found| fs::canonicalize(found.path())) else { continue };
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if !path.starts_with(root) || !(metadata.is_dir() || metadata.is_file()) {
            continue;
        }
        if all.len() == MAX_ENTRIES {
            all.sort_unstable();
            return Ok((all, false));
        }
        let modified = metadata.modified().ok();
        all.push(Entry { is_file: metadata.is_file(), name, length: metadata.len(), modified });
    }
    all.sort_unstable();
    Ok((all, true))
}

impl Entry {
    fn slash(&self) -> &'static str {
        if self.is_file { "" } else { "/" }
    }

    /// Relative, so that a site can be shown below any path; the dot keeps a name with a colon from being
    /// taken for a scheme.
    fn link(&self) -> String {
        format!("./{}{}", utf8_percent_encode(&self.name, IN_LINK), self.slash())
    }

    fn when(&self) -> String {
        let when = self.modified.map(OffsetDateTime::from).and_then(|at| at.format(WHEN).ok());
        when.unwrap_or_default()
    }

    fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "type": if self.is_file { "file" } else { "directory" },
            "size": self.is_file.then_some(self.length),
            "modified": self.when(),
            "url": self.link(),
        })
    }
}

fn page(path: &str, entries: &[Entry], are_all: bool) -> Markup {
    let is_root = path.trim_matches('/').is_empty();
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (path) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (path) }
                table {
                    thead { tr { th { "Name" } th { "Size" } th { "Changed (UTC)" } } }
                    tbody {
                        @if !is_root { tr { td { a href="../" { "../" } } td {} td {} } }
                        @for entry in entries {
                            tr {
                                td { a href=(entry.link()) { (entry.name) (entry.slash()) } }
                                td { @if entry.is_file { (output::bytes(entry.length)) } }
                                td { (entry.when()) }
                            }
                        }
                    }
                }
                @if !are_all { p { "There are more than " (MAX_ENTRIES) " names: the others are left out." } }
            }
        }
    }
}
