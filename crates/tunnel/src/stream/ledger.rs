//! What both ends of a connection tell each other of the progress of their flows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sutura::http::{CapsuleReader, Error, RecvHalf, RequestStream, SendHalf};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::kept::{FLOW_RESERVE, Kept};
use crate::masque::{MAX_PROGRESS, PROGRESS, Progress, read_progress, write_progress};

/// Progress of a flow is told at once if it is this many bytes.
pub const PROGRESS_BYTES: u64 = 64 << 10;
/// From this many bytes on, half of what each flow may keep in any case, it is told after [`PROGRESS_DELAY`].
pub const SMALL_PROGRESS_BYTES: u64 = FLOW_RESERVE as u64 / 2;
/// See [`SMALL_PROGRESS_BYTES`].
pub const PROGRESS_DELAY: Duration = Duration::from_millis(200);
/// Progress of fewer bytes is told after this time: it frees hardly any memory, and keystrokes would cost a packet more
/// each.
pub const SMALL_PROGRESS_DELAY: Duration = Duration::from_secs(2);
/// Most flows that are over and of which the last progress is still to be told; of further ones it is not.
const MAX_LAST: usize = 4096;

/// The progress of the flows of a connection.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// What this end sends, by the number of the stream.
    sent: Mutex<HashMap<u64, Weak<Kept>>>,
    taken: Mutex<Taken>,
    /// There is something to be told.
    news: Notify,
    /// It is to be told soon.
    soon: Notify,
    /// It is to be told at once.
    urgent: Notify,
}

/// What this end has taken.
#[derive(Debug, Default)]
struct Taken {
    /// Positions that are to be told, and those that were told before.
    flows: HashMap<u64, (u64, u64)>,
    /// How many of them differ.
    untold: usize,
    /// The last progress of flows that are over.
    last: Vec<Progress>,
}

/// A flow that is listed; it is no more once this is dropped.
#[derive(Debug)]
pub(super) struct Listing {
    ledger: Arc<Ledger>,
    stream: u64,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    /// Lists a flow that a stream carries, of which this end has taken so much.
    pub(super) fn enter(self: &Arc<Self>, stream: u64, kept: &Arc<Kept>, taken: u64) -> Listing {
        lock(&self.sent).insert(stream, Arc::downgrade(kept));
        lock(&self.taken).flows.insert(stream, (taken, taken));
        Listing { ledger: self.clone(), stream }
    }

    /// Tells the other end about progress, and hears about its own, until the exchange or the connection ends.
    ///
    /// # Errors
    /// The exchange or the connection is broken, or the other end says what cannot be.
    pub(crate) async fn run(&self, stream: RequestStream) -> Result<(), Error> {
        let (mut send, mut recv) = stream.split();
        tokio::select! {
            told = self.tell(&mut send) => told,
            heard = self.hear(&mut recv) => heard,
        }
    }

    async fn tell(&self, send: &mut SendHalf) -> Result<(), Error> {
        loop {
            self.news.notified().await;
            let soon = async {
                self.soon.notified().await;
                sleep(PROGRESS_DELAY).await;
            };
            tokio::select! {
                () = self.urgent.notified() => {}
                () = soon => {}
                () = sleep(SMALL_PROGRESS_DELAY) => {}
            }
            loop {
                let some = lock(&self.taken).untold();
                if some.is_empty() {
                    break;
                }
                send.send_data(write_progress(&some).encode()).await?;
            }
        }
    }

    async fn hear(&self, recv: &mut RecvHalf) -> Result<(), Error> {
        let mut reader = CapsuleReader::new(&[PROGRESS]);
        while let Some(data) = recv.recv_data().await? {
            reader.push(&data);
            while let Some(capsule) = reader.read()? {
                for progress in read_progress(&capsule.value).unwrap_or_default() {
                    self.heard(progress);
                }
            }
        }
        Ok(())
    }

    /// The other end has taken something. Of flows that are over it may still be told; a position that cannot be
    /// is no progress.
    fn heard(&self, Progress { stream, taken }: Progress) {
        let kept = lock(&self.sent).get(&stream).and_then(Weak::upgrade);
        if let Some(kept) = kept
            && kept.take(taken).is_err()
        {
            tracing::debug!(stream, taken, "the other end has taken what was not sent");
        }
    }
}

impl Taken {
    /// Some of what is to be told.
    fn untold(&mut self) -> Vec<Progress> {
        let from = self.last.len().saturating_sub(MAX_PROGRESS);
        let mut some = self.last.split_off(from);
        if self.untold > 0 && some.len() < MAX_PROGRESS {
            for (&stream, (taken, told)) in &mut self.flows {
                if taken != told {
                    *told = *taken;
                    self.untold = self.untold.saturating_sub(1);
                    some.push(Progress { stream, taken: *taken });
                    if some.len() == MAX_PROGRESS {
                        break;
                    }
                }
            }
        }
        some
    }
}

impl Listing {
    /// Notes that this end has taken all before a position. The end of a flow is told at once.
    pub(super) fn taken(&self, to: u64, is_end: bool) {
        let mut all = lock(&self.ledger.taken);
        let Taken { flows, untold, last: _ } = &mut *all;
        let Some((taken, told)) = flows.get_mut(&self.stream) else { return };
        if taken == told && *taken != to {
            *untold += 1;
        }
        *taken = to;
        let progress = to.saturating_sub(*told);
        drop(all);
        self.ledger.news.notify_one();
        if is_end || progress >= PROGRESS_BYTES {
            self.ledger.urgent.notify_one();
        } else if progress >= SMALL_PROGRESS_BYTES {
            self.ledger.soon.notify_one();
        }
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        lock(&self.ledger.sent).remove(&self.stream);
        let mut all = lock(&self.ledger.taken);
        if let Some((taken, told)) = all.flows.remove(&self.stream)
            && taken != told
        {
            all.untold = all.untold.saturating_sub(1);
            if all.last.len() < MAX_LAST {
                all.last.push(Progress { stream: self.stream, taken });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Pool;
    use super::*;

    #[test]
    fn only_progress_is_told_and_each_once() {
        let ledger = Arc::new(Ledger::default());
        let kept = Kept::new(true, Arc::new(Pool::new(0)));
        let entries: Vec<Listing> = (0..3000).map(|n| ledger.enter(4 * n, &kept, 5)).collect();
        assert!(lock(&ledger.taken).untold().is_empty());
        entries.iter().for_each(|entry| entry.taken(7, false));
        let mut told = Vec::new();
        loop {
            let some = lock(&ledger.taken).untold();
            if some.is_empty() {
                break;
            }
            assert!(some.len() <= MAX_PROGRESS);
            told.extend(some);
        }
        assert_eq!(told.len(), 3000);
        assert!(told.iter().all(|progress| progress.taken == 7));
        entries[0].taken(8, true);
        drop(entries);
        // The end of a flow is told also once the flow is over.
        let last = vec![Progress { stream: 0, taken: 8 }];
        assert_eq!(lock(&ledger.taken).untold(), last);
        assert_eq!(lock(&ledger.taken).untold, 0);
        assert!(lock(&ledger.sent).is_empty() && lock(&ledger.taken).flows.is_empty());
    }
}
