//! Flow control of streams and of the connection, in both directions.

use super::*;

const FLOW_CONTROL: TransportErrorCode = TransportErrorCode::FLOW_CONTROL_ERROR;
const ZEROS: [u8; 16_000] = [0; 16_000];

/// The first stream opens with so many bytes, and is accepted.
fn accept_with(streams: &mut Sender, len: usize) {
    streams.received(uni(0), 0, &ZEROS[..len], false).unwrap();
    streams.accept(Dir::Uni).unwrap();
}

/// Reads all available bytes and returns their number.
fn drain(streams: &mut Sender, id: StreamId) -> usize {
    let mut total = 0;
    while let Ok(Read::Data(len)) = streams.read(id, &mut [0; 700]) {
        total += len;
    }
    total
}

#[test]
fn a_stream_window_holds_for_data_and_resets() {
    let mut streams = server();
    streams.received(uni(0), 0, &ZEROS[..10_000], false).unwrap();
    assert_eq!(code(streams.received(uni(0), 10_000, b"x", false)), FLOW_CONTROL);
    assert_eq!(code(streams.received_reset(uni(1), 0, 10_001)), FLOW_CONTROL);
    streams.received(uni(0), 10_000, b"", true).unwrap();
}

#[test]
fn the_connection_window_holds_for_data_and_resets() {
    let mut streams = server();
    streams.received(uni(0), 9_999, b"x", false).unwrap();
    streams.received(uni(1), 4_999, b"x", false).unwrap();
    // Bytes that fill gaps are not counted twice.
    streams.received(uni(0), 0, &ZEROS[..10_000], false).unwrap();
    assert_eq!(code(streams.received(uni(2), 0, b"x", false)), FLOW_CONTROL);
    assert_eq!(code(streams.received(uni(1), 5_000, b"x", false)), FLOW_CONTROL);
    assert_eq!(code(streams.received_reset(uni(2), 0, 1)), FLOW_CONTROL);
    streams.received_reset(uni(1), 0, 5_000).unwrap();
}

#[test]
fn a_rejected_frame_changes_no_account() {
    let mut streams = server();
    streams.received(uni(0), 0, &ZEROS[..10_000], false).unwrap();
    streams.received(uni(1), 0, &ZEROS[..4_000], false).unwrap();
    let before = streams.stats();
    assert_eq!(code(streams.received(uni(1), 4_000, &ZEROS[..1_001], true)), FLOW_CONTROL);
    assert_eq!(streams.stats(), before);
    streams.received(uni(1), 4_000, &ZEROS[..1_000], false).unwrap();
}

/// A server whose windows may grow, so that their limits move in steps of half a window.
fn growing_server() -> Sender {
    let limits =
        StreamLimits { max_stream_window: 20_000, max_connection_window: 30_000, ..small() };
    endpoint(Side::Server, &limits)
}

#[test]
fn limits_move_when_half_a_window_was_read() {
    let mut streams = growing_server();
    accept_with(&mut streams, 8_000);
    assert_eq!(streams.read(uni(0), &mut [0; 4_999]), Ok(Read::Data(4_999)));
    assert!(!streams.wants_control());
    assert_eq!(streams.read(uni(0), &mut [0; 1]), Ok(Read::Data(1)));
    let (frames, tokens) = control_tokens(&mut streams);
    assert_eq!(frames, [[encode::MAX_STREAM_DATA, uni(0).0, 15_000]]);
    assert_eq!(drain(&mut streams, uni(0)), 3_000);
    assert_eq!(control(&mut streams), [[encode::MAX_DATA, 23_000]]);
    // A lost announcement is repeated with the current value.
    streams.lost(&tokens[0]);
    assert_eq!(control(&mut streams), [[encode::MAX_STREAM_DATA, uni(0).0, 18_000]]);
    streams.lost(&Token::Control(ControlToken::MaxData));
    assert_eq!(control(&mut streams), [[encode::MAX_DATA, 23_000]]);
    streams.received(uni(0), 17_999, b"x", false).unwrap();
}

