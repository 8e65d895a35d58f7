//! The tree of classes and streams, which tracks the members that have data to send.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use crate::hash::KeyMap;
use crate::queue::{Place, Queue, Slot};
use crate::{Class, Grant, MAX_DEPTH, Priority, StreamKey, Urgency, Weight};

/// A sharing policy: the state it keeps for each member of a class and for each class, and the order of the
/// members that share.
///
/// A member is a stream or a class below another class. It is *attached* for as long as it exists.
/// It *joins* its siblings while it is backlogged, that is, while it or a stream below it is
/// active.
pub(crate) trait Sharing: Debug + Default {
    type Member: Debug + Default + Send;
    type Class: Debug + Default + Send;
    /// The state of the whole tree.
    type Whole: Debug + Default + Send;

    /// Called when a member has been placed below a class or has got a new rank.
    fn attach(class: &mut Self::Class, rank: &SharingRank, member: &mut Self::Member);
    /// Called before a member that is not joined is placed below another class or gets a new rank.
    fn detach(class: &mut Self::Class, rank: &SharingRank, member: &mut Self::Member);
    /// Called when a member becomes backlogged. Returns its order among the incremental siblings of
    /// its urgency: the smaller goes first. Must be less than [`ORDER_END`].
    fn join(class: &mut Self::Class, rank: &SharingRank, member: &mut Self::Member) -> u128;
    /// Called when a member is no longer backlogged.
    fn leave(class: &mut Self::Class, rank: &SharingRank, member: &mut Self::Member);
    /// Called when the last backlogged member of a class below `above` has left.
    fn emptied(above: &mut Self::Class, class: &mut Self::Class) {
        let _ = (above, class);
    }
    /// Finds the active stream whose turn it is, after a change that may have passed the turn on.
    /// Calling it again returns the same stream and changes nothing.
    fn turn(tree: &mut Tree<Self>) -> Option<Slot>;
}

/// The part of a priority that is used, for streams and classes alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharingRank {
    pub(crate) urgency: Urgency,
    pub(crate) incremental: bool,
    pub(crate) weight: Weight,
}

const ORDER_BITS: u32 = 120;
/// The first order that does not fit.
pub(crate) const ORDER_END: u128 = 1 << ORDER_BITS;

impl SharingRank {
    /// The rank in a queue. More urgent members go first, then non-incremental members, ordered by key, then
    /// incremental members, ordered by `order`.
    pub(crate) fn queued(&self, order: u128) -> u128 {
        let group = 2 * self.urgency.class() as u128 + u128::from(self.incremental);
        group << ORDER_BITS | if self.incremental { order } else { 0 }
    }

    /// Whether a rank in a queue is at most the rank of the last member of this urgency and kind.
    pub(crate) fn reaches(&self, queued: u128) -> bool {
        queued <= self.queued(ORDER_END - 1)
    }
}

impl From<&Priority> for SharingRank {
    fn from(priority: &Priority) -> Self {
        let Priority { urgency, incremental, weight, .. } = *priority;
        Self { urgency, incremental, weight }
    }
}

impl From<&Class> for SharingRank {
    /// No class is as urgent as the streams that carry the protocol.
    fn from(class: &Class) -> Self {
        let urgency = class.urgency.max(Urgency::HIGHEST);
        Self { urgency, incremental: class.incremental, weight: class.weight }
    }
}

/// A stream or a class.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct TreeNode<S: Sharing> {
    /// The stream, or the stream for which the class was created.
    pub(crate) key: StreamKey,
    /// The class above. Half the size of a [`Slot`], so that a node fits into one cache line.
    pub(crate) parent: u32,
    /// The index of the parent's [`Inner`].
    pub(crate) above: u32,
    pub(crate) kind: Kind,
    pub(crate) rank: SharingRank,
    pub(crate) place: Place,
    pub(crate) member: S::Member,
}

