//! Forward error correction and weighted classes for HTTP/3 (Holzinger et al. 2025).

use super::{CellAt, Claim, Condition, Exhibit, Paper, Place, Quantity, RowTexts, Shown};

/// The paper.
pub const PAPER: Paper = Paper {
    name: "holzinger-2025",
    reference: "Holzinger, Petri, Lachnit, Kempf, Stubbe, Gallenmüller, Günther, Carle: Forward Error Correction and Weighted \
         Hierarchical Fair Multiplexing for HTTP/3 over QUIC. IFIP Networking 2025.",
    about: "Sliding-window coding for QUIC, repair symbols by burst loss tolerance and repair delay tolerance, and weighted \
         hierarchical fair shares.",
    exhibits: &[TREES, PARAMETERS, COST, TESTBED, COMPLETION, DELAY, AS_RESPONSES, ORDER],
};

const TREES: Exhibit = Exhibit {
    number: "Fig. 1",
    about: "The resources of a page as two trees: by strict urgencies alone, and by weighted classes.",
    concludes: "Urgencies put most of a page in sequence; classes divide the path among parts of it by weight, and \
                keep the sequence within a class.",
    place: Place::Experiment(Shown {
        by: "holzinger-page",
        charts: &[],
        tables: &["Shares of the path"],
        claims: &[
            Claim {
                says: "By urgencies the HTML has the path to itself until it is complete.",
                paper: "",
                ours: Quantity::Of(share(EPS_HTML, "measured")),
                bound: Some(Quantity::Of(share(EPS_HTML, "ideal"))),
                holds: Condition::AtLeast(0.95),
                because: None,
            },
            Claim {
                says: "By urgencies the font, the LCP image and the two other images of the viewport have equal \
                       shares, a quarter of the path each.",
                paper: "",
                ours: Quantity::Of(share(EPS_LCP, "measured")),
                bound: Some(Quantity::Of(share(EPS_LCP, "ideal"))),
                holds: Condition::Between(0.2375, 0.2625),
                because: None,
            },
            Claim {
                says: "By classes the HTML shares the path with the class of web assets at 1:4, and CSS is alone in \
                       that class at first.",
                paper: "1:4",
                ours: Quantity::Ratio(
                    share(CLASSES_CSS, "measured"),
                    share(CLASSES_HTML, "measured"),
                ),
                bound: Some(Quantity::Ratio(
                    share(CLASSES_CSS, "ideal"),
                    share(CLASSES_HTML, "ideal"),
                )),
                holds: Condition::Between(3.8, 4.2),
                because: None,
            },
        ],
    }),
};

const PARAMETERS: Exhibit = Exhibit {
    number: "Table I",
    about: "The four parameters that requests add to their priority.",
    concludes: "exp_p names the classes of a response, exp_w its weight among its siblings, exp_b and exp_d how \
                it is protected.",
    place: Place::Elsewhere(
        "It is a list of parameters. holzinger-http asks for its responses with exp_b and exp_d, and \
         holzinger-page with exp_p and exp_w; the tests in crates/h3/src/priority/tests.rs read the paper's \
         example of a field.",
    ),
};

