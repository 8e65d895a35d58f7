use super::*;
use crate::fec::beyond::{Beyond, MAX_BEYOND_SYMBOLS};
use crate::fec::redundancy::{Decision, Redundancy, RedundancyFactory, View};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const WINDOW: u32 = 8;

/// Sessions towards a peer with short windows; one session is in use.
fn sessions() -> SendSessions {
    let mut sessions = SendSessions::default();
    sessions.set_packet_room(1200);
    let peer = FecConfig { max_window_symbols: WINDOW, ..FecConfig::default() };
    sessions.enable(&peer, 1400, 1200);
    let protection = Protection::tail(1, Duration::ZERO);
    assert_eq!(sessions.attach(DataKind::Streams, &protection, |_| 0), Some(0));
    sessions
}

/// Sends a symbol, and a repair symbol over it. Returns the symbols that left the window and are not
/// remembered.
fn send(sessions: &mut SendSessions, now: Instant, offset: u64) -> SmallVec<[Evicted; 1]> {
    let mut evicted = SmallVec::new();
    let frame = StreamToken { id: StreamId(0), offset, len: 100, fin: false, symbol: None };
    let symbol = NewSymbol { bytes: &[1; 100], frame: Some(&frame), datagrams: &[], message: None };
    let around = Surroundings::default();
    let SymbolRef { id, .. } =
        sessions.commit_symbol(now, 0, &symbol, &around, &mut evicted).unwrap();
    sessions.sessions[0].repair_sent(now, &(id..id + 1), 100);
    evicted
}

/// The peer acknowledges no symbol, and windows are short: symbols that left the windows are remembered
/// within the bound.
#[test]
fn what_left_the_windows_is_remembered_within_the_bound() {
    let (mut sessions, now) = (sessions(), Instant::now());
    let most = MAX_BEYOND_SYMBOLS as u64;
    let all = most + u64::from(WINDOW) + 100;
    let mut forgotten = Vec::new();
    for offset in 0..all {
        forgotten.extend(send(&mut sessions, now, offset).iter().map(|gone| gone.id));
        assert!(sessions.beyond() <= MAX_BEYOND_SYMBOLS);
    }
    assert!(forgotten.iter().copied().eq(0..100), "the oldest are forgotten");
    assert_eq!(sessions.beyond(), MAX_BEYOND_SYMBOLS);
    assert!(sessions.memory() < MAX_BEYOND_SYMBOLS * Beyond::SYMBOL_COST + 100_000);
    assert_eq!(sessions.check(), Ok(()));
    // Fewer symbols are remembered if the process has little memory left.
    assert!(!sessions.set_allowance(MAX_ENCODER_BYTES / 4));
    assert_eq!(send(&mut sessions, now, all).len() as u64, most - most / 4 + 1);
    assert_eq!(sessions.beyond(), MAX_BEYOND_SYMBOLS / 4);
}

/// The peer is told once that it may free symbols, in a later packet if the first has no room.
#[test]
fn a_window_is_told_when_it_moves() {
    let (mut sessions, now) = (sessions(), Instant::now());
    let tell = |sessions: &mut SendSessions, room: usize| {
        let mut tokens = Tokens::new();
        sessions.write_windows(&mut Vec::new(), room, &mut tokens);
        tokens.len()
    };
    for id in 0..4 {
        assert_eq!(send(&mut sessions, now, id).len(), 0);
        assert_eq!(tell(&mut sessions, 100), 0);
    }
    (0..4).for_each(|id| sessions.on_acked(SymbolRef { session: 0, id }, Arrival::Acked));
    sessions.tell_arrived(now, 0, &Surroundings::default());
    assert_eq!([1, 100, 100].map(|room| tell(&mut sessions, room)), [0, 1, 0]);
    // Symbols that leave a full window move it as well.
    (4..16).for_each(|id| assert_eq!(send(&mut sessions, now, id).len(), 0));
    for id in 4..12 {
        sessions.on_acked(SymbolRef { session: 0, id }, Arrival::Late);
    }
    assert_eq!(sessions.next_with_arrivals(), Some(0));
    assert_eq!((tell(&mut sessions, 100), tell(&mut sessions, 100)), (1, 0));
    assert_eq!(sessions.check(), Ok(()));
}

