//! Streams that the receiver stops once repair symbols have completed them.

use super::pair::{Pair, pattern};
use crate::wire::frame::{Carrier, Frame, FrameIter};
use crate::{
    Dir, Event, Observation, Observer, Protection, Side, SpaceId, StreamEvent, StreamId,
    TransportConfig,
};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const CODE: u64 = 9;

fn pair(stop: Option<u64>) -> Pair {
    let config = || TransportConfig { stop_recovered: stop, ..TransportConfig::default() };
    let mut pair = Pair::with(config(), config());
    pair.handshake();
    pair
}

/// Records the STOP_SENDING frames that come.
struct Stops(Arc<Mutex<Vec<(StreamId, u64)>>>);

impl Observer for Stops {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        if let Observation::PacketReceived { space: SpaceId::Data, payload, .. } = observation {
            for frame in FrameIter::new(payload, Carrier::OneRtt) {
                if let Ok(Frame::StopSending { id, code }) = frame {
                    self.0.lock().unwrap().push((id, code));
                }
            }
        }
    }
}

/// Sends a stream with three repair symbols from the server and loses these datagrams of it. Returns the
/// stream and the STOP_SENDING frames that the server got.
fn transfer(pair: &mut Pair, lost: &[usize]) -> (StreamId, Vec<(StreamId, u64)>) {
    let stops = Arc::default();
    let now = pair.now;
    pair.server.conn().set_observer(now, Box::new(Stops(Arc::clone(&stops))));
    let data = pattern(6_500);
    let id = pair.server.conn().open(Dir::Uni).unwrap();
    let mut stream = pair.server.conn().send_stream(id);
    stream.protect(Some(Protection::tail(3, Duration::ZERO))).unwrap();
    stream.write(&data).unwrap();
    stream.finish().unwrap();
    let (lost, mut n) = (lost.to_vec(), 0);
    pair.filter = Box::new(move |from, _| {
        n += usize::from(from == Side::Server);
        from == Side::Client || !lost.contains(&(n - 1))
    });
    assert_eq!(pair.accept_and_read(Side::Client, Dir::Uni), data);
    pair.run_for(Duration::from_secs(2));
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
    assert_eq!(whole.server.conn().stats().stream_bytes_retransmitted, 0);
    assert_eq!(whole.client.conn().stats().streams.streams, 0);
    assert_eq!(whole.server.conn().stats().streams.streams, 0);
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
        pair.filter = Box::new(|from, _| from == Side::Server);
        pair.flush(Side::Server);
        let frame = Frame::StopSending { id, code };
        pair.server.conn().inject_frame(&frame).unwrap();
        pair.run_for(Duration::from_secs(1));
        let end = match finished {
            true => StreamEvent::Finished { id },
            false => StreamEvent::Stopped { id, code },
        };
        assert_eq!(ends(&pair, id), [end]);
        let stats = pair.server.conn().stats();
        assert_eq!((stats.stream_bytes_retransmitted, stats.streams.send_buffered), (0, 0));
    }
}
