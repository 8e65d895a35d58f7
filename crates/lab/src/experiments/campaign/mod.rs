//! A campaign of random transfers: the seed mixes all kinds of paths, peers, settings and policies. No byte
//! may be lost or changed, no transfer may stall, and no state may be left behind.

mod case;
mod mixed;
mod ours;
pub(super) mod paths;
pub(super) mod settings;

pub(super) use self::case::disturbances;
use self::case::{Peers, TransferCase, Work};
use super::seeded::{Occasion, Outcomes, by_event, table};
use crate::report::{Report, Table};
use crate::{Error, Options};

/// Seeds of a whole campaign.
const SEEDS: u64 = 20_000;

experiment! {
    "campaign": "Random paths, peers, settings and policies: nothing is lost, changed or stalls" (Seeds),
    one in 20 takes 12 s
}

fn run(options: &Options) -> Result<Report, Error> {
    Ok(report(&Outcomes::of(options, SEEDS)?))
}

fn report(outcomes: &Outcomes<TransferCase>) -> Report {
    let text = vec![
            format!(
                "{}, a connection each. The seed decides on the path each way \
                 (rate, delay, queue, loss up to 20 % independent or in bursts, jitter, reordering, \
                 duplication, corruption, marks, packet size, changes of rate and size, outages), on \
                 what happens to the hosts (other ports and addresses, deliberate or not, sleep), on \
                 the settings of both ends (windows, buffers, packet sizes) and on a policy of every \
                 seam.",
                outcomes.seeds()
            ),
            "A seed fails if a byte is wrong or missing, a message is delivered out of its turn, the \
             work is not done in time, an end has something to send and neither does for three probe \
             timeouts, a connection breaks, an assertion fails, or anything is left after the end. `peer \
             failed` counts assertions of quinn that fail when a client of its server moves. Clients \
             of quinn have two quiet seconds first: before its handshake is confirmed, quinn does not \
             get over the loss of a whole window."
                .to_owned(),
    ];
    let tables = vec![by_peers(outcomes), events(outcomes)];
    outcomes.report("A campaign of random transfers", text, tables)
}

fn by_peers(outcomes: &Outcomes<TransferCase>) -> Table {
    let line = |peers: Peers, work: Work| {
        outcomes.line(format!("{}, {}", peers.name(), work.name()), |case| {
            case.peers == peers && case.work == work
        })
    };
    let lines =
        Peers::ALL.iter().flat_map(|peers| Work::ALL.iter().map(|work| line(*peers, *work)));
    table("By peers and work", lines.filter(|line| !line.is_empty()), &[])
}

fn events(outcomes: &Outcomes<TransferCase>) -> Table {
    let events: [Occasion<TransferCase>; 6] = [
        ("the client's address changes", TransferCase::has_move),
        ("a host sleeps", TransferCase::has_sleep),
        ("outage", |case| case.has("outage=")),
        ("the path changes", |case| case.has("step=")),
        ("path MTU discovery", |case| case.sockets.unfragmented),
        ("ECN", |case| case.sockets.ecn),
    ];
    by_event(outcomes, events, &[])
}

#[cfg(test)]
mod tests {
    use super::super::seeded::Case as _;
    use super::*;

    /// The beginning of the campaign that the command runs as a whole.
    #[test]
    fn a_short_campaign() {
        let options = Options { seeds: Some(400), ..Options::default() };
        let report = run(&options).unwrap();
        assert_eq!(report.failures, Vec::<String>::new());
    }

    #[test]
    fn seeds_differ_and_repeat() {
        let text = |seed| TransferCase::of(seed).unwrap().to_string();
        assert_eq!(text(3), text(3));
        assert_ne!(text(3), text(4));
    }
}
