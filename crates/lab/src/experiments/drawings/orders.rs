//! Messages in a partial order, of which one is lost.

use std::time::Duration;

use sutura_analysis::statistics::millis;
use sutura_link::LinkConfig;
use sutura_proto::TransportConfig;
use sutura_sim::{Before, DeliveredMessage, Scenario, Update, UpdateOrder, UpdatePlan};

use crate::Error;
use crate::report::{Axis, Cell, Chart, Panel, Series, Table, panels_of};

/// The path: a packet takes some 8 ms.
const PATH: &str = "rate=1mbit delay=20ms";
/// Bytes of a message: one packet.
const BYTES: usize = 900;
/// The packets among which that of the lost message is.
const PACKETS: usize = 60;

/// A drawing: messages, the messages that each comes after, fences, and which message is lost. Numbers are from 0.
struct Drawing {
    name: &'static str,
    after: &'static [&'static [u64]],
    /// The messages before which there is a fence.
    fences: &'static [u64],
    lost: u64,
}

const DRAWINGS: [Drawing; 2] = [
    Drawing {
        name: "eleven messages",
        after: &[&[], &[], &[], &[0, 1], &[2], &[3], &[4], &[4], &[7], &[5], &[6]],
        fences: &[3, 5, 8],
        lost: 5,
    },
    Drawing { name: "three streams", after: &[&[], &[], &[0], &[]], fences: &[], lost: 1 },
];

named! {
    /// What the receiver goes by.
    enum Rule {
        Total = "total",
        Named = "named",
        Fences = "fences",
    }
}

/// A drawing in each order: the messages by number.
pub(super) struct Ordered {
    drawing: &'static Drawing,
    by_rule: Vec<Vec<DeliveredMessage>>,
}

impl Drawing {
    fn plan(&self, rule: Rule) -> UpdatePlan {
        let before = (0..).zip(self.after).map(|(number, after)| match rule {
            Rule::Total => Before::default(),
            Rule::Named => Before { after: after.to_vec(), fence: false },
            Rule::Fences => Before { after: Vec::new(), fence: self.fences.contains(&number) },
        });
        let messages = vec![BYTES; self.after.len()];
        let update = Update { at: Duration::ZERO, messages, before: before.collect() };
        let order = match rule {
            Rule::Total => UpdateOrder::Total,
            Rule::Named | Rule::Fences => UpdateOrder::Named,
        };
        UpdatePlan { updates: [update].into(), order, ..UpdatePlan::equal(0, 0, 0) }
    }

    /// The messages by number if this packet from the server is lost.
    fn deliver(&self, rule: Rule, lost: usize) -> Result<Vec<DeliveredMessage>, Error> {
        let up: LinkConfig = PATH.parse()?;
        let losses: String = (0..10_000).map(|n| if n == lost { '1' } else { '0' }).collect();
        let down: LinkConfig = format!("{PATH} loss=trace:{losses}").parse()?;
        let scenario = Scenario::new(1).link(&up, &down).transport(&TransportConfig::default());
        let mut all = scenario.updates(&self.plan(rule))?.delivered;
        all.sort_by_key(|message| message.number);
        Ok(all)
    }

    /// The packet of the lost message: the one without which it alone comes last.
    fn packet(&self, rule: Rule) -> Result<usize, Error> {
        for packet in 0..PACKETS {
            let all = self.deliver(rule, packet)?;
            let last = all.iter().max_by_key(|message| message.completed);
            let in_order = |a: &&DeliveredMessage, b: &&DeliveredMessage| a.completed < b.completed;
            let others = || all.iter().filter(|message| message.number != self.lost);
            let is_last = last.is_some_and(|message| message.number == self.lost);
            if is_last && self.lost + 1 < all.len() as u64 && others().is_sorted_by(in_order) {
                return Ok(packet);
            }
        }
        Ok(PACKETS)
    }
}

impl Ordered {
    fn of(drawing: &'static Drawing) -> Result<Self, Error> {
        let deliver = |rule: Rule| drawing.deliver(rule, drawing.packet(rule)?);
        let by_rule = Rule::ALL.into_iter().map(deliver).collect::<Result<_, _>>()?;
        Ok(Self { drawing, by_rule })
    }

