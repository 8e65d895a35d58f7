//! The client, which is Sutura's.

use crate::report::Load;
use crate::server::{Resource, Site};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura::{ClientConfig, Endpoint, http};
use sutura_benches::costs::Costs;
use sutura_benches::server::Server;
use sutura_benches::tls::{self, Identity};
use sutura_benches::{Error, cpu, process};
use tokio::time::{sleep, timeout};

/// How long a new server gets until it listens.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the client waits for one handshake, and then for the next.
const HANDSHAKE: Duration = Duration::from_millis(500);

/// One connection to a server.
pub struct Client {
    endpoint: Endpoint,
    http: Arc<http::Client>,
    authority: Arc<str>,
}

impl Client {
    /// Connects as soon as the server listens. The client offers one cipher and one group, AES-128-GCM and X25519, and
    /// has the settings that Sutura has by itself otherwise.
    pub async fn new(server: SocketAddr, identity: &Identity) -> Result<Self, Error> {
        let mut tls = identity.client_tls(tls::aes_128_gcm())?;
        tls.alpn_protocols = vec![http::ALPN.to_vec()];
        let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
        endpoint.set_default_client_config(ClientConfig::with_tls(tls)?);
        let start = Instant::now();
        let connection = loop {
            match timeout(HANDSHAKE, endpoint.connect(server, "localhost")?).await {
                Ok(Ok(connection)) => break connection,
                failed if start.elapsed() > PATIENCE => drop(failed??),
                _ => sleep(HANDSHAKE / 10).await,
            };
        };
        let http = http::Client::new(connection, http::Config::default()).await?;
        let authority = format!("localhost:{}", server.port()).into();
        Ok(Self { endpoint, http: Arc::new(http), authority })
    }

    /// The costs of each of `count` GETs. A tenth of them go before the measurement, as a warm-up.
    pub async fn measure(
        &self,
        server: &Server,
        site: &Site,
        load: Load,
        count: u64,
    ) -> Result<Costs, Error> {
        let (resource, at_once) = match load {
            Load::Small { at_once } => (site.small, at_once),
            Load::Large => (site.large, 1),
        };
        self.get_all(resource, count.div_ceil(10), at_once).await?;
        let (server_before, client_before) = (process::cpu_seconds(server.id())?, cpu::now());
        let start = Instant::now();
        let done = self.get_all(resource, count, at_once).await?;
        let all = Costs {
            seconds: start.elapsed().as_secs_f64(),
            server_cpu: process::cpu_seconds(server.id())? - server_before,
            client_cpu: (cpu::now() - client_before).as_secs_f64(),
        };
        Ok(all.over(done as f64))
    }

    /// Gets a file at least `count` times, `at_once` at a time. Returns how often.
    async fn get_all(&self, resource: Resource, count: u64, at_once: u64) -> Result<u64, Error> {
        let each = count.div_ceil(at_once);
        let askers: Vec<_> = (0..at_once)
            .map(|_| {
                let (http, authority) = (self.http.clone(), self.authority.clone());
                tokio::spawn(async move {
                    for _ in 0..each {
                        get(&http, &authority, resource).await?;
                    }
                    Ok::<_, Error>(())
                })
            })
            .collect();
        for asker in askers {
            asker.await??;
        }
        Ok(each * at_once)
    }

    /// Says goodbye to the server.
    pub async fn close(self) {
        self.http.connection().close(0, b"");
        self.endpoint.wait_idle().await;
    }
}

/// Gets a file and counts its bytes.
async fn get(http: &http::Client, authority: &str, resource: Resource) -> Result<(), Error> {
    let mut stream = http.request("GET", authority, resource.path, &[], None).await?;
    stream.finish().await?;
    let response = stream.recv_response().await?;
    if response.status != 200 {
        return Err(format!("{} has the status {}", resource.path, response.status).into());
    }
    let mut bytes = 0;
    while let Some(data) = stream.recv_data().await? {
        bytes += data.len() as u64;
    }
    if bytes == resource.bytes { Ok(()) } else { Err(format!("{bytes} bytes").into()) }
}
