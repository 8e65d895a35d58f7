//! Loads of real web pages, as recorded, and playing them back.

mod corpus;
mod index;
mod playback;

pub use corpus::{CorpusError, Page, PageResource, Trigger};
pub use index::{Weighting, byte_index};
pub use playback::{Load, Playback, play};
