//! Two endpoints exchange packets, of which many are lost, late or recovered by other means. Every byte must
//! arrive once, and no state of streams may be left in the end.

use super::*;
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::HashMap;
use sutura_random::Rng;

/// Byte `offset` of stream `id`.
fn byte(id: StreamId, offset: u64) -> u8 {
    (offset ^ (offset >> 8) ^ id.0.wrapping_mul(77)).wrapping_mul(31) as u8
}

/// One endpoint with its application.
struct Host {
    streams: Sender,
    /// Sent packets whose fate is undecided.
    flight: Vec<Packet>,
    /// Streams to open; and streams to write on, with the bytes written and the total.
    to_open: u64,
    size: u64,
    writing: HashMap<StreamId, u64>,
    reading: HashMap<StreamId, u64>,
    finished: u64,
    received: u64,
}

impl Host {
    fn new(streams: Sender, to_open: u64, size: u64) -> Self {
        Self {
            streams,
            flight: Vec::new(),
            to_open,
            size,
            writing: HashMap::new(),
            reading: HashMap::new(),
            finished: 0,
            received: 0,
        }
    }

    /// Opens, accepts, writes and reads as much as possible.
    fn run(&mut self, random: &mut Rng) {
        while self.to_open > 0
            && let Some(id) = self.streams.open(Dir::Bi)
        {
            self.to_open -= 1;
            let priority = Priority::new(random.below(8) as u8, random.below(2) == 0).unwrap();
            self.streams.set_priority(id, priority).unwrap();
            self.writing.insert(id, 0);
            self.reading.insert(id, 0);
        }
        while let Some(id) = self.streams.accept(Dir::Bi) {
            self.writing.insert(id, 0);
            self.reading.insert(id, 0);
        }
        for event in events(&mut self.streams) {
            if let StreamEvent::Finished { .. } = event {
                self.finished += 1;
            }
        }
        let mut ids: Vec<_> = self.writing.keys().copied().collect();
        ids.sort();
        for id in ids {
            self.write(id, random);
        }
        let mut ids: Vec<_> = self.reading.keys().copied().collect();
        ids.sort();
        for id in ids {
            self.read(id, random);
        }
    }

    fn write(&mut self, id: StreamId, random: &mut Rng) {
        let written = self.writing.get_mut(&id).unwrap();
        let end = (*written + random.below(3000)).min(self.size);
        let data: Vec<u8> = (*written..end).map(|offset| byte(id, offset)).collect();
        let result = if random.below(2) == 0 {
            self.streams.write(id, &data)
        } else {
            self.streams.write_chunk(id, Bytes::from(data))
        };
        match result {
            Ok(len) => *written += len as u64,
            Err(error) => assert_eq!(error, WriteError::Blocked),
        }
        if *written == self.size {
            self.streams.finish(id).unwrap();
            self.writing.remove(&id);
        }
    }

    fn read(&mut self, id: StreamId, random: &mut Rng) {
        loop {
            let offset = self.reading.get_mut(&id).unwrap();
            let max = 1 + random.below(2000) as usize;
            match self.streams.read_chunk(id, max, true) {
                Ok(Some(chunk)) => {
                    assert!(chunk.bytes.len() <= max && chunk.offset == *offset);
                    for &b in &chunk.bytes {
                        assert_eq!(b, byte(id, *offset), "stream {id} offset {offset}");
                        *offset += 1;
                        self.received += 1;
                    }
                }
                Ok(None) => {
                    assert_eq!(*offset, self.size);
                    self.reading.remove(&id);
                    return;
                }
                Err(error) => {
                    assert_eq!(error, ReadError::Blocked);
                    return;
                }
            }
        }
    }

    /// Sends some packets, and decides the fate of some packets that were sent before.
    fn exchange(&mut self, peer: &mut Self, now: Instant, random: &mut Rng, loss: u64) {
        for _ in 0..random.below(12) {
            let Some(packet) = packet(&mut self.streams, now) else {
                break;
            };
            self.flight.push(packet);
        }
        for _ in 0..random.below(12) {
            if self.flight.is_empty() {
                return;
            }
            let index = random.below(self.flight.len() as u64) as usize;
            let packet = self.flight.swap_remove(index);
            let lost = random.below(100) < loss;
            if !lost || random.below(4) == 0 {
                deliver(&mut peer.streams, &packet.bytes).unwrap();
            }
            for token in &packet.tokens {
                if !lost {
                    self.streams.acked(token);
                } else {
                    // The packet is declared lost, although it may have arrived.
                    self.streams.lost(token);
                }
            }
            if !lost && random.below(10) == 0 {
                // A late duplicate, or bytes that arrive after they were recovered.
                deliver(&mut peer.streams, &packet.bytes).unwrap();
                for token in &packet.tokens {
                    if let Token::Stream(token) = token {
                        self.streams.delivered(token);
                    }
                }
            }
        }
    }

