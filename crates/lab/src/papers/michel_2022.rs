//! FlEC: redundancy by two functions of an application, for files, small buffers and messages.
//!
//! `bulk`, `buffer` and `messages` follow the paper; with `:literal` they are the paper to the letter.

use super::{CellAt, Claim, Condition, Exhibit, Paper, Place, Quantity, RowTexts, Shown};

/// The paper.
pub const PAPER: Paper = Paper {
    name: "michel-2022",
    reference: "Michel, Cohen, Malak, De Coninck, Médard, Bonaventure: FlEC: Enhancing QUIC with \
                application-tailored reliability mechanisms, IEEE/ACM Transactions on Networking \
                2022.",
    about: "Reliability as a plug-in: an application decides at each free slot of the window \
            between new data and redundancy.",
    exhibits: &[
        Exhibit {
            number: "Fig. 1",
            about: "A drawing of the framework and of the two functions that an application may \
                    replace.",
            concludes: "Plain retransmission is one of many mechanisms that fit into the same \
                        framework.",
            place: Place::Elsewhere(
                "A concept drawing. The framework is `crates/research/src/flec/rules.rs` with the \
                 trait `FlecRules`; docs/redundancy.md describes it, and \
                 examples/own-policies/src/flec.rs is a pair of functions of one's own.",
            ),
        },
        Exhibit {
            number: "Table I",
            about: "The symbols of the algorithms: estimates of loss, and missing and added degrees \
                    of freedom.",
            concludes: "Estimates of loss and two counts of symbols are all that the decisions need.",
            place: Place::Elsewhere(
                "Definitions. docs/redundancy.md names the field of the core's `View` for each \
                 symbol.",
            ),
        },
        Exhibit {
            number: "Table II",
            about: "The two functions for five mechanisms: SR-ARQ, AC-RLNC, bulk transfers, small \
                    buffers and messages.",
            concludes: "Two short functions are enough to express all five.",
            place: Place::Elsewhere(
                "Definitions. They are the policies `sr-arq`, `ac-rlnc`, `bulk`, `buffer` and \
                 `messages` of crates/research/src/flec; its tests.rs compares their thresholds \
                 with the table, and Figs. 3 to 17 measure them.",
            ),
        },
        Exhibit {
            number: "Fig. 2",
            about: "The simulated network: a client and a server at the ends of one link.",
            concludes: "Real code in virtual time makes experiments that can be repeated.",
            place: Place::Elsewhere(
                "A drawing of the setup. It is built by crates/lab/src/experiments/flec_path.rs on \
                 the simulator, whose tests compare the room of the queue with the paper's rule.",
            ),
        },
        Exhibit {
            number: "Fig. 3",
            about: "Completion times of files of 10 kB to 10 MB over 95 paths, divided by those of \
                    plain QUIC, with BBR.",
            concludes: "Protection of the last flight makes short files faster, and only a few \
                        files of 40 and 100 kB slower.",
            place: Place::Experiment(Shown {
                by: "flec-bulk",
                charts: &["bulk", "bulk-literal"],
                tables: &[
                    "Median time of a path",
                    "Mean time",
                    "Time that one in ten exceeds",
                    "Bytes from the server",
                    "The same paths without any loss",
                    "Paths on which `bulk` gains least",
                ],
                claims: FIG_3,
            }),
        },
        Exhibit {
            number: "Fig. 3 with Cubic",
            about: "Completion times of these files with Cubic in place of BBR, which the paper \
                    reports without a figure.",
            concludes: "The results are similar, though Cubic itself underestimates the bandwidth \
                        of lossy paths.",
            place: Place::Experiment(Shown {
                by: "flec-controllers",
                charts: &["bbr", "bbr-floor-off", "cubic", "cubic-floor-off"],
                tables: &["Downloads with `bulk`"],
                claims: FIG_3_WITH_CUBIC,
            }),
        },
        Exhibit {
            number: "Fig. 4",
            about: "Completion times of the same files, compared with AC-RLNC.",
            concludes: "Repair symbols in every round trip take too much of the bandwidth, so that \
                        those at the end alone do better.",
            place: Place::Experiment(Shown {
                by: "flec-bulk",
                charts: &["bulk", "bulk-literal", "ac-rlnc", "ac-rlnc-literal"],
                tables: &["Median time of a path", "Mean time", "Bytes from the server"],
                claims: FIG_4,
            }),
        },
        Exhibit {
            number: "Fig. 5",
            about: "Completion times of 430 uploads of 50 kB over a Starlink access that lost a \
                    packet, of 20,150 in all.",
            concludes: "Uploads that lose a packet are complete earlier: 247 instead of 272 ms at \
                        the median, 340 instead of 393 ms on average.",
            place: Place::Experiment(Shown {
                by: "flec-starlink",
                charts: &["single-packets", "10-ms-at-a-time"],
                tables: &["Uploads that lost a packet"],
                claims: FIG_5,
            }),
        },
        Exhibit {
            number: "Fig. 6",
            about: "Completion times of 5 MB over a satellite path with 0.5 % of loss, divided by \
                    those of plain QUIC, by receive window.",
            concludes: "Repair symbols keep a small window from being blocked; at 70 kB the part of \
                        the window that is set aside for them costs more than they gain.",
            place: Place::Experiment(Shown {
                by: "flec-buffer",
                charts: &["loss-5-permille"],
                tables: &["Downloads with each policy"],
                claims: FIG_6,
            }),
        },
        Exhibit {
            number: "Fig. 7",
            about: "Completion times of 5 MB over the satellite path with 2 % of loss, by receive \
                    window.",
            concludes: "Losses block the sender more often, so that protection pays at 70 kB, too.",
            place: Place::Experiment(Shown {
                by: "flec-buffer",
                charts: &["loss-20-permille"],
                tables: &["Downloads with each policy"],
                claims: FIG_7,
            }),
        },
        Exhibit {
            number: "Fig. 8",
            about: "The time and the bytes of each download with a window of 150 kB and 2 % of loss.",
            concludes: "Downloads are much faster, for more bytes on a path that has room for them.",
            place: Place::Experiment(Shown {
                by: "flec-buffer",
                charts: &["window-150-kb"],
                tables: &["Downloads with each policy"],
                claims: FIG_8,
            }),
        },
        Exhibit {
            number: "Fig. 9",
            about: "The time and the bytes of each download with a window of 6 MB and 0.5 % of loss.",
            concludes: "Where no window blocks, protection mends the end of the file: times vary \
                        little, for more bytes.",
            place: Place::Experiment(Shown {
                by: "flec-buffer",
                charts: &["window-6000-kb"],
                tables: &["Downloads with each policy"],
                claims: FIG_9,
            }),
        },
        Exhibit {
            number: "Fig. 10",
            about: "Completion times of 5 MB over 95 paths with independent losses, divided by \
                    those of plain QUIC, by receive window.",
            concludes: "Most paths gain, those with small windows most; what loses are paths that \
                        hold little compared with the window.",
            place: Place::Experiment(Shown {
                by: "flec-buffer-design",
                charts: &["random"],
                tables: &["Median time of a path", "Paths on which `buffer` gains least"],
                claims: FIG_10,
            }),
        },
        Exhibit {
            number: "Fig. 11",
            about: "Completion times of 5 MB over 95 paths with losses in bursts of up to five \
                    packets, by receive window.",
            concludes: "The pattern helps with bursts, too, and most where the window is small \
                        compared with what the path holds.",
            place: Place::Experiment(Shown {
                by: "flec-buffer-design",
                charts: &["bursts"],
                tables: &["Median time of a path", "Paths on which `buffer` gains least"],
                claims: FIG_11,
            }),
        },
        Exhibit {
            number: "Fig. 12",
            about: "The 95th percentile of the delay of video frames over 8 Mbit/s with 1 % of \
                    loss, by the delay of the path.",
            concludes: "With and without FlEC, 95 % of the frames are in time in every experiment.",
            place: Place::Experiment(Shown {
                by: "flec-messages",
                charts: &["p95"],
                tables: &["Messages"],
                claims: FIG_12,
            }),
        },
        Exhibit {
            number: "Fig. 13",
            about: "The 98th percentile of the delay of video frames.",
            concludes: "From 75 ms one way on, plain QUIC hardly ever has 98 % of the frames in \
                        time; FlEC has up to 200 ms.",
            place: Place::Experiment(Shown {
                by: "flec-messages",
                charts: &["p98"],
                tables: &["Messages"],
                claims: FIG_13,
            }),
        },
        Exhibit {
            number: "Fig. 14",
            about: "The 99th percentile of the delay of video frames.",
            concludes: "Above 75 ms one way plain QUIC never has 99 % of the frames in time, and \
                        FlEC always has; its repair symbols wait as long as the deadline allows.",
            place: Place::Experiment(Shown {
                by: "flec-messages",
                charts: &["p99"],
                tables: &["Messages"],
                claims: FIG_14,
            }),
        },
        Exhibit {
            number: "Fig. 15",
            about: "Messages in time with FlEC, with and without what the application tells, \
                    divided by those with plain QUIC.",
            concludes: "Hardly ever are fewer messages in time, and both variants gain alike.",
            place: Place::Experiment(Shown {
                by: "flec-messages",
                charts: &["on-time"],
                tables: &["Messages"],
                claims: FIG_15,
            }),
        },
        Exhibit {
            number: "Fig. 16",
            about: "Bytes from the server with FlEC, with and without what the application tells, \
                    divided by those with plain QUIC.",
            concludes: "Protection of every message may double the bytes; deadlines and the time \
                        of the next message save most of that, and all of it on short paths.",
            place: Place::Experiment(Shown {
                by: "flec-messages",
                charts: &["bytes"],
                tables: &["Messages"],
                claims: FIG_16,
            }),
        },
        Exhibit {
            number: "Fig. 17",
            about: "Messages in time and bytes over 95 paths, divided by those with plain QUIC.",
            concludes: "On no path are fewer messages in time, and where the delay is short FlEC \
                        sends hardly more than QUIC.",
            place: Place::Experiment(Shown {
                by: "flec-messages-design",
                charts: &["on-time", "bytes"],
                tables: &["Messages in time and bytes"],
                claims: FIG_17,
            }),
        },
    ],
};

