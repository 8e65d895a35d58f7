//! Datagrams that wait to be sent: the more urgent first, and of equally urgent ones the oldest.

use crate::datagram_queue::OVERHEAD;
use crate::fec::Protection;
use crate::ids::MessageId;
use bytes::Bytes;
use smallvec::SmallVec;
use std::collections::VecDeque;
use sutura_schedule::Urgency;

/// A datagram that waits to be sent.
#[derive(Debug)]
pub(super) struct WaitingDatagram {
    pub(super) id: MessageId,
    pub(super) data: Bytes,
    /// How it is protected; `None` if it is sent bare.
    pub(super) protection: Option<Protection>,
}

impl WaitingDatagram {
    fn cost(&self) -> usize {
        self.data.len() + OVERHEAD
    }
}

/// The datagrams of one urgency, the oldest first.
#[derive(Debug)]
struct Lane {
    urgency: Urgency,
    waiting: VecDeque<WaitingDatagram>,
}

/// The datagrams that wait to be sent, bounded in bytes.
#[derive(Debug)]
pub(super) struct DatagramLanes {
    /// The most urgent first. A lane that went empty stays: there are no more than there are urgencies.
    lanes: Vec<Lane>,
    /// Bytes of all datagrams, each with [`OVERHEAD`].
    cost: usize,
    limit: usize,
    dropped: u64,
    /// Bytes of the datagrams that were taken to be sent.
    taken: u64,
    /// The length of the shortest datagram that the application holds back until there is room.
    awaited: Option<usize>,
}

impl DatagramLanes {
    /// Lanes for at most `limit` bytes. Each datagram counts [`OVERHEAD`] bytes more than its length.
    pub(super) fn new(limit: usize) -> Self {
        Self { lanes: Vec::new(), cost: 0, limit, dropped: 0, taken: 0, awaited: None }
    }

    /// Adds a datagram. To make room, the oldest of the least urgent datagrams are dropped, which may be this one;
    /// returns the identifiers of what was dropped.
    pub(super) fn push(
        &mut self,
        urgency: Urgency,
        datagram: WaitingDatagram,
    ) -> SmallVec<[MessageId; 1]> {
        self.cost += datagram.cost();
        let found = self.lanes.binary_search_by_key(&urgency, |lane| lane.urgency);
        let place = found.unwrap_or_else(|place| {
            self.lanes.insert(place, Lane { urgency, waiting: VecDeque::new() });
            place
        });
        self.lanes[place].waiting.push_back(datagram);
        let mut dropped = SmallVec::new();
        while self.cost > self.limit {
            let Some(oldest) =
                self.lanes.iter_mut().rev().find_map(|lane| lane.waiting.pop_front())
            else {
                break;
            };
            self.cost -= oldest.cost();
            self.dropped += 1;
            dropped.push(oldest.id);
        }
        dropped
    }

    /// The datagrams in the order in which they are sent.
    pub(super) fn iter(&self) -> impl Iterator<Item = &WaitingDatagram> {
        self.lanes.iter().flat_map(|lane| &lane.waiting)
    }

    /// The datagram that is sent next.
    pub(super) fn first(&self) -> Option<&WaitingDatagram> {
        self.lanes.iter().find_map(|lane| lane.waiting.front())
    }

    /// Takes the datagram that is sent next.
    pub(super) fn pop(&mut self) -> Option<WaitingDatagram> {
        let first = self.remove_first()?;
        self.taken += first.data.len() as u64;
        Some(first)
    }

    fn remove_first(&mut self) -> Option<WaitingDatagram> {
        let first = self.lanes.iter_mut().find_map(|lane| lane.waiting.pop_front())?;
        self.cost -= first.cost();
        Some(first)
    }

    /// Drops the datagram that would be sent next, because it can no longer be sent.
    pub(super) fn drop_first(&mut self) -> Option<MessageId> {
        let first = self.remove_first()?;
        self.dropped += 1;
        Some(first.id)
    }

    /// Drops all datagrams except those whose identifier `stays`.
    pub(super) fn retain(&mut self, mut stays: impl FnMut(MessageId) -> bool) {
        let (cost, dropped) = (&mut self.cost, &mut self.dropped);
        for lane in &mut self.lanes {
            lane.waiting.retain(|datagram| {
                let stay = stays(datagram.id);
                if !stay {
                    *cost -= datagram.cost();
                    *dropped += 1;
                }
                stay
            });
        }
    }

