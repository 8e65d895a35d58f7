//! The datagram size that a path carries, found by packets of the sizes in question (DPLPMTUD, RFC
//! 8899; RFC 9000 section 14.3).
//!
//! The largest size that is wanted is tried first, because most paths carry it; if it does not arrive,
//! the search halves the range. When packets larger than every path must carry no longer arrive, but
//! smaller ones do, the path has become a black hole: the size falls back at once, and the search
//! begins anew with the size that was lost, so that a mistake costs one round trip.

mod black_hole;
mod discovery;

pub use discovery::MtuDiscovery;

use crate::ids::MIN_UDP_PAYLOAD;
use black_hole::BlackHole;
use std::time::{Duration, Instant};

/// How many probes of a size are lost before the path is taken not to carry it (RFC 8899 section
/// 5.1.2, `MAX_PROBES`).
pub const MAX_PROBES: u8 = 3;
/// The search ends when less than this is to be gained, in bytes.
const MIN_GAIN: u16 = 20;

/// A packet of the Data space, as far as its size matters.
#[derive(Debug, Clone, Copy)]
pub struct Sized {
    /// Its number.
    pub pn: u64,
    /// Its size in bytes.
    pub size: u16,
}

/// A search for the largest size that the path carries.
#[derive(Debug, Clone, Copy)]
struct Search {
    /// The largest size that may still be carried.
    ceiling: u16,
    /// The next size to try.
    size: u16,
    /// How many probes of that size were lost.
    lost: u8,
    /// The packet number of the probe under way.
    probe: Option<u64>,
}

/// The datagram size of a path, in bytes of UDP payload.
#[derive(Debug)]
pub struct Mtu {
    size: u16,
    limit: u16,
    /// `None` to stay with the size that it begins with.
    discovery: Option<MtuDiscovery>,
    search: Option<Search>,
    /// When to search again; from the start if `None`.
    again_at: Option<Instant>,
    black_hole: BlackHole,
}

impl Mtu {
    /// A path that is known to carry `size`.
    pub fn new(size: u16, discovery: Option<MtuDiscovery>) -> Self {
        let limit = discovery.map_or(size, |discovery| discovery.upper_bound.max(size));
        let black_hole = BlackHole::default();
        Self { size, limit, discovery, search: None, again_at: None, black_hole }
    }

    /// Applies the largest payload that the peer accepts (`max_udp_payload_size`, RFC 9000 section
    /// 18.2).
    pub fn set_peer_limit(&mut self, limit: u16) {
        self.limit = self.limit.min(limit);
        self.size = self.size.min(limit);
    }

    /// The size that the path is known to carry.
    pub fn size(&self) -> u16 {
        self.size
    }

    /// The size of packets that find out whether any packet arrives: while the path is explored, a size that
    /// every path must carry.
    pub fn safe_size(&self) -> u16 {
        if self.discovery.is_some() { self.size.min(MIN_UDP_PAYLOAD) } else { self.size }
    }

    /// The largest size that is looked for.
    pub fn limit(&self) -> u16 {
        self.limit
    }

    /// The size of the probe to send, if it is time for one.
    pub fn probe(&self, now: Instant) -> Option<u16> {
        self.discovery?;
        match self.search {
            Some(search) => search.probe.is_none().then_some(search.size),
            None => (self.again_at.is_none_or(|at| at <= now) && self.gains(self.limit))
                .then_some(self.limit),
        }
    }

    /// Handles the probe of `size` bytes that is being sent in the packet with this number.
    pub fn on_probe_sent(&mut self, pn: u64, size: u16) {
        let begin = || Search { ceiling: self.limit, size, lost: 0, probe: None };
        self.search.get_or_insert_with(begin).probe = Some(pn);
    }

    /// Handles a probe that arrived; returns whether the size has changed.
    pub fn on_probe_acked(&mut self, now: Instant, pn: u64) -> bool {
        let Some(search) = self.search.filter(|search| search.probe == Some(pn)) else {
            // The probe belongs to an earlier search, or to another path.
            return false;
        };
        self.size = search.size;
        self.go_on(now, search.ceiling);
        true
    }

    /// Handles the loss of a probe.
    pub fn on_probe_lost(&mut self, now: Instant, pn: u64) {
        let Some(search) = self.search.as_mut().filter(|search| search.probe == Some(pn)) else {
            return;
        };
        search.probe = None;
        search.lost += 1;
        if search.lost >= MAX_PROBES {
            let ceiling = search.size - 1;
            self.go_on(now, ceiling);
        }
    }

    /// Handles the acknowledgement of packets that are no probes.
    pub fn on_acked(&mut self, packets: impl Iterator<Item = Sized>) {
        packets.for_each(|packet| self.black_hole.on_acked(packet));
    }

    /// Handles the loss of packets that are no probes.
    pub fn on_lost(&mut self, packets: impl Iterator<Item = Sized>) {
        packets.for_each(|packet| self.black_hole.on_lost(packet));
    }

    /// Falls back to the size that every path carries if only smaller packets arrive; returns whether
    /// it did. Call this once all losses and acknowledgements at a time are known.
    pub fn check(&mut self) -> bool {
        if self.discovery.is_none() || self.size <= MIN_UDP_PAYLOAD || !self.black_hole.is_found() {
            return false;
        }
        let size = std::mem::replace(&mut self.size, MIN_UDP_PAYLOAD);
        self.black_hole = BlackHole::default();
        self.search = Some(Search { ceiling: size, size, lost: 0, probe: None });
        true
    }

