//! How much of the process's memory a connection holds, and whether it may go on holding it.

use crate::budget::MemoryAccount;
use crate::connection::State;
use std::time::{Duration, Instant};

/// How often a driver looks after its connections while memory is short.
pub(crate) const TEND_INTERVAL: Duration = Duration::from_millis(250);
/// A connection whose peer has taken nothing for this long may be closed when memory is short. An outage of
/// 25 s is shorter, even with the probe timeout after it.
const STALL: Duration = Duration::from_secs(30);
/// A connection whose peer has taken none of the waiting data for this long is lent no more than it holds:
/// more data would only wait as well.
const PATIENCE: Duration = Duration::from_secs(5);
/// A peer takes nothing if it takes less than this part of the held data in that time.
const LEAST_PART: u64 = 64;
/// Until its next turn a connection may write no more than this many times the bytes that it holds, and
/// [`HEADROOM`]: many connections that were lent their share when all was free could together take more than
/// there is.
const MAX_GROWTH: usize = 3;
/// Bytes that every connection may write until its next turn, within its share. Streams share one half, into
/// which the largest message has to fit.
const HEADROOM: usize = 8 << 20;
/// A connection that holds less data than this is never closed: closing it would gain nothing. A connection
/// that waits for an event, or keeps a silent tunnel open, holds none.
const LEAST_DATA: usize = 16 * 1024;

/// The memory that a connection holds, in bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Holding {
    total: usize,
    /// Data that waits for the peer to take it, or to send missing parts, and what codes keep of either.
    data: usize,
    /// The part of the data that waits for the peer to take it. Codes keep symbols, and streams their blocks,
    /// while a connection is silent, which says nothing about the peer.
    waiting: usize,
    /// The part of the data that the peer has sent.
    sent_by_peer: usize,
    /// Data that has left so far.
    taken: u64,
}

/// The order in which connections are closed: the greatest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Urgency(usize);

/// The account of a connection, and for how long its peer has taken nothing.
#[derive(Debug)]
pub(crate) struct Tenure {
    account: MemoryAccount,
    holding: Holding,
    /// When the peer was last seen to take a fair part of the held data, and how much it had taken then.
    since: Instant,
    taken: u64,
    /// When the peer was last seen to take any data, or no data waited for it, and how much it had taken
    /// then.
    moved: Instant,
    seen: u64,
    /// The allowance that the connection was told last.
    lent: usize,
    /// The bytes that it held then.
    known: usize,
    /// Whether more memory would let the connection do more.
    waits: bool,
    evicted: bool,
}

impl Tenure {
    pub(crate) fn new(account: MemoryAccount, now: Instant) -> Self {
        let holding = Holding::default();
        Self {
            account,
            holding,
            since: now,
            taken: 0,
            moved: now,
            seen: 0,
            lent: 0,
            known: 0,
            waits: false,
            evicted: false,
        }
    }

    /// Reports the memory that the connection holds, and tells the connection its allowance. Returns whether
    /// the connection needs to be looked after.
    pub(crate) fn report(&mut self, now: Instant, state: &mut State) -> bool {
        if self.evicted {
            return false;
        }
        if state.quic.remote_address_validated() {
            self.account.move_to(state.quic.remote_address().ip());
        }
        let memory = state.quic.memory();
        let holding = Holding {
            total: memory.total() + state.memory_above(),
            data: memory.send + memory.receive + memory.coding + memory.datagrams,
            waiting: memory.send + memory.datagrams,
            sent_by_peer: memory.sent_by_peer(),
            taken: state.quic.taken(),
        };
        let allowance = self.note(now, holding);
        // A connection far below its allowance need not be told of every little change.
        let is_near = holding.total > self.lent / 4 || holding.total > self.known / 8 * 9;
        if is_near || allowance.abs_diff(self.lent) > self.lent / 8 {
            (self.lent, self.known) = (allowance, holding.total);
            state.set_allowance(allowance, holding.total.saturating_mul(MAX_GROWTH) + HEADROOM);
        }
        self.waits || self.is_short()
    }

    /// Notes the memory that the connection holds; returns its allowance.
    fn note(&mut self, now: Instant, holding: Holding) -> usize {
        self.account.set(holding.total);
        // Data that has just begun to wait is not what the peer did not take before.
        let begins = self.holding.waiting == 0;
        self.holding = holding;
        let part = holding.data as u64 / LEAST_PART;
        if holding.data < LEAST_DATA || holding.taken.saturating_sub(self.taken) > part {
            (self.since, self.taken) = (now, holding.taken);
        }
        if begins || holding.waiting == 0 || holding.taken > self.seen {
            (self.moved, self.seen) = (now, holding.taken);
        }
        let allowance = self.account.allowance();
        self.waits = holding.total > allowance / 2;
        let is_read = now.saturating_duration_since(self.moved) < PATIENCE;
        if is_read { allowance } else { allowance.min(holding.total) }
    }

    /// Whether the connection waits for other connections to give memory back.
    pub(crate) fn waits(&self) -> bool {
        self.waits && !self.evicted
    }

    /// Whether memory is short.
    pub(crate) fn is_short(&self) -> bool {
        self.account.budget().is_short()
    }

