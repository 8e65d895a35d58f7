//! Datagrams that belong to no connection.

use super::{Attack, Pace, Tactic, attack};
use crate::fleet::Fleet;
use std::time::Instant;
use sutura_benches::Error;
use sutura_random::Rng;

pub fn all() -> Vec<Attack> {
    let flood = |name, about, start| attack(name, about, "datagram", Pace::Events(20_000), start);
    vec![
        flood("tiny-datagrams", "datagrams of 1 to 20 random bytes", || {
            strays(|rng| {
                let size = 1 + rng.index(20);
                rng.bytes(size)
            })
        }),
        flood("garbage", "datagrams of 1,200 random bytes", || strays(|rng| rng.bytes(1200))),
        flood("strays", "1-RTT packets of connections that do not exist", || {
            strays(|rng| {
                let mut datagram = rng.bytes(100);
                set_first(&mut datagram, 0x40);
                datagram
            })
        }),
        flood("unknown-versions", "Initial packets of a version that nobody speaks", || {
            strays(|rng| long_header(rng, 0x1a2a_3a4a))
        }),
        flood("forged-initials", "Initial packets that cannot be decrypted", || {
            strays(|rng| long_header(rng, 1))
        }),
    ]
}

fn set_first(datagram: &mut [u8], byte: u8) {
    datagram.iter_mut().take(1).for_each(|first| *first = byte);
}

/// An Initial packet of random contents.
fn long_header(rng: &mut Rng, version: u32) -> Vec<u8> {
    let mut datagram = vec![0xc3];
    datagram.extend_from_slice(&version.to_be_bytes());
    for _ in 0..2 {
        datagram.push(8);
        datagram.extend_from_slice(&rng.next_u64().to_be_bytes());
    }
    // No token, and a length up to the end of the datagram.
    let length = 1200 - datagram.len() - 3;
    datagram.extend_from_slice(&[0, 0x40 | (length >> 8) as u8, length as u8]);
    datagram.extend_from_slice(&rng.bytes(length));
    datagram
}

struct Strays<F>(F);

fn strays(datagram: impl FnMut(&mut Rng) -> Vec<u8> + 'static) -> Box<dyn Tactic> {
    Box::new(Strays(datagram))
}

impl<F: FnMut(&mut Rng) -> Vec<u8>> Tactic for Strays<F> {
    fn step(&mut self, fleet: &mut Fleet, _now: Instant, quota: u64) -> Result<(), Error> {
        for _ in 0..quota {
            let datagram = (self.0)(&mut fleet.rng);
            let from = fleet.rng.index(usize::MAX);
            fleet.send(from, &datagram);
            fleet.tally.events += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_headers_span_the_datagram() {
        let datagram = long_header(&mut Rng::new(1), 1);
        assert_eq!(datagram.len(), 1200);
        assert_eq!(datagram[23..26], [0, 0x40 | 4, (1200 - 26 - 1024) as u8]);
    }
}