    fn gains(&self, ceiling: u16) -> bool {
        ceiling >= self.size.saturating_add(MIN_GAIN)
    }

    /// Tries the middle of the range up to `ceiling`, if the range is large enough.
    fn go_on(&mut self, now: Instant, ceiling: u16) {
        if self.gains(ceiling) {
            let size = self.size + (ceiling - self.size).div_ceil(2);
            self.search = Some(Search { ceiling, size, lost: 0, probe: None });
            return;
        }
        self.search = None;
        self.again_at = now.checked_add(self.interval());
    }

    /// How long the result of a search holds: less if the path carries less than is wanted.
    fn interval(&self) -> Duration {
        match self.discovery {
            Some(discovery) if self.gains(self.limit) => discovery.retry_interval,
            Some(_) | None => Duration::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DISCOVERY: MtuDiscovery =
        MtuDiscovery { upper_bound: 1452, retry_interval: Duration::from_secs(60) };

    /// Searches on a path that carries `carries`; returns the sizes of the probes.
    fn search(mtu: &mut Mtu, now: Instant, carries: u16) -> Vec<u16> {
        let mut probes = Vec::new();
        while let Some(size) = mtu.probe(now) {
            probes.push(size);
            let pn = 1000 + probes.len() as u64;
            mtu.on_probe_sent(pn, size);
            assert_eq!(mtu.probe(now), None, "one at a time");
            if size <= carries {
                assert!(mtu.on_probe_acked(now, pn));
            } else {
                mtu.on_probe_lost(now, pn);
            }
        }
        probes
    }

    #[test]
    fn most_paths_take_one_probe() {
        let mut mtu = Mtu::new(MIN_UDP_PAYLOAD, Some(DISCOVERY));
        assert_eq!(search(&mut mtu, Instant::now(), 1500), [1452]);
        assert_eq!(mtu.size(), 1452);
    }

    #[test]
    fn a_size_is_given_up_after_three_losses_and_tried_again_later() {
        let now = Instant::now();
        let mut mtu = Mtu::new(MIN_UDP_PAYLOAD, Some(DISCOVERY));
        let probes = search(&mut mtu, now, 1400);
        assert_eq!(probes[..4], [1452, 1452, 1452, 1326]);
        assert!((1381..=1400).contains(&mtu.size()), "{}", mtu.size());
        assert!(probes.len() <= 16, "{probes:?}");
        assert_eq!(mtu.probe(now + DISCOVERY.retry_interval - Duration::from_secs(1)), None);
        assert_eq!(search(&mut mtu, now + DISCOVERY.retry_interval, 1500), [1452]);
    }

    #[test]
    fn peers_set_limits_and_nothing_is_looked_for_unless_wanted() {
        let now = Instant::now();
        let mut mtu = Mtu::new(MIN_UDP_PAYLOAD, Some(DISCOVERY));
        mtu.set_peer_limit(1300);
        assert_eq!(search(&mut mtu, now, 1500), [1300]);
        let mut small = Mtu::new(MIN_UDP_PAYLOAD, Some(DISCOVERY));
        small.set_peer_limit(1210);
        assert_eq!(small.probe(now), None);
        let mut fixed = Mtu::new(1400, None);
        assert_eq!((fixed.size(), fixed.probe(now), fixed.check()), (1400, None, false));
    }

    /// Losses of large packets, and small ones that arrive.
    fn break_down(mtu: &mut Mtu) -> bool {
        mtu.on_acked((20..22).map(|pn| Sized { pn, size: 1200 }));
        mtu.on_lost((10..20).map(|pn| Sized { pn, size: 1452 }));
        mtu.check()
    }

    #[test]
    fn a_black_hole_costs_the_size_until_a_probe_of_it_arrives() {
        let now = Instant::now();
        for (carries, finds, probes) in [(1452, 1452, 1), (1300, 1290, 9)] {
            let mut mtu = Mtu::new(MIN_UDP_PAYLOAD, Some(DISCOVERY));
            search(&mut mtu, now, 1500);
            assert!(break_down(&mut mtu));
            assert_eq!(mtu.size(), MIN_UDP_PAYLOAD);
            assert!(!mtu.on_probe_acked(now, 1001), "that of an earlier search");
            assert!(search(&mut mtu, now, carries).len() >= probes);
            assert!((finds..=carries).contains(&mtu.size()), "{}", mtu.size());
        }
    }

    proptest! {
        #[test]
        fn the_search_ends_near_what_the_path_carries(carries in 1200..2000u16, bound in 1200..2000u16) {
            let discovery = MtuDiscovery { upper_bound: bound, ..DISCOVERY };
            let mut mtu = Mtu::new(MIN_UDP_PAYLOAD, Some(discovery));
            let probes = search(&mut mtu, Instant::now(), carries);
            let best = carries.min(bound);
            prop_assert!(mtu.size() <= best && mtu.size() + MIN_GAIN > best, "{} of {best}", mtu.size());
            prop_assert!(probes.len() <= 3 * 7, "{probes:?}");
        }
    }
}
