//! Fetches a URL: its redirections, and further attempts if the first one fails.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use indicatif::ProgressBar;
use sutura::http;

use super::Fetching;
use super::delivery::{Begun, Delivery, Resumption};
use super::head::Head;
use super::redirect::{Hop, is_redirection};
use super::retry::{is_transient, retry_after};
use super::sink::Target;
use super::transfer::{Asked, Lost, Outgoing, broken, is_too_early};
use crate::failure::{Exit, Failure};
use crate::output;
use crate::url::Url;

/// The style of the bars that show how much has come.
const BAR: &str = "{msg:40!} {bytes:>10}/{total_bytes:10} {bytes_per_sec:>12} {bar:20}";

/// A URL to fetch and its destination.
#[derive(Debug)]
pub struct Job {
    /// Its place on the command line.
    pub index: usize,
    pub url: Url,
    pub target: Target,
    pub delivery: Delivery,
    pub priority: http::Priority,
}

/// A complete response.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    pub status: u16,
    pub bytes: u64,
    /// Time from the request to the response's head.
    pub first_byte: Duration,
    /// Time from the request to the response's end.
    pub total: Duration,
}

/// Why an attempt failed.
#[derive(Debug)]
pub struct Trouble {
    failure: Failure,
    /// Whether another attempt may succeed.
    is_transient: bool,
    /// When the server wants another one.
    retry_after: Option<Duration>,
}

impl Trouble {
    fn transient(failure: Failure) -> Self {
        Self { failure, is_transient: true, retry_after: None }
    }

    /// A connection that does not come about.
    fn unconnected(failure: Failure) -> Self {
        let is_transient =
            matches!(failure.exit, Exit::UnknownHost | Exit::NoConnection | Exit::Broken);
        Self { failure, is_transient, retry_after: None }
    }

    /// An exchange that breaks off; `what` says which.
    fn broken(what: &str, error: &http::Error) -> Self {
        let is_transient = matches!(
            error,
            http::Error::Connection(_)
                | http::Error::Reset(_)
                | http::Error::Stopped(_)
                | http::Error::ZeroRttRejected
                | http::Error::GoingAway
        );
        Self { failure: broken(what, error), is_transient, retry_after: None }
    }

    fn lost(what: &str, lost: Lost) -> Self {
        match lost {
            Lost::Local(failure) => failure.into(),
            Lost::Exchange(error) => Self::broken(what, &error),
        }
    }
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self { failure, is_transient: false, retry_after: None }
    }
}

/// A URL that is being fetched.
#[derive(Debug)]
pub struct Fetch {
    context: Arc<Fetching>,
    job: Job,
    bar: ProgressBar,
    /// Which attempt this is, counted from 0.
    attempt: u16,
    /// The part that this attempt asks for, unless it is the whole.
    resumption: Option<Resumption>,
    /// The heads of the responses of this attempt, to be written before the body.
    heads: Vec<u8>,
}

impl Fetch {
    pub fn new(context: Arc<Fetching>, job: Job) -> Self {
        let bar = context.chatter.bar(BAR);
        bar.set_message(job.url.to_string());
        Self { context, job, bar, attempt: 0, resumption: None, heads: Vec::new() }
    }

    /// Sends the first request of an attempt, waiting until the server permits one more.
    ///
    /// # Errors
    /// No connection comes about, or it is over, or what is to be sent cannot be read.
    pub async fn begin(&mut self) -> Result<Asked, Trouble> {
        self.resumption = self.job.delivery.resumption();
        self.heads.clear();
        self.ask(&self.first_hop()).await
    }

    /// Brings the response to its place, with further attempts if need be.
    ///
    /// # Errors
    /// The response is not a success, does not arrive completely, or cannot be written.
    pub async fn finish(mut self, begun: Result<Asked, Trouble>) -> Result<Outcome, Failure> {
        let mut begun = begun;
        let result = loop {
            let result = match begun {
                Ok(asked) => self.attempt(asked).await,
                Err(trouble) => Err(trouble),
            };
            let trouble = match result {
                Ok(outcome) => break Ok(outcome),
                Err(trouble) if !self.tries_again(&trouble) => break Err(self.explained(trouble)),
                Err(trouble) => trouble,
            };
            let pause = self.context.retry.pause(self.attempt, trouble.retry_after);
            self.attempt += 1;
            self.context.chatter.note(&format!(
                "{}; attempt {} of {} follows in {} s",
                trouble.failure.message,
                u32::from(self.attempt) + 1,
                u32::from(self.context.retry.retry) + 1,
                pause.as_secs_f64()
            ));
            tokio::time::sleep(pause).await;
            begun = self.begin().await;
        };
        self.bar.finish_and_clear();
        let line = result.as_ref().ok().map(|outcome: &Outcome| {
            let (bytes, millis) = (output::bytes(outcome.bytes), output::millis(outcome.total));
            format!("{} {bytes} in {millis:.0} ms", self.job.url)
        });
        self.context.chatter.done(self.job.index, line);
        result
    }

