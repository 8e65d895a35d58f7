//! Eghbal and Lu 2025.
//!
//! Each of Figs. 9 to 26 has the same rows in a table of the report: those of its path, one for each scheme. Where the
//! paper gives a time without repair symbols, ours agrees if it is within a quarter of it. Where it gives one with them,
//! ours must not be longer. Counts of long gaps and times until all is complete go by the number of updates, which a
//! small experiment has fewer of, so claims about them are ratios or upper bounds.

use super::{CellAt, Claim, Condition, Exhibit, Paper, Place, Quantity, RowTexts, Shown};

const BY: &str = "eghbal-2025";
/// The tables, by the beginnings of their captions.
const STREAMING: &str = "Streaming updates";
const INTERACTIVE: &str = "Non-streaming updates";
const CONTROLLERS: &str = "What redundancy gains";

/// The time for which messages are blocked with repair symbols, in milliseconds: the paper's 99th percentile.
const BLOCKED: Condition = Condition::AtMost(0.4);
/// The most long gaps that the paper has with repair symbols and BBR.
const FEW: Condition = Condition::AtMost(2.0);
/// Less by a tenth at least: for what the paper says is less, but not by how much.
const LESS: Condition = Condition::AtMost(0.9);

/// The rows of a figure: its path with each scheme.
#[derive(Clone, Copy)]
struct Figure {
    table: &'static str,
    total: RowTexts,
    partial: RowTexts,
    three: RowTexts,
    five: RowTexts,
    ten: RowTexts,
    ideal: RowTexts,
}

macro_rules! figure {
    ($table:ident, $number:literal) => {
        Figure {
            table: $table,
            total: &[("figure", $number), ("scheme", "total")],
            partial: &[("figure", $number), ("scheme", "partial")],
            three: &[("figure", $number), ("scheme", "RS 1.03")],
            five: &[("figure", $number), ("scheme", "RS 1.05")],
            ten: &[("figure", $number), ("scheme", "RS 1.10")],
            ideal: &[("figure", $number), ("scheme", "ideal")],
        }
    };
}

/// A cell of the table of messages that wait for the lost one.
const fn waiting(order: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Waiting", row: order, column }
}

/// When a message of the drawings is delivered.
const fn delivered(message: RowTexts, order: &'static str) -> CellAt {
    CellAt { table: "Messages", row: message, column: order }
}

const FIG_1: &[Claim] = &[Claim {
    says: "A message comes after those that it depends on: the fourth after the second.",
    paper: "",
    ours: Quantity::Difference(
        delivered(&[("drawing", "eleven messages"), ("message", "4")], "named"),
        delivered(&[("drawing", "eleven messages"), ("message", "2")], "named"),
    ),
    bound: None,
    holds: Condition::AtLeast(0.0),
    because: None,
}];

const FIG_2: &[Claim] = &[
    Claim {
        says: "In total order all messages behind the sixth wait for it.",
        paper: "5",
        ours: Quantity::Of(waiting(&[("drawing", "eleven messages"), ("order", "total")], "wait")),
        bound: None,
        holds: Condition::Between(5.0, 5.0),
        because: None,
    },
    Claim {
        says: "In partial order only the message that depends on it waits.",
        paper: "1",
        ours: Quantity::Of(waiting(&[("drawing", "eleven messages"), ("order", "named")], "wait")),
        bound: None,
        holds: Condition::Between(1.0, 1.0),
        because: None,
    },
];

const FIG_3: &[Claim] = &[Claim {
    says: "With fences, the messages between two fences do not wait for each other, and those behind the next fence do.",
    paper: "3",
    ours: Quantity::Of(waiting(&[("drawing", "eleven messages"), ("order", "fences")], "wait")),
    bound: None,
    holds: Condition::Between(3.0, 3.0),
    because: None,
}];

const FIG_9: Figure = figure!(STREAMING, "Fig. 9");
const FIG_10: Figure = figure!(STREAMING, "Fig. 10");
const FIG_11: Figure = figure!(STREAMING, "Fig. 11");
const FIG_12: Figure = figure!(STREAMING, "Fig. 12");
const FIG_13: Figure = figure!(STREAMING, "Fig. 13");
const FIG_14: Figure = figure!(STREAMING, "Fig. 14");
const FIG_15: Figure = figure!(STREAMING, "Fig. 15");
/// With a CUBIC that answers every loss, like the paper's.
const FIG_16: Figure = figure!(STREAMING, "Fig. 16 without floor");
const FIG_17: Figure = figure!(STREAMING, "Fig. 17");
const FIG_18: Figure = figure!(INTERACTIVE, "Fig. 18");
const FIG_19: Figure = figure!(INTERACTIVE, "Fig. 19");
const FIG_20: Figure = figure!(INTERACTIVE, "Fig. 20");
const FIG_21: Figure = figure!(INTERACTIVE, "Fig. 21");
const FIG_22: Figure = figure!(INTERACTIVE, "Fig. 22");
const FIG_23: Figure = figure!(INTERACTIVE, "Fig. 23");
const FIG_24: Figure = figure!(INTERACTIVE, "Fig. 24");
const FIG_25: Figure = figure!(INTERACTIVE, "Fig. 25");
/// With a CUBIC that answers every loss, like the paper's.
const FIG_25_PAPER: Figure = figure!(INTERACTIVE, "Fig. 25 without floor");
const FIG_26: Figure = figure!(INTERACTIVE, "Fig. 26");

