//! The source and repair symbols that an end sent or received, in order.

use crate::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use sutura_proto::wire_format::{Carrier, Frame, FrameIter};
use sutura_proto::{Observation, Observer, SpaceId};

/// A frame of erasure coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// SOURCE_SYMBOL with `len` bytes of frames.
    Source { id: u64, len: usize },
    /// REPAIR with a repair symbol of `len` bytes.
    Repair { first: u64, count: u64, key: u32, len: usize },
    /// SYMBOL_WINDOW.
    Window { lower_bound: u64 },
}

/// The packets of an end that are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Sent,
    Received,
}

/// Writes down the symbols of one end of one connection.
#[derive(Debug, Clone)]
pub struct Recorder {
    direction: Direction,
    shared: Arc<Mutex<Recording>>,
}

#[derive(Debug, Default)]
struct Recording {
    events: Vec<Event>,
    /// Why the events cannot be used.
    failure: Option<String>,
}

impl Recorder {
    pub fn new(direction: Direction) -> Self {
        Self { direction, shared: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Recording> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The events that were written down so far.
    pub fn events(&self) -> Result<Vec<Event>, Error> {
        let mut recording = self.lock();
        match recording.failure.take() {
            Some(failure) => Err(failure.into()),
            None => Ok(std::mem::take(&mut recording.events)),
        }
    }
}

impl Recording {
    fn packet(&mut self, payload: &[u8]) -> Result<(), Error> {
        for frame in FrameIter::new(payload, Carrier::OneRtt) {
            let (session, event) = match frame? {
                Frame::SourceSymbol(source) => {
                    let (symbol, len) = (source.symbol, source.frames.len());
                    (symbol.session, Event::Source { id: symbol.id, len })
                }
                Frame::Repair(repair) => {
                    let (h, len) = (repair.header, repair.payload.len());
                    let event = Event::Repair { first: h.first, count: h.count, key: h.key, len };
                    (h.session, event)
                }
                Frame::SymbolWindow(window) => {
                    (window.session, Event::Window { lower_bound: window.lower_bound })
                }
                _ => continue,
            };
            if session != 0 {
                return Err("more than one coding window".into());
            }
            self.events.push(event);
        }
        Ok(())
    }
}

impl Observer for Recorder {
    fn observe(&mut self, _now: Instant, observation: &Observation<'_>) {
        let payload = match (self.direction, observation) {
            (Direction::Sent, Observation::PacketSent { space: SpaceId::Data, payload, .. })
            | (
                Direction::Received,
                Observation::PacketReceived { space: SpaceId::Data, payload, .. },
            ) => payload,
            _ => return,
        };
        let mut recording = self.lock();
        if let Err(error) = recording.packet(payload) {
            recording.failure.get_or_insert_with(|| error.to_string());
        }
    }
}

/// The frames of one download.
#[derive(Debug)]
pub struct Trace {
    /// The frames that the server sent.
    pub sent: Vec<Event>,
    /// The frames that the client received.
    pub received: Vec<Event>,
}

impl Trace {
    /// Source symbols that each sent repair symbol covers, on average and at most.
    pub fn spans(&self) -> (f64, u64) {
        let (mut repairs, mut sum, mut max) = (0_u64, 0, 0);
        for event in &self.sent {
            if let Event::Repair { count, .. } = *event {
                repairs += 1;
                sum += count;
                max = count.max(max);
            }
        }
        (sum as f64 / repairs.max(1) as f64, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_proto::CodeId;
    use sutura_proto::wire_format::{RepairHeader, SourceSymbol, SymbolRef};

    fn sent(payload: &[u8]) -> Observation<'_> {
        Observation::PacketSent {
            space: SpaceId::Data,
            early: false,
            pn: 0,
            size: payload.len(),
            payload,
        }
    }

    fn repair(session: u16) -> Vec<u8> {
        let mut payload = Vec::new();
        RepairHeader::new(session, CodeId::SLIDING_WINDOW, &(3..7), 5).encode(&mut payload);
        payload.extend([9; 6]);
        payload
    }

    #[test]
    fn frames_of_one_direction_are_written_down_in_order() {
        let mut recorder = Recorder::new(Direction::Sent);
        let now = Instant::now();
        // One PING precedes the source symbol, one is within it.
        let mut source = vec![1];
        SourceSymbol::encode_header(SymbolRef { session: 0, id: 7 }, &mut source);
        source.extend([1, 1, 1]);
        recorder.observe(now, &sent(&source));
        recorder.observe(now, &sent(&repair(0)));
        let received = repair(0);
        recorder.observe(
            now,
            &Observation::PacketReceived {
                early: false,
                space: SpaceId::Data,
                pn: 0,
                size: 9,
                payload: &received,
            },
        );
        let expected =
            [Event::Source { id: 7, len: 3 }, Event::Repair { first: 3, count: 4, key: 5, len: 6 }];
        assert_eq!(recorder.events().unwrap(), expected);
    }

    #[test]
    fn a_second_window_is_not_mistaken_for_the_first() {
        let mut recorder = Recorder::new(Direction::Sent);
        recorder.observe(Instant::now(), &sent(&repair(1)));
        assert!(recorder.events().is_err());
    }
}