const COST: Exhibit = Exhibit {
    number: "Fig. 2",
    about: "CPU time to make a repair symbol, and to recover early and late losses, for windows of 10 to 2000 symbols.",
    concludes: "It is fast enough for many web workloads: a repair symbol over 1000 symbols takes well below 1 ms, \
                recovery some 35 ms for early losses and less than 0.1 ms for late ones.",
    place: Place::Experiment(Shown {
        by: "holzinger-coding",
        charts: &["recovery"],
        tables: &["A repair symbol", "Recovery of one symbol"],
        claims: &[
            Claim {
                says: "A repair symbol over 1000 symbols takes well below 1 ms. Here by the bytes that are read, at 30 \
                       GB/s; benches/erasure measures 0.02 ms.",
                paper: "less than 1 ms",
                ours: Quantity::Of(CellAt {
                    table: "A repair symbol",
                    row: &[("window", "1000")],
                    column: "ms at 30 GB/s",
                }),
                bound: None,
                holds: Condition::AtMost(0.5),
                because: None,
            },
            Claim {
                says: "Early losses take some 35 ms at a window of 1000. Here likewise; benches/erasure measures 1.1 ms.",
                paper: "35 ms",
                ours: Quantity::Of(recovery(&[("window", "1000"), ("losses", "early")])),
                bound: None,
                holds: Condition::AtMost(35.0),
                because: None,
            },
            Claim {
                says: "Late losses take less than 0.1 ms.",
                paper: "less than 0.1 ms",
                ours: Quantity::Of(recovery(&[("window", "1000"), ("losses", "late")])),
                bound: None,
                holds: Condition::AtMost(0.1),
                because: Some(
                    "each repair symbol covers the whole window, and the 950 symbols that are known are read for each of \
                     the 50, wherever the lost ones are. Without that, no bytes are recovered: 0.1 ms is not enough to \
                     read them once for each.",
                ),
            },
            Claim {
                says: "Early losses take much longer than late ones.",
                paper: "35 ms against 0.1 ms",
                ours: Quantity::Ratio(
                    recovery(&[("window", "1000"), ("losses", "early")]),
                    recovery(&[("window", "1000"), ("losses", "late")]),
                ),
                bound: None,
                holds: Condition::AtLeast(10.0),
                because: Some(
                    "the decoder here solves for the lost symbols alone, so that it does not matter where they are. The \
                     paper says that its own solver could do with less.",
                ),
            },
        ],
    }),
};

/// What the recovery of a window takes.
const fn recovery(row: RowTexts) -> CellAt {
    CellAt { table: "Recovery of one symbol", row, column: "ms at 30 GB/s" }
}

const TESTBED: Exhibit = Exhibit {
    number: "Fig. 3",
    about: "The testbed: one machine with client and server, and one that emulates the path between them.",
    concludes: "Client and server share a clock, so that delays one way can be measured.",
    place: Place::Elsewhere(
        "It is a drawing. Here client and server run in a simulator with one clock, over the links \
         paper-background, paper-percent and paper-time; the tests in crates/link/src/config/tests.rs compare \
         these with the numbers of the paper.",
    ),
};

const COMPLETION: Exhibit = Exhibit {
    number: "Fig. 4",
    about: "Times to completion of transfers of 32 kB and 1 MB, with and without repair symbols at their end.",
    concludes: "Repair symbols halve the retransmissions that small transfers wait for, and help large ones little.",
    place: Place::Experiment(Shown {
        by: "holzinger-bulk",
        charts: &["32000-bytes", "1000000-bytes"],
        tables: &["Transfers"],
        claims: &[
            Claim {
                says: "Without repair symbols almost 40 % of the transfers of 32 kB wait for a retransmission. Here as \
                       streams of QUIC, with the numbers of the loss model read as shares (fractions).",
                paper: "almost 40 %",
                ours: Quantity::Of(transfer(SMALL, "waited")),
                bound: Some(Quantity::Of(transfer(SMALL, "ideal"))),
                holds: Condition::Between(0.35, 0.45),
                because: Some(FEWER_LOSSES),
            },
            Claim {
                says: "Without repair symbols about 5 % of them wait for a second one.",
                paper: "about 5 %",
                ours: Quantity::Of(transfer(SMALL, "waited twice")),
                bound: None,
                holds: Condition::Between(0.025, 0.1),
                because: None,
            },
            Claim {
                says: "Repair symbols, here one, halve the number of transfers that wait.",
                paper: "halved",
                ours: Quantity::Ratio(transfer(SMALL_1, "waited"), transfer(SMALL, "waited")),
                bound: Some(Quantity::Ratio(transfer(SMALL_1, "ideal"), transfer(SMALL, "ideal"))),
                holds: Condition::Between(0.4, 0.6),
                because: None,
            },
            Claim {
                says: "It matters little how many repair symbols there are: about as many transfers wait with five as \
                       with one.",
                paper: "",
                ours: Quantity::Ratio(transfer(SMALL_5, "waited"), transfer(SMALL_1, "waited")),
                bound: Some(Quantity::Ratio(
                    transfer(SMALL_5, "ideal"),
                    transfer(SMALL_1, "ideal"),
                )),
                holds: Condition::Between(0.75, 1.25),
                because: Some(BURSTS),
            },
            Claim {
                says: "The effect on small transfers is large: with three repair symbols the 90th percentile of those \
                       of 32 kB is much lower.",
                paper: "",
                ours: Quantity::Ratio(transfer(SMALL_3, "p90"), transfer(SMALL, "p90")),
                bound: None,
                holds: Condition::AtMost(0.8),
                because: None,
            },
            Claim {
                says: "The effect on large transfers is small: with three repair symbols the 90th percentile of those \
                       of 1 MB is nearly the same.",
                paper: "",
                ours: Quantity::Ratio(transfer(LARGE_3, "p90"), transfer(LARGE, "p90")),
                bound: None,
                holds: Condition::Between(0.9, 1.1),
                because: None,
            },
        ],
    }),
};

