//! What observers are told about the protocol above.

use super::pair::Pair;
use crate::{Observation, Observer};
use std::sync::{Arc, Mutex};
use std::time::Instant;

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
