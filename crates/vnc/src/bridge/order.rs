//! Which pieces must be painted before which others.
//!
//! A piece writes rectangles, and a copy reads one. Two pieces may be painted in any order unless one writes what the
//! other writes or reads. If the newer one writes over all that the older one wrote, and nobody reads that
//! meanwhile, then the older one need not be painted at all: it is *superseded* and cancelled. The newer one
//! does not wait for it, but names it, so that the painter leaves it out if it comes all the same. A piece that
//! supersedes another takes over what that one superseded.
//!
//! That is [`UpdateOrder::Geometry`]. With [`UpdateOrder::Fences`], all pieces of an update come before those of the
//! next, and none is superseded.

use super::piece::MAX_SUPERSEDED;
use crate::rect::Rect;
use std::collections::BTreeMap;

/// The numbers of two pieces that are both on their way are less than this apart. A painter leaves out what is
/// older: it can only have been superseded.
pub const WINDOW: u64 = 32_768;
/// Most pieces that one names to come after; a piece that comes after more is put behind a fence. As many as a
/// message of an ordered group may name.
const MAX_AFTER: usize = 32;

/// What orders the pieces of different updates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpdateOrder {
    /// Only what they write and read: parts of two updates may be shown at once.
    #[default]
    Geometry,
    /// A fence between any two updates (Eghbal and Lu 2025, section 3): no piece of an update is painted before all
    /// of the former one are.
    Fences,
}

/// What a piece does to the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// What it writes.
    pub writes: Vec<Rect>,
    /// What it copies from.
    pub reads: Option<Rect>,
}

impl Footprint {
    fn writes_on(&self, rect: Rect) -> bool {
        self.writes.iter().any(|write| write.overlaps(rect))
    }

    fn meets(&self, other: &Self) -> bool {
        self.writes.iter().any(|&write| other.writes_on(write))
    }

    /// Whether one needs what the other writes, or destroys what the other needs.
    fn conflicts(&self, older: &Self) -> bool {
        self.reads.is_some_and(|read| older.writes_on(read))
            || older.reads.is_some_and(|read| self.writes_on(read))
    }

    /// Whether it writes over all that the other writes.
    fn covers(&self, other: &Self) -> bool {
        other.writes.iter().all(|&old| self.writes.iter().any(|write| write.contains(old)))
    }
}

/// A piece whose fate is open.
#[derive(Debug)]
struct Open {
    footprint: Footprint,
    superseded: Vec<u64>,
    /// The smallest rectangle around all that it writes and reads.
    around: Rect,
    size: usize,
}

/// How a piece stands to those that are on their way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Those that come first.
    pub after: Vec<u64>,
    /// Those that are to be cancelled.
    pub cancel: Vec<u64>,
    /// Those that must not be painted any more: those to be cancelled, and what they superseded.
    pub superseded: Vec<u64>,
    /// Whether all that was sent so far comes first, rather than those in `after`.
    pub fence: bool,
}

/// The pieces that are on their way.
#[derive(Debug, Default)]
pub struct Order {
    between: UpdateOrder,
    open: BTreeMap<u64, Open>,
    bytes: usize,
    /// The number of the next piece.
    next: u64,
    /// The update of the newest piece.
    update: u32,
}

impl Order {
    /// No pieces yet.
    pub fn new(between: UpdateOrder) -> Self {
        Self { between, ..Self::default() }
    }

    /// How a new piece of an update stands to those on their way.
    pub fn plan(&self, footprint: &Footprint, update: u32) -> Plan {
        let fence = Plan { fence: true, ..Plan::default() };
        if self.between == UpdateOrder::Fences && update != self.update {
            return fence;
        }
        let mut plan = Plan::default();
        let around = around(footprint);
        for (&number, old) in &self.open {
            if !around.overlaps(old.around) {
                continue;
            }
            let meets = footprint.meets(&old.footprint);
            if footprint.conflicts(&old.footprint) {
                plan.after.push(number);
            } else if meets && self.may_supersede(footprint, old, &plan) {
                plan.cancel.push(number);
                plan.superseded.push(number);
                plan.superseded.extend(&old.superseded);
            } else if meets {
                plan.after.push(number);
            }
        }
        if plan.after.len() > MAX_AFTER {
            return fence;
        }
        // Distances that do not fit name pieces so old that a painter leaves them out anyway.
        plan.superseded.retain(|&number| self.next - number < WINDOW);
        plan
    }

