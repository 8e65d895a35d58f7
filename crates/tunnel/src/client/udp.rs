//! Flows of UDP at the programs' end.

use std::io;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::Bytes;
use sutura::http::RequestStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use super::link::Unanswered;
use super::{OPEN_TIMEOUT, Refusal, Tunnel};
use crate::access::{Target, Transport};
use crate::counts::Counts;
use crate::datagrams::{Near, Oversize, carry};
use crate::masque::Cause;
use crate::stream::Ending;
use crate::throttle::Throttle;

/// Datagrams that wait for a flow to begin or to be carried; further ones are dropped.
pub const MAX_QUEUED: usize = 256;

/// A flow of UDP, to which a program's datagrams are handed.
#[derive(Debug, Clone)]
pub struct UdpFlow {
    queue: mpsc::Sender<Bytes>,
}

impl UdpFlow {
    /// Hands on a datagram. Returns false if the flow is over.
    #[must_use]
    pub fn send(&self, datagram: Bytes) -> bool {
        // One that finds no room is dropped, as by any router.
        !matches!(self.queue.try_send(datagram), Err(mpsc::error::TrySendError::Closed(_)))
    }

    /// Whether the flow is over.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.queue.is_closed()
    }
}

/// The end of a flow beside the program.
struct Local<F> {
    queue: tokio::sync::Mutex<mpsc::Receiver<Bytes>>,
    /// The datagram that came first.
    next: Mutex<Option<Bytes>>,
    reply: F,
}

impl<F: Fn(&Bytes) -> io::Result<()> + Send + Sync> Near for Local<F> {
    async fn ready(&self) -> io::Result<()> {
        let mut queue = self.queue.lock().await;
        if self.next.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            return Ok(());
        }
        match queue.recv().await {
            Some(datagram) => {
                *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(datagram);
                Ok(())
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn receive(&self, into: &mut Vec<u8>) -> io::Result<()> {
        let first = self.next.lock().unwrap_or_else(PoisonError::into_inner).take();
        let next = first.or_else(|| self.queue.try_lock().ok()?.try_recv().ok());
        let datagram = next.ok_or(io::ErrorKind::WouldBlock)?;
        into.extend_from_slice(&datagram);
        Ok(())
    }

    fn deliver(&self, datagram: &Bytes) -> io::Result<()> {
        (self.reply)(datagram)
    }
}

/// A flow of UDP that has begun at the proxy, and waits for datagrams.
#[derive(Debug)]
pub struct UdpTunnel {
    tunnel: Tunnel,
    target: Target,
    stream: RequestStream,
}

impl Tunnel {
    /// A flow to a target. It begins as soon as there is a connection, begins again if the connection is lost, and
    /// is over once the proxy refuses it, both directions were silent for `idle`, or all handles are dropped.
    /// `reply` is called with each datagram that comes back.
    pub fn udp(
        &self,
        target: &Target,
        idle: Duration,
        reply: impl Fn(&Bytes) -> io::Result<()> + Send + Sync + 'static,
    ) -> UdpFlow {
        self.clone().begin_udp(target.clone(), None, idle, reply)
    }

    /// Begins a flow to a target, as soon as there is a connection.
    ///
    /// # Errors
    /// There is no connection, or the proxy refuses or does not answer.
    pub async fn open_udp(&self, target: &Target) -> Result<UdpTunnel, Refusal> {
        let stream = self.ask_udp(target).await.inspect_err(|_| {
            self.0.totals.refused.fetch_add(1, Relaxed);
        })?;
        Ok(UdpTunnel { tunnel: self.clone(), target: target.clone(), stream })
    }

    fn begin_udp(
        self,
        target: Target,
        opened: Option<RequestStream>,
        idle: Duration,
        reply: impl Fn(&Bytes) -> io::Result<()> + Send + Sync + 'static,
    ) -> UdpFlow {
        let (sender, receiver) = mpsc::channel(MAX_QUEUED);
        tokio::spawn(async move {
            let queue = tokio::sync::Mutex::new(receiver);
            let local = Local { queue, next: Mutex::default(), reply };
            if let Err(refusal) = self.carry_udp(&target, opened, idle, &local).await {
                self.0.totals.refused.fetch_add(1, Relaxed);
                self.0.notices.complain(&format!("udp {target}: {refusal}"));
            }
        });
        UdpFlow { queue: sender }
    }

    async fn carry_udp<N: Near>(
        &self,
        target: &Target,
        mut opened: Option<RequestStream>,
        idle: Duration,
        local: &N,
    ) -> Result<(), Refusal> {
        let totals = &self.0.totals;
        let flow = self.flow(Transport::Udp, target);
        let complain = |text: &str| self.0.notices.complain(text);
        let oversize = Oversize { said: &self.0.said_oversize, complain: &complain };
        loop {
            let stream = match opened.take() {
                Some(stream) => stream,
                None => self.ask_udp(target).await?,
            };
            totals.udp.fetch_add(1, Relaxed);
            totals.flows.fetch_add(1, Relaxed);
            let (throttle, counts) = (Throttle::default(), Counts::among(totals));
            let ending =
                carry(stream, local, flow.clone(), &throttle, idle, &oversize, &counts).await;
            totals.flows.fetch_sub(1, Relaxed);
            if ending != Ending::Lost {
                return Ok(());
            }
            // The flow begins again when there is something to be sent.
            if local.ready().await.is_err() {
                return Ok(());
            }
        }
    }

    async fn ask_udp(&self, target: &Target) -> Result<RequestStream, Refusal> {
        let until = Instant::now() + OPEN_TIMEOUT;
        loop {
            let link = self.link(until).await?;
            match timeout_at(until, link.udp(target)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(Unanswered::Refused(refusal))) => return Err(refusal),
                Ok(Err(Unanswered::Lost(_))) => {}
                Err(_) => {
                    let why = format!("the proxy does not answer about {target}");
                    return Err(Refusal::new(Cause::Timeout, why));
                }
            }
        }
    }
}

impl UdpTunnel {
    /// The longest datagram that the path to the proxy is known to carry, in bytes. It may grow during the first
    /// round trips of a connection (RFC 8899).
    #[must_use]
    pub fn max_size(&self) -> usize {
        self.stream.max_datagram_size().unwrap_or_default().saturating_sub(1)
    }

    /// The smoothed round-trip time to the proxy.
    #[must_use]
    pub fn rtt(&self) -> Duration {
        self.stream.connection().rtt()
    }

    /// Carries the flow, as [`Tunnel::udp`] says.
    #[must_use]
    pub fn carry(
        self,
        idle: Duration,
        reply: impl Fn(&Bytes) -> io::Result<()> + Send + Sync + 'static,
    ) -> UdpFlow {
        self.tunnel.begin_udp(self.target, Some(self.stream), idle, reply)
    }
}
