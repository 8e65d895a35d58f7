//! `sutura get`: fetches URLs over HTTP/3.

mod plan;
mod report;
mod sink;
mod transfer;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use sutura::{Connection, http};
use sutura_research::stacks::Preset;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, JoinSet};

use crate::connect::Connector;
use crate::failure::{Exit, Failure};
use crate::fec::Fec;
use crate::interrupt::interrupted;
use crate::output;
use crate::qlog::QlogArgs;
use crate::stats::Statistics;
use crate::transport::TransportArgs;
use crate::trust::TrustArgs;
use crate::url::{Authority, Url};
use report::{ConnectionReport, Report};
use sink::Target;
use transfer::{Asked, Job, Outcome};

/// How often statistics are shown.
const STATS_INTERVAL: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "\
Examples:
  sutura get https://example.org/
  sutura get --out page.html --fec 3,25 https://example.org/
  sutura get --out pages/ --json https://example.org/a.css https://example.org/b.js
  sutura get --stats --fec 3 --out video.mp4 https://example.org/video.mp4
  sutura get --fingerprint 9f86d0...0a08 --priority 'u=1, i' --out - https://localhost:4433/
  sutura get --priority 'u=1, exp_p=(web;u=1)' --priority 'u=5, i, exp_w=0.5' \\
    https://example.org/a.css https://example.org/b.jpg

A response is written under another name and renamed when it is whole. Symbolic links are followed, and
pipes, devices, files with several names (hard links) and files in directories that may not be written are
written in place.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct GetArgs {
    /// URLs to fetch, all at once, over one connection per server; https:// may be left out
    #[arg(required = true, value_name = "URL")]
    urls: Vec<Url>,
    /// Directory or file to write to, or - for standard output [default: the current directory]
    #[arg(short, long, value_name = "DIR|FILE|-")]
    out: Option<PathBuf>,
    /// Priority of the responses (RFC 9218), such as 'u=1, i'; given once for all URLs, or once for
    /// each in their order
    #[arg(long, value_name = "FIELD", default_value = "u=3")]
    priority: Vec<http::Priority>,
    /// Ask for erasure coding: repair symbols on each occasion, and for how many milliseconds they
    /// may be delayed
    #[arg(long, value_name = "BLT[,RDT]")]
    fec: Option<Fec>,
    /// Do not offer erasure coding to the server
    #[arg(long, conflicts_with = "fec")]
    no_fec: bool,
    #[command(flatten)]
    trust: TrustArgs,
    /// Give up on a server that is silent for this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = parse_seconds)]
    timeout: Duration,
    /// Give up on everything after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    max_time: Option<Duration>,
    /// Fetch the first URL of each server alone, and then the others on a second connection, whose first
    /// packets bring their requests (0-RTT), if the server permits that
    #[arg(long)]
    early: bool,
    /// Requests under way at the same time
    #[arg(long, value_name = "N", default_value = "64")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1024))]
    parallel: u16,
    /// Offer the flow control windows of the client with which a stack of 2020 was measured: with
    /// mvfst-alt a response gets a quarter of what all may take, with the others as much as all
    #[arg(long, value_name = "STACK", value_parser = stack)]
    windows_of: Option<&'static Preset>,
    #[command(flatten)]
    transport: TransportArgs,
    #[command(flatten)]
    qlog: QlogArgs,
    /// Show while it runs, and at the end, what is lost on the way and what redundancy does about it
    #[arg(long)]
    stats: bool,
    /// Print times and counters as JSON to standard output
    #[arg(long)]
    json: bool,
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|s| (0.001..=86_400.0).contains(s));
    seconds.map(Duration::from_secs_f64).ok_or("expected 0.001 to 86400 seconds".into())
}

/// The defaults of the stack with this name.
fn stack(name: &str) -> Result<&'static Preset, String> {
    Preset::by_name(name).ok_or_else(|| {
        let names: Vec<_> = Preset::ALL.iter().map(|preset| preset.name).collect();
        format!("expected one of: {}", names.join(", "))
    })
}

/// State shared by all connections.
#[derive(Debug)]
struct Fetching {
    connector: Connector,
    room: Arc<Semaphore>,
    progress: MultiProgress,
    /// Whether to show statistics.
    stats: bool,
    /// Whether to use 0-RTT.
    early: bool,
}

/// A job, the index of its URL on the command line, and its result.
type Done = (usize, Result<Outcome, Failure>);

