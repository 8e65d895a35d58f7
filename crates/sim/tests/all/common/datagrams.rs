//! Sends datagrams of the maximum size alongside an application, and records the outcome of each datagram.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use sutura_proto::wire_format::{Carrier, Frame, FrameIter};
use sutura_proto::{Connection, Event, Observation, Observer, SpaceId};
use sutura_sim::{App, AppError, Pattern};

/// The datagrams that one end sent and received.
#[derive(Debug, Default)]
pub struct Record {
    /// The number of datagrams that the application wrote.
    pub written: u64,
    /// The packets that carried a datagram, by packet number, with the number of the datagram.
    pub packets: BTreeMap<u64, u64>,
    /// The packets that were received.
    pub arrived: BTreeSet<u64>,
    /// The numbers of the datagrams delivered to the application, in order.
    pub received: Vec<u64>,
    /// The sizes of the shortest and the longest datagram sent, in bytes.
    pub sizes: Option<(usize, usize)>,
}

/// A handle to the record of an end. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Shared(Arc<Mutex<Record>>);

impl Shared {
    pub fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn number(datagram: &[u8]) -> u64 {
    u64::from_be_bytes(*datagram.first_chunk().unwrap())
}

impl Observer for Shared {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        match observation {
            Observation::PacketSent { space: SpaceId::Data, pn, payload, .. } => {
                let frames = FrameIter::new(payload, Carrier::OneRtt).flatten();
                for frame in frames {
                    let Frame::Datagram(data) = frame else { continue };
                    let mut record = self.lock();
                    record.packets.insert(*pn, number(data));
                    let (min, max) = record.sizes.unwrap_or((data.len(), data.len()));
                    record.sizes = Some((min.min(data.len()), max.max(data.len())));
                }
            }
            Observation::PacketReceived { space: SpaceId::Data, pn, .. } => {
                self.lock().arrived.insert(*pn);
            }
            _ => {}
        }
    }
}

/// Runs an application and also sends datagrams of the maximum size.
pub struct WithDatagrams<A> {
    pub app: A,
    record: Shared,
    left: u64,
    interval: Duration,
    next_at: Option<Instant>,
}

impl<A> WithDatagrams<A> {
    pub fn new(app: A, count: u64, interval: Duration, record: Shared) -> Self {
        Self { app, record, left: count, interval, next_at: None }
    }

    /// Whether all datagrams were handed to the transport.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    fn send(&mut self, now: Instant, quic: &mut Connection) -> Result<(), AppError> {
        while self.left > 0 && self.next_at.is_some_and(|at| at <= now) {
            let size = quic.datagrams().max_size().ok_or(AppError("no datagrams".to_owned()))?;
            let mut record = self.record.lock();
            let mut data = vec![0; size];
            data[..8].copy_from_slice(&record.written.to_be_bytes());
            Pattern::new(record.written).fill(0, &mut data[8..]);
            record.written += 1;
            drop(record);
            let sent = quic.datagrams().send(Bytes::from(data));
            sent.map_err(|error| AppError(error.to_string()))?;
            self.left -= 1;
            self.next_at = self.next_at.map(|at| at + self.interval);
        }
        Ok(())
    }

    fn receive(&self, quic: &mut Connection) -> Result<(), AppError> {
        while let Some(data) = quic.datagrams().recv() {
            let number = number(&data);
            if Pattern::new(number).mismatch(0, &data[8..]).is_some() {
                return Err(AppError(format!("datagram {number} is damaged")));
            }
            self.record.lock().received.push(number);
        }
        Ok(())
    }
}

impl<A: App<Connection>> App<Connection> for WithDatagrams<A> {
    fn on_event(
        &mut self,
        now: Instant,
        quic: &mut Connection,
        event: Event,
    ) -> Result<(), AppError> {
        self.app.on_event(now, quic, event)
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        let wake_at = self.app.poll(now, quic)?;
        if self.next_at.is_none() && !quic.is_handshaking() {
            quic.set_observer(now, Box::new(self.record.clone()));
            self.next_at = Some(now);
        }
        self.send(now, quic)?;
        self.receive(quic)?;
        let next = self.next_at.filter(|_| self.left > 0);
        Ok(wake_at.into_iter().chain(next).min())
    }
}
