//! The numbers of a claim on one scale, to be drawn beside each other.

use serde::{Deserialize, Serialize};
use sutura_analysis::report::Report;
use sutura_analysis::table::{Cell, Unit};

use super::{Claim, Condition, Quantity};

/// The numbers of a claim, in the unit of the cell that they come from: milliseconds, shares from 0 to 1, or none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    /// What is measured here.
    pub ours: f64,
    /// The ends of its interval, as far as they are known.
    pub within: [Option<f64>; 2],
    /// The paper's figure, if it gives a single one in the same unit.
    pub paper: Option<f64>,
    /// The ideal or a bound.
    pub bound: Option<f64>,
    /// The least and the most with which the claim holds; `None` for no limit.
    pub holds: [Option<f64>; 2],
}

impl Scale {
    /// Those of a claim in a report; `None` if the experiment was too small.
    pub(super) fn of(claim: &Claim, report: &Report) -> Option<Self> {
        let within = claim.ours.interval(report);
        Some(Self {
            ours: claim.ours.number(report)?,
            within: [within.and_then(|of| of.low), within.and_then(|of| of.high)],
            paper: number(claim.paper, unit(claim.ours, report)),
            bound: claim.bound.and_then(|bound| bound.number(report)),
            holds: match claim.holds {
                Condition::AtMost(most) => [None, Some(most)],
                Condition::AtLeast(least) => [Some(least), None],
                Condition::Between(least, most) => [Some(least), Some(most)],
            },
        })
    }

    /// All of its numbers.
    pub fn numbers(&self) -> impl Iterator<Item = f64> {
        let Self { ours, within, paper, bound, holds } = *self;
        [Some(ours), paper, bound].into_iter().chain(within).chain(holds).flatten()
    }
}

fn unit(quantity: Quantity, report: &Report) -> Unit {
    let cell = match quantity {
        Quantity::Of(cell) | Quantity::Difference(cell, _) => cell.find(report),
        Quantity::Ratio(..) => None,
    };
    cell.and_then(Cell::unit).unwrap_or(Unit::Plain)
}

/// The number that the paper gives in words such as `about 28 ms`, `4 %`, `x3.5` or `half`; `None` if the words have no
/// single one in this unit.
fn number(words: &str, unit: Unit) -> Option<f64> {
    let words = ["about ", "almost ", "less than "]
        .iter()
        .find_map(|vague| words.strip_prefix(vague))
        .unwrap_or(words);
    match (words, unit) {
        ("none" | "no experiment", Unit::Share | Unit::Plain) => return Some(0.0),
        ("half" | "halved", Unit::Share | Unit::Plain) => return Some(0.5),
        ("a third", Unit::Share | Unit::Plain) => return Some(1.0 / 3.0),
        ("all", Unit::Share) => return Some(1.0),
        _ => {}
    }
    let end = words.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(words.len());
    let (digits, suffix) = match (words.strip_prefix('x'), unit) {
        (Some(times), Unit::Plain) => (times, ""),
        _ => words.split_at(end),
    };
    let number: f64 = digits.parse().ok()?;
    match (suffix.trim(), unit) {
        ("ms" | "milliseconds", Unit::Millis) | ("", Unit::Plain) => Some(number),
        ("s", Unit::Millis) => Some(1000.0 * number),
        ("%", Unit::Share) => Some(number / 100.0),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_numbers_in_the_unit_are_read() {
        for (words, unit, expected) in [
            ("28 ms", Unit::Millis, Some(28.0)),
            ("about 160 ms", Unit::Millis, Some(160.0)),
            ("15.2 s", Unit::Millis, Some(15_200.0)),
            ("4 %", Unit::Share, Some(0.04)),
            ("95%", Unit::Share, Some(0.95)),
            ("half", Unit::Share, Some(0.5)),
            ("none", Unit::Share, Some(0.0)),
            ("x3.5", Unit::Plain, Some(3.5)),
            ("1.27", Unit::Plain, Some(1.27)),
            ("28 ms", Unit::Plain, None),
            ("28 ms against 63 ms", Unit::Millis, None),
            ("x3.5 to x5+", Unit::Plain, None),
            ("", Unit::Plain, None),
            ("stable", Unit::Millis, None),
        ] {
            assert_eq!(number(words, unit), expected, "{words} as {unit:?}");
        }
    }
}
