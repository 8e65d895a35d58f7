//! The sending part of streams: states, retransmission, buffer limits, protection.

use super::*;
use crate::streams::send::SendState;
use bytes::Bytes;

fn state(streams: &Sender, id: StreamId) -> SendState {
    streams.send_half(id).unwrap().state()
}

fn opened() -> (Sender, StreamId) {
    let mut streams = client();
    let id = streams.open(Dir::Uni).unwrap();
    (streams, id)
}

#[test]
fn states_follow_what_is_sent_and_acknowledged() {
    let (mut streams, id) = opened();
    assert_eq!(state(&streams, id), SendState::Ready);
    assert_eq!(streams.look(ROOM), None, "an empty stream has nothing to say");
    streams.write(id, b"hello").unwrap();
    let first = send_frame(&mut streams).unwrap();
    assert_eq!(state(&streams, id), SendState::Send);
    streams.finish(id).unwrap();
    assert_eq!(streams.finish(id), Err(ClosedStream::Closed));
    assert_eq!(streams.write(id, b"x"), Err(WriteError::Closed));
    assert_eq!(state(&streams, id), SendState::Send);
    let last = sends(&mut streams, (5, 0, true));
    assert_eq!(state(&streams, id), SendState::DataSent);
    assert_eq!(send_frame(&mut streams), None);
    streams.acked(&Token::Stream(last));
    assert_eq!(state(&streams, id), SendState::DataSent);
    assert!(events(&mut streams).is_empty());
    streams.acked(&Token::Stream(first));
    assert_eq!(events(&mut streams), [StreamEvent::Finished { id }]);
    assert_eq!(streams.stats(), StreamStats { sent: 5, ..StreamStats::default() });
}

#[test]
fn fin_goes_with_the_last_byte() {
    let (mut streams, id) = opened();
    streams.write(id, &[1; 1500]).unwrap();
    streams.finish(id).unwrap();
    assert!(!send_frame(&mut streams).unwrap().fin);
    assert!(send_frame(&mut streams).unwrap().fin);
    assert_eq!(send_frame(&mut streams), None);
}

#[test]
fn an_empty_stream_ends_with_an_empty_frame() {
    let (mut streams, id) = opened();
    streams.finish(id).unwrap();
    let token = sends(&mut streams, (0, 0, true));
    streams.lost(&Token::Stream(token));
    assert_eq!(send_frame(&mut streams), Some(token));
    streams.acked(&Token::Stream(token));
    assert_eq!(events(&mut streams), [StreamEvent::Finished { id }]);
}

#[test]
fn lost_bytes_go_first_and_in_the_order_of_loss() {
    let mut streams = client();
    let [a, b] = [0; 2].map(|_| streams.open(Dir::Uni).unwrap());
    let send = |streams: &mut Sender, id| {
        streams.write(id, &[0; 100]).unwrap();
        send_frame(streams).unwrap()
    };
    let first = send(&mut streams, a);
    let _held = send(&mut streams, a);
    let third = send(&mut streams, a);
    let other = send(&mut streams, b);
    streams.write(b, &[0; 50]).unwrap();
    for token in [third, other, first] {
        assert!(streams.is_missing(&token));
        assert!(streams.retransmit(&token));
    }
    for expected in [third, other, first] {
        assert!(streams.look(ROOM).unwrap().is_retransmission());
        assert_eq!(send_frame(&mut streams), Some(expected));
    }
    assert!(!streams.look(ROOM).unwrap().is_retransmission());
    assert_eq!(send_frame(&mut streams).unwrap().len, 50);
}

#[test]
fn neighbours_that_were_lost_share_a_frame() {
    let (mut streams, id) = opened();
    let mut tokens = Vec::new();
    for _ in 0..3 {
        streams.write(id, &[0; 100]).unwrap();
        tokens.push(send_frame(&mut streams).unwrap());
    }
    streams.finish(id).unwrap();
    tokens.push(send_frame(&mut streams).unwrap());
    streams.lose(&tokens);
    sends(&mut streams, (0, 300, true));
    assert_eq!(send_frame(&mut streams), None);
    assert!(!streams.has_data());
}