/// A ratio up to this counts as a gain, and one above `SLOWER` as a loss, as in the tables of `flec-bulk`.
const FASTER: f64 = 0.995;
const SLOWER: f64 = 1.005;

/// A column of `flec-bulk`: the median time of each path.
const fn paths(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Median time of a path", row, column }
}

/// A column of `flec-bulk`: the time that one download in ten exceeds.
const fn slow(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Time that one in ten exceeds", row, column }
}

/// The median over the paths of the bytes from the server in `flec-bulk`.
const fn bytes(row: RowTexts) -> CellAt {
    CellAt { table: "Bytes from the server", row, column: "p50" }
}

/// A column of `flec-controllers`.
const fn controller(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Downloads with `bulk`", row, column }
}

/// A column of `flec-buffer`.
const fn buffer(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Downloads with each policy", row, column }
}

/// A column of `flec-buffer-design`.
const fn design(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Median time of a path with a policy", row, column }
}

/// A column of `flec-messages`.
const fn messages(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Messages", row, column }
}

/// A column of `flec-messages-design`.
const fn many(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Messages in time and bytes", row, column }
}

const FIG_3: &[Claim] = &[
    Claim {
        says: "Protection of the end saves small files the retransmission that may double their \
               time: what one download of 10 kB in ten exceeds.",
        paper: "doubled",
        ours: Quantity::Of(slow(&[("policy", "bulk"), ("bytes", "10000")], "p50")),
        bound: Some(Quantity::Of(slow(&[("policy", "bulk"), ("bytes", "10000")], "ideal p50"))),
        holds: Condition::AtMost(0.8),
        because: None,
    },
    Claim {
        says: "Files of 100 kB are faster on most paths.",
        paper: "",
        ours: Quantity::Of(paths(&[("policy", "bulk"), ("bytes", "100000")], "below 0.995")),
        bound: None,
        holds: Condition::AtLeast(0.5),
        because: None,
    },
    Claim {
        says: "Files of 100 kB are faster on most paths with the rules to the letter.",
        paper: "",
        ours: Quantity::Of(paths(
            &[("policy", "bulk:literal"), ("bytes", "100000")],
            "below 0.995",
        )),
        bound: None,
        holds: Condition::AtLeast(0.5),
        because: None,
    },
    Claim {
        says: "Only a few downloads of 40 kB are slower, to the letter.",
        paper: "a few",
        ours: Quantity::Of(paths(&[("policy", "bulk:literal"), ("bytes", "40000")], "above 1.005")),
        bound: None,
        holds: Condition::AtMost(0.1),
        because: None,
    },
    Claim {
        says: "A long file is not slower, since repair symbols are sent at its end only: hardly \
               any path of those with 10 MB.",
        paper: "",
        ours: Quantity::Of(paths(&[("policy", "bulk"), ("bytes", "10000000")], "above 1.005")),
        bound: None,
        holds: Condition::AtMost(0.1),
        because: None,
    },
    Claim {
        says: "Hardly any path of those with 10 MB is slower with the rules to the letter.",
        paper: "",
        ours: Quantity::Of(paths(
            &[("policy", "bulk:literal"), ("bytes", "10000000")],
            "above 1.005",
        )),
        bound: None,
        holds: Condition::AtMost(0.1),
        because: Some(
            "To the letter all data become symbols, whose marking takes 0.6 % of the bytes, and \
             every loss is mended by a repair symbol over the whole window, which has to wait for \
             losses that are not known yet. The gain at the end of 10 MB is smaller than that; \
             `bulk`, which marks the last two windows only, is slower on no path.",
        ),
    },
];

