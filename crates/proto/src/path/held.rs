//! How often new data finds no room in the congestion window.

/// Over how many pieces of data the share is averaged.
const MEMORY: f64 = 64.0;

/// Which share of the latest pieces of data found the congestion window full. A piece is what the application has to
/// send between two moments in which it has nothing; what a piece fills itself does not count.
#[derive(Debug, Clone, Copy)]
pub(super) struct HeldBack {
    /// Whether data waits for room, or did so since there was nothing to send.
    waits: bool,
    /// Whether the next packet is the first of a piece.
    first: bool,
    share: f64,
}

impl Default for HeldBack {
    fn default() -> Self {
        Self { waits: false, first: true, share: 0.0 }
    }
}

impl HeldBack {
    /// The window has no room for data that could be sent.
    pub(super) fn begin(&mut self) {
        self.waits = true;
    }

    /// There is nothing to send but redundancy at most.
    pub(super) fn end(&mut self) {
        (self.waits, self.first) = (false, true);
    }

    /// A packet with data is sent.
    pub(super) fn on_sent(&mut self) {
        if std::mem::take(&mut self.first) {
            let waited = if self.waits { 1.0 } else { 0.0 };
            self.share += (waited - self.share) / MEMORY;
        }
    }

    /// The share, from 0 to 1.
    pub(super) fn share(self) -> f64 {
        self.share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_count_that_find_the_window_full() {
        let mut held = HeldBack::default();
        for piece in 0..1_000 {
            if piece % 4 == 0 {
                held.begin();
            }
            held.on_sent();
            // The piece fills the window itself.
            held.begin();
            held.on_sent();
            held.on_sent();
            held.end();
        }
        assert!((0.2..0.3).contains(&held.share()), "{}", held.share());
    }
}
