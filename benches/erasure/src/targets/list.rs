//! The targets.

use super::{Criterion, Question};
use crate::{
    args::Section,
    cases::{Bout, Case, Loss},
    limits::{ALU, READ},
    measure::Metric::{self, Last, Total},
    memory::Pages,
    peers::isal,
};

fn faster(than: &'static [&'static str], times: f64) -> Question {
    Question::Faster { than, times }
}

fn takes(of: (Case, &'static str, Metric), times: f64) -> Question {
    Question::Takes { of, times }
}

fn share(limit: &'static str, at_least: f64) -> Question {
    Question::Share { limit, at_least }
}

fn micros(at_most: f64) -> Question {
    Question::Micros { at_most }
}

fn absent(what: &'static str, times: f64) -> Question {
    Question::Absent { what, times }
}

/// Collects the lines of one target.
struct Lines {
    target: Section,
    lines: Vec<Criterion>,
}

impl Lines {
    /// Questions about the total time of our entries of a race.
    fn of(&mut self, what: impl ToString, case: Case, ours: &'static [&'static str]) -> About<'_> {
        About { lines: self, what: what.to_string(), case, metric: Total, ours, is_large: false }
    }
}

/// The subject of the following questions.
struct About<'l> {
    lines: &'l mut Lines,
    what: String,
    case: Case,
    metric: Metric,
    ours: &'static [&'static str],
    is_large: bool,
}

impl About<'_> {
    /// Makes the following questions apply to the time of the last repair symbol instead.
    fn last(self) -> Self {
        Self { metric: Last, ..self }
    }

    /// Whether the working set has 1.5 MB, for a cache of 2 MiB. The speed of such a set depends on the place
    /// of its pages, so the deciding measurement is in huge pages; in ordinary pages it is information.
    fn large_if(self, is_large: bool) -> Self {
        Self { is_large, ..self }
    }

    fn push(self, question: Question, binding: bool) -> Self {
        let all =
            if self.is_large { &[Pages::Ordinary, Pages::Huge][..] } else { &[Pages::Ordinary] };
        for &pages in all {
            self.lines.lines.push(Criterion {
                target: self.lines.target,
                what: format!("{}{}", self.what, pages.suffix()),
                bout: Bout { case: self.case, pages },
                metric: self.metric,
                ours: self.ours,
                question,
                binding: binding && (pages == Pages::Huge) == self.is_large,
            });
        }
        self
    }

    /// A question that decides.
    fn asks(self, question: Question) -> Self {
        self.push(question, true)
    }

    /// A question whose answer is information.
    fn tells(self, question: Question) -> Self {
        self.push(question, false)
    }

    /// A question about ISA-L's kernels with GFNI.
    fn asks_gfni(self, question: Question) -> Self {
        self.push(question, isal::has_gfni())
    }
}

/// The ways of decoding several repair symbols together.
const TOGETHER: &[&str] = &["burst-4", "burst-6", "burst-all", "batch"];

fn late(n: usize) -> Case {
    Case::Decode { n, loss: Loss::Late }
}

/// The lines of a section; none if the section is no target.
pub fn criteria(section: Section) -> Vec<Criterion> {
    let mut lines = Lines { target: section, lines: Vec::new() };
    match section {
        Section::E1 => encode(&mut lines),
        Section::E2 => generate(&mut lines),
        Section::E3 => encode_10(&mut lines),
        Section::E4 => encode_2000(&mut lines),
        Section::E5 => scalar(&mut lines),
        Section::E6 => narrow(&mut lines, "AVX2", &["avx2"], [1.1, 1.2]),
        Section::E7 => narrow(&mut lines, "AVX2 and GFNI", &["avx2-gfni"], [2.3, 2.3]),
        Section::M1 => products(&mut lines, 100, 0.85, faster(&["isal-encode"], 1.2)),
        Section::M2 => products(&mut lines, 1000, 0.8, faster(ISAL_PRODUCTS, 1.5)),
        Section::M3 => products_2000(&mut lines),
        Section::D1 => last_repair(&mut lines),
        Section::D2 => totals(&mut lines),
        Section::D3 => solvers(&mut lines),
        Section::D4 => patterns(&mut lines),
        Section::D5 => last_repairs(&mut lines),
        Section::D6 => bursts(&mut lines),
        Section::R1 => rs_encode(&mut lines),
        Section::R2 => rs_decode(&mut lines),
        Section::X1 => xor(&mut lines),
        Section::X2 => staircase(&mut lines),
        Section::Block | Section::Push | Section::Paper | Section::Tiers => {}
    }
    lines.lines
}

fn encode(lines: &mut Lines) {
    for n in [100, 500, 1000] {
        let dot = lines.of(n, Case::Encode { n }, &["dot"]).large_if(n == 1000);
        dot.asks(share(READ, 0.85))
            .tells(faster(&["one-source"], 1.45))
            .asks_gfni(faster(&["isal-mad"], 1.6));
    }
}

fn generate(lines: &mut Lines) {
    let one_source = faster(&["one-source"], 1.35);
    for n in [100, 500] {
        lines.of(n, Case::Generate { n }, &["encoder"]).tells(one_source);
    }
    let large = lines.of(1000, Case::Generate { n: 1000 }, &["encoder"]).large_if(true);
    large.asks(micros(17.0)).tells(one_source);
}