impl<S: Sharing> TreeNode<S> {
    pub(crate) const fn parent(&self) -> Slot {
        self.parent as Slot
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Stream,
    /// The index of its [`Inner`].
    Class(u32),
}

/// The state of a class in addition to its [`TreeNode`].
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Inner<S: Sharing> {
    name: Option<Arc<str>>,
    /// The number of streams and classes directly below, backlogged or not.
    members: usize,
    /// The members that are backlogged.
    pub(crate) queue: Queue,
    pub(crate) state: S::Class,
}

/// The root class, above all others.
pub(crate) const ROOT: Slot = 0;
pub(crate) const ROOT_INNER: u32 = 0;

/// All streams and classes of one scheduler.
///
/// A class is identified by its name and the class above it; a class without a name belongs to the stream for
/// which it was created. A class disappears with the last stream below it. Its parameters are taken from the
/// latest priority that names it.
#[derive(Debug)]
pub(crate) struct Tree<S: Sharing> {
    pub(crate) nodes: Vec<TreeNode<S>>,
    pub(crate) inners: Vec<Inner<S>>,
    /// The classes named by each stream's priority, by slot, to recognise an unchanged priority.
    parents: Vec<Option<Arc<[Class]>>>,
    vacant: Vec<Slot>,
    vacant_inners: Vec<u32>,
    streams: KeyMap<Slot>,
    pub(crate) whole: S::Whole,
    /// The stream whose turn it is. Updated on changes, so that `next` is cheap and changes
    /// nothing.
    pub(crate) turn: Option<Slot>,
    /// Whether the turn may have passed to another stream since then.
    stale: bool,
    /// The stream inserted or charged last, because most calls are for the same stream again.
    recent: Slot,
    /// Classes by parent and name. Ordered rather than hashed, because a peer chooses the names.
    named: BTreeMap<(Slot, Arc<str>), Slot>,
    /// Counts classes, to distinguish classes created for the same stream.
    born: u32,
}

impl<S: Sharing> Default for Tree<S> {
    fn default() -> Self {
        let root = TreeNode {
            key: 0,
            parent: ROOT as u32,
            above: ROOT_INNER,
            kind: Kind::Class(ROOT_INNER),
            rank: SharingRank::from(&Class::default()),
            place: Place::new(0),
            member: S::Member::default(),
        };
        Self {
            nodes: vec![root],
            inners: vec![Inner::new(None)],
            parents: vec![None],
            vacant: Vec::new(),
            vacant_inners: Vec::new(),
            streams: KeyMap::default(),
            whole: S::Whole::default(),
            turn: None,
            stale: false,
            recent: ROOT,
            named: BTreeMap::new(),
            born: 0,
        }
    }
}

impl<S: Sharing> Inner<S> {
    fn new(name: Option<Arc<str>>) -> Self {
        Self { name, members: 0, queue: Queue::default(), state: S::Class::default() }
    }
}

impl<S: Sharing> Tree<S> {
    /// The number of streams.
    pub(crate) fn streams(&self) -> usize {
        self.streams.len()
    }

    /// The number of classes below the root.
    pub(crate) fn classes(&self) -> usize {
        self.nodes.len() - self.vacant.len() - self.streams.len() - 1
    }

    /// Gives back the room for streams and classes that are gone, and for members of queues that are empty.
    pub(crate) fn rest(&mut self) {
        self.nodes.shrink_to_fit();
        self.inners.shrink_to_fit();
        self.parents.shrink_to_fit();
        self.vacant.shrink_to_fit();
        self.vacant_inners.shrink_to_fit();
        self.streams.shrink_to_fit();
        self.inners.iter_mut().for_each(|inner| inner.queue.rest());
    }

    #[inline]
    fn slot(&self, stream: StreamKey) -> Option<Slot> {
        if self.is_stream(self.recent, stream) {
            return Some(self.recent);
        }
        self.streams.get(&stream).copied()
    }

    /// Whether a slot in use belongs to a stream with this key.
    fn is_stream(&self, slot: Slot, stream: StreamKey) -> bool {
        let node = &self.nodes[slot];
        node.key == stream && matches!(node.kind, Kind::Stream)
    }

