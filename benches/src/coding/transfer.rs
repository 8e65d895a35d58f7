//! One download over one link.

use crate::case::Case;
use crate::trace::{Direction, Recorder, Trace};
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use sutura::{ClientConfig, Connection, ConnectionStats, Endpoint, Protection, ServerConfig};
use sutura_benches::stack::{Sutura, download, respond};
use sutura_benches::tls::{Identity, aes_128_gcm};
use sutura_benches::{Error, cpu};
use sutura_relay::{Config, Relay};

/// Bytes of an unprotected download before the measured download, from which the congestion controller learns
/// the path.
const WARM_UP: u64 = 3_000_000;
/// Pause between the two downloads.
const GAP: Duration = Duration::from_millis(200);
/// When a transfer is given up.
const LIMIT: Duration = Duration::from_secs(90);

/// A transfer to make.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    pub case: &'a Case,
    pub identity: &'a Identity,
    pub bytes: u64,
    pub protection: Option<Protection>,
    /// The seed of the link's losses.
    pub seed: u64,
}

/// The counters of one end from the request to the last byte.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct End {
    /// Seconds of CPU time of the end's thread, which does all its work.
    pub cpu: f64,
    pub packets_sent: u64,
    pub packets_received: u64,
    /// Packets declared lost.
    pub packets_lost: u64,
    pub source_symbols_sent: u64,
    pub repair_symbols_sent: u64,
    /// Source symbols computed from repair symbols.
    pub recovered: u64,
    /// Smoothed round-trip time in seconds, at the end.
    pub rtt: f64,
}

/// A download.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Transfer {
    /// Seconds from the request to the last byte.
    pub seconds: f64,
    pub bytes: u64,
    pub server: End,
    pub client: End,
    /// By how many seconds the relay was late, on average and at most.
    pub late_mean: f64,
    pub late_max: f64,
}

impl Transfer {
    pub fn megabits_per_second(&self) -> f64 {
        self.bytes as f64 * 8e-6 / self.seconds
    }

    /// Repair symbols per source symbol sent.
    pub fn repair_share(&self) -> f64 {
        self.server.repair_symbols_sent as f64 / self.server.source_symbols_sent.max(1) as f64
    }
}

/// The counters of an end when the download began.
struct Start {
    cpu: Duration,
    stats: ConnectionStats,
}

impl Start {
    fn new(connection: &Connection) -> Self {
        Self { stats: connection.stats(), cpu: cpu::now() }
    }

    fn end(&self, connection: &Connection) -> End {
        let cpu = cpu::now() - self.cpu;
        let (before, after) = (&self.stats, connection.stats());
        let fec = |count: fn(&sutura::FecStats) -> u64| count(&after.fec) - count(&before.fec);
        End {
            cpu: cpu.as_secs_f64(),
            packets_sent: after.sent.packets - before.sent.packets,
            packets_received: after.received.packets - before.received.packets,
            packets_lost: after.packets_lost - before.packets_lost,
            source_symbols_sent: fec(|f| f.source_symbols_sent),
            repair_symbols_sent: fec(|f| f.repair_symbols_sent),
            recovered: fec(|f| f.recovered),
            rtt: after.rtt.as_secs_f64(),
        }
    }
}

/// The server's thread: a warm-up, the download, and then the client closes.
async fn serve(
    job: &Job<'_>,
    recorder: Option<Recorder>,
    address: mpsc::Sender<SocketAddr>,
) -> Result<End, Error> {
    let tls = job.identity.server_tls(aes_128_gcm())?;
    let config = ServerConfig::with_tls(tls)?.transport(job.case.transport());
    let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into())?;
    observe(&endpoint, recorder);
    address.send(endpoint.local_addr()?)?;
    let connection = endpoint.accept().await.ok_or("the endpoint is closed")?.await?;
    respond::<Sutura>(connection.accept_bi().await?, None).await?;
    let stream = connection.accept_bi().await?;
    let start = Start::new(&connection);
    respond::<Sutura>(stream, job.protection.clone()).await?;
    connection.closed().await;
    Ok(start.end(&connection))
}

/// The client's thread.
async fn fetch(
    job: &Job<'_>,
    recorder: Option<Recorder>,
    address: SocketAddr,
) -> Result<(f64, End), Error> {
    let tls = job.identity.client_tls(aes_128_gcm())?;
    let config = ClientConfig::with_tls(tls)?.transport(job.case.transport());
    let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    endpoint.set_default_client_config(config);
    observe(&endpoint, recorder);
    let connection = endpoint.connect(address, "localhost")?.await?;
    download::<Sutura>(&connection, WARM_UP).await?;
    tokio::time::sleep(GAP).await;
    let start = Start::new(&connection);
    let begin = Instant::now();
    download::<Sutura>(&connection, job.bytes).await?;
    let seconds = begin.elapsed().as_secs_f64();
    let end = start.end(&connection);
    connection.close(0, b"");
    endpoint.wait_idle().await;
    Ok((seconds, end))
}

fn observe(endpoint: &Endpoint, recorder: Option<Recorder>) {
    if let Some(recorder) = recorder {
        endpoint.observe_with(move |_| Some(Box::new(recorder.clone())));
    }
}

/// Runs one end in the calling thread.
fn alone<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { tokio::time::timeout(LIMIT, work).await? })
}

fn transfer(job: &Job<'_>, recorders: Option<(Recorder, Recorder)>) -> Result<Transfer, Error> {
    let (server_recorder, client_recorder) = recorders.unzip();
    // The names help to tell the threads apart in profilers.
    let suffix = if job.protection.is_some() { "+fec" } else { "" };
    let named = |end: &str| std::thread::Builder::new().name(format!("{end}{suffix}"));
    std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        let server = named("server")
            .spawn_scoped(scope, move || alone(serve(job, server_recorder, sender)))?;
        let Ok(address) = receiver.recv() else {
            server.join().map_err(|_| "the server panicked")??;
            return Err("no address".into());
        };
        let config = Config::new((Ipv4Addr::LOCALHOST, 0).into(), address);
        let relay = Relay::start(&config.link(&job.case.link()).seed(job.seed))?;
        let address = relay.local_addr();
        let client = named("client")
            .spawn_scoped(scope, move || alone(fetch(job, client_recorder, address)))?;
        let client = client.join().map_err(|_| "the client panicked")?;
        let server = server.join().map_err(|_| "the server panicked")?;
        let (seconds, client) = client?;
        let relay = relay.stop();
        Ok(Transfer {
            seconds,
            bytes: job.bytes,
            server: server?,
            client,
            late_mean: relay.late_mean().as_secs_f64(),
            late_max: relay.late_max.as_secs_f64(),
        })
    })
}

/// Does a job.
pub fn run(job: &Job<'_>) -> Result<Transfer, Error> {
    transfer(job, None)
}

/// Does a job and writes its symbols down.
pub fn record(job: &Job<'_>) -> Result<(Transfer, Trace), Error> {
    let server = Recorder::new(Direction::Sent);
    let client = Recorder::new(Direction::Received);
    let transfer = transfer(job, Some((server.clone(), client.clone())))?;
    Ok((transfer, Trace { sent: server.events()?, received: client.events()? }))
}
