//! The answer to a request, whatever version of HTTP it came in.

use super::site::{Found, Resource, Site};

/// A response, and its body if it has one to send.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub fields: Vec<(&'static str, String)>,
    pub body: Body,
}

/// What follows the header section.
#[derive(Debug)]
pub enum Body {
    Empty,
    Text(String),
    Resource(Resource),
}

impl Reply {
    /// The answer of `site` to a request.
    pub async fn to(site: &Site, method: &str, target: &str) -> Self {
        let head = method == "HEAD";
        if !head && method != "GET" {
            let mut reply = Self::error(405, head);
            reply.fields.push(("allow", "GET, HEAD".into()));
            return reply;
        }
        match site.find(target).await {
            Found::Nothing => Self::error(404, head),
            Found::Moved(location) => {
                let mut reply = Self::error(301, head);
                reply.fields.push(("location", location));
                reply
            }
            Found::Resource(resource) => Self {
                status: 200,
                fields: vec![
                    ("content-type", resource.content_type.into()),
                    ("content-length", resource.length.to_string()),
                ],
                body: if head { Body::Empty } else { Body::Resource(resource) },
            },
        }
    }

    /// A response that says no more than its status.
    pub fn error(status: u16, head: bool) -> Self {
        let text = format!("{status} {}\n", reason(status));
        let fields = vec![
            ("content-type", "text/plain; charset=utf-8".into()),
            ("content-length", text.len().to_string()),
        ];
        Self { status, fields, body: if head { Body::Empty } else { Body::Text(text) } }
    }
}

/// What a status code means (RFC 9110 section 15).
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        431 => "Request Header Fields Too Large",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::site::Synthetic;

    fn site() -> Site {
        let page = Synthetic { content_type: "text/html", length: 7 };
        Site::Synthetic([("/".to_owned(), page)].into())
    }

    #[tokio::test]
    async fn a_head_request_gets_the_fields_without_the_body() {
        let get = Reply::to(&site(), "GET", "/").await;
        let head = Reply::to(&site(), "HEAD", "/").await;
        assert_eq!((get.status, &get.fields), (200, &head.fields));
        assert!(matches!(get.body, Body::Resource(_)));
        assert!(matches!(head.body, Body::Empty));
    }

    #[tokio::test]
    async fn other_methods_and_paths_are_refused() {
        let post = Reply::to(&site(), "POST", "/").await;
        assert_eq!(post.status, 405);
        assert!(post.fields.contains(&("allow", "GET, HEAD".into())));
        assert_eq!(Reply::to(&site(), "GET", "/x").await.status, 404);
        let head = Reply::to(&site(), "HEAD", "/x").await;
        assert_eq!(head.status, 404);
        assert!(matches!(head.body, Body::Empty));
    }
}
