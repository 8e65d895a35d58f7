//! The invariants of messages.

use super::{MessageTable, Place};
use crate::datagram_queue::OVERHEAD;
use crate::ids::{MessageId, StreamId};
use crate::invariant::ensure;
use std::collections::BTreeSet;

impl MessageTable {
    /// Checks the invariants that hold between any two calls: lists and sums agree with the records.
    ///
    /// # Errors
    /// The first contradiction.
    pub(in crate::egress) fn check(&self) -> Result<(), String> {
        let mut waiting = BTreeSet::new();
        let (mut bytes, mut buffer) = (0, 0);
        for (id, record) in &self.records {
            buffer += u128::from(record.buffer);
            if let Place::Waiting(data, _) = &record.place {
                waiting.insert(*id);
                bytes += data.len() + OVERHEAD;
            }
        }
        ensure(self.waiting.iter().copied().collect::<BTreeSet<_>>() == waiting, || {
            format!("waiting {:?}, not {waiting:?}", self.waiting)
        })?;
        ensure(self.waiting_bytes == bytes, || "waiting bytes are counted wrong".to_owned())?;
        ensure(self.sent_buffer == buffer, || "the peer's buffer is counted wrong".to_owned())?;
        let fresh: usize = self.fresh.values().sum();
        ensure(self.fresh_bytes == fresh, || "fresh bytes are counted wrong".to_owned())?;
        let known = |id: &MessageId| self.records.contains_key(id);
        ensure(self.fresh.keys().all(known), || "a fresh message does not exist".to_owned())?;
        ensure(self.overdue.iter().all(known), || "an overdue message does not exist".to_owned())?;
        ensure(self.suspects.is_subset(&self.overdue), || "a suspect is not overdue".to_owned())?;
        let stale = self.due.iter().find(|(at, id)| {
            let deadline = self.records.get(id).map(|record| record.deadline);
            deadline.or_else(|| self.datagrams.get(id).copied()) != Some(Some(*at))
        });
        ensure(stale.is_none(), || format!("a deadline of nothing: {stale:?}"))
    }

    /// The messages that have a stream.
    pub(in crate::egress) fn streams(&self) -> impl Iterator<Item = (MessageId, StreamId)> + '_ {
        self.records.iter().filter_map(|(id, record)| match record.place {
            Place::Stream(stream) => Some((*id, stream)),
            Place::Waiting(..) => None,
        })
    }
}