#[test]
fn delivery_by_another_way_cancels_a_retransmission() {
    let (mut streams, id) = opened();
    streams.write(id, &[0; 100]).unwrap();
    streams.finish(id).unwrap();
    let token = send_frame(&mut streams).unwrap();
    streams.lost(&Token::Stream(token));
    assert!(streams.has_data());
    streams.delivered(&token);
    assert!(!streams.has_data() && !streams.is_missing(&token));
    assert_eq!(send_frame(&mut streams), None);
    assert_eq!(events(&mut streams), [StreamEvent::Finished { id }]);
    streams.acked(&Token::Stream(token));
    streams.lost(&Token::Stream(token));
    assert_eq!(streams.stats().streams, 0);
}

#[test]
fn partial_delivery_leaves_the_rest_to_be_sent() {
    let (mut streams, id) = opened();
    streams.write(id, &[0; 300]).unwrap();
    let token = send_frame(&mut streams).unwrap();
    streams.delivered(&StreamToken { offset: 100, len: 100, ..token });
    streams.lost(&Token::Stream(token));
    let pieces = [send_frame(&mut streams).unwrap(), send_frame(&mut streams).unwrap()];
    assert_eq!(pieces.map(|piece| (piece.offset, piece.len)), [(0, 100), (200, 100)]);
    assert_eq!(send_frame(&mut streams), None);
}

#[test]
fn a_frame_that_does_not_fit_changes_nothing() {
    let (mut streams, id) = opened();
    streams.write(id, b"hello").unwrap();
    let pending = streams.look(ROOM).unwrap();
    let mut out = vec![9];
    for room in 0..4 {
        assert_eq!(streams.write_stream(&pending, &mut out, room, Length::Explicit), None);
    }
    assert_eq!(out, [9]);
    let token = streams.write_stream(&pending, &mut out, 4, Length::Explicit).unwrap().token;
    assert_eq!((token.len, &out[1..]), (1, &[0x0a, 2, 1, b'h'][..]));
    let pending = streams.look(ROOM).unwrap();
    out.clear();
    let token = streams.write_stream(&pending, &mut out, 6, Length::ToEnd).unwrap().token;
    assert_eq!((token.offset, token.len, &out[..]), (1, 3, &[0x0c, 2, 1, b'e', b'l', b'l'][..]));
}

#[test]
fn a_frame_is_written_again_as_it_was_as_long_as_all_of_it_is_missing() {
    let (mut streams, id) = opened();
    streams.write(id, &(0..200).collect::<Vec<u8>>()).unwrap();
    let mut written = [Vec::new(), Vec::new(), Vec::new()];
    let mut write = |out: &mut Vec<u8>| {
        let pending = streams.look(ROOM).unwrap();
        streams.write_stream(&pending, out, 80, Length::ToEnd).unwrap().token
    };
    let [first, second] = [write(&mut written[0]), write(&mut written[1])];
    streams.finish(id).unwrap();
    let pending = streams.look(ROOM).unwrap();
    let last = streams.write_stream(&pending, &mut written[2], 80, Length::ToEnd).unwrap().token;
    assert!(last.fin);
    for (token, written) in [first, second, last].iter().zip(&written) {
        let mut again = vec![9];
        assert!(streams.rewrite(token, &mut again));
        assert_eq!(again[1..], written[..]);
    }
    streams.delivered(&StreamToken { offset: second.offset + 1, len: 1, ..second });
    let mut again = Vec::new();
    assert!(
        !streams.rewrite(&second, &mut again) && again.is_empty(),
        "a byte is known to be there"
    );
    streams.delivered(&first);
    assert!(!streams.rewrite(&first, &mut again) && again.is_empty());
    assert!(streams.rewrite(&last, &mut again));
}

