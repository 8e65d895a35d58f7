//! A scheduler that treats all streams alike.

use sutura_schedule::{Grant, KeyMap, Priority, Scheduler, StreamKey, Urgency};

use crate::tree::{DEFAULT_WEIGHT, Order, Seat, Slot, Tree};

/// In which order streams of equal standing are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Discipline {
    /// One stream after the other, the oldest first.
    Fifo,
    /// One stream after the other, the youngest first.
    Lifo,
    /// In turns of a block.
    RoundRobin(Block),
}

impl Discipline {
    /// Whether one stream is served after the other.
    #[must_use]
    pub const fn is_sequential(self) -> bool {
        match self {
            Self::Fifo | Self::Lifo => true,
            Self::RoundRobin(_) => false,
        }
    }
}

/// The length of a turn. It ends with the charge that fills the block, so that its last packet is full, or
/// when the stream becomes inactive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Block {
    /// This many packets, each of which is a charge. 0 counts as 1.
    Packets(u32),
    /// This many bytes or the first packet, whichever is more.
    Bytes(u64),
    /// The bytes of the congestion window, as told by [`Scheduler::on_congestion_window`]; a packet before
    /// the first call.
    Window,
}

/// A scheduler that ignores priorities, except that streams of [`Urgency::CONTROL`] go first, one
/// after the other in order of their keys.
///
/// Each grant is all of the room in the packet. A caller that asks once for each packet puts one
/// stream into a packet, so that a loss blocks only one.
///
/// In a round robin, a stream that becomes active queues behind all others. In a FIFO or LIFO, its
/// place depends on when it was inserted. Decisions take constant time and charges O(log n); memory
/// is one entry for each of the largest number of streams inserted at once.
#[derive(Clone, Debug)]
pub struct Multiplexer {
    discipline: Discipline,
    tree: Tree,
    control: Slot,
    equals: Slot,
    streams: KeyMap<MultiplexerEntry>,
    arrivals: u64,
    window: u64,
}

#[derive(Clone, Copy, Debug)]
struct MultiplexerEntry {
    slot: Slot,
    control: bool,
    /// How much of the block is used up, in bytes or packets.
    used: u64,
}

impl Multiplexer {
    /// A scheduler without streams.
    #[must_use]
    pub fn new(discipline: Discipline) -> Self {
        let mut tree = Tree::new(Order::Sequence);
        let control = tree.add_placeholder(Tree::ROOT, 1, Order::Sequence);
        let order = if discipline.is_sequential() { Order::Sequence } else { Order::Turns };
        let equals = tree.add_placeholder(Tree::ROOT, 1, order);
        let streams = KeyMap::default();
        Self { discipline, tree, control, equals, streams, arrivals: 0, window: 0 }
    }

    /// The number of inserted streams, and of entries of the tree.
    #[cfg(test)]
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.streams.len(), self.tree.capacity())
    }

    fn seat(&mut self, stream: StreamKey, control: bool) -> (Slot, Seat) {
        self.arrivals += 1;
        let (node, rank) = match self.discipline {
            _ if control => (self.control, stream),
            Discipline::Lifo => (self.equals, u64::MAX - self.arrivals),
            Discipline::Fifo | Discipline::RoundRobin(_) => (self.equals, self.arrivals),
        };
        (node, Seat { weight: DEFAULT_WEIGHT, rank })
    }
}

impl Scheduler for Multiplexer {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        if self.streams.contains_key(&stream) {
            return self.reprioritize(stream, priority);
        }
        let control = priority.urgency == Urgency::CONTROL;
        let (node, seat) = self.seat(stream, control);
        let slot = self.tree.add_stream(stream, node, seat);
        self.streams.insert(stream, MultiplexerEntry { slot, control, used: 0 });
    }

    fn remove(&mut self, stream: StreamKey) {
        if let Some(entry) = self.streams.remove(&stream) {
            self.tree.remove(entry.slot);
        }
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        let control = priority.urgency == Urgency::CONTROL;
        let Some(&MultiplexerEntry { slot, control: old, .. }) = self.streams.get(&stream) else {
            return;
        };
        if control != old {
            let (node, seat) = self.seat(stream, control);
            self.tree.set_rank(slot, seat.rank);
            self.tree.set_parent(slot, node);
            self.streams.insert(stream, MultiplexerEntry { slot, control, used: 0 });
        }
    }

    fn activate(&mut self, stream: StreamKey) {
        if let Some(entry) = self.streams.get(&stream) {
            self.tree.set_ready(entry.slot, true);
        }
    }

    fn deactivate(&mut self, stream: StreamKey) {
        if let Some(entry) = self.streams.get_mut(&stream) {
            entry.used = 0;
            self.tree.set_ready(entry.slot, false);
        }
    }

    fn next(&self, room: usize) -> Option<Grant> {
        let stream = self.tree.next()?;
        (room > 0).then_some(Grant { stream, bytes: room })
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        let Discipline::RoundRobin(block) = self.discipline else {
            return;
        };
        let Some(entry) = self.streams.get_mut(&stream) else {
            return;
        };
        if bytes == 0 || !self.tree.is_ready(entry.slot) {
            return;
        }
        let (used, length) = match block {
            Block::Packets(packets) => (1, u64::from(packets)),
            Block::Bytes(length) => (bytes as u64, length),
            Block::Window => (bytes as u64, self.window),
        };
        entry.used = entry.used.saturating_add(used);
        if entry.used >= length {
            entry.used = 0;
            self.tree.charge(entry.slot, bytes);
        }
    }

    fn on_congestion_window(&mut self, bytes: u64) {
        self.window = bytes;
    }

    fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }
}
