use proptest::prelude::*;
use sutura_schedule::Extension;

use super::*;
use crate::testing::{Call, active, any_calls, any_dependency, apply, serve};

const A: Element = Element::Request(0);
const B: Element = Element::Request(4);
const C: Element = Element::Request(8);
const X: Element = Element::Request(12);
const P: Element = Element::Placeholder(0);

fn message(element: Element, parent: Option<Element>, exclusive: bool) -> Message {
    Message { element, parent, weight: 16, exclusive }
}

/// The messages after the tree has received these messages in this order, numbered as they were sent.
fn after(
    carriage: Carriage,
    scheduler: &mut dyn Scheduler,
    arriving: &[(u64, Message)],
) -> DraftMessages {
    let mut messages = DraftMessages::new(carriage);
    for (number, message) in arriving {
        messages.arrive(*number, *message, scheduler).unwrap();
    }
    messages
}

/// The order in which these requests are served, if each has one packet to send.
fn order(scheduler: &mut dyn Scheduler, requests: &[Element]) -> Vec<StreamKey> {
    requests.iter().for_each(|request| scheduler.activate(request.key()));
    std::iter::from_fn(|| {
        let Grant { stream, bytes } = scheduler.next(1400)?;
        scheduler.charge(stream, bytes);
        scheduler.deactivate(stream);
        Some(stream)
    })
    .collect()
}

/// Figure 7: B and then C are put between A and all that depends on it.
#[test]
fn exclusive_messages_that_overtake_each_other_invert_the_tree() {
    let sent = [
        (0, message(A, None, false)),
        (1, message(B, Some(A), true)),
        (2, message(C, Some(A), true)),
    ];
    let overtaken = [sent[0], sent[2], sent[1]];
    let result = |carriage, arriving: &[(u64, Message)]| {
        let mut scheduler = H3Draft::new();
        after(carriage, &mut scheduler, arriving);
        order(&mut scheduler, &[B, C])
    };
    let [intended, inverted] = [[C.key(), B.key()], [B.key(), C.key()]];
    assert_eq!(result(Carriage::OwnStreams, &sent), intended);
    assert_eq!(result(Carriage::OwnStreams, &overtaken), inverted);
    assert_eq!(result(Carriage::ControlStream, &sent), intended);
    assert_eq!(result(Carriage::ControlStream, &overtaken), intended);
}

/// Figure 8: X depends on the root and is being sent. A is to depend on X and B on A, and B's message comes
/// before A's.
const CHAIN: [(u64, Message); 3] = [
    (0, Message { element: X, parent: None, weight: 16, exclusive: false }),
    (2, Message { element: B, parent: Some(A), weight: 16, exclusive: false }),
    (1, Message { element: A, parent: Some(X), weight: 16, exclusive: false }),
];

#[test]
fn a_message_that_overtakes_that_of_its_parent_steals_from_the_root_in_http_2() {
    let mut scheduler = H2::new();
    after(Carriage::OwnStreams, &mut scheduler, &CHAIN[..2]);
    scheduler.activate(X.key());
    scheduler.activate(B.key());
    let served = serve(&mut scheduler, 10);
    assert_eq!(served.iter().filter(|stream| **stream == B.key()).count(), 5, "{served:?}");
    // The parent's message does not mend the place of B: only another message for B does.
    let mut messages = after(Carriage::OwnStreams, &mut scheduler, &CHAIN[2..]);
    assert!(serve(&mut scheduler, 10).contains(&B.key()));
    messages.arrive(3, Message { weight: 32, ..CHAIN[1].1 }, &mut scheduler).unwrap();
    assert_eq!(serve(&mut scheduler, 10), [X.key(); 10]);
}

/// Figure 9, the orphan node: an element that has lost its parent waits for all that have a place.
#[test]
fn an_orphan_steals_nothing_from_the_root() {
    let mut scheduler = H3Draft::new();
    after(Carriage::OwnStreams, &mut scheduler, &CHAIN[..2]);
    // A request whose first message has not arrived waits, too.
    active(&mut scheduler, C.key(), Priority::default());
    scheduler.activate(X.key());
    scheduler.activate(B.key());
    assert_eq!(serve(&mut scheduler, 10), [X.key(); 10]);
    scheduler.deactivate(X.key());
    assert_eq!(serve(&mut scheduler, 4), [B.key(), C.key(), B.key(), C.key()]);
}

