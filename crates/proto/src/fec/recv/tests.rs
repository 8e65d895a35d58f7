use super::*;
use crate::fec::code::{CODES, LdpcStaircase};
use crate::wire::code_id::{CodeId, CodeSet};
use crate::wire::frame::{Carrier, Frame, FrameIter, SymbolAck};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;
use sutura_erasure::{Encoder, WindowLimits};

const PTO: Duration = Duration::from_millis(100);
const WINDOW: FecConfig = FecConfig {
    max_sessions: 16,
    max_window_symbols: 256,
    max_window_bytes: 384 * 1024,
    codes: CodeSet::ONLY_SLIDING_WINDOW,
};

fn all_codes() -> FecConfig {
    FecConfig { codes: CodeSet::all(), ..WINDOW }
}

/// A sending peer, and the sessions that receive from it.
struct Peer {
    now: Instant,
    receiver: ReceiveSessions,
    encoders: Vec<Encoder>,
    size: usize,
    key: u32,
}

impl Peer {
    fn new(config: FecConfig, size: usize) -> Self {
        let limits = WindowLimits {
            symbols: config.max_window_symbols as usize,
            bytes: config.max_window_bytes as usize,
            symbol_size: MAX_SYMBOL_SIZE,
        };
        Self {
            now: Instant::now(),
            receiver: ReceiveSessions::new(Some(config)),
            encoders: (0..config.max_sessions).map(|_| Encoder::new(limits)).collect(),
            size,
            key: 0,
        }
    }

    fn content(&self, session: u16, id: u64) -> Vec<u8> {
        let mut bytes = vec![(id * 7 + u64::from(session)) as u8; self.size];
        bytes[..8].copy_from_slice(&id.to_be_bytes());
        bytes
    }

    /// Sends the next symbol of a session, which arrives unless it is `lost`. Returns whether an arrived
    /// symbol was new.
    fn send(&mut self, session: u16, lost: bool) -> Option<bool> {
        let encoder = &mut self.encoders[usize::from(session)];
        let id = encoder.next_id();
        let bytes = self.content(session, id);
        let encoder = &mut self.encoders[usize::from(session)];
        while encoder.push(&bytes).is_err() {
            encoder.release_below(encoder.window().start + 1);
        }
        (!lost).then(|| self.resend(session, id))
    }

    /// Sends the next symbols of a session, some of which are `lost`, counted from 0.
    fn send_all(&mut self, session: u16, count: u64, lost: impl Fn(u64) -> bool) {
        (0..count).for_each(|n| _ = self.send(session, lost(n)));
    }

    /// Loses the next symbol, which a repair symbol over these symbols and the two next recovers.
    fn mends(&mut self, session: u16, from: u64) {
        let next = self.window(session).end;
        self.send_all(session, 2, |n| n == 0);
        assert_eq!(self.repair(session, from..next + 2), 1);
    }

    /// Sends a symbol again; returns whether its frames should be processed.
    fn resend(&mut self, session: u16, id: u64) -> bool {
        let bytes = self.content(session, id);
        let new = self.receiver.on_source(self.now, SymbolRef { session, id }, &bytes).unwrap();
        self.check();
        new
    }

    /// Sends a repair symbol; returns how many symbols it recovered.
    fn repair(&mut self, session: u16, span: Range<u64>) -> usize {
        self.key += 1;
        self.repair_of(CodeId::SLIDING_WINDOW, session, span, self.key)
    }

    fn repair_of(&mut self, code: CodeId, session: u16, span: Range<u64>, key: u32) -> usize {
        let header = RepairHeader::new(session, code, &span, key);
        let mut payload = Vec::new();
        let encoder = &self.encoders[usize::from(session)];
        code::find(code).unwrap().encode(encoder, span, key, &mut payload).unwrap();
        self.receiver.on_repair(self.now, &header, &payload).unwrap();
        self.check();
        self.fetch(session).len()
    }

    /// Fetches the recovered symbols.
    fn fetch(&mut self, session: u16) -> Vec<u64> {
        let (mut ids, mut frames) = (Vec::new(), Vec::new());
        while let Some(recovered) = self.receiver.pop_recovered(session, &mut frames) {
            assert_eq!(frames, self.content(session, recovered.symbol.id));
            ids.push(recovered.symbol.id);
        }
        self.check();
        ids
    }

    fn window(&self, session: u16) -> Range<u64> {
        self.encoders[usize::from(session)].window()
    }

