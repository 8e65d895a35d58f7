//! Transfers that are of use when complete, with repair symbols at their end.

use std::time::Duration;

use sutura_link::Link;

use super::sender::arrival;
use super::{PerfectDecoder, Schedule};

/// Transfers one after another, each in one flight.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfers {
    /// The link.
    pub link: sutura_link::LinkConfig,
    /// Packets of a transfer.
    pub packets: u64,
    /// Bytes of UDP payload in a packet.
    pub size: usize,
    /// The repair symbols behind each, by the time after its last packet.
    pub repairs: Schedule,
    /// The time from the end of a transfer to the beginning of the next.
    pub pause: Duration,
}

impl Transfers {
    /// How many of `count` transfers a perfect code cannot complete without a retransmission: transfers of
    /// which more packets are lost than repair symbols arrive. Packets enter the link at its rate.
    #[must_use]
    pub fn incomplete(&self, seed: u64, count: u64) -> u64 {
        let mut link = Link::new(&self.link, seed);
        let mut now = Duration::ZERO;
        let mut incomplete = 0;
        for index in 0..count {
            let mut decoder = PerfectDecoder::default();
            for _ in 0..self.packets {
                decoder.source(arrival(link.send(now, self.size)).is_none());
                now += self.on_the_link();
            }
            now += self.repairs.delay;
            for _ in 0..self.repairs.after(index) {
                if arrival(link.send(now, self.size)).is_some() {
                    decoder.repair(|_| {});
                }
                now += self.on_the_link().max(self.repairs.spacing);
            }
            incomplete += u64::from(decoder.in_order() < self.packets);
            now += self.pause;
        }
        incomplete
    }

    /// How long a packet takes on the link.
    fn on_the_link(&self) -> Duration {
        let bits = (self.size as u64 + u64::from(self.link.overhead)) * 8;
        self.link.rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64(bits as f64 / rate.bits_per_second() as f64)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incomplete(loss: &str, repairs: f64) -> u64 {
        let transfers = Transfers {
            link: format!("rate=10mbit delay=50ms loss={loss}").parse().unwrap(),
            packets: 10,
            size: 1200,
            repairs: Schedule { repairs, ..Schedule::NONE },
            pause: Duration::from_millis(300),
        };
        transfers.incomplete(1, 1000)
    }

    #[test]
    fn a_transfer_is_complete_if_as_many_repair_symbols_arrive_as_packets_are_lost() {
        // The third and the fourth of eleven packets are lost, and the eleventh, a repair symbol, mends one.
        assert_eq!(incomplete("trace:00110000000", 1.0), 1000);
        assert_eq!(incomplete("trace:001100000000", 2.0), 0);
        assert_eq!(incomplete("trace:001000000001", 2.0), 0);
        assert_eq!(incomplete("trace:001100000001", 2.0), 1000);
        assert_eq!(incomplete("none", 0.0), 0);
    }

    #[test]
    fn bursts_take_more_than_one_repair_symbol() {
        let of_losses = |loss| [0.0, 1.0, 3.0].map(|repairs| incomplete(loss, repairs) as f64);
        let [none, one, three] = of_losses("bern:0.01");
        assert!(one < none / 5.0 && three < 5.0, "single losses: {none} {one} {three}");
        let [none, one, three] = of_losses("ge:0.005,0.25,0.95,0.005");
        assert!(one > none / 2.5 && three > none / 10.0, "bursts: {none} {one} {three}");
    }
}
