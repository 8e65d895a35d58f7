//! How much work each type of frame makes, in steps, with few and with many open requests.

use crate::common::Ending::Open;
use crate::common::Stream::{Bi, Uni};
use crate::common::{Bench, GET, script, update_frame};
use bytes::Bytes;
use std::collections::VecDeque;
use sutura_h3::{Code, Config, Event, Fields, Transport};
use sutura_proto::work::take_steps;
use sutura_proto::{Dir, Side, StreamId};

/// Bytes in a packet.
const ROOM: usize = 1100;
/// Packets of each kind.
const PACKETS: usize = 5;
/// How many requests are open.
const OPEN: [u64; 3] = [1, 100, 1000];
/// The most steps for a thousand bytes: a request is read in a few pieces, and a critical stream in large
/// ones.
const MAX_STEPS: u64 = 1500;
/// How many more steps a thousand bytes may make where there are many requests.
const SLACK: u64 = 5;

/// Frames or other data that a peer sends.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// PRIORITY_UPDATE for requests here and there.
    Update,
    /// The same for requests that have been answered.
    UpdateOfAnswered,
    /// The same for requests to come.
    UpdateToCome,
    /// Frames of types that are not known, on the control stream.
    Unknown,
    /// The same on request streams.
    UnknownInRequests,
    /// MAX_PUSH_ID.
    MaxPushId,
    /// GOAWAY.
    GoAway,
    /// Instructions of the encoder that insert into the table.
    Insert,
    /// Instructions of the decoder that cancel streams.
    Cancel,
    /// DATA, in frames of a byte here and there.
    Data,
    /// Requests, each of which is reset at once.
    Reset,
    /// Capsules of types that are not known, in a request.
    Capsules,
    /// Datagrams of requests here and there.
    Datagrams,
}

const ALL: [Kind; 13] = [
    Kind::Update,
    Kind::UpdateOfAnswered,
    Kind::UpdateToCome,
    Kind::Unknown,
    Kind::UnknownInRequests,
    Kind::MaxPushId,
    Kind::GoAway,
    Kind::Insert,
    Kind::Cancel,
    Kind::Data,
    Kind::Reset,
    Kind::Capsules,
    Kind::Datagrams,
];

const fn request(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, index)
}

const fn uni(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Uni, index)
}

/// A server with `open` open requests, `open` answered ones, and a field section that waits for the table.
fn with_requests(open: u64) -> Bench {
    let config = Config::default()
        .with_enable_datagrams(true)
        .with_cancelled_requests(None)
        .with_qpack_encoder_capacity(4096);
    let mut bench = Bench::with(Side::Server, &config);
    bench.pair.limits = [[100_000; 2]; 2];
    bench.pair.datagrams = Some([VecDeque::new(), VecDeque::new()]);
    // SETTINGS with datagrams and a table of 4096 bytes, and the QPACK streams; the encoder's sets the
    // capacity and inserts an entry.
    let settings = [0x00, 0x04, 0x05, 0x33, 0x01, 0x01, 0x50, 0x00];
    bench.play(&[script(Uni, &settings, Open)], 100);
    bench.play(&[script(Uni, &[0x02, 0x3f, 0xe1, 0x1f, 0x41, b'a', 0x01, b'b'], Open)], 100);
    bench.play(&[script(Uni, &[0x03], Open)], 100);
    for index in 0..2 * open {
        bench.play(&[script(Bi, GET, Open)], 100);
        if index >= open {
            // The exchange ends when its peer has ended it.
            let fields = Fields::response(200).with("priority", "u=1");
            let mut end = bench.pair.end(Side::Server);
            bench.connection.send_response(&mut end, request(index), &fields, true).unwrap();
            bench.pair.end(Side::Client).finish(request(index)).unwrap();
            bench.work();
        }
    }
    assert_eq!(bench.connection.exchanges() as u64, open);
    assert_eq!(bench.outcome, Ok(()));
    bench
}

