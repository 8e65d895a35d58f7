//! Stream identifiers, limits and lifetimes.

use super::*;
use crate::wire::coding::VARINT_MAX;

const STATE: TransportErrorCode = TransportErrorCode::STREAM_STATE_ERROR;
const LIMIT: TransportErrorCode = TransportErrorCode::STREAM_LIMIT_ERROR;

/// Processes a frame that refers to a stream.
type Frame = fn(&mut Sender, StreamId) -> Result<(), TransportError>;
const FOR_RECEIVING: [Frame; 3] = [
    |streams, id| streams.received(id, 0, b"x", false),
    |streams, id| streams.received_reset(id, 0, 0),
    |streams, id| streams.received_stream_data_blocked(id),
];
const FOR_SENDING: [Frame; 2] = [
    |streams, id| streams.received_stop_sending(id, 0).map(drop),
    |streams, id| streams.received_max_stream_data(id, 1),
];

#[test]
fn nothing_opens_before_the_peer_said_what_it_allows() {
    let order = ByLoss.build(&|| Scheme::EPS.build());
    let mut streams = Sender::from(Streams::new(Side::Client, small(), Scheme::EPS.build(), order));
    assert_eq!(streams.open(Dir::Bi), None);
    streams.set_peer_limits(advertised(&small()));
    assert_eq!(events(&mut streams), [StreamEvent::Available { dir: Dir::Bi }]);
    // The stream is no longer blocked, so there is nothing to report.
    assert!(control(&mut streams).is_empty());
    assert_eq!(streams.open(Dir::Bi), Some(client_stream(Dir::Bi, 0)));
}

#[test]
fn no_frame_may_name_the_half_that_a_stream_does_not_have() {
    for frame in FOR_RECEIVING {
        let mut streams = client();
        let id = streams.open(Dir::Uni).unwrap();
        assert_eq!(code(frame(&mut streams, id)), STATE);
    }
    for frame in FOR_SENDING {
        assert_eq!(code(frame(&mut server(), uni(0))), STATE);
    }
}

#[test]
fn no_frame_may_name_a_stream_of_ours_that_is_not_open() {
    for frame in FOR_RECEIVING.into_iter().chain(FOR_SENDING) {
        let mut streams = client();
        assert_eq!(code(frame(&mut streams, client_stream(Dir::Bi, 0))), STATE);
        streams.open(Dir::Bi).unwrap();
        frame(&mut streams, client_stream(Dir::Bi, 0)).unwrap();
        assert_eq!(code(frame(&mut streams, client_stream(Dir::Bi, 1))), STATE);
    }
}

#[test]
fn no_frame_may_open_more_streams_than_allowed() {
    for frame in FOR_RECEIVING.into_iter().chain(FOR_SENDING) {
        let mut streams = server();
        frame(&mut streams, client_stream(Dir::Bi, 7)).unwrap();
        assert_eq!(code(frame(&mut streams, client_stream(Dir::Bi, 8))), LIMIT);
        assert_eq!(code(frame(&mut streams, StreamId(VARINT_MAX - 3))), LIMIT);
    }
    assert_eq!(code(FOR_RECEIVING[0](&mut server(), uni(8))), LIMIT);
}

#[test]
fn an_error_names_its_frame() {
    let error = server().received_stop_sending(uni(0), 0).unwrap_err();
    assert_eq!(error.frame, Some(encode::STOP_SENDING));
}

#[test]
fn stream_counts_stay_below_two_to_the_sixty() {
    let mut streams = client();
    let encoding = TransportErrorCode::FRAME_ENCODING_ERROR;
    streams.received_max_streams(Dir::Bi, 1 << 60).unwrap();
    assert_eq!(code(streams.received_max_streams(Dir::Bi, (1 << 60) + 1)), encoding);
    streams.received_streams_blocked(Dir::Uni, 1 << 60).unwrap();
    assert_eq!(code(streams.received_streams_blocked(Dir::Uni, (1 << 60) + 1)), encoding);
    let mut greedy = small();
    greedy.uni_streams = u64::MAX;
    let streams = endpoint(Side::Server, &greedy);
    assert_eq!(streams.table.remote[Dir::Uni.index()].max, 1 << 60);
}

#[test]
fn lower_streams_open_with_a_higher_one_and_are_accepted_in_order() {
    let mut streams = server();
    streams.received(client_stream(Dir::Bi, 5), 0, b"x", false).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Opened { dir: Dir::Bi }]);
    // Only the named stream takes memory.
    assert_eq!(streams.stats().streams, 1);
    streams.received(client_stream(Dir::Bi, 2), 0, b"y", false).unwrap();
    assert!(events(&mut streams).is_empty());
    for index in 0..6 {
        assert_eq!(streams.accept(Dir::Bi), Some(client_stream(Dir::Bi, index)));
    }
    assert_eq!(streams.accept(Dir::Bi), None);
    assert_eq!(streams.accept(Dir::Uni), None);
    let readable = |index| StreamEvent::Readable { id: client_stream(Dir::Bi, index) };
    assert_eq!(events(&mut streams), [readable(2), readable(5)]);
    // An implicitly opened bidirectional stream can be written to at once.
    assert_eq!(streams.write(client_stream(Dir::Bi, 0), b"hello"), Ok(5));
    assert_eq!(streams.read(client_stream(Dir::Bi, 5), &mut [0; 9]), Ok(Read::Data(1)));
}