    /// Whether another attempt follows.
    fn tries_again(&self, trouble: &Trouble) -> bool {
        trouble.is_transient
            && self.attempt < self.context.retry.retry
            && self.job.delivery.can_go_on()
            && self.context.template.payload.is_there()
    }

    /// The failure of the last attempt, with the reason why no other one follows, unless the user has it so.
    fn explained(&self, Trouble { mut failure, is_transient, .. }: Trouble) -> Failure {
        if is_transient && self.attempt < self.context.retry.retry {
            let why = if self.job.delivery.can_go_on() {
                "what was sent cannot be read a second time"
            } else {
                "what was written cannot be taken back"
            };
            failure.message += &format!(" (not tried again: {why})");
        }
        failure
    }

    fn first_hop(&self) -> Hop {
        self.context.template.first_hop(self.job.url.clone())
    }

    async fn ask(&self, hop: &Hop) -> Result<Asked, Trouble> {
        let client = self.context.pool.client(&hop.url.authority, self.attempt).await;
        self.ask_on(&client.map_err(Trouble::unconnected)?, hop).await
    }

    async fn ask_on(&self, client: &http::Client, hop: &Hop) -> Result<Asked, Trouble> {
        let template = &self.context.template;
        let body = if hop.sends { template.payload.open().await? } else { None };
        let length = body.as_ref().and_then(|body| body.length);
        let outgoing = Outgoing {
            method: hop.method.clone(),
            authority: template.authority(hop),
            path: hop.url.path.clone(),
            fields: template.fields(hop, length, self.resumption.as_ref()),
            priority: self.job.priority.clone(),
        };
        let Outgoing { method, authority, path, fields, .. } = &outgoing;
        self.context.chatter.request(method, path, authority, fields);
        let asked = Asked::send(client, &outgoing, body, &self.bar).await;
        asked.map_err(|error| Trouble::broken(&hop.url.to_string(), &error))
    }

    /// One attempt: the response at the end of all redirections.
    async fn attempt(&mut self, asked: Asked) -> Result<Outcome, Trouble> {
        let (mut asked, mut hop, mut redirections) = (asked, self.first_hop(), 0);
        loop {
            let response = self.head(&mut asked, &hop).await?;
            self.context.chatter.response(&response);
            if self.context.include {
                self.heads.extend(response.as_text());
            }
            let Some(next) = self.next_hop(&hop, &response, redirections)? else {
                return self.receive(&hop, asked, &response).await;
            };
            // The rest of what was sent there is not needed any more.
            drop(asked);
            asked = self.ask(&next).await?;
            (hop, redirections) = (next, redirections + 1);
        }
    }

    async fn head(&self, asked: &mut Asked, hop: &Hop) -> Result<Head, Trouble> {
        let name = hop.url.to_string();
        let mut response = asked.head().await;
        if is_too_early(&response) && self.context.template.payload.is_there() {
            asked.later().await.map_err(|error| Trouble::broken(&name, &error))?;
            let client = asked.client().clone();
            *asked = self.ask_on(&client, hop).await?;
            response = asked.head().await;
        }
        response.map_err(|lost| Trouble::lost(&name, lost))
    }

    /// Where a response leads, if that is wanted.
    fn next_hop(
        &self,
        hop: &Hop,
        response: &Head,
        redirections: u16,
    ) -> Result<Option<Hop>, Failure> {
        let Some(limit) = self.context.max_redirections else { return Ok(None) };
        let location = response.field("location");
        let Some(location) = location.filter(|_| is_redirection(response.status)) else {
            return Ok(None);
        };
        let failed = |why: &str| Failure::new(Exit::Status, format!("{}: {why}", hop.url));
        if redirections == limit {
            return Err(failed(&format!(
                "status {}, and that is one redirection more than {limit} (--max-redirs)",
                response.status
            )));
        }
        let (home, template) = (&self.job.url.authority, &self.context.template);
        let next = hop.follow(response.status, location, home, template.keeps_method());
        next.map(Some).map_err(|why| failed(&why))
    }