const FIG_3_WITH_CUBIC: &[Claim] = &[
    Claim {
        says: "Protection of the end gains as much with Cubic as with BBR: 100 kB.",
        paper: "similar results",
        ours: Quantity::Difference(
            controller(&[("bytes", "100000"), ("controller", "cubic:floor=off")], "p50"),
            controller(&[("bytes", "100000"), ("controller", "bbr:floor=off")], "p50"),
        ),
        bound: None,
        holds: Condition::Between(-0.05, 0.05),
        because: Some(
            "Cubic answers every loss and goes on with a smaller window, so that fewer of the losses are \
             in the last flight, which protection of the end covers: it sends half as many repair \
             symbols for it.",
        ),
    },
    Claim {
        says: "Protection of the end gains as much with Cubic as with BBR: 1 MB.",
        paper: "similar results",
        ours: Quantity::Difference(
            controller(&[("bytes", "1000000"), ("controller", "cubic:floor=off")], "p50"),
            controller(&[("bytes", "1000000"), ("controller", "bbr:floor=off")], "p50"),
        ),
        bound: None,
        holds: Condition::Between(-0.05, 0.05),
        because: Some(
            "Cubic answers every loss, as in the paper, and takes several times as long for 1 MB at \
             these losses, so that the round trip saved at the end is a smaller part of the time.",
        ),
    },
    Claim {
        says: "Cubic takes losses for congestion and underestimates the bandwidth: without \
               protection 1 MB take longer than with BBR.",
        paper: "",
        ours: Quantity::Ratio(
            controller(
                &[("bytes", "1000000"), ("controller", "cubic:floor=off")],
                "time without p50",
            ),
            controller(
                &[("bytes", "1000000"), ("controller", "bbr:floor=off")],
                "time without p50",
            ),
        ),
        bound: None,
        holds: Condition::AtLeast(1.1),
        because: None,
    },
];

