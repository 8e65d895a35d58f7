//! One line for each application and link: the share of late data or the time without and with repair, the
//! cost of repair, and whether a person can notice the difference.

use std::fmt::Write as _;

use serde::Serialize;
use sutura_analysis::figure::{Compared, Comparison, Picture};

use super::report::{fill, percent};
use super::{App, Demo, OnLink, Part, Redundancy, Row};

/// A share of late data that falls or rises by less than this counts as unchanged: at 60 frames a second, it
/// is one frame in 17 seconds.
const NOTICEABLE_SHARE: f64 = 0.001;
/// A person does not notice either if the share falls or rises by less than this part of itself.
const NOTICEABLE_PART: f64 = 0.1;
/// A time that falls or rises by less than this many milliseconds seems the same.
const NOTICEABLE_MS: f64 = 100.0;
/// Fewer bytes than this share are none.
pub(super) const SOME_BYTES: f64 = 0.005;

/// The gain of one policy over plain QUIC, and its price.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The policy, as `sutura get --redundancy` takes it.
    pub policy: String,
    /// The quantity that is compared.
    pub measure: Measure,
    /// The quantity with plain QUIC.
    pub without: f64,
    /// The quantity with the policy.
    pub with: f64,
    /// How many more bytes were sent, as a share.
    pub extra: f64,
    /// The meaning of that for a person.
    pub verdict: Verdict,
}

/// The quantity that a [`Summary`] compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// The share of data that is late or never comes.
    LateShare,
    /// The time within which half of the files arrive, in milliseconds.
    MedianMs,
}

named! {
    /// Whether repair is worth its bytes.
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Verdict {
        /// The policy makes the quantity better by a difference that a person can notice.
        Helps = "helps",
        /// The policy sends no redundancy.
        NotNeeded = "not needed",
        /// The policy makes no difference that a person can notice, and hardly costs anything.
        NoDifference = "no difference",
        /// The policy makes no difference that a person can notice, and costs bytes.
        Costs = "costs",
        /// The policy makes the quantity worse by a difference that a person can notice.
        DoesHarm = "does harm",
    }
}

impl Measure {
    /// Whether a person can notice that the quantity has improved, which means that it became less.
    pub(super) fn improved(self, from: f64, to: f64) -> bool {
        let least = match self {
            Self::LateShare => NOTICEABLE_SHARE,
            Self::MedianMs => NOTICEABLE_MS,
        };
        from - to >= least && from - to >= NOTICEABLE_PART * from
    }

    fn text(self, value: f64) -> String {
        match self {
            Self::LateShare => percent(value),
            Self::MedianMs => format!("{:.2} s", value / 1000.0),
        }
    }
}

impl Redundancy {
    /// The policy that stands for repair in the summary: the policy that sets itself; for messages the policy
    /// that is told their deadline, which they come with; for the game the fixed policy, whose cost is a
    /// matter of a few bytes.
    pub(super) const fn of_summary(app: App) -> Self {
        match app {
            App::Game => Self::Fixed,
            App::Stream | App::Download => Self::Auto,
            App::Messages => Self::Target,
        }
    }
}

impl Summary {
    pub(super) fn of(app: App, rows: &[Row]) -> Self {
        let of = |redundancy| rows.iter().find(|row| row.redundancy == redundancy);
        let measure = match app {
            App::Game | App::Stream | App::Messages => Measure::LateShare,
            App::Download => Measure::MedianMs,
        };
        let value = |row: &Row| match measure {
            Measure::LateShare => row.late.unwrap_or(0.0),
            Measure::MedianMs => row.times_ms.get("p50").copied().flatten().unwrap_or(0.0),
        };
        let [plain, main] = [of(Redundancy::None), of(Redundancy::of_summary(app))];
        let [without, with] = [plain, main].map(|row| row.map_or(0.0, value));
        let extra = main.map_or(0.0, |row| row.extra);
        let verdict = if main.is_none_or(|row| row.repairs == 0) {
            Verdict::NotNeeded
        } else if measure.improved(without, with) {
            Verdict::Helps
        } else if measure.improved(with, without) {
            Verdict::DoesHarm
        } else if extra >= SOME_BYTES {
            Verdict::Costs
        } else {
            Verdict::NoDifference
        };
        let policy = main.and_then(|row| row.policy.clone()).unwrap_or_default();
        Self { policy, measure, without, with, extra, verdict }
    }
}