    /// The messages, each in every order.
    fn rows(&self) -> impl Iterator<Item = (usize, Vec<DeliveredMessage>)> {
        let count = self.drawing.after.len();
        (0..count).map(|n| (n, self.by_rule.iter().filter_map(|all| all.get(n).copied()).collect()))
    }
}

/// Runs the drawings, and draws the first.
pub(super) fn run() -> Result<(Vec<Ordered>, Chart), Error> {
    let orders: Vec<Ordered> = DRAWINGS.iter().map(Ordered::of).collect::<Result<_, _>>()?;
    let panel = |order: &Ordered| {
        let number = |message: &DeliveredMessage| (message.number + 1) as f64;
        let at = |time: fn(&DeliveredMessage) -> Duration, all: &[DeliveredMessage]| {
            all.iter().map(|message| (millis(time(message)), number(message))).collect()
        };
        let complete = order.by_rule.first().map_or(&[][..], Vec::as_slice);
        let complete = Series::points("complete", at(|message| message.completed, complete));
        let delivered = Rule::ALL
            .into_iter()
            .zip(&order.by_rule)
            .map(|(rule, all)| Series::points(rule.name(), at(|message| message.delivered, all)));
        Panel {
            title: order.drawing.name.to_owned(),
            ..Panel::of(std::iter::once(complete).chain(delivered))
        }
    };
    let panels: Vec<Panel> = orders.iter().map(panel).collect();
    let axes = [Axis::linear("time in ms"), Axis::linear("message")];
    let chart = panels_of(
        "orders",
        "When messages are complete, and delivered in each order",
        axes,
        panels,
    );
    Ok((orders, chart))
}

/// When each message is complete and delivered.
pub(super) fn messages(orders: &[Ordered]) -> Table {
    let rows = orders.iter().flat_map(|order| order.rows().map(move |(n, row)| (order, n, row)));
    type Row<'a> = (&'a Ordered, usize, Vec<DeliveredMessage>);
    let rows: Vec<Row<'_>> = rows.collect();
    let after = |order: &Ordered, n: usize| {
        let numbers: Vec<String> =
            order.drawing.after[n].iter().map(|before| (before + 1).to_string()).collect();
        numbers.join(", ")
    };
    let delivered =
        |row: &Row<'_>, rule: usize| Cell::from(row.2.get(rule).map(|message| message.delivered));
    Table::of(
        "Messages",
        &rows,
        &[
            ("drawing", &|row| row.0.drawing.name.into()),
            ("message", &|row| (row.1 + 1).into()),
            ("after", &|row| after(row.0, row.1).into()),
            ("complete", &|row| row.2.first().map(|message| message.completed).into()),
            ("total", &|row| delivered(row, 0)),
            ("named", &|row| delivered(row, 1)),
            ("fences", &|row| delivered(row, 2)),
        ],
    )
}

/// How many messages wait for the lost one in each order.
pub(super) fn waits(orders: &[Ordered]) -> Table {
    let mut table = Table::new("Waiting", ["drawing", "order", "messages", "wait", "longest"]);
    for order in orders {
        for (rule, all) in Rule::ALL.into_iter().zip(&order.by_rule) {
            let wait = |message: &DeliveredMessage| message.delivered - message.completed;
            let lost = all.iter().find(|message| message.number == order.drawing.lost);
            let mended = lost.map_or(Duration::MAX, |message| message.completed);
            // What is delivered before has waited for something else.
            let for_the_lost = |message: &&DeliveredMessage| {
                !wait(message).is_zero() && message.delivered >= mended
            };
            table.row([
                Cell::from(order.drawing.name),
                rule.name().into(),
                all.len().into(),
                all.iter().filter(for_the_lost).count().into(),
                all.iter().filter(for_the_lost).map(wait).max().unwrap_or_default().into(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_message_holds_up_what_its_order_says() {
        let (orders, _) = run().unwrap();
        let table = waits(&orders);
        let waiting: Vec<f64> = table.rows.iter().filter_map(|row| row[3].number()).collect();
        // Behind the sixth message: all five, only the tenth, and the three behind the next fence.
        assert_eq!(waiting, [5.0, 1.0, 3.0, 2.0, 0.0, 0.0]);
    }
}