const FIG_4: &[Claim] = &[
    Claim {
        says: "Files of 100 kB take less time than with AC-RLNC.",
        paper: "",
        ours: Quantity::Ratio(
            paths(&[("policy", "bulk"), ("bytes", "100000")], "p50"),
            paths(&[("policy", "ac-rlnc"), ("bytes", "100000")], "p50"),
        ),
        bound: Some(Quantity::Ratio(
            paths(&[("policy", "bulk"), ("bytes", "100000")], "ideal p50"),
            paths(&[("policy", "ac-rlnc"), ("bytes", "100000")], "p50"),
        )),
        holds: Condition::AtMost(FASTER),
        because: None,
    },
    Claim {
        says: "Files of 10 MB take less time than with AC-RLNC.",
        paper: "",
        ours: Quantity::Ratio(
            paths(&[("policy", "bulk"), ("bytes", "10000000")], "p50"),
            paths(&[("policy", "ac-rlnc"), ("bytes", "10000000")], "p50"),
        ),
        bound: Some(Quantity::Ratio(
            paths(&[("policy", "bulk"), ("bytes", "10000000")], "ideal p50"),
            paths(&[("policy", "ac-rlnc"), ("bytes", "10000000")], "p50"),
        )),
        holds: Condition::AtMost(FASTER),
        because: None,
    },
    Claim {
        says: "Files of 1 MB take less time with both to the letter.",
        paper: "",
        ours: Quantity::Ratio(
            paths(&[("policy", "bulk:literal"), ("bytes", "1000000")], "p50"),
            paths(&[("policy", "ac-rlnc:literal"), ("bytes", "1000000")], "p50"),
        ),
        bound: Some(Quantity::Ratio(
            paths(&[("policy", "bulk:literal"), ("bytes", "1000000")], "ideal p50"),
            paths(&[("policy", "ac-rlnc:literal"), ("bytes", "1000000")], "p50"),
        )),
        holds: Condition::AtMost(FASTER),
        because: None,
    },
    Claim {
        says: "The reason is the bandwidth that repair symbols in each round trip take: AC-RLNC \
               sends more bytes for 1 MB.",
        paper: "too much bandwidth",
        ours: Quantity::Ratio(
            bytes(&[("policy", "ac-rlnc"), ("bytes", "1000000")]),
            bytes(&[("policy", "bulk"), ("bytes", "1000000")]),
        ),
        bound: None,
        holds: Condition::AtLeast(SLOWER),
        because: None,
    },
    Claim {
        says: "AC-RLNC sends more bytes for 1 MB with both to the letter.",
        paper: "too much bandwidth",
        ours: Quantity::Ratio(
            bytes(&[("policy", "ac-rlnc:literal"), ("bytes", "1000000")]),
            bytes(&[("policy", "bulk:literal"), ("bytes", "1000000")]),
        ),
        bound: None,
        holds: Condition::AtLeast(SLOWER),
        because: None,
    },
];

const SATELLITE_70: RowTexts =
    &[("policy", "buffer:literal"), ("loss", "0.500 %"), ("window", "70000")];
const SATELLITE_150: RowTexts = &[("policy", "buffer"), ("loss", "0.500 %"), ("window", "150000")];
const SATELLITE_150_LITERAL: RowTexts =
    &[("policy", "buffer:literal"), ("loss", "0.500 %"), ("window", "150000")];
const SATELLITE_400_LITERAL: RowTexts =
    &[("policy", "buffer:literal"), ("loss", "0.500 %"), ("window", "400000")];
const SATELLITE_3000_LITERAL: RowTexts =
    &[("policy", "buffer:literal"), ("loss", "0.500 %"), ("window", "3000000")];

/// Uploads that lost a packet, by loss and policy, divided by those without protection.
const fn lossy(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Uploads that lost a packet", row, column }
}

/// Rows with the end protected, and without losses. The paper does not say how many packets are lost at once.
const SINGLE: [RowTexts; 2] = [
    &[("losses", "single packets"), ("policy", "bulk")],
    &[("losses", "single packets"), ("policy", "ideal")],
];

const FIG_5: &[Claim] = &[
    Claim {
        says: "Uploads that lose a packet are complete earlier at the median.",
        paper: "247 ms against 272 ms",
        ours: Quantity::Of(lossy(SINGLE[0], "median by none")),
        bound: Some(Quantity::Of(lossy(SINGLE[1], "median by none"))),
        holds: Condition::AtMost(FASTER),
        because: None,
    },
    Claim {
        says: "They are complete earlier on average.",
        paper: "340 ms against 393 ms",
        ours: Quantity::Of(lossy(SINGLE[0], "mean by none")),
        bound: Some(Quantity::Of(lossy(SINGLE[1], "mean by none"))),
        holds: Condition::AtMost(FASTER),
        because: None,
    },
];