    /// The process lends the connection more or less than before.
    fn lend(&mut self, random: &mut Rng) {
        if random.below(8) == 0 {
            let bytes = [0, 500, 20_000, usize::MAX][random.below(4) as usize];
            let streams = [0, 1, 5, 100][random.below(4) as usize];
            self.streams.set_allowance(Allowance { send: bytes, receive: bytes as u64, streams });
        }
    }

    fn is_done(&self) -> bool {
        self.to_open == 0
            && self.writing.is_empty()
            && self.reading.is_empty()
            && self.flight.is_empty()
            && self.streams.stats().streams == 0
    }
}

/// The storage for sending and receiving, computed by visiting every stream.
fn storage_by_walk(streams: &Streams) -> (usize, usize) {
    let mut sum = (0, 0);
    for stream in streams.table.iter() {
        sum.0 += stream.halves.send().map_or(0, |send| send.buffer.storage_by_walk());
        sum.1 += stream.halves.recv().map_or(0, RecvHalf::storage);
    }
    sum
}

fn run(seed: u64, limits: &StreamLimits, count: u64, size: u64, loss: u64) {
    let mut random = Rng::new(seed);
    let mut now = Instant::now();
    let mut host = |side| {
        let approaches = approaches();
        let approach = &*approaches[random.below(approaches.len() as u64) as usize];
        Host::new(endpoint_with(side, limits, approach), count, size)
    };
    let (mut a, mut b) = (host(Side::Client), host(Side::Server));
    let mut rounds = 0;
    while !(a.is_done() && b.is_done() && a.received == 2 * count * size) {
        a.run(&mut random);
        b.run(&mut random);
        for host in [&mut a, &mut b] {
            host.lend(&mut random);
        }
        a.exchange(&mut b, now, &mut random, loss);
        b.exchange(&mut a, now, &mut random, loss);
        for host in [&a, &b] {
            assert_eq!(host.streams.out.pool.used(), host.streams.stats().send_buffered);
            let counted = (host.streams.send_storage(), host.streams.receive_storage());
            assert_eq!(counted, storage_by_walk(&host.streams));
            let StreamStats { send_buffered, receive_buffered, .. } = host.streams.stats();
            assert!(counted.0 >= send_buffered && counted.1 >= receive_buffered);
        }
        now += RTT / 4;
        rounds += 1;
        assert!(rounds < 100_000, "stuck: {:?} {:?}", a.streams.stats(), b.streams.stats());
    }
    for host in [&mut a, &mut b] {
        host.run(&mut random);
        assert_eq!((host.received, host.finished), (2 * count * size, 2 * count));
        let StreamStats { send_buffered, receive_buffered, .. } = host.streams.stats();
        assert_eq!((send_buffered, receive_buffered), (0, 0));
        assert_eq!((host.streams.send_storage(), host.streams.receive_storage()), (0, 0));
        while packet(&mut host.streams, now).is_some() {}
        assert!(!host.streams.wants_control() && !host.streams.has_data());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_byte_arrives_whatever_is_lost(
        seed: u64,
        count in 1..20u64,
        size in prop_oneof![Just(0), 1..100u64, 1000..30_000u64],
        loss in 0..60u64,
    ) {
        run(seed, &small(), count, size, loss);
    }
}

#[test]
fn windows_that_grow_lose_nothing_either() {
    let limits = StreamLimits {
        max_stream_window: 200_000,
        max_connection_window: 400_000,
        send_buffer: 100_000,
        ..small()
    };
    run(1, &limits, 3, 600_000, 10);
}

#[test]
fn a_connection_that_may_buffer_nothing_still_gets_everything_through() {
    let limits = StreamLimits {
        max_stream_window: 200_000,
        max_connection_window: 400_000,
        send_buffer: 200_000,
        connection_send_buffer: 0,
        ..small()
    };
    run(2, &limits, 3, 300_000, 10);
}
