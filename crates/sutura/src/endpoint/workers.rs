//! Endpoints of several workers: sockets bound to the same address, each with connections, a driver and a
//! thread of its own.

use super::driver::Driver;
use super::mailbox::Mailbox;
use super::{Endpoint, Inner};
use crate::budget::MemoryBudget;
use crate::config::{EndpointConfig, ServerConfig, random_seed};
use crate::dirty::Dirty;
use crate::socket::AsyncUdpSocket;
use crate::sync::lock;
use crate::system_socket::SystemSocket;
use crate::udp::UdpSocket;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;
use sutura_proto as proto;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

fn impossible(count: proto::WorkerCountError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, count)
}

/// A worker's thread, which waits for the state to drive.
struct Thread {
    socket: Arc<SystemSocket>,
    runtime: Handle,
    start: oneshot::Sender<Arc<Inner>>,
}

impl Thread {
    /// Starts the thread of the worker with this number. It ends when the driver does, or when `start` is
    /// dropped.
    fn spawn(number: usize, socket: std::net::UdpSocket) -> io::Result<Self> {
        let (tell, told) = mpsc::channel();
        let (start, started) = oneshot::channel();
        let work = move || {
            let runtime = match Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(tell.send(Err(error))),
            };
            runtime.block_on(async {
                let socket = UdpSocket::from_std(socket).map(SystemSocket::new);
                // Nobody listens if another worker could not start.
                let _ = tell.send(socket.map(|socket| (Arc::new(socket), Handle::current())));
                if let Ok(inner) = started.await {
                    Driver::new(inner).await;
                }
            });
        };
        thread::Builder::new().name(format!("sutura-{number}")).spawn(work)?;
        let (socket, runtime) = told.recv().map_err(io::Error::other)??;
        Ok(Self { socket, runtime, start })
    }
}

impl Endpoint {
    /// An endpoint that accepts connections on several cores: `workers` sockets are bound to `address`, each
    /// with its own connections and with a thread that does their I/O. See [`bind_workers`](Self::bind_workers).
    ///
    /// # Errors
    /// Those of [`bind_workers`](Self::bind_workers).
    pub fn server_workers(
        config: ServerConfig,
        address: SocketAddr,
        workers: usize,
    ) -> io::Result<Self> {
        Self::bind_workers(EndpointConfig::default(), config, address, workers)
    }

    /// Like [`server_workers`](Self::server_workers), with custom limits, which hold for all workers together.
    ///
    /// The endpoint is used like any other: [`accept`](Self::accept) yields the clients of all workers, and
    /// everything else concerns all of them, too. Only [`connect`](Self::connect) and
    /// [`rebind`](Self::rebind) fail, because several sockets have the address; clients use an endpoint of
    /// their own, or several. To serve the connections on the threads that do their I/O, which costs least,
    /// accept those of each of the [`workers`](Self::workers) by itself, on its
    /// [`runtime`](Self::runtime):
    ///
    /// ```no_run
    /// # async fn serve(connection: sutura::Connection) {}
    /// # async fn run(config: sutura::ServerConfig) -> std::io::Result<()> {
    /// let cores = std::thread::available_parallelism()?.get();
    /// let endpoint = sutura::Endpoint::server_workers(config, "[::]:443".parse().unwrap(), cores)?;
    /// for worker in endpoint.workers() {
    ///     worker.runtime().clone().spawn(async move {
    ///         while let Some(incoming) = worker.accept().await {
    ///             tokio::spawn(async move {
    ///                 if let Ok(connection) = incoming.await {
    ///                     serve(connection).await;
    ///                 }
    ///             });
    ///         }
    ///     });
    /// }
    /// std::future::pending().await
    /// # }
    /// ```
    ///
    /// The system chooses the worker by a hash of the addresses of both ends, so clients are spread evenly if
    /// there are many, and a connection is never spread. A client that moves may reach another worker, which
    /// sees from the connection identifier whose the connection is, and hands its datagrams over through a
    /// bounded queue. (Steering them in the kernel takes eBPF, and so code that is not safe.) Identifiers do
    /// not show the worker to anybody else: they keep the contents that
    /// [`EndpointConfig::connection_ids`] gives them, and are dealt out to the workers by a keyed hash.
    ///
    /// The workers have the keys of tokens and resets, used tokens and blame for offenders in common, and one
    /// [`MemoryBudget`]. [`EndpointConfig::max_handshakes`], [`EndpointConfig::retry_above`],
    /// [`EndpointConfig::max_connections`] and the bounds without a setting are divided equally among them.
    ///
    /// With one worker, this is [`bind`](Self::bind), which works in the caller's runtime.
    ///
    /// # Errors
    /// The address cannot be bound, by one socket or by several: another process, or another endpoint, has
    /// it. There are no workers or more than 64, or more than handshakes or connections are allowed
    /// (`InvalidInput`). The system does not spread datagrams over sockets and there is more than one worker:
    /// this takes Linux (`Unsupported`). A thread cannot be started. Must be called within a tokio runtime.
    pub fn bind_workers(
        config: EndpointConfig,
        server: ServerConfig,
        address: SocketAddr,
        workers: usize,
    ) -> io::Result<Self> {
        if workers == 1 {
            return Self::bind(config, Some(server), address);
        }
        Handle::try_current().map_err(io::Error::other)?;
        config.check_workers(workers).map_err(impossible)?;
        let sockets = UdpSocket::share(address, workers)?.into_iter().enumerate();
        let threads = sockets.map(|(number, socket)| Thread::spawn(number, socket));
        let threads = threads.collect::<io::Result<Vec<Thread>>>()?;
        let features = threads.first().map(|thread| thread.socket.features());
        let config = config.with_socket(features.unwrap_or_default());
        let early_data = server.accepts_early_data();
        let server = Arc::new(server.into_proto());
        let protos = proto::Endpoint::workers(&config, Some(&server), random_seed()?, workers)
            .map_err(impossible)?;
        let dirty: Vec<Arc<Dirty>> = (0..workers).map(|_| Arc::default()).collect();
        let mailboxes: Arc<[Mailbox]> = dirty.iter().cloned().map(Mailbox::new).collect();
        let budget = MemoryBudget::default();
        let mut inners = Vec::with_capacity(workers);
        for (number, ((proto, thread), dirty)) in
            protos.into_iter().zip(threads).zip(dirty).enumerate()
        {
            let socket = thread.socket.clone();
            let inner = Inner::new(proto, socket, thread.runtime, dirty);
            let inner = Arc::new(inner.with_mailboxes(mailboxes.clone(), number));
            let mut state = lock(&inner.state);
            (state.early_data, state.budget) = (early_data, budget.clone());
            drop(state);
            // If the thread has ended, so does the endpoint: its socket is lost.
            if thread.start.send(inner.clone()).is_err() {
                inner.shut_down();
            }
            inners.push(inner);
        }
        Ok(Self::of(inners))
    }

    /// A handle for each worker, through which only its connections are accepted and concerned. An endpoint
    /// that was not made with several workers is its only one.
    #[must_use]
    pub fn workers(&self) -> Vec<Self> {
        self.inners.iter().map(|inner| self.for_workers(vec![inner.clone()])).collect()
    }

    /// The runtime that does the I/O of the endpoint, or of the first of its workers. A worker's runtime ends
    /// with the worker, when there are neither handles nor connections left, and what still runs there is
    /// cancelled.
    #[must_use]
    pub fn runtime(&self) -> &Handle {
        &self.first().runtime
    }
}