/// Figure 9, the control stream: no message overtakes another, but a lost message holds back all behind it.
#[test]
fn a_control_stream_keeps_the_order_and_blocks() {
    let mut scheduler = H3Draft::new();
    let mut messages = after(Carriage::ControlStream, &mut scheduler, &CHAIN[..2]);
    assert_eq!(messages.held(), 1);
    for request in [A, B] {
        active(&mut scheduler, request.key(), Priority::default());
    }
    // A and B are orphans meanwhile, so that B is served with A instead of behind it.
    assert_eq!(serve(&mut scheduler, 4), [A.key(), B.key(), A.key(), B.key()]);
    messages.arrive(1, CHAIN[2].1, &mut scheduler).unwrap();
    assert_eq!(messages.held(), 0);
    assert_eq!(serve(&mut scheduler, 4), [A.key(); 4]);
    scheduler.deactivate(A.key());
    assert_eq!(serve(&mut scheduler, 4), [B.key(); 4]);
}

#[test]
fn placeholders_group_requests_and_can_be_moved() {
    let mut scheduler = H3Draft::new();
    // A is alone, B and C are in a group that weighs as much as A.
    after(
        Carriage::ControlStream,
        &mut scheduler,
        &[
            (0, message(P, None, false)),
            (1, message(A, None, false)),
            (2, message(B, Some(P), false)),
            (3, message(C, Some(P), false)),
        ],
    );
    [A, B, C].iter().for_each(|request| scheduler.activate(request.key()));
    let served = serve(&mut scheduler, 40);
    let count = |wanted: Element| served.iter().filter(|key| **key == wanted.key()).count();
    assert_eq!([A, B, C].map(count), [20, 10, 10]);
    // One message moves the whole group behind A, which is possible only with placeholders.
    after(Carriage::OwnStreams, &mut scheduler, &[(4, message(P, Some(A), false))]);
    assert_eq!(serve(&mut scheduler, 4), [A.key(); 4]);
    scheduler.remove(A.key());
    let mut served = serve(&mut scheduler, 4);
    served.sort_unstable();
    assert_eq!(served, [B.key(), B.key(), C.key(), C.key()]);
}

#[test]
fn placeholders_and_messages_are_bounded() {
    let mut scheduler = H3Draft::new();
    let mut messages = DraftMessages::new(Carriage::OwnStreams);
    for number in 0..1000 {
        let placeholder = Element::Placeholder(number);
        messages.arrive(number, message(placeholder, None, false), &mut scheduler).unwrap();
        active(&mut scheduler, A.key(), message(A, Some(placeholder), false).priority());
    }
    assert_eq!(scheduler.tree.streams() as u64, MAX_PLACEHOLDERS + 1);
    let mut messages = DraftMessages::new(Carriage::ControlStream);
    let mut arrive = |number| messages.arrive(number, message(A, None, false), &mut scheduler);
    for number in 1..=MAX_HELD_MESSAGES as u64 {
        assert_eq!(arrive(number), Ok(()));
    }
    assert_eq!(arrive(MAX_HELD_MESSAGES as u64 + 1), Err(TooManyMessages));
    assert_eq!(arrive(0), Ok(()));
    assert_eq!(arrive(0), Ok(()), "a copy of what is in effect");
    assert_eq!(messages.held(), 0);
}

/// The call with the root as parent of each element that names no parent.
fn on_the_root(call: &Call) -> Call {
    let explicit = |priority: &Priority| match priority.extension {
        None => priority.clone().with_extension(Dependency::DEFAULT),
        Some(_) => priority.clone(),
    };
    match call {
        Call::Insert(stream, priority) => Call::Insert(*stream, explicit(priority)),
        Call::Reprioritize(stream, priority) => Call::Reprioritize(*stream, explicit(priority)),
        other => other.clone(),
    }
}

proptest! {
    #[test]
    fn without_orphans_it_is_the_tree_of_http_2(
        calls in any_calls(any_dependency().prop_map(|dependency| {
            // No element names the default itself: without a name, HTTP/2 moves the element there again, and
            // a message that repeats the last one moves nothing.
            let weight = dependency.weight + u16::from(dependency.weight == 16);
            Extension::new(Dependency { parent: None, weight, ..dependency })
        }))
    ) {
        let mut draft = H3Draft::new();
        let mut h2 = H2::new();
        for call in &calls {
            let ours = apply(&mut draft, &on_the_root(call));
            prop_assert_eq!(ours, apply(&mut h2, call), "{:?}", call);
            prop_assert_eq!(draft.next(1200), h2.next(1200), "after {:?}", call);
        }
    }
}
