//! What the user is told on standard error while URLs are fetched.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use rustls::pki_types::CertificateDer;
use sutura::{Connection, certificate_fingerprint};
use webpki::EndEntityCert;

use super::head::Head;
use crate::output;
use crate::stats::peer;

/// Fields whose values are not shown.
const HIDDEN: [&str; 2] = ["authorization", "proxy-authorization"];
/// Most names of a certificate that are shown.
const MAX_NAMES: usize = 8;

/// Tells the user what happens. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Chatter {
    progress: MultiProgress,
    verbose: bool,
    silent: bool,
    finished: Arc<Mutex<Finished>>,
}

/// The URLs that are done.
#[derive(Debug, Default)]
struct Finished {
    /// The index of the URL whose line is the next to be shown.
    next: usize,
    /// Lines behind it, if there is something to be said.
    lines: BTreeMap<usize, Option<String>>,
}

impl Chatter {
    pub fn new(verbose: bool, silent: bool) -> Self {
        let quiet = verbose || silent || !std::io::stderr().is_terminal();
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let progress = MultiProgress::with_draw_target(target);
        Self { progress, verbose, silent, finished: Arc::default() }
    }

    /// A progress bar.
    pub fn bar(&self, template: &str) -> ProgressBar {
        self.progress.add(output::bar(0, template))
    }

    /// Removes all progress bars.
    pub fn clear(&self) {
        let _ = self.progress.clear();
    }

    /// Tells what the user may want to know, though nothing went wrong.
    pub fn note(&self, text: &str) {
        if !self.silent {
            self.progress.suspend(|| output::complain(text));
        }
    }

    /// Tells that the URL with this index is done; what is to be said about it comes in the order of the URLs.
    pub fn done(&self, index: usize, line: Option<String>) {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        let Finished { next, lines } = &mut *finished;
        lines.insert(index, line);
        while let Some(line) = lines.remove(next) {
            *next += 1;
            if let Some(line) = line {
                let _ = self.progress.println(output::clean(&line));
            }
        }
    }

    /// Tells a fact about a connection.
    pub fn fact(&self, text: &str) {
        if self.verbose {
            output::note(&format!("* {text}"));
        }
    }

    /// Tells of a new connection to `name`.
    pub fn connected(&self, name: &str, connection: &Connection, is_verified: bool) {
        if !self.verbose {
            return;
        }
        let alpn = connection.alpn().unwrap_or_default();
        self.fact(&format!(
            "Connected to {name} ({}), QUIC {:?}, ALPN {}",
            peer(connection),
            connection.version(),
            String::from_utf8_lossy(&alpn)
        ));
        match connection.peer_certificates().as_deref() {
            Some([own, chain @ ..]) => self.certificate(own, chain.len(), is_verified),
            Some([]) | None => self.fact("TLS 1.3, session resumed without a certificate"),
        }
    }

    fn certificate(&self, own: &[u8], further: usize, is_verified: bool) {
        let own = CertificateDer::from(own);
        let names = EndEntityCert::try_from(&own).map_or_else(
            |_| String::new(),
            |parsed| parsed.valid_dns_names().take(MAX_NAMES).collect::<Vec<_>>().join(", "),
        );
        let names = if names.is_empty() { "no host name" } else { &names };
        let verified = if is_verified { "trusted" } else { "not verified (--insecure)" };
        self.fact(&format!(
            "TLS 1.3, certificate for {names}, {further} more in its chain, {verified}"
        ));
        self.fact(&format!("Fingerprint {}", hex::encode(certificate_fingerprint(&own))));
    }

    /// Shows the head of a request.
    pub fn request(&self, method: &str, path: &str, authority: &str, fields: &[(String, String)]) {
        if self.verbose {
            let lines = request_lines(method, path, authority, fields);
            lines.iter().for_each(|line| output::note(&format!("> {line}")));
        }
    }

    /// Shows the head of a response.
    pub fn response(&self, response: &Head) {
        if self.verbose {
            let text = String::from_utf8_lossy(&response.as_text()).into_owned();
            text.lines().for_each(|line| output::note(&format!("< {line}")));
        }
    }
}

fn request_lines(
    method: &str,
    path: &str,
    authority: &str,
    fields: &[(String, String)],
) -> Vec<String> {
    let fields = fields.iter().map(|(name, value)| {
        let hidden = HIDDEN.contains(&name.as_str());
        format!("{name}: {}", if hidden { "[not shown]" } else { value })
    });
    let first = [format!("{method} {path} HTTP/3"), format!("host: {authority}")];
    first.into_iter().chain(fields).chain([String::new()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_shown_without_secrets() {
        let fields = [("accept", "*/*"), ("authorization", "Basic c2VjcmV0")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let lines = request_lines("GET", "/a?b", "example.org", &fields);
        let expected = [
            "GET /a?b HTTP/3",
            "host: example.org",
            "accept: */*",
            "authorization: [not shown]",
            "",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn urls_that_are_done_are_told_in_their_order() {
        let chatter = Chatter::new(false, true);
        let waiting = || {
            let finished = chatter.finished.lock().unwrap();
            (finished.next, finished.lines.keys().copied().collect::<Vec<_>>())
        };
        chatter.done(2, Some("c".into()));
        chatter.done(1, None);
        assert_eq!(waiting(), (0, vec![1, 2]));
        chatter.done(0, Some("a".into()));
        assert_eq!(waiting(), (3, vec![]));
    }
}