const FIG_6: &[Claim] = &[
    Claim {
        says: "With a window of 70 kB a download takes longer, since a part of the window is set \
               aside for repair symbols.",
        paper: "negative impact",
        ours: Quantity::Of(buffer(SATELLITE_70, "median time")),
        bound: Some(Quantity::Of(buffer(SATELLITE_70, "ideal"))),
        holds: Condition::AtLeast(1.0),
        because: Some(
            "Nothing is taken off the window here, where FlEC's receiver takes 10 kB: repair \
             symbols are not flow-controlled data, and the decoder has memory of its own.",
        ),
    },
    Claim {
        says: "Repair symbols unblock a window of 150 kB, so that the file arrives sooner.",
        paper: "",
        ours: Quantity::Of(buffer(SATELLITE_150_LITERAL, "median time")),
        bound: Some(Quantity::Of(buffer(SATELLITE_150_LITERAL, "ideal"))),
        holds: Condition::AtMost(FASTER),
        because: None,
    },
    Claim {
        says: "A file arrives sooner at a window of 150 kB with `buffer`, too, which protects only \
               where the window would stall.",
        paper: "",
        ours: Quantity::Of(buffer(SATELLITE_150, "median time")),
        bound: Some(Quantity::Of(buffer(SATELLITE_150, "ideal"))),
        holds: Condition::AtMost(FASTER),
        because: None,
    },
    Claim {
        says: "With 400 kB the sender blocks only when something is lost, and protection reduces \
               or avoids that.",
        paper: "",
        ours: Quantity::Of(buffer(SATELLITE_400_LITERAL, "median time")),
        bound: Some(Quantity::Of(buffer(SATELLITE_400_LITERAL, "ideal"))),
        holds: Condition::AtMost(FASTER),
        because: None,
    },
    Claim {
        says: "With 3 MB no window is to be unblocked, but the end of the file still gains.",
        paper: "",
        ours: Quantity::Of(buffer(SATELLITE_3000_LITERAL, "median time")),
        bound: Some(Quantity::Of(buffer(SATELLITE_3000_LITERAL, "ideal"))),
        holds: Condition::AtMost(FASTER),
        because: None,
    },
];

const LOSSY_70: RowTexts = &[("policy", "buffer"), ("loss", "2.000 %"), ("window", "70000")];
const LOSSY_70_LITERAL: RowTexts =
    &[("policy", "buffer:literal"), ("loss", "2.000 %"), ("window", "70000")];
const LOSSY_150: RowTexts = &[("policy", "buffer"), ("loss", "2.000 %"), ("window", "150000")];
const LOSSY_150_LITERAL: RowTexts =
    &[("policy", "buffer:literal"), ("loss", "2.000 %"), ("window", "150000")];

const FIG_7: &[Claim] = &[
    Claim {
        says: "With 2 % of loss protection pays at 70 kB, too.",
        paper: "",
        ours: Quantity::Of(buffer(LOSSY_70_LITERAL, "median time")),
        bound: Some(Quantity::Of(buffer(LOSSY_70_LITERAL, "ideal"))),
        holds: Condition::AtMost(FASTER),
        because: None,
    },
    Claim {
        says: "With 2 % of loss protection pays at 70 kB with `buffer`, too.",
        paper: "",
        ours: Quantity::Of(buffer(LOSSY_70, "median time")),
        bound: Some(Quantity::Of(buffer(LOSSY_70, "ideal"))),
        holds: Condition::AtMost(FASTER),
        because: None,
    },
    Claim {
        says: "The sender is blocked more often than at 0.5 %, so that protection gains more: \
               150 kB.",
        paper: "",
        ours: Quantity::Difference(
            buffer(LOSSY_150_LITERAL, "median time"),
            buffer(SATELLITE_150_LITERAL, "median time"),
        ),
        bound: None,
        holds: Condition::AtMost(0.0),
        because: None,
    },
];

const FIG_8: &[Claim] = &[
    Claim {
        says: "A download to a window of 150 kB takes far less time with 2 % of loss.",
        paper: "drastically",
        ours: Quantity::Of(buffer(LOSSY_150_LITERAL, "median time")),
        bound: Some(Quantity::Of(buffer(LOSSY_150_LITERAL, "ideal"))),
        holds: Condition::AtMost(0.8),
        because: None,
    },
    Claim {
        says: "A download to a window of 150 kB takes far less time with `buffer`.",
        paper: "drastically",
        ours: Quantity::Of(buffer(LOSSY_150, "median time")),
        bound: Some(Quantity::Of(buffer(LOSSY_150, "ideal"))),
        holds: Condition::AtMost(0.8),
        because: None,
    },
    Claim {
        says: "The price is more bytes than with plain QUIC.",
        paper: "",
        ours: Quantity::Of(buffer(LOSSY_150_LITERAL, "bytes")),
        bound: None,
        holds: Condition::AtLeast(SLOWER),
        because: None,
    },
];

const LARGE: RowTexts = &[("policy", "buffer"), ("loss", "0.500 %"), ("window", "6000000")];
const LARGE_LITERAL: RowTexts =
    &[("policy", "buffer:literal"), ("loss", "0.500 %"), ("window", "6000000")];

const FIG_9: &[Claim] = &[
    Claim {
        says: "With a window that never blocks, mending the end of the file makes it faster.",
        paper: "",
        ours: Quantity::Of(buffer(LARGE_LITERAL, "median time")),
        bound: Some(Quantity::Of(buffer(LARGE_LITERAL, "ideal"))),
        holds: Condition::AtMost(FASTER),
        because: None,
    },
    Claim {
        says: "Times are stable, near the least that the path allows: what the median takes more \
               than without losses.",
        paper: "stable",
        ours: Quantity::Difference(
            buffer(LARGE_LITERAL, "median time"),
            buffer(LARGE_LITERAL, "ideal"),
        ),
        bound: None,
        holds: Condition::AtMost(0.02),
        because: None,
    },
    Claim {
        says: "Times are as stable with `buffer`.",
        paper: "stable",
        ours: Quantity::Difference(buffer(LARGE, "median time"), buffer(LARGE, "ideal")),
        bound: None,
        holds: Condition::AtMost(0.02),
        because: None,
    },
    Claim {
        says: "The price is more bytes than with plain QUIC.",
        paper: "",
        ours: Quantity::Of(buffer(LARGE_LITERAL, "bytes")),
        bound: None,
        holds: Condition::AtLeast(SLOWER),
        because: None,
    },
];

