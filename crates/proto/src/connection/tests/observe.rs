//! Reports to observers of the protocol above.

use super::pair::{Pair, pattern};
use crate::fec::redundancy::{Decision, Reason, Redundancy, RedundancyFactory, View};
use crate::policy::LossFloor;
use crate::{Dir, Observation, Observer, Protection, Side};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// An event of some protocol.
struct Greeting(&'static str);

/// Records the greetings and nothing else.
struct Greetings(Arc<Mutex<Vec<&'static str>>>);

impl Observer for Greetings {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        if let Observation::Application(event) = observation
            && let Some(Greeting(text)) = event.downcast_ref()
        {
            self.0.lock().unwrap().push(text);
        }
    }
}

#[test]
fn application_events_are_made_for_observers_who_know_them() {
    let mut pair = Pair::connected();
    let (now, heard) = (pair.now, Arc::new(Mutex::new(Vec::new())));
    let connection = pair.client.conn();
    connection.observe_application(now, || -> Greeting { unreachable!("nobody observes") });
    connection.set_observer(now, Box::new(Greetings(heard.clone())));
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

#[derive(Debug)]
struct Thoughts;

impl RedundancyFactory for Thoughts {
    fn name(&self) -> &str {
        "thoughtful"
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(Thoughtful::default())
    }
}

/// The reports to an observer about policies and losses.
#[derive(Default)]
struct News {
    redundancy: Vec<(u16, String, Option<Reason>)>,
    floors: Vec<LossFloor>,
}

struct Reader(Arc<Mutex<News>>);

impl Observer for Reader {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        let mut news = self.0.lock().unwrap();
        match *observation {
            Observation::RedundancyUpdated { session, protection, reason } => {
                news.redundancy.push((session, protection.to_string(), reason));
            }
            Observation::LossEstimateUpdated(floor) => news.floors.push(floor),
            _ => {}
        }
    }
}

/// Sends `pieces` of 6 kB from the server, and loses every `nth` large datagram.
fn send(pair: &mut Pair, protection: Protection, pieces: u32, nth: usize) {
    let id = pair.server.conn().open(Dir::Uni).unwrap();
    pair.server.conn().send_stream(id).protect(Some(protection)).unwrap();
    let mut n = 0;
    pair.filter = Box::new(move |from, bytes| {
        n += usize::from(from == Side::Server && bytes.len() > 200);
        from == Side::Client || bytes.len() <= 200 || n % nth != 0
    });
    let mut client_id = None;
    for _ in 0..pieces {
        pair.server.conn().send_stream(id).write(&pattern(6_000)).unwrap();
        pair.run_for(Duration::from_millis(100));
        let client = pair.client.conn();
        client_id = client_id.or_else(|| client.accept(Dir::Uni));
        let Some(id) = client_id else { continue };
        while let Ok(Some(_)) = client.recv_stream(id).read_chunk(usize::MAX, true) {}
    }
    pair.server.conn().send_stream(id).finish().unwrap();
    pair.run_for(Duration::from_secs(2));
}

#[test]
fn policies_that_change_their_minds_and_losses_are_told() {
    let mut pair = Pair::connected();
    let (now, news) = (pair.now, Arc::new(Mutex::new(News::default())));
    pair.server.conn().set_observer(now, Box::new(Reader(news.clone())));
    send(&mut pair, Protection::new(Arc::new(Thoughts)), 80, 20);
    let told = std::mem::take(&mut news.lock().unwrap().redundancy);
    assert!(told.iter().all(|(session, name, _)| (*session, name.as_str()) == (0, "thoughtful")));
    assert_eq!(told[0].2, Some(Reason::Unknown));
    assert_eq!(told[1].2, Some(Reason::Protects { repairs: 1, wait: Duration::ZERO }));
    assert!(told.windows(2).all(|pair| pair[0] != pair[1]), "told twice: {told:?}");
    let floors = std::mem::take(&mut news.lock().unwrap().floors);
    assert!((1..10).contains(&floors.len()), "{floors:?}");
    assert!(floors.windows(2).all(|pair| pair[1].contradicts(&pair[0])), "{floors:?}");
    let last = floors.last().unwrap();
    assert!(last.low <= 0.05 && 0.05 <= last.high, "{last:?}");

    // The session serves another stream, with a policy that gives no reason.
    send(&mut pair, Protection::tail(1, Duration::ZERO), 2, 1_000);
    let told = &news.lock().unwrap().redundancy;
    let protection = Protection::tail(1, Duration::ZERO).to_string();
    assert_eq!(*told, [(0, protection, None)]);
    assert_eq!(pair.server.conn().protections().len(), 1);
}