    /// The slot of a stream that is about to be charged, usually the stream whose turn it is.
    #[inline]
    pub(crate) fn slot_to_charge(&mut self, stream: StreamKey) -> Option<Slot> {
        let slot = match self.turn {
            Some(turn) if self.nodes[turn].key == stream => turn,
            _ => self.slot(stream)?,
        };
        self.recent = slot;
        Some(slot)
    }

    /// Grants all of the room to the stream whose turn it is.
    #[inline]
    pub(crate) fn next(&self, room: usize) -> Option<Grant> {
        let stream = self.nodes[self.turn?].key;
        (room > 0).then_some(Grant { stream, bytes: room })
    }

    /// Finds the stream whose turn it is.
    #[inline]
    pub(crate) fn find_turn(&mut self) {
        self.stale = false;
        self.turn = S::turn(self);
    }

    pub(crate) fn is_turn_of(&self, slot: Slot) -> bool {
        self.turn == Some(slot)
    }

    /// Finds the stream whose turn it is, if that may have changed.
    fn settle(&mut self) {
        if self.stale {
            self.find_turn();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.inners[ROOT_INNER as usize].queue.is_empty()
    }

    /// The index of the [`Inner`] of a class.
    pub(crate) fn inner(&self, class: Slot) -> usize {
        match self.nodes[class].kind {
            Kind::Class(inner) => inner as usize,
            // Only classes have members.
            Kind::Stream => ROOT_INNER as usize,
        }
    }

    pub(crate) fn insert(&mut self, stream: StreamKey, priority: Priority) {
        if self.streams.contains_key(&stream) {
            return self.reprioritize(stream, priority);
        }
        let rank = SharingRank::from(&priority);
        let parents = priority.parents.and_then(|all| classes_above(rank, all));
        let parent = parents.as_deref().map_or(ROOT, |above| self.resolve(stream, above, None));
        let slot = self.add(stream, parent, rank, Kind::Stream, 0);
        self.parents[slot] = parents;
        self.streams.insert(stream, slot);
        self.recent = slot;
        self.settle();
    }

    pub(crate) fn remove(&mut self, stream: StreamKey) {
        if let Some(slot) = self.streams.remove(&stream) {
            self.recent = ROOT;
            self.make_idle(slot);
            self.take(slot);
            self.settle();
        }
    }

    pub(crate) fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        let Some(slot) = self.slot(stream) else {
            return;
        };
        let rank = SharingRank::from(&priority);
        let parents = priority.parents.and_then(|all| classes_above(rank, all));
        let old = self.nodes[slot].parent();
        if self.nodes[slot].rank == rank && self.parents[slot] == parents {
            return;
        }
        let parent =
            parents.as_deref().map_or(ROOT, |above| self.resolve(stream, above, Some(slot)));
        self.parents[slot] = parents;
        if parent == old {
            self.rerank(slot, rank);
        } else {
            self.rehang(slot, parent, rank);
        }
        self.settle();
    }

    /// Moves a stream to another class.
    fn rehang(&mut self, slot: Slot, parent: Slot, rank: SharingRank) {
        let old = self.nodes[slot].parent();
        let backlogged = self.nodes[slot].place.is_queued();
        if backlogged {
            self.leave(slot);
        }
        self.detach(slot);
        self.nodes[slot].parent = parent as u32;
        self.nodes[slot].rank = rank;
        self.attach(slot);
        if backlogged {
            // Starts with the new position, so that a class above both positions stays backlogged.
            self.raise(slot);
            self.lower(old);
            self.stale = true;
        }
        self.release(old);
    }

    pub(crate) fn activate(&mut self, stream: StreamKey) {
        if let Some(slot) = self.slot(stream) {
            self.raise(slot);
            self.settle();
        }
    }

    pub(crate) fn deactivate(&mut self, stream: StreamKey) {
        if let Some(slot) = self.slot(stream) {
            self.make_idle(slot);
            self.settle();
        }
    }

