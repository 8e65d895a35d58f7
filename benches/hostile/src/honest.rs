//! Honest clients: each connects, asks for a small resource, and measures the time.

use bytes::Bytes;
use serde::Serialize;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use sutura::{ClientConfig, Endpoint, http};
use sutura_benches::Error;
use sutura_benches::tls::{Identity, defaults};

use crate::target::SMALL;

/// Time between the beginnings of two clients.
const INTERVAL: Duration = Duration::from_millis(100);
/// How long a client waits for its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The visit of one client.
#[derive(Debug, Clone, Copy)]
struct Visit {
    began: Instant,
    /// How long the visit took, from the first packet to the last byte; `None` if the client was not served.
    took: Option<Duration>,
}

/// Clients that come one after another.
pub struct Honest {
    visits: Arc<Mutex<Vec<Visit>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// How clients fared that began within a span of time.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Service {
    pub clients: usize,
    pub failed: usize,
    /// Milliseconds of the clients that were served.
    pub median_ms: f64,
    pub worst_ms: f64,
}

impl Drop for Honest {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // `join` fails only if the thread panicked, which has been printed already.
            let _ = thread.join();
        }
    }
}

impl Honest {
    /// Lets clients visit `server` until the value is dropped.
    pub fn start(server: SocketAddr, identity: &Identity) -> Result<Self, Error> {
        let mut tls = identity.client_tls(defaults())?;
        tls.alpn_protocols = vec![b"h3".to_vec()];
        // No client resumes a session of another.
        tls.resumption = rustls::client::Resumption::disabled();
        let config = ClientConfig::with_tls(tls)?;
        let visits = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (of_thread, stopped) = (visits.clone(), stop.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::spawn(move || {
            runtime.block_on(visit_all(server, &config, &of_thread, &stopped));
        });
        Ok(Self { visits, stop, thread: Some(thread) })
    }

    /// How the clients fared that began in this span.
    pub fn service(&self, from: Instant, to: Instant) -> Service {
        let visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        let within = visits.iter().filter(|visit| (from..to).contains(&visit.began));
        let took: Vec<Option<Duration>> = within.map(|visit| visit.took).collect();
        service(&took)
    }
}

fn service(took: &[Option<Duration>]) -> Service {
    let mut served: Vec<f64> = took.iter().flatten().map(|t| t.as_secs_f64() * 1e3).collect();
    served.sort_by(f64::total_cmp);
    Service {
        clients: took.len(),
        failed: took.len() - served.len(),
        median_ms: served.get(served.len() / 2).copied().unwrap_or(f64::NAN),
        worst_ms: served.last().copied().unwrap_or(f64::NAN),
    }
}

async fn visit_all(
    server: SocketAddr,
    config: &ClientConfig,
    visits: &Arc<Mutex<Vec<Visit>>>,
    stop: &AtomicBool,
) {
    // Without a socket no client is served, which the table shows.
    let Ok(endpoint) = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into()) else { return };
    while !stop.load(Ordering::Relaxed) {
        let (endpoint, config, visits) = (endpoint.clone(), config.clone(), visits.clone());
        let visit = async move {
            let began = Instant::now();
            let visit = visit(&endpoint, config, server);
            let served = matches!(tokio::time::timeout(PATIENCE, visit).await, Ok(Ok(())));
            let took = served.then(|| began.elapsed());
            visits.lock().unwrap_or_else(PoisonError::into_inner).push(Visit { began, took });
        };
        // A client does not wait for the client before it.
        tokio::spawn(visit);
        tokio::time::sleep(INTERVAL).await;
    }
}

async fn visit(endpoint: &Endpoint, config: ClientConfig, server: SocketAddr) -> Result<(), Error> {
    let connection = endpoint.connect_with(config, server, "localhost")?.await?;
    let client = http::Client::new(connection.clone(), http::Config::default()).await?;
    let mut request = client.request("GET", "localhost", SMALL, &[], None).await?;
    request.finish().await?;
    let response = request.recv_response().await?;
    if response.status != 200 {
        return Err(format!("status {}", response.status).into());
    }
    while let Some(data) = request.recv_data().await? {
        drop::<Bytes>(data);
    }
    connection.close(http::Code::NO_ERROR.0, b"");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_are_not_served_are_counted() {
        let ms = |n| Some(Duration::from_millis(n));
        let service = service(&[ms(3), None, ms(1), ms(9)]);
        assert_eq!((service.clients, service.failed), (4, 1));
        assert_eq!((service.median_ms, service.worst_ms), (3.0, 9.0));
    }
}
