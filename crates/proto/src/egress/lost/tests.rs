//! Compares the ledger with a vector that records the state of every byte.

use super::*;
use crate::ids::{Dir, Side};
use crate::streams::resend_order::{ByLoss, ResendOrderFactory};
use crate::streams::{Length, PeerLimits, StreamLimits};
use proptest::prelude::*;
use sutura_schedule::Scheme;

/// Bytes of the stream.
const SIZE: u64 = 4_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    InFlight,
    Lost,
    Acked,
}

#[derive(Debug, Clone)]
enum Op {
    Lose(u64, u64),
    Acknowledge(u64, u64),
    /// Sends one frame again, of at most this many bytes.
    Resend(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..SIZE, 1..600u64).prop_map(|(start, len)| Op::Lose(start, len)),
        (0..SIZE, 1..600u64).prop_map(|(start, len)| Op::Acknowledge(start, len)),
        (30..600usize).prop_map(Op::Resend),
    ]
}

/// A stream that has sent all its bytes and its end.
fn sent() -> (Streams, StreamId) {
    let order = ByLoss.build(&|| Scheme::EPS.build());
    let mut streams =
        Streams::new(Side::Client, StreamLimits::default(), Scheme::EPS.build(), order);
    let (max_data, max_stream_data_uni, max_streams_uni) = (1 << 20, 1 << 20, 1);
    streams.set_peer_limits(PeerLimits {
        max_data,
        max_stream_data_uni,
        max_streams_uni,
        ..PeerLimits::default()
    });
    let id = streams.open(Dir::Uni).unwrap();
    streams.write(id, &[7; SIZE as usize]).unwrap();
    streams.finish(id).unwrap();
    while let Some(next) = streams.look_new(1_200, |_| None) {
        streams.write_stream(&next, &mut Vec::new(), 1_200, Length::Explicit).unwrap();
    }
    (streams, id)
}

fn frame(id: StreamId, start: u64, len: u64) -> StreamToken {
    let end = (start + len).min(SIZE);
    let len = u32::try_from(end - start).unwrap();
    StreamToken { id, offset: start, len, fin: end == SIZE, symbol: None }
}

proptest! {
    /// The last entry of the model is the end of the stream.
    #[test]
    fn each_lost_byte_is_sent_again_once(ops in prop::collection::vec(op(), 1..100)) {
        let (mut streams, id) = sent();
        let mut ledger = LossLedger::default();
        let mut model = vec![Fate::InFlight; SIZE as usize + 1];
        let covered = |frame: &StreamToken| {
            let range = frame.range();
            range.start as usize..range.end as usize + usize::from(frame.fin)
        };
        for op in ops {
            match op {
                Op::Lose(start, len) => {
                    let frame = frame(id, start, len);
                    let fates = &mut model[covered(&frame)];
                    let news = fates.contains(&Fate::InFlight);
                    let in_flight = fates.iter_mut().filter(|fate| **fate == Fate::InFlight);
                    in_flight.for_each(|fate| *fate = Fate::Lost);
                    prop_assert_eq!(ledger.queue(&mut streams, &frame), news);
                }
                Op::Acknowledge(start, len) => {
                    let frame = frame(id, start, len);
                    model[covered(&frame)].fill(Fate::Acked);
                    streams.delivered(&frame);
                    prop_assert!(ledger.arrived(&mut streams, &frame).is_empty());
                }
                Op::Resend(room) => {
                    let Some(next) = ledger.look(&streams) else { continue };
                    let length = Length::Explicit;
                    let written = streams.write_stream(&next, &mut Vec::new(), room, length).unwrap();
                    let fates = &mut model[covered(&written.token)];
                    prop_assert!(fates.iter().all(|fate| *fate == Fate::Lost));
                    fates.fill(Fate::InFlight);
                    prop_assert!(ledger.sent(&mut streams, &written.token).is_empty());
                }
            }
            prop_assert_eq!(ledger.owes_any(&streams), model.contains(&Fate::Lost));
            prop_assert_eq!(ledger.look(&streams).is_some(), model.contains(&Fate::Lost));
            prop_assert_eq!((streams.check(), ledger.check(&streams)), (Ok(()), Ok(())));
            if streams.end(id).is_none() {
                return Ok(());
            }
        }
    }
}