const RANDOM_150: RowTexts =
    &[("policy", "buffer:literal"), ("losses", "random"), ("window", "150000")];
const RANDOM_250: RowTexts =
    &[("policy", "buffer:literal"), ("losses", "random"), ("window", "250000")];
const RANDOM_3000: RowTexts =
    &[("policy", "buffer:literal"), ("losses", "random"), ("window", "3000000")];

const FIG_10: &[Claim] = &[
    Claim {
        says: "Windows of up to 400 kB gain on four paths in five: 250 kB.",
        paper: "80%",
        ours: Quantity::Of(design(RANDOM_250, "faster")),
        bound: None,
        holds: Condition::AtLeast(0.7),
        because: None,
    },
    Claim {
        says: "`buffer`, which protects only where the buffer would stall, gains on no fewer.",
        paper: "80%",
        ours: Quantity::Of(design(
            &[("policy", "buffer"), ("losses", "random"), ("window", "250000")],
            "faster",
        )),
        bound: None,
        holds: Condition::AtLeast(0.8),
        because: None,
    },
    Claim {
        says: "With all windows, three paths in four gain: the majority does with the largest, \
               3 MB.",
        paper: "the majority (75%)",
        ours: Quantity::Of(design(RANDOM_3000, "faster")),
        bound: None,
        holds: Condition::AtLeast(0.5),
        because: None,
    },
    Claim {
        says: "Small windows gain most: the median path with 150 kB compared with 3 MB.",
        paper: "",
        ours: Quantity::Difference(design(RANDOM_150, "p50"), design(RANDOM_3000, "p50")),
        bound: None,
        holds: Condition::AtMost(0.0),
        because: None,
    },
    Claim {
        says: "Some paths lose, even with a small window.",
        paper: "",
        ours: Quantity::Of(design(RANDOM_150, "worst")),
        bound: None,
        holds: Condition::AtLeast(SLOWER),
        because: None,
    },
];

const BURSTS_150: RowTexts =
    &[("policy", "buffer:literal"), ("losses", "bursts"), ("window", "150000")];
const BURSTS_3000: RowTexts =
    &[("policy", "buffer:literal"), ("losses", "bursts"), ("window", "3000000")];

const FIG_11: &[Claim] = &[
    Claim {
        says: "The pattern helps with bursts, too: the median path with a window of 150 kB.",
        paper: "",
        ours: Quantity::Of(design(BURSTS_150, "p50")),
        bound: Some(Quantity::Of(design(BURSTS_150, "ideal p50"))),
        holds: Condition::AtMost(FASTER),
        because: None,
    },
    Claim {
        says: "Most paths gain with `buffer`, with the largest window, too.",
        paper: "",
        ours: Quantity::Of(design(
            &[("policy", "buffer"), ("losses", "bursts"), ("window", "3000000")],
            "faster",
        )),
        bound: None,
        holds: Condition::AtLeast(0.5),
        because: None,
    },
    Claim {
        says: "Most paths gain with the pattern to the letter, with the largest window, too.",
        paper: "",
        ours: Quantity::Of(design(BURSTS_3000, "faster")),
        bound: None,
        holds: Condition::AtLeast(0.5),
        because: Some(
            "To the letter all paths are protected alike, also those that hold less than the \
             window, where nothing stalls and repair symbols only take room from data. The paper \
             gives no share for bursts.",
        ),
    },
    Claim {
        says: "Paths that hold much compared with the window gain most: 150 kB compared with 3 MB.",
        paper: "",
        ours: Quantity::Difference(design(BURSTS_150, "p50"), design(BURSTS_3000, "p50")),
        bound: None,
        holds: Condition::AtMost(0.0),
        because: None,
    },
    Claim {
        says: "Bursts are rarer than independent losses and block less often, so that there is \
               less to gain: the median path with 150 kB.",
        paper: "",
        ours: Quantity::Difference(design(BURSTS_150, "p50"), design(RANDOM_150, "p50")),
        bound: None,
        holds: Condition::AtLeast(0.0),
        because: None,
    },
];

const FIG_12: &[Claim] = &[
    Claim {
        says: "Plain QUIC has 95 % of the frames in time at 200 ms one way, the longest path.",
        paper: "95%",
        ours: Quantity::Of(messages(
            &[("one way", "200.0 ms"), ("variant", "QUIC, round robin")],
            "p95 ms",
        )),
        bound: Some(Quantity::Of(messages(
            &[("one way", "200.0 ms"), ("variant", "ideal")],
            "p95 ms",
        ))),
        holds: Condition::AtMost(250.0),
        because: None,
    },
    Claim {
        says: "FlEC has 95 % of the frames in time at 200 ms.",
        paper: "95%",
        ours: Quantity::Of(messages(
            &[("one way", "200.0 ms"), ("variant", "messages:literal")],
            "p95 ms",
        )),
        bound: Some(Quantity::Of(messages(
            &[("one way", "200.0 ms"), ("variant", "ideal")],
            "p95 ms",
        ))),
        holds: Condition::AtMost(250.0),
        because: None,
    },
];