#[test]
fn streams_blocked_is_said_once_for_each_limit() {
    let mut streams = client();
    for _ in 0..8 {
        streams.open(Dir::Uni).unwrap();
    }
    assert!(!streams.wants_control());
    assert_eq!(streams.open(Dir::Uni), None);
    assert_eq!(streams.open(Dir::Uni), None);
    let (frames, tokens) = control_tokens(&mut streams);
    assert_eq!(frames, [[encode::STREAMS_BLOCKED_UNI, 8]]);
    assert_eq!(streams.open(Dir::Uni), None);
    assert!(!streams.wants_control());
    streams.lost(&tokens[0]);
    assert_eq!(control(&mut streams), [[encode::STREAMS_BLOCKED_UNI, 8]]);
    streams.received_max_streams(Dir::Uni, 7).unwrap();
    assert_eq!(streams.open(Dir::Uni), None);
    streams.received_max_streams(Dir::Uni, 9).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Available { dir: Dir::Uni }]);
    streams.lost(&tokens[0]);
    assert!(!streams.wants_control(), "that limit is history");
    assert!(streams.open(Dir::Uni).is_some());
}

/// The peer opens and finishes a unidirectional stream and delivers all of it; we read all of it.
fn use_up(streams: &mut Sender, index: u64) {
    let id = uni(index);
    streams.received(id, 0, b"abc", true).unwrap();
    assert_eq!(streams.accept(Dir::Uni), Some(id));
    assert_eq!(streams.read(id, &mut [0; 8]), Ok(Read::Data(3)));
    assert_eq!(streams.read(id, &mut [0; 8]), Ok(Read::Fin));
    assert_eq!(streams.read(id, &mut [0; 8]), Err(ReadError::Closed));
}

#[test]
fn finished_streams_give_their_place_back() {
    let mut streams = endpoint(Side::Server, &StreamLimits { uni_streams: 80, ..small() });
    for index in 0..9 {
        use_up(&mut streams, index);
    }
    assert!(!streams.wants_control(), "not for every stream");
    use_up(&mut streams, 9);
    let (frames, tokens) = control_tokens(&mut streams);
    assert_eq!(frames, [[encode::MAX_STREAMS_UNI, 90]]);
    use_up(&mut streams, 10);
    assert!(!streams.wants_control());
    // A lost frame is sent again with the current value.
    streams.lost(&tokens[0]);
    assert_eq!(control(&mut streams), [[encode::MAX_STREAMS_UNI, 91]]);
    // A peer that asks for streams gets all free streams.
    use_up(&mut streams, 11);
    streams.received_streams_blocked(Dir::Uni, 91).unwrap();
    assert_eq!(control(&mut streams), [[encode::MAX_STREAMS_UNI, 92]]);
    streams.received_streams_blocked(Dir::Uni, 92).unwrap();
    assert!(!streams.wants_control(), "there is nothing to give");
}

#[test]
fn a_peer_without_streams_gets_one_back_at_once() {
    let mut streams = endpoint(Side::Server, &StreamLimits { uni_streams: 80, ..small() });
    streams.received(uni(79), 0, b"", true).unwrap();
    use_up(&mut streams, 0);
    assert_eq!(control(&mut streams), [[encode::MAX_STREAMS_UNI, 81]]);
}

#[test]
fn frames_for_streams_that_are_over_are_ignored() {
    let mut streams = server();
    use_up(&mut streams, 0);
    let id = uni(0);
    assert_eq!(streams.stats().streams, 0);
    let before = streams.stats();
    streams.received(id, 1, b"late", false).unwrap();
    streams.received_reset(id, 1, 99).unwrap();
    streams.received_stream_data_blocked(id).unwrap();
    assert_eq!(streams.stats(), before);
    assert!(events(&mut streams).iter().all(|e| *e == StreamEvent::Opened { dir: Dir::Uni }));
}

#[test]
fn a_bidirectional_stream_lives_until_both_halves_are_over() {
    let mut streams = server();
    let id = client_stream(Dir::Bi, 0);
    streams.received(id, 0, b"", true).unwrap();
    streams.accept(Dir::Bi).unwrap();
    assert_eq!(streams.read(id, &mut [0; 8]), Ok(Read::Fin));
    assert_eq!(streams.write(id, b"answer"), Ok(6));
    streams.finish(id).unwrap();
    assert_eq!(streams.stats().streams, 1);
    let token = send_frame(&mut streams).unwrap();
    streams.acked(&Token::Stream(token));
    assert_eq!(streams.stats().streams, 0);
    assert_eq!(control(&mut streams), [[encode::MAX_STREAMS_BIDI, 9]]);
    assert_eq!(streams.write(id, b"more"), Err(WriteError::Closed));
    streams.received_stop_sending(id, 3).unwrap();
    streams.received_max_stream_data(id, 3).unwrap();
    assert!(!streams.wants_control());
}

#[test]
fn what_is_left_to_open_is_known_and_a_wanted_stream_is_announced() {
    let mut streams = client();
    let left = streams.left(Dir::Bi);
    assert!(left > 0);
    assert!(streams.open(Dir::Bi).is_some());
    assert_eq!(streams.left(Dir::Bi), left - 1);
    for _ in 1..left {
        streams.open(Dir::Bi).unwrap();
    }
    assert_eq!(streams.left(Dir::Bi), 0);
    assert!(!streams.wants_control());
    streams.want(Dir::Bi);
    assert_eq!(control(&mut streams), [[encode::STREAMS_BLOCKED_BIDI, left]]);
    streams.received_max_streams(Dir::Bi, left + 2).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Available { dir: Dir::Bi }]);
    assert_eq!(streams.left(Dir::Bi), 2);
}
