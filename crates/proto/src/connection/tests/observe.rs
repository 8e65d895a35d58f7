//! Reports to observers of the protocol above.

use super::*;
use crate::fec::redundancy::{Decision, Reason, Redundancy, View};
use crate::policy::LossFloor;

/// An event of some protocol.
struct Greeting(&'static str);

#[test]
fn application_events_are_made_for_observers_who_know_them() {
    let mut pair = Pair::connected();
    let now = pair.now;
    let connection = pair.client.conn();
    connection.observe_application(now, || -> Greeting { unreachable!("nobody observes") });
    let heard = pair.watch(Side::Client, |observation, heard| {
        if let Observation::Application(event) = observation
            && let Some(Greeting(text)) = event.downcast_ref()
        {
            heard.push(*text);
        }
    });
    let connection = pair.client.conn();
    connection.observe_application(now, || Greeting("hello"));
    connection.observe_application(now, || "an event of another protocol");
    connection.observe_application(now, || Greeting("bye"));
    assert_eq!(*heard.lock().unwrap(), ["hello", "bye"]);
}

/// Sends nothing, and claims to protect the symbols that it has seen: a repair symbol for ten symbols.
#[derive(Debug, Default)]
struct Thoughtful {
    seen: u32,
}

impl Redundancy for Thoughtful {
    fn on_source_sent(&mut self, _now: Instant, _id: u64, _view: &View) {
        self.seen += 1;
    }

    fn on_repair_sent(&mut self, _now: Instant, _view: &View) {}

    fn decide(&self, _now: Instant, _view: &View) -> Decision {
        Decision::Source
    }

    fn reason(&self) -> Option<Reason> {
        let repairs = self.seen / 10;
        Some(if repairs == 0 {
            Reason::Unknown
        } else {
            Reason::Protects { repairs, wait: Duration::ZERO }
        })
    }
}

/// A report about policies or losses.
enum News {
    Redundancy((u16, String, Option<Reason>)),
    Floor(LossFloor),
}

/// Sends `pieces` of 6 kB from the server, and loses every `nth` large datagram.
fn send(pair: &mut Pair, protection: Protection, pieces: u32, nth: usize) {
    let id = pair.open(Side::Server, Some(protection));
    pair.lose_larger(Side::Server, 200, move |n| n % nth == 0);
    for _ in 0..pieces {
        pair.write(Side::Server, id, 6_000);
        pair.run_for(100 * MS);
        pair.drain(id);
    }
    pair.server.conn().send_stream(id).finish().unwrap();
    pair.run_for(2 * SECOND);
}

#[test]
fn policies_that_change_their_minds_and_losses_are_told() {
    let mut pair = Pair::connected();
    let news = pair.watch(Side::Server, |observation, news| match *observation {
        Observation::RedundancyUpdated { session, protection, reason } => {
            news.push(News::Redundancy((session, protection.to_string(), reason)));
        }
        Observation::LossEstimateUpdated(floor) => news.push(News::Floor(floor)),
        _ => {}
    });
    let thoughtful = made("thoughtful", || Box::new(Thoughtful::default()));
    send(&mut pair, thoughtful, 80, 20);
    let (mut told, mut floors) = (Vec::new(), Vec::new());
    news.lock().unwrap().drain(..).for_each(|news| match news {
        News::Redundancy(redundancy) => told.push(redundancy),
        News::Floor(floor) => floors.push(floor),
    });
    assert!(told.iter().all(|(session, name, _)| (*session, name.as_str()) == (0, "thoughtful")));
    assert_eq!(told[0].2, Some(Reason::Unknown));
    assert_eq!(told[1].2, Some(Reason::Protects { repairs: 1, wait: Duration::ZERO }));
    assert!(told.windows(2).all(|pair| pair[0] != pair[1]), "told twice: {told:?}");
    assert!((1..10).contains(&floors.len()), "{floors:?}");
    assert!(floors.windows(2).all(|pair| pair[1].contradicts(&pair[0])), "{floors:?}");
    let last = floors.last().unwrap();
    assert!(last.low <= 0.05 && 0.05 <= last.high, "{last:?}");

    // The session serves another stream, with a policy that gives no reason.
    send(&mut pair, Protection::tail(1, Duration::ZERO), 2, 1_000);
    let told = news.lock().unwrap();
    let told: Vec<_> = told.iter().filter(|news| matches!(news, News::Redundancy(_))).collect();
    let [News::Redundancy(told)] = told[..] else { panic!("told {} times", told.len()) };
    assert_eq!(*told, (0, Protection::tail(1, Duration::ZERO).to_string(), None));
    assert_eq!(pair.server.conn().protections().len(), 1);
}