    fn check(&self) {
        let allocated = self.receiver.allocated();
        let sessions = self.receiver.sessions.iter().flatten();
        assert_eq!(allocated, sessions.map(|s| s.decoder.allocated()).sum::<usize>());
        assert!(allocated <= MAX_DECODER_BYTES, "{allocated}");
    }

    fn decoder(&self, session: u16) -> &Decoder {
        &self.receiver.sessions[usize::from(session)].as_ref().unwrap().decoder
    }

    /// Advances the time until every decoder is idle.
    fn idle(&mut self) {
        while let Some(at) = self.receiver.timeout(PTO) {
            self.now = at;
            self.receiver.on_timeout(at, PTO);
        }
    }
}

fn code_of(result: Result<(), TransportError>) -> Result<(), TransportErrorCode> {
    result.map_err(|error| error.code)
}

/// By default, each window may be as large as memory permits. All windows together are held as long as each
/// of them has no more than 256 symbols in flight.
#[test]
fn sixteen_windows_of_256_symbols_are_held() {
    let config = FecConfig::default();
    let mut peer = Peer::new(config, MAX_SYMBOL_SIZE);
    let window = 256;
    let lost = MAX_PENDING_REPAIRS as u64 + 1;
    // The second round counts memory kept for reuse as well.
    for round in 0..2 {
        let first = round * window;
        for session in 0..config.max_sessions {
            peer.receiver.on_window(peer.now, session, first).unwrap();
        }
        for n in 0..window {
            for session in 0..config.max_sessions {
                peer.send(session, n < lost);
            }
        }
        // With one equation fewer than unknowns, few unknowns are determined; one more equation determines
        // all.
        let mut recovered = vec![0; config.max_sessions.into()];
        for _ in 0..lost {
            for session in 0..config.max_sessions {
                assert_eq!(peer.decoder(session).lower_bound(), first);
                let count = peer.repair(session, first..first + window);
                recovered[usize::from(session)] += count as u64;
            }
        }
        assert!(recovered.iter().all(|&count| count == lost), "{recovered:?}");
    }
    assert!(peer.receiver.allocated() > MAX_DECODER_BYTES * 3 / 4);
}

/// A default window is held together with every equation over it, with long symbols and with short symbols.
#[test]
fn what_the_default_promises_is_held() {
    let config = FecConfig::default();
    for size in [MAX_SYMBOL_SIZE, 700] {
        let mut peer = Peer::new(config, size);
        let most = u64::from(config.max_window_bytes) / size as u64;
        let window = most.min(config.max_window_symbols.into());
        let lost = MAX_PENDING_REPAIRS as u64 + 1;
        peer.send_all(0, window, |n| n < lost);
        let mut recovered = 0;
        for _ in 0..lost {
            assert_eq!(peer.decoder(0).lower_bound(), 0);
            recovered += peer.repair(0, 0..window);
        }
        assert_eq!(recovered as u64, lost, "{size}");
        assert!(peer.receiver.allocated() > MAX_DECODER_BYTES * 2 / 3, "{size}");
    }
}

/// Decoders in use share the memory; no decoder is emptied for another.
#[test]
fn the_oldest_quarter_of_the_largest_decoder_yields() {
    let mut peer = Peer::new(FecConfig::default(), MAX_SYMBOL_SIZE);
    for _ in 0..4000 {
        peer.send(0, false);
        peer.send(1, false);
    }
    let held = [0, 1].map(|session| peer.decoder(session).bytes());
    assert!(held.iter().all(|bytes| *bytes > MAX_DECODER_BYTES / 4), "{held:?}");
    for session in [0, 1] {
        assert!(peer.decoder(session).lower_bound() > 0);
        assert!(!peer.resend(session, 0), "what was shed is a duplicate");
        peer.mends(session, 3000);
    }
}

#[test]
fn a_peer_that_fills_every_session_stays_within_the_bound() {
    let large = FecConfig {
        max_sessions: 200,
        max_window_symbols: 4096,
        max_window_bytes: 4 << 20,
        ..all_codes()
    };
    let mut peer = Peer::new(large, MAX_SYMBOL_SIZE);
    let payload = [1; MAX_SYMBOL_SIZE + 2];
    let now = peer.now;
    for round in 0..30u64 {
        for session in 0..large.max_sessions {
            // Jumps, runs and equations that cannot be solved.
            let first = round * 5000;
            for id in [first, first + 4000].into_iter().chain(first + 1..first + 6) {
                peer.resend(session, id);
            }
            for (number, code) in (0..).zip(CODES) {
                let key = key(code.id(), number);
                let header = RepairHeader::new(session, code.id(), &(first + 50..first + 90), key);
                let result = peer.receiver.on_repair(now, &header, &payload);
                assert_eq!(code_of(result), Ok(()));
                peer.check();
            }
            peer.fetch(session);
            peer.receiver.on_window(now, session, first + round % 3 * 2000).unwrap();
            peer.check();
        }
    }
    assert!(peer.receiver.allocated() > MAX_DECODER_BYTES / 2);
}

