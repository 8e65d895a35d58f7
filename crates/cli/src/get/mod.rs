//! `sutura get`: fetches URLs over HTTP/3.

mod args;
mod chatter;
mod delivery;
mod fetch;
mod head;
mod header_line;
mod payload;
mod plan;
mod pool;
mod range;
mod redirect;
mod report;
mod retry;
mod sink;
mod template;
mod through;
mod transfer;

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::connect::Connector;
use crate::failure::{Exit, Failure};
use crate::interrupt::interrupted;
use crate::output;
use crate::trust::Trust;
use crate::url::Url;
pub use args::GetArgs;
use chatter::Chatter;
use delivery::Delivery;
use fetch::{Fetch, Job, Outcome};
use pool::Pool;
use report::Report;
use retry::RetryArgs;
use sink::Target;
use template::Template;

/// State shared by all requests.
#[derive(Debug)]
struct Fetching {
    pool: Pool,
    template: Template,
    chatter: Chatter,
    retry: RetryArgs,
    /// How many redirections to follow; `None` if they are not followed.
    max_redirections: Option<u16>,
    /// Whether heads are written.
    include: bool,
    /// Whether what servers say about failures is saved.
    content_on_error: bool,
    /// Whether to use 0-RTT.
    early: bool,
}

/// A job's index, and its result.
type Done = (usize, Result<Outcome, Failure>);

/// Everything that is known before the first connection.
#[derive(Debug)]
struct Prepared {
    context: Arc<Fetching>,
    urls: Vec<Url>,
    jobs: Vec<Job>,
    /// Requests under way at the same time.
    parallel: u16,
    /// How long everything may take.
    limit: Option<Duration>,
    stats: bool,
    json: bool,
}