    /// Brings the response to its place.
    async fn receive(
        &mut self,
        hop: &Hop,
        mut asked: Asked,
        response: &Head,
    ) -> Result<Outcome, Trouble> {
        let (start, status) = (asked.start, response.status);
        let first_byte = start.elapsed();
        let outcome = |bytes| Outcome { status, bytes, first_byte, total: start.elapsed() };
        if self.job.delivery.is_complete(response, self.resumption.as_ref()) {
            self.context.chatter.note(&format!("{}: the file is complete already", hop.url));
            return Ok(outcome(0));
        }
        if !(200..300).contains(&status) {
            return Err(self.refused(hop, asked, response).await);
        }
        let begun = self.job.delivery.begin(response, self.resumption.as_ref()).await;
        match begun.map_err(|failure| about(&hop.url, failure))? {
            Begun::Whole => {}
            Begun::Anew => {
                let message = format!("{}: the server sends no parts, so it begins anew", hop.url);
                self.context.chatter.note(&message);
            }
            // There are heads before the first part.
            Begun::Continued => self.heads.clear(),
        }
        let bytes = self.copy(hop, &mut asked, response).await?;
        asked.sent().await?;
        self.job.delivery.finish().await?;
        Ok(outcome(bytes))
    }

    /// Writes the heads and the body; returns the length of the body.
    async fn copy(
        &mut self,
        hop: &Hop,
        asked: &mut Asked,
        response: &Head,
    ) -> Result<u64, Trouble> {
        let length = response.content_length();
        self.bar.set_position(0);
        self.bar.set_length(length.unwrap_or(0));
        self.job.delivery.write_head(&self.heads).await?;
        let mut bytes = 0;
        loop {
            let data = match asked.data().await {
                Ok(Some(data)) => data,
                Ok(None) => break,
                Err(lost) => {
                    self.job.delivery.leave().await;
                    let of = length.map(|length| format!(" of {length}")).unwrap_or_default();
                    let what = format!("{} broke off after {bytes}{of} bytes", hop.url);
                    return Err(Trouble::lost(&what, lost));
                }
            };
            bytes += data.len() as u64;
            self.job.delivery.write(&data).await?;
            self.bar.set_position(bytes);
        }
        // The response to HEAD has the length of a body that is not sent.
        match length {
            Some(length) if length != bytes && hop.method != "HEAD" => {
                self.job.delivery.leave().await;
                let message = format!("{} ended after {bytes} of {length} bytes", hop.url);
                Err(Trouble::transient(Failure::new(Exit::Broken, message)))
            }
            _ => Ok(bytes),
        }
    }

    /// A response that is no success. What the server says about it is written if that is wanted, and no other
    /// attempt follows.
    async fn refused(&mut self, hop: &Hop, mut asked: Asked, response: &Head) -> Trouble {
        let failure = Failure::new(Exit::Status, format!("{}: {}", hop.url, describe(response)));
        let after = response.field("retry-after");
        let mut trouble = Trouble {
            failure,
            is_transient: is_transient(response.status),
            retry_after: after.and_then(|value| retry_after(value, SystemTime::now())),
        };
        if self.tries_again(&trouble) {
            return trouble;
        }
        let is_wanted = self.job.target == Target::Stdout || self.context.content_on_error;
        let begun = if is_wanted { self.job.delivery.begin_failure().await } else { Ok(false) };
        let told = match begun {
            Ok(true) => self.tell_refusal(hop, &mut asked, response).await,
            Ok(false) => {
                let has_content = response.content_length().is_none_or(|length| length > 0);
                if self.job.delivery.is_fresh() && has_content && !is_redirection(response.status) {
                    trouble.failure.message +=
                        " (--content-on-error saves what the server says about it)";
                }
                Ok(())
            }
            Err(failure) => Err(failure.into()),
        };
        told.err().unwrap_or(trouble)
    }

    async fn tell_refusal(
        &mut self,
        hop: &Hop,
        asked: &mut Asked,
        response: &Head,
    ) -> Result<(), Trouble> {
        self.copy(hop, asked, response).await?;
        Ok(self.job.delivery.finish().await?)
    }
}

/// A failure with the URL that it is about, unless it is about a local file.
fn about(url: &Url, failure: Failure) -> Failure {
    match failure.exit {
        Exit::Local => failure,
        exit => Failure::new(exit, format!("{url}: {}", failure.message)),
    }
}

/// Describes a response that is not a success.
fn describe(response: &Head) -> String {
    match response.field("location") {
        Some(location) if is_redirection(response.status) => format!(
            "status {}, moved to {} (-L follows)",
            response.status,
            String::from_utf8_lossy(location)
        ),
        _ => format!("status {}", response.status),
    }
}