/// The memory of windows is looked at where one of them grows, and not with each symbol.
#[test]
fn growth_is_told_once() {
    let (mut sessions, now) = (sessions(), Instant::now());
    send(&mut sessions, now, 0);
    assert!(sessions.take_growth() && !sessions.take_growth());
    for id in 0..100 {
        sessions.on_acked(SymbolRef { session: 0, id }, Arrival::Acked);
        sessions.tell_arrived(now, 0, &Surroundings::default());
        if id == 50 {
            sessions.take_growth();
        }
        send(&mut sessions, now, id + 1);
    }
    assert!(!sessions.take_growth(), "the same buffers are used again");
}

/// What an acknowledgement frees is the same whether its symbols come as one run, in pieces, or out of order.
#[test]
fn acknowledged_symbols_are_settled_in_any_order() {
    let now = Instant::now();
    let orders: [&[u64]; 4] =
        [&[0, 1, 2, 3, 4, 5], &[3, 4, 0, 1, 2, 5], &[5, 4, 3, 2, 1, 0], &[1, 2, 0, 0, 1, 4, 3, 5]];
    for order in orders {
        let mut sessions = sessions();
        (0..7).for_each(|id| assert_eq!(send(&mut sessions, now, id).len(), 0));
        for id in order {
            sessions.on_acked(SymbolRef { session: 0, id: *id }, Arrival::Acked);
        }
        assert_eq!(sessions.next_with_arrivals(), Some(0));
        sessions.tell_arrived(now, 0, &Surroundings::default());
        assert_eq!(sessions.next_with_arrivals(), None);
        let session = &sessions.sessions[0];
        assert_eq!((session.first(), session.window_len()), (6, 1), "{order:?}");
        assert!(session.protected_streams().eq([StreamId(0)]) && !session.is_quiet());
        assert_eq!(sessions.check(), Ok(()));
    }
}

/// Writes down which datagrams nothing mends.
#[derive(Debug, Clone, Default)]
struct Listener(Arc<Mutex<Vec<u64>>>);

impl RedundancyFactory for Listener {
    fn name(&self) -> &str {
        "listener"
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(self.clone())
    }
}

impl Redundancy for Listener {
    fn on_source_sent(&mut self, _now: Instant, _id: u64, _view: &View) {}

    fn on_repair_sent(&mut self, _now: Instant, _view: &View) {}

    fn on_unmended(&mut self, _now: Instant, id: u64, _view: &View) {
        self.0.lock().unwrap().push(id);
    }

    fn decide(&self, _now: Instant, _view: &View) -> Decision {
        Decision::Source
    }
}

/// A policy is told of the lost datagrams for which no repair symbol is left, and of those for which none is left once
/// a repair symbol is lost too.
#[test]
fn a_policy_is_told_which_lost_datagrams_nothing_mends() {
    let (mut sessions, now) = (sessions(), Instant::now());
    let listener = Listener::default();
    let protection = Protection::new(Arc::new(listener.clone()));
    let session = sessions.attach(DataKind::Datagrams, &protection, |_| 1).unwrap();
    let around = Surroundings::default();
    for id in 0..4 {
        let symbol =
            NewSymbol { bytes: &[1; 100], frame: None, datagrams: &[MessageId(id)], message: None };
        sessions.commit_symbol(now, session, &symbol, &around, &mut SmallVec::new()).unwrap();
    }
    let lose = |sessions: &mut SendSessions, id| {
        let symbol = SymbolRef { session, id };
        sessions.on_lost(now, symbol, &around);
        sessions.keep(symbol, now + Duration::from_secs(1));
        std::mem::take(&mut *listener.0.lock().unwrap())
    };
    assert_eq!(lose(&mut sessions, 0), [0]);
    sessions.sessions[usize::from(session)].repair_sent(now, &(0..2), 100);
    assert_eq!(lose(&mut sessions, 1), [1], "the only repair symbol is for the first");
    sessions.sessions[usize::from(session)].repair_sent(now, &(1..3), 100);
    assert_eq!(lose(&mut sessions, 2), [2]);
    sessions.sessions[usize::from(session)].repair_sent(now, &(2..3), 100);
    for (span, unmended) in [(3..4, vec![]), (1..3, vec![1]), (2..3, vec![2])] {
        sessions.on_repair_settled(session, &span, false);
        sessions.on_repair_lost(now, session, &span, &around);
        assert_eq!(std::mem::take(&mut *listener.0.lock().unwrap()), unmended, "{span:?}");
    }
}
