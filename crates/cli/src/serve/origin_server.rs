//! The servers behind this one: which there are, and which of them answer.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::Uri;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};
use tokio::time::Instant;

use super::pattern::{Candidate, Pattern};
use crate::content_type;

/// The sign between a pattern and a server.
const ARROW: &str = "=>";
const SYNTAX: &str = "expected a server such as http://localhost:8080, or a pattern and a server, such as \
                      '/api/* => http://localhost:8080'";
/// How long a server that did not answer is left alone if another can do its work.
const PAUSE: Duration = Duration::from_secs(10);

/// A server behind this one, for requests that a pattern is about, or for all: the option `--to`.
#[derive(Debug, Clone)]
pub struct ToRule {
    pattern: Option<Pattern>,
    /// The pattern as it was written, by which servers of the same requests know each other.
    text: String,
    authority: Authority,
}

impl FromStr for ToRule {
    type Err = String;

    fn from_str(rule: &str) -> Result<Self, Self::Err> {
        let (pattern, server) = match rule.split_once(ARROW) {
            Some((pattern, server)) => (pattern.trim(), server.trim()),
            None => ("", rule.trim()),
        };
        let uri: Uri = server.parse().map_err(|_| SYNTAX)?;
        match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => {}
            Some(scheme) if *scheme == Scheme::HTTPS => {
                return Err(format!(
                    "{server}: a server behind this one is spoken to by http:// only"
                ));
            }
            _ => return Err(SYNTAX.into()),
        }
        if uri.path_and_query().is_some_and(|path| path != "/") {
            return Err(format!(
                "{server}: paths are passed on as they are, and a server has none"
            ));
        }
        let authority = uri.authority().cloned().ok_or(SYNTAX)?;
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(SYNTAX.into());
        }
        let parsed = (!pattern.is_empty()).then(|| Pattern::parse(pattern)).transpose()?;
        Ok(Self { pattern: parsed, text: pattern.to_owned(), authority })
    }
}

/// A server, and what is known of it.
#[derive(Debug)]
pub struct OriginServer {
    authority: Authority,
    /// What the last health check said.
    healthy: AtomicBool,
    /// When it did not answer, if that was the last that was heard of it.
    silent: Mutex<Option<Instant>>,
}

impl OriginServer {
    /// The URL there of a target, such as that of a request.
    pub fn uri(&self, target: PathAndQuery) -> Option<Uri> {
        let uri = Uri::builder().scheme(Scheme::HTTP).authority(self.authority.clone());
        uri.path_and_query(target).build().ok()
    }

    /// Notes whether it answered a request.
    pub fn note(&self, answered: bool) {
        let silent = (!answered).then(Instant::now);
        *self.silent.lock().unwrap_or_else(PoisonError::into_inner) = silent;
    }

    /// Notes the outcome of a health check. Returns whether that is news.
    pub fn note_health(&self, healthy: bool) -> bool {
        self.healthy.swap(healthy, Relaxed) != healthy
    }

    /// Whether it is likely to answer.
    fn is_up(&self) -> bool {
        let silent = *self.silent.lock().unwrap_or_else(PoisonError::into_inner);
        self.healthy.load(Relaxed) && silent.is_none_or(|since| since.elapsed() >= PAUSE)
    }
}

impl fmt::Display for OriginServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

/// Servers of the same requests, which take turns.
#[derive(Debug)]
struct Group {
    pattern: Option<Pattern>,
    text: String,
    servers: Vec<Arc<OriginServer>>,
    next: AtomicUsize,
}

/// All servers behind this one.
#[derive(Debug)]
pub struct OriginServers(Vec<Group>);

impl OriginServers {
    /// The servers of these rules; those with the same pattern share its requests.
    pub fn new(rules: &[ToRule]) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        for ToRule { pattern, text, authority } in rules {
            let server = Arc::new(OriginServer {
                authority: authority.clone(),
                healthy: AtomicBool::new(true),
                silent: Mutex::default(),
            });
            match groups.iter_mut().find(|group| group.text == *text) {
                Some(group) => group.servers.push(server),
                None => groups.push(Group {
                    pattern: pattern.clone(),
                    text: text.clone(),
                    servers: vec![server],
                    next: AtomicUsize::new(0),
                }),
            }
        }
        Self(groups)
    }

    /// All servers.
    pub fn all(&self) -> impl Iterator<Item = &Arc<OriginServer>> {
        self.0.iter().flat_map(|group| &group.servers)
    }

    /// The servers to try for a request, one after the other: the first pattern that is about it decides, and
    /// those that are likely to answer come first. `None` if the request is for none of them.
    pub fn find(&self, target: &str) -> Option<Vec<Arc<OriginServer>>> {
        let candidate = Candidate::new(target, content_type::guess(target));
        let is_about =
            |group: &&Group| group.pattern.as_ref().is_none_or(|all| all.matches(&candidate));
        let group = self.0.iter().find(is_about)?;
        let turn = group.next.fetch_add(1, Relaxed) % group.servers.len();
        let (after, before) = (&group.servers[turn..], &group.servers[..turn]);
        let mut servers: Vec<_> = after.iter().chain(before).cloned().collect();
        servers.sort_by_key(|server| !server.is_up());
        Some(servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(servers: Option<Vec<Arc<OriginServer>>>) -> Vec<String> {
        servers.unwrap_or_default().iter().map(ToString::to_string).collect()
    }

    fn servers(rules: &[&str]) -> OriginServers {
        let rules: Vec<ToRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
        OriginServers::new(&rules)
    }

    #[tokio::test(start_paused = true)]
    async fn servers_take_turns_and_those_that_answer_come_first() {
        let all = servers(&["/api/* => http://a:1", "/api/* => http://b:2", "/x => http://c"]);
        assert_eq!(names(all.find("/api/q?r")), ["http://a:1", "http://b:2"]);
        assert_eq!(names(all.find("/api/q?r")), ["http://b:2", "http://a:1"]);
        assert_eq!(names(all.find("/x")), ["http://c"]);
        assert!(all.find("/y").is_none());
        let b = all.all().nth(1).unwrap().clone();
        b.note(false);
        for _ in 0..3 {
            assert_eq!(names(all.find("/api/q")), ["http://a:1", "http://b:2"]);
        }
        tokio::time::advance(PAUSE).await;
        let firsts: Vec<_> = (0..2).map(|_| names(all.find("/api/q"))[0].clone()).collect();
        assert!(firsts.contains(&"http://b:2".to_owned()), "{firsts:?}");
        assert!(b.note_health(false) && !b.note_health(false));
        for _ in 0..3 {
            assert_eq!(names(all.find("/api/q")), ["http://a:1", "http://b:2"]);
        }
    }

    #[test]
    fn what_is_no_server_is_an_error_that_shows_one() {
        for (text, why) in [
            ("", "expected a server"),
            ("localhost:8080", "expected a server"),
            ("http://", "expected a server"),
            ("http://u:p@host", "expected a server"),
            ("ftp://a", "expected a server"),
            ("https://a", "by http:// only"),
            ("http://a/path", "a server has none"),
            ("x/* => http://a", "begin with a slash"),
            ("/x =>", "expected a server"),
        ] {
            let error = text.parse::<ToRule>().unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
