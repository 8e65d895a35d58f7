//! The sending side of erasure coding: all sessions of a connection.

mod lost;
mod memory;
mod repair;
#[cfg(test)]
mod tests;

use super::config::{FecConfig, MAX_WINDOW_BYTES, MAX_WINDOW_SYMBOLS};
use super::horizon::Horizon;
use super::redundancy::{Arrival, Protection, Reason, RepairPlan, SHORT_KEYS};
use super::session::{CodingSession, DataKind};
use super::stats::{CodingCounts, FecStats, ProtectionStats};
use super::surroundings::Surroundings;
use super::symbol::{Contents, Evicted, NewSymbol};
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{MessageId, StreamId, SymbolRef};
#[cfg(feature = "testing")]
use crate::invariant::ensure;
use crate::loss_reaction::RepairOutlook;
#[cfg(feature = "testing")]
use crate::recovery::token::StreamToken;
use crate::recovery::token::{Token, Tokens};
use crate::wire::code_id::CodeSet;
use crate::wire::coding::varint_size;
use crate::wire::frame::{Frame, RepairHeader, SourceSymbol, SymbolAck, SymbolWindow};
use crate::work;
use smallvec::SmallVec;
use std::ops::Range;
use std::time::Instant;
use sutura_erasure::WindowLimits;

/// Maximum number of sessions that this end uses, even if the peer allows more.
pub const MAX_SEND_SESSIONS: u16 = 64;
/// Maximum number of source symbols that this end keeps per session, even if the peer allows more.
pub const MAX_SEND_WINDOW_SYMBOLS: u32 = MAX_WINDOW_SYMBOLS;
/// Maximum number of bytes of source symbols that this end keeps per session, even if the peer
/// allows more.
pub const MAX_SEND_WINDOW_BYTES: u32 = MAX_WINDOW_BYTES;

/// Maximum number of bytes in all coding windows of a connection, no matter what the peer allows and how long
/// it withholds acknowledgements. Beyond this limit, the oldest symbols of the largest window lose their
/// protection.
pub const MAX_ENCODER_BYTES: usize = 8 << 20;

/// The smallest maximum source symbol size of a peer for which symbols are sent. With shorter symbols, the
/// header of a STREAM frame would be a large part of each symbol.
const MIN_SYMBOL_SIZE: usize = 64;

/// Bytes that a REPAIR frame adds to the longest source symbol of its span, besides the session, the first
/// identifier and the key: type 2, code 1, count 2, and the length of the symbol, 2.
const REPAIR_OVERHEAD: usize = 7;

/// The most bytes that a REPAIR frame of `session` adds to the longest source symbol of a span that begins
/// with `first`, with a short key or a key up to `key`.
pub(super) fn repair_overhead(session: u16, first: u64, key: u32) -> usize {
    let key = varint_size(key.max(SHORT_KEYS - 1).into());
    REPAIR_OVERHEAD + varint_size(session.into()) + varint_size(first) + key
}

/// The state of a symbol whose packet was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostSymbol {
    /// The symbol left the window: its frames are no longer protected.
    Unprotected,
    /// The symbol was in flight. The caller decides what to do with it and calls
    /// [`hold`](SendSessions::hold), [`queue`](SendSessions::queue) or [`finish`](SendSessions::finish).
    Open(RepairOutlook),
    /// The caller has nothing to do: another copy of the symbol is in flight, or the symbol has arrived.
    Settled,
}

/// How a source symbol fits in a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolFit {
    /// Bytes of frames that the symbol can hold.
    pub room: usize,
    /// Bytes of the packet that the longest such symbol leaves, because a repair symbol has a longer header.
    pub left: usize,
}

/// A repair symbol that a session would send next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairBid {
    /// The session.
    pub session: u16,
    /// The plan of its policy, limited to the symbols in the window.
    pub plan: RepairPlan,
    /// The header of the frame.
    header: RepairHeader,
    /// Size of the REPAIR frame in bytes.
    pub size: usize,
}