    fn may_supersede(&self, footprint: &Footprint, old: &Open, plan: &Plan) -> bool {
        let room = MAX_SUPERSEDED.saturating_sub(plan.superseded.len());
        self.between == UpdateOrder::Geometry
            && old.superseded.len() < room
            && footprint.covers(&old.footprint)
            && !self.is_read(old)
    }

    /// Whether a piece on its way copies from what another writes.
    fn is_read(&self, written: &Open) -> bool {
        let reads = self.open.values().filter_map(|open| open.footprint.reads);
        reads.into_iter().any(|read| written.footprint.writes_on(read))
    }

    /// Notes that a piece of an update was sent as it was planned.
    pub fn sent(
        &mut self,
        number: u64,
        update: u32,
        footprint: Footprint,
        plan: Plan,
        size: usize,
    ) {
        for cancelled in plan.cancel {
            self.settled(cancelled);
        }
        if plan.fence {
            self.fence();
        }
        let around = around(&footprint);
        self.bytes += size;
        self.open.insert(number, Open { footprint, superseded: plan.superseded, around, size });
        (self.next, self.update) = (number + 1, update);
    }

    /// Nothing on its way needs to be named any more: a fence is behind it.
    pub fn fence(&mut self) {
        for open in self.open.values_mut() {
            open.around = Rect::default();
        }
    }

    /// Notes that a piece has arrived or was cancelled; returns what it wrote, if it was open.
    pub fn settled(&mut self, number: u64) -> Option<Vec<Rect>> {
        let open = self.open.remove(&number)?;
        self.bytes -= open.size;
        Some(open.footprint.writes)
    }

    /// Forgets all pieces; returns what those wrote whose fate was open.
    pub fn abandon(&mut self) -> Vec<Rect> {
        let open = std::mem::replace(self, Self::new(self.between)).open;
        open.into_values().flat_map(|open| open.footprint.writes).collect()
    }

    /// Bytes of pieces on their way.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the oldest piece on its way is [`WINDOW`] before the next.
    pub fn is_full(&self) -> bool {
        self.open.first_key_value().is_some_and(|(&oldest, _)| self.next - oldest >= WINDOW - 1)
    }
}

