//! Which pieces must be painted before which others.
//!
//! A piece writes rectangles, and a copy reads one. Two pieces may be painted in any order unless one writes
//! pixels that the other writes or reads. If the newer piece writes over all pixels of the older one, and no
//! piece in between reads those, then the older piece need not be painted at all: it is *superseded* and
//! cancelled. The newer piece does not wait for it, but names it, so that the painter leaves it out if it
//! comes all the same. A piece that supersedes another also names the pieces that the other superseded.
//!
//! A piece that has arrived need not be painted yet: it may wait for others. So it counts as on its way until
//! all pieces before it are painted, too. The other end does not tell when it has heard that a piece was
//! cancelled, and paints the pieces that wait for it; so no piece is superseded that others wait for, unless
//! these are superseded with it. For the same reason the pieces behind a piece that was given up are put
//! behind a fence.
//!
//! A fence waits for pieces before it that were cancelled or given up, too, until the other end hears that they will
//! not come. So once a connection is lost, pieces behind such a fence count as not painted, even if they have
//! arrived.
//!
//! That is [`UpdateOrder::Geometry`]. With [`UpdateOrder::Fences`], all pieces of an update come before the
//! pieces of the next, and no piece is superseded.

use super::piece::MAX_SUPERSEDED;
use crate::rect::Rect;
use std::collections::BTreeMap;

/// The numbers of two pieces that are both on their way are less than this apart. A painter leaves out older
/// pieces: they can only have been superseded.
pub const WINDOW: u64 = 32_768;
/// Most pieces that a piece names to come after; a piece that comes after more is put behind a fence. The
/// number is the same as for a message of an ordered group.
const MAX_AFTER: usize = 32;

/// The order between pieces of different updates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UpdateOrder {
    /// By the rectangles that pieces write and read: parts of two updates may be shown at once.
    #[default]
    Geometry,
    /// A fence between any two updates (Eghbal and Lu 2025, section 3): no piece of an update is painted
    /// before all of the former one are.
    Fences,
}

/// The effect of a piece on the screen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The rectangles that it writes.
    pub writes: Vec<Rect>,
    /// The rectangle that it copies from.
    pub reads: Option<Rect>,
}

impl Footprint {
    fn writes_on(&self, rect: Rect) -> bool {
        self.writes.iter().any(|write| write.overlaps(rect))
    }

    fn meets(&self, other: &Self) -> bool {
        self.writes.iter().any(|&write| other.writes_on(write))
    }

    /// The smallest rectangle around `rect` and all that it writes.
    fn around_writes(&self, rect: Rect) -> Rect {
        self.writes.iter().fold(rect, |all, &write| all.around(write))
    }

    /// Whether one of two pieces reads pixels that the other writes.
    fn conflicts(&self, older: &Self) -> bool {
        self.reads.is_some_and(|read| older.writes_on(read))
            || older.reads.is_some_and(|read| self.writes_on(read))
    }

    /// Whether it writes over all rectangles that the other writes.
    fn covers(&self, other: &Self) -> bool {
        other.writes.iter().all(|&old| self.writes.iter().any(|write| write.contains(old)))
    }
}

/// The known fate of a piece that may still be painted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    /// The piece has come to the other end, where it may wait for others.
    Arrived,
    /// The piece was given up, and a fence will follow.
    Lost,
}

/// A piece that may still be painted.
#[derive(Debug)]
struct Open {
    footprint: Footprint,
    superseded: Vec<u64>,
    /// The smallest rectangle around all that it writes and reads.
    around: Rect,
    size: usize,
    /// The pieces that come first, in addition to all before `fence`, the first piece behind the last fence.
    after: Vec<u64>,
    fence: u64,
    fate: Fate,
}

/// How a piece relates to the pieces that are on their way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// The pieces that come first.
    pub after: Vec<u64>,
    /// The pieces that are to be cancelled.
    pub cancel: Vec<u64>,
    /// The pieces that must not be painted any more: the pieces to be cancelled, and the pieces that these
    /// superseded.
    pub superseded: Vec<u64>,
    /// Whether all pieces sent so far come first, rather than only the pieces in `after`.
    pub fence: bool,
}

/// Pieces that may wait at the other end, whether they have arrived or not: they are behind a fence, and the other
/// end may not have heard that pieces before the fence will not come.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    /// The first of them; all later ones are among them.
    first: u64,
    /// The smallest rectangle around all that they write.
    writes: Rect,
}