fn encode_10(lines: &mut Lines) {
    let dot = lines.of(10, Case::Encode { n: 10 }, &["dot"]);
    dot.tells(faster(&["one-source"], 1.6)).tells(share(READ, 0.6));
}

fn encode_2000(lines: &mut Lines) {
    let dot = lines.of(2000, Case::Encode { n: 2000 }, &["dot"]);
    let others = faster(&["isal-mad", "isal-encode", "one-source"], 0.95);
    dot.asks(share(READ, 0.85)).asks(micros(125.0)).tells(others);
}

fn scalar(lines: &mut Lines) {
    for (n, times) in [(100, 35.0), (1000, 35.0), (2000, 10.0)] {
        lines.of(n, Case::Encode { n }, &["dot"]).tells(faster(&["scalar"], times));
    }
}

fn narrow(lines: &mut Lines, kernel: &str, ours: &'static [&'static str], times: [f64; 2]) {
    for n in [100, 500, 1000] {
        let narrow = lines.of(format!("{n}, {kernel}"), Case::Narrow { n }, ours);
        narrow
            .asks(faster(&["isal-mad-avx2"], times[0]))
            .tells(faster(&["one-source-avx2"], times[1]));
    }
}

const ISAL_PRODUCTS: &[&str] = &["isal-encode", "isal-update"];

fn products(lines: &mut Lines, n: usize, of_peak: f64, isal: Question) {
    for d in [4, 5, 8, 10] {
        let matmul = lines.of(format!("{n} x {d}"), Case::Product { n, d }, &["matmul"]);
        matmul.asks(share(ALU, of_peak)).asks_gfni(isal);
    }
}

fn products_2000(lines: &mut Lines) {
    let matmul = lines.of("2000 x 8", Case::Product { n: 2000, d: 8 }, &["matmul"]);
    // This share was 1.3 times ISA-L 2.32 on the machine where the target was set.
    let matmul = matmul.asks(share(ALU, 0.6));
    matmul.asks_gfni(faster(ISAL_PRODUCTS, 1.3)).tells(faster(&["one-source"], 2.5));
}

fn last_repair(lines: &mut Lines) {
    let one = lines.of("1000, last", late(1000), &["one"]).last().large_if(true);
    one.asks(micros(25.0))
        .asks(takes((Case::Generate { n: 1000 }, "encoder", Total), 1.7))
        .tells(takes((late(1000), "eager", Last), 0.9));
}

fn totals(lines: &mut Lines) {
    let one = lines.of("1000, total, one at a time", late(1000), &["one"]).large_if(true);
    one.asks(micros(1100.0));
    let together = lines.of("1000, total, together", late(1000), TOGETHER).large_if(true);
    together
        .asks(micros(700.0))
        .asks(share(ALU, 0.6))
        .asks_gfni(takes((late(1000), "isal-batch", Total), 0.45));
}

fn solvers(lines: &mut Lines) {
    let one = lines.of("1000, total, one at a time", late(1000), &["one"]);
    one.tells(faster(&["eager-scalar"], 25.0)).tells(absent("QUIRL's solver", 18.0));
}

fn patterns(lines: &mut Lines) {
    for n in [100, 1000] {
        let with = [Loss::Early, Loss::Spread].map(|loss| Case::Decode { n, loss });
        let what = format!("{n}, total, late with early and spread");
        lines.of(what, late(n), &["one"]).asks(Question::Alike { with, times: 1.15 });
    }
}

fn last_repairs(lines: &mut Lines) {
    for (n, at_most) in [(100, 2.2), (500, 11.0), (2000, 130.0)] {
        lines.of(format!("{n}, last"), late(n), &["one"]).last().asks(micros(at_most));
    }
}

fn bursts(lines: &mut Lines) {
    let together = lines.of("2000, total, together", late(2000), TOGETHER);
    together.asks(micros(5000.0)).asks(faster(&["one"], 2.0));
}

fn rs_encode(lines: &mut Lines) {
    let ours = lines.of("100+5", Case::RsEncode, &["ours"]);
    ours.asks(share(ALU, 0.85))
        .asks(faster(&["rs-simd"], 4.0))
        .asks_gfni(faster(&["isal"], 1.2))
        .tells(absent("klauspost/reedsolomon (Go)", 4.0));
}

fn rs_decode(lines: &mut Lines) {
    let ours = lines.of("100+5", Case::RsDecode, &["ours"]);
    // This share was 1.2 times ISA-L 2.32 on the machine where the target was set.
    ours.asks(share(ALU, 0.4))
        .asks(faster(&["rs-simd", "rs-erasure", "raptorq"], 25.0))
        .asks_gfni(faster(&["isal"], 1.2))
        .tells(absent("klauspost/reedsolomon (Go)", 7.0));
}

fn xor(lines: &mut Lines) {
    let sum = lines.of(100, Case::Xor { n: 100 }, &["sum"]);
    sum.asks(share(READ, 0.85)).tells(faster(&["one-source"], 1.4)).tells(faster(&["isal"], 1.0));
}

fn staircase(lines: &mut Lines) {
    let ours = lines.of("1000+50", Case::StaircaseEncode, &["ours"]).large_if(true);
    ours.asks(micros(85.0)).asks(share(READ, 0.85));
}