    fn make_idle(&mut self, slot: Slot) {
        if self.nodes[slot].place.is_queued() {
            self.leave(slot);
            self.lower(self.nodes[slot].parent());
            self.stale |= self.is_turn_of(slot);
        }
    }

    /// Finds or creates the classes of a stream's priority, which lists the direct parent first,
    /// and updates their parameters. Returns the direct parent.
    fn resolve(&mut self, stream: StreamKey, parents: &[Class], present: Option<Slot>) -> Slot {
        let mut above = present.map_or([ROOT; MAX_DEPTH], |slot| self.path(slot)).into_iter();
        let mut parent = ROOT;
        for class in parents.iter().rev() {
            let known = match &class.name {
                Some(name) => self.named.get(&(parent, Arc::clone(name))).copied(),
                // The stream's own class, if it is in the same position.
                None => above.clone().next().filter(|&slot| self.is_own(slot, parent)),
            };
            above.next();
            let rank = SharingRank::from(class);
            parent = if let Some(slot) = known {
                self.rerank(slot, rank);
                slot
            } else {
                self.add_class(stream, parent, rank, class.name.clone())
            };
        }
        parent
    }

    /// The classes above a stream, the outermost first, padded with the root.
    fn path(&self, slot: Slot) -> [Slot; MAX_DEPTH] {
        let mut path = [ROOT; MAX_DEPTH];
        let mut depth = 0;
        let mut at = self.nodes[slot].parent();
        while at != ROOT && depth < MAX_DEPTH {
            path[depth] = at;
            depth += 1;
            at = self.nodes[at].parent();
        }
        path[..depth].reverse();
        path
    }

    /// Whether a class on a stream's path has no name and is directly below `parent`.
    fn is_own(&self, slot: Slot, parent: Slot) -> bool {
        let node = &self.nodes[slot];
        slot != ROOT && node.parent() == parent && self.inners[self.inner(slot)].name.is_none()
    }

    fn add_class(
        &mut self,
        stream: StreamKey,
        parent: Slot,
        rank: SharingRank,
        name: Option<Arc<str>>,
    ) -> Slot {
        let inner = Inner::new(name.clone());
        let index = if let Some(index) = self.vacant_inners.pop() {
            self.inners[index as usize] = inner;
            index
        } else {
            self.inners.push(inner);
            (self.inners.len() - 1) as u32
        };
        // Streams use 0.
        self.born = self.born.wrapping_add(1).max(1);
        let slot = self.add(stream, parent, rank, Kind::Class(index), self.born);
        if let Some(name) = name {
            self.named.insert((parent, name), slot);
        }
        slot
    }

    fn add(
        &mut self,
        key: StreamKey,
        parent: Slot,
        rank: SharingRank,
        kind: Kind,
        born: u32,
    ) -> Slot {
        let (place, member) = (Place::new(born), S::Member::default());
        // There are never 2^32 nodes: each is a stream or a class of a stream.
        let above = parent as u32;
        let node = TreeNode { key, parent: above, above: ROOT_INNER, kind, rank, place, member };
        let slot = if let Some(slot) = self.vacant.pop() {
            self.nodes[slot] = node;
            slot
        } else {
            self.nodes.push(node);
            self.parents.push(None);
            self.nodes.len() - 1
        };
        self.attach(slot);
        slot
    }

    /// Removes a node that is not backlogged, and the classes that become empty.
    fn take(&mut self, slot: Slot) {
        self.detach(slot);
        let TreeNode { parent, kind, .. } = self.nodes[slot];
        // Release the names.
        self.parents[slot] = None;
        if let Kind::Class(index) = kind {
            self.take_inner(slot, index);
        }
        self.vacant.push(slot);
        self.release(parent as usize);
    }