const DELAY: Exhibit = Exhibit {
    number: "Fig. 5",
    about: "Delays of the bytes of a steady stream, 5 kB at 60 Hz, with and without repair symbols.",
    concludes: "Repair symbols keep nearly all bytes at the delay of the path, and how long they wait matters little.",
    place: Place::Experiment(Shown {
        by: "holzinger-stream",
        charts: &["percentages-incremental", "fractions-incremental", "time-stepped-incremental"],
        tables: &["Bytes", "Against the bounds"],
        claims: &[
            Claim {
                says: "Without repair symbols 99.1 % of the bytes have the delay of the path, so 0.9 % are late: 10 ms \
                       later or more. Here as a stream of QUIC, with the numbers of the loss model read as percentages.",
                paper: "99.1 % on time",
                ours: Quantity::Of(delay(PERCENT, "late")),
                bound: Some(Quantity::Of(limit(PERCENT, "ideal"))),
                holds: Condition::Between(0.0045, 0.018),
                because: None,
            },
            Claim {
                says: "The same with the numbers read as shares, which Fig. 4 needs: read as percentages, they would make hardly any \
                       of its transfers wait.",
                paper: "99.1 % on time",
                ours: Quantity::Of(delay(SHARES, "late")),
                bound: Some(Quantity::Of(limit(SHARES, "ideal"))),
                holds: Condition::Between(0.0045, 0.018),
                because: Some(
                    "no reading of the loss model fits both figures: read as shares, its numbers take 2.35 % of all \
                     packets, and without repair symbols nobody can have fewer late bytes than the bound.",
                ),
            },
            Claim {
                says: "Without repair symbols 0.1 % of the bytes take longer than a retransmission does, which is 13/8 \
                       of a round trip. Here with percentages.",
                paper: "about 160 ms",
                ours: Quantity::Of(delay(PERCENT, "p99.9")),
                bound: None,
                holds: Condition::Between(120.0, 200.0),
                because: None,
            },
            Claim {
                says: "With three repair symbols 99.8 % have the delay of the path, so 0.2 % are late. Here with \
                       percentages.",
                paper: "99.8 % on time",
                ours: Quantity::Of(delay(PERCENT_3, "late")),
                bound: Some(Quantity::Of(limit(PERCENT_3, "ideal"))),
                holds: Condition::AtMost(0.002),
                because: None,
            },
            Claim {
                says: "With repair symbols late bytes are almost ten times rarer. Here with three, and shares.",
                paper: "almost ten times",
                ours: Quantity::Ratio(delay(SHARES_3, "late"), delay(SHARES, "late")),
                bound: Some(Quantity::Ratio(limit(SHARES_3, "ideal"), limit(SHARES, "ideal"))),
                holds: Condition::AtMost(0.125),
                because: None,
            },
            Claim {
                says: "If repair symbols wait for 25 ms, what they recover comes after 75 ms. Here with three, and \
                       shares, of which the 99th percentile shows it.",
                paper: "75 ms",
                ours: Quantity::Of(delay(SHARES_LATER, "p99")),
                bound: None,
                holds: Condition::Between(70.0, 80.0),
                because: None,
            },
            Claim {
                says: "At the highest percentiles repair symbols do better if they wait longer. Here the 99.9th with \
                       25 ms by that with none, and shares.",
                paper: "",
                ours: Quantity::Ratio(delay(SHARES_LATER, "p99.9"), delay(SHARES_3, "p99.9")),
                bound: None,
                holds: Condition::AtMost(0.95),
                because: Some(
                    "bad periods of this channel last four packets on average, of the stream or of the cross traffic, \
                     so that they end sooner the more is sent, and a longer wait gains nothing.",
                ),
            },
            Claim {
                says: "The same where bad periods last for a time, whatever is sent.",
                paper: "",
                ours: Quantity::Ratio(delay(TIMED_LATER, "p99.9"), delay(TIMED_3, "p99.9")),
                bound: None,
                holds: Condition::AtMost(0.95),
                because: None,
            },
        ],
    }),
};

