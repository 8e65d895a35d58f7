//! The state of one packet number space.

use super::crypto_stream::CryptoStream;
use super::randomness::Randomness;
use crate::crypto::Keys;
use crate::ids::SpaceId;
use crate::recovery::ack::AckTracker;
use crate::recovery::by_space::Unused;
use rand::Rng;
use std::time::Duration;

/// On average one packet number in this many is skipped, to detect a peer that acknowledges packets
/// it did not receive (RFC 9000 section 21.4).
const SKIP_INTERVAL: u64 = 512;

/// One packet number space.
#[derive(Debug)]
pub struct PacketNumberSpace {
    /// Set from when packets can be protected until the space is discarded.
    pub keys: Option<Keys>,
    /// The packets received.
    pub acks: AckTracker,
    /// The handshake's data.
    pub crypto: CryptoStream,
    /// Packets that must be sent regardless of the congestion window.
    pub probes: u8,
    /// Whether to send an ack-eliciting frame.
    pub ping: bool,
    next_pn: u64,
    skip_at: u64,
}

impl Unused for PacketNumberSpace {
    const UNUSED: &'static Self = &Self::new(SpaceId::Initial, Duration::ZERO);

    fn unused() -> Self {
        // The spaces of the handshake acknowledge at once.
        Self::new(SpaceId::Initial, Duration::ZERO)
    }
}

impl PacketNumberSpace {
    /// Creates a space without keys.
    pub const fn new(id: SpaceId, max_ack_delay: Duration) -> Self {
        Self {
            keys: None,
            acks: AckTracker::new(id, max_ack_delay),
            crypto: CryptoStream::new(),
            probes: 0,
            ping: false,
            next_pn: 0,
            skip_at: 0,
        }
    }

    /// The number of the next packet.
    pub fn peek_pn(&self) -> u64 {
        self.next_pn
    }

    /// Takes the next packet number. With `skip`, the number after the taken one may be left unused for ever.
    pub fn take_pn(&mut self, skip: bool, rng: &mut Randomness) -> u64 {
        let pn = self.next_pn;
        self.next_pn += 1;
        if skip && self.next_pn >= self.skip_at {
            if self.skip_at > 0 {
                self.next_pn += 1;
            }
            self.skip_at = self.next_pn + rng.random_range(1..2 * SKIP_INTERVAL);
        }
        pn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand::rngs::StdRng;

    #[test]
    fn some_packet_numbers_are_skipped() {
        let mut rng = Randomness::new(StdRng::from_seed([1; 32]));
        let mut space = PacketNumberSpace::new(SpaceId::Data, Duration::ZERO);
        let numbers: Vec<u64> = (0..100_000).map(|_| space.take_pn(true, &mut rng)).collect();
        let gaps = numbers.windows(2).map(|pair| pair[1] - pair[0]).inspect(|gap| {
            assert!((1..=2).contains(gap));
        });
        let skipped = gaps.filter(|gap| *gap == 2).count();
        let expected = 100_000 / SKIP_INTERVAL as usize;
        assert!((expected / 2..expected * 2).contains(&skipped), "{skipped}");
    }
}