    /// Removes the state that a class has in addition to its node.
    #[inline(never)]
    fn take_inner(&mut self, slot: Slot, index: u32) {
        self.nodes[slot].kind = Kind::Stream;
        let parent = self.nodes[slot].parent();
        let inner = &mut self.inners[index as usize];
        inner.queue = Queue::default();
        if let Some(name) = inner.name.take() {
            self.named.remove(&(parent, name));
        }
        self.vacant_inners.push(index);
    }

    /// Removes a class if nothing is below it.
    #[inline]
    fn release(&mut self, class: Slot) {
        if class != ROOT && self.inners[self.inner(class)].members == 0 {
            self.take(class);
        }
    }

    /// Changes the rank of a stream or class in place.
    fn rerank(&mut self, slot: Slot, rank: SharingRank) {
        if self.nodes[slot].rank == rank {
            return;
        }
        let backlogged = self.nodes[slot].place.is_queued();
        if backlogged {
            self.leave(slot);
        }
        self.detach(slot);
        self.nodes[slot].rank = rank;
        self.attach(slot);
        if backlogged {
            self.join(slot);
            self.stale = true;
        }
    }

    /// Marks a member as backlogged, and the classes above it that were not.
    fn raise(&mut self, mut slot: Slot) {
        let mut goes_first = false;
        while slot != ROOT && !self.nodes[slot].place.is_queued() {
            goes_first = self.join(slot);
            slot = self.nodes[slot].parent();
        }
        // A stream that is behind others cannot be the stream whose turn it is.
        self.stale |= goes_first;
    }

    /// Marks a class and the classes above it as no longer backlogged if they have no backlogged members.
    #[inline]
    fn lower(&mut self, class: Slot) {
        if class != ROOT {
            self.lower_from(class);
        }
    }

    #[inline(never)]
    fn lower_from(&mut self, mut class: Slot) {
        while class != ROOT && self.nodes[class].place.is_queued() {
            let (inner, above) = (self.inner(class), self.nodes[class].above as usize);
            if !self.inners[inner].queue.is_empty() {
                return;
            }
            self.leave(class);
            if let Ok([above, inner]) = self.inners.get_disjoint_mut([above, inner]) {
                S::emptied(&mut above.state, &mut inner.state);
            }
            class = self.nodes[class].parent();
        }
    }

    /// Queues a member among its siblings. Returns whether it goes first.
    fn join(&mut self, slot: Slot) -> bool {
        let TreeNode { key, above, rank, place, member, .. } = &mut self.nodes[slot];
        let Inner { queue, state, .. } = &mut self.inners[*above as usize];
        let rank = rank.queued(S::join(state, rank, member));
        queue.push(place, slot, rank, *key);
        queue.is_first(slot)
    }

    fn leave(&mut self, slot: Slot) {
        let TreeNode { above, rank, place, member, .. } = &mut self.nodes[slot];
        let Inner { queue, state, .. } = &mut self.inners[*above as usize];
        queue.remove(place);
        S::leave(state, rank, member);
    }

    fn attach(&mut self, slot: Slot) {
        let inner = self.inner(self.nodes[slot].parent());
        let TreeNode { above, rank, member, .. } = &mut self.nodes[slot];
        *above = inner as u32;
        self.inners[inner].members += 1;
        S::attach(&mut self.inners[inner].state, rank, member);
    }

    fn detach(&mut self, slot: Slot) {
        let TreeNode { above, rank, member, .. } = &mut self.nodes[slot];
        let inner = &mut self.inners[*above as usize];
        inner.members -= 1;
        S::detach(&mut inner.state, rank, member);
    }
}

/// The classes that count: at most [`MAX_DEPTH`], and none for a stream that carries the protocol,
/// which no class may hold back.
fn classes_above(rank: SharingRank, parents: Arc<[Class]>) -> Option<Arc<[Class]>> {
    if rank.urgency == Urgency::CONTROL {
        return None;
    }
    match parents.get(..MAX_DEPTH) {
        Some(nearest) if parents.len() > MAX_DEPTH => Some(Arc::from(nearest)),
        _ => Some(parents),
    }
}