const FIG_13: &[Claim] = &[
    Claim {
        says: "Above 75 ms one way plain QUIC rarely has 98 % of the frames in time: 80 ms.",
        paper: "98%",
        ours: Quantity::Of(messages(
            &[("one way", "80.0 ms"), ("variant", "QUIC, round robin")],
            "on time",
        )),
        bound: None,
        holds: Condition::AtMost(0.98),
        because: None,
    },
    Claim {
        says: "Above 75 ms the 98th percentile of plain QUIC misses the deadline: 120 ms.",
        paper: "before 250 milliseconds",
        ours: Quantity::Of(messages(
            &[("one way", "120.0 ms"), ("variant", "QUIC, round robin")],
            "p98 ms",
        )),
        bound: Some(Quantity::Of(messages(
            &[("one way", "120.0 ms"), ("variant", "ideal")],
            "p98 ms",
        ))),
        holds: Condition::AtLeast(250.0),
        because: None,
    },
    Claim {
        says: "FlEC has 98 % of the frames in time up to 200 ms one way.",
        paper: "up to 200 milliseconds",
        ours: Quantity::Of(messages(
            &[("one way", "200.0 ms"), ("variant", "messages:literal")],
            "p98 ms",
        )),
        bound: Some(Quantity::Of(messages(
            &[("one way", "200.0 ms"), ("variant", "ideal")],
            "p98 ms",
        ))),
        holds: Condition::AtMost(250.0),
        because: None,
    },
    Claim {
        says: "So has `messages`: 98 % of the frames are in time at 200 ms.",
        paper: "up to 200 milliseconds",
        ours: Quantity::Of(messages(&[("one way", "200.0 ms"), ("variant", "messages")], "p98 ms")),
        bound: Some(Quantity::Of(messages(
            &[("one way", "200.0 ms"), ("variant", "ideal")],
            "p98 ms",
        ))),
        holds: Condition::AtMost(250.0),
        because: None,
    },
];

const FIG_14: &[Claim] = &[
    Claim {
        says: "Above 75 ms one way plain QUIC never has 99 % of the frames in time: 80 ms.",
        paper: "no experiment",
        ours: Quantity::Of(messages(
            &[("one way", "80.0 ms"), ("variant", "QUIC, round robin")],
            "p99 ms",
        )),
        bound: Some(Quantity::Of(messages(
            &[("one way", "80.0 ms"), ("variant", "ideal")],
            "p99 ms",
        ))),
        holds: Condition::AtLeast(250.0),
        because: None,
    },
    Claim {
        says: "FlEC has 99 % of the frames in time in every experiment: the worst connection at \
               200 ms.",
        paper: "every experiment",
        ours: Quantity::Of(messages(
            &[("one way", "200.0 ms"), ("variant", "messages:literal")],
            "worst p99",
        )),
        bound: Some(Quantity::Of(messages(
            &[("one way", "200.0 ms"), ("variant", "ideal")],
            "worst p99",
        ))),
        holds: Condition::AtMost(250.0),
        because: None,
    },
    Claim {
        says: "So has `messages`: the worst connection at 200 ms.",
        paper: "every experiment",
        ours: Quantity::Of(messages(
            &[("one way", "200.0 ms"), ("variant", "messages")],
            "worst p99",
        )),
        bound: Some(Quantity::Of(messages(
            &[("one way", "200.0 ms"), ("variant", "ideal")],
            "worst p99",
        ))),
        holds: Condition::AtMost(250.0),
        because: None,
    },
    Claim {
        says: "Repair symbols wait as long as the deadline allows, which gives a plateau near it: \
               140 ms, the middle of the long paths.",
        paper: "around the 250ms",
        ours: Quantity::Of(messages(
            &[("one way", "140.0 ms"), ("variant", "messages:literal")],
            "p99 ms",
        )),
        bound: None,
        holds: Condition::Between(200.0, 250.0),
        because: None,
    },
    Claim {
        says: "On the plateau the delay of frames does not grow with that of the path: from 100 \
               to 160 ms.",
        paper: "plateau",
        ours: Quantity::Difference(
            messages(&[("one way", "160.0 ms"), ("variant", "messages:literal")], "p99 ms"),
            messages(&[("one way", "100.0 ms"), ("variant", "messages:literal")], "p99 ms"),
        ),
        bound: None,
        holds: Condition::Between(-30.0, 30.0),
        because: None,
    },
];

const FIG_15: &[Claim] = &[
    Claim {
        says: "Where a retransmission comes too late, more messages are in time than with plain \
               QUIC: 100 ms one way.",
        paper: "",
        ours: Quantity::Ratio(
            messages(&[("one way", "100.0 ms"), ("variant", "messages:literal")], "on time"),
            messages(&[("one way", "100.0 ms"), ("variant", "QUIC, round robin")], "on time"),
        ),
        bound: Some(Quantity::Ratio(
            messages(&[("one way", "100.0 ms"), ("variant", "ideal")], "on time"),
            messages(&[("one way", "100.0 ms"), ("variant", "QUIC, round robin")], "on time"),
        )),
        holds: Condition::AtLeast(1.01),
        because: None,
    },
    Claim {
        says: "More messages are in time with `messages` than with plain QUIC: 200 ms one way.",
        paper: "",
        ours: Quantity::Ratio(
            messages(&[("one way", "200.0 ms"), ("variant", "messages")], "on time"),
            messages(&[("one way", "200.0 ms"), ("variant", "QUIC, round robin")], "on time"),
        ),
        bound: Some(Quantity::Ratio(
            messages(&[("one way", "200.0 ms"), ("variant", "ideal")], "on time"),
            messages(&[("one way", "200.0 ms"), ("variant", "QUIC, round robin")], "on time"),
        )),
        holds: Condition::AtLeast(1.01),
        because: None,
    },
    Claim {
        says: "Where a retransmission is in time, hardly ever are fewer messages in time: 50 ms.",
        paper: "nearly no experiment",
        ours: Quantity::Ratio(
            messages(&[("one way", "50.0 ms"), ("variant", "messages:literal")], "on time"),
            messages(&[("one way", "50.0 ms"), ("variant", "QUIC, round robin")], "on time"),
        ),
        bound: None,
        holds: Condition::AtLeast(0.999),
        because: None,
    },
    Claim {
        says: "FlEC gains about as much without being told of deadlines: the difference at 150 ms.",
        paper: "similar gain",
        ours: Quantity::Difference(
            messages(
                &[("one way", "150.0 ms"), ("variant", "messages:literal, no API")],
                "on time",
            ),
            messages(&[("one way", "150.0 ms"), ("variant", "messages:literal")], "on time"),
        ),
        bound: None,
        holds: Condition::Between(-0.005, 0.005),
        because: None,
    },
];

