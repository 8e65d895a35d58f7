//! What was read from a socket and is to be sent, or was sent and may have to be sent again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes};
use tokio::sync::Notify;

use super::Pool;

/// Most bytes that a flow keeps until the other end's program has taken them: what is under way in a round trip of
/// 250 ms at 128 Mbit/s.
pub const MAX_KEPT_BY_FLOW: usize = 4 << 20;
/// Bytes that a flow may keep however much others do.
pub const FLOW_RESERVE: usize = 16 << 10;

/// One direction of a flow at the end that sends it. Positions count bytes from the beginning of the flow; its end
/// counts as one more.
#[derive(Debug)]
pub(crate) struct Kept {
    state: Mutex<KeptState>,
    /// Whether what was sent is kept.
    resumable: bool,
    pool: Arc<Pool>,
    changed: Notify,
}

#[derive(Debug)]
struct Chunk {
    /// The position of its first byte.
    at: u64,
    data: Bytes,
}

#[derive(Debug, Default)]
struct KeptState {
    chunks: VecDeque<Chunk>,
    /// The position of the first byte of the first chunk.
    base: u64,
    /// The position behind the last one.
    end: u64,
    /// Where the next byte to be sent is.
    next: u64,
    /// Whether nothing more is read.
    ended: bool,
    /// Whether the other end has taken the end.
    over: bool,
}

/// One direction of a flow at the end that sends it, while no exchange carries it and its client is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeptAtRest {
    /// The position of the first byte that is kept.
    pub(crate) base: u64,
    /// What is to be sent from there, or to be sent again.
    pub(crate) data: Vec<Bytes>,
    /// Whether nothing more is read.
    pub(crate) ended: bool,
    /// Whether the other end has taken the end.
    pub(crate) over: bool,
}

/// The other end says that it has taken what was never sent, or less than it said before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rewind;

impl Chunk {
    /// The position behind its last byte.
    fn end(&self) -> u64 {
        self.at + self.data.len() as u64
    }
}

impl KeptState {
    fn held(&self) -> usize {
        (self.end - self.base) as usize
    }

    /// Forgets what comes before a position. Returns how many bytes that is.
    fn forget(&mut self, to: u64) -> usize {
        let forgotten = to.saturating_sub(self.base);
        self.base += forgotten;
        self.next = self.next.max(self.base);
        while self.chunks.front().is_some_and(|first| first.end() <= self.base) {
            self.chunks.pop_front();
        }
        if let Some(first) = self.chunks.front_mut() {
            first.data.advance((self.base - first.at) as usize);
            first.at = self.base;
        }
        forgotten as usize
    }

    /// What is to be sent next, and its position.
    fn next(&self) -> Option<(u64, Bytes)> {
        let index = self.chunks.partition_point(|chunk| chunk.end() <= self.next);
        let chunk = self.chunks.get(index)?;
        Some((self.next, chunk.data.slice((self.next - chunk.at) as usize..)))
    }

    /// The other end has taken all before a position.
    fn take(&mut self, taken: u64) -> Result<usize, Rewind> {
        let whole = self.end + 1;
        if taken == whole && self.ended {
            self.over = true;
            return Ok(self.forget(self.end));
        }
        if taken > self.end {
            return Err(Rewind);
        }
        Ok(self.forget(taken))
    }
}

