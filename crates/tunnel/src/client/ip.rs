//! All packets of a machine, over one connection after the other (RFC 9484).

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use sutura::http::RequestStream;
use tokio::time::{Instant, sleep, timeout};

use super::link::{Link, Unanswered};
use super::{OPEN_TIMEOUT, Refusal, Totals, Tunnel};
use crate::ip::Scope;
use crate::masque::{CONNECT_IP, Cause};
use crate::tun::{Attached, IpClient, IpError, PacketCounts};

/// How long to wait before asking again after an exchange has ended, and after the proxy has refused.
const RETRY: Duration = Duration::from_millis(250);
const RETRY_REFUSED: Duration = Duration::from_secs(10);
/// While there is no connection, how often ways to proxies are looked for anew.
const LOOK: Duration = Duration::from_secs(2);

/// Why the packets of a machine are no longer carried.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MachineError {
    /// The proxy refuses.
    #[error(transparent)]
    Refused(Refusal),
    /// The device or the proxy fails.
    #[error(transparent)]
    Failed(#[from] IpError),
}

impl Tunnel {
    /// Carries the packets of a machine until the tunnel is closed. The exchange with the proxy begins anew on each
    /// connection; `told` is called each time.
    ///
    /// # Errors
    /// The system has no device or no routes, or the proxy refuses from the beginning. What goes wrong later is told,
    /// and tried again.
    pub async fn machine(
        &self,
        mut machine: IpClient,
        told: impl Fn(&Attached) + Send,
    ) -> Result<(), MachineError> {
        while let Some(link) = self.next_link(&mut machine).await {
            let Err(error) = self.exchange(&link, &mut machine, &told).await else { continue };
            let wait = match &error {
                MachineError::Failed(IpError::System { .. }) => return Err(error),
                MachineError::Failed(IpError::Lost(_)) => RETRY,
                MachineError::Refused(why) if why.cause() == Some(Cause::Limit) => RETRY_REFUSED,
                MachineError::Refused(_) | MachineError::Failed(IpError::Proxy(_))
                    if !machine.is_attached() =>
                {
                    return Err(error);
                }
                MachineError::Refused(_) | MachineError::Failed(IpError::Proxy(_)) => RETRY_REFUSED,
            };
            // A connection that is lost was told of already.
            if link.connection().close_reason().is_none() {
                self.0.notices.complain(&format!("tun: {error}"));
                sleep(wait).await;
            }
        }
        Ok(())
    }

    /// The present connection or the next one; `None` once the tunnel is over.
    async fn next_link(&self, machine: &mut IpClient) -> Option<Arc<Link>> {
        loop {
            match self.link(Instant::now() + LOOK).await {
                Ok(link) => return Some(link),
                Err(_) if self.is_over() => return None,
                Err(_) => machine.keep_ways(),
            }
        }
    }

    async fn exchange(
        &self,
        link: &Link,
        machine: &mut IpClient,
        told: impl Fn(&Attached),
    ) -> Result<(), MachineError> {
        let totals = &self.0.totals;
        let stream = open(link).await.inspect_err(|error| {
            let is_refused = matches!(error, MachineError::Refused(_));
            totals.refused.fetch_add(u64::from(is_refused), Relaxed);
        })?;
        totals.ip.fetch_add(1, Relaxed);
        totals.flows.fetch_add(1, Relaxed);
        let Totals { sent, received, dropped, .. } = &**totals;
        let counts = PacketCounts { sent, received, dropped };
        let ended = machine.carry(stream, self.0.rules.clone(), counts, told).await;
        totals.flows.fetch_sub(1, Relaxed);
        Ok(ended?)
    }
}

/// Asks for packets to and from all hosts.
async fn open(link: &Link) -> Result<RequestStream, MachineError> {
    let path = Scope::default().to_string();
    match timeout(OPEN_TIMEOUT, link.datagrams(CONNECT_IP, &path)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(Unanswered::Refused(refusal))) => Err(MachineError::Refused(refusal)),
        Ok(Err(Unanswered::Lost(why))) => Err(IpError::Lost(why).into()),
        Err(_) => {
            let why = "the proxy does not answer about packets";
            Err(MachineError::Refused(Refusal::new(Cause::Timeout, why)))
        }
    }
}
