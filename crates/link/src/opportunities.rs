//! Recorded times at which a link could send.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::ParseError;

/// The bytes that a link sends at each recorded time.
const TURN: u64 = 1500;
const MILLISECOND: u64 = 1_000_000;

/// The recorded times at which a link could send 1500 bytes, in the form of the emulator Mahimahi: whole milliseconds
/// since the start, in ascending order, a time as often as there is such a turn. The record is repeated without end,
/// and the last time is its length. Parses with commas or white space between the times, one in each line of a file,
/// and prints with commas.
///
/// A turn carries several small packets, or a part of a larger one. One that nothing waits for is lost.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Opportunities {
    times: Arc<[u32]>,
}

impl Opportunities {
    /// A record of these times, in milliseconds; `None` if they are not in ascending order, or do not end after 0.
    #[must_use]
    pub fn new(times: impl Into<Arc<[u32]>>) -> Option<Self> {
        let times = times.into();
        let ends = times.last().is_some_and(|last| *last > 0);
        (ends && times.is_sorted()).then_some(Self { times })
    }

    /// The times, in milliseconds.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        &self.times
    }

    /// After how long the record begins anew.
    #[must_use]
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.length())
    }

    /// The mean rate, in bits per second.
    #[must_use]
    pub fn mean_rate(&self) -> f64 {
        8.0 * TURN as f64 * self.times.len() as f64 / self.period().as_secs_f64()
    }

    /// The same record, repeated as before, but from just after this turn on.
    #[must_use]
    pub fn from_turn(&self, turn: usize) -> Self {
        let turn = turn % self.times.len();
        let (before, after) = self.times.split_at(turn + 1);
        let start = self.times.get(turn).copied().unwrap_or_default();
        let length = self.times.last().copied().unwrap_or_default();
        let after = after.iter().map(|time| time - start);
        let before = before.iter().map(|time| time + (length - start));
        Self { times: after.chain(before).collect() }
    }

    /// How long this many bytes take at most if nothing waits before them.
    #[must_use]
    pub fn longest(&self, bytes: u64) -> Duration {
        let turns = bytes.div_ceil(TURN).max(1);
        // Time passes without a turn until just after the one before them.
        let first = 0..self.times.len() as u64;
        let times = first.map(|n| self.turn_at(n + turns).saturating_sub(self.turn_at(n)));
        Duration::from_nanos(times.max().unwrap_or_default())
    }

    /// The length of the record, in nanoseconds.
    fn length(&self) -> u64 {
        u64::from(self.times.last().copied().unwrap_or(1)) * MILLISECOND
    }

    /// When turn `n` is, in nanoseconds.
    fn turn_at(&self, n: u64) -> u64 {
        let count = self.times.len() as u64;
        let within = self.times.get((n % count) as usize).copied().unwrap_or_default();
        (n / count).saturating_mul(self.length()).saturating_add(u64::from(within) * MILLISECOND)
    }

    /// How many turns are before `now`.
    fn turns_before(&self, now: u64) -> u64 {
        // At the end of a period, its last turn and the first one of the next are not yet over.
        let periods = now.saturating_sub(1) / self.length();
        let within = now - periods * self.length();
        let over = self.times.partition_point(|time| u64::from(*time) * MILLISECOND < within);
        periods.saturating_mul(self.times.len() as u64).saturating_add(over as u64)
    }
}

impl fmt::Display for Opportunities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for time in &*self.times {
            write!(f, "{separator}{time}")?;
            separator = ",";
        }
        Ok(())
    }
}

impl fmt::Debug for Opportunities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, megabits) = (self.times.len(), self.mean_rate() / 1e6);
        write!(f, "Opportunities({count} in {:?}, {megabits:.3} Mbit/s)", self.period())
    }
}

impl FromStr for Opportunities {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut times: Vec<u32> = Vec::new();
        let words = text.split(|c: char| c == ',' || c.is_whitespace());
        for (word, number) in words.filter(|word| !word.is_empty()).zip(1..) {
            let wrong = |problem: &str| {
                let problem = format!("{problem} as time {number}");
                Err(ParseError::new("trace", word, problem))
            };
            match word.parse() {
                Ok(time) if times.last().is_some_and(|last| time < *last) => {
                    return wrong("expected no earlier time than the one before it");
                }
                Ok(time) => times.push(time),
                Err(_) => return wrong("expected a number of milliseconds"),
            }
        }
        let problem = "expected at least one time, and one after 0 as the last";
        Self::new(times).ok_or_else(|| ParseError::new("trace", "", problem))
    }
}

/// Sends packets one after another at recorded times.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    of: Opportunities,
    /// How many bytes of the turns since the start are used or over.
    used: u64,
}

impl Turns {
    pub(crate) fn new(of: Opportunities) -> Self {
        Self { of, used: 0 }
    }