/// Fetches all URLs.
pub async fn run(args: GetArgs) -> Result<Exit, Failure> {
    let Prepared { context, urls, jobs, parallel, limit, stats, json } = prepare(args)?;
    let late = async {
        match limit {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let mut fetching = pin!(fetch_all(&context, jobs, parallel));
    let result = tokio::select! {
        result = &mut fetching => result,
        result = interrupted() => Err(result.err().unwrap_or_else(Failure::interrupted)),
        () = late => {
            let limit = limit.unwrap_or_default().as_secs_f64();
            Err(Failure::new(Exit::Broken, format!("not done within {limit} s")))
        }
    };
    // The servers must learn of the end in any case. Pending requests are not cancelled one by one,
    // as closing the connection ends them all.
    context.chatter.clear();
    let connections = if result.is_ok() { context.pool.finish().await } else { Vec::new() };
    context.pool.close().await;
    let report = Report::new(&urls, connections, result?);
    report.complain();
    if stats && !json {
        report.tell();
    }
    if json {
        output::json(&report.to_json())?;
    }
    Ok(report.exit())
}

/// Checks everything that can be checked without a connection.
fn prepare(args: GetArgs) -> Result<Prepared, Failure> {
    args.follow.check()?;
    args.retry.check()?;
    let shows = args.shows();
    let targets = plan::plan(&args.urls, args.save.place(shows), args.save.create_dirs)?;
    let to_stdout = targets.contains(&Target::Stdout);
    if args.show.json && to_stdout {
        let message =
            "--json and the responses (--out -) both want standard output: give --out FILE";
        return Err(Failure::usage(message));
    }
    let priorities = args.priorities()?;
    args.qlog.prepare()?;
    // Responses behind the first one would fill the windows of flow control while they wait for their turn.
    let parallel = if to_stdout { 1 } else { args.reach.parallel };
    let (limit, stats, json) = (args.reach.max_time, args.show.stats, args.show.json);
    let (urls, continue_at) = (args.urls.clone(), args.save.continue_at);
    let context = context(args)?;
    context.template.check(urls.len(), continue_at.is_some())?;
    let urls: Vec<Url> = urls.iter().map(|url| context.template.target_of(url)).collect();
    let is_resumable = !context.template.has_own_range();
    let parts = urls.iter().zip(targets).zip(priorities).enumerate();
    let jobs = parts.map(|(index, ((url, target), priority))| {
        let delivery = Delivery::new(target.clone(), continue_at, is_resumable)?;
        Ok(Job { index, url: url.clone(), target, delivery, priority })
    });
    let jobs = jobs.collect::<Result<Vec<Job>, Failure>>()?;
    Ok(Prepared { context: Arc::new(context), urls, jobs, parallel, limit, stats, json })
}

fn context(args: GetArgs) -> Result<Fetching, Failure> {
    let chatter = Chatter::new(args.show.verbose, args.show.silent);
    let connector = connector(&args, &chatter)?;
    let verifies = args.trust.trust() != Trust::Everybody;
    Ok(Fetching {
        pool: Pool::new(connector, chatter.clone(), args.show.stats, verifies),
        include: args.save.include || args.template.head,
        template: args.template.template()?,
        chatter,
        retry: args.retry,
        max_redirections: args.follow.limit(),
        content_on_error: args.save.content_on_error,
        early: args.reach.early,
    })
}

fn connector(args: &GetArgs, chatter: &Chatter) -> Result<Connector, Failure> {
    let timeout = args.reach.timeout;
    let mut transport = args.transport.config(timeout);
    if let Some(stack) = args.reach.windows_of {
        stack.apply_to_client(&mut transport);
    }
    if args.no_fec {
        transport.fec = None;
    }
    let config = args.trust.trust().client_config(sutura::http::ALPN)?.transport(transport);
    let config = if args.reach.early { config.early_data() } else { config };
    let title = "sutura get";
    let connector = match args.proxy.start(&args.transport, chatter)? {
        None => Connector::new(config, timeout, &args.qlog, title)?,
        Some(proxy) => Connector::through(Box::new(proxy), config, timeout, &args.qlog, title)?,
    };
    let chatter = chatter.clone();
    Ok(connector.dialling(args.dial.clone()).telling(move |text| chatter.fact(text)))
}

/// A job for which there is room.
type Ready = (Job, OwnedSemaphorePermit);

/// Does all jobs, `parallel` at a time. They begin in their order, so that the first one that is not done is under
/// way.
async fn fetch_all(
    context: &Arc<Fetching>,
    jobs: Vec<Job>,
    parallel: u16,
) -> Result<Vec<Done>, Failure> {
    let ended = |e: &dyn std::fmt::Display| {
        Failure::new(Exit::Other, format!("a task ended unexpectedly: {e}"))
    };
    let room = Arc::new(Semaphore::new(parallel.into()));
    let (mut servers, mut queues) = (JoinSet::new(), BTreeMap::new());
    for job in jobs {
        let permit = room.clone().acquire_owned().await.map_err(|e| ended(&e))?;
        let queue = queues.entry(job.url.authority.clone()).or_insert_with(|| {
            let (queue, jobs) = unbounded_channel();
            servers.spawn(fetch_from(context.clone(), jobs));
            queue
        });
        queue.send((job, permit)).map_err(|e| ended(&e))?;
    }
    drop(queues);
    let mut all = Vec::new();
    while let Some(done) = servers.join_next().await {
        all.extend(done.map_err(|e| ended(&e))?);
    }
    Ok(all)
}

/// Does the jobs of one server. Requests are sent one after the other, in the order of the jobs.
async fn fetch_from(context: Arc<Fetching>, mut jobs: UnboundedReceiver<Ready>) -> Vec<Done> {
    let (mut transfers, mut all) = (JoinSet::new(), Vec::new());
    let mut comes_first = context.early;
    while let Some((job, permit)) = jobs.recv().await {
        let (index, authority) = (job.index, job.url.authority.clone());
        let mut fetch = Fetch::new(context.clone(), job);
        let begun = fetch.begin().await;
        transfers.spawn(async move {
            let result = fetch.finish(begun).await;
            drop(permit);
            (index, result)
        });
        if std::mem::take(&mut comes_first) {
            while let Some(done) = transfers.join_next().await {
                all.extend(done);
            }
            context.pool.renew(&authority).await;
        }
    }
    while let Some(done) = transfers.join_next().await {
        all.extend(done);
    }
    all
}
