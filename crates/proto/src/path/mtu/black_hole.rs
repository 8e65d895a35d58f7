//! Notices that large packets alone are lost (RFC 8899 section 4.3).

use super::Sized;
use crate::ids::MIN_UDP_PAYLOAD;

/// How many large packets in a row must be lost.
const MIN_SUSPECTS: u32 = 3;

/// The packets that were lost since a large packet arrived. A large packet is larger than every path must
/// carry.
#[derive(Debug, Default)]
pub(super) struct BlackHole {
    /// One past the newest large packet that arrived.
    large: u64,
    /// One past the newest small packet that arrived.
    small: u64,
    /// The oldest of the large packets that were lost since, and how many they are.
    suspects: Option<(u64, u32)>,
}

impl BlackHole {
    pub(super) fn on_acked(&mut self, packet: Sized) {
        if packet.size <= MIN_UDP_PAYLOAD {
            self.small = self.small.max(packet.pn + 1);
        } else {
            self.large = self.large.max(packet.pn + 1);
            self.suspects = self.suspects.filter(|(oldest, _)| *oldest >= self.large);
        }
    }

    pub(super) fn on_lost(&mut self, packet: Sized) {
        if packet.size > MIN_UDP_PAYLOAD && packet.pn >= self.large {
            let (oldest, count) = self.suspects.unwrap_or((packet.pn, 0));
            self.suspects = Some((oldest.min(packet.pn), count + 1));
        }
    }

    /// Whether small packets arrive that were sent after large packets that were lost. An outage or a full
    /// queue loses both.
    pub(super) fn is_found(&self) -> bool {
        self.suspects.is_some_and(|(oldest, count)| count >= MIN_SUSPECTS && self.small > oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(numbers: std::ops::Range<u64>, size: u16) -> impl Iterator<Item = Sized> {
        numbers.map(move |pn| Sized { pn, size })
    }

    #[test]
    fn only_large_packets_lost_with_small_ones_arriving_later_count() {
        let mut hole = BlackHole::default();
        packets(0..10, 1452).for_each(|packet| hole.on_lost(packet));
        assert!(!hole.is_found(), "nothing arrives");
        hole.on_acked(Sized { pn: 11, size: 1200 });
        assert!(hole.is_found());

        let mut random = BlackHole::default();
        packets(0..3, 1452).for_each(|packet| random.on_lost(packet));
        random.on_acked(Sized { pn: 3, size: 1452 });
        random.on_acked(Sized { pn: 4, size: 100 });
        assert!(!random.is_found(), "a large one has arrived since");

        let mut few = BlackHole::default();
        packets(0..2, 1452).for_each(|packet| few.on_lost(packet));
        few.on_acked(Sized { pn: 4, size: 100 });
        assert!(!few.is_found(), "too few");

        let mut small = BlackHole::default();
        packets(0..9, 1200).for_each(|packet| small.on_lost(packet));
        small.on_acked(Sized { pn: 9, size: 100 });
        assert!(!small.is_found(), "every path must carry them");
    }
}
