//! The files of a site, as responses to requests of any HTTP version: ranges, conditions and compressed
//! copies are [`ServeDir`]'s.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::body::Body as _;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue, IF_RANGE, LAST_MODIFIED, RANGE,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, StatusCode, Uri};
use tower_http::services::ServeDir;

use super::cache::CacheRules;
use super::disk::{CHUNK, Disk, Room};
use super::listing;
use super::message::{Reply, status_reply, text_reply};
use super::paths::relative_path;
use crate::content_type;
use crate::failure::Failure;

/// The endings of compressed copies that [`ServeDir`] knows.
const ENDINGS: &[&str] = &[".br", ".gz", ".zst"];

/// The files below a directory.
#[derive(Debug)]
pub struct Files {
    /// Canonical.
    root: Arc<Path>,
    settings: FilesArgs,
    cache: CacheRules,
}

/// What is served beside the files themselves.
#[derive(Debug, Clone, clap::Args)]
pub struct FilesArgs {
    /// Show what is in a directory that has no index.html: as a page, or as JSON to those that accept it
    #[arg(long, help_heading = "Files")]
    listing: bool,
    /// Send compressed copies, which are beside a file with the endings .br, .gz and .zst, to clients that
    /// accept them
    #[arg(long, help_heading = "Files")]
    precompressed: bool,
}

impl Files {
    /// The files below `path`.
    ///
    /// # Errors
    /// It is not a readable directory.
    pub fn below(path: &Path, settings: FilesArgs, cache: CacheRules) -> Result<Self, Failure> {
        let canonical = fs::canonicalize(path)
            .and_then(|canonical| fs::read_dir(&canonical).map(|_| canonical));
        let canonical = canonical
            .map_err(|e| Failure::local(format!("cannot serve {}: {e}", path.display())))?;
        Ok(Self { root: canonical.into(), settings, cache })
    }

    /// The response to a request, whose body is not read.
    pub async fn answer(&self, request: &Parts) -> Reply {
        if !matches!(request.method, Method::GET | Method::HEAD) {
            let mut reply = status_reply(StatusCode::METHOD_NOT_ALLOWED);
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return reply;
        }
        let path = request.uri.path();
        let Some(relative) = relative_path(path) else {
            return status_reply(StatusCode::NOT_FOUND);
        };
        let Some(plain) = plain(request) else { return status_reply(StatusCode::BAD_REQUEST) };
        let endings = if self.settings.precompressed { ENDINGS } else { &[] };
        let room = request.extensions.get::<Room>().cloned().unwrap_or_default();
        let disk = Disk::new(self.root.clone(), room, endings);
        let mut reply = self.open(&disk, plain.clone()).await;
        if is_about_range(&reply) && !is_range_of(request, &reply) {
            let mut whole = plain;
            whole.headers_mut().remove(RANGE);
            reply = self.open(&disk, whole).await;
        }
        if reply.status() == StatusCode::NOT_FOUND && self.settings.listing && path.ends_with('/') {
            let directory = self.root.join(relative);
            if let Some(listing) = listing::reply(&self.root, directory, request).await {
                return listing;
            }
        }
        self.complete(&request.uri, reply)
    }

    /// What the library makes of a request.
    async fn open(&self, disk: &Disk, request: Request<Empty<Bytes>>) -> Reply {
        let files = ServeDir::with_backend(&self.root, disk.clone())
            .with_buf_chunk_size(CHUNK)
            .ignore_multi_range_requests(true);
        let mut files = if self.settings.precompressed {
            files.precompressed_br().precompressed_gzip().precompressed_zstd()
        } else {
            files
        };
        match files.try_call(request).await {
            Ok(reply) => reply.map(|body| body.map_err(Into::into).boxed_unsync()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                status_reply(StatusCode::NOT_FOUND)
            }
            Err(error) => {
                let text = format!("the file cannot be read: {}\n", error.kind());
                text_reply(StatusCode::INTERNAL_SERVER_ERROR, text)
            }
        }
    }

    /// Adds what the library does not know of: media types of ours, how long a response may be kept, and the
    /// status as text of what is no success.
    fn complete(&self, uri: &Uri, mut reply: Reply) -> Reply {
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let (status, kind) = (reply.status(), content_type::guess(target));
        if status.is_success() {
            let charset = if kind.starts_with("text/") { "; charset=utf-8" } else { "" };
            if let Ok(kind) = format!("{kind}{charset}").parse() {
                reply.headers_mut().insert(CONTENT_TYPE, kind);
            }
        }
        if (status.is_success() || status == StatusCode::NOT_MODIFIED)
            && let Some(cache) = self.cache.find(target, kind)
        {
            reply.headers_mut().insert(CACHE_CONTROL, cache.clone());
        }
        let is_failure = status.is_client_error() || status.is_server_error();
        if is_failure && reply.body().is_end_stream() {
            let (head, body) = status_reply(status).into_parts();
            reply.headers_mut().extend(head.headers);
            return reply.map(|_| body);
        }
        reply
    }
}

/// The head of a request, as the library is to see it: of its target the path and the query alone, so that
/// it redirects to nowhere else; and no Range field that is to be ignored (RFC 9110 section 14.2).
fn plain(request: &Parts) -> Option<Request<Empty<Bytes>>> {
    let target = request.uri.path_and_query()?.as_str();
    // Two slashes at the beginning of a redirection would name another server.
    let target: Uri = format!("/{}", target.trim_start_matches('/')).parse().ok()?;
    let mut plain = Request::new(Empty::new());
    *plain.method_mut() = request.method.clone();
    *plain.uri_mut() = target;
    *plain.headers_mut() = request.headers.clone();
    let is_known = |value: &HeaderValue| {
        let unit = value.as_bytes().split(|byte| *byte == b'=').next().unwrap_or_default();
        unit.eq_ignore_ascii_case(b"bytes")
    };
    let ranges = plain.headers().get(RANGE);
    if request.method != Method::GET || !ranges.is_none_or(is_known) {
        plain.headers_mut().remove(RANGE);
    }
    Some(plain)
}

fn is_about_range(reply: &Reply) -> bool {
    matches!(reply.status(), StatusCode::PARTIAL_CONTENT | StatusCode::RANGE_NOT_SATISFIABLE)
}

/// Whether the range is asked for of the file as it is now: otherwise the client wants all of it (RFC 9110
/// section 13.1.5). A weak entity tag is that of no file.
fn is_range_of(request: &Parts, reply: &Reply) -> bool {
    let Some(wanted) = request.headers.get(IF_RANGE) else { return true };
    [ETAG, LAST_MODIFIED].iter().any(|name| reply.headers().get(name) == Some(wanted))
}