#[test]
fn what_was_polled_may_have_gone_before_it_is_written() {
    let (mut streams, id) = opened();
    streams.write(id, b"hello").unwrap();
    let new = streams.look(ROOM).unwrap();
    let token = send_frame(&mut streams).unwrap();
    assert_eq!(streams.write_stream(&new, &mut Vec::new(), ROOM, Length::Explicit), None);
    streams.lost(&Token::Stream(token));
    let lost = streams.look(ROOM).unwrap();
    streams.reset(id, 0).unwrap();
    assert_eq!(streams.write_stream(&lost, &mut Vec::new(), ROOM, Length::Explicit), None);
    assert_eq!(streams.write_stream(&new, &mut Vec::new(), ROOM, Length::Explicit), None);
}

#[test]
fn a_full_buffer_blocks_until_a_quarter_is_free() {
    let mut streams = endpoint(Side::Client, &StreamLimits { send_buffer: 4_000, ..small() });
    let id = streams.open(Dir::Uni).unwrap();
    assert_eq!(streams.write(id, &[0; 9_000]), Ok(4_000));
    assert_eq!(streams.write(id, &[0; 9_000]), Err(WriteError::Blocked));
    assert_eq!(streams.write_chunk(id, Bytes::from(vec![0; 900])), Err(WriteError::Blocked));
    assert_eq!(streams.write(id, &[]), Ok(0));
    let tokens = send_frames(&mut streams);
    assert_eq!(tokens.len(), 4);
    streams.delivered(&StreamToken { len: 999, ..tokens[0] });
    assert!(events(&mut streams).is_empty());
    streams.delivered(&tokens[0]);
    streams.delivered(&tokens[1]);
    assert_eq!(events(&mut streams), [StreamEvent::Writable { id }], "once");
    streams.delivered(&tokens[2]);
    assert!(events(&mut streams).is_empty(), "nobody waits");
    assert!(streams.write(id, &[0; 9_000]).unwrap() >= 2_000);
}

#[test]
fn looking_for_room_changes_nothing_and_wanting_it_is_answered_once() {
    let mut streams = endpoint(Side::Client, &StreamLimits { send_buffer: 4_000, ..small() });
    let id = streams.open(Dir::Uni).unwrap();
    assert_eq!(streams.room(id), Ok(4_000));
    assert_eq!(streams.want_room(id), Ok(()));
    assert_eq!(events(&mut streams), [StreamEvent::Writable { id }], "there is room already");
    assert_eq!(streams.write(id, &[0; 4_000]), Ok(4_000));
    let tokens = send_frames(&mut streams);
    assert_eq!(streams.room(id), Ok(0));
    streams.delivered(&tokens[0]);
    streams.delivered(&tokens[1]);
    assert!(streams.room(id).unwrap() > 1_000);
    assert!(events(&mut streams).is_empty(), "nobody has asked");
    let room = streams.room(id).unwrap();
    assert_eq!(streams.write(id, &[0; 4_000]), Ok(room));
    assert_eq!(streams.want_room(id), Ok(()));
    assert!(events(&mut streams).is_empty(), "there is none");
    streams.delivered(&tokens[2]);
    streams.delivered(&tokens[3]);
    assert_eq!(events(&mut streams), [StreamEvent::Writable { id }]);
    streams.reset(id, 0).unwrap();
    assert_eq!(streams.room(id), Err(WriteError::Closed));
    assert_eq!(streams.want_room(id), Err(WriteError::Closed));
}

#[test]
fn looking_for_room_makes_no_stream_wait_for_that_of_the_connection() {
    let (mut streams, id) = opened();
    streams.set_allowance(Allowance { send: 0, receive: u64::MAX, streams: 1_000 });
    assert_eq!(streams.room(id), Ok(0));
    assert_eq!(streams.out.pool.waiting(), 0);
    assert_eq!(streams.want_room(id), Ok(()));
    assert_eq!(streams.out.pool.waiting(), 1);
}

