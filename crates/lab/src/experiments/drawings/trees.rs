//! Which streams a dependency tree serves.

use sutura_analysis::figure::{PacketRow, Picture, packets};
use sutura_research::h3_draft::{Carriage, DraftMessages, Element, Message};
use sutura_schedule::{Grant, Scheduler, StreamKey};

use crate::Error;
use crate::report::{Cell, Table};

/// Packets that are chosen.
const TURNS: usize = 12;
/// The streams of the drawings.
const NAMES: [&str; 5] = ["A", "B", "C", "D", "E"];
const A: StreamKey = 0;
const B: StreamKey = 4;
const C: StreamKey = 8;
const D: StreamKey = 12;
const E: StreamKey = 16;

/// A drawing of a tree: what the server is told in which order, and which streams then have something to send.
struct Tree {
    figure: &'static str,
    what: &'static str,
    /// The scheduler.
    scheme: &'static str,
    told: &'static [Message],
    sending: &'static [StreamKey],
}

const fn on(stream: StreamKey, parent: Option<StreamKey>, exclusive: bool) -> Message {
    let parent = match parent {
        Some(parent) => Some(Element::Request(parent)),
        None => None,
    };
    Message { element: Element::Request(stream), parent, weight: 16, exclusive }
}

/// E with the largest weight, below C alone.
const HEAVY: Message = Message {
    element: Element::Request(E),
    parent: Some(Element::Request(C)),
    weight: 256,
    exclusive: true,
};

const TREES: [Tree; 8] = [
    Tree {
        figure: "Fig. 4",
        what: "D below A",
        scheme: "h2",
        told: &[
            on(A, None, false),
            on(B, Some(A), false),
            on(C, Some(A), false),
            on(D, Some(A), false),
        ],
        sending: &[B, C, D],
    },
    Tree {
        figure: "Fig. 4",
        what: "D below A, exclusively",
        scheme: "h2",
        told: &[
            on(A, None, false),
            on(B, Some(A), false),
            on(C, Some(A), false),
            on(D, Some(A), true),
        ],
        sending: &[B, C, D],
    },
    Tree {
        figure: "Fig. 5",
        what: "E below C",
        scheme: "h2",
        told: &[on(D, None, false), on(C, None, false), HEAVY],
        sending: &[C, D, E],
    },
    Tree {
        figure: "Fig. 5",
        what: "E below C, which is gone",
        scheme: "h2",
        told: &[on(D, None, false), HEAVY],
        sending: &[D, E],
    },
    Tree {
        figure: "Fig. 7",
        what: "B, then C, between A and the rest",
        scheme: "h3-draft",
        told: &[on(A, None, false), on(B, Some(A), true), on(C, Some(A), true)],
        sending: &[B, C],
    },
    Tree {
        figure: "Fig. 7",
        what: "C's message overtakes B's",
        scheme: "h3-draft",
        told: &[on(A, None, false), on(C, Some(A), true), on(B, Some(A), true)],
        sending: &[B, C],
    },
    Tree {
        figure: "Fig. 8",
        what: "A below D, then B below A",
        scheme: "h2",
        told: &[on(D, None, false), on(A, Some(D), false), on(B, Some(A), false)],
        sending: &[B, D],
    },
    Tree {
        figure: "Fig. 8",
        what: "B's message overtakes A's",
        scheme: "h2",
        told: &[on(D, None, false), on(B, Some(A), false)],
        sending: &[B, D],
    },
];

/// The packets that a tree chooses, by the place of their stream in [`NAMES`].
pub(super) struct Chosen {
    tree: &'static Tree,
    packets: Vec<usize>,
}

impl Tree {
    fn serve(&'static self) -> Result<Chosen, Error> {
        let mut scheduler = sutura_research::schedulers().find(self.scheme)?.build();
        if self.scheme == "h2" {
            for message in self.told {
                scheduler.insert(message.element.key(), message.priority());
            }
        } else {
            let mut messages = DraftMessages::new(Carriage::OwnStreams);
            for (number, message) in (0..).zip(self.told) {
                // There are too few of them to be refused.
                let _ = messages.arrive(number, *message, &mut *scheduler);
            }
        }
        self.sending.iter().for_each(|stream| scheduler.activate(*stream));
        let streams = (0..TURNS).map_while(|_| turn(&mut *scheduler));
        Ok(Chosen { tree: self, packets: streams.map(|stream| (stream / 4) as usize).collect() })
    }
}

fn turn(scheduler: &mut dyn Scheduler) -> Option<StreamKey> {
    let Grant { stream, bytes } = scheduler.next(1400)?;
    scheduler.charge(stream, bytes);
    Some(stream)
}

/// Runs the drawings, and draws them.
pub(super) fn run() -> Result<(Vec<Chosen>, Picture), Error> {
    let chosen: Vec<Chosen> = TREES.iter().map(Tree::serve).collect::<Result<_, _>>()?;
    let rows = chosen.iter().map(|Chosen { tree, packets }| PacketRow {
        label: format!("{}: {}", tree.figure, tree.what),
        streams: packets.clone(),
    });
    let rows: Vec<PacketRow> = rows.collect();
    let title = "Dependency trees: a box is a packet, from left to right";
    let svg = packets(&rows, &NAMES.map(str::to_owned), title);
    Ok((chosen, Picture { name: "trees".to_owned(), svg }))
}

/// The share of the packets that each stream gets.
pub(super) fn table(all: &[Chosen]) -> Table {
    let share = |of: &Chosen, stream: usize| {
        let sends = of.tree.sending.contains(&(stream as StreamKey * 4));
        let count = of.packets.iter().filter(|carried| **carried == stream).count();
        Cell::from(sends.then_some(Cell::Share(count as f64 / TURNS as f64)))
    };
    let first = |of: &Chosen| of.packets.first().and_then(|stream| NAMES.get(*stream)).copied();
    Table::of(
        "Trees",
        all,
        &[
            ("figure", &|of| of.tree.figure.into()),
            ("tree", &|of| of.tree.what.into()),
            ("scheduler", &|of| of.tree.scheme.into()),
            ("first", &|of| first(of).unwrap_or("-").into()),
            ("B", &|of| share(of, 1)),
            ("C", &|of| share(of, 2)),
            ("D", &|of| share(of, 3)),
            ("E", &|of| share(of, 4)),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_serve_what_the_drawings_say() {
        let (all, picture) = run().unwrap();
        let firsts: Vec<usize> = all.iter().map(|of| of.packets[0]).collect();
        let shares = |tree: usize, stream: usize| {
            all[tree].packets.iter().filter(|carried| **carried == stream).count()
        };
        // All alike, D alone; D and C alike, E no better than D; C before B, B before C; D alone, D and B alike.
        assert_eq!((shares(0, 3), shares(1, 3)), (4, 12));
        assert_eq!((shares(2, 4), shares(2, 2), shares(3, 4)), (0, 6, 6));
        assert_eq!([firsts[4], firsts[5]], [2, 1]);
        assert_eq!((shares(6, 1), shares(7, 1)), (0, 6));
        assert!(picture.svg.contains("Fig. 8"));
    }
}