/// A key with which the code has a repair symbol.
fn key(code: CodeId, number: u32) -> u32 {
    let staircase = LdpcStaircase::key(200, number % 200).unwrap();
    if code == CodeId::LDPC_STAIRCASE { staircase } else { number }
}

/// A single session whose window alone exceeds the limit.
#[test]
fn one_session_stays_within_the_bound() {
    let huge = FecConfig { max_window_symbols: 1 << 15, max_window_bytes: 64 << 20, ..WINDOW };
    let mut peer = Peer::new(huge, MAX_SYMBOL_SIZE);
    for _ in 0..12_000 {
        assert_eq!(peer.send(0, false), Some(true));
    }
    // The decoder forgot some symbols, but continues.
    assert!(peer.decoder(0).lower_bound() > 0);
    peer.mends(0, 12_000);
    for id in 0..12_002 {
        assert!(!peer.resend(0, id), "{id} is a duplicate");
    }
}

#[test]
fn symbols_that_were_recovered_and_not_fetched_may_come_again() {
    let mut peer = Peer::new(WINDOW, 50);
    peer.send(0, true);
    peer.send(0, false);
    let mut payload = Vec::new();
    peer.encoders[0].repair(0..2, 1, &mut payload).unwrap();
    let header = RepairHeader::new(0, CodeId::SLIDING_WINDOW, &(0..2), 1);
    peer.receiver.on_repair(peer.now, &header, &payload).unwrap();
    peer.idle();
    assert_eq!(peer.fetch(0), []);
    assert!(peer.resend(0, 0));
    assert!(!peer.resend(0, 1));
}

#[test]
fn duplicates_are_known_though_more_ranges_came_than_are_reported() {
    let mut peer = Peer::new(FecConfig::default(), 50);
    let most = 2 * MAX_HELD_RANGES as u64 + 100;
    peer.send_all(0, most, |n| n % 2 == 1);
    let s = peer.receiver.sessions[0].as_ref().unwrap();
    assert!(s.held.len() == MAX_HELD_RANGES && !s.held.contains(20));
    peer.idle();
    for id in 0..most {
        assert_eq!(peer.resend(0, id), id % 2 == 1, "{id}");
    }
}

#[test]
fn idle_sessions_hold_nothing_and_go_on() {
    let mut peer = Peer::new(WINDOW, 1000);
    assert_eq!(peer.receiver.timeout(PTO), None);
    for session in 0..WINDOW.max_sessions {
        peer.send_all(session, 300, |n| n % 10 == 3);
        let window = peer.window(session);
        peer.repair(session, window);
        peer.now += Duration::from_millis(1);
    }
    // The sessions become idle one after the other, except the session in use.
    let first = peer.now - Duration::from_millis(16) + IDLE_PERIOD + 3 * PTO;
    assert_eq!(peer.receiver.timeout(PTO), Some(first));
    peer.receiver.on_timeout(first, PTO);
    assert_eq!(peer.receiver.recent.len(), 15);
    assert_eq!(peer.receiver.timeout(PTO), Some(first + Duration::from_millis(1)));
    peer.now = first;
    peer.send(1, false);
    assert_eq!(peer.receiver.timeout(PTO), Some(first + Duration::from_millis(2)));
    peer.idle();
    assert_eq!((peer.receiver.allocated(), peer.receiver.timeout(PTO)), (0, None));

    for session in 0..WINDOW.max_sessions {
        // Lost symbols are still new when they arrive; symbols that arrived before still count as duplicates.
        let lost = if session == 1 { 301 } else { 300 };
        assert!(peer.resend(session, 103));
        assert!(!peer.resend(session, 104) && !peer.resend(session, 103));
        // A repair symbol over forgotten symbols is useless, but a repair symbol over later symbols is not.
        peer.send(session, true);
        peer.send(session, false);
        assert_eq!(peer.repair(session, 200..lost + 2), 0);
        assert_eq!(peer.repair(session, lost..lost + 2), 1);
    }
}

