//! Eghbal and Lu 2022.
//!
//! Its one figure is a run over UDT at a fixed rate: `eghbal-order`. What it leaves for later, the same page over QUIC
//! with congestion control, is `eghbal-2022`.

use super::{CellAt, Claim, Condition, Exhibit, Paper, Place, Quantity, RowTexts, Shown};

/// 2 % of loss in each direction.
const BARE: RowTexts = &[("loss", "2 %"), ("sender", "70 Mbit/s"), ("protection", "none")];
const MATRIX: RowTexts = &[
    ("loss", "2 %"),
    ("sender", "70 Mbit/s"),
    ("protection", "block:code=2d,rows=5,columns=25,shared=on"),
];
/// 2 % of loss in both directions together.
const BARE_1: RowTexts = &[("loss", "1 %"), ("sender", "70 Mbit/s"), ("protection", "none")];
const MATRIX_1: RowTexts = &[
    ("loss", "1 %"),
    ("sender", "70 Mbit/s"),
    ("protection", "block:code=2d,rows=5,columns=25,shared=on"),
];

const fn urgent(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Urgent messages", row, column }
}

/// When the last urgent message is complete in half of the runs, since the first byte could arrive.
const fn complete(row: RowTexts) -> CellAt {
    urgent(row, "all complete p50")
}

/// The ratio of pages whose urgent resources are protected to pages without protection.
macro_rules! target {
    ($loss:literal, $connection:literal, $controller:literal, $target:literal) => {
        Quantity::Of(CellAt {
            table: "Targets",
            row: &[
                ("loss", $loss),
                ("connection", $connection),
                ("congestion control", $controller),
                ("target", $target),
            ],
            column: "measured",
        })
    };
}

/// The paper.
pub const PAPER: Paper = Paper {
    name: "eghbal-2022",
    reference: "Eghbal, Lu: Priority-aware Forward Error Correction for HTTP, ANRW 2022.",
    about: "Redundancy for urgent resources only.",
    exhibits: &[
        Exhibit {
            number: "Fig. 1",
            about: "The order in which messages arrive over UDT at a fixed rate, without repair symbols and with a \
                    matrix of XOR sums over the urgent resources: five of 35 kB beside five others of 70 kB, 50 ms \
                    of round trip and 2 % of loss.",
            concludes: "With sums for the urgent resources alone, these need not wait for retransmissions, and are \
                        there in less than half of the time.",
            place: Place::Experiment(Shown {
                by: "eghbal-order",
                charts: &["2-loss-70-mbit-s", "1-loss-70-mbit-s"],
                tables: &["Urgent messages", "Order", "Costs"],
                claims: &[
                    Claim {
                        says: "With the matrix all urgent messages are there after 28 ms.",
                        paper: "28 ms",
                        ours: Quantity::Of(complete(MATRIX)),
                        bound: None,
                        holds: Condition::AtMost(28.0),
                        because: None,
                    },
                    Claim {
                        says: "Without repair symbols they are there after 63 ms.",
                        paper: "63 ms",
                        ours: Quantity::Of(complete(BARE)),
                        bound: None,
                        holds: Condition::Between(47.0, 79.0),
                        because: None,
                    },
                    Claim {
                        says: "The matrix saves more than half of the time.",
                        paper: "28 ms against 63 ms",
                        ours: Quantity::Ratio(complete(MATRIX), complete(BARE)),
                        bound: None,
                        holds: Condition::AtMost(0.5),
                        because: None,
                    },
                    Claim {
                        says: "The same if the 2 % of loss are of both directions together, as the authors count \
                               in 2025.",
                        paper: "28 ms against 63 ms",
                        ours: Quantity::Ratio(complete(MATRIX_1), complete(BARE_1)),
                        bound: None,
                        holds: Condition::AtMost(0.5),
                        because: None,
                    },
                    Claim {
                        says: "With the matrix hardly any run waits for a retransmission.",
                        paper: "",
                        ours: Quantity::Of(urgent(MATRIX, "waited")),
                        bound: None,
                        holds: Condition::AtMost(0.05),
                        because: None,
                    },
                    Claim {
                        says: "Only the urgent resources bear the cost of the sums, so that it stays reasonable: \
                               at most 15 % more bytes in all.",
                        paper: "",
                        ours: Quantity::Of(CellAt { table: "Costs", row: MATRIX, column: "more" }),
                        bound: None,
                        holds: Condition::AtMost(0.15),
                        because: None,
                    },
                ],
            }),
        },
        Exhibit {
            number: "Section 3",
            about: "The page of Fig. 1 over HTTP/3 with congestion control, which the paper leaves for later. The \
                    ratios are of pages whose urgent resources are protected to pages without protection.",
            concludes: "Redundancy for urgent resources alone makes them faster at a reasonable cost; whether it \
                        does so over QUIC, and with controllers that react to loss, is left open.",
            place: Place::Experiment(Shown {
                by: "eghbal-2022",
                charts: &[
                    "2-loss-warm-bbr",
                    "1-loss-warm-bbr",
                    "2-loss-fresh-bbr",
                    "2-loss-warm-cubic",
                    "2-loss-fresh-cubic",
                ],
                tables: &["Targets", "Pages", "Urgent resources protected otherwise"],
                claims: &[
                    Claim {
                        says: "Protection saves more than half of the time from the first byte until all urgent \
                               resources are there.",
                        paper: "28 ms against 63 ms",
                        ours: target!(
                            "2 %",
                            "warm",
                            "bbr",
                            "urgent complete, since the first byte"
                        ),
                        bound: None,
                        holds: Condition::AtMost(0.5),
                        because: None,
                    },
                    Claim {
                        says: "The same if the 2 % of loss are of both directions together.",
                        paper: "28 ms against 63 ms",
                        ours: target!(
                            "1 %",
                            "warm",
                            "bbr",
                            "urgent complete, since the first byte"
                        ),
                        bound: None,
                        holds: Condition::AtMost(0.5),
                        because: None,
                    },
                    Claim {
                        says: "The same with CUBIC, a controller that reacts to loss.",
                        paper: "left for later",
                        ours: target!(
                            "2 %",
                            "warm",
                            "cubic",
                            "urgent complete, since the first byte"
                        ),
                        bound: None,
                        holds: Condition::AtMost(0.5),
                        because: None,
                    },
                    Claim {
                        says: "The same on a new connection, whose window still has to open.",
                        paper: "left for later",
                        ours: target!(
                            "2 %",
                            "fresh",
                            "bbr",
                            "urgent complete, since the first byte"
                        ),
                        bound: None,
                        holds: Condition::AtMost(0.5),
                        because: Some(
                            "the window of a new connection takes five round trips to open far enough for the \
                             urgent resources, whatever is lost. Protection saves what is lost in the last of them.",
                        ),
                    },
                    Claim {
                        says: "The cost stays reasonable: at most 15 % more bytes from the server.",
                        paper: "",
                        ours: target!("2 %", "warm", "bbr", "bytes from the server"),
                        bound: None,
                        holds: Condition::AtMost(1.15),
                        because: None,
                    },
                    Claim {
                        says: "The other resources are hardly later: by at most 5 %.",
                        paper: "",
                        ours: target!("2 %", "warm", "bbr", "others complete, since the requests"),
                        bound: None,
                        holds: Condition::AtMost(1.05),
                        because: None,
                    },
                ],
            }),
        },
    ],
};
