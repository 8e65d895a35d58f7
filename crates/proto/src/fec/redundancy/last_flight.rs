//! Whether the sender will have to pause soon, so that a loss would be found out only after a silence.

use super::View;

/// The number of congestion windows that may belong to the last flight. All data before them is known to have
/// arrived or to be lost before the end is sent, even if the window doubles meanwhile.
const WINDOWS: u64 = 2;

impl View {
    /// Whether data that is sent now may belong to the last flight: no more than two congestion windows
    /// are left.
    #[must_use]
    pub fn end_comes_near(&self) -> bool {
        self.left <= self.near()
    }

    /// Whether data that is sent now may still be in flight when the sender has to pause, because the
    /// application has no more data or because flow control stops the sender.
    pub(super) fn pause_comes_near(&self) -> bool {
        self.end_comes_near() || self.buffer <= self.near()
    }

    fn near(&self) -> u64 {
        WINDOWS.saturating_mul(self.path.window)
    }
}