    /// How urgent it is to close the connection, if that must be.
    ///
    /// The data that this end sends stays within the allowance. But a peer can send all that it was once
    /// promised, so if more is held than the budget allows, connections with such peers are closed first.
    pub(crate) fn urgency(&self, now: Instant) -> Option<Urgency> {
        let Holding { data, sent_by_peer, .. } = self.holding;
        if self.evicted || data < LEAST_DATA {
            return None;
        }
        let budget = self.account.budget();
        if budget.is_exceeded() && sent_by_peer > self.account.allowance().max(LEAST_DATA) {
            return Some(Urgency(usize::MAX / 2 + sent_by_peer));
        }
        let stalls = now.saturating_duration_since(self.since) >= STALL;
        (stalls && budget.is_short()).then_some(Urgency(data))
    }

    /// The connection is being closed: its memory will soon be free.
    pub(crate) fn evict(&mut self) {
        self.evicted = true;
        self.account.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::MemoryBudget;

    const MIB: usize = 1 << 20;

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn holding(data: usize, taken: u64) -> Holding {
        Holding { total: data, data, waiting: data, sent_by_peer: 0, taken }
    }

    #[test]
    fn who_takes_nothing_is_closed_when_memory_is_short_and_nobody_else() {
        let budget = MemoryBudget::new(16 * MIB);
        let start = Instant::now();
        let tenure = || Tenure::new(budget.open([192, 0, 2, 1].into()), start);
        let (mut stalled, mut slow, mut poll) = (tenure(), tenure(), tenure());
        stalled.note(start, holding(4 * MIB, 0));
        slow.note(start, holding(4 * MIB, 0));
        poll.note(start, Holding { total: 500_000, ..Holding::default() });
        assert!(stalled.is_short());
        for seconds in (0..3_600).step_by(10) {
            let now = after(start, seconds);
            // A modem's speed.
            slow.note(now, holding(4 * MIB, seconds * 4_000));
            poll.note(now, Holding { total: 500_000, ..Holding::default() });
            stalled.note(now, holding(4 * MIB, 0));
            assert_eq!((slow.urgency(now), poll.urgency(now)), (None, None));
            assert_eq!(stalled.urgency(now).is_some(), seconds >= 30, "an outage of 25 s is none");
        }
        let now = after(start, 3_600);
        stalled.evict();
        assert_eq!((stalled.urgency(now), stalled.waits()), (None, false));
        assert!(!poll.is_short(), "what it holds is about to be given back");
    }

    #[test]
    fn who_takes_nothing_for_a_while_is_lent_no_more_than_it_holds() {
        let budget = MemoryBudget::new(16 * MIB);
        let start = Instant::now();
        let mut tenure = Tenure::new(budget.open([192, 0, 2, 1].into()), start);
        for data in [1, LEAST_DATA, MIB] {
            let mut tenure = Tenure::new(budget.open([192, 0, 2, 1].into()), start);
            for seconds in 0..60 {
                let lent = tenure.note(after(start, seconds), holding(data, 0));
                assert_eq!(lent > data, seconds < PATIENCE.as_secs(), "{seconds}: {lent}");
            }
        }
        // The connection goes on as soon as some data is taken, and where no data waits.
        tenure.note(start, holding(MIB, 0));
        assert!(tenure.note(after(start, 60), holding(MIB, 1)) > MIB);
        assert!(tenure.note(after(start, 90), holding(0, 1)) > MIB);
    }

    /// Messages would otherwise never be sent after a silence.
    #[test]
    fn what_is_kept_in_a_silence_is_no_data_that_waits() {
        let budget = MemoryBudget::new(16 * MIB);
        let start = Instant::now();
        let mut tenure = Tenure::new(budget.open([192, 0, 2, 1].into()), start);
        let rests = Holding { total: 30_000, data: 4_000, ..Holding::default() };
        tenure.note(start, rests);
        assert!(tenure.note(after(start, 60), rests) > MIB);
        // Nor is a silence in which nobody looks held against the first data after it.
        let sends = Holding { total: 31_000, data: 5_000, waiting: 1_000, ..rests };
        assert!(tenure.note(after(start, 90), sends) > MIB);
        assert_eq!(tenure.note(after(start, 95), sends), sends.total);
    }

    #[test]
    fn nobody_is_closed_while_there_is_enough() {
        let budget = MemoryBudget::new(16 * MIB);
        let start = Instant::now();
        let mut tenure = Tenure::new(budget.open([192, 0, 2, 1].into()), start);
        tenure.note(start, holding(7 * MIB, 0));
        assert_eq!(tenure.urgency(after(start, 3_600)), None);
    }

    #[test]
    fn peers_that_send_all_they_were_promised_go_first_when_it_is_too_much() {
        let budget = MemoryBudget::new(16 * MIB);
        let start = Instant::now();
        let open = |n| Tenure::new(budget.open([192, 0, 2, n].into()), start);
        let mut reader = open(0);
        reader.note(start, holding(4 * MIB, 0));
        let mut senders: Vec<_> = (1..8).map(open).collect();
        for sender in &mut senders {
            let data = 2 * MIB;
            let waiting = data;
            sender
                .note(start, Holding { total: data, data, waiting, sent_by_peer: data, taken: 0 });
        }
        let now = after(start, 1);
        assert!(budget.is_exceeded());
        assert_eq!(reader.urgency(now), None, "it may be in an outage");
        let mut closed = 0;
        for sender in &mut senders {
            if sender.urgency(now).is_some() {
                sender.evict();
                closed += 1;
            }
        }
        assert_eq!((closed, budget.is_exceeded()), (1, false));
    }
}