impl Figure {
    const fn total(self, column: &'static str) -> CellAt {
        CellAt { table: self.table, row: self.total, column }
    }

    const fn partial(self, column: &'static str) -> CellAt {
        CellAt { table: self.table, row: self.partial, column }
    }

    /// With three parity symbols for each hundred messages.
    const fn three(self, column: &'static str) -> CellAt {
        CellAt { table: self.table, row: self.three, column }
    }

    const fn five(self, column: &'static str) -> CellAt {
        CellAt { table: self.table, row: self.five, column }
    }

    const fn ten(self, column: &'static str) -> CellAt {
        CellAt { table: self.table, row: self.ten, column }
    }

    /// Without losses.
    const fn ideal(self, column: &'static str) -> CellAt {
        CellAt { table: self.table, row: self.ideal, column }
    }

    /// Messages are not blocked with `parity`.
    const fn unblocked(self, says: &'static str, parity: CellAt, paper: &'static str) -> Claim {
        Claim {
            says,
            paper,
            ours: Quantity::Of(parity),
            bound: Some(Quantity::Of(self.ideal("blocked p99"))),
            holds: BLOCKED,
            because: None,
        }
    }

    /// Hardly any gap is long with five parity symbols.
    const fn few_long_gaps(self, paper: &'static str) -> Claim {
        Claim {
            says: "With five parity symbols no more than two gaps between deliveries are longer than a round trip.",
            paper,
            ours: Quantity::Of(self.five("long gaps")),
            bound: Some(Quantity::Of(self.ideal("long gaps"))),
            holds: FEW,
            because: None,
        }
    }

    /// Responses take less time with five parity symbols, where the paper does not say by how much.
    const fn responds_sooner(self) -> Claim {
        Claim {
            says: "With five parity symbols the slowest hundredth of the responses takes less time than in \
                   total order.",
            paper: "",
            ours: Quantity::Ratio(self.five("response p99"), self.total("response p99")),
            bound: Some(Quantity::Ratio(self.ideal("response p99"), self.total("response p99"))),
            holds: LESS,
            because: None,
        }
    }

    /// All is complete sooner with five parity symbols.
    const fn complete_sooner(self, paper: &'static str) -> Claim {
        Claim {
            says: "With five parity symbols all updates are there sooner than in total order.",
            paper,
            ours: Quantity::Ratio(self.five("complete"), self.total("complete")),
            bound: Some(Quantity::Ratio(self.ideal("complete"), self.total("complete"))),
            holds: Condition::AtMost(1.0),
            because: None,
        }
    }
}

/// By how much less messages are blocked, or responses take, with five parity symbols than in total order.
const fn gain(row: RowTexts) -> CellAt {
    CellAt { table: CONTROLLERS, row, column: "gain" }
}

