//! Sharing by virtual time: hierarchical start-time fair queueing.

use super::tree::{Inner, Kind, Node, ORDER_END, ROOT, ROOT_INNER, Rank, Sharing, Tree};
use super::{LMAX, MAX_DEBT, tree_calls};
use crate::queue::Slot;
use crate::registry::Entry;
use crate::{Grant, Priority, Scheduler, SchedulerFactory, Scheme, StreamKey, Urgency, Weight};
use std::sync::Arc;

impl Scheme {
    /// Weighted hierarchical max-min fair sharing by virtual time: [`Hmm`].
    pub const HMM: Self = Self::new("hmm", || Box::new(Hmm::new()));
}

pub(crate) const ENTRY: Entry<dyn SchedulerFactory> =
    Entry::new(Scheme::HMM.name(), "shares by weight and class, packet by packet", |_| {
        Ok(Arc::new(Scheme::HMM))
    });

/// Hierarchical max-min fair sharing by virtual time (after Goyal, Vin and Cheng, "Start-time fair
/// queueing", SIGCOMM 1996).
///
/// Each class has a clock for each urgency of its members. An incremental member has a *start* on
/// that clock: how much service by weight it has had. The class serves the smallest start, equal
/// ones in order of their keys; a charge sets the clock to the start of who was served, and adds to
/// that start the bytes divided by the weight. A member that becomes backlogged starts at the clock
/// or where it was before, whichever is later; a new one one packet behind the clock, as if it had
/// just been served, so that the clock moves on however many come. So all that are backlogged have a start at most one
/// packet, divided by their weight, behind the clock: that is the whole of the guarantee.
///
/// * While two incremental siblings of one urgency are backlogged and served, their services
///   divided by weight differ by less than `L/w1 + L/w2` over any interval, L the largest packet.
/// * Of what its class gets, no member is ever ahead of its max-min fair share by more than L and
///   another L for each sibling that is new, and none is behind it by more than L for each sibling
///   and another L if it is new itself. Both are less than the paper's quantum.
/// * The same holds in every class, so the leaves are within one packet per level.
///
/// Memory: one entry for each stream, one for each class. Nothing is allocated by `activate`,
/// `next`, `charge` and `deactivate` once the queues have been as long as they get.
#[derive(Debug, Default)]
pub struct Hmm {
    tree: Tree<VirtualTime>,
}

impl Hmm {
    /// A scheduler without streams.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many streams are inserted, active or not.
    #[must_use]
    pub fn streams(&self) -> usize {
        self.tree.streams()
    }

    /// How many classes there are. One goes with the last stream below it.
    #[must_use]
    pub fn classes(&self) -> usize {
        self.tree.classes()
    }

    /// Slots of nodes and of classes, in use or not.
    #[cfg(test)]
    pub(super) fn slots(&self) -> (usize, usize) {
        (self.tree.nodes.len(), self.tree.inners.len())
    }

    /// Adds to the start of one member, and sets its class' clock if it was its turn. Returns the
    /// class.
    fn advance(&mut self, slot: usize, bytes: u32) -> usize {
        let Node { parent, above, rank, place, member, .. } = &mut self.tree.nodes[slot];
        if !rank.incremental {
            // The others wait in any case.
            return *parent as usize;
        }
        let Inner { queue, state, .. } = &mut self.tree.inners[*above as usize];
        let clock = &mut state.0[rank.urgency.class()];
        let Member { start, price } = *member;
        // At most 2^44 times 2^18.
        let cost = |bytes| u128::from(price * u64::from(bytes));
        let next = if queue.is_first(slot) {
            // Nobody in the queue has a start before the clock.
            *clock = start;
            start + cost(bytes)
        } else {
            let base = start.max(*clock);
            (base + cost(bytes)).min(base.max(*clock + cost(MAX_DEBT)))
        };
        let next = next.min(ORDER_END - 1);
        member.start = next;
        if place.is_queued() {
            queue.update(*place, rank.queued(next));
        }
        *parent as usize
    }
}

impl Scheduler for Hmm {
    tree_calls!();

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        if bytes == 0 {
            return;
        }
        let Some(mut slot) = self.tree.slot_to_charge(stream) else {
            return;
        };
        let bytes = u32::try_from(bytes).unwrap_or(MAX_DEBT).min(MAX_DEBT);
        while slot != ROOT {
            slot = self.advance(slot, bytes);
        }
        self.tree.find_turn();
    }
}

/// The sharing of [`Hmm`].
#[derive(Debug, Default)]
struct VirtualTime;

/// The clocks of a class.
#[derive(Debug, Default)]
struct Clocks([u128; Urgency::CLASSES]);

/// Packed, so that a node is one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(8))]
struct Member {
    /// On the clock of its class and urgency. While it does not share, the bytes that it owes.
    start: u128,
    /// How far a byte takes it.
    price: u64,
}

impl Default for Member {
    /// As one that has just been served. If streams of one packet started at the clock, one after
    /// the other, the clock would stand still, and who has had its packet would wait for ever.
    fn default() -> Self {
        Self { start: u128::from(LMAX), price: 0 }
    }
}

/// Virtual time in which a member of weight one thousandth sends one byte. A power of two so large
/// that the price of a byte is rounded by less than 2^-24 of it, and so small that a clock does not
/// reach [`ORDER_END`] within 2^76 bytes.
const SCALE: u64 = 1 << 44;

fn price(weight: Weight) -> u64 {
    SCALE / u64::from(weight.thousandths())
}

const _: () = assert!(size_of::<Node<VirtualTime>>() == 64);

impl Sharing for VirtualTime {
    type Member = Member;
    type Class = Clocks;
    type Whole = ();

    fn attach(class: &mut Clocks, rank: &Rank, member: &mut Member) {
        member.price = price(rank.weight);
        if rank.incremental {
            let Member { start, price } = *member;
            let owed = start.min(u128::from(MAX_DEBT)) * u128::from(price);
            member.start = (class.0[rank.urgency.class()] + owed).min(ORDER_END - 1);
        }
    }

    fn detach(class: &mut Clocks, rank: &Rank, member: &mut Member) {
        if rank.incremental {
            let Member { start, price } = *member;
            let ahead = start.saturating_sub(class.0[rank.urgency.class()]);
            member.start = ahead / u128::from(price.max(1));
        }
    }

    fn join(class: &mut Clocks, rank: &Rank, member: &mut Member) -> u128 {
        if rank.incremental {
            let start = member.start;
            member.start = start.max(class.0[rank.urgency.class()]);
        }
        member.start
    }

    fn leave(_: &mut Clocks, _: &Rank, _: &mut Member) {}

    /// The first of the first.
    fn turn(tree: &mut Tree<Self>) -> Option<Slot> {
        let mut inner = ROOT_INNER;
        loop {
            let slot = tree.inners[inner as usize].queue.first()?.slot();
            match tree.nodes[slot].kind {
                Kind::Stream => return Some(slot),
                Kind::Class(below) => inner = below,
            }
        }
    }
}