    /// How many bytes of turns are used or over at `now`.
    fn used_at(&self, now: u64) -> u64 {
        self.used.max(self.of.turns_before(now).saturating_mul(TURN))
    }

    pub(crate) fn begins(&self, now: u64) -> u64 {
        self.of.turn_at(self.used_at(now) / TURN).max(now)
    }

    pub(crate) fn send(&mut self, now: u64, size: u64) {
        self.used = self.used_at(now).saturating_add(size);
    }

    pub(crate) fn sent_at(&self) -> u64 {
        self.used.checked_sub(1).map_or(0, |last| self.of.turn_at(last / TURN))
    }

    pub(crate) fn bytes_left(&self, now: u64) -> u64 {
        self.used.saturating_sub(self.of.turns_before(now).saturating_mul(TURN))
    }

    pub(crate) fn mean_time(&self, size: u64) -> u64 {
        (8e9 * size as f64 / self.of.mean_rate()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> Opportunities {
        text.parse().unwrap()
    }

    #[test]
    fn records_are_read_and_written() {
        for (text, written) in [("0\n1\n1\n10\n", "0,1,1,10"), ("5", "5"), (" 1,, 2\t3", "1,2,3")] {
            assert_eq!(trace(text).to_string(), written);
            assert_eq!(trace(written), trace(text));
        }
        assert_eq!(format!("{:?}", trace("0,1,1,10")), "Opportunities(4 in 10ms, 4.800 Mbit/s)");
        let error = |text: &str| text.parse::<Opportunities>().unwrap_err().to_string();
        assert_eq!(error("1,x"), "trace `x`: expected a number of milliseconds as time 2");
        assert_eq!(
            error("4 3"),
            "trace `3`: expected no earlier time than the one before it as time 2"
        );
        for empty in ["", "0,0"] {
            assert_eq!(
                error(empty),
                "trace ``: expected at least one time, and one after 0 as the last"
            );
        }
        assert_eq!(Opportunities::new(vec![2, 1]), None);
    }

    #[test]
    fn the_record_is_repeated() {
        let record = trace("2,2,10");
        let times: Vec<u64> = (0..7).map(|n| record.turn_at(n) / MILLISECOND).collect();
        assert_eq!(times, [2, 2, 10, 12, 12, 20, 22]);
        for now in 0..1000 {
            let naive = (0..).take_while(|n| record.turn_at(*n) < now * MILLISECOND / 10).count();
            assert_eq!(record.turns_before(now * MILLISECOND / 10), naive as u64, "{now}");
        }
        // The end of one period is the beginning of the next.
        assert_eq!(trace("0,4").turns_before(4 * MILLISECOND), 1);
        assert_eq!(trace("0,4").turns_before(4 * MILLISECOND + 1), 3);
    }

    #[test]
    fn a_record_may_begin_anywhere() {
        let record = trace("0,2,2,10");
        let from = |turn| record.from_turn(turn).to_string();
        assert_eq!(
            [0, 1, 2, 3, 4].map(from),
            ["2,2,10,10", "0,8,8,10", "8,8,10,10", "0,2,2,10", "2,2,10,10"]
        );
        let turns = (0..9).map(|n| record.turn_at(n + 2) - 2 * MILLISECOND);
        assert!((0..9).map(|n| record.from_turn(1).turn_at(n)).eq(turns));
    }

    #[test]
    fn the_longest_time_is_that_of_the_worst_start() {
        let record = trace("0,1,2,50,51");
        let longest = |bytes| record.longest(bytes).as_millis();
        assert_eq!([1, 1500, 1501, 4500, 6000].map(longest), [48, 48, 49, 50, 51]);
    }

    #[test]
    fn packets_share_turns_and_span_them() {
        let mut line = Turns::new(trace("10,20,30,30"));
        let mut send = |now: u64, size| {
            let begins = line.begins(now * MILLISECOND);
            line.send(now * MILLISECOND, size);
            [begins, line.sent_at()].map(|at| at / MILLISECOND)
        };
        assert_eq!(send(0, 500), [10, 10]);
        assert_eq!(send(0, 1000), [10, 10]);
        assert_eq!(send(0, 1000), [20, 20]);
        assert_eq!(send(0, 1000), [20, 30]);
        // What is left of a turn is lost when its time is over, and so are turns without packets.
        assert_eq!(send(35, 1500), [40, 40]);
        assert_eq!(send(61, 1), [70, 70]);
        assert_eq!(send(70, 1499), [70, 70]);
        assert_eq!(send(70, 1), [80, 80]);
        assert_eq!(line.bytes_left(75 * MILLISECOND), 1);
        assert_eq!(line.bytes_left(81 * MILLISECOND), 0);
    }

    #[test]
    fn extremes_saturate() {
        let mut line = Turns::new(trace("1"));
        line.send(u64::MAX, u64::MAX);
        line.send(u64::MAX, u64::MAX);
        assert_eq!(line.begins(u64::MAX), u64::MAX);
    }
}
