//! Sharing by virtual time: hierarchical start-time fair queueing.

use super::tree::{Inner, Kind, ORDER_END, ROOT, ROOT_INNER, Sharing, SharingRank, Tree, TreeNode};
use super::{LMAX, MAX_DEBT, tree_calls, tree_counts};
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
/// Each class has a virtual clock for each urgency of its members. An incremental member has a
/// *start* on that clock, which measures its service so far divided by its weight. The class serves
/// the member with the smallest start; ties are broken by key. A charge sets the clock to the start
/// of the member that was served, and adds the bytes divided by the weight to that start. A member
/// that becomes backlogged starts at the clock or at its previous start, whichever is later. A new member
/// starts one packet later than the clock, as if it had just been served, so that the clock advances no
/// matter how many members arrive. Thus the start of every backlogged member is at most one packet, divided
/// by its weight, later than the clock. All guarantees follow from this:
///
/// * While two incremental siblings of the same urgency are backlogged and served, their services
///   divided by weight differ by less than `L/w1 + L/w2` over any interval, where L is the size of
///   the largest packet.
/// * No member is ever ahead of its max-min fair share of its class by more than L, plus L for each
///   new sibling. No member is behind by more than L for each sibling, plus L if it is new itself. Both
///   bounds are less than the paper's quantum.
/// * The same holds in every class, so the leaves are within one packet per level.
///
/// Memory: one entry per stream and one per class. Once the queues have reached their largest size,
/// `activate`, `next`, `charge` and `deactivate` do not allocate.
#[derive(Debug, Default)]
pub struct Hmm {
    tree: Tree<VirtualTime>,
}

tree_counts!(Hmm);

impl Hmm {
    /// Advances the start of a member, and sets the clock of its class if it was the member's turn.
    /// Returns the class.
    fn advance(&mut self, slot: usize, bytes: u32) -> usize {
        let TreeNode { parent, above, rank, place, member, .. } = &mut self.tree.nodes[slot];
        if !rank.incremental {
            // Non-incremental siblings wait in any case.
            return *parent as usize;
        }
        let Inner { queue, state, .. } = &mut self.tree.inners[*above as usize];
        let clock = &mut state.0[rank.urgency.class()];
        let FairMember { start, price } = *member;
        // At most 2^44 times 2^18.
        let cost = |bytes| u128::from(price * u64::from(bytes));
        let next = if queue.is_first(slot) {
            // No member in the queue has a start before the clock.
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

    fn next(&self, room: usize) -> Option<Grant> {
        self.tree.next(room)
    }

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

/// The sharing policy of [`Hmm`].
#[derive(Debug, Default)]
struct VirtualTime;

/// The clocks of a class.
#[derive(Debug, Default)]
struct Clocks([u128; Urgency::CLASSES]);

/// Packed, so that a node fits into one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(8))]
struct FairMember {
    /// The start, on the clock of the member's class and urgency. For a member that does not share,
    /// its debt in bytes.
    start: u128,
    /// The virtual time per byte.
    price: u64,
}

impl Default for FairMember {
    /// Like a member that has just been served. If a sequence of one-packet streams started at the
    /// clock, the clock would stand still, and members that have had their packet would wait
    /// forever.
    fn default() -> Self {
        Self { start: u128::from(LMAX), price: 0 }
    }
}

/// The virtual time in which a member with a weight of one thousandth sends one byte. This power of
/// two is so large that the price of a byte is rounded by less than 2^-24 of it, and so small that
/// a clock does not reach [`ORDER_END`] within 2^76 bytes.
const SCALE: u64 = 1 << 44;

fn price(weight: Weight) -> u64 {
    SCALE / u64::from(weight.thousandths())
}

const _: () = assert!(size_of::<TreeNode<VirtualTime>>() == 64);

impl Sharing for VirtualTime {
    type Member = FairMember;
    type Class = Clocks;
    type Whole = ();

    fn attach(class: &mut Clocks, rank: &SharingRank, member: &mut FairMember) {
        member.price = price(rank.weight);
        if rank.incremental {
            let FairMember { start, price } = *member;
            let owed = start.min(u128::from(MAX_DEBT)) * u128::from(price);
            member.start = (class.0[rank.urgency.class()] + owed).min(ORDER_END - 1);
        }
    }

    fn detach(class: &mut Clocks, rank: &SharingRank, member: &mut FairMember) {
        if rank.incremental {
            let FairMember { start, price } = *member;
            let ahead = start.saturating_sub(class.0[rank.urgency.class()]);
            member.start = ahead / u128::from(price.max(1));
        }
    }

    fn join(class: &mut Clocks, rank: &SharingRank, member: &mut FairMember) -> u128 {
        if rank.incremental {
            let start = member.start;
            member.start = start.max(class.0[rank.urgency.class()]);
        }
        member.start
    }

    fn leave(_: &mut Clocks, _: &SharingRank, _: &mut FairMember) {}

    /// Follows the first member of each class down to a stream.
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