#[test]
fn no_limit_is_raised_for_a_stream_whose_size_is_known() {
    let mut streams = server();
    accept_with(&mut streams, 8_000);
    assert_eq!(drain(&mut streams, uni(0)), 8_000);
    streams.received(uni(0), 9_000, b"", true).unwrap();
    assert_eq!(control(&mut streams), [[encode::MAX_DATA, 23_000]]);
    streams.lost(&Token::Control(ControlToken::MaxStreamData(uni(0))));
    assert!(control(&mut streams).is_empty());
}

#[test]
fn windows_grow_when_they_are_what_limits_the_peer() {
    let limits = StreamLimits { max_stream_window: 100_000, ..small() };
    let mut streams = endpoint(Side::Server, &limits);
    let mut now = Instant::now();
    let (mut offset, mut largest) = (0, 0);
    for _ in 0..12 {
        let half = &ZEROS[..5_000];
        streams.received(uni(0), offset, half, false).unwrap();
        offset += 5_000;
        streams.accept(Dir::Uni);
        assert_eq!(drain(&mut streams, uni(0)), 5_000);
        let mut out = Vec::new();
        streams.write_control(now, RTT, &mut out, ROOM, &mut Tokens::new());
        now += RTT / 2;
        let recv = streams.table.get(uni(0)).unwrap().halves.recv().unwrap();
        assert!(recv.window.size() >= largest, "windows never shrink");
        largest = recv.window.size();
    }
    assert!(largest >= 20_000, "{largest}");
    assert_eq!(streams.window.size(), 15_000, "the connection's may not grow here");
}

#[test]
fn a_reset_charges_its_final_size_and_gives_it_back() {
    let mut streams = server();
    accept_with(&mut streams, 1_000);
    assert_eq!(streams.read(uni(0), &mut [0; 400]), Ok(Read::Data(400)));
    streams.received_reset(uni(0), 0, 7_600).unwrap();
    assert_eq!(streams.stats().received, 7_600);
    // 400 bytes were read, 7200 are discarded: half of the window is free again.
    assert_eq!(control(&mut streams), [[encode::MAX_DATA, 22_600]]);
}

#[test]
fn stopped_bytes_are_given_back_as_they_come() {
    let mut streams = growing_server();
    accept_with(&mut streams, 4_000);
    streams.stop(uni(0), 0).unwrap();
    assert_eq!(control(&mut streams), [[encode::STOP_SENDING, uni(0).0, 0]]);
    streams.received(uni(0), 6_000, &ZEROS[..1_500], false).unwrap();
    assert_eq!(control(&mut streams), [[encode::MAX_DATA, 22_500]]);
    assert_eq!(code(streams.received(uni(0), 10_000, b"x", false)), FLOW_CONTROL);
    streams.received_reset(uni(0), 0, 10_000).unwrap();
    assert_eq!(streams.stats().received, 10_000);
}

#[test]
fn a_peer_that_resets_all_its_streams_can_go_on_forever() {
    let mut streams = server();
    let (mut max_data, mut charged) = (15_000, 0);
    for index in 0..200 {
        streams.received(uni(index), 0, &ZEROS[..10], false).unwrap();
        streams.accept(Dir::Uni).unwrap();
        streams.received_reset(uni(index), 0, 6_000).unwrap();
        charged += 6_000;
        assert_eq!(streams.read(uni(index), &mut [0; 9]), Err(ReadError::Reset(0)));
        for frame in control(&mut streams) {
            if frame[0] == encode::MAX_DATA {
                assert!(frame[1] > max_data);
                max_data = frame[1];
            }
        }
        assert!(max_data >= charged + 7_500, "half of the window at least is open");
    }
}

