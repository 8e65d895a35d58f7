//! Ordered groups over lossy paths, with cancelled messages, and against peers that flood.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{ALGORITHMS, MS, over};
use sutura_groups::{
    Delivered, GroupError, GroupId, GroupMessage, MAX_GAPS, MAX_GROUPS, MAX_HELD_BYTES,
    MAX_MESSAGE, ReceiveGroups, SendGroupError, SendGroups,
};
use sutura_proto::{
    Algorithm, Connection, Dir, Event, MessageOptions, MessageOutcome, Priority, SendMessageError,
    Side, TransportConfig,
};
use sutura_sim::{App, AppError, Clock, Ends, Progress, UpdateOrder, UpdatePlan, UpdatesOutcome};

fn config(policy: Option<&str>) -> TransportConfig {
    TransportConfig::default()
        .with_max_concurrent_uni_streams(4096)
        .with_redundancy(policy.map(|policy| sutura_research::redundancy().find(policy).unwrap()))
}

fn run(config: &TransportConfig, path: &str, plan: &UpdatePlan, seed: u64) -> UpdatesOutcome {
    let outcome = over(seed, path).transport(config).updates(plan);
    outcome.unwrap_or_else(|failure| panic!("{config:?}: {failure}"))
}

/// The 99th percentile of the time for which complete messages wait.
fn blocked(outcome: &UpdatesOutcome) -> Duration {
    let mut times: Vec<_> = outcome.delivered.iter().map(|m| m.delivered - m.completed).collect();
    times.sort_unstable();
    times[times.len() * 99 / 100]
}

/// The sink checks that every message comes once, undamaged, and in its turn.
#[test]
fn every_message_is_delivered_in_its_turn_whatever_the_path_does() {
    let paths = [
        "rate=20mbit delay=30ms loss=bern:0.03",
        "rate=20mbit delay=30ms loss=ge:0.02,0.3,1,0 reorder=0.1,20ms duplicate=0.05",
        "rate=20mbit delay=30ms queue=20p corrupt=0.01",
    ];
    for (seed, path) in (0..).zip(paths) {
        for algorithm in ALGORITHMS {
            for policy in
                [None, Some("auto"), Some("tail:burst=2"), Some("messages"), Some("block")]
            {
                let config = config(policy).with_congestion(Arc::new(algorithm));
                for order in [UpdateOrder::Total, UpdateOrder::Partial] {
                    let plan = UpdatePlan { order, ..UpdatePlan::equal(8, 20, 1100) };
                    assert_eq!(run(&config, path, &plan, seed).delivered.len(), 160);
                }
            }
        }
    }
}

#[test]
fn messages_of_an_update_do_not_wait_for_each_other() {
    let path = "rate=50mbit delay=50ms loss=bern:0.005";
    let waits = [UpdateOrder::Total, UpdateOrder::Partial].map(|order| {
        let plan = UpdatePlan { order, ..UpdatePlan::equal(40, 100, 1100) };
        blocked(&run(&config(None), path, &plan, 5))
    });
    println!("blocked at most, 99 of 100: {waits:?}");
    assert!(waits[0] > 90 * MS && waits[1] < waits[0]);
}

/// A peer that allows few streams, and less data than one update has.
#[test]
fn small_windows_do_not_stall_a_group() {
    let small = config(Some("auto"))
        .with_max_concurrent_uni_streams(3)
        .with_max_concurrent_group_streams(3)
        .with_stream_receive_window(4_000)
        .with_max_stream_receive_window(4_000)
        .with_receive_window(6_000)
        .with_max_receive_window(6_000);
    for order in [UpdateOrder::Total, UpdateOrder::Partial] {
        let plan = UpdatePlan { order, ..UpdatePlan::equal(5, 10, 3000) };
        let outcome = run(&small, "rate=10mbit delay=20ms loss=bern:0.05", &plan, 9);
        assert_eq!(outcome.delivered.len(), 50);
    }
}

