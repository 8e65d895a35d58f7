//! How far the order of arrival is from the order of sending.

use std::time::Duration;

/// Messages in the order in which they were sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Order {
    /// By how many places a message comes earlier or later than it was sent, on average.
    pub displaced: f64,
    /// The most places.
    pub most_displaced: usize,
    /// The share of messages that are complete before an earlier message is: a transport that keeps the order
    /// would hold them back.
    pub held: f64,
    /// For how long it would hold back a message, on average over all of them.
    pub held_for: Duration,
}

/// The order of messages that were complete at these times.
#[must_use]
pub fn order(completed: &[Duration]) -> Order {
    let count = completed.len().max(1) as f64;
    let mut arrivals: Vec<usize> = (0..completed.len()).collect();
    // Messages that are complete at the same time count in the order of sending.
    arrivals.sort_by_key(|message| completed.get(*message));
    let places = || arrivals.iter().enumerate().map(|(place, message)| place.abs_diff(*message));
    let mut earlier = Duration::ZERO;
    let waits = completed.iter().map(|at| {
        earlier = earlier.max(*at);
        earlier - *at
    });
    let waits: Vec<Duration> = waits.collect();
    Order {
        displaced: places().sum::<usize>() as f64 / count,
        most_displaced: places().max().unwrap_or(0),
        held: waits.iter().filter(|wait| !wait.is_zero()).count() as f64 / count,
        held_for: waits.iter().sum::<Duration>().div_f64(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order_of(millis: &[u64]) -> Order {
        let completed: Vec<Duration> = millis.iter().map(|ms| Duration::from_millis(*ms)).collect();
        order(&completed)
    }

    #[test]
    fn what_arrives_in_order_is_not_held() {
        let none = Order { displaced: 0.0, most_displaced: 0, held: 0.0, held_for: Duration::ZERO };
        assert_eq!(order_of(&[]), none);
        assert_eq!(order_of(&[1, 2, 2, 5]), none);
    }

    #[test]
    fn one_late_message_holds_back_those_behind_it() {
        // The second message comes last: two places late, the others one place early.
        let late = order_of(&[1, 9, 2, 5]);
        assert_eq!((late.displaced, late.most_displaced, late.held), (1.0, 2, 0.5));
        assert_eq!(late.held_for, Duration::from_micros((7_000 + 4_000) / 4));
    }
}