#[test]
fn reset_ends_everything_and_is_repeated_until_acknowledged() {
    let (mut streams, id) = opened();
    streams.write(id, &[0; 2_000]).unwrap();
    let token = send_frame(&mut streams).unwrap();
    streams.retransmit(&token);
    streams.reset(id, 77).unwrap();
    streams.reset(id, 78).unwrap();
    assert_eq!(state(&streams, id), SendState::ResetSent);
    assert_eq!(streams.look(ROOM), None);
    assert_eq!(streams.stats().send_buffered, 0);
    assert_eq!(streams.write(id, b"x"), Err(WriteError::Closed));
    let size = u64::from(token.len);
    let (frames, tokens) = control_tokens(&mut streams);
    assert_eq!(frames, [[encode::RESET_STREAM, id.0, 77, size]]);
    streams.lost(&Token::Stream(token));
    assert_eq!(streams.look(ROOM), None);
    streams.lost(&tokens[0]);
    assert_eq!(control(&mut streams), [[encode::RESET_STREAM, id.0, 77, size]]);
    // Late acknowledgements do not finish a stream that was reset.
    streams.acked(&Token::Stream(token));
    streams.acked(&tokens[0]);
    assert!(events(&mut streams).is_empty());
    assert_eq!(streams.stats().streams, 0);
    streams.lost(&tokens[0]);
    assert!(!streams.wants_control());
}

#[test]
fn stop_sending_resets_the_stream_with_its_code() {
    for finished in [false, true] {
        let (mut streams, id) = opened();
        streams.write(id, &[0; 100]).unwrap();
        if finished {
            streams.finish(id).unwrap();
        }
        send_frame(&mut streams).unwrap();
        streams.received_stop_sending(id, 33).unwrap();
        streams.received_stop_sending(id, 34).unwrap();
        assert_eq!(events(&mut streams), [StreamEvent::Stopped { id, code: 33 }]);
        assert_eq!(control(&mut streams), [[encode::RESET_STREAM, id.0, 33, 100]]);
        assert_eq!(streams.write(id, b"x"), Err(WriteError::Stopped(33)));
        assert_eq!(streams.finish(id), Err(ClosedStream::Stopped(33)));
        streams.acked(&Token::Control(ControlToken::ResetStream(id)));
        assert_eq!(streams.stats().streams, 0);
    }
}

#[test]
fn stop_sending_after_our_own_reset_changes_nothing() {
    let (mut streams, id) = opened();
    streams.reset(id, 1).unwrap();
    streams.received_stop_sending(id, 2).unwrap();
    assert!(events(&mut streams).is_empty());
    assert_eq!(control(&mut streams), [[encode::RESET_STREAM, id.0, 1, 0]]);
}

#[test]
fn the_scheduler_decides_among_new_bytes() {
    let mut streams = client();
    let [a, b] = [0; 2].map(|_| streams.open(Dir::Uni).unwrap());
    streams.write(a, &[0; 5_000]).unwrap();
    streams.write(b, &[0; 1_500]).unwrap();
    streams.set_priority(b, Priority::CONTROL).unwrap();
    assert_eq!(streams.priority(b), Some(Priority::CONTROL));
    let order: Vec<_> = std::iter::from_fn(|| send_frame(&mut streams).map(|t| t.id)).collect();
    assert_eq!(order, [b, b, a, a, a, a, a]);
}

/// Sends a frame; returns whether the frame flushed all written data.
fn send_and_flush(streams: &mut Sender) -> bool {
    let pending = streams.look(ROOM).unwrap();
    streams.write_stream(&pending, &mut Vec::new(), ROOM, Length::Explicit).unwrap().flushed
}

#[test]
fn a_stream_says_when_it_is_flushed() {
    let (mut streams, id) = opened();
    streams.write(id, &[0; 1_500]).unwrap();
    let pending = streams.look(ROOM).unwrap();
    let lost = streams.write_stream(&pending, &mut Vec::new(), ROOM, Length::Explicit).unwrap();
    assert!(!lost.flushed && streams.has_unsent(id));
    assert!(send_and_flush(&mut streams));
    assert!(!streams.has_unsent(id));
    // Resending lost data does not count as a flush.
    streams.lost(&Token::Stream(lost.token));
    assert!(!send_and_flush(&mut streams));
    streams.write(id, b"y").unwrap();
    streams.finish(id).unwrap();
    assert!(send_and_flush(&mut streams));
}

#[test]
fn a_bare_fin_is_a_flush_of_its_own() {
    let (mut streams, id) = opened();
    streams.write(id, b"x").unwrap();
    assert!(send_and_flush(&mut streams));
    streams.finish(id).unwrap();
    assert!(streams.has_unsent(id));
    assert!(send_and_flush(&mut streams));
}