/// Fetches all URLs.
pub async fn run(args: GetArgs) -> Result<Exit, Failure> {
    let targets = plan::plan(&args.urls, args.out.as_deref())?;
    if args.json && targets.contains(&Target::Stdout) {
        return Err(Failure::usage("--json and --out - both want standard output"));
    }
    let priorities = priorities(&args)?;
    args.qlog.prepare()?;
    let context = Arc::new(Fetching {
        connector: connector(&args)?,
        room: Arc::new(Semaphore::new(args.parallel.into())),
        progress: progress(),
        stats: args.stats,
        early: args.early,
    });
    let late = async {
        match args.max_time {
            Some(limit) => tokio::time::sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let mut fetching = pin!(fetch_all(&args, &context, targets, priorities));
    let result = tokio::select! {
        result = &mut fetching => result,
        result = interrupted() => Err(result.err().unwrap_or_else(Failure::interrupted)),
        () = late => {
            let limit = args.max_time.unwrap_or_default().as_secs_f64();
            Err(Failure::new(Exit::Broken, format!("not done within {limit} s")))
        }
    };
    // The servers must learn of the end in any case. Pending requests are not cancelled one by one,
    // as closing the connection ends them all.
    let _ = context.progress.clear();
    context.connector.close(http::Code::NO_ERROR.0).await;
    let report = result?;
    report.complain();
    if args.stats && !args.json {
        report.tell();
    }
    if args.json {
        output::json(&report.to_json())?;
    }
    Ok(report.exit())
}

async fn fetch_all<'a>(
    args: &'a GetArgs,
    context: &Arc<Fetching>,
    targets: Vec<Target>,
    priorities: Vec<http::Priority>,
) -> Result<Report<'a>, Failure> {
    let mut by_authority: BTreeMap<Authority, Vec<(usize, Job)>> = BTreeMap::new();
    let plan = args.urls.iter().zip(targets).zip(priorities);
    for (index, ((url, target), priority)) in plan.enumerate() {
        let priority = with_protection(priority, args.fec);
        let job = Job { url: url.clone(), target, priority };
        by_authority.entry(url.authority.clone()).or_default().push((index, job));
    }
    let mut servers = JoinSet::new();
    for (authority, jobs) in by_authority {
        servers.spawn(fetch_from(context.clone(), authority, jobs));
    }
    let mut report = Report::new(&args.urls);
    while let Some(server) = servers.join_next().await {
        let connections = server
            .map_err(|e| Failure::new(Exit::Other, format!("a task ended unexpectedly: {e}")))?;
        connections.into_iter().for_each(|(connection, done)| report.add(connection, done));
    }
    Ok(report)
}

fn connector(args: &GetArgs) -> Result<Connector, Failure> {
    let mut transport = args.transport.config(args.timeout);
    if let Some(stack) = args.windows_of {
        stack.apply_to_client(&mut transport);
    }
    if args.no_fec {
        transport.fec = None;
    }
    let config = args.trust.trust().client_config(http::ALPN)?.transport(transport);
    let config = if args.early { config.early_data() } else { config };
    Connector::new(config, args.timeout, &args.qlog, "sutura get")
}

/// Connects, and is ready for requests. If `earlier` is the address of an earlier connection, connects in
/// 0-RTT if possible.
async fn connect(
    context: &Fetching,
    authority: &Authority,
    earlier: Option<SocketAddr>,
) -> Result<http::Client, Failure> {
    let connection = match earlier {
        Some(address) => context.connector.reconnect(authority, address).await?,
        None => context.connector.connect(authority).await?,
    };
    http::Client::new(connection, http::Config::default())
        .await
        .map_err(|e| transfer::broken(&authority.to_string(), &e))
}

/// The priority of each URL.
fn priorities(args: &GetArgs) -> Result<Vec<http::Priority>, Failure> {
    match args.priority.as_slice() {
        [one] => Ok(vec![one.clone(); args.urls.len()]),
        each if each.len() == args.urls.len() => Ok(each.to_vec()),
        some => Err(Failure::usage(format!(
            "{} priorities for {} URLs: give one for all, or one for each",
            some.len(),
            args.urls.len()
        ))),
    }
}

/// A request's priority with the requested protection.
fn with_protection(priority: http::Priority, fec: Option<Fec>) -> http::Priority {
    match fec {
        Some(Fec { burst, delay }) => priority.with_burst(Some(burst)).with_delay(delay),
        None => priority,
    }
}