const AS_RESPONSES: Exhibit = Exhibit {
    number: "Figs. 4 and 5",
    about: "Both once more, as responses of HTTP/3 that ask for their protection, with the paper's congestion control \
            and reaction to loss.",
    concludes: "Requests can say how their responses are to be protected, and both kinds of response gain.",
    place: Place::Experiment(Shown {
        by: "holzinger-http",
        charts: &[],
        tables: &["Transfers", "Bytes of a steady stream"],
        claims: &[
            Claim {
                says: "Without repair symbols almost 40 % of the responses of 32 kB wait for a retransmission.",
                paper: "almost 40 %",
                ours: Quantity::Of(transfer(HTTP_SMALL, "waited")),
                bound: None,
                holds: Condition::Between(0.35, 0.45),
                because: Some(FEWER_LOSSES),
            },
            Claim {
                says: "Without repair symbols about 5 % of them wait for a second one.",
                paper: "about 5 %",
                ours: Quantity::Of(transfer(HTTP_SMALL, "waited twice")),
                bound: None,
                holds: Condition::Between(0.025, 0.1),
                because: None,
            },
            Claim {
                says: "Repair symbols, here one, halve the number of responses that wait.",
                paper: "halved",
                ours: Quantity::Ratio(
                    transfer(HTTP_SMALL_1, "waited"),
                    transfer(HTTP_SMALL, "waited"),
                ),
                bound: None,
                holds: Condition::Between(0.4, 0.6),
                because: None,
            },
            Claim {
                says: "It matters little how many repair symbols there are: about as many responses wait with five as \
                       with one.",
                paper: "",
                ours: Quantity::Ratio(
                    transfer(HTTP_SMALL_5, "waited"),
                    transfer(HTTP_SMALL_1, "waited"),
                ),
                bound: None,
                holds: Condition::Between(0.75, 1.25),
                because: Some(BURSTS),
            },
            Claim {
                says: "Without repair symbols 99.1 % of the bytes of the steady stream have the delay of the path, so \
                       0.9 % are late. Here with percentages.",
                paper: "99.1 % on time",
                ours: Quantity::Of(message(HTTP_PERCENT, "late")),
                bound: None,
                holds: Condition::Between(0.0045, 0.018),
                because: None,
            },
            Claim {
                says: "With three repair symbols 99.8 % have the delay of the path, so 0.2 % are late. Here with \
                       percentages.",
                paper: "99.8 % on time",
                ours: Quantity::Of(message(HTTP_PERCENT_3, "late")),
                bound: None,
                holds: Condition::AtMost(0.002),
                because: None,
            },
        ],
    }),
};

