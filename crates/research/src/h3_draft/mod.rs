//! The dependency tree of HTTP/3's drafts of 2019, before the Extensible Prioritization Scheme
//! (draft-ietf-quic-http-21, section 5.3; Marx 2020, section 4.3 and figures 7 to 9).

mod element;
mod messages;
#[cfg(test)]
mod tests;

pub use element::{Element, MAX_PLACEHOLDERS};
pub use messages::{Carriage, DraftMessages, MAX_HELD_MESSAGES, Message, TooManyMessages};

use std::sync::Arc;

use sutura_schedule::{Grant, Priority, Scheduler, SchedulerFactory, Scheme, StreamKey, registry};

use crate::h2::{Dependency, H2};

/// The dependency tree of HTTP/3's drafts: [`H3Draft`].
pub const SCHEME: Scheme = Scheme::new("h3-draft", || Box::new(H3Draft::new()));

pub(crate) const ENTRY: registry::Entry<dyn SchedulerFactory> = registry::Entry::new(
    SCHEME.name(),
    "the dependency tree of HTTP/3's drafts: placeholders and orphans",
    |_| Ok(Arc::new(SCHEME)),
);

/// The tree of [`H2`] with two additions:
///
/// * **Placeholders**, which carry nothing and group other elements. There are [`MAX_PLACEHOLDERS`] of
///   them, by the keys of [`Element::Placeholder`]; each is in the tree from the first time that it is named.
///   The [`Dependency`] of a stream may name a placeholder as its parent, and a placeholder gets a place like
///   a stream, by [`Scheduler::insert`] or [`DraftMessages`].
/// * **The orphan placeholder**, which stands behind the root: its dependants are served only while nothing
///   below the root can be. A stream or placeholder without a dependency is there, with weight 16, and so is
///   an element whose parent is itself or not in the tree.
#[derive(Clone, Debug)]
pub struct H3Draft {
    tree: H2,
}

impl Default for H3Draft {
    fn default() -> Self {
        Self::new()
    }
}

impl H3Draft {
    /// A scheduler without streams.
    #[must_use]
    pub fn new() -> Self {
        Self { tree: H2::with_orphans() }
    }

    /// Adds the placeholder that a priority names as parent, if it is not in the tree yet.
    fn add_placeholder_of(&mut self, priority: &Priority) {
        let parent = priority.extension().and_then(|dependency: &Dependency| dependency.parent);
        if let Some(parent) = parent.filter(|parent| Element::is_placeholder(*parent))
            && !self.tree.contains(parent)
        {
            self.tree.insert(parent, Priority::default());
        }
    }
}

impl Scheduler for H3Draft {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        self.add_placeholder_of(&priority);
        self.tree.insert(stream, priority);
    }

    fn remove(&mut self, stream: StreamKey) {
        self.tree.remove(stream);
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        if self.tree.contains(stream) {
            self.add_placeholder_of(&priority);
        }
        self.tree.reprioritize(stream, priority);
    }

    fn activate(&mut self, stream: StreamKey) {
        self.tree.activate(stream);
    }

    fn deactivate(&mut self, stream: StreamKey) {
        self.tree.deactivate(stream);
    }

    fn next(&self, room: usize) -> Option<Grant> {
        self.tree.next(room)
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        self.tree.charge(stream, bytes);
    }

    fn is_empty(&self) -> bool {
        self.tree.is_empty()
    }
}
