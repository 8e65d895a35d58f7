//! Bare data that the loss reaction holds back.

use crate::recovery::token::StreamToken;
use std::time::Instant;

/// Frames of bare data that are held back at a time; further ones are sent again at once.
pub const MAX_HELD_FRAMES: usize = 1024;

/// Lost frames that wait for a time to come, or for a late acknowledgement.
#[derive(Debug, Default)]
pub struct HeldFrames(Vec<(Instant, StreamToken)>);

impl HeldFrames {
    /// Holds a frame; false if there is no room for another.
    pub fn hold(&mut self, until: Instant, frame: StreamToken) -> bool {
        let fits = self.0.len() < MAX_HELD_FRAMES;
        if fits {
            self.0.push((until, frame));
        }
        fits
    }

    /// When the next frame is let go.
    pub fn next(&self) -> Option<Instant> {
        self.0.iter().map(|(until, _)| *until).min()
    }

    /// The frames whose time has come, in the order in which they were lost.
    pub fn take_due(&mut self, now: Instant) -> impl Iterator<Item = StreamToken> + use<> {
        let (due, wait): (Vec<_>, Vec<_>) = self.0.drain(..).partition(|(until, _)| *until <= now);
        self.0 = wait;
        due.into_iter().map(|(_, frame)| frame)
    }

    /// Whether nothing is held.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