impl App {
    /// The quantity in the lines of the summary.
    const fn counts(self) -> &'static str {
        match self {
            Self::Game => "UDP game, 60 packets a second: inputs without an answer in time",
            Self::Stream => "Game or desktop stream at 60 Hz: bytes over a frame late",
            Self::Messages => "Video call: frames after their deadline",
            Self::Download => "1 MB to a client with a 100 kB buffer: median time",
        }
    }
}

impl Demo {
    /// The summary for a terminal of 80 columns and 24 rows.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut text =
            format!("{:24}{:>12}{:>13}{:>12}\n", "", "plain QUIC", "with repair", "bytes");
        for part in &self.parts {
            text += part.app.counts();
            text.push('\n');
            for on in &part.links {
                let summary = &on.summary;
                let [without, with] =
                    [summary.without, summary.with].map(|value| summary.measure.text(value));
                let (link, verdict) = (on.link.name, summary.verdict.name());
                let extra = bytes(summary.extra);
                // Writing to a string cannot fail.
                let _ = writeln!(text, "  {link:22}{without:>12}{with:>13}{extra:>12}  {verdict}");
            }
        }
        text.push('\n');
        text += &fill(
            "\"helps\": a person can notice the difference; \"costs\": the bytes buy nothing that one \
             can; \"not needed\": no repair is sent. Links are simulated; the same seed gives the same \
             figures. --details has the links, policies, bounds and all figures.",
        );
        text
    }

    /// The summary as a figure.
    #[must_use]
    pub fn picture(&self) -> Picture {
        let comparisons = self.parts.iter().flat_map(Part::comparisons).collect::<Vec<_>>();
        let title = "Blue: what repair leaves of plain QUIC's late data or time (grey: 100 %)";
        Picture {
            name: "demo".to_owned(),
            svg: sutura_analysis::figure::comparison(title, &comparisons),
        }
    }
}

impl Part {
    fn comparisons(&self) -> impl Iterator<Item = Comparison> + '_ {
        let compared = |on: &OnLink| {
            let summary = &on.summary;
            let text = |value| summary.measure.text(value);
            Compared {
                label: on.link.name.to_owned(),
                before: summary.without,
                after: summary.with,
                text: format!(
                    "{} instead of {}, {} bytes",
                    text(summary.with),
                    text(summary.without),
                    bytes(summary.extra)
                ),
            }
        };
        let rows = self.links.iter().map(compared).collect();
        std::iter::once(Comparison { title: self.app.counts().to_owned(), rows })
    }
}

/// A share of additional bytes.
fn bytes(extra: f64) -> String {
    // Not -0.0 %.
    format!("{:+.1} %", if extra.abs() < 0.0005 { 0.0 } else { extra * 100.0 })
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::row;
    use super::*;

    fn verdict(app: App, before: f64, after: f64, extra: f64, repairs: u64) -> Verdict {
        // Late shares, or median times in ms.
        let of = |redundancy, value, extra, repairs| row(redundancy, value, value, extra, repairs);
        let rows = [
            of(Redundancy::None, before, 0.0, 0),
            of(Redundancy::of_summary(app), after, extra, repairs),
        ];
        Summary::of(app, &rows).verdict
    }

    #[test]
    fn only_what_a_person_can_notice_is_help() {
        for (app, before, after, extra, repairs, expected) in [
            (App::Game, 0.095, 0.0, 0.9, 9, Verdict::Helps),
            (App::Stream, 0.0436, 0.0159, 0.106, 9, Verdict::Helps),
            (App::Stream, 0.0436, 0.0432, 0.106, 9, Verdict::Costs),
            (App::Stream, 0.0009, 0.0, 0.106, 9, Verdict::Costs),
            (App::Stream, 0.01, 0.02, 0.106, 9, Verdict::DoesHarm),
            (App::Messages, 0.0021, 0.0021, 0.0, 0, Verdict::NotNeeded),
            (App::Messages, 0.0021, 0.0021, 0.001, 1, Verdict::NoDifference),
            (App::Download, 6282.6, 4662.6, 0.086, 9, Verdict::Helps),
            (App::Download, 576.6, 562.1, 0.115, 9, Verdict::Costs),
            (App::Download, 1052.8, 978.2, 0.067, 9, Verdict::Costs),
            (App::Download, 10_000.0, 9_800.0, 0.067, 9, Verdict::Costs),
        ] {
            let verdict = verdict(app, before, after, extra, repairs);
            assert_eq!(verdict, expected, "{app:?}: {before} {after} {extra}");
        }
    }
}