#[test]
fn the_decoder_used_least_recently_yields() {
    // Windows so large that the limit has room for seven of them.
    let config = FecConfig { max_window_symbols: 1024, max_window_bytes: 2 << 20, ..WINDOW };
    let mut peer = Peer::new(config, MAX_SYMBOL_SIZE);
    for session in 0..6 {
        for _ in 0..1000 {
            assert_eq!(peer.send(session, false), Some(true));
        }
        peer.now += IDLE_PERIOD;
    }
    assert_eq!((peer.decoder(0).bytes(), peer.decoder(0).lower_bound()), (0, 1000));
    assert_eq!(peer.decoder(5).lower_bound(), 0, "the one in use was not touched");
    // No session delivers a symbol twice, whether or not it has forgotten symbols.
    for session in 0..6 {
        for id in 0..1000 {
            assert!(!peer.resend(session, id), "{id} of {session}");
        }
        peer.mends(session, 1000);
    }
}

/// Checks the report of a session with `read`.
fn report(receiver: &mut ReceiveSessions, read: impl FnOnce(&SymbolAck<'_>)) {
    let mut out = Vec::new();
    receiver.write_symbol_acks(&mut out, 1000);
    match FrameIter::new(&out, Carrier::OneRtt).next() {
        Some(Ok(Frame::SymbolAck(ack))) => read(&ack),
        other => panic!("not a SYMBOL_ACK: {other:?}"),
    }
}

#[test]
fn reports_do_not_change_when_memory_is_taken() {
    let mut peer = Peer::new(WINDOW, 100);
    peer.send_all(0, 30, |n| [3, 10, 20].contains(&n));
    assert_eq!(peer.repair(0, 15..25), 1);
    let held = |ack: &SymbolAck<'_>| {
        assert_eq!((ack.session, ack.lower_bound), (0, 3));
        assert!(ack.ranges().eq([4..10, 11..30]));
    };
    report(&mut peer.receiver, held);
    peer.idle();
    report(&mut peer.receiver, held);
}

/// With more gaps than a report has ranges, reports contain the ranges of recovered symbols, each three
/// times.
#[test]
fn what_was_recovered_is_reported_among_many_gaps() {
    let mut peer = Peer::new(FecConfig::default(), 50);
    peer.send_all(0, 400, |n| n % 4 == 3);
    for id in [7, 99] {
        assert_eq!(peer.repair(0, id - 1..id + 2), 1);
    }
    for _ in 0..REPORTS {
        report(&mut peer.receiver, |ack| {
            let ranges: Vec<_> = ack.ranges().collect();
            assert_eq!((ack.lower_bound, ranges.len()), (3, MAX_REPORTED_RANGES));
            assert_eq!(ranges[..2], [4..11, 96..103]);
            assert_eq!(ranges.last(), Some(&(396..399)), "the others are the newest");
        });
        peer.receiver.on_symbol_acks_sent();
    }
    let mut out = Vec::new();
    peer.receiver.write_symbol_acks(&mut out, 1000);
    assert!(out.is_empty());
}

/// Recovered symbols take turns if a report has no room for all of them, and the number of waiting symbols is
/// bounded.
#[test]
fn recovered_symbols_that_wait_to_be_reported_are_bounded() {
    let mut peer = Peer::new(FecConfig::default(), 50);
    let lost = 2 * MAX_FRESH as u64;
    for n in 0..3 * lost {
        peer.send(0, n % 3 != 2);
    }
    let waiting = |peer: &Peer| peer.receiver.sessions[0].as_ref().unwrap().fresh.len();
    for n in 0..lost {
        assert_eq!(peer.repair(0, 3 * n..3 * n + 1), 1);
        assert!(waiting(&peer) <= MAX_FRESH);
    }
    assert_eq!(waiting(&peer), MAX_FRESH);
    let reported = |peer: &mut Peer| {
        let mut first = 0;
        report(&mut peer.receiver, |ack| first = ack.ranges().next().unwrap().start);
        peer.receiver.on_symbol_acks_sent();
        first
    };
    let first = reported(&mut peer);
    assert_eq!(first, 3 * (lost - MAX_FRESH as u64) - 1, "the oldest that waits");
    assert_eq!(reported(&mut peer), first + 3 * MAX_REPORTED_RANGES as u64);
}

