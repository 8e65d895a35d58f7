//! Cases in which both ends are ours.

use std::time::Duration;

use sutura_proto::Protection;
use sutura_random::Rng;
use sutura_sim::{DatagramPlan, Ends, Failure, MessagePlan, Scenario, UpdateOrder, UpdatePlan};

use super::super::seeded::Traffic;
use super::case::{TransferCase, Work};

/// By when everything is done. A path may be gone for half a minute and lose a fifth of the rest.
const DEADLINE: Duration = Duration::from_secs(600);
/// How many events are shown with a failure.
const EVENTS: usize = 30;

/// Runs a case.
///
/// # Errors
/// The first fault that the oracles of [`Scenario`] find.
pub fn run(case: &TransferCase) -> Result<Traffic, Failure> {
    let mut scenario = Scenario::new(case.seed)
        .link(&case.up, &case.down)
        .client(&case.client)
        .server(&case.server)
        .sockets(case.sockets)
        .protect(case.server.redundancy.clone().map(Protection::new))
        .deadline(DEADLINE)
        .checked()
        .trace(EVENTS);
    for (at, disturbance) in &case.disturbances {
        scenario = scenario.disturb(*at, *disturbance);
    }
    let ends = work(scenario, case)?;
    let recovered = ends.client.fec.recovered + ends.server.fec.recovered;
    Ok(Traffic::of(&[ends.up, ends.down], recovered))
}

fn work(scenario: Scenario, case: &TransferCase) -> Result<Ends, Failure> {
    let mut rng = Rng::new(!case.seed);
    let interval = Duration::from_millis(1 + rng.below(30));
    let count = 20 + rng.below(100);
    match case.work {
        Work::Bulk => {
            let transfers = std::iter::repeat_n(case.transfer(), case.streams as usize);
            let scenario = scenario.transfers(transfers).parallel(case.streams as usize);
            let scenario = if case.unordered { scenario.unordered() } else { scenario };
            Ok(scenario.run()?.ends)
        }
        Work::Updates => {
            let order = [UpdateOrder::Partial, UpdateOrder::Total][rng.below(2) as usize];
            let (messages, size) = (1 + rng.below(20) as usize, 16 + rng.below(3000) as usize);
            let plan = UpdatePlan { order, ends: true, ..UpdatePlan::equal(8, messages, size) };
            Ok(scenario.updates(&plan)?.ends)
        }
        Work::Messages => {
            let longest = case.server.send_buffer.min(20_000);
            let size = 8 + rng.below(longest as u64 - 8) as usize;
            let mut plan = MessagePlan::steady(count as u32, size, interval);
            plan.deadline = (rng.below(2) == 0).then_some(Duration::from_millis(200));
            plan.announce = rng.below(2) == 0;
            Ok(scenario.messages(plan)?.ends)
        }
        Work::Datagrams => {
            let size = 8 + rng.below(1000) as usize;
            Ok(scenario.datagrams(DatagramPlan { size, interval, count })?.ends)
        }
    }
}
