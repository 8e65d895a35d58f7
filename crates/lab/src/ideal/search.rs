//! The best schedules for a number of repair symbols.

use std::time::Duration;

use super::{Plan, Schedule, Trace, Workload, late_bytes};
use crate::{Error, Options, parallel};

/// The numbers of repair symbols per message for which bounds are computed. Between them, bounds are
/// interpolated.
pub const BUDGETS: [f64; 10] = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0];
/// The times in milliseconds from a message to its first repair symbol. Times above ten are for applications
/// that can wait longer.
const DELAYS: [u64; 14] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25];
/// The times in milliseconds from one repair symbol to the next.
const SPACINGS: [u64; 4] = [0, 1, 2, 3];

/// The least share of late bytes for each number of repair symbols per message.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    slacks: Vec<Duration>,
    /// A curve for each slack.
    curves: Vec<Vec<Point>>,
}

/// The bounds for one number of repair symbols per message.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    repairs: f64,
    ideal: f64,
    schedule: Schedule,
    /// For each of [`DELAYS`], all repair symbols of a message at once after this time.
    delayed: [f64; DELAYS.len()],
    clairvoyant: f64,
}

impl Bound {
    /// Searches the best schedule over all of `traces` together, for each number of repair symbols and
    /// each of `slacks`: how much longer than the path a byte may take without being late.
    ///
    /// # Errors
    /// A result cannot be kept.
    pub fn search(
        workload: &Workload,
        traces: &[Trace],
        slacks: &[Duration],
        options: &Options,
    ) -> Result<Self, Error> {
        let plans = plans(workload);
        let total = (workload.bytes() * traces.len() as u64).max(1) as f64;
        let results = parallel::map(options, &plans, |(_, plan)| {
            let mut sums = vec![0; slacks.len()];
            for trace in traces {
                let late = late_bytes(workload, *trace, *plan, slacks);
                sums.iter_mut().zip(late).for_each(|(sum, late)| *sum += late);
            }
            let shares = sums.iter().map(|late| *late as f64 / total).collect::<Vec<_>>();
            Ok::<_, Error>(shares)
        })?;
        let curve = |index: usize| {
            let of_slack = plans.iter().zip(&results).filter_map(|((repairs, plan), shares)| {
                Some((*repairs, *plan, *shares.get(index)?))
            });
            points(&of_slack.collect::<Vec<_>>())
        };
        Ok(Self { slacks: slacks.to_vec(), curves: (0..slacks.len()).map(curve).collect() })
    }

    /// The least share of late bytes of an open loop with `repairs` repair symbols per message.
    #[must_use]
    pub fn ideal(&self, repairs: f64, slack: Duration) -> Option<f64> {
        interpolate(self.curve(slack)?, repairs, |point| point.ideal)
    }

    /// The share of late bytes if all repair symbols of a message are sent at once, `delay` after it;
    /// `None` if that was not computed.
    #[must_use]
    pub fn delayed(&self, repairs: f64, delay: Duration, slack: Duration) -> Option<f64> {
        let index = index_of(delay)?;
        interpolate(self.curve(slack)?, repairs, |point| {
            point.delayed.get(index).copied().unwrap_or(point.ideal)
        })
    }

    /// The share of late bytes if the sender knew the losses in advance.
    #[must_use]
    pub fn clairvoyant(&self, repairs: f64, slack: Duration) -> Option<f64> {
        interpolate(self.curve(slack)?, repairs, |point| point.clairvoyant)
    }

    /// For each number of repair symbols: the number, the share of late bytes, and the schedule that
    /// reaches it.
    pub fn schedules(&self, slack: Duration) -> impl Iterator<Item = (f64, f64, Schedule)> + '_ {
        let points = self.curve(slack).unwrap_or_default();
        points.iter().map(|point| (point.repairs, point.ideal, point.schedule))
    }

    fn curve(&self, slack: Duration) -> Option<&[Point]> {
        let index = self.slacks.iter().position(|known| *known == slack)?;
        self.curves.get(index).map(Vec::as_slice)
    }
}

/// All plans to try, each with its number of repair symbols per message.
fn plans(workload: &Workload) -> Vec<(f64, Plan)> {
    let mut plans = Vec::new();
    for repairs in BUDGETS {
        let messages = (workload.warm_up + workload.count) as f64;
        plans.push((repairs, Plan::Clairvoyant { copies: (repairs * messages) as u64 }));
        plans.extend(schedules(repairs).map(|schedule| (repairs, Plan::OpenLoop(schedule))));
    }
    plans
}

/// The grid of schedules with `repairs` repair symbols per message.
fn schedules(repairs: f64) -> impl Iterator<Item = Schedule> {
    let delays = if repairs > 0.0 { &DELAYS[..] } else { &DELAYS[..1] };
    let spacings = if repairs > 1.0 { &SPACINGS[..] } else { &SPACINGS[..1] };
    delays.iter().flat_map(move |delay| {
        spacings.iter().map(move |spacing| {
            let [delay, spacing] = [delay, spacing].map(|ms| Duration::from_millis(*ms));
            Schedule { repairs, delay, spacing }
        })
    })
}

/// The least share of late bytes of an open loop with `repairs` repair symbols per message over all of
/// `traces` together: [`Bound::ideal`] for a single number of repair symbols, which is much quicker. A byte
/// is late if it takes longer than the path and `slack`.
#[must_use]
pub fn least_late(workload: &Workload, traces: &[Trace], repairs: f64, slack: Duration) -> f64 {
    let total = (workload.bytes() * traces.len() as u64).max(1) as f64;
    let late = |schedule| {
        let plan = Plan::OpenLoop(schedule);
        let late = traces.iter().flat_map(|trace| late_bytes(workload, *trace, plan, &[slack]));
        late.sum::<u64>() as f64 / total
    };
    schedules(repairs).map(late).fold(1.0, f64::min)
}