const ORDER: Exhibit = Exhibit {
    number: "Fig. 6",
    about: "The goodput of each resource of a page over time, as the trees of Fig. 1 ask for, and as measured.",
    concludes: "What is measured follows the trees, and by classes the largest contentful paint (LCP) is complete \
                earlier.",
    place: Place::Experiment(Shown {
        by: "holzinger-page",
        charts: &["eps-by-eps", "classes-by-hls", "classes-by-hmm"],
        tables: &["Targets", "Time until each resource is complete"],
        claims: &[
            Claim {
                says: "By classes and HLS, the paper's scheduler, the measured load is close to the intended one. Here \
                       the largest deviation of a time to completion.",
                paper: "",
                ours: Quantity::Of(target(TIMES)),
                bound: None,
                holds: Condition::AtMost(0.05),
                because: None,
            },
            Claim {
                says: "The same of a resource's share of the path.",
                paper: "",
                ours: Quantity::Of(target(ALL_SHARES)),
                bound: None,
                holds: Condition::AtMost(0.05),
                because: None,
            },
            Claim {
                says: "The LCP image is complete earlier by classes than by urgencies. Here by how much, which is to \
                       be seen in the paper's bins of 50 ms.",
                paper: "",
                ours: Quantity::Difference(
                    complete(EPS_LCP, "measured"),
                    complete(CLASSES_LCP, "measured"),
                ),
                bound: Some(Quantity::Difference(
                    complete(EPS_LCP, "ideal"),
                    complete(CLASSES_LCP, "ideal"),
                )),
                holds: Condition::AtLeast(50.0),
                because: None,
            },
            Claim {
                says: "By classes the LCP image, with its larger weight, is complete earlier than other images of the \
                       viewport.",
                paper: "",
                ours: Quantity::Ratio(
                    complete(CLASSES_LCP, "measured"),
                    complete(CLASSES_IMAGE, "measured"),
                ),
                bound: Some(Quantity::Ratio(
                    complete(CLASSES_LCP, "ideal"),
                    complete(CLASSES_IMAGE, "ideal"),
                )),
                holds: Condition::AtMost(0.95),
                because: None,
            },
        ],
    }),
};

/// Why fewer small transfers wait here than in the paper.
const FEWER_LOSSES: &str = "by the loss model itself only some 31 % of such flights lose a packet (column ideal of \
     holzinger-bulk), and more would be against the bound. In the paper cross traffic takes capacity as well; here it only \
     moves the loss process on, since the path cannot carry both.";

/// Why it matters how many repair symbols there are.
const BURSTS: &str = "losses come in bursts of several packets, of which one repair symbol mends one: even a perfect code needs more \
     (column ideal of holzinger-bulk). The paper does not say which numbers it compares.";

/// Transfers, by the table of `holzinger-bulk` or of `holzinger-http`.
const fn transfer(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Transfers", row, column }
}

/// The delay of the bytes of a steady stream.
const fn delay(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Bytes", row, column }
}

/// The bounds of the same rows.
const fn limit(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Against the bounds", row, column }
}

/// The same over HTTP/3.
const fn message(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Bytes of a steady stream", row, column }
}

/// A resource's share of the path, at first.
const fn share(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Shares of the path", row, column }
}

/// When a resource is complete.
const fn complete(row: RowTexts, column: &'static str) -> CellAt {
    CellAt { table: "Time until each resource is complete", row, column }
}

/// How far a page's load is from the intended one.
const fn target(row: RowTexts) -> CellAt {
    CellAt { table: "Targets", row, column: "measured" }
}

const SMALL: RowTexts = &[("channel", "fractions"), ("bytes", "32000"), ("BLT", "0")];
const SMALL_1: RowTexts =
    &[("channel", "fractions"), ("bytes", "32000"), ("BLT", "1"), ("RDT", "0.0 ms")];
const SMALL_3: RowTexts =
    &[("channel", "fractions"), ("bytes", "32000"), ("BLT", "3"), ("RDT", "0.0 ms")];
