//! How often data waits for room in the congestion window.

/// Over how many packets the share is averaged.
const MEMORY: f64 = 64.0;

/// Which share of the latest packets waited for room in the congestion window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HeldBack {
    /// Whether data waits at present, or what waited is being sent.
    waits: bool,
    share: f64,
}

impl HeldBack {
    /// The window has no room for data that could be sent.
    pub(super) fn begin(&mut self) {
        self.waits = true;
    }

    /// There is nothing to send but redundancy at most.
    pub(super) fn end(&mut self) {
        self.waits = false;
    }

    /// A packet with data is sent.
    pub(super) fn on_sent(&mut self) {
        let waited = if self.waits { 1.0 } else { 0.0 };
        self.share += (waited - self.share) / MEMORY;
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
    fn all_that_waited_counts_until_nothing_is_left() {
        let mut held = HeldBack::default();
        for _ in 0..1_000 {
            held.on_sent();
            held.begin();
            held.on_sent();
            held.on_sent();
            held.end();
            held.on_sent();
        }
        assert!((0.48..0.52).contains(&held.share()), "{}", held.share());
    }
}
