//! What the servers of all HTTP versions share.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use sutura::http;
use sutura_research::marx::{Kind, Resource};

use super::access::Log;
use super::files::Files;
use super::message::{Content, Reply, head_only, status_reply};
use super::protect_rule::ProtectRule;
use super::proxy::Proxy;
use super::rules::Rules;
use crate::failure::Failure;

/// A site and how it is served.
#[derive(Debug)]
pub struct Service {
    /// The files, for requests that are not passed on.
    pub files: Option<Files>,
    /// The servers behind this one.
    pub proxy: Option<Arc<Proxy>>,
    pub priorities: Priorities,
    /// The `alt-svc` field of responses over TCP.
    pub alt_svc: Option<HeaderValue>,
    pub log: Arc<Log>,
    /// Whether the scheduler goes by the kinds of resources.
    pub describes: bool,
}

/// Priorities and protections of responses, overriding those of the requests. Those of a file can be read
/// again.
#[derive(Debug)]
pub struct Priorities {
    file: Option<PathBuf>,
    /// What protects responses beside the file's rules: those of the first count before the file, those of the
    /// second after it.
    options: (Vec<ProtectRule>, Option<ProtectRule>),
    current: RwLock<Arc<Rules>>,
}

impl Priorities {
    /// The priorities of a file, if there is one.
    ///
    /// # Errors
    /// It cannot be read, or a line is no rule.
    pub fn new(
        file: Option<PathBuf>,
        options: (Vec<ProtectRule>, Option<ProtectRule>),
    ) -> Result<Self, Failure> {
        let rules = file.as_deref().map(Rules::load).transpose()?.unwrap_or_default();
        Ok(Self { file, options, current: RwLock::new(rules.into()) })
    }

    /// Reads the file again. Responses under way keep what they have.
    ///
    /// # Errors
    /// As for [`new`](Self::new); then nothing changes.
    pub fn reload(&self) -> Result<(), Failure> {
        let Some(file) = &self.file else { return Ok(()) };
        let rules = Rules::load(file)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = rules.into();
        Ok(())
    }

    /// The rules that hold now.
    pub fn rules(&self) -> Arc<Rules> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The settings of HTTP/3 for a new connection, with the protection of responses for which neither a rule
    /// nor the request sets one.
    pub fn config(&self) -> http::Config {
        let (before, after) = &self.options;
        let mut all = http::DefaultProtections::default();
        let rules = self.rules();
        before.iter().chain(rules.protect()).chain(after).for_each(|rule| rule.add_to(&mut all));
        http::Config::default().with_protections(all)
    }
}

impl Service {
    /// Tells clients that come over TCP that HTTP/3 is at this port.
    #[must_use]
    pub fn advertising(self, port: u16) -> Self {
        let alt_svc = HeaderValue::try_from(format!("h3=\":{port}\"; ma=86400")).ok();
        Self { alt_svc, ..self }
    }

    /// Whether clients may ask to speak another protocol over HTTP/2 and 3: with the servers behind this one.
    pub fn has_tunnels(&self) -> bool {
        self.proxy.is_some()
    }

    /// The settings of HTTP/3 for a new connection.
    pub fn http_config(&self) -> http::Config {
        self.priorities.config().with_enable_connect_protocol(self.has_tunnels())
    }

    /// The response to a request from `remote`.
    pub async fn answer(&self, remote: SocketAddr, request: Parts, body: Content) -> Reply {
        let is_head = request.method == Method::HEAD;
        let reply = self.respond(remote, request, body).await;
        if is_head { head_only(reply) } else { reply }
    }

    async fn respond(&self, remote: SocketAddr, request: Parts, body: Content) -> Reply {
        let target = request.uri.path_and_query().map_or("", |target| target.as_str());
        let proxy = self.proxy.as_ref();
        if let Some((proxy, servers)) = proxy.and_then(|all| Some((all, all.find(target)?))) {
            return proxy.answer(servers, remote.ip(), request, body).await;
        }
        match &self.files {
            Some(files) => files.answer(&request).await,
            None => status_reply(StatusCode::NOT_FOUND),
        }
    }

    /// The properties that the scheduler goes by, of a response of type `content_type` to a request for
    /// `target`: its kind by its type, and descriptions in the rules. If the response comes `first` on its
    /// connection and is a document, it is the page's document. `None` if the scheduler goes by no such
    /// properties.
    pub fn resource(&self, target: &str, content_type: &str, first: bool) -> Option<Resource> {
        if !self.describes {
            return None;
        }
        let mut resource = Resource::from_mime(content_type);
        resource.main = first && resource.kind == Kind::Html;
        self.priorities.rules().describe(target, content_type, &mut resource);
        Some(resource)
    }
}
