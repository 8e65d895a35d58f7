//! The bench finds values that can be worked out beforehand.

use super::sender::Sender;
use super::single::{SIZES, Size, measure, senders, sizes};
use super::*;
use crate::experiments::controllers::paths::VariedPath;

fn path(name: &str) -> VariedPath {
    let all = paths::all().unwrap();
    all.into_iter().find(|path| path.name == name).unwrap_or_else(|| panic!("no path {name}"))
}

fn ours() -> Vec<Sender> {
    Sender::ours()
}

const FEW: Size = Size { bytes: 1_000_000, seeds: 2 };

#[test]
fn equal_seeds_give_equal_figures() {
    // quinn's BBR is left out: it draws random numbers from the operating system.
    let path = path("random 2.35 %");
    let mut all = senders(&path);
    all.retain(|sender| sender.to_string() != "quinn bbr");
    assert_eq!(all.len(), 2 * ours().len() + Sender::references().len() + 1);
    let setup = |sender| Single { path: &path, sender, size: FEW };
    let setups: Vec<_> = all.into_iter().map(setup).collect();
    let figures = |threads| {
        let options = Options { threads, ..Options::default() };
        let summaries = measure(&setups, &options).unwrap();
        let figures = summaries.into_iter().map(|s| (s.times.clone(), s.reference, s.sent_again));
        figures.collect::<Vec<_>>()
    };
    assert_eq!(figures(1), figures(3));
}

#[test]
fn loss_costs_time_and_is_measured_against_a_slower_link() {
    let path = path("bursts 5 %");
    let setup = |sender| Single { path: &path, sender, size: FEW };
    let setups: Vec<_> = Sender::quinn().into_iter().chain(ours()).map(setup).collect();
    for summary in measure(&setups, &Options::default()).unwrap() {
        let name = &summary.setup.sender;
        // At 9.5 Mbit/s 1 MB takes 842 ms and a round trip, at least.
        assert!(summary.reference.unwrap().as_millis() > 942, "{name}: {:?}", summary.reference);
        assert!(summary.ratio().unwrap() > 0.9, "{name}: {:?}", summary.ratio());
        assert!(summary.sent_again > 0.02, "{name}: {}", summary.sent_again);
        assert_eq!(summary.unfinished, 0.0, "{name}");
    }
}

#[test]
fn a_policer_drops_and_has_no_queue_and_a_queue_does_the_opposite() {
    let (policer, queue) = (path("policer of 0.1 BDP"), path("queue 4 BDP"));
    for sender in ours() {
        let setups =
            [&policer, &queue].map(|path| Single { path, sender: sender.clone(), size: FEW });
        let summaries = measure(&setups, &Options::default()).unwrap();
        let [policer, queue] = &summaries[..] else { panic!("{}", summaries.len()) };
        assert!(policer.overflow > 0.0 && policer.queue_delay == 0.0, "{sender}");
        assert!(queue.queue_delay > 0.0, "{sender}");
    }
}

#[test]
fn a_quick_look_leaves_out_what_takes_long() {
    let bytes = |reduce| -> Vec<(u64, u64)> {
        let options = Options { reduce, ..Options::default() };
        sizes(&options).iter().map(|size| (size.bytes, size.seeds)).collect()
    };
    assert_eq!(bytes(1), SIZES.map(|size| (size.bytes, size.seeds)));
    assert_eq!(bytes(10), [(32_000, 2), (1_000_000, 1)]);
    assert_eq!(bytes(1000), [(32_000, 1)]);
}