#[test]
fn control_frames_stay_within_their_room() {
    let mut streams = client();
    for code in 0..8 {
        let id = streams.open(Dir::Uni).unwrap();
        streams.reset(id, code).unwrap();
    }
    let (mut frames, mut tokens) = (Vec::new(), Tokens::new());
    let mut rounds = 0;
    while streams.wants_control() {
        let mut out = vec![0xff; 3];
        // The frames have four bytes each: two frames fit, but not three.
        streams.write_control(Instant::now(), RTT, &mut out, 11, &mut tokens);
        assert_eq!(out.len(), 3 + 8);
        frames.extend_from_slice(&out[3..]);
        rounds += 1;
    }
    assert_eq!((rounds, tokens.len()), (4, 8));
    assert!(frames.chunks(4).zip(0..).all(|(frame, code)| frame[2] == code));
}

/// By rounds (Holzinger 2025, III-B1): each stream has 2025 bytes of frames in a round, and its last frame
/// may exceed them by its header.
#[test]
fn frames_are_charged_with_their_headers_if_the_scheduler_counts_frames() {
    let mut streams = client();
    streams.set_scheduler(Scheme::HLS.build());
    let ids = [0; 2].map(|_| streams.open(Dir::Uni).unwrap());
    for id in ids {
        assert!(streams.set_priority(id, Priority::new(3, true).unwrap()).is_ok());
        streams.write(id, &[7; 7000]).unwrap();
    }
    let mut turns: Vec<(StreamId, usize)> = Vec::new();
    for _ in 0..12 {
        let pending = streams.look(ROOM).unwrap();
        let mut frame = Vec::new();
        streams.write_stream(&pending, &mut frame, ROOM, Length::Explicit).unwrap();
        match turns.last_mut().filter(|(id, _)| *id == pending.id) {
            Some((_, bytes)) => *bytes += frame.len(),
            None => turns.push((pending.id, frame.len())),
        }
    }
    assert_eq!(turns.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [ids, ids, ids].concat());
    // A stream whose headers overdraw a round has less in the next round.
    for id in ids {
        let bytes: usize = turns.iter().filter(|(of, _)| *of == id).map(|(_, bytes)| bytes).sum();
        assert!((3 * 2025..3 * 2025 + 8).contains(&bytes), "{turns:?}");
    }
}

/// The data of a session's streams, whether one alone belongs to it, others join it, or some leave.
#[test]
fn what_a_session_has_to_send_follows_its_streams() {
    let mut streams = client();
    let [one, other] = [(); 2].map(|()| streams.open(Dir::Uni).unwrap());
    let bytes = |streams: &Sender| {
        let all = streams.unsent_of(0);
        assert_eq!(all, streams.visit_unsent(0).1);
        all.bytes
    };
    streams.write(one, &[1; 300]).unwrap();
    streams.set_session(one, Some(0));
    assert_eq!(bytes(&streams), 300);
    let before = streams.unsent_version();
    streams.write(one, &[1; 100]).unwrap();
    assert_eq!(bytes(&streams), 400);
    assert_ne!(streams.unsent_version(), before, "the data has changed");
    // The same session again.
    streams.set_session(one, Some(0));
    streams.write(other, &[1; 50]).unwrap();
    assert_eq!(bytes(&streams), 400);
    streams.set_session(other, Some(0));
    assert_eq!((bytes(&streams), streams.members(0)), (450, 2));
    streams.write(one, &[1; 10]).unwrap();
    streams.write(other, &[1; 20]).unwrap();
    assert_eq!(bytes(&streams), 480);
    streams.set_session(one, None);
    assert_eq!((bytes(&streams), streams.members(0)), (70, 1));
    streams.write(other, &[1; 30]).unwrap();
    assert_eq!(bytes(&streams), 100);
    streams.set_session(other, Some(1));
    assert_eq!((bytes(&streams), streams.unsent_of(1).bytes), (0, 100));
    streams.set_session(one, Some(0));
    assert_eq!(bytes(&streams), 410);
}
