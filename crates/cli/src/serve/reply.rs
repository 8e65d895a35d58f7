//! The response to a request of any HTTP version.

use hyper::StatusCode;

use super::site::{Found, Resource, Site};

/// A response, with its body if it has one.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    pub fields: Vec<(&'static str, String)>,
    pub body: Option<Resource>,
}

impl Reply {
    /// The response of `site` to a request.
    pub async fn to(site: &Site, method: &str, target: &str) -> Self {
        let mut reply = if !matches!(method, "GET" | "HEAD") {
            Self::error(StatusCode::METHOD_NOT_ALLOWED).with("allow", "GET, HEAD".into())
        } else {
            match site.find(target).await {
                Found::Nothing => Self::error(StatusCode::NOT_FOUND),
                Found::Moved(location) => {
                    Self::error(StatusCode::MOVED_PERMANENTLY).with("location", location)
                }
                Found::Resource(resource) => Self::new(StatusCode::OK, resource),
            }
        };
        if method == "HEAD" {
            reply.body = None;
        }
        reply
    }

    /// A response with its status as text.
    pub fn error(status: StatusCode) -> Self {
        Self::new(status, Resource::text(format!("{status}\n")))
    }

    fn new(status: StatusCode, body: Resource) -> Self {
        let charset = if body.content_type.starts_with("text/") { "; charset=utf-8" } else { "" };
        let fields = vec![
            ("content-type", format!("{}{charset}", body.content_type)),
            ("content-length", body.length.to_string()),
        ];
        Self { status, fields, body: Some(body) }
    }

    fn with(mut self, name: &'static str, value: String) -> Self {
        self.fields.push((name, value));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_head_request_gets_the_fields_without_the_body() {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("index.html"), "<p>home").unwrap();
        let site = Site::directory(scratch.path()).unwrap();
        for (path, status) in [("/", 200), ("/x", 404)] {
            let get = Reply::to(&site, "GET", path).await;
            let head = Reply::to(&site, "HEAD", path).await;
            assert_eq!((get.status, &get.fields), (head.status, &head.fields));
            assert_eq!(get.status, status);
            assert!(get.body.is_some() && head.body.is_none());
        }
        let post = Reply::to(&site, "POST", "/").await;
        assert_eq!(post.status, 405);
        assert!(post.fields.contains(&("allow", "GET, HEAD".into())));
    }
}