#[test]
fn we_stay_within_the_stream_limit_and_say_so_once() {
    let mut streams = client();
    let id = streams.open(Dir::Uni).unwrap();
    assert_eq!(streams.write(id, &ZEROS[..10_500]), Ok(10_500));
    streams.finish(id).unwrap();
    let sent = send_frames(&mut streams);
    assert_eq!(sent.iter().map(|token| token.len).sum::<u32>(), 10_000);
    assert!(!sent.iter().any(|token| token.fin) && streams.has_unsent(id));
    let (frames, tokens) = control_tokens(&mut streams);
    assert_eq!(frames, [[encode::STREAM_DATA_BLOCKED, id.0, 10_000]]);
    assert_eq!(streams.look(ROOM), None);
    assert!(!streams.wants_control() && !streams.has_data());
    streams.lost(&tokens[0]);
    assert_eq!(control(&mut streams), [[encode::STREAM_DATA_BLOCKED, id.0, 10_000]]);
    streams.received_max_stream_data(id, 9_000).unwrap();
    assert_eq!(streams.look(ROOM), None, "limits never fall");
    streams.received_max_stream_data(id, 10_100).unwrap();
    streams.lost(&tokens[0]);
    sends(&mut streams, (10_000, 100, false));
    assert_eq!(control(&mut streams), [[encode::STREAM_DATA_BLOCKED, id.0, 10_100]]);
    streams.received_max_stream_data(id, 20_000).unwrap();
    sends(&mut streams, (10_100, 400, true));
}

#[test]
fn we_stay_within_the_connection_limit_and_say_so_once() {
    let mut streams = client();
    let [a, b] = [0; 2].map(|_| streams.open(Dir::Uni).unwrap());
    assert_eq!(streams.write(a, &ZEROS[..9_000]), Ok(9_000));
    assert_eq!(streams.write(b, &ZEROS[..9_000]), Ok(9_000));
    let tokens = send_frames(&mut streams);
    assert_eq!(tokens.iter().map(|token| token.len).sum::<u32>(), 15_000);
    assert!(streams.is_connection_blocked() && !streams.has_data());
    let (frames, blocked) = control_tokens(&mut streams);
    assert_eq!(frames, [[encode::DATA_BLOCKED, 15_000]]);
    streams.write(a, b"more").unwrap();
    assert!(!streams.wants_control());
    streams.lost(&blocked[0]);
    assert_eq!(control(&mut streams), [[encode::DATA_BLOCKED, 15_000]]);
    // Resending needs no new credit.
    streams.lost(&Token::Stream(tokens[3]));
    let pending = streams.look(ROOM).unwrap();
    assert!(pending.is_retransmission());
    assert_eq!(send_frame(&mut streams), Some(tokens[3]));
    streams.received_max_data(14_000);
    assert_eq!(streams.look(ROOM), None);
    streams.received_max_data(15_100);
    streams.lost(&blocked[0]);
    let sent: u32 = send_frames(&mut streams).into_iter().map(|token| token.len).sum();
    assert_eq!(sent, 100);
    assert_eq!(control(&mut streams), [[encode::DATA_BLOCKED, 15_100]]);
}

#[test]
fn the_end_of_a_stream_needs_no_credit() {
    let mut streams = client();
    let [a, b] = [0; 2].map(|_| streams.open(Dir::Uni).unwrap());
    streams.write(b, &ZEROS[..5_000]).unwrap();
    send_frames(&mut streams);
    streams.write(a, &ZEROS[..15_000]).unwrap();
    send_frames(&mut streams);
    assert_eq!(streams.stats().sent, 15_000);
    streams.finish(b).unwrap();
    let token = send_frame(&mut streams).unwrap();
    assert_eq!((token.id, token.offset, token.len, token.fin), (b, 5_000, 0, true));
    streams.finish(a).unwrap();
    assert_eq!(send_frame(&mut streams), None, "bytes come before the end");
}

#[test]
fn a_reset_stream_is_not_blocked() {
    let mut streams = client();
    let id = streams.open(Dir::Uni).unwrap();
    streams.write(id, &ZEROS).unwrap();
    send_frames(&mut streams);
    streams.reset(id, 4).unwrap();
    assert_eq!(control(&mut streams), [[encode::RESET_STREAM, id.0, 4, 10_000]]);
    streams.lost(&Token::Control(ControlToken::StreamDataBlocked(id, 10_000)));
    assert!(control(&mut streams).is_empty());
}
