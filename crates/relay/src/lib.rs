//! A relay between UDP sockets that behaves like a lossy link.
//!
//! A [`Relay`] listens on one address and forwards every datagram to another one, through a
//! [`Pipe`](sutura_link::Pipe) in each direction. It serves any number of clients. Each has its own
//! socket towards the destination, so that replies find their way back. All clients share the two
//! directions of the link.
//!
//! The relay runs in its own thread, which sleeps in `poll` until a socket receives a datagram or the next
//! datagram is due on the link. [`Stats::late_max`] shows how well that worked.
//!
//! ECN marks are kept, and set where the link is configured to mark. As a NAT does, it can begin to
//! show its clients to the destination at other ports or addresses ([`Rebinding`]). A [`Tap`] sees every
//! datagram that passes.
//!
//! ```no_run
//! use sutura_relay::{Config, Relay};
//!
//! let link: sutura_link::LinkConfig = "paper".parse()?;
//! let config = Config::new("127.0.0.1:5000".parse()?, "127.0.0.1:4433".parse()?);
//! let relay = Relay::start(&config.link(&link).seed(7))?;
//! std::thread::sleep(std::time::Duration::from_secs(60));
//! let stats = relay.stop();
//! println!("{} datagrams lost on the way down", stats.down.lost);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod clients;
mod config;
mod datagrams;
mod rebinding;
mod socket;
mod stats;
mod tap;
mod worker;

pub use config::Config;
pub use rebinding::{Change, Rebinding};
pub use stats::Stats;
pub use tap::{Seen, Tap, Way};

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use socket::Socket;
use tap::Spectator;
use worker::{Door, Worker};

/// A running relay. Dropping it stops it.
#[derive(Debug)]
pub struct Relay {
    addresses: Vec<SocketAddr>,
    shared: Arc<Shared>,
    waker: UdpSocket,
    worker: Option<JoinHandle<()>>,
}

/// State shared between the handle and the worker.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) stop: bool,
    pub(crate) stats: Stats,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Relay {
    /// Binds the listening address and starts the relay. The link comes up now.
    ///
    /// # Errors
    /// The address cannot be bound, clients are to get other addresses although the destination is
    /// not on the IPv4 loopback device, or the system cannot provide more sockets or threads.
    pub fn start(config: &Config) -> io::Result<Self> {
        Self::launch(config, Spectator::default())
    }

    /// The same, with a tap on the link.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_with_tap(config: &Config, tap: Box<dyn Tap>) -> io::Result<Self> {
        Self::launch(config, Spectator(Some(tap)))
    }

    fn launch(config: &Config, spectator: Spectator) -> io::Result<Self> {
        let (mut doors, mut addresses) = (Vec::new(), Vec::new());
        for (listen, to) in config.doors() {
            rebinding::check(&config.rebindings, to)?;
            let socket = Socket::bind(listen)?;
            addresses.push(socket.io().local_addr()?);
            doors.push(Door { socket, to });
        }
        let waker = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        waker.connect(waker.local_addr()?)?;
        let shared = Arc::new(Shared::default());
        let worker = Worker::new(config, doors, spectator, waker.try_clone()?, shared.clone())?;
        let worker =
            std::thread::Builder::new().name("relay".into()).spawn(move || worker.run())?;
        Ok(Self { addresses, shared, waker, worker: Some(worker) })
    }

    /// The address that the relay listens on.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// All addresses that the relay listens on: the first one, then the addresses of [`Config::further`].
    #[must_use]
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The current statistics.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.lock().stats
    }

    /// Stops the relay and drops the datagrams in transit. Returns the final statistics.
    #[must_use]
    pub fn stop(mut self) -> Stats {
        self.halt();
        self.stats()
    }

    fn halt(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.shared.lock().stop = true;
            // If the wake-up is lost, the worker sees the flag in its next iteration.
            let _ = self.waker.send(&[0]);
            let _ = worker.join();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.halt();
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