/// With the 100 streams that a connection permits by default, no more than 100 messages would be on their way
/// in a round trip: 11 Mbit/s.
#[test]
fn a_receiver_permits_as_many_streams_as_groups_need() {
    let path = "rate=50mbit delay=50ms";
    let times = [100, 4096].map(|max_concurrent_group_streams| {
        let config = TransportConfig::default()
            .with_max_concurrent_group_streams(max_concurrent_group_streams)
            .with_congestion(Arc::new(Algorithm::CUBIC));
        assert_eq!(config.max_concurrent_uni_streams, 100);
        let plan = UpdatePlan::equal(100, 100, 1100);
        let outcome = run(&config, path, &plan, 3);
        let last = outcome.delivered.iter().map(|message| message.delivered).max().unwrap();
        last - outcome.delivered.iter().map(|message| message.delivered).min().unwrap()
    });
    println!("100 updates of 100 messages: {times:?}");
    // 11 MB at 50 Mbit/s, with the start of the congestion window, and a hundred round trips.
    assert!(times[1] < 4000 * MS && times[0] > 9000 * MS, "{times:?}");
    let default = TransportConfig::default().max_concurrent_group_streams;
    assert_eq!(default, 4096);
}

/// An application of a test: a function that runs at each poll.
struct Act<F>(F);

impl<F> App<Connection> for Act<F>
where
    F: FnMut(Instant, &mut Connection, Option<Event>) -> Result<Option<Instant>, AppError>
        + 'static,
{
    fn on_event(
        &mut self,
        now: Instant,
        quic: &mut Connection,
        event: Event,
    ) -> Result<(), AppError> {
        (self.0)(now, quic, Some(event)).map(|_| ())
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        (self.0)(now, quic, None)
    }
}

/// Receives groups. Runs on the server.
struct Receiver {
    groups: ReceiveGroups,
    delivered: Vec<Delivered>,
    error: Option<GroupError>,
    most_held: usize,
}

impl Receiver {
    fn new() -> Self {
        let groups = ReceiveGroups::new(Side::Server);
        Self { groups, delivered: Vec::new(), error: None, most_held: 0 }
    }
}

impl App<Connection> for Receiver {
    fn on_event(&mut self, _: Instant, _: &mut Connection, event: Event) -> Result<(), AppError> {
        if let Event::Stream(event) = event {
            self.groups.on_event(&event);
        }
        Ok(())
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        if self.error.is_none() {
            self.error = self.groups.receive(now, quic).err();
        }
        self.most_held = self.most_held.max(self.groups.held_bytes());
        self.delivered.extend(std::iter::from_fn(|| self.groups.pop()));
        Ok(None)
    }
}

/// Runs `client` against a [`Receiver`] until the receiver has all that it should have, and returns it.
fn receive(
    path: &str,
    config: &TransportConfig,
    client: impl FnMut(Instant, &mut Connection, Option<Event>) -> Result<Option<Instant>, AppError>
    + 'static,
    mut done: impl FnMut(&Receiver) -> bool,
) -> Ends {
    let scenario = over(4, path).transport(config);
    let watch = |view: &sutura_sim::View<'_, Act<_>, Receiver>| Progress {
        done: view.server.is_some_and(&mut done),
        busy: false,
    };
    scenario.drive(Clock::default(), Act(client), Receiver::new, watch).unwrap()
}

fn numbers(receiver: &Receiver) -> Vec<u64> {
    receiver.delivered.iter().map(|message| message.number).collect()
}