impl Kept {
    pub(crate) fn new(resumable: bool, pool: Arc<Pool>) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self { state, resumable, pool, changed: Notify::new() })
    }

    /// Goes on from where [`rest`](Self::rest) was called. What was kept is counted by this pool.
    pub(crate) fn resting(rest: KeptAtRest, pool: Arc<Pool>) -> Arc<Self> {
        let KeptAtRest { base, data, ended, over } = rest;
        let state = KeptState { base, end: base, next: base, ended, over, chunks: VecDeque::new() };
        let kept = Self { state: state.into(), resumable: true, pool, changed: Notify::new() };
        data.into_iter().filter(|chunk| !chunk.is_empty()).for_each(|chunk| kept.push(chunk));
        Arc::new(kept)
    }

    /// Takes out what is kept, for another process: nothing is sent any more by this one.
    pub(super) fn rest(&self) -> KeptAtRest {
        let mut state = self.lock();
        let data = std::mem::take(&mut state.chunks).into_iter().map(|chunk| chunk.data).collect();
        KeptAtRest { base: state.base, data, ended: state.ended, over: state.over }
    }

    fn lock(&self) -> MutexGuard<'_, KeptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many more bytes may be read from the socket now.
    fn room(&self) -> usize {
        let held = self.lock().held();
        let most = self.pool.share().clamp(FLOW_RESERVE, MAX_KEPT_BY_FLOW);
        most.saturating_sub(held)
    }

    /// Waits until more may be read from the socket, and says how much.
    pub(super) async fn wait_room(&self) -> usize {
        loop {
            let changed = self.changed.notified();
            match self.room() {
                // The flow holds some itself then, and is told when that was taken.
                0 => changed.await,
                room => return room,
            }
        }
    }

    /// Adds what was read.
    pub(crate) fn push(&self, data: Bytes) {
        self.pool.add(data.len());
        let mut state = self.lock();
        let at = state.end;
        state.end += data.len() as u64;
        state.chunks.push_back(Chunk { at, data });
    }

    /// Notes that nothing more is read.
    pub(super) fn finish(&self) {
        self.lock().ended = true;
    }

    /// Whether nothing more is read.
    pub(super) fn is_ended(&self) -> bool {
        self.lock().ended
    }

    /// What is to be sent next, and its position.
    pub(super) fn next(&self) -> Option<(u64, Bytes)> {
        self.lock().next()
    }

    /// Notes that all before a position was sent. The other end may have taken it, and been heard, before this is said.
    pub(super) fn sent(&self, to: u64) {
        let mut state = self.lock();
        state.next = state.next.max(to);
        if !self.resumable {
            self.pool.remove(state.forget(to));
        }
    }

    /// Notes that the other end has taken all before a position.
    ///
    /// # Errors
    /// It was never sent.
    pub(super) fn take(&self, taken: u64) -> Result<(), Rewind> {
        let forgotten = self.lock().take(taken)?;
        self.pool.remove(forgotten);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Sends from a position on, which the other end has come to.
    ///
    /// # Errors
    /// It is not kept.
    pub(crate) fn rewind(&self, taken: u64) -> Result<(), Rewind> {
        let mut state = self.lock();
        if taken < state.base {
            return Err(Rewind);
        }
        let forgotten = state.take(taken)?;
        state.next = state.base;
        drop(state);
        self.pool.remove(forgotten);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Whether the other end has taken all, and knows that there is no more.
    pub(crate) fn is_over(&self) -> bool {
        self.lock().over
    }

    /// Waits until the other end has taken all, if it says so.
    pub(super) async fn wait_over(&self) {
        loop {
            let changed = self.changed.notified();
            if !self.resumable || self.is_over() {
                return;
            }
            changed.await;
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let held = self.lock().held();
        self.pool.remove(held);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Push(Vec<u8>),
        /// Sends so many bytes of the next chunk at most.
        Send(usize),
        /// The other end takes a part of what was sent and not taken, in 256ths, and says so.
        Take(u64),
        /// The same, over another exchange.
        Rewind(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 1..9).prop_map(Step::Push),
            (1..9_usize).prop_map(Step::Send),
            (0..=256_u64).prop_map(Step::Take),
            (0..=256_u64).prop_map(Step::Rewind),
        ]
    }

    proptest! {
        /// The naive model keeps all bytes and two positions.
        #[test]
        fn what_comes_next_is_what_was_not_sent(steps in prop::collection::vec(step(), 1..80)) {
            let (kept, pool) = kept(true);
            let (mut all, mut taken, mut sent, mut most) = (Vec::new(), 0, 0, 0);
            for step in steps {
                match step {
                    Step::Push(data) => {
                        all.extend_from_slice(&data);
                        kept.push(data.into());
                    }
                    Step::Send(size) => {
                        if let Some((at, chunk)) = kept.next() {
                            prop_assert_eq!(at as usize, sent);
                            let size = size.min(chunk.len());
                            prop_assert_eq!(&chunk[..size], &all[sent..sent + size]);
                            sent += size;
                            most = most.max(sent);
                            kept.sent(sent as u64);
                        }
                    }
                    Step::Take(part) => {
                        taken += (sent - taken) * part as usize / 256;
                        kept.take(taken as u64).unwrap();
                    }
                    Step::Rewind(part) => {
                        taken += (most - taken) * part as usize / 256;
                        sent = taken;
                        kept.rewind(taken as u64).unwrap();
                    }
                }
                prop_assert_eq!(kept.next().is_none(), sent == all.len());
                prop_assert_eq!(pool.used(), all.len() - taken);
            }
        }
    }

    fn kept(resumable: bool) -> (Arc<Kept>, Arc<Pool>) {
        let pool = Arc::new(Pool::new(1 << 20));
        (Kept::new(resumable, pool.clone()), pool)
    }

    fn send_all(kept: &Kept) -> Vec<u8> {
        let mut all = Vec::new();
        while let Some((at, chunk)) = kept.next() {
            let part = chunk.len().min(3);
            all.extend_from_slice(&chunk[..part]);
            kept.sent(at + part as u64);
        }
        all
    }

    #[test]
    fn what_is_taken_while_it_is_being_sent_is_not_counted_twice() {
        let (kept, pool) = kept(true);
        kept.push("hello".into());
        kept.push("world".into());
        let (at, chunk) = kept.next().unwrap();
        kept.take(3).unwrap();
        kept.sent(at + chunk.len() as u64);
        assert_eq!((send_all(&kept), pool.used()), (b"world".to_vec(), 7));
    }

    #[test]
    fn what_was_not_taken_is_sent_again() {
        let (kept, pool) = kept(true);
        kept.push("hello, ".into());
        kept.push("world".into());
        assert_eq!(send_all(&kept), b"hello, world");
        kept.take(3).unwrap();
        assert_eq!(pool.used(), 9);
        kept.rewind(8).unwrap();
        assert_eq!(send_all(&kept), b"orld");
        // What was taken once is not sent again, and what was never sent cannot be taken.
        assert_eq!(
            (kept.rewind(7), kept.take(13), kept.rewind(13)),
            (Err(Rewind), Err(Rewind), Err(Rewind))
        );
        kept.finish();
        kept.take(12).unwrap();
        assert!(!kept.is_over());
        kept.take(13).unwrap();
        assert!(kept.is_over() && pool.used() == 0);
    }

    #[test]
    fn an_old_report_changes_nothing() {
        let (kept, pool) = kept(true);
        kept.push("abc".into());
        kept.take(2).unwrap();
        kept.take(1).unwrap();
        assert_eq!((pool.used(), send_all(&kept)), (1, b"c".to_vec()));
    }

    #[test]
    fn a_flow_that_cannot_be_resumed_keeps_nothing_that_was_sent() {
        let (kept, pool) = kept(false);
        kept.push("abcdef".into());
        assert_eq!((send_all(&kept), pool.used()), (b"abcdef".to_vec(), 0));
    }

    #[test]
    fn what_is_kept_is_sent_from_another_pool_after_a_rest() {
        let (before, pool) = kept(true);
        before.push("hello, ".into());
        before.push("world".into());
        assert_eq!(send_all(&before), b"hello, world");
        before.take(3).unwrap();
        before.finish();
        let rest = before.rest();
        drop(before);
        assert_eq!(pool.used(), 0);
        let after = Kept::resting(rest, pool.clone());
        assert_eq!(pool.used(), 9);
        assert_eq!(after.rewind(2), Err(Rewind));
        after.rewind(8).unwrap();
        assert!(after.is_ended() && !after.is_over());
        assert_eq!(send_all(&after), b"orld");
        after.take(13).unwrap();
        assert!(after.is_over() && pool.used() == 0);
    }

    #[test]
    fn flows_share_the_pool_and_each_has_a_reserve() {
        let pool = Arc::new(Pool::new(1 << 20));
        let flows: Vec<Arc<Kept>> = (0..100).map(|_| Kept::new(true, pool.clone())).collect();
        for flow in &flows {
            while flow.room() > 0 {
                flow.push(vec![0; flow.room().min(4096)].into());
            }
        }
        let held: Vec<usize> = flows.iter().map(|flow| flow.lock().held()).collect();
        assert!(held[0] > 100_000 && held.iter().all(|&held| held >= FLOW_RESERVE));
        assert!(pool.used() <= (1 << 20) + flows.len() * FLOW_RESERVE, "{}", pool.used());
        drop(flows);
        assert_eq!(pool.used(), 0);
    }
}