fn around(footprint: &Footprint) -> Rect {
    let reads = footprint.reads.unwrap_or_default();
    footprint.writes.iter().fold(reads, |all, &write| all.around(write))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paint(rect: Rect) -> Footprint {
        Footprint { writes: vec![rect], reads: None }
    }

    fn copy(from: Rect, to: Rect) -> Footprint {
        Footprint { writes: vec![to], reads: Some(from) }
    }

    fn send(order: &mut Order, footprint: Footprint) -> (Vec<u64>, Vec<u64>) {
        let plan = send_of(order, 0, footprint);
        (plan.after, plan.superseded)
    }

    fn send_of(order: &mut Order, update: u32, footprint: Footprint) -> Plan {
        let plan = order.plan(&footprint, update);
        order.sent(order.next, update, footprint, plan.clone(), 10);
        plan
    }

    const LEFT: Rect = Rect::new(0, 0, 10, 10);
    const RIGHT: Rect = Rect::new(10, 0, 10, 10);

    #[test]
    fn places_that_do_not_meet_have_no_order() {
        let mut order = Order::default();
        assert_eq!(send(&mut order, paint(LEFT)), (vec![], vec![]));
        assert_eq!(send(&mut order, paint(RIGHT)), (vec![], vec![]));
        // Part of both.
        assert_eq!(send(&mut order, paint(Rect::new(5, 0, 10, 5))), (vec![0, 1], vec![]));
        assert_eq!(order.bytes(), 30);
    }

    #[test]
    fn what_is_painted_over_is_superseded_together_with_what_it_superseded() {
        let mut order = Order::default();
        send(&mut order, paint(LEFT));
        assert_eq!(send(&mut order, paint(LEFT)), (vec![], vec![0]));
        assert_eq!(send(&mut order, paint(LEFT.around(RIGHT))), (vec![], vec![1, 0]));
        assert_eq!(order.bytes(), 10);
        assert_eq!(order.settled(2), Some(vec![LEFT.around(RIGHT)]));
        assert_eq!((order.settled(2), order.settled(0)), (None, None));
        assert_eq!(send(&mut order, paint(LEFT)), (vec![], vec![]));
    }

    #[test]
    fn a_copy_comes_after_its_source_and_before_what_destroys_that() {
        let mut order = Order::default();
        send(&mut order, paint(LEFT));
        assert_eq!(send(&mut order, copy(LEFT, RIGHT)), (vec![0], vec![]));
        // It paints over the source, which the copy still needs.
        assert_eq!(send(&mut order, paint(LEFT)), (vec![0, 1], vec![]));
        // Nobody needs the target.
        assert_eq!(send(&mut order, paint(RIGHT)), (vec![], vec![1]));
        // Now nobody needs the old source either.
        assert_eq!(send(&mut order, paint(LEFT)), (vec![], vec![0, 2]));
    }

    #[test]
    fn a_piece_that_meets_too_many_is_put_behind_a_fence() {
        let mut order = Order::default();
        for x in 0..40 {
            send(&mut order, paint(Rect::new(10 * x, 0, 10, 20)));
        }
        let row = paint(Rect::new(0, 0, 400, 10));
        let plan = order.plan(&row, 0);
        assert_eq!(plan, Plan { fence: true, ..Plan::default() });
        order.sent(40, 0, row, plan, 10);
        // What is before the fence is not named any more.
        assert_eq!(order.plan(&paint(Rect::new(5, 5, 10, 10)), 0).after, [40]);
    }

    #[test]
    fn what_one_piece_supersedes_is_bounded() {
        let mut order = Order::default();
        for x in 0..80 {
            send(&mut order, paint(Rect::new(10 * x, 0, 10, 10)));
        }
        let plan = order.plan(&paint(Rect::new(0, 0, 800, 10)), 0);
        assert_eq!(plan.superseded.len(), MAX_SUPERSEDED);
        assert_eq!(plan.after.len(), 80 - MAX_SUPERSEDED);
        let mut order = Order::default();
        for _ in 0..200 {
            send(&mut order, paint(LEFT));
        }
        assert!(order.open.len() <= 4, "{}", order.open.len());
    }

    #[test]
    fn a_fence_is_between_any_two_updates_if_that_is_the_order() {
        let mut order = Order::new(UpdateOrder::Fences);
        let none = Plan::default();
        assert_eq!(send_of(&mut order, 1, paint(LEFT)), Plan { fence: true, ..none.clone() });
        assert_eq!(send_of(&mut order, 1, paint(RIGHT)), none);
        // Within an update, geometry is left, and nothing is superseded.
        assert_eq!(send_of(&mut order, 1, paint(LEFT)), Plan { after: vec![0], ..none.clone() });
        // The next update paints over both, and somewhere else.
        let over = paint(LEFT.around(RIGHT));
        assert_eq!(send_of(&mut order, 2, over.clone()), Plan { fence: true, ..none.clone() });
        assert_eq!(send_of(&mut order, 2, paint(Rect::new(50, 50, 1, 1))), none);
        assert_eq!(order.bytes(), 50);
        // It stays so when all on its way is given up.
        order.abandon();
        assert!(send_of(&mut order, 3, over).fence);
    }

    #[test]
    fn numbers_of_pieces_on_their_way_stay_close_to_each_other() {
        let mut order = Order::default();
        send(&mut order, paint(LEFT));
        for number in 1..WINDOW - 1 {
            assert!(!order.is_full());
            send(&mut order, paint(RIGHT));
            order.settled(number);
        }
        assert!(order.is_full());
        order.settled(0);
        assert!(!order.is_full());
    }
}