/// The stream on which frame `n` of this kind arrives, and its bytes; `None` for a datagram.
fn frame(kind: Kind, open: u64, n: u64) -> (Option<StreamId>, Vec<u8>) {
    // Even with many requests, a packet names no more streams than with a hundred.
    let scattered = n * 37 % open.min(100) * open.div_ceil(100);
    let update =
        |index: u64| (Some(uni(0)), update_frame(u16::try_from(4 * index).unwrap(), "u=2"));
    match kind {
        Kind::Update => update(scattered),
        Kind::UpdateOfAnswered => update(open + scattered),
        Kind::UpdateToCome => update(3000 + n % 500),
        Kind::Unknown => (Some(uni(0)), vec![0x21, 0x01, 0xff]),
        Kind::UnknownInRequests => (Some(request(scattered)), vec![0x21, 0x01, 0xff]),
        Kind::MaxPushId => (Some(uni(0)), vec![0x0d, 0x01, 0x05]),
        Kind::GoAway => (Some(uni(0)), vec![0x07, 0x01, 0x00]),
        Kind::Insert => (Some(uni(1)), vec![0x00]),
        Kind::Cancel => (Some(uni(2)), vec![0x40 | u8::try_from(n % 60).unwrap()]),
        Kind::Data => (Some(request(scattered)), vec![0x00, 0x01, b'x']),
        Kind::Reset => (Some(request(2 * open + n)), GET.to_vec()),
        Kind::Capsules => (Some(request(0)), vec![0x00, 0x03, 0x29, 0x01, 0xff]),
        Kind::Datagrams => (None, vec![u8::try_from(scattered % 60).unwrap(), 1]),
    }
}

/// Steps for each thousand bytes of frames of this kind.
fn steps(bench: &mut Bench, kind: Kind, open: u64) -> u64 {
    let (mut bytes, mut steps, mut n) = (0, 0, 0);
    for _ in 0..PACKETS {
        let mut touched = Vec::new();
        let mut size = 0;
        while size < ROOM {
            let (stream, frame) = frame(kind, open, n);
            n += 1;
            size += frame.len();
            match stream {
                Some(id) => {
                    if matches!(kind, Kind::Reset) {
                        let opened = bench.pair.end(Side::Client).open(Dir::Bi);
                        assert_eq!(opened, Some(id));
                    }
                    bench.pair.inject(Side::Client, id, &frame);
                    touched.push(id);
                }
                None => {
                    let queues = bench.pair.datagrams.as_mut().unwrap();
                    queues[Side::Server as usize].push_back(Bytes::from(frame));
                }
            }
        }
        take_steps();
        touched.iter().for_each(|id| bench.connection.readable(*id));
        bench.connection.process(&mut bench.pair.end(Side::Server)).unwrap();
        drain(bench);
        if matches!(kind, Kind::Reset) {
            for id in &touched {
                bench.pair.end(Side::Client).reset(*id, Code::REQUEST_CANCELLED);
                bench.connection.readable(*id);
            }
            bench.connection.process(&mut bench.pair.end(Side::Server)).unwrap();
            drain(bench);
        }
        steps += take_steps();
        bytes += size as u64;
    }
    steps * 1000 / bytes
}

/// Handles events as an application does.
fn drain(bench: &mut Bench) {
    while let Some(event) = bench.connection.poll_event() {
        match event {
            Event::Data { stream } => {
                let mut buffer = [0; 100];
                let mut end = bench.pair.end(Side::Server);
                while bench.connection.read_body(&mut end, stream, &mut buffer).is_ok_and(|n| n > 0)
                {
                }
            }
            Event::Datagram { stream } => while bench.connection.recv_datagram(stream).is_some() {},
            _ => {}
        }
    }
}

#[test]
fn no_frame_makes_more_work_where_many_requests_are_open() {
    let mut excessive = Vec::new();
    for kind in ALL {
        let all = OPEN.map(|open| steps(&mut with_requests(open), kind, open));
        println!("{kind:?}: {all:?} steps for a thousand bytes with {OPEN:?} requests");
        let [one, hundred, _] = all;
        // If each frame is in another stream than the previous one, a single stream takes fewer reads.
        let few = match kind {
            Kind::UnknownInRequests | Kind::Data | Kind::Datagrams => one.max(hundred),
            _ => one,
        };
        if all.into_iter().any(|steps| steps > MAX_STEPS || steps > few + SLACK) {
            excessive.push((kind, all));
        }
    }
    assert!(excessive.is_empty(), "{excessive:?}");
}

/// A client that leaves sections unacknowledged makes no answer dearer.
#[test]
fn an_answer_makes_no_more_work_where_many_are_unacknowledged() {
    let answers = OPEN.map(|open| {
        let mut bench = with_requests(open);
        let fields = |n: u64| Fields::response(200).with("x-number", (n % 7).to_string());
        for index in 0..open {
            let mut end = bench.pair.end(Side::Server);
            bench
                .connection
                .send_response(&mut end, request(index), &fields(index), false)
                .unwrap();
        }
        bench.play(&[script(Bi, GET, Open)], 100);
        take_steps();
        let mut end = bench.pair.end(Side::Server);
        bench.connection.send_response(&mut end, request(2 * open), &fields(0), false).unwrap();
        take_steps()
    });
    assert!(answers.iter().all(|steps| *steps <= 20), "{answers:?}");
}