/// The place of a delay in the grid.
fn index_of(delay: Duration) -> Option<usize> {
    DELAYS.iter().position(|ms| Duration::from_millis(*ms) == delay)
}

/// The best of each number of repair symbols. A sender that may send more may also send less, so the bounds
/// never rise.
fn points(results: &[(f64, Plan, f64)]) -> Vec<Point> {
    let schedule = Schedule::NONE;
    let delayed = [1.0; DELAYS.len()];
    let mut best = Point { repairs: 0.0, ideal: 1.0, schedule, delayed, clairvoyant: 1.0 };
    let mut points = Vec::new();
    for repairs in BUDGETS {
        best.repairs = repairs;
        for (_, plan, late) in results.iter().filter(|(of, ..)| *of == repairs) {
            match plan {
                Plan::OpenLoop(schedule) => {
                    if *late < best.ideal {
                        (best.ideal, best.schedule) = (*late, *schedule);
                    }
                    best.set_delayed(schedule, *late);
                }
                Plan::Clairvoyant { .. } => best.clairvoyant = best.clairvoyant.min(*late),
            }
        }
        points.push(best);
    }
    points
}

impl Point {
    /// Enters the share of late bytes of a schedule without spacing. Without repair symbols it is the share
    /// for every delay.
    fn set_delayed(&mut self, schedule: &Schedule, late: f64) {
        if schedule.repairs == 0.0 {
            self.delayed.fill(late);
        } else if schedule.spacing.is_zero()
            && let Some(share) = index_of(schedule.delay).and_then(|i| self.delayed.get_mut(i))
        {
            *share = late;
        }
    }
}

/// The value at `repairs`, on the line between the neighbours; beyond the last point its value.
fn interpolate(points: &[Point], repairs: f64, value: impl Fn(&Point) -> f64) -> Option<f64> {
    let after = points.partition_point(|point| point.repairs < repairs);
    let above = points.get(after).or(points.last())?;
    let below = points.get(after.saturating_sub(1))?;
    let width = above.repairs - below.repairs;
    let share = if width > 0.0 { (repairs - below.repairs) / width } else { 0.0 };
    Some(value(below) + share.clamp(0.0, 1.0) * (value(above) - value(below)))
}

#[cfg(test)]
mod tests {
    use super::super::Cut;
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn workload(loss: &str) -> Workload {
        Workload {
            link: format!("rate=10mbit delay=50ms loss={loss}").parse().unwrap(),
            size: 5000,
            interval: Duration::from_nanos(16_666_667),
            count: 300,
            warm_up: 0,
            cut: Cut { payload: 1164, overhead: 36 },
        }
    }

    #[test]
    fn more_repair_symbols_are_no_worse_and_knowledge_is_better() {
        let traces: Vec<_> = (0..4).map(|seed| Trace { seed, start: Duration::ZERO }).collect();
        let slack = 10 * MS;
        for loss in ["bern:0.03", "gt:240,4.8,0.95,0.005"] {
            let bound =
                Bound::search(&workload(loss), &traces, &[slack], &Options::default()).unwrap();
            let ideal: Vec<f64> = bound.schedules(slack).map(|(_, late, _)| late).collect();
            assert!(ideal.windows(2).all(|pair| pair[1] <= pair[0]), "{ideal:?}");
            assert!(ideal[0] > 0.1 && ideal[6] < ideal[0] / 3.0, "{ideal:?}");
            let pair = |repairs| {
                [bound.clairvoyant(repairs, slack), bound.ideal(repairs, slack)].map(Option::unwrap)
            };
            for repairs in [0.5, 1.7, 3.0] {
                let [known, ideal] = pair(repairs);
                assert!(known <= ideal, "{loss} {repairs}: {known} {ideal}");
            }
            for (delay, least) in [(0, 1.0), (5, 1.0), (25, 1.5)] {
                let late = bound.delayed(2.5, delay * MS, slack).unwrap();
                let ideal = bound.ideal(2.5, slack).unwrap();
                assert!(late >= least * ideal, "{loss}: {late} after {delay} ms, {ideal} at best");
            }
            assert_eq!(bound.delayed(1.0, 77 * MS, slack), None);
            let [known, ideal] = pair(0.5);
            assert!(known < ideal / 2.0, "{loss}: {known} {ideal}");
            assert_eq!(bound.ideal(1.0, 3 * MS), None, "nothing was computed for that");
            let least = least_late(&workload(loss), &traces, 1.0, slack);
            let ideal = bound.ideal(1.0, slack).unwrap();
            assert!((least - ideal).abs() < 1e-12, "a number by itself: {least} {ideal}");
        }
    }

    #[test]
    fn between_two_numbers_the_bound_is_on_their_line() {
        let point = |repairs, ideal| Point {
            repairs,
            ideal,
            schedule: Schedule::NONE,
            delayed: [ideal; DELAYS.len()],
            clairvoyant: 0.0,
        };
        let points = [point(0.0, 0.4), point(1.0, 0.2), point(3.0, 0.1)];
        let at = |repairs| interpolate(&points, repairs, |p| p.ideal).unwrap();
        for (repairs, expected) in [(0.0, 0.4), (0.5, 0.3), (1.0, 0.2), (2.0, 0.15), (9.0, 0.1)] {
            assert!((at(repairs) - expected).abs() < 1e-12, "{repairs}: {}", at(repairs));
        }
        assert_eq!(interpolate(&[], 1.0, |p| p.ideal), None);
    }
}