/// The pieces that are on their way.
#[derive(Debug, Default)]
pub struct Order {
    between: UpdateOrder,
    open: BTreeMap<u64, Open>,
    /// Bytes of the pieces that have not arrived.
    bytes: usize,
    /// The number of the next piece.
    next: u64,
    /// The first piece behind the last fence.
    fence: u64,
    /// A piece was given up since the last fence.
    has_lost: bool,
    /// A piece was cancelled or given up, and the other end may not have heard of it.
    has_unheard: bool,
    doubt: Option<Doubt>,
    /// The update of the newest piece.
    update: u32,
}

impl Order {
    /// No pieces yet.
    pub fn new(between: UpdateOrder) -> Self {
        Self { between, ..Self::default() }
    }

    /// How a new piece of an update relates to the pieces on their way.
    pub fn plan(&self, footprint: &Footprint, update: u32) -> Plan {
        let fence = Plan { fence: true, ..Plan::default() };
        if self.has_lost || (self.between == UpdateOrder::Fences && update != self.update) {
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
        self.keep_awaited(&mut plan);
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

    /// Lets a new piece wait for pieces that it would supersede, if further pieces, which it does not
    /// supersede, wait for them.
    fn keep_awaited(&self, plan: &mut Plan) {
        let planned = plan.cancel.len();
        // The newest first: a piece that is kept may wait for older ones.
        for index in (0..planned).rev() {
            let number = plan.cancel[index];
            let mut later = self.open.range(number + 1..);
            let waits = |(other, open): (&u64, &Open)| {
                open.after.contains(&number) && !plan.cancel.contains(other)
            };
            if later.any(waits) {
                plan.cancel.remove(index);
                plan.after.push(number);
            }
        }
        if plan.cancel.len() < planned {
            let superseded = |&number: &u64| {
                let old = self.open.get(&number).map_or(&[][..], |open| &open.superseded);
                std::iter::once(number).chain(old.iter().copied())
            };
            plan.superseded = plan.cancel.iter().flat_map(superseded).collect();
            plan.after.sort_unstable();
        }
    }

    /// Whether a piece on its way copies pixels that the piece `written` writes.
    fn is_read(&self, written: &Open) -> bool {
        let reads = self.open.values().filter_map(|open| open.footprint.reads);
        reads.into_iter().any(|read| written.footprint.writes_on(read))
    }

    /// Notes that a piece of an update was sent according to its plan.
    pub fn sent(
        &mut self,
        number: u64,
        update: u32,
        footprint: Footprint,
        plan: Plan,
        size: usize,
    ) {
        for cancelled in plan.cancel {
            self.cancelled(cancelled);
        }
        if plan.fence {
            self.fence();
        }
        if let Some(doubt) = &mut self.doubt {
            doubt.writes = footprint.around_writes(doubt.writes);
        }
        let (around, fence) = (around(&footprint), self.fence);
        let (superseded, after) = (plan.superseded, plan.after);
        self.bytes += size;
        let open = Open { footprint, superseded, around, size, after, fence, fate: Fate::Open };
        self.open.insert(number, open);
        (self.next, self.update) = (number + 1, update);
    }

    /// No piece on its way needs to be named any more: a fence is behind them.
    pub fn fence(&mut self) {
        if self.has_unheard && self.doubt.is_none() {
            let first = self.open.first_key_value().map_or(self.next, |(&first, _)| first);
            let open = self.open.values();
            let writes = open.fold(Rect::default(), |all, open| open.footprint.around_writes(all));
            self.doubt = Some(Doubt { first, writes });
        }
        self.open.retain(|_, open| open.fate != Fate::Lost);
        for open in self.open.values_mut() {
            open.around = Rect::default();
        }
        (self.fence, self.has_lost) = (self.next, false);
        self.forget_painted();
    }

    /// Notes that a piece has arrived.
    pub fn arrived(&mut self, number: u64) {
        if self.decide(number, Fate::Arrived) {
            self.forget_painted();
        }
    }

    /// Notes that a piece was given up; returns the rectangles whose contents at the other end are unknown
    /// because of that.
    pub fn lost(&mut self, number: u64) -> Vec<Rect> {
        if !self.decide(number, Fate::Lost) {
            return Vec::new();
        }
        (self.has_lost, self.has_unheard) = (true, true);
        self.unknown()
    }

    /// Whether a copy of this rectangle that is sent now reads unknown contents, because of a piece that was
    /// given up.
    pub fn is_unknown(&self, rect: Rect) -> bool {
        self.has_lost && self.unknown().iter().any(|unknown| unknown.overlaps(rect))
    }

    /// The rectangles that pieces wrote which were given up since the last fence, and the targets of copies
    /// from there that are on their way.
    fn unknown(&self) -> Vec<Rect> {
        let mut unknown: Vec<Rect> = Vec::new();
        for Open { footprint, fate, .. } in self.open.values() {
            let reads_unknown = |read: Rect| unknown.iter().any(|rect| rect.overlaps(read));
            if *fate == Fate::Lost || footprint.reads.is_some_and(reads_unknown) {
                unknown.extend(&footprint.writes);
            }
        }
        unknown
    }

    /// Notes the fate of a piece; returns whether it was open.
    fn decide(&mut self, number: u64, fate: Fate) -> bool {
        let open = self.open.get_mut(&number).filter(|open| open.fate == Fate::Open);
        let Some(open) = open else { return false };
        open.fate = fate;
        self.bytes -= open.size;
        true
    }

    fn cancelled(&mut self, number: u64) {
        self.has_unheard = true;
        let open = self.open.remove(&number).filter(|open| open.fate == Fate::Open);
        self.bytes -= open.map_or(0, |open| open.size);
    }

    /// Forgets the pieces that have arrived and wait for no other pieces.
    fn forget_painted(&mut self) {
        let arrived = self.open.iter().filter(|(_, open)| open.fate == Fate::Arrived);
        // In the order of their numbers, since a piece may wait for an earlier one.
        for number in arrived.map(|(&number, _)| number).collect::<Vec<_>>() {
            if self.open.get(&number).is_some_and(|open| !self.waits(open)) {
                self.open.remove(&number);
            }
        }
    }

    fn waits(&self, piece: &Open) -> bool {
        self.open.first_key_value().is_some_and(|(&first, _)| first < piece.fence)
            || piece.after.iter().any(|before| self.open.contains_key(before))
    }

    /// Whether a piece may still be painted.
    pub fn may_be_painted(&self, number: u64) -> bool {
        self.open.contains_key(&number) || self.doubt.is_some_and(|doubt| number >= doubt.first)
    }

    /// Forgets all pieces; returns the rectangles of pieces that may or may not be painted.
    pub fn abandon(&mut self) -> Vec<Rect> {
        let Self { open, doubt, .. } = std::mem::replace(self, Self::new(self.between));
        let open = open.into_values().flat_map(|open| open.footprint.writes);
        open.chain(doubt.map(|doubt| doubt.writes)).collect()
    }

    /// Bytes of pieces that have not arrived.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether the oldest piece on its way is [`WINDOW`] before the next.
    pub fn is_full(&self) -> bool {
        let oldest = self.open.iter().find(|(_, open)| open.fate != Fate::Lost);
        oldest.is_some_and(|(&oldest, _)| self.next - oldest >= WINDOW - 1)
    }
}

fn around(footprint: &Footprint) -> Rect {
    footprint.around_writes(footprint.reads.unwrap_or_default())
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
        // Cancelled pieces change nothing, no matter whether they arrive or are lost.
        order.arrived(0);
        assert_eq!((order.lost(1), order.bytes()), (vec![], 10));
        order.arrived(2);
        assert_eq!((order.bytes(), order.open.len()), (0, 0));
        assert_eq!(send(&mut order, paint(LEFT)), (vec![], vec![]));
    }

    #[test]
    fn a_copy_comes_after_its_source_and_before_what_destroys_that() {
        let mut order = Order::default();
        send(&mut order, paint(LEFT));
        assert_eq!(send(&mut order, copy(LEFT, RIGHT)), (vec![0], vec![]));
        // Nobody needs the target.
        assert_eq!(send(&mut order, paint(RIGHT)), (vec![], vec![1]));
        // Now nobody needs the old source either.
        assert_eq!(send(&mut order, paint(LEFT)), (vec![], vec![0]));
        send(&mut order, copy(LEFT, RIGHT));
        // The piece paints over the source, which the copy still needs.
        assert_eq!(send(&mut order, paint(LEFT)), (vec![3, 4], vec![]));
    }

    #[test]
    fn what_others_wait_for_is_superseded_together_with_them_only() {
        let mut order = Order::default();
        let both = LEFT.around(RIGHT);
        send(&mut order, paint(LEFT));
        assert_eq!(send(&mut order, paint(Rect::new(5, 0, 10, 10))), (vec![0], vec![]));
        assert_eq!(send(&mut order, paint(LEFT)), (vec![0, 1], vec![]));
        assert_eq!(send(&mut order, paint(both)), (vec![], vec![0, 1, 2]));
    }

    #[test]
    fn what_has_arrived_counts_until_all_that_it_waits_for_has() {
        let mut order = Order::default();
        send(&mut order, paint(LEFT));
        send(&mut order, copy(LEFT, RIGHT));
        order.arrived(1);
        assert_eq!(order.bytes(), 10);
        assert_eq!(order.plan(&paint(LEFT), 0).after, [0, 1]);
        order.fence();
        send(&mut order, paint(LEFT));
        order.arrived(2);
        assert_eq!((order.bytes(), order.open.len()), (10, 3));
        order.arrived(0);
        assert_eq!((order.bytes(), order.open.len()), (0, 0));
    }

    #[test]
    fn what_copies_make_of_a_lost_piece_is_unknown_and_the_next_is_behind_a_fence() {
        let mut order = Order::default();
        let far = Rect::new(100, 0, 10, 10);
        send(&mut order, paint(LEFT));
        send(&mut order, copy(LEFT, RIGHT));
        order.fence();
        send(&mut order, copy(RIGHT, far));
        order.arrived(1);
        assert_eq!(order.lost(0), [LEFT, RIGHT, far]);
        assert!(order.is_unknown(far) && !order.is_unknown(Rect::new(50, 0, 10, 10)));
        let plan = send_of(&mut order, 0, paint(LEFT));
        assert_eq!(plan, Plan { fence: true, ..Plan::default() });
        assert!(!order.is_unknown(far));
        assert_eq!(send(&mut order, paint(LEFT)), (vec![], vec![3]));
        // A piece that waited for the lost piece waits no more once it has arrived.
        order.arrived(2);
        assert_eq!(order.open.keys().copied().collect::<Vec<_>>(), [4]);
    }

    #[test]
    fn what_is_behind_a_fence_may_wait_for_word_of_what_was_cancelled_before_it() {
        let mut order = Order::default();
        send(&mut order, paint(LEFT));
        order.arrived(0);
        assert!(!order.may_be_painted(0));
        send(&mut order, paint(LEFT));
        send(&mut order, paint(LEFT));
        order.fence();
        send(&mut order, paint(RIGHT));
        (2..=3).for_each(|number| order.arrived(number));
        assert_eq!(order.open.len(), 0);
        assert!(!order.may_be_painted(0) && order.may_be_painted(2) && order.may_be_painted(3));
        assert_eq!(order.abandon(), [LEFT.around(RIGHT)]);
        // The next connection knows of no such piece.
        send(&mut order, paint(LEFT));
        order.fence();
        order.arrived(0);
        assert_eq!(order.abandon(), []);
    }

    #[test]
    fn a_lost_piece_does_not_keep_others_from_being_sent() {
        let mut order = Order::default();
        send(&mut order, paint(LEFT));
        order.next = WINDOW;
        assert!(order.is_full());
        order.lost(0);
        assert!(!order.is_full());
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
        // Pieces before the fence are not named any more.
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
        // Within an update, geometry still orders the pieces, and none is superseded.
        assert_eq!(send_of(&mut order, 1, paint(LEFT)), Plan { after: vec![0], ..none.clone() });
        // The next update paints over both pieces, and at another place.
        let over = paint(LEFT.around(RIGHT));
        assert_eq!(send_of(&mut order, 2, over.clone()), Plan { fence: true, ..none.clone() });
        assert_eq!(send_of(&mut order, 2, paint(Rect::new(50, 50, 1, 1))), none);
        assert_eq!(order.bytes(), 50);
        // The order stays the same when all pieces on their way are given up.
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
            order.arrived(number);
        }
        assert!(order.is_full());
        order.arrived(0);
        assert!(!order.is_full());
    }
}