/// The paper.
pub const PAPER: Paper = Paper {
    name: "eghbal-2025",
    reference: "Eghbal, Lu: Lower-Latency Screen Updates over QUIC with Forward Error Correction, Future Internet \
                17(7), 2025.",
    about: "Screen updates in partial order, with block codes.",
    exhibits: &[
        Exhibit {
            number: "Fig. 1",
            about: "A graph of eleven messages, of which some have to come after others.",
            concludes: "Messages that do not depend on each other may be delivered in any order.",
            place: Place::Experiment(Shown {
                by: "drawings",
                charts: &["orders"],
                tables: &["Messages"],
                claims: FIG_1,
            }),
        },
        Exhibit {
            number: "Fig. 2",
            about: "The delivery of the messages of Fig. 1 in total and in partial order, if the sixth is lost.",
            concludes: "In partial order, three messages need not wait until the lost one is sent again.",
            place: Place::Experiment(Shown {
                by: "drawings",
                charts: &["orders"],
                tables: &["Messages", "Waiting"],
                claims: FIG_2,
            }),
        },
        Exhibit {
            number: "Fig. 3",
            about: "The messages of Fig. 1 with consistency fences between them.",
            concludes: "Fences are a simple way to say what has to come first: all before a fence comes before all \
                        behind it.",
            place: Place::Experiment(Shown {
                by: "drawings",
                charts: &["orders"],
                tables: &["Messages", "Waiting"],
                claims: FIG_3,
            }),
        },
        Exhibit {
            number: "Fig. 4",
            about: "The command by which the paper's client asks for two updates with redundancy.",
            concludes: "The urgency of a request decides whether its response is protected.",
            place: Place::Elsewhere(
                "it is a command. Here `sutura serve --protect 'u<3 => protect block:code=rs'` does the same; the \
                 test `any_policy_protects_what_a_rule_names` in crates/cli/tests/all/priorities.rs shows it.",
            ),
        },
        Exhibit {
            number: "Fig. 5",
            about: "The hosts of the testbed: a server, a client and a bridge between them.",
            concludes: "The bridge emulates the delay, the losses and the rate of a path.",
            place: Place::Elsewhere(
                "it is a drawing of machines. Here both ends and the path are simulated: `ScreenPath` in \
                 crates/lab/src/experiments/eghbal_2025/mod.rs.",
            ),
        },
        Exhibit {
            number: "Fig. 6",
            about: "The command that sets the rate, the losses, the delay and the queue of the bridge.",
            concludes: "A loss rate of 2 % is one of 1 % in each direction.",
            place: Place::Elsewhere(
                "it is a command. Here `ScreenPath::link` in crates/lab/src/experiments/eghbal_2025/mod.rs sets the \
                 same, with half of the losses in each direction.",
            ),
        },
        Exhibit {
            number: "Fig. 7",
            about: "The command that permits long queues on the bridge.",
            concludes: "Without it, a queue has no more than 1 MB.",
            place: Place::Elsewhere(
                "it is a setting of DummyNet. The simulated queue of 9 MB needs none: `ScreenPath::link` in \
                 crates/lab/src/experiments/eghbal_2025/mod.rs.",
            ),
        },
        Exhibit {
            number: "Fig. 8",
            about: "The command that builds nghttp3 with OpenFEC.",
            concludes: "The codes come from a library.",
            place: Place::Elsewhere(
                "it is a command. The codes here are our own, in crates/erasure, and benches/erasure measures their \
                 speed: docs/results/erasure.md.",
            ),
        },
        Exhibit {
            number: "Table 1",
            about: "The workloads and the paths of Figs. 9 to 26: one thing differs from the baseline in each.",
            concludes: "The paths cover losses, round trips, rates and controllers, one at a time.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &[],
                tables: &[STREAMING, INTERACTIVE],
                claims: &[],
            }),
        },
        Exhibit {
            number: "Fig. 9",
            about: "Streaming updates on the baseline path (0.5 % of loss, 100 ms, 100 Mbit/s, BBR): for how long \
                    messages are blocked, and the gaps between deliveries.",
            concludes: "With repair symbols messages hardly ever wait; in total order one in five waits for a round \
                        trip.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-9", "fig-9-gaps", "fig-9-without-floor", "fig-9-without-floor-gaps"],
                tables: &[STREAMING],
                claims: &[
                    FIG_9.unblocked(
                        "With five parity symbols for each hundred messages, 99 % are blocked for 0.4 ms at most.",
                        FIG_9.five("blocked p99"),
                        "0.4 ms",
                    ),
                    Claim {
                        says: "In total order one message in a hundred is blocked for 230 ms.",
                        paper: "230 ms",
                        ours: Quantity::Of(FIG_9.total("blocked p99")),
                        bound: None,
                        holds: Condition::Between(172.5, 287.5),
                        because: None,
                    },
                    Claim {
                        says: "In total order one message in five is blocked for a round trip or longer.",
                        paper: "101.08 ms",
                        ours: Quantity::Of(FIG_9.total("blocked p80")),
                        bound: None,
                        holds: Condition::AtLeast(100.0),
                        because: None,
                    },
                    Claim {
                        says: "In total order the longest gaps, one in 2000, take a round trip or longer.",
                        paper: "135 ms",
                        ours: Quantity::Of(FIG_9.total("gap p99.95")),
                        bound: None,
                        holds: Condition::AtLeast(100.0),
                        because: Some(
                            "this sender is three times as fast: 300 updates take less than 5 s, the paper's 15.23 s. \
                             More losses fall into a round trip, so that part of the wait for one is over when that \
                             for another ends.",
                        ),
                    },
                    Claim {
                        says: "Five parity symbols shorten the longest gaps to a tenth or less.",
                        paper: "6 ms against 135 ms",
                        ours: Quantity::Ratio(
                            FIG_9.five("gap p99.95"),
                            FIG_9.total("gap p99.95"),
                        ),
                        bound: Some(Quantity::Ratio(
                            FIG_9.ideal("gap p99.95"),
                            FIG_9.total("gap p99.95"),
                        )),
                        holds: Condition::AtMost(0.1),
                        because: None,
                    },
                    FIG_9.few_long_gaps("1, in total order 59"),
                    Claim {
                        says: "Partial order alone has fewer long gaps than total order: two thirds or less.",
                        paper: "18 against 59",
                        ours: Quantity::Ratio(FIG_9.partial("long gaps"), FIG_9.total("long gaps")),
                        bound: None,
                        holds: Condition::AtMost(0.667),
                        because: None,
                    },
                ],
            }),
        },
        Exhibit {
            number: "Fig. 10",
            about: "Streaming updates with few losses: 0.1 %.",
            concludes: "Repair symbols avoid waiting where little is lost, too.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-10", "fig-10-gaps"],
                tables: &[STREAMING],
                claims: &[
                    FIG_10.unblocked(
                        "Three parity symbols are enough for messages to be blocked for hardly any time.",
                        FIG_10.three("blocked p99"),
                        "close to zero",
                    ),
                    FIG_10.few_long_gaps("1, in total order 16"),
                ],
            }),
        },
        Exhibit {
            number: "Fig. 11",
            about: "Streaming updates with many losses: 1 %.",
            concludes: "The more is lost, the more repair symbols gain: with ten of them messages still wait hardly \
                        ever, and in total order they wait longer.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-11", "fig-11-gaps"],
                tables: &[STREAMING],
                claims: &[
                    FIG_11.unblocked(
                        "With ten parity symbols for each hundred messages, 99 % are blocked for 0.4 ms at most.",
                        FIG_11.ten("blocked p99"),
                        "0.4 ms",
                    ),
                    Claim {
                        says: "In total order one message in a hundred is blocked for 264 ms.",
                        paper: "264 ms",
                        ours: Quantity::Of(FIG_11.total("blocked p99")),
                        bound: None,
                        holds: Condition::Between(198.0, 330.0),
                        because: None,
                    },
                    Claim {
                        says: "In total order more than one message in five is blocked for a round trip: the paper's \
                               figure is that of three in ten.",
                        paper: "99.14 ms",
                        ours: Quantity::Of(FIG_11.total("blocked p80")),
                        bound: None,
                        holds: Condition::AtLeast(99.14),
                        because: None,
                    },
                    Claim {
                        says: "In total order the time that one message in five is blocked grows with the losses: it \
                               is longer than in Fig. 9.",
                        paper: "",
                        ours: Quantity::Ratio(
                            FIG_11.total("blocked p80"),
                            FIG_9.total("blocked p80"),
                        ),
                        bound: None,
                        holds: Condition::AtLeast(1.1),
                        because: None,
                    },
                    FIG_11.few_long_gaps("1, in total order 55"),
                ],
            }),
        },
        Exhibit {
            number: "Fig. 12",
            about: "Streaming updates with a short round trip: 50 ms.",
            concludes: "With repair symbols the round trip does not matter; without, the time for which messages are \
                        blocked goes with it.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-12", "fig-12-gaps"],
                tables: &[STREAMING],
                claims: &[
                    FIG_12.unblocked(
                        "With five parity symbols messages are blocked for hardly any time.",
                        FIG_12.five("blocked p99"),
                        "close to zero",
                    ),
                    Claim {
                        says: "In total order messages are blocked for about half as long as in Fig. 9, as the round \
                               trip is half as long.",
                        paper: "",
                        ours: Quantity::Ratio(
                            FIG_12.total("blocked p99"),
                            FIG_9.total("blocked p99"),
                        ),
                        bound: None,
                        holds: Condition::Between(0.35, 0.65),
                        because: None,
                    },
                    FIG_12.few_long_gaps("0, in total order 57"),
                ],
            }),
        },
        Exhibit {
            number: "Fig. 13",
            about: "Streaming updates with a long round trip: 200 ms.",
            concludes: "The longer the round trip, the more repair symbols gain.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-13", "fig-13-gaps"],
                tables: &[STREAMING],
                claims: &[
                    FIG_13.unblocked(
                        "With ten parity symbols for each hundred messages, 99 % are blocked for 0.4 ms at most.",
                        FIG_13.ten("blocked p99"),
                        "0.4 ms",
                    ),
                    Claim {
                        says: "In total order one message in a hundred is blocked for 429 ms.",
                        paper: "429 ms",
                        ours: Quantity::Of(FIG_13.total("blocked p99")),
                        bound: None,
                        holds: Condition::Between(321.75, 536.25),
                        because: None,
                    },
                    Claim {
                        says: "In total order one message in five is blocked for 225 ms or longer.",
                        paper: "225 ms",
                        ours: Quantity::Of(FIG_13.total("blocked p80")),
                        bound: None,
                        holds: Condition::AtLeast(225.0),
                        because: None,
                    },
                    Claim {
                        says: "In total order messages are blocked for much longer than in Fig. 9, as the round trip \
                               is twice as long.",
                        paper: "429 ms against 230 ms",
                        ours: Quantity::Ratio(
                            FIG_13.total("blocked p99"),
                            FIG_9.total("blocked p99"),
                        ),
                        bound: None,
                        holds: Condition::AtLeast(1.5),
                        because: None,
                    },
                    FIG_13.few_long_gaps("2, in total order 34"),
                ],
            }),
        },
        Exhibit {
            number: "Fig. 14",
            about: "Streaming updates over a slow link: 10 Mbit/s.",
            concludes: "Repair symbols avoid waiting over a slow link, too.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-14", "fig-14-gaps"],
                tables: &[STREAMING],
                claims: &[
                    FIG_14.unblocked(
                        "With five parity symbols messages are blocked for hardly any time.",
                        FIG_14.five("blocked p99"),
                        "",
                    ),
                    FIG_14.few_long_gaps("0, in total order 71"),
                    Claim {
                        says: "Partial order alone has fewer long gaps than total order: two thirds or less.",
                        paper: "13 against 71",
                        ours: Quantity::Ratio(
                            FIG_14.partial("long gaps"),
                            FIG_14.total("long gaps"),
                        ),
                        bound: None,
                        holds: Condition::AtMost(0.667),
                        because: None,
                    },
                ],
            }),
        },
        Exhibit {
            number: "Fig. 15",
            about: "Streaming updates over a fast link: 1 Gbit/s.",
            concludes: "Repair symbols avoid waiting over a fast link, too.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-15", "fig-15-gaps"],
                tables: &[STREAMING],
                claims: &[
                    Claim {
                        says: "With five parity symbols four of five messages are blocked for less time than in \
                               total order.",
                        paper: "",
                        ours: Quantity::Ratio(
                            FIG_15.five("blocked p80"),
                            FIG_15.total("blocked p80"),
                        ),
                        bound: Some(Quantity::Ratio(
                            FIG_15.ideal("blocked p80"),
                            FIG_15.total("blocked p80"),
                        )),
                        holds: LESS,
                        because: None,
                    },
                    Claim {
                        says: "With five parity symbols 99 of a hundred are, too.",
                        paper: "",
                        ours: Quantity::Ratio(
                            FIG_15.five("blocked p99"),
                            FIG_15.total("blocked p99"),
                        ),
                        bound: Some(Quantity::Ratio(
                            FIG_15.ideal("blocked p99"),
                            FIG_15.total("blocked p99"),
                        )),
                        holds: LESS,
                        because: Some(
                            "slow start overfills the queue, so that packets are lost even where the path itself \
                             loses none, and parity symbols add to them. All updates are there within 2 s.",
                        ),
                    },
                    FIG_15.few_long_gaps("1, in total order 46"),
                ],
            }),
        },
        Exhibit {
            number: "Fig. 16",
            about: "Streaming updates with CUBIC. The claims are compared with a CUBIC that answers every loss, like \
                    the paper's (`without floor`).",
            concludes: "Repair symbols avoid waiting with CUBIC, too, but less than with BBR, as its window is \
                        smaller.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &[
                    "fig-16",
                    "fig-16-gaps",
                    "fig-16-without-floor",
                    "fig-16-without-floor-gaps",
                ],
                tables: &[STREAMING, CONTROLLERS],
                claims: &[
                    Claim {
                        says: "The losses slow CUBIC down, so that it takes more than twice as long as BBR.",
                        paper: "66.98 s against 15.23 s",
                        ours: Quantity::Ratio(FIG_16.total("complete"), FIG_9.total("complete")),
                        bound: None,
                        holds: Condition::AtLeast(2.0),
                        because: None,
                    },
                    // Without losses nothing ends slow start before the queue is full: that is no bound.
                    Claim {
                        bound: None,
                        ..FIG_16.unblocked(
                            "With five parity symbols messages are blocked for hardly any time.",
                            FIG_16.five("blocked p99"),
                            "",
                        )
                    },
                    Claim {
                        says: "With five parity symbols the longest gaps, one in 2000, are longer than with BBR.",
                        paper: "",
                        ours: Quantity::Ratio(
                            FIG_16.five("gap p99.95"),
                            FIG_9.five("gap p99.95"),
                        ),
                        bound: None,
                        holds: Condition::AtLeast(1.0),
                        because: None,
                    },
                    Claim {
                        says: "They are still shorter than in total order.",
                        paper: "",
                        ours: Quantity::Ratio(
                            FIG_16.five("gap p99.95"),
                            FIG_16.total("gap p99.95"),
                        ),
                        bound: None,
                        holds: LESS,
                        because: None,
                    },
                    Claim { bound: None, ..FIG_16.few_long_gaps("2, in total order 70") },
                    Claim {
                        says: "Repair symbols take more off the time for which messages are blocked with BBR than with \
                               CUBIC.",
                        paper: "",
                        ours: Quantity::Difference(
                            gain(&[("updates", "streaming"), ("controller", "bbr:floor=off")]),
                            gain(&[("updates", "streaming"), ("controller", "cubic:floor=off")]),
                        ),
                        bound: None,
                        holds: Condition::AtLeast(0.0),
                        because: None,
                    },
                ],
            }),
        },
        Exhibit {
            number: "Fig. 17",
            about: "Streaming updates without losses: what repair symbols cost.",
            concludes: "Parity symbols that nobody needs cost their bytes, and less than 10 ms of the gaps.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-17", "fig-17-gaps"],
                tables: &[STREAMING],
                claims: &[
                    Claim {
                        says: "Five parity symbols make the longest gaps, one in 2000, longer by less than 10 ms.",
                        paper: "less than 10 ms",
                        ours: Quantity::Difference(
                            FIG_17.five("gap p99.95"),
                            FIG_17.total("gap p99.95"),
                        ),
                        bound: None,
                        holds: Condition::AtMost(10.0),
                        because: None,
                    },
                    Claim {
                        says: "So do ten.",
                        paper: "less than 10 ms",
                        ours: Quantity::Difference(
                            FIG_17.ten("gap p99.95"),
                            FIG_17.total("gap p99.95"),
                        ),
                        bound: None,
                        holds: Condition::AtMost(10.0),
                        because: None,
                    },
                    Claim {
                        says: "Three parity symbols for each hundred messages cost 3 % more bytes than partial order \
                               alone.",
                        paper: "3 %",
                        ours: Quantity::Ratio(
                            FIG_17.three("wire/byte"),
                            FIG_17.partial("wire/byte"),
                        ),
                        bound: None,
                        holds: Condition::Between(1.02, 1.04),
                        because: None,
                    },
                    Claim {
                        says: "Ten cost 10 %.",
                        paper: "10 %",
                        ours: Quantity::Ratio(
                            FIG_17.ten("wire/byte"),
                            FIG_17.partial("wire/byte"),
                        ),
                        bound: None,
                        holds: Condition::Between(1.09, 1.11),
                        because: None,
                    },
                    Claim {
                        says: "With five all updates are there sooner than with ten.",
                        paper: "15.94 s against 17.1 s",
                        ours: Quantity::Ratio(FIG_17.five("complete"), FIG_17.ten("complete")),
                        bound: None,
                        holds: Condition::AtMost(1.0),
                        because: None,
                    },
                ],
            }),
        },
        Exhibit {
            number: "Fig. 18",
            about: "Updates as the user acts on the baseline path (0.5 % of loss, 100 ms, 100 Mbit/s, BBR): response \
                    times, and the gaps between deliveries.",
            concludes: "Repair symbols halve the time of the slowest responses, and all is complete sooner.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &[
                    "fig-18",
                    "fig-18-gaps",
                    "fig-18-without-floor",
                    "fig-18-without-floor-gaps",
                ],
                tables: &[INTERACTIVE],
                claims: &[
                    Claim {
                        says: "With five parity symbols 99 % of the responses take 162 ms at most.",
                        paper: "161.82 ms",
                        ours: Quantity::Of(FIG_18.five("response p99")),
                        bound: Some(Quantity::Of(FIG_18.ideal("response p99"))),
                        holds: Condition::AtMost(161.82),
                        because: None,
                    },
                    Claim {
                        says: "In total order one response in a hundred takes 325 ms.",
                        paper: "325.26 ms",
                        ours: Quantity::Of(FIG_18.total("response p99")),
                        bound: None,
                        holds: Condition::Between(244.0, 406.5),
                        because: Some(
                            "the paper's sender needs some 50 ms for the 140 kB of an update at 100 Mbit/s and at 1 \
                             Gbit/s (300 streaming updates take 15.23 s), ours 11 ms at 100 Mbit/s. That is 40 of \
                             the 101 ms; where the others come from, the paper does not tell.",
                        ),
                    },
                    Claim {
                        says: "Five parity symbols halve the time of the slowest hundredth.",
                        paper: "50 %",
                        ours: Quantity::Ratio(
                            FIG_18.five("response p99"),
                            FIG_18.total("response p99"),
                        ),
                        bound: Some(Quantity::Ratio(
                            FIG_18.ideal("response p99"),
                            FIG_18.total("response p99"),
                        )),
                        holds: Condition::Between(0.4, 0.6),
                        because: None,
                    },
                    Claim {
                        says: "Ten parity symbols are not much faster than five.",
                        paper: "",
                        ours: Quantity::Ratio(
                            FIG_18.ten("response p99"),
                            FIG_18.five("response p99"),
                        ),
                        bound: None,
                        holds: Condition::AtLeast(0.9),
                        because: None,
                    },
                    Claim {
                        says: "Five parity symbols shorten the longest gaps, one in 2000, to a tenth or less.",
                        paper: "1.47 ms against 113.5 ms",
                        ours: Quantity::Ratio(
                            FIG_18.five("gap p99.95"),
                            FIG_18.total("gap p99.95"),
                        ),
                        bound: Some(Quantity::Ratio(
                            FIG_18.ideal("gap p99.95"),
                            FIG_18.total("gap p99.95"),
                        )),
                        holds: Condition::AtMost(0.1),
                        because: None,
                    },
                    FIG_18.few_long_gaps("0, in total order 61"),
                    FIG_18.complete_sooner("136.64 s against 148.8 s"),
                ],
            }),
        },
        Exhibit {
            number: "Fig. 19",
            about: "Updates as the user acts with few losses: 0.1 %.",
            concludes: "Repair symbols make responses faster where little is lost, too.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-19", "fig-19-gaps"],
                tables: &[INTERACTIVE],
                claims: &[
                    FIG_19.responds_sooner(),
                    FIG_19.few_long_gaps("1, in total order 14"),
                    Claim {
                        says: "In total order there are less than half as many long gaps as in Fig. 18.",
                        paper: "14 against 61",
                        ours: Quantity::Ratio(
                            FIG_19.total("long gaps"),
                            FIG_18.total("long gaps"),
                        ),
                        bound: None,
                        holds: Condition::AtMost(0.5),
                        because: None,
                    },
                    FIG_19.complete_sooner("134.51 s against 138.96 s"),
                ],
            }),
        },
        Exhibit {
            number: "Fig. 20",
            about: "Updates as the user acts with many losses: 1 %.",
            concludes: "The more is lost, the more repair symbols gain, but five are not enough for the slowest \
                        responses, and ten are.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-20", "fig-20-gaps"],
                tables: &[INTERACTIVE],
                claims: &[
                    Claim {
                        says: "With ten parity symbols 99 % of the responses take 164 ms at most.",
                        paper: "164.19 ms",
                        ours: Quantity::Of(FIG_20.ten("response p99")),
                        bound: Some(Quantity::Of(FIG_20.ideal("response p99"))),
                        holds: Condition::AtMost(164.19),
                        because: None,
                    },
                    Claim {
                        says: "With five one in a hundred takes 317 ms.",
                        paper: "316.94 ms",
                        ours: Quantity::Of(FIG_20.five("response p99")),
                        bound: Some(Quantity::Of(FIG_20.ideal("response p99"))),
                        holds: Condition::Between(237.5, 396.5),
                        because: Some(
                            "five are enough here. With random losses of 0.5 % each way, more than five of 105 \
                             packets are lost of one update in 60,000, and of one in 1400 with 1 %. What else the \
                             paper's updates lose, it does not tell.",
                        ),
                    },
                    Claim {
                        says: "In total order one response in a hundred takes 320 ms.",
                        paper: "319.88 ms",
                        ours: Quantity::Of(FIG_20.total("response p99")),
                        bound: None,
                        holds: Condition::Between(240.0, 400.0),
                        because: None,
                    },
                    Claim {
                        says: "Partial order alone makes no response faster.",
                        paper: "318.02 ms against 319.88 ms",
                        ours: Quantity::Ratio(
                            FIG_20.partial("response p99"),
                            FIG_20.total("response p99"),
                        ),
                        bound: None,
                        holds: Condition::Between(0.9, 1.1),
                        because: None,
                    },
                    Claim {
                        says: "In total order there are about twice as many long gaps as in Fig. 18.",
                        paper: "119 against 61",
                        ours: Quantity::Ratio(
                            FIG_20.total("long gaps"),
                            FIG_18.total("long gaps"),
                        ),
                        bound: None,
                        holds: Condition::Between(1.5, 2.5),
                        because: None,
                    },
                    FIG_20.few_long_gaps("1, in total order 119"),
                    FIG_20.complete_sooner("137.64 s against 149.12 s"),
                ],
            }),
        },
        Exhibit {
            number: "Fig. 21",
            about: "Updates as the user acts with a short round trip: 50 ms.",
            concludes: "Repair symbols make responses faster where a round trip is short, too.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-21", "fig-21-gaps"],
                tables: &[INTERACTIVE],
                claims: &[
                    FIG_21.responds_sooner(),
                    FIG_21.few_long_gaps("1, in total order 70"),
                    FIG_21.complete_sooner("123.46 s against 128.98 s"),
                ],
            }),
        },
        Exhibit {
            number: "Fig. 22",
            about: "Updates as the user acts with a long round trip: 200 ms.",
            concludes: "Repair symbols save a round trip however long it is.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-22", "fig-22-gaps"],
                tables: &[INTERACTIVE],
                claims: &[
                    Claim {
                        says: "With five parity symbols 99 % of the responses take 272 ms at most.",
                        paper: "272 ms",
                        ours: Quantity::Of(FIG_22.five("response p99")),
                        bound: Some(Quantity::Of(FIG_22.ideal("response p99"))),
                        holds: Condition::AtMost(272.0),
                        because: None,
                    },
                    Claim {
                        says: "In total order one response in a hundred takes 422 ms.",
                        paper: "422 ms",
                        ours: Quantity::Of(FIG_22.total("response p99")),
                        bound: None,
                        holds: Condition::Between(316.5, 527.5),
                        because: None,
                    },
                    FIG_22.few_long_gaps("0, in total order 55"),
                    FIG_22.complete_sooner("167.06 s against 180.24 s"),
                ],
            }),
        },
        Exhibit {
            number: "Fig. 23",
            about: "Updates as the user acts over a slow link: 10 Mbit/s.",
            concludes: "Repair symbols make responses faster over a slow link, too.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-23", "fig-23-gaps"],
                tables: &[INTERACTIVE],
                claims: &[
                    FIG_23.responds_sooner(),
                    FIG_23.few_long_gaps("0, in total order 79"),
                    FIG_23.complete_sooner("158.97 s against 165.38 s"),
                ],
            }),
        },
        Exhibit {
            number: "Fig. 24",
            about: "Updates as the user acts over a fast link: 1 Gbit/s.",
            concludes: "Repair symbols make responses faster over a fast link, too.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-24", "fig-24-gaps"],
                tables: &[INTERACTIVE],
                claims: &[
                    FIG_24.responds_sooner(),
                    FIG_24.few_long_gaps("0, in total order 72"),
                    FIG_24.complete_sooner("139.73 s against 146.51 s"),
                ],
            }),
        },
        Exhibit {
            number: "Fig. 25",
            about: "Updates as the user acts with CUBIC: with ours, which knows the losses that are not its fault, and \
                    with one that answers every loss, like the paper's (`without floor`).",
            concludes: "Repair symbols make responses faster with CUBIC, too, but gain less than with BBR.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &[
                    "fig-25",
                    "fig-25-gaps",
                    "fig-25-without-floor",
                    "fig-25-without-floor-gaps",
                ],
                tables: &[INTERACTIVE, CONTROLLERS],
                claims: &[
                    FIG_25.responds_sooner(),
                    FIG_25.complete_sooner("150.32 s against 159.68 s"),
                    Claim {
                        says: "The first, that the slowest responses take less time, holds with a CUBIC that \
                               answers every loss, too.",
                        because: Some(SLOW_CUBIC),
                        ..FIG_25_PAPER.responds_sooner()
                    },
                    Claim {
                        says: "So does the second, that all updates are there sooner.",
                        because: Some(SLOW_CUBIC),
                        ..FIG_25_PAPER.complete_sooner("150.32 s against 159.68 s")
                    },
                    FIG_25_PAPER.few_long_gaps("0, in total order 68"),
                    Claim {
                        says: "Repair symbols take more off the slowest responses with BBR than with a CUBIC that \
                               answers every loss.",
                        paper: "",
                        ours: Quantity::Difference(
                            gain(&[("updates", "non-streaming"), ("controller", "bbr:floor=off")]),
                            gain(&[
                                ("updates", "non-streaming"),
                                ("controller", "cubic:floor=off"),
                            ]),
                        ),
                        bound: None,
                        holds: Condition::AtLeast(0.0),
                        because: None,
                    },
                ],
            }),
        },
        Exhibit {
            number: "Fig. 26",
            about: "Updates as the user acts without losses: what repair symbols cost.",
            concludes: "Parity symbols that nobody needs make no response slower, as the pause until the next action \
                        has room for them.",
            place: Place::Experiment(Shown {
                by: BY,
                charts: &["fig-26", "fig-26-gaps"],
                tables: &[INTERACTIVE],
                claims: &[
                    Claim {
                        says: "With five parity symbols responses take no longer than in total order, or by \
                               5 % at most.",
                        paper: "",
                        ours: Quantity::Ratio(
                            FIG_26.five("response p99"),
                            FIG_26.total("response p99"),
                        ),
                        bound: None,
                        holds: Condition::AtMost(1.05),
                        because: None,
                    },
                    Claim {
                        says: "With five parity symbols the longest gaps, one in 2000, are longer by a \
                               millisecond at most.",
                        paper: "",
                        ours: Quantity::Difference(
                            FIG_26.five("gap p99.95"),
                            FIG_26.total("gap p99.95"),
                        ),
                        bound: None,
                        holds: Condition::AtMost(1.0),
                        because: None,
                    },
                ],
            }),
        },
    ],
};

/// Why repair symbols hardly help a CUBIC that answers every loss.
const SLOW_CUBIC: &str = "its window shrinks with every loss, protected or not, until an update takes four round trips. \
                          Most of what is lost is sent again in that time anyway. The paper's CUBIC is faster, for \
                          which it gives no reason.";
