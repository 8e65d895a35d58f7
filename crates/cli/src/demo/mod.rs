//! `sutura demo`: loads a page over a lossy link, without and with erasure coding.

mod compare;
mod load;
mod page;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde_json::json;
use sutura::{Connection, Endpoint, ServerConfig, TransportConfig, http};
use sutura_link::LinkConfig;
use sutura_relay::{Config, Relay};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::cert::Identity;
use crate::failure::{Exit, Failure};
use crate::fec::Fec;
use crate::get::connect::{Connector, Trust};
use crate::interrupt::interrupted;
use crate::output;
use crate::qlog::QlogArgs;
use crate::serve::h3;
use crate::serve::rules::Rules;
use crate::serve::service::{Log, Service};
use crate::serve::site::Site;
use crate::transport;
use crate::url::Authority;
use compare::{Comparison, Sample};
use page::Page;

/// No further load begins after this time.
const ENOUGH: Duration = Duration::from_secs(60);
/// A load that takes longer is abandoned.
const DEADLINE: Duration = Duration::from_secs(80);
/// The idle timeout of connections.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);

const EXAMPLES: &str = "\
A server, a link and a client run in this process. The page is loaded twice with each seed, over
links that are alike in everything: first without erasure coding, then with it. It takes a minute.

Examples:
  sutura demo
  sutura demo ./public --runs 3
  sutura demo --profile 'paper delay=20ms loss=bern:0.02' --fec 2,10 --cc cubic --json";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Directory with the page to load [default: sizes, types and order of a real page]
    directory: Option<PathBuf>,
    /// The link in both directions, as in `sutura link`. By default, other traffic advances its
    /// loss model, so that bursts of loss are as short for a lone acknowledgement as on a full link
    #[arg(long, value_name = "SPEC", default_value = "paper-background")]
    profile: LinkConfig,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Seeds, each for two loads
    #[arg(long, value_name = "N", default_value = "20")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Repair symbols on each occasion, and for how many milliseconds they may be delayed
    #[arg(long, value_name = "BLT[,RDT]", default_value = "1,25")]
    fec: Fec,
    /// Congestion control: bbr, cubic, newreno, or fixed:RATE as in fixed:20mbit, which yields to
    /// nobody and is for links of your own only
    #[arg(long = "cc", value_name = "NAME", default_value = "bbr", value_parser = transport::congestion)]
    congestion: Arc<dyn sutura::policy::CongestionFactory>,
    #[command(flatten)]
    qlog: QlogArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Loads the page repeatedly, and compares.
pub async fn run(args: Args) -> Result<Exit, Failure> {
    let (page, site) = match &args.directory {
        Some(directory) => (Page::of_directory(directory)?, Site::directory(directory)?),
        None => {
            let page = Page::shipped()?;
            let site = page.site();
            (page, site)
        }
    };
    args.qlog.prepare()?;
    let demo = Demo::start(&args, page, site)?;
    let start = Instant::now();
    let result = tokio::select! {
        result = demo.compare(&args, start) => result,
        result = interrupted() => Err(result.err().unwrap_or_else(Failure::interrupted)),
    };
    demo.progress.finish_and_clear();
    let comparison = result?;
    let loads = comparison.with.0.len();
    if args.json {
        output::json(&json!({
            "page": demo.page.name(),
            "resources": demo.page.len(),
            "bytes": demo.page.size(),
            "link": args.profile.to_string(),
            "seeds": loads,
            "first_seed": args.seed,
            "fec": args.fec.parameters().to_string(),
            "congestion_control": args.congestion.name(),
            "result": comparison.to_json(),
        }))?;
    } else {
        output::line(&format!(
            "{}: {} resources, {}; {loads} loads each, seeds from {}; {}\nlink: {}\nFEC: {}\n\n{}",
            demo.page.name(),
            demo.page.len(),
            output::bytes(demo.page.size()),
            args.seed,
            args.congestion.name(),
            args.profile,
            args.fec.parameters(),
            comparison.table(),
        ))?;
    }
    Ok(Exit::Success)
}

/// A server on loopback, and everything needed to load from it.
#[derive(Debug)]
struct Demo {
    page: Page,
    trust: Trust,
    transport: TransportConfig,
    server: SocketAddr,
    /// The server's end of each connection.
    accepted: tokio::sync::Mutex<mpsc::UnboundedReceiver<Connection>>,
    /// Ends the server's connections when it is dropped.
    _stop: watch::Sender<bool>,
    _tasks: JoinSet<()>,
    progress: ProgressBar,
}

