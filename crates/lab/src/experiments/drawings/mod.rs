//! What the drawings of papers say, run and drawn from the run: the order of messages of which one is lost
//! (`orders`), and the dependency trees of HTTP/2 and of HTTP/3's drafts (`trees`).

mod orders;
mod trees;

use crate::report::{Report, report_of};
use crate::{Error, Options};

experiment! {
    "drawings": "What the drawings of the papers say: orders, fences and dependency trees"
}

fn run(_: &Options) -> Result<Report, Error> {
    let (orders, chart) = orders::run()?;
    let (trees, picture) = trees::run()?;
    let tables = [orders::messages(&orders), orders::waits(&orders), trees::table(&trees)];
    let report = report_of("The drawings of the papers", &TEXT, tables, [chart]);
    Ok(Report { pictures: vec![picture], ..report })
}

const TEXT: [&str; 2] = [
    "Messages (Eghbal and Lu 2025, Figs. 1 to 3; Marx et al. 2020, Fig. 2): each is a stream of its own in one packet, \
     sent at once over 1 Mbit/s and 20 ms one way, and the packet of one message is lost. `complete` is when all of a \
     message has arrived in total order, and the other columns are when it is delivered: in total order, as TCP does; after the \
     messages that it names; and behind fences, before which all messages are delivered before any behind them. Where the papers' text does not say what a message \
     comes after, it is chosen so that its fences are where the paper has them. A message waits if it is delivered later than it is complete.",
    "Trees (Marx et al. 2020, Figs. 4, 5, 7 and 8): streams with as much to send as they may, of which the scheduler \
     `h2` or `h3-draft` chooses twelve packets. `first` is the stream of the first packet.",
];