const FIG_16: &[Claim] = &[
    Claim {
        says: "Protection of every message may double the bytes.",
        paper: "may double",
        ours: Quantity::Of(messages(
            &[("one way", "100.0 ms"), ("variant", "messages:literal, no API")],
            "bytes/QUIC",
        )),
        bound: None,
        holds: Condition::Between(1.6, 2.4),
        because: None,
    },
    Claim {
        says: "Deadlines and the time of the next message save much of that: the bytes at 100 ms, \
               for each without them.",
        paper: "",
        ours: Quantity::Ratio(
            messages(&[("one way", "100.0 ms"), ("variant", "messages:literal")], "bytes/QUIC"),
            messages(
                &[("one way", "100.0 ms"), ("variant", "messages:literal, no API")],
                "bytes/QUIC",
            ),
        ),
        bound: None,
        holds: Condition::AtMost(0.8),
        because: None,
    },
    Claim {
        says: "From 5 to 70 ms one way no repair symbol is sent: 50 ms, with `messages`.",
        paper: "no Repair Symbol",
        ours: Quantity::Of(messages(&[("one way", "50.0 ms"), ("variant", "messages")], "repairs")),
        bound: None,
        holds: Condition::AtMost(0.0),
        because: None,
    },
    Claim {
        says: "To the letter repair symbols hardly add to the bytes at 50 ms.",
        paper: "no Repair Symbol",
        ours: Quantity::Of(messages(
            &[("one way", "50.0 ms"), ("variant", "messages:literal")],
            "bytes/QUIC",
        )),
        bound: None,
        holds: Condition::AtMost(1.05),
        because: None,
    },
    Claim {
        says: "To the letter repair symbols hardly add to the bytes at 70 ms, the end of that range.",
        paper: "no Repair Symbol",
        ours: Quantity::Of(messages(
            &[("one way", "70.0 ms"), ("variant", "messages:literal")],
            "bytes/QUIC",
        )),
        bound: None,
        holds: Condition::AtMost(1.05),
        because: Some(
            "To the letter the pattern does not know that a retransmission is in time: from 60 ms \
             on it asks for repair symbols before a message is acknowledged. `messages` knows, and \
             sends hardly any up to 70 ms.",
        ),
    },
];

const FIG_17: &[Claim] = &[
    Claim {
        says: "On no path are fewer messages in time than with plain QUIC.",
        paper: "none",
        ours: Quantity::Of(many(&[("variant", "messages:literal")], "fewer")),
        bound: Some(Quantity::Of(many(&[("variant", "QUIC, other losses")], "fewer"))),
        holds: Condition::AtMost(0.0),
        because: Some(
            "A policy sends other packets, so that others are lost. Plain QUIC with other losses has \
             fewer in time on more paths (the bound): a connection for each path cannot show a \
             difference of a few messages.",
        ),
    },
    Claim {
        says: "On no path are fewer messages in time with `messages`.",
        paper: "none",
        ours: Quantity::Of(many(&[("variant", "messages")], "fewer")),
        bound: Some(Quantity::Of(many(&[("variant", "QUIC, other losses")], "fewer"))),
        holds: Condition::AtMost(0.0),
        because: Some(
            "A policy sends other packets, so that others are lost. Plain QUIC with other losses has \
             fewer in time on more paths (the bound): a connection for each path cannot show a \
             difference of a few messages.",
        ),
    },
    Claim {
        says: "On most paths more are in time: the median path.",
        paper: "",
        ours: Quantity::Of(many(&[("variant", "messages:literal")], "p50")),
        bound: Some(Quantity::Of(many(&[("variant", "ideal")], "p50"))),
        holds: Condition::AtLeast(SLOWER),
        because: None,
    },
    Claim {
        says: "In a few cases FlEC sends about as many bytes as plain QUIC: one path in twenty.",
        paper: "a similar amount",
        ours: Quantity::Of(many(&[("variant", "messages:literal")], "bytes p5")),
        bound: None,
        holds: Condition::AtMost(1.05),
        because: None,
    },
    Claim {
        says: "It takes fewer bytes with what the application tells than without: the median path.",
        paper: "",
        ours: Quantity::Ratio(
            many(&[("variant", "messages:literal")], "bytes p50"),
            many(&[("variant", "messages:literal, no API")], "bytes p50"),
        ),
        bound: None,
        holds: Condition::AtMost(0.8),
        because: None,
    },
];
