//! Requests and responses of any HTTP version.

use std::error::Error;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Body as _;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

/// Why a body ends early.
pub type BodyError = Box<dyn Error + Send + Sync>;

/// The body of a request or a response.
pub type Content = UnsyncBoxBody<Bytes, BodyError>;

/// A response.
pub type Reply = Response<Content>;

/// A body that is in memory.
pub fn content(bytes: impl Into<Bytes>) -> Content {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A body of nothing.
pub fn empty() -> Content {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A response with its status as text.
pub fn status_reply(status: StatusCode) -> Reply {
    text_reply(status, format!("{status}\n"))
}

/// A response with a plain text.
pub fn text_reply(status: StatusCode, text: String) -> Reply {
    let mut reply = Response::new(content(text));
    *reply.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    reply.headers_mut().insert(CONTENT_TYPE, kind);
    reply
}

/// The response to a HEAD request: what it would be, without its body.
pub fn head_only(reply: Reply) -> Reply {
    let length = reply.body().size_hint().exact().filter(|length| *length > 0);
    let mut reply = reply.map(|_| content(Bytes::new()));
    if let Some(length) = length {
        reply.headers_mut().entry(CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    reply
}