/// Every third message is cancelled right after it was sent or some time later, and later messages do not
/// wait for it.
#[test]
fn what_is_cancelled_is_not_waited_for() {
    let (mut groups, mut group, mut sent) = (SendGroups::default(), None, Vec::new());
    let mut fates = Vec::new();
    let client = move |now: Instant, quic: &mut Connection, event: Option<Event>| {
        if event == Some(Event::MessageOutcomes) {
            while let Some((id, outcome)) = quic.poll_message_outcome() {
                fates.extend(groups.on_outcome(quic, id, outcome).map(|at| (at, outcome)));
            }
            let unknown = fates.iter().filter(|(_, outcome)| *outcome == MessageOutcome::GivenUp);
            assert!(unknown.clone().all(|((_, number), _)| number % 3 == 0), "{fates:?}");
        }
        if event.is_some() || quic.is_handshaking() || sent.len() == 90 {
            return Ok(None);
        }
        let group = *group.get_or_insert_with(|| groups.open(Priority::default()).unwrap());
        for _ in 0..9 {
            let message = GroupMessage::new(&[7; 2500]);
            sent.push(groups.send(quic, group, &message).unwrap());
        }
        let last = sent.len() as u64;
        // Some messages have not left yet, others have arrived.
        groups.cancel(quic, group, last - 9);
        groups.cancel(quic, group, last - 3);
        groups.cancel(quic, group, last.saturating_sub(15) / 3 * 3);
        groups.fence(group);
        if last == 90 {
            groups.finish(quic, group);
            let late = GroupMessage::new(b"late");
            assert_eq!(groups.send(quic, group, &late), Err(SendGroupError::NoGroup));
        }
        Ok(Some(now + 5 * MS))
    };
    let mut order = Vec::new();
    receive("rate=20mbit delay=20ms loss=bern:0.05", &config(None), client, |receiver| {
        assert_eq!(receiver.error, None);
        order = numbers(receiver);
        let kept = (0..90).filter(|number| number % 3 != 0);
        let got: BTreeSet<u64> = order.iter().copied().collect();
        kept.clone().all(|number| got.contains(&number))
    });
    // Fences hold, with or without the cancelled messages.
    let stages: Vec<u64> = order.iter().map(|number| number / 9).collect();
    assert!(stages.is_sorted(), "{order:?}");
    assert!(order.len() < 90, "nothing was cancelled in time: {order:?}");
}

/// Messages that name others come after these, and not before anything else.
#[test]
fn messages_come_after_those_that_they_name() {
    let (mut groups, mut sent) = (SendGroups::default(), false);
    let client = move |_: Instant, quic: &mut Connection, event: Option<Event>| {
        if event.is_some() || quic.is_handshaking() || std::mem::replace(&mut sent, true) {
            return Ok(None);
        }
        let group = groups.open(Priority::default()).unwrap();
        for number in 0..60u64 {
            let after = if number % 4 == 3 { vec![number - 1, number / 2] } else { vec![] };
            let message = GroupMessage::new(&[1; 900]).with_after(&after);
            assert_eq!(groups.send(quic, group, &message), Ok(number));
        }
        let unsent = GroupMessage::default().with_after(&[60]);
        assert_eq!(groups.send(quic, group, &unsent), Err(SendGroupError::NotSent(60)));
        let many: Vec<u64> = (0..40).collect();
        let many = GroupMessage::default().with_after(&many);
        assert_eq!(groups.send(quic, group, &many), Err(SendGroupError::TooManyAfter));
        Ok(None)
    };
    let mut order = Vec::new();
    receive("rate=20mbit delay=20ms loss=bern:0.2", &config(None), client, |receiver| {
        order = numbers(receiver);
        order.len() == 60
    });
    let place = |number: u64| order.iter().position(|other| *other == number);
    for number in (3..60).step_by(4) {
        assert!(place(number - 1) < place(number) && place(number / 2) <= place(number));
    }
    assert!(!order.is_sorted(), "nothing was lost");
}

/// Sends `make(n)` as the n-th message, as fast as the transport takes them.
fn flood(
    mut make: impl FnMut(u64) -> Option<Vec<u8>> + 'static,
) -> impl FnMut(Instant, &mut Connection, Option<Event>) -> Result<Option<Instant>, AppError> {
    let (mut count, mut next) = (0, None);
    move |_, quic: &mut Connection, event| {
        while event == Some(Event::MessageOutcomes) && quic.poll_message_outcome().is_some() {}
        if quic.is_handshaking() {
            return Ok(None);
        }
        loop {
            next = next.take().or_else(|| make(count));
            let Some(data) = next.clone() else { return Ok(None) };
            match quic.send_message(data.into(), MessageOptions::default()) {
                Ok(_) => (next, count) = (None, count + 1),
                Err(SendMessageError::Blocked) => return Ok(None),
                Err(error) => return Err(AppError(error.to_string())),
            }
        }
    }
}