impl Demo {
    fn start(args: &Args, page: Page, site: Site) -> Result<Self, Failure> {
        let identity = Identity::generate()?;
        let fingerprint = identity.chain.first().map(|c| sutura::certificate_fingerprint(c));
        let transport = TransportConfig {
            congestion: args.congestion.clone(),
            redundancy: None,
            max_idle_timeout: Some(IDLE_TIMEOUT),
            ..TransportConfig::default()
        };
        let config = ServerConfig::with_single_cert(identity.chain, identity.key, &[http::ALPN])
            .map_err(|e| Failure::new(Exit::Other, e.to_string()))?
            .transport(transport.clone());
        let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into())
            .map_err(|e| Failure::local(format!("cannot serve on loopback: {e}")))?;
        let server = endpoint
            .local_addr()
            .map_err(|e| Failure::local(format!("cannot serve on loopback: {e}")))?;
        let log = Log { enabled: false };
        let rules = Rules::default();
        let service = Arc::new(Service { site, rules, fec: None, alt_svc: None, log });
        let (stop, stopped) = watch::channel(false);
        let (sender, accepted) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        args.qlog.watch(&endpoint, "sutura demo");
        let accepted_by = move |connection: &Connection| {
            // The receiver has been dropped if the demo is over.
            let _ = sender.send(connection.clone());
        };
        tasks.spawn(h3::accept(endpoint, service, stopped, accepted_by));
        let total = page.size().saturating_mul(2 * u64::from(args.runs));
        Ok(Self {
            page,
            trust: fingerprint.map_or(Trust::Everybody, Trust::Fingerprint),
            transport,
            server,
            accepted: tokio::sync::Mutex::new(accepted),
            _stop: stop,
            _tasks: tasks,
            progress: output::bar(
                total,
                "{msg:24} {bar:40} {bytes:>10}/{total_bytes} {elapsed:>4}",
            ),
        })
    }

    /// Loads with one seed after another, until all are done or the time is up.
    async fn compare(&self, args: &Args, start: Instant) -> Result<Comparison, Failure> {
        let mut comparison = Comparison::default();
        for run in 0..args.runs {
            let seed = args.seed.wrapping_add(run.into());
            let pair = async {
                let without = self.load(args, seed, None).await?;
                let with = self.load(args, seed, Some(args.fec)).await?;
                Ok((without, with))
            };
            let left = DEADLINE.saturating_sub(start.elapsed());
            let (without, with) = match tokio::time::timeout(left, pair).await {
                Ok(pair) => pair?,
                Err(_) if run > 0 => break,
                Err(_) => {
                    let message = "one load takes longer than the demo may; try a faster link";
                    return Err(Failure::new(Exit::Broken, message));
                }
            };
            self.tell(seed, &without, &with);
            comparison.without.0.push(without);
            comparison.with.0.push(with);
            if start.elapsed() >= ENOUGH {
                break;
            }
        }
        Ok(comparison)
    }

    /// Loads the page once, over a fresh link.
    async fn load(&self, args: &Args, seed: u64, fec: Option<Fec>) -> Result<Sample, Failure> {
        let kind = if fec.is_some() { "with FEC" } else { "without FEC" };
        self.progress.set_message(format!("seed {seed}, {kind}"));
        let connector =
            Connector::new(&self.trust, self.transport.clone(), IDLE_TIMEOUT, &args.qlog)?;
        let config = Config::new((Ipv4Addr::LOCALHOST, 0).into(), self.server);
        let relay = Relay::start(&config.link(&args.profile).seed(seed))
            .map_err(|e| Failure::local(format!("cannot relay on loopback: {e}")))?;
        let authority = Authority { host: "127.0.0.1".into(), port: relay.local_addr().port() };
        let connected = connector.connect(&authority).await?;
        let loaded = load::load(&connected.client, &self.page, fec, &self.progress).await?;
        let server = self.accepted.lock().await.recv().await;
        let server = server.map(|connection| connection.stats()).unwrap_or_default();
        let client = connected.client.connection().stats();
        connector.close().await;
        Ok(Sample { loaded, server, client })
    }

    fn tell(&self, seed: u64, without: &Sample, with: &Sample) {
        let [without, with] = [without, with].map(|s| output::millis(s.loaded.page));
        let line = format!("seed {seed}: page in {without:.0} ms without, {with:.0} ms with FEC");
        if self.progress.is_hidden() {
            output::note(&line);
        } else {
            self.progress.println(line);
        }
    }
}