const SMALL_5: RowTexts =
    &[("channel", "fractions"), ("bytes", "32000"), ("BLT", "5"), ("RDT", "0.0 ms")];
const LARGE: RowTexts = &[("channel", "fractions"), ("bytes", "1000000"), ("BLT", "0")];
const LARGE_3: RowTexts =
    &[("channel", "fractions"), ("bytes", "1000000"), ("BLT", "3"), ("RDT", "0.0 ms")];

const PERCENT: RowTexts = &[("channel", "percentages"), ("policy", "none")];
const PERCENT_3: RowTexts =
    &[("channel", "percentages"), ("policy", "incremental"), ("BLT", "3"), ("RDT", "0.0 ms")];
const SHARES: RowTexts = &[("channel", "fractions"), ("policy", "none")];
const SHARES_3: RowTexts =
    &[("channel", "fractions"), ("policy", "incremental"), ("BLT", "3"), ("RDT", "0.0 ms")];
const SHARES_LATER: RowTexts =
    &[("channel", "fractions"), ("policy", "incremental"), ("BLT", "3"), ("RDT", "25.0 ms")];
const TIMED_3: RowTexts =
    &[("channel", "time-stepped"), ("policy", "incremental"), ("BLT", "3"), ("RDT", "0.0 ms")];
const TIMED_LATER: RowTexts =
    &[("channel", "time-stepped"), ("policy", "incremental"), ("BLT", "3"), ("RDT", "25.0 ms")];

// Responses of HTTP/3 with the paper's congestion control and reaction to loss.
const HTTP_SMALL: RowTexts = &[
    ("bytes", "32000"),
    ("BLT", "0"),
    ("over", "HTTP/3"),
    ("congestion", "bbr:floor=off"),
    ("reaction", "resend-at-once"),
];
const HTTP_SMALL_1: RowTexts = &[
    ("bytes", "32000"),
    ("BLT", "1"),
    ("over", "HTTP/3"),
    ("congestion", "bbr:floor=off"),
    ("reaction", "resend-at-once"),
];
const HTTP_SMALL_5: RowTexts = &[
    ("bytes", "32000"),
    ("BLT", "5"),
    ("over", "HTTP/3"),
    ("congestion", "bbr:floor=off"),
    ("reaction", "resend-at-once"),
];
const HTTP_PERCENT: RowTexts = &[
    ("channel", "percentages"),
    ("BLT", "0"),
    ("over", "HTTP/3"),
    ("congestion", "bbr:floor=off"),
    ("reaction", "resend-at-once"),
];
const HTTP_PERCENT_3: RowTexts = &[
    ("channel", "percentages"),
    ("BLT", "3"),
    ("RDT", "0.0 ms"),
    ("over", "HTTP/3"),
    ("congestion", "bbr:floor=off"),
    ("reaction", "resend-at-once"),
];

const EPS_HTML: RowTexts = &[("priorities", "EPS"), ("scheduler", "eps"), ("resource", "HTML")];
const EPS_LCP: RowTexts = &[("priorities", "EPS"), ("scheduler", "eps"), ("resource", "LCP image")];
const CLASSES_HTML: RowTexts =
    &[("priorities", "classes"), ("scheduler", "hls"), ("resource", "HTML")];
const CLASSES_CSS: RowTexts =
    &[("priorities", "classes"), ("scheduler", "hls"), ("resource", "CSS")];
const CLASSES_LCP: RowTexts =
    &[("priorities", "classes"), ("scheduler", "hls"), ("resource", "LCP image")];
const CLASSES_IMAGE: RowTexts =
    &[("priorities", "classes"), ("scheduler", "hls"), ("resource", "image A")];
const TIMES: RowTexts = &[
    ("priorities", "classes"),
    ("scheduler", "hls"),
    ("target", "largest deviation of a completion time"),
];
const ALL_SHARES: RowTexts =
    &[("priorities", "classes"), ("scheduler", "hls"), ("target", "largest deviation of a share")];