/// Appends a variable-length integer.
fn varint(out: &mut Vec<u8>, value: u64) {
    out.extend((value | 3 << 62).to_be_bytes());
}

fn message(group: u64, number: u64, free: u64, size: usize) -> Vec<u8> {
    let mut out = Vec::new();
    [2 * group, number, free, 0].iter().for_each(|value| varint(&mut out, *value));
    out.resize(out.len() + size, 0);
    out
}

/// The error that a flood leads to.
fn refused(make: impl FnMut(u64) -> Option<Vec<u8>> + 'static) -> GroupError {
    let limits =
        config(None).with_max_concurrent_uni_streams(1000).with_max_concurrent_group_streams(1000);
    let config = limits.with_send_buffer(8 << 20);
    let mut error = None;
    receive("rate=1gbit delay=1ms", &config, flood(make), |receiver| {
        error = receiver.error;
        error.is_some()
    });
    error.unwrap()
}

#[test]
fn no_peer_makes_a_receiver_count_without_bound() {
    let gaps = refused(|n| (n < 2 * MAX_GAPS as u64).then(|| message(0, 2 * n, 2 * n, 0)));
    assert_eq!(gaps, GroupError::TooManyGaps);
    let groups = refused(|n| (n < 200).then(|| message(n, 0, 0, 1)));
    assert_eq!(groups, GroupError::TooManyGroups);
    assert_eq!(refused(|n| (n < 1).then(|| message(1 << 40, 0, 0, 1))), GroupError::TooManyGroups);
    let header = refused(|n| (n < 1).then(|| vec![2, 5, 6, 0]));
    assert!(matches!(header, GroupError::Header { .. }), "{header:?}");
    let short = refused(|n| (n < 1).then(|| vec![2, 5]));
    assert!(matches!(short, GroupError::Header { .. }), "{short:?}");
    let notice = refused(|n| (n < 1).then(|| vec![1; 5000]));
    assert!(matches!(notice, GroupError::Header { .. }), "{notice:?}");
    let large = refused(|n| (n < 1).then(|| message(0, 0, 0, MAX_MESSAGE + 1)));
    assert!(matches!(large, GroupError::TooLarge(_)), "{large:?}");
}

/// Messages behind a fence whose stage is not complete are held, but not without bound. The rest stays in
/// its streams, and once the stage is complete, everything is delivered.
#[test]
fn what_waits_is_bounded_and_not_lost() {
    let (mut first, mut freed) = (None, false);
    let count = 2 * MAX_HELD_BYTES as u64 / 100_000;
    let mut flood = flood(move |n| (n < count).then(|| message(0, n + 1, 0, 100_000)));
    let client = move |now: Instant, quic: &mut Connection, event: Option<Event>| {
        if quic.is_handshaking() {
            return Ok(None);
        }
        let (stream, start) = *first.get_or_insert_with(|| {
            let stream = quic.open(Dir::Uni).unwrap();
            quic.send_stream(stream).write(&message(0, 0, 0, 10)).unwrap();
            (stream, now)
        });
        if now >= start + 1000 * MS * 20 && !std::mem::replace(&mut freed, true) {
            quic.send_stream(stream).finish().unwrap();
        }
        flood(now, quic, event)?;
        Ok((!freed).then_some(start + 1000 * MS * 20))
    };
    let config = config(None).with_send_buffer(8 << 20);
    let (mut most, mut delivered) = (0, 0);
    receive("rate=100mbit delay=5ms", &config, client, |receiver| {
        assert_eq!(receiver.error, None);
        (most, delivered) = (receiver.most_held, receiver.delivered.len() as u64);
        delivered == count + 1
    });
    assert_eq!(delivered, count + 1);
    assert!((MAX_HELD_BYTES..MAX_HELD_BYTES + 200_000).contains(&most), "{most}");
}

#[test]
fn a_sender_opens_a_bounded_number_of_groups() {
    let mut groups = SendGroups::default();
    let opened = std::iter::from_fn(|| groups.open(Priority::default()));
    let opened: Vec<GroupId> = opened.collect();
    assert_eq!((opened.len(), opened.last()), (MAX_GROUPS, Some(&GroupId(MAX_GROUPS as u64 - 1))));
}