fn progress() -> MultiProgress {
    let target = if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    MultiProgress::with_draw_target(target)
}

/// The report of a connection, and the outcomes of its URLs.
type Fetched = (ConnectionReport, Vec<Done>);

/// Fetches all URLs of one server.
async fn fetch_from(
    context: Arc<Fetching>,
    authority: Authority,
    mut jobs: Vec<(usize, Job)>,
) -> Vec<Fetched> {
    let others = jobs.split_off(if context.early { 1 } else { jobs.len() });
    let (address, first) = fetch_on(&context, &authority, None, jobs).await;
    let mut all = vec![first];
    if !others.is_empty() {
        all.push(fetch_on(&context, &authority, address, others).await.1);
    }
    all
}

/// Fetches URLs of one server on one connection; returns the server's address. `earlier` is the address of an
/// earlier connection.
async fn fetch_on(
    context: &Arc<Fetching>,
    authority: &Authority,
    earlier: Option<SocketAddr>,
    jobs: Vec<(usize, Job)>,
) -> (Option<SocketAddr>, Fetched) {
    let start = Instant::now();
    let client = match connect(context, authority, earlier).await {
        Ok(client) => client,
        Err(failure) => {
            let done = jobs.iter().map(|(index, _)| (*index, Err(failure.clone()))).collect();
            return (None, (ConnectionReport::failed(authority, failure), done));
        }
    };
    // Including name resolution.
    let took = start.elapsed();
    let connection = client.connection();
    let watching = context.stats.then(|| watch(&context.progress, authority, connection));
    let mut transfers = JoinSet::new();
    let mut done = Vec::new();
    // Requests are sent one after the other, in the order of the URLs.
    for (index, job) in jobs {
        match ask(context, &client, &job).await {
            Ok((permit, asked)) => {
                let (progress, client) = (context.progress.clone(), client.clone());
                transfers.spawn(async move {
                    let result = receive(&progress, &client, asked, &job).await;
                    drop(permit);
                    (index, result)
                });
            }
            Err(failure) => done.push((index, Err(failure))),
        }
    }
    while let Some(transfer) = transfers.join_next().await {
        done.extend(transfer);
    }
    if let Some((bar, task)) = watching {
        task.abort();
        bar.finish_and_clear();
    }
    let report = ConnectionReport::of(authority, connection, took);
    connection.close(http::Code::NO_ERROR.0, b"");
    (Some(connection.remote_address()), (report, done))
}

/// Shows the statistics of a connection below the transfers until the task is aborted.
fn watch(
    progress: &MultiProgress,
    authority: &Authority,
    connection: &Connection,
) -> (ProgressBar, JoinHandle<()>) {
    let bar = progress.add(output::bar(0, "{msg}"));
    let (shown, connection, name) = (bar.clone(), connection.clone(), authority.to_string());
    let task = tokio::spawn(async move {
        let mut earlier = Statistics::of(&connection);
        loop {
            tokio::time::sleep(STATS_INTERVAL).await;
            let now = Statistics::of(&connection);
            shown.set_message(now.live(&name, &earlier).join("\n"));
            earlier = now;
        }
    });
    (bar, task)
}

/// Sends a request, waiting until there is room for it.
async fn ask(
    context: &Fetching,
    client: &http::Client,
    job: &Job,
) -> Result<(OwnedSemaphorePermit, Asked), Failure> {
    let permit = context.room.clone().acquire_owned().await;
    let permit = permit.map_err(|e| Failure::new(Exit::Other, e.to_string()))?;
    Ok((permit, transfer::ask(client, job).await?))
}

async fn receive(
    progress: &MultiProgress,
    client: &http::Client,
    asked: Asked,
    job: &Job,
) -> Result<Outcome, Failure> {
    let style = "{msg:40!} {bytes:>10}/{total_bytes:10} {bytes_per_sec:>12} {bar:20}";
    let bar = progress.add(output::bar(0, style));
    bar.set_message(job.url.to_string());
    let result = transfer::receive(client, asked, job, &bar).await;
    bar.finish_and_clear();
    if let Ok(outcome) = &result {
        let bytes = output::bytes(outcome.bytes);
        let millis = output::millis(outcome.total);
        let _ = progress.println(format!("{} {bytes} in {millis:.0} ms", job.url));
    }
    result
}
