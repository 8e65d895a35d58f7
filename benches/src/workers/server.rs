//! The server.

use crate::Error;
use crate::affinity::stay_on;
use crate::child::Input;
use crate::job::{Listening, Served, say};
use crate::usage;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use sutura::Endpoint;
use sutura_benches::stack::{self, Settings, Sutura};

/// Answers the requests of all clients, and counts the clients.
async fn serve(endpoint: Endpoint, clients: Arc<AtomicU64>) {
    while let Some(incoming) = endpoint.accept().await {
        clients.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else { return };
            while let Ok(stream) = connection.accept_bi().await {
                tokio::spawn(stack::respond::<Sutura>(stream, None));
            }
        });
    }
}

/// Serves with this many workers, each on a core of its own. If `together`, all connections are accepted
/// and served by one task on another thread, which may use the cores of all workers.
pub async fn run(
    settings: &Settings<'_>,
    workers: usize,
    together: bool,
    mut lines: Input,
) -> Result<(), Error> {
    let endpoint = Sutura::server_with(settings, workers)?;
    let mut clients = Vec::new();
    for (core, worker) in endpoint.workers().into_iter().enumerate() {
        let of_worker = Arc::new(AtomicU64::new(0));
        clients.push(of_worker.clone());
        let runtime = worker.runtime().clone();
        runtime.spawn(async move { stay_on(core) }).await??;
        if !together {
            runtime.spawn(serve(worker, of_worker));
        }
    }
    if together {
        // One task has all connections, whichever worker they are at.
        clients.truncate(1);
        tokio::spawn(serve(endpoint.clone(), clients[0].clone()));
    }
    say(&Listening { address: endpoint.local_addr()? })?;
    while lines.next_line().await?.is_some() {
        let connections = clients.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        say(&Served { usage: usage::now()?, connections })?;
    }
    Ok(())
}
