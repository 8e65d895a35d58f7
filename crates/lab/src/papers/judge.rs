//! What becomes of a paper's claims in the report of an experiment.

use serde::{Deserialize, Serialize};
use sutura_analysis::report::Report;

use super::{Claim, Exhibit, Place, Scale};

/// A figure or table beside what was measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The name of the paper and the number of the figure or table.
    pub paper: String,
    /// The number.
    pub number: String,
    /// Whether the paper's conclusion stands here.
    pub finding: Finding,
    /// Its claims.
    pub claims: Vec<JudgedClaim>,
}

/// Whether what a paper concludes stands here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// All claims hold.
    Reproduced,
    /// A claim does not hold, and it is known why.
    Differs,
    /// A claim does not hold, and nobody knows why.
    Contradicts,
    /// It is shown, but the paper says nothing that can be compared.
    Shown,
    /// The experiment was too small: a claim misses by no more than chance explains, or has no number to compare.
    TooSmall,
    /// No experiment shows it.
    Elsewhere,
}

/// A claim beside what was measured here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JudgedClaim {
    /// The statement of the paper.
    pub says: String,
    /// The paper's figure; empty if it gives none.
    pub paper: String,
    /// The same here; `None` if the experiment was too small.
    pub ours: Option<String>,
    /// The same of an ideal, or a bound.
    pub bound: Option<String>,
    /// What ours must be.
    pub condition: String,
    /// Whether it is; `None` if the experiment was too small to tell.
    pub holds: Option<bool>,
    /// Its numbers, to be drawn; `None` if the experiment was too small.
    pub scale: Option<Scale>,
    /// Why it is not, if that is known.
    pub because: Option<String>,
}

impl Finding {
    /// The finding in words.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Differs => "differs",
            Self::Contradicts => "contradicts",
            Self::Shown => "shown",
            Self::TooSmall => "too small to tell",
            Self::Elsewhere => "elsewhere",
        }
    }

    fn of(claims: &[JudgedClaim]) -> Self {
        let of_claim = |claim: &JudgedClaim| match (claim.holds, &claim.because) {
            (Some(true), _) => Self::Reproduced,
            (Some(false), Some(_)) => Self::Differs,
            (Some(false), None) => Self::Contradicts,
            (None, _) => Self::TooSmall,
        };
        let all = || claims.iter().map(of_claim);
        let is_there = |finding| all().any(|of| of == finding);
        [Self::Contradicts, Self::Differs, Self::TooSmall]
            .into_iter()
            .find(|finding| is_there(*finding))
            .unwrap_or(if claims.is_empty() { Self::Shown } else { Self::Reproduced })
    }
}

impl Exhibit {
    /// Compares its claims with the report of its experiment; those of one that no experiment shows are not
    /// compared.
    #[must_use]
    pub fn judge(&self, paper: &str, report: &Report) -> Judged {
        let (claims, elsewhere) = match &self.place {
            Place::Experiment(shown) => {
                (shown.claims.iter().map(|claim| claim.judge(report)).collect(), None)
            }
            Place::Elsewhere(_) => (Vec::new(), Some(Finding::Elsewhere)),
        };
        Judged {
            paper: paper.to_owned(),
            number: self.number.to_owned(),
            finding: elsewhere.unwrap_or_else(|| Finding::of(&claims)),
            claims,
        }
    }
}

impl Claim {
    /// Whether it holds. `None` if the number is not there, or misses the condition by no more than chance explains.
    fn holds(&self, report: &Report) -> Option<bool> {
        let holds = self.holds.holds(self.ours.number(report)?);
        let by_chance = |within| self.holds.may_hold(within);
        let unsure = !holds && self.ours.interval(report).is_some_and(by_chance);
        (!unsure).then_some(holds)
    }

    fn judge(&self, report: &Report) -> JudgedClaim {
        let holds = self.holds(report);
        JudgedClaim {
            says: self.says.to_owned(),
            paper: self.paper.to_owned(),
            ours: self.ours.text(report),
            bound: self.bound.and_then(|bound| bound.text(report)),
            condition: self.holds.describe(|number| self.ours.with_unit(report, number)),
            holds,
            scale: Scale::of(self, report),
            because: self.because.filter(|_| holds == Some(false)).map(str::to_owned),
        }
    }
}

#[cfg(test)]
mod tests {
    use sutura_analysis::table::{Cell, Table};

    use super::super::{CellAt, Condition, Quantity, Shown};
    use super::*;

    const fn claim(column: &'static str, most: f64, because: Option<&'static str>) -> Claim {
        Claim {
            says: "Few messages are late.",
            paper: "4 %",
            ours: Quantity::Of(CellAt { table: "All", row: &[], column }),
            bound: None,
            holds: Condition::AtMost(most),
            because,
        }
    }

    const CLAIMS: [&[Claim]; 5] = [
        &[claim("late", 0.06, Some("no reason"))],
        &[claim("late", 0.06, None), claim("late", 0.04, Some("there is one"))],
        &[claim("late", 0.04, Some("there is one")), claim("late", 0.04, None)],
        &[claim("nothing", 1.0, None)],
        &[],
    ];

    #[test]
    fn the_worst_claim_decides() {
        let mut table = Table::new("All messages", ["late"]);
        table.row([Cell::Share(0.05)]);
        let report = Report { tables: vec![table], ..Report::default() };
        let judge = |claims| {
            let shown = Shown { by: "x", charts: &[], tables: &["All"], claims };
            let place = Place::Experiment(shown);
            let exhibit = Exhibit { number: "Fig. 1", about: "", concludes: "", place };
            exhibit.judge("x-2020", &report)
        };
        let findings = CLAIMS.map(|claims| judge(claims).finding);
        let expected = [
            Finding::Reproduced,
            Finding::Differs,
            Finding::Contradicts,
            Finding::TooSmall,
            Finding::Shown,
        ];
        assert_eq!(findings, expected);
        let judged = judge(CLAIMS[1]);
        assert_eq!(judged.claims[0].ours.as_deref(), Some("5.000 %"));
        assert_eq!(judged.claims[0].condition, "at most 6.000 %");
        let because = judged.claims.iter().map(|claim| claim.because.as_deref());
        assert_eq!(because.collect::<Vec<_>>(), [None, Some("there is one")]);
    }

    #[test]
    fn what_chance_explains_is_no_contradiction() {
        use sutura_analysis::interval::{Estimate, Interval};
        let judge = |low, high| {
            let mut table = Table::new("All messages", ["late"]);
            let within = Interval { low: Some(low), high: Some(high) };
            table.row([Cell::NumberWithin(Estimate { value: 0.05, within })]);
            let report = Report { tables: vec![table], ..Report::default() };
            claim("late", 0.04, None).judge(&report).holds
        };
        assert_eq!((judge(0.03, 0.06), judge(0.045, 0.06)), (None, Some(false)));
    }

    #[test]
    fn what_no_experiment_shows_is_elsewhere() {
        let place = Place::Elsewhere("a test");
        let exhibit = Exhibit { number: "Fig. 1", about: "", concludes: "", place };
        assert_eq!(exhibit.judge("x", &Report::default()).finding, Finding::Elsewhere);
    }
}
