//! Controlled delay (CoDel, RFC 8289): drops packets that have waited too long, the sooner after each other the
//! longer that lasts.

/// A wait that is short enough, in nanoseconds.
const TARGET: u64 = 5_000_000;
/// How long waits may be longer before the first packet is dropped, in nanoseconds.
const INTERVAL: u64 = 100_000_000;
/// The pace of drops is remembered for this many intervals.
const REMEMBERED: u64 = 16;

/// The state of a queue (RFC 8289, section 5.4). It is asked for each packet when that reaches the head of the
/// queue.
///
/// The RFC also lets a packet pass that leaves less than a packet in the queue. What is behind it is not known
/// here, so that a wait of one and a half packets counts as short enough instead.
#[derive(Clone, Debug, Default)]
pub(crate) struct Codel {
    /// When waits will have been too long for an interval; `None` while they are short enough.
    above_until: Option<u64>,
    dropping: bool,
    /// When the next packet is dropped.
    next: u64,
    /// Packets dropped since dropping began, and what that count was at the last beginning.
    count: u64,
    last_count: u64,
}

impl Codel {
    /// Whether a packet is dropped that reaches the head of the queue at `now` after it has `waited`. `sends` is
    /// the time that the link takes to send it. All times are in nanoseconds.
    pub(crate) fn drops(&mut self, now: u64, waited: u64, sends: u64) -> bool {
        let too_long = self.is_too_long(now, waited, sends);
        if self.dropping {
            self.dropping = too_long;
            let due = too_long && now >= self.next;
            if due {
                self.count += 1;
                self.next = self.after(self.next);
            }
            return due;
        }
        if too_long {
            self.begin(now);
        }
        too_long
    }

    /// Whether waits have been too long for an interval.
    fn is_too_long(&mut self, now: u64, waited: u64, sends: u64) -> bool {
        let target = TARGET.max(sends.saturating_add(sends / 2));
        if waited < target {
            self.above_until = None;
            return false;
        }
        now >= *self.above_until.get_or_insert(now.saturating_add(INTERVAL))
    }

    fn begin(&mut self, now: u64) {
        self.dropping = true;
        let recent = now.saturating_sub(self.next) < REMEMBERED * INTERVAL;
        let more = self.count.saturating_sub(self.last_count);
        self.count = if recent && more > 1 { more } else { 1 };
        self.last_count = self.count;
        self.next = self.after(now);
    }

    /// When the packet after one that was dropped at `at` is dropped: the control law.
    fn after(&self, at: u64) -> u64 {
        at.saturating_add((INTERVAL as f64 / (self.count.max(1) as f64).sqrt()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// When packets are dropped of those that reach the head one a millisecond, after waiting for what `waited`
    /// says, in milliseconds.
    fn dropped(times: std::ops::Range<u64>, waited: impl Fn(u64) -> u64) -> Vec<u64> {
        let mut codel = Codel::default();
        times.filter(|at| codel.drops(at * MS, waited(*at) * MS, MS)).collect()
    }

    #[test]
    fn short_waits_and_short_peaks_drop_nothing() {
        assert!(dropped(0..5000, |_| 4).is_empty());
        assert!(dropped(0..5000, |at| if at % 90 < 89 { 50 } else { 4 }).is_empty());
    }

    #[test]
    fn drops_come_sooner_after_each_other_while_waits_stay_long() {
        let times = dropped(0..1000, |_| 20);
        // 100 ms, then 100 / sqrt(n) ms after each other.
        assert_eq!(times[..5], [100, 200, 271, 329, 379]);
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.is_sorted_by(|a, b| a + 1 >= *b), "{gaps:?}");
    }

    #[test]
    fn a_short_wait_ends_it_and_the_pace_is_remembered() {
        let long = |at: u64| if at == 600 { 1 } else { 20 };
        let times = dropped(0..900, long);
        let before = times.iter().filter(|at| **at < 600).count() as u64;
        let after: Vec<u64> = times.into_iter().filter(|at| *at > 600).collect();
        // The first follows an interval later, the second as soon as the pace of before has it.
        let gap = (100.0 / ((before - 1) as f64).sqrt()) as u64;
        assert_eq!(after[0], 701);
        assert!(after[1] - after[0] <= gap + 1, "{after:?}, {gap}");
    }

    #[test]
    fn a_slow_link_may_hold_a_packet_and_a_half() {
        let mut codel = Codel::default();
        assert!((0..1000).all(|at| !codel.drops(at * MS, 14 * MS, 10 * MS)));
        assert!((1000..2000).any(|at| codel.drops(at * MS, 16 * MS, 10 * MS)));
    }
}
