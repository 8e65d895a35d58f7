//! How much work messages of ordered groups make, in steps, for any number of messages that the receiver
//! holds.

use sutura_groups::{MAX_GROUPS, MAX_HELD, ReceiveGroups};
use sutura_proto::coding::put_varint;
use sutura_proto::fuzz::Target;
use sutura_proto::wire_format::{Frame, StreamFrame};
use sutura_proto::work::take_steps;
use sutura_proto::{Dir, Side, StreamId, TransportConfig};

/// Messages in a packet.
const BATCH: u64 = 50;
/// The most steps for a message: it is read, and some other messages may be delivered or read because of it.
const MAX_STEPS: u64 = 8;
/// The most gaps that a test makes.
const GAPS: u64 = 10_000;

/// A message without data.
#[derive(Debug, Clone, Copy)]
struct Message {
    group: u64,
    number: u64,
    /// All messages below this come first.
    fence: u64,
}

impl Message {
    fn bytes(self) -> Vec<u8> {
        let mut out = Vec::new();
        for value in [self.group * 2, self.number, self.number - self.fence, 0] {
            put_varint(&mut out, value);
        }
        out
    }
}

/// A server that receives groups.
struct Receiver {
    target: Target,
    groups: ReceiveGroups,
    /// The index of the next stream.
    next: u64,
    delivered: u64,
}

impl Receiver {
    fn new() -> Self {
        let config = TransportConfig::default().with_max_concurrent_uni_streams(4000);
        let target = Target::with(Side::Server, config).expect("a connection");
        Self { target, groups: ReceiveGroups::new(Side::Server), next: 0, delivered: 0 }
    }

    /// Receives a packet with these messages; returns the steps.
    fn receive(&mut self, messages: &[Message]) -> u64 {
        let bytes: Vec<_> = messages.iter().map(|message| message.bytes()).collect();
        let mut payload = Vec::new();
        for (at, data) in bytes.iter().enumerate() {
            let id = StreamId::new(Side::Client, Dir::Uni, self.next + at as u64);
            Frame::Stream(StreamFrame { id, offset: 0, fin: true, data }).encode(&mut payload);
        }
        let mut packet = self.target.seal(&payload);
        take_steps();
        assert!(self.target.receive(&mut packet), "the connection is closed");
        self.next += messages.len() as u64;
        self.target.take_events().iter().for_each(|event| self.groups.on_event(event));
        let now = self.target.now();
        self.groups.receive(now, self.target.connection()).expect("messages within the rules");
        while self.groups.pop().is_some() {
            self.delivered += 1;
        }
        take_steps()
    }

    fn receive_all(&mut self, messages: impl Iterator<Item = Message>) {
        let messages: Vec<_> = messages.collect();
        for batch in messages.chunks(BATCH as usize) {
            self.receive(batch);
        }
    }

    /// The steps for each of some messages that are delivered at once, in the middle of the group or of
    /// its gaps.
    fn steps_for_each(&mut self, numbers: impl Fn(u64) -> u64) -> u64 {
        let before = self.delivered;
        let messages = (0..BATCH).map(|n| Message { group: 0, number: numbers(n), fence: 0 });
        let messages: Vec<_> = messages.collect();
        let steps = self.receive(&messages);
        assert_eq!(self.delivered, before + BATCH);
        steps / BATCH
    }
}

#[test]
fn a_message_makes_no_more_work_where_many_are_held() {
    for held in [1, 100, 1000] {
        let mut receiver = Receiver::new();
        receiver.receive_all((0..held).map(|n| Message { group: 0, number: 1 + n, fence: 1 }));
        assert_eq!(receiver.groups.held() as u64, held);
        let steps = receiver.steps_for_each(|n| 50_000 + 2 * n);
        assert!(steps <= MAX_STEPS, "{steps} steps with {held} held messages");
    }
}

#[test]
fn a_message_makes_no_more_work_where_many_streams_are_not_read() {
    for parked in [1, 100, 1000] {
        let mut receiver = Receiver::new();
        let held = MAX_HELD as u64;
        let behind = |n| Message { group: n % MAX_GROUPS as u64, number: 1 + n, fence: 1 };
        receiver.receive_all((0..held + parked).map(behind));
        assert_eq!((receiver.groups.held() as u64, receiver.delivered), (held, 0));
        let steps = receiver.steps_for_each(|n| 50_000 + 2 * n);
        assert!(steps <= MAX_STEPS, "{steps} steps with {parked} streams that are not read");
        // The first message of each group releases the other messages of the group, read or not, and leaves
        // room for more.
        for group in 0..MAX_GROUPS as u64 {
            receiver.receive(&[Message { group, number: 0, fence: 0 }]);
        }
        let all = held + parked + BATCH + MAX_GROUPS as u64;
        assert_eq!((receiver.groups.held(), receiver.delivered), (0, all));
    }
}

#[test]
fn a_message_makes_no_more_work_where_many_are_missing() {
    for gaps in [1, 100, 1000, GAPS] {
        let mut receiver = Receiver::new();
        let apart = |n| Message { group: 0, number: 1 + 3 * n, fence: 0 };
        receiver.receive_all((0..gaps).map(apart));
        let steps = receiver.steps_for_each(|n| 3 * (gaps / 2 + n) + 3);
        assert!(steps <= MAX_STEPS, "{steps} steps with {gaps} gaps");
    }
}