/// The next times of all sessions, which hold until a session changes, so that a packet without news for
/// sessions visits none of them.
#[derive(Debug, Clone, Copy)]
struct Rest {
    /// When a policy wants to be asked again or a held symbol is released.
    wake: Option<Instant>,
    /// When an idle session releases its memory.
    idle: Option<Instant>,
}

/// Acknowledged symbols of a session that follow each other.
#[derive(Debug)]
struct AckedRun {
    session: u16,
    ids: Range<u64>,
    how: Arrival,
}

/// All sessions in which this end protects data.
#[derive(Debug, Default)]
pub struct SendSessions {
    limits: Option<WindowLimits>,
    max_sessions: u16,
    /// Bytes of frames that fit in a full packet.
    packet_room: usize,
    /// The codes that the peer accepts.
    codes: CodeSet,
    sessions: Vec<CodingSession>,
    /// By how many bytes the windows must stay below [`MAX_ENCODER_BYTES`].
    withheld: usize,
    counts: CodingCounts,
    /// See [`FecStats::held`].
    held: u64,
    /// `None` after any change.
    rest: Option<Rest>,
    /// Whether a window may have moved since [`write_windows`](Self::write_windows) had nothing left to write.
    moved: bool,
    /// Whether a window takes more memory than at the last [look](Self::take_growth).
    grown: bool,
    /// The newest acknowledged symbols, which are not settled yet: mostly all that one frame acknowledges.
    acked: Option<AckedRun>,
    /// The time that has passed without the sessions being told of it.
    horizon: Option<Horizon>,
}

impl SendSessions {
    /// Records the next times of all sessions, unless a session has work to do already. At `now`, every
    /// policy was asked for the last time.
    pub fn rest(&mut self, now: Instant) {
        if self.is_resting(now) {
            return;
        }
        let restless = |s: &CodingSession| s.is_restless(now);
        work::steps(self.sessions.len());
        let busy = self.sessions.iter().any(restless) || self.is_over_budget();
        let rest = Rest { wake: self.timeout(now), idle: self.idle_timeout() };
        self.rest = Some(rest).filter(|_| !busy);
    }

    /// Whether no session has changed since [`rest`](Self::rest), and no session is due.
    pub fn is_resting(&self, now: Instant) -> bool {
        self.rest.is_some_and(|rest| rest.wake.is_none_or(|at| at > now))
    }

    /// Sets the space for frames in a full packet.
    pub fn set_packet_room(&mut self, bytes: usize) {
        if self.packet_room == bytes {
            return;
        }
        self.packet_room = bytes;
        self.rest = None;
        self.sessions.iter_mut().for_each(|s| s.set_packet_room(bytes));
    }

    /// Enables erasure coding after the peer announced a decoder. `largest_room` is the most space for
    /// frames that a packet may come to have.
    pub fn enable(&mut self, peer: &FecConfig, peer_symbol_size: usize, largest_room: usize) {
        let bytes = peer.max_window_bytes.min(MAX_SEND_WINDOW_BYTES) as usize;
        let symbol_size =
            largest_room.saturating_sub(repair_overhead(0, 0, 0)).min(peer_symbol_size).min(bytes);
        self.max_sessions = peer.max_sessions.min(MAX_SEND_SESSIONS);
        if symbol_size < MIN_SYMBOL_SIZE || self.max_sessions == 0 || peer.max_window_symbols == 0 {
            return;
        }
        self.limits = Some(WindowLimits {
            symbols: peer.max_window_symbols.min(MAX_SEND_WINDOW_SYMBOLS) as usize,
            bytes,
            symbol_size,
        });
        self.codes = peer.codes;
    }

    /// Number of sessions.
    pub fn used(&self) -> usize {
        self.sessions.len()
    }

    /// The codes that the peer accepts.
    pub fn codes(&self) -> CodeSet {
        self.codes
    }

    /// Whether the peer has a decoder.
    pub fn is_enabled(&self) -> bool {
        self.limits.is_some()
    }