#[test]
fn no_repair_symbol_moves_the_lower_bound() {
    let mut peer = Peer::new(all_codes(), 100);
    peer.send_all(0, 30, |n| n == 3 || n == 25);
    let all_but_one = |ack: &SymbolAck<'_>| {
        assert_eq!(ack.lower_bound, 3);
        assert!(ack.ranges().eq(std::iter::once(4..30)));
    };
    assert_eq!(peer.repair_of(CodeId::REED_SOLOMON, 0, 20..30, 0), 1);
    report(&mut peer.receiver, all_but_one);
    assert_eq!(peer.repair(0, 20..30), 0);
    report(&mut peer.receiver, all_but_one);
    // The first block can still be recovered, with any code.
    assert_eq!(peer.repair_of(CodeId::PARITY_2D, 0, 0..10, 0), 1);
    report(&mut peer.receiver, |ack| assert_eq!(ack.lower_bound, 30));
}

#[test]
fn codes_that_were_not_announced_or_do_not_fit_are_violations() {
    let violation = Err(TransportErrorCode::PROTOCOL_VIOLATION);
    let payload = [0; 100];
    let give = |config: FecConfig, code: u64, span: Range<u64>, key| {
        let header = RepairHeader::new(0, CodeId::new(code).unwrap(), &span, key);
        let mut receiver = ReceiveSessions::new(Some(config));
        code_of(receiver.on_repair(Instant::now(), &header, &payload))
    };
    assert_eq!(give(WINDOW, 0, 0..5, 9), Ok(()));
    assert_eq!(give(WINDOW, 1, 0..5, 9), violation);
    assert_eq!(give(all_codes(), 1, 0..5, 9), Ok(()));
    assert_eq!(give(all_codes(), 61, 0..5, 9), violation);
    // A configured code that does not exist.
    let unknown = FecConfig { codes: CodeSet::default().with(CodeId::MAX), ..WINDOW };
    assert_eq!(give(unknown, 61, 0..5, 9), violation);
    // A parity symbol beyond the largest block, and a block beyond the window.
    assert_eq!(give(all_codes(), 1, 0..5, 250), Ok(()));
    assert_eq!(give(all_codes(), 1, 0..5, 251), violation);
    assert_eq!(give(all_codes(), 1, 0..256, 0), violation);
    // A line that a block does not have.
    assert_eq!(give(all_codes(), 2, 0..25, 9), Ok(()));
    assert_eq!(give(all_codes(), 2, 0..25, 10), violation);
    let small = FecConfig { max_window_symbols: 10, ..all_codes() };
    assert_eq!(give(small, 1, 0..11, 0), violation);
}

proptest! {
    /// No matter which memory is released when, frames are processed once, and all symbols received or
    /// recovered are remembered.
    #[test]
    fn nothing_is_processed_twice(
        actions in proptest::collection::vec((0u16..3, 0u8..10, any::<u16>()), 0..300),
    ) {
        let config = FecConfig { max_window_symbols: 64, ..all_codes() };
        let mut peer = Peer::new(config, 40);
        let mut processed = [const { BTreeSet::new() }; 3];
        for (session, action, choice) in actions {
            let processed = &mut processed[usize::from(session)];
            let window = peer.window(session);
            let start = window.start + u64::from(choice) % (window.end - window.start).max(1);
            match action {
                0..=2 => {
                    if peer.send(session, choice % 4 == 0) == Some(true) {
                        prop_assert!(processed.insert(window.end));
                    }
                }
                3 if !window.is_empty() => {
                    let new = peer.resend(session, start);
                    prop_assert_eq!(new, processed.insert(start));
                }
                4..=7 if !window.is_empty() => {
                    let code = CODES[usize::from(action - 4)];
                    let key = key(code.id(), choice.into());
                    let header = RepairHeader::new(session, code.id(), &(start..window.end), key);
                    let mut payload = Vec::new();
                    if code.admits(&header.span(), header.key) {
                        let encoder = &peer.encoders[usize::from(session)];
                        code.encode(encoder, header.span(), header.key, &mut payload).unwrap();
                        peer.receiver.on_repair(peer.now, &header, &payload).unwrap();
                    }
                }
                8 => peer.idle(),
                _ => peer.now += Duration::from_millis(u64::from(choice) % 500),
            }
            for id in peer.fetch(session) {
                prop_assert!(processed.insert(id));
            }
            let at = peer.now;
            peer.receiver.on_timeout(at, PTO);
            peer.check();
        }
    }
}
