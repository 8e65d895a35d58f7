//! HyStart++ (RFC 9406): leaves slow start when the round-trip time begins to rise, before the
//! queue overflows.

use std::time::{Duration, Instant};

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u32 = 8;
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;

/// How the window grows after an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    /// Slow start: by one byte per acknowledged byte.
    Standard,
    /// Conservative slow start: by one byte per this many acknowledged bytes.
    Divided(u64),
    /// Slow start is over: congestion avoidance begins.
    Over,
}

/// Watches the rounds of the initial slow start. A round ends when a packet that was sent after its
/// beginning is acknowledged. Growth per acknowledgement is unlimited, because our senders pace.
#[derive(Debug, Clone, Default)]
pub(super) struct HyStart {
    round_start: Option<Instant>,
    last_round_min: Option<Duration>,
    current_round_min: Option<Duration>,
    samples: u32,
    /// During conservative slow start: the smallest round-trip time when it began, and the rounds
    /// since.
    conservative: Option<(Duration, u32)>,
}

impl HyStart {
    /// Handles an acknowledgement with a round-trip time of `rtt`, whose newest packet was sent at
    /// `newest_sent`.
    pub(super) fn on_ack(&mut self, now: Instant, newest_sent: Instant, rtt: Duration) -> Growth {
        if self.round_start.is_none_or(|start| newest_sent >= start) {
            self.begin_round(now);
            if self.conservative.is_some_and(|(_, rounds)| rounds >= CSS_ROUNDS) {
                return Growth::Over;
            }
        }
        let current = self.current_round_min.map_or(rtt, |min| min.min(rtt));
        self.current_round_min = Some(current);
        self.samples = self.samples.saturating_add(1);
        if self.samples >= N_RTT_SAMPLE {
            self.judge(current);
        }
        match self.conservative {
            Some(_) => Growth::Divided(CSS_GROWTH_DIVISOR),
            None => Growth::Standard,
        }
    }

    fn begin_round(&mut self, now: Instant) {
        self.round_start = Some(now);
        self.last_round_min = self.current_round_min.take();
        self.samples = 0;
        if let Some((_, rounds)) = &mut self.conservative {
            *rounds += 1;
        }
    }

    fn judge(&mut self, current: Duration) {
        match self.conservative {
            // The rise was temporary: slow start resumes.
            Some((baseline, _)) if current < baseline => self.conservative = None,
            Some(_) => {}
            None => {
                let Some(last) = self.last_round_min else {
                    return;
                };
                let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if current >= last.saturating_add(threshold) {
                    self.conservative = Some((current, 0));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Feeds ten acknowledgements of one round, each with `rtt`; returns the last answer.
    fn round(hystart: &mut HyStart, start: Instant, rtt: Duration) -> Growth {
        (0..10).map(|i| hystart.on_ack(start + rtt + i * MS, start + i * MS, rtt)).last().unwrap()
    }

    /// Feeds rounds far apart, so that each begins with packets sent after the previous one began.
    fn rounds(hystart: &mut HyStart, t: Instant, first: u32, rtts: &[u32]) -> Vec<Growth> {
        let at = |i: usize| t + 1_000 * MS * (first + i as u32);
        rtts.iter().enumerate().map(|(i, &rtt)| round(hystart, at(i), rtt * MS)).collect()
    }

    #[test]
    fn a_steady_path_stays_in_slow_start() {
        let mut hystart = HyStart::default();
        let answers = rounds(&mut hystart, Instant::now(), 0, &[40, 41, 42, 44, 43, 46]);
        assert!(answers.iter().all(|&growth| growth == Growth::Standard), "{answers:?}");
    }

    #[test]
    fn a_rise_leads_out_after_five_conservative_rounds() {
        let mut hystart = HyStart::default();
        // The threshold for a round-trip time of 40 ms is 5 ms.
        let answers = rounds(&mut hystart, Instant::now(), 0, &[40, 45, 50, 50, 50, 50]);
        assert_eq!(answers[0], Growth::Standard);
        assert!(answers[1..].iter().all(|&growth| growth == Growth::Divided(4)), "{answers:?}");
        let t = Instant::now() + 100_000 * MS;
        assert_eq!(hystart.on_ack(t + 50 * MS, t, 50 * MS), Growth::Over);
    }

    #[test]
    fn a_passing_rise_resumes_slow_start() {
        let mut hystart = HyStart::default();
        let answers = rounds(&mut hystart, Instant::now(), 0, &[40, 50, 44]);
        assert_eq!(answers, [Growth::Standard, Growth::Divided(4), Growth::Standard]);
    }

    #[test]
    fn few_samples_decide_nothing() {
        let mut hystart = HyStart::default();
        let t = Instant::now();
        rounds(&mut hystart, t, 0, &[40]);
        for i in 0..7 {
            let sent = t + 5_000 * MS + i * MS;
            assert_eq!(hystart.on_ack(sent + 90 * MS, sent, 90 * MS), Growth::Standard);
        }
    }

    #[test]
    fn the_threshold_is_clamped() {
        for (last, rise, expected) in [
            (8, 3, Growth::Standard),
            (8, 4, Growth::Divided(4)),
            (400, 15, Growth::Standard),
            (400, 16, Growth::Divided(4)),
        ] {
            let mut hystart = HyStart::default();
            let answers = rounds(&mut hystart, Instant::now(), 0, &[last, last + rise]);
            assert_eq!(answers[1], expected, "{last} ms and {rise} ms more");
        }
    }
}