    /// Whether all symbols of all sessions are known to have arrived, or are no longer wanted.
    #[cfg(test)]
    pub fn is_quiet(&self) -> bool {
        self.sessions.iter().all(CodingSession::is_quiet)
    }

    /// How many symbols are held.
    #[cfg(test)]
    pub fn held_symbols(&self) -> usize {
        self.sessions.iter().map(CodingSession::held_len).sum()
    }

    /// The symbols that wait to be sent again: session, identifier and frames.
    #[cfg(feature = "testing")]
    pub fn queued(&self) -> impl Iterator<Item = (u16, u64, &[StreamToken])> {
        let sessions = (0u16..).zip(&self.sessions);
        sessions.flat_map(|(session, s)| s.queued().map(move |(id, frames)| (session, id, frames)))
    }

    /// Checks the invariants of each session that hold between any two calls.
    ///
    /// # Errors
    /// The first contradiction.
    #[cfg(feature = "testing")]
    pub fn check(&self) -> Result<(), String> {
        let mut sessions = (0u16..).zip(&self.sessions);
        sessions.try_for_each(|(session, s)| {
            s.check().map_err(|wrong| format!("coding session {session}: {wrong}"))
        })
    }

    /// Checks that no session waits for a symbol's fate.
    ///
    /// # Errors
    /// The first session that waits.
    #[cfg(feature = "testing")]
    pub fn check_nothing_left(&self) -> Result<(), String> {
        let mut sessions = (0u16..).zip(&self.sessions);
        let open = |s: &CodingSession| !s.is_quiet() || s.beyond_len() > 0;
        let left = sessions.find(|(_, s)| open(s)).map(|(session, _)| session);
        ensure(left.is_none(), || format!("open symbols in session {left:?}"))
    }

    /// Counters.
    pub fn stats(&self) -> FecStats {
        let (can_send, held) = (self.is_enabled(), self.held);
        let mut stats = FecStats { can_send, held, ..FecStats::default() };
        stats.add_sent(&self.counts);
        stats
    }

