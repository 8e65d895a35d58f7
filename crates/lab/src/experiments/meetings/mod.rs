//! Random meetings: two ends make random calls of the transport, over random paths and while their hosts are
//! disturbed. No byte may be wrong, no end may get stuck, and no state may be left.

mod case;
mod guest;

use std::time::Duration;

use self::case::MeetingCase;
use serde::{Deserialize, Serialize};

use super::seeded::{Line, Occasion, Outcomes, Traffic, by_event};
use crate::report::{Report, Table};
use crate::{Error, Options};

/// Seeds of a whole run.
const SEEDS: u64 = 10_000;

experiment! {
    "meetings": "Two ends do anything at random: nothing is wrong, stuck or left" (Seeds),
    one in 20 takes 10 s
}

/// The counts of a meeting in which nothing went wrong.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct MeetingTally {
    traffic: Traffic,
    /// Bytes that were read, each compared.
    bytes: u64,
    /// Streams whose beginning arrived as promised, although they were reset.
    promises: u64,
    /// Virtual time until nothing was left.
    time: Duration,
}

impl AsRef<Traffic> for MeetingTally {
    fn as_ref(&self) -> &Traffic {
        &self.traffic
    }
}

fn run(options: &Options) -> Result<Report, Error> {
    Ok(report(&Outcomes::of(options, SEEDS)?))
}

fn report(outcomes: &Outcomes<MeetingCase>) -> Report {
    let text = vec![
            format!(
                "{}, a connection each. Both ends open streams, change their protection and priority, \
                 reset and stop them, promise that their beginning arrives although they reset them \
                 (RESET_STREAM_AT), send messages and datagrams, cancel messages, change the protection \
                 of datagrams and update keys, at random times. The paths, the settings and what \
                 happens to the hosts are those of the [campaign](campaign.md): loss, reordering, \
                 duplication, corruption, outages, changes of packet size, moves and sleep. Each end \
                 offers extensions at random.",
                outcomes.seeds()
            ),
            "A seed fails if a byte is wrong, a connection breaks, has something to send and never \
             does, or contradicts itself (`Connection::check`, whenever it has nothing to send), or \
             if 15 minutes of virtual time after the start anything is left \
             (`Connection::check_nothing_left`)."
                .to_owned(),
    ];
    outcomes.report("Random meetings", text, vec![events(outcomes)])
}

fn events(outcomes: &Outcomes<MeetingCase>) -> Table {
    let events: [Occasion<MeetingCase>; 5] = [
        ("all", |_| true),
        ("a host moves or sleeps", MeetingCase::is_disturbed),
        ("outage", |case| case.has("outage=")),
        ("the path changes", |case| case.has("step=")),
        ("streams may be reset at a size", MeetingCase::can_promise),
    ];
    let hours = |line: &Line<'_, MeetingCase>| line.sum(|tally| tally.time.as_secs()) / 3600;
    by_event(
        outcomes,
        events,
        &[
            ("promises", &|line| line.sum(|tally| tally.promises).into()),
            ("bytes", &|line| line.sum(|tally| tally.bytes).into()),
            ("virtual hours", &|line| hours(line).into()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::super::seeded::Case as _;
    use super::*;

    /// The first seeds of the command's run.
    #[test]
    fn the_first_meetings_leave_nothing() {
        let options = Options { seeds: Some(300), ..Options::default() };
        assert_eq!(run(&options).unwrap().failures, Vec::<String>::new());
    }

    #[test]
    fn seeds_differ_and_repeat() {
        let text = |seed| MeetingCase::of(seed).unwrap().to_string();
        assert_eq!(text(3), text(3));
        assert_ne!(text(3), text(4));
    }
}
