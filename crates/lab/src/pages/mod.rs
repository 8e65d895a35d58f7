//! Loads of real web pages, as recorded, and playing them back through a scheduler alone.

mod corpus;
mod har;
mod index;
mod page;
mod playback;
mod recording;
mod requests;
mod signals;

pub use corpus::{CorpusError, PageError};
pub use index::{Weighting, byte_index};
pub use page::{Page, PageResource, Trigger};
pub use playback::play;
pub use recording::Timing;
pub use requests::{Load, Requests};
pub use signals::chrome;

pub use sutura_research::marx::{Kind, Resource};
use sutura_schedule::Priority;

/// All that a server can know of a resource: a browser's signals, and the resource's properties.
#[must_use]
pub fn priority(resource: &PageResource) -> Priority {
    let (urgency, incremental) = chrome(&resource.resource);
    let signalled = Priority::new(urgency, incremental).unwrap_or_default();
    signalled.with_extension(resource.resource)
}