    /// The counters of each session, with its present or last protection.
    pub fn protections(&self) -> impl Iterator<Item = ProtectionStats> + '_ {
        (0u16..).zip(&self.sessions).map(|(session, s)| ProtectionStats {
            session: Some(session),
            protection: s.protection.clone(),
            reason: s.policy.reason(),
            counts: s.counts,
        })
    }

    /// Calls `tell` for each session whose protection or whose policy's reason has changed since the
    /// last call.
    pub fn take_news(&mut self, mut tell: impl FnMut(u16, &Protection, Option<Reason>)) {
        for (session, s) in (0u16..).zip(&mut self.sessions) {
            if let Some(reason) = s.take_news() {
                tell(session, &s.protection, reason);
            }
        }
    }

    /// Adds to the counters of a session and to the counters of the connection.
    fn count(&mut self, session: u16, add: impl Fn(&mut CodingCounts)) {
        add(&mut self.counts);
        if let Some(s) = self.session(session) {
            add(&mut s.counts);
        }
    }

    /// A session that may change.
    fn session(&mut self, id: u16) -> Option<&mut CodingSession> {
        self.settle_acked();
        self.rest = None;
        self.moved = true;
        self.sessions.get_mut(usize::from(id))
    }

    /// Assigns a session to data of this kind that wants `protection`: an idle session, a new session, or a
    /// session that already protects other streams in the same way. `None` if there is no such session, or if
    /// the peer has no decoder; the data is not protected then. Messages share a session even if another is
    /// free.
    ///
    /// `members` returns how many streams belong to a session.
    pub fn attach(
        &mut self,
        kind: DataKind,
        protection: &Protection,
        members: impl Fn(u16) -> usize,
    ) -> Option<u16> {
        u16::try_from(self.find(kind, protection, members)?).ok()
    }

    /// A session for data of this kind. The session may already be in use by other data of the kind.
    fn find(
        &mut self,
        kind: DataKind,
        protection: &Protection,
        members: impl Fn(u16) -> usize,
    ) -> Option<usize> {
        let limits = self.limits?;
        self.rest = None;
        let alike = |s: &CodingSession| s.kind == kind && s.protection == *protection;
        let shared = match kind {
            DataKind::Streams if !protection.factory().shares_session() => None,
            DataKind::Streams | DataKind::Messages | DataKind::Datagrams => {
                self.sessions.iter().position(alike)
            }
        };
        if shared.is_some() {
            return shared;
        }
        if let Some(free) =
            (0..).zip(&self.sessions).position(|(number, s)| members(number) == 0 && s.is_settled())
        {
            self.sessions.get_mut(free)?.reuse(protection.clone(), kind);
            return Some(free);
        }
        if self.sessions.len() < usize::from(self.max_sessions) {
            let session = self.sessions.len();
            let (number, room) = (u16::try_from(session).ok()?, self.packet_room);
            self.sessions.push(CodingSession::new(number, limits, room, protection.clone(), kind));
            return Some(session);
        }
        let eligible = (0u16..).zip(&self.sessions).filter(|(_, s)| alike(s));
        eligible.map(|(number, _)| number).min_by_key(|number| members(*number)).map(usize::from)
    }

    /// The session that protects messages with `protection`, if there is one.
    pub fn of_messages(&self, protection: &Protection) -> Option<u16> {
        let is_it = |s: &CodingSession| s.kind == DataKind::Messages && s.protection == *protection;
        (0u16..).zip(&self.sessions).find(|(_, s)| is_it(s)).map(|(number, _)| number)
    }

    /// The kind of data that a session protects.
    pub fn kind(&self, session: u16) -> Option<DataKind> {
        self.sessions.get(usize::from(session)).map(|s| s.kind)
    }

    /// Streams whose data a repair symbol of `session` would protect.
    pub fn protected_by(&self, session: u16) -> impl Iterator<Item = StreamId> + '_ {
        self.sessions
            .get(usize::from(session))
            .into_iter()
            .flat_map(CodingSession::protected_streams)
    }

    /// Datagrams no longer use `session`. The session is free once all symbols that were sent in it are
    /// settled.
    pub fn detach_datagrams(&mut self, session: u16) {
        if let Some(session) = self.session(session) {
            session.kind = DataKind::Streams;
        }
    }

    /// Bytes of frames that the largest source symbol can hold; 0 if the peer has no decoder.
    pub fn symbol_size(&self) -> usize {
        self.limits.map_or(0, |limits| limits.symbol_size)
    }

    /// How a source symbol of `session` fits in `room` bytes of a packet.
    pub fn symbol_fit(&self, session: u16, room: usize) -> SymbolFit {
        let Some((limits, s)) = self.limits.zip(self.sessions.get(usize::from(session))) else {
            return SymbolFit { room: 0, left: room };
        };
        let id = s.encoder.next_id();
        let header = SourceSymbol::header_size(SymbolRef { session, id });
        // The first identifier of a repair symbol over this symbol may be as high as the symbol's own
        // identifier.
        let repair = s.repair_overhead(id);
        let largest = self.packet_room.saturating_sub(repair).min(limits.symbol_size);
        let most = room.saturating_sub(header);
        let room = most.min(largest);
        SymbolFit { room, left: most - room }
    }

    /// Whether data that is sent now becomes a source symbol of `session`.
    pub fn protects<'a>(&self, session: u16, around: impl FnOnce() -> Surroundings<'a>) -> bool {
        let s = self.sessions.get(usize::from(session));
        s.is_some_and(|s| s.policy.protects_all() || s.policy.protects(&s.view(&around())))
    }

    /// Appends the header of a SOURCE_SYMBOL frame; the protected frames must follow.
    pub fn write_symbol_header(&self, session: u16, out: &mut Vec<u8>) {
        let id = self.sessions.get(usize::from(session)).map_or(0, |s| s.encoder.next_id());
        SourceSymbol::encode_header(SymbolRef { session, id }, out);
    }

    /// Adds the symbol that was just written to the coding window, and returns its identifier.
    /// Symbols that leave the window to make room are appended to `evicted`.
    pub fn commit_symbol(
        &mut self,
        now: Instant,
        session: u16,
        symbol: &NewSymbol<'_>,
        around: &Surroundings<'_>,
        evicted: &mut SmallVec<[Evicted; 1]>,
    ) -> Option<SymbolRef> {
        debug_assert!(self.acked.is_none(), "the acknowledgement was handled");
        self.rest = None;
        let s = self.sessions.get_mut(usize::from(session))?;
        if let Some(horizon) = self.horizon {
            s.expire(horizon);
        }
        let (message, size) = (symbol.message, symbol.bytes.len() as u64);
        let (beyond, first, allocated) =
            (s.beyond_len(), s.encoder.window().start, s.encoder.allocated());
        let id = s.push(now, symbol, evicted)?;
        let left = s.beyond_len() > beyond;
        self.moved |= s.encoder.window().start > first;
        self.grown |= s.encoder.allocated() > allocated;
        let mut view = s.view(around);
        view.message = message;
        s.policy.on_source_sent(now, id, &view);
        for counts in [&mut self.counts, &mut s.counts] {
            counts.source_symbols += 1;
            counts.source_bytes += size;
        }
        if left {
            self.limit_beyond(session, |symbol| evicted.push(symbol));
        }
        Some(SymbolRef { session, id })
    }

    /// A stream of `session` has no more data to send, for now or (`ended`) for good.
    pub fn on_flushed(
        &mut self,
        now: Instant,
        session: u16,
        ended: bool,
        around: &Surroundings<'_>,
    ) {
        if let Some(s) = self.session(session) {
            let view = s.view(around);
            s.policy.on_flushed(now, ended, &view);
        }
    }

    /// The packet with `symbol` was acknowledged, whether or not it had been declared lost. The policy learns it
    /// from [`tell_arrived`](Self::tell_arrived). Until then, or until [`settle_acked`](Self::settle_acked), it may
    /// still seem to be in flight.
    #[inline]
    pub fn on_acked(&mut self, symbol: SymbolRef, how: Arrival) {
        let SymbolRef { session, id } = symbol;
        match &mut self.acked {
            Some(run) if (run.session, run.ids.end, run.how) == (session, id, how) => {
                run.ids.end += 1;
            }
            _ => {
                self.settle_acked();
                self.acked = Some(AckedRun { session, ids: id..id + 1, how });
            }
        }
    }

    /// Settles the symbols that were acknowledged.
    #[inline]
    pub fn settle_acked(&mut self) {
        if let Some(run) = self.acked.take() {
            self.settle_run(run);
        }
    }

    fn settle_run(&mut self, run: AckedRun) {
        self.rest = None;
        self.moved = true;
        if let Some(s) = self.sessions.get_mut(usize::from(run.session)) {
            s.acked(run.ids, run.how);
        }
    }

    /// A session whose policy has to be [told](Self::tell_arrived) of acknowledged symbols.
    pub fn next_with_arrivals(&mut self) -> Option<u16> {
        self.settle_acked();
        let mut sessions = (0..).zip(&self.sessions);
        sessions.find(|(_, s)| s.has_arrivals()).map(|(session, _)| session)
    }

    /// Tells the policy of `session` which symbols were acknowledged since the last call: once for all packets
    /// that one frame acknowledges.
    pub fn tell_arrived(&mut self, now: Instant, session: u16, around: &Surroundings<'_>) {
        if let Some(s) = self.session(session) {
            s.tell_arrived(now, around);
        }
    }

    /// The datagrams that a symbol carries.
    pub fn datagrams_of(&self, symbol: SymbolRef) -> &[MessageId] {
        let session = self.sessions.get(usize::from(symbol.session));
        session.and_then(|s| s.contents(symbol.id)).map_or(&[], |contents| &contents.datagrams)
    }

    /// Time has passed: symbols that must be at the receiver before the horizon come too late from now on.
    pub fn expire(&mut self, now: Instant, horizon: Horizon) {
        if self.is_resting(now) {
            // No uncovered symbol has a deadline, and no repair symbol is due. `commit_symbol` tells sessions before
            // they get a symbol with a deadline.
            self.horizon = Some(horizon);
            return;
        }
        let mut changed = false;
        self.sessions.iter_mut().for_each(|s| changed |= s.expire(horizon));
        if changed {
            self.rest = None;
        }
    }

    /// Processes a SYMBOL_ACK. Appends to `delivered` the contents of the symbols that the peer reports and
    /// that no acknowledged packet carried. Returns how many symbols were recovered.
    ///
    /// # Errors
    /// The frame refers to a session or a symbol that was never sent.
    pub fn on_symbol_ack(
        &mut self,
        now: Instant,
        ack: &SymbolAck<'_>,
        around: &Surroundings<'_>,
        delivered: &mut Contents,
    ) -> Result<u32, TransportError> {
        let violation =
            |reason| TransportError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason);
        let s = self
            .sessions
            .get_mut(usize::from(ack.session))
            .ok_or_else(|| violation("unknown coding session"))?;
        debug_assert!(self.acked.is_none(), "the acknowledgement was handled");
        self.moved = true;
        let mut news: SmallVec<[u64; 8]> = SmallVec::new();
        for range in std::iter::once(0..ack.lower_bound).chain(ack.ranges()) {
            if range.end > s.encoder.next_id() {
                return Err(violation("acknowledged a symbol that was never sent"));
            }
            news.extend(s.open_within(range));
        }
        let mut came = CodingCounts { recovered: news.len() as u64, ..CodingCounts::default() };
        for id in &news {
            came.time_saved += s.time_saved(now, *id, around.path.rtt);
            s.done(*id).into_iter().for_each(|contents| delivered.extend(contents));
        }
        if !news.is_empty() {
            s.slide();
        }
        for id in &news {
            if let Some(size) = s.arrived(now, *id, Arrival::Recovered, around) {
                came.useful_symbols += 1;
                came.useful_bytes += size as u64;
            }
        }
        s.release_repairs();
        if !news.is_empty() {
            self.count(ack.session, |counts| counts.add(&came));
        }
        Ok(u32::try_from(news.len()).unwrap_or(u32::MAX))
    }

    /// Appends SYMBOL_WINDOW frames for the sessions in which they allow the peer to free a good part of its
    /// memory.
    pub fn write_windows(&mut self, out: &mut Vec<u8>, room: usize, tokens: &mut Tokens) {
        let Some(limits) = self.limits else { return };
        let window = limits.symbols as u64;
        if !self.moved {
            debug_assert!(self.sessions.iter().all(|s| s.lower_bound_to_tell(window).is_none()));
            return;
        }
        let start = out.len();
        for (session, s) in (0u16..).zip(&mut self.sessions) {
            let Some(lower) = s.lower_bound_to_tell(window) else { continue };
            let window = Frame::SymbolWindow(SymbolWindow { session, lower_bound: lower });
            if out.len() - start + window.size() > room {
                return;
            }
            window.encode(out);
            s.told(lower);
            tokens.push(Token::SymbolWindow(session));
        }
        self.moved = false;
    }

    /// When to ask a policy again, or when a held symbol is released. A policy whose time has come
    /// by `now` waits for a slot and needs no timer.
    pub fn timeout(&self, now: Instant) -> Option<Instant> {
        if self.is_resting(now) {
            return self.rest.and_then(|rest| rest.wake);
        }
        work::steps(self.sessions.len());
        let policies = self.sessions.iter().filter(|s| !s.is_quiet());
        let policy = policies.filter_map(|s| s.policy.timeout().filter(|at| *at > now)).min();
        let held = self.sessions.iter().filter_map(CodingSession::held_until);
        held.chain(policy).min()
    }
}
