//! Streams that the receiver stops once repair symbols have completed them.

use super::*;

const CODE: u64 = 9;

fn pair(stop: Option<u64>) -> Pair {
    Pair::with_both(|config| config.stop_recovered = stop)
}

/// Sends a stream with three repair symbols from the server and loses these datagrams of it. Returns the
/// stream and the STOP_SENDING frames that the server got.
fn transfer(pair: &mut Pair, lost: &'static [usize]) -> (StreamId, Vec<(StreamId, u64)>) {
    let stops = pair.watch_frames(Side::Server, |frame| match *frame {
        Frame::StopSending { id, code } => Some((id, code)),
        _ => None,
    });
    let id = pair.send_protected(Side::Server, 6_500, Some(tail()));
    pair.lose(Side::Server, |n| lost.contains(&(n - 1)));
    pair.takes(Side::Client, 6_500);
    pair.run_for(2 * SECOND);
    let stops = stops.lock().unwrap().clone();
    (id, stops)
}

fn ends(pair: &Pair, id: StreamId) -> Vec<StreamEvent> {
    let of_stream = |event: &Event| match event {
        Event::Stream(
            event @ (StreamEvent::Finished { id: of } | StreamEvent::Stopped { id: of, .. }),
        ) if *of == id => Some(*event),
        _ => None,
    };
    pair.server.events.iter().filter_map(of_stream).collect()
}

#[test]
fn a_stream_that_repair_completed_is_stopped_once_and_counts_as_finished() {
    let mut whole = pair(Some(CODE));
    let (id, stops) = transfer(&mut whole, &[2, 4]);
    assert_eq!(stops, [(id, CODE)]);
    assert_eq!(ends(&whole, id), [StreamEvent::Finished { id }]);
    assert_eq!(whole.server.stats().stream_bytes_retransmitted, 0);
    assert_eq!(whole.client.stats().streams.streams, 0);
    assert_eq!(whole.server.stats().streams.streams, 0);
    // Without losses or without the option, the client sends no STOP_SENDING.
    assert_eq!(transfer(&mut pair(Some(CODE)), &[]).1, []);
    assert_eq!(transfer(&mut pair(None), &[2, 4]).1, []);
}

#[test]
fn what_is_stopped_with_the_code_is_finished_and_with_any_other_is_not() {
    for (code, finished) in [(CODE, true), (CODE + 1, false)] {
        let mut pair = pair(Some(CODE));
        // No packet of the client arrives, so that the server has to send the whole stream again.
        let id = pair.send(Side::Server, Dir::Uni, &pattern(6_500));
        pair.mute(Side::Client);
        pair.flush(Side::Server);
        let frame = Frame::StopSending { id, code };
        pair.server.conn().inject_frame(&frame).unwrap();
        pair.run_for(SECOND);
        let end = match finished {
            true => StreamEvent::Finished { id },
            false => StreamEvent::Stopped { id, code },
        };
        assert_eq!(ends(&pair, id), [end]);
        let stats = pair.server.stats();
        assert_eq!((stats.stream_bytes_retransmitted, stats.streams.send_buffered), (0, 0));
    }
}
