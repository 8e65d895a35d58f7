//! How fast and how much the flows of a client may carry.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::access::{Allowance, Limits, Meter, TooManyFlows};

/// The meter of a client's flows, or none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Throttle(Option<Arc<Mutex<Meter>>>);

impl Throttle {
    /// The throttle of a client with these limits.
    pub(crate) fn new(limits: Limits) -> Self {
        Self(Some(Arc::new(Mutex::new(Meter::new(limits, Instant::now())))))
    }

    fn meter(&self) -> Option<MutexGuard<'_, Meter>> {
        Some(self.0.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a flow, which [`close`](Self::close) removes.
    pub(crate) fn open(&self) -> Result<(), TooManyFlows> {
        self.meter().map_or(Ok(()), |mut meter| meter.open())
    }

    /// Removes a flow.
    pub(crate) fn close(&self) {
        if let Some(mut meter) = self.meter() {
            meter.close();
        }
    }

    /// How many flows there are.
    pub(crate) fn flows(&self) -> usize {
        self.meter().map_or(0, |meter| meter.flows())
    }

    /// Whether nothing may be carried any more.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.meter().is_some_and(|meter| meter.look(Instant::now()) == Allowance::Never)
    }

    /// Counts bytes that were carried. The future ends when more may follow; it fails if no more may.
    pub(crate) fn pass(&self, bytes: usize) -> impl Future<Output = io::Result<()>> + use<> {
        let now = Instant::now();
        let allowance = self.meter().map(|mut meter| {
            meter.commit(now, bytes as u64);
            meter.look(now)
        });
        let wait = match allowance {
            None | Some(Allowance::Now(_)) => Ok(Duration::ZERO),
            Some(Allowance::At(at)) => Ok(at.saturating_duration_since(now)),
            Some(Allowance::Never) => Err(io::ErrorKind::QuotaExceeded),
        };
        async move {
            match wait? {
                Duration::ZERO => Ok(()),
                wait => {
                    sleep(wait).await;
                    Ok(())
                }
            }
        }
    }

    /// Whether a datagram of so many bytes may be carried now; it counts if so.
    pub(crate) fn admits(&self, bytes: usize) -> bool {
        self.meter().is_none_or(|mut meter| meter.admit(Instant::now(), bytes as u64))
    }
}