    /// Bytes that all datagrams take, each with its overhead.
    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    /// Whether there is room for a datagram of this length without dropping another. One that is too long for the
    /// bound has room while no other waits.
    pub(super) fn has_room(&self, length: usize) -> bool {
        self.is_empty() || self.cost + length + OVERHEAD <= self.limit
    }

    /// The application waits for room for a datagram of this length.
    pub(super) fn await_room(&mut self, length: usize) {
        let shortest = self.awaited.map_or(length, |other| other.min(length));
        self.awaited = Some(shortest);
    }

    /// Whether there is now the room that the application waits for. It waits no longer then.
    pub(super) fn take_writable(&mut self) -> bool {
        let is_there = self.awaited.is_some_and(|length| self.has_room(length));
        if is_there {
            self.awaited = None;
        }
        is_there
    }

    /// Whether no datagram waits.
    pub(super) fn is_empty(&self) -> bool {
        self.cost == 0
    }

    /// Bytes of the datagrams that were taken to be sent.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// How many datagrams were dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn datagram(id: u64, length: usize) -> WaitingDatagram {
        WaitingDatagram { id: MessageId(id), data: vec![0; length].into(), protection: None }
    }

    fn order(lanes: &DatagramLanes) -> Vec<u64> {
        lanes.iter().map(|datagram| datagram.id.0).collect()
    }

    #[test]
    fn the_most_urgent_goes_first_and_the_least_urgent_makes_room() {
        let mut lanes = DatagramLanes::new(3 * (10 + OVERHEAD));
        let [high, middle, low] = [0, 3, 7].map(|value| Urgency::new(value).unwrap());
        assert!(lanes.push(low, datagram(0, 10)).is_empty());
        assert!(lanes.push(middle, datagram(1, 10)).is_empty());
        assert!(lanes.push(high, datagram(2, 10)).is_empty());
        assert_eq!((order(&lanes), lanes.has_room(0)), (vec![2, 1, 0], false));
        lanes.await_room(10);
        lanes.await_room(300);
        assert!(!lanes.take_writable());
        assert_eq!(lanes.push(middle, datagram(3, 10))[..], [MessageId(0)]);
        assert_eq!(
            lanes.push(low, datagram(4, 10))[..],
            [MessageId(4)],
            "it is the least urgent itself"
        );
        assert_eq!(order(&lanes), [2, 1, 3]);
        assert_eq!(lanes.pop().map(|first| first.id), Some(MessageId(2)));
        assert_eq!([lanes.take_writable(), lanes.take_writable()], [true, false]);
        assert_eq!((lanes.drop_first(), lanes.dropped()), (Some(MessageId(1)), 3));
        assert_eq!(lanes.taken(), 10, "what was dropped was not sent");
        lanes.retain(|id| id != MessageId(3));
        assert_eq!((lanes.is_empty(), lanes.dropped()), (true, 4));
        assert!(lanes.first().is_none() && lanes.has_room(100_000));
    }

    proptest! {
        /// Against a list that is sorted and cut anew with each datagram.
        #[test]
        fn the_order_is_that_of_a_sorted_list(
            pushes in proptest::collection::vec((0..8_u8, 0..200_usize, 0..3_u8), 0..100),
        ) {
            let limit = 2_000;
            let mut lanes = DatagramLanes::new(limit);
            let mut model: Vec<(Urgency, u64, usize)> = Vec::new();
            for (id, (urgency, length, pops)) in (0..).zip(pushes) {
                let urgency = Urgency::new(urgency).unwrap();
                let dropped = lanes.push(urgency, datagram(id, length));
                model.push((urgency, id, length));
                model.sort();
                let mut expected = Vec::new();
                while model.iter().map(|(_, _, length)| length + OVERHEAD).sum::<usize>() > limit {
                    let least = model.last().map(|(urgency, _, _)| *urgency);
                    let oldest = model.iter().position(|(urgency, _, _)| Some(*urgency) == least);
                    expected.push(MessageId(model.remove(oldest.unwrap()).1));
                }
                prop_assert_eq!(&dropped[..], &expected[..]);
                for _ in 0..pops {
                    let first = (!model.is_empty()).then(|| model.remove(0).1);
                    prop_assert_eq!(lanes.pop().map(|first| first.id.0), first);
                }
                prop_assert_eq!(order(&lanes), model.iter().map(|(_, id, _)| *id).collect::<Vec<_>>());
                prop_assert_eq!(lanes.is_empty(), model.is_empty());
            }
        }
    }
}
