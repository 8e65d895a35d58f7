//! The sending side of erasure coding: all sessions of a connection.

use super::code::{Code, CodeId, SlidingWindow};
use super::policy::{Decision, Protection, Slot};
use super::retransmission::{LostData, RetransmissionPolicy, Verdict};
use super::session::{Session, Symbol, SymbolState};
use super::{FecStats, SymbolRef};
use crate::config::FecConfig;
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::StreamId;
use crate::recovery::rtt::RttEstimator;
use crate::recovery::token::{StreamToken, Token};
use crate::wire::frame::{Frame, RepairHeader, SourceSymbol, SymbolAck, SymbolWindow};
use smallvec::SmallVec;
use std::ops::Range;
use std::time::Instant;
use sutura_erasure::WindowLimits;

/// Sessions that this end uses, whatever the peer would allow.
pub const MAX_SEND_SESSIONS: u16 = 64;
/// Source symbols that this end keeps per session, whatever the peer would allow.
pub const MAX_SEND_WINDOW_SYMBOLS: u32 = 1024;
/// Bytes of source symbols that this end keeps per session, whatever the peer would allow.
pub const MAX_SEND_WINDOW_BYTES: u32 = 1536 * 1024;

/// A peer that takes only shorter source symbols than this gets none: a STREAM frame's header would
/// be a large part of each.
const MIN_SYMBOL_SIZE: usize = 64;

/// The most that a REPAIR frame adds to the longest source symbol of its span: type 2, session 2,
/// first identifier 8, count 4, key 2, and the length of the symbol, 2.
const REPAIR_OVERHEAD: usize = 20;

/// What becomes of a lost source symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It left the window: its frames are to be sent again one by one.
    Unprotected,
    /// The session takes care of it.
    Kept,
}

/// All sessions in which this end protects data.
#[derive(Debug)]
pub struct SendSessions {
    limits: Option<WindowLimits>,
    max_sessions: u16,
    sessions: Vec<Session>,
    retransmission: Box<dyn RetransmissionPolicy>,
    /// Symbols that are to be sent again, which nobody was told yet.
    released: Vec<SymbolRef>,
    /// Frames of symbols that left the window while they waited to be sent again.
    orphans: Vec<StreamToken>,
    pub(super) stats: FecStats,
}

impl SendSessions {
    /// No sessions; nothing is protected before the peer's parameters are known.
    pub fn new(retransmission: Box<dyn RetransmissionPolicy>) -> Self {
        Self {
            limits: None,
            max_sessions: 0,
            sessions: Vec::new(),
            retransmission,
            released: Vec::new(),
            orphans: Vec::new(),
            stats: FecStats::default(),
        }
    }

    /// The peer announced a decoder. `packet_room` is what a full packet has room for in frames.
    pub fn enable(&mut self, peer: &FecConfig, peer_symbol_size: usize, packet_room: usize) {
        let bytes = peer.max_window_bytes.min(MAX_SEND_WINDOW_BYTES) as usize;
        let symbol_size =
            packet_room.saturating_sub(REPAIR_OVERHEAD).min(peer_symbol_size).min(bytes);
        self.max_sessions = peer.max_sessions.min(MAX_SEND_SESSIONS);
        if symbol_size < MIN_SYMBOL_SIZE || self.max_sessions == 0 || peer.max_window_symbols == 0 {
            return;
        }
        self.limits = Some(WindowLimits {
            symbols: peer.max_window_symbols.min(MAX_SEND_WINDOW_SYMBOLS) as usize,
            bytes,
            symbol_size,
        });
        self.stats.can_send = true;
    }

    /// Whether the peer decodes.
    pub fn is_enabled(&self) -> bool {
        self.limits.is_some()
    }

    /// Whether all that was sent in any session is known to have arrived, or not wanted any more.
    #[cfg(test)]
    pub fn is_quiet(&self) -> bool {
        self.sessions.iter().all(Session::is_quiet)
    }

    /// Counters.
    pub fn stats(&self) -> FecStats {
        self.stats
    }

    fn session(&mut self, id: u16) -> Option<&mut Session> {
        self.sessions.get_mut(usize::from(id))
    }

    /// Finds a session for a stream that wants `protection`: an idle one, a new one, or one that
    /// it has to share. `None` if the peer does not decode or nothing is asked for.
    ///
    /// `is_member` says whether a stream that joined a session still sends in one.
    pub fn attach(
        &mut self,
        id: StreamId,
        protection: Protection,
        is_member: impl Fn(StreamId) -> bool,
    ) -> Option<u16> {
        let limits = self.limits?;
        if protection.burst == 0 {
            return None;
        }
        for session in &mut self.sessions {
            session.streams.retain(|id| is_member(*id));
        }
        let index = self
            .sessions
            .iter()
            .position(|s| s.streams.is_empty() && s.is_quiet())
            .or_else(|| {
                (self.sessions.len() < usize::from(self.max_sessions)).then_some(usize::MAX)
            })
            .or_else(|| self.least_loaded(|s| s.protection == protection))
            .or_else(|| self.least_loaded(|_| true))?;
        let index = if index == usize::MAX {
            self.sessions.push(Session::new(limits, protection));
            self.sessions.len() - 1
        } else {
            index
        };
        let session = self.sessions.get_mut(index)?;
        if session.streams.is_empty() {
            session.reuse(protection);
        }
        session.streams.push(id);
        u16::try_from(index).ok()
    }

    fn least_loaded(&self, eligible: impl Fn(&Session) -> bool) -> Option<usize> {
        let candidates = self.sessions.iter().enumerate().filter(|(_, s)| eligible(s));
        candidates.min_by_key(|(_, s)| s.streams.len()).map(|(i, _)| i)
    }

    /// A stream left its session.
    pub fn detach(&mut self, session: u16, id: StreamId) {
        if let Some(session) = self.session(session) {
            session.streams.retain(|stream| *stream != id);
        }
    }

    /// Bytes of frames that a source symbol of `session` may hold in `room` bytes of packet.
    pub fn symbol_room(&self, session: u16, room: usize) -> usize {
        let Some((limits, s)) = self.limits.zip(self.sessions.get(usize::from(session))) else {
            return 0;
        };
        let header = SourceSymbol::header_size(SymbolRef { session, id: s.encoder.next_id() });
        room.saturating_sub(header).min(limits.symbol_size)
    }

    /// Appends the head of a SOURCE_SYMBOL frame; the frames that it protects must follow.
    pub fn write_symbol_header(&self, session: u16, out: &mut Vec<u8>) {
        let id = self.sessions.get(usize::from(session)).map_or(0, |s| s.encoder.next_id());
        SourceSymbol::encode_header(SymbolRef { session, id }, out);
    }

    /// Takes the symbol that was just written as `bytes` into the coding window. The frames'
    /// owners learn by the returned reference where they are.
    pub fn commit_symbol(
        &mut self,
        now: Instant,
        session: u16,
        bytes: &[u8],
        frames: &[StreamToken],
        rtt: &RttEstimator,
    ) -> Option<SymbolRef> {
        let s = self.sessions.get_mut(usize::from(session))?;
        let id = s.push(bytes, frames, &mut self.orphans)?;
        let view = s.view(rtt.smoothed());
        s.policy.on_source_sent(now, &view);
        self.stats.source_symbols_sent += 1;
        Some(SymbolRef { session, id })
    }

    /// A stream of `session` has nothing more to send for now, or `ended` for good.
    pub fn on_flushed(&mut self, now: Instant, session: u16, ended: bool, rtt: &RttEstimator) {
        if let Some(s) = self.session(session) {
            let view = s.view(rtt.smoothed());
            s.policy.on_flushed(now, ended, &view);
        }
    }

    /// The packet with `symbol` was acknowledged.
    pub fn on_acked(&mut self, now: Instant, symbol: SymbolRef, rtt: &RttEstimator) {
        let Some(s) = self.sessions.get_mut(usize::from(symbol.session)) else { return };
        if s.done(symbol.id).is_some() {
            s.slide();
            let view = s.view(rtt.smoothed());
            s.policy.on_acked(now, &view);
        }
    }

    /// The packet with `symbol` was declared lost, and congestion control was told. `wanted` says
    /// whether the symbol's data is still of use.
    pub fn on_lost(
        &mut self,
        now: Instant,
        symbol: SymbolRef,
        rtt: &RttEstimator,
        pto: std::time::Duration,
        wanted: bool,
    ) -> Fate {
        let Some(s) = self.sessions.get_mut(usize::from(symbol.session)) else {
            return Fate::Unprotected;
        };
        let repair_sent = s.repair_covering(symbol.id);
        match s.symbol(symbol.id).map(|entry| entry.state) {
            None => return Fate::Unprotected,
            Some(SymbolState::InFlight) => {}
            Some(_) => return Fate::Kept,
        }
        if !wanted {
            s.done(symbol.id);
            s.slide();
            return Fate::Kept;
        }
        let lost = LostData { repair_sent, rtt: rtt.smoothed(), pto };
        match self.retransmission.on_lost(now, &lost) {
            Verdict::Resend => {
                s.set_state(symbol.id, SymbolState::Resend);
                self.released.push(symbol);
            }
            Verdict::Hold { until } => {
                s.set_state(symbol.id, SymbolState::Held { until });
                self.stats.held += 1;
            }
        }
        Fate::Kept
    }

    /// A probe is due, and `symbol` is in a packet that it should repeat: nothing is held back
    /// from it.
    pub fn on_probe(&mut self, symbol: SymbolRef, wanted: bool) -> Fate {
        let Some(s) = self.sessions.get_mut(usize::from(symbol.session)) else {
            return Fate::Unprotected;
        };
        match s.symbol(symbol.id).map(|entry| entry.state) {
            None => return Fate::Unprotected,
            Some(SymbolState::InFlight | SymbolState::Held { .. }) if wanted => {
                s.set_state(symbol.id, SymbolState::Resend);
                self.released.push(symbol);
            }
            Some(_) => {}
        }
        Fate::Kept
    }

    /// A SYMBOL_ACK came. Returns the frames that the peer now has and that no acknowledged packet
    /// carried.
    ///
    /// # Errors
    /// The peer names a session or a symbol that was never sent.
    pub fn on_symbol_ack(
        &mut self,
        now: Instant,
        ack: &SymbolAck<'_>,
        rtt: &RttEstimator,
    ) -> Result<(u32, SmallVec<[StreamToken; 4]>), TransportError> {
        let violation =
            |reason| TransportError::new(TransportErrorCode::PROTOCOL_VIOLATION, reason);
        let s = self
            .sessions
            .get_mut(usize::from(ack.session))
            .ok_or_else(|| violation("unknown coding session"))?;
        let (first, next) = (s.first(), s.encoder.next_id());
        let mut delivered = SmallVec::new();
        let mut recovered = 0;
        for range in std::iter::once(0..ack.lower_bound).chain(ack.ranges()) {
            if range.end > next {
                return Err(violation("acknowledged a symbol that was never sent"));
            }
            for id in range.start.max(first)..range.end {
                if let Some(frames) = s.done(id) {
                    recovered += 1;
                    delivered.extend(frames);
                }
            }
        }
        s.slide();
        let view = s.view(rtt.smoothed());
        s.policy.on_acked(now, &view);
        self.stats.recovered_by_peer += u64::from(recovered);
        Ok((recovered, delivered))
    }

    /// Symbols that are to be sent again, in the order in which that was decided; to be emptied by
    /// the caller, who sees to it by [`write_resend`](Self::write_resend), or says by
    /// [`abandon`](Self::abandon) that nobody wants them any more.
    pub fn released(&mut self) -> &mut Vec<SymbolRef> {
        &mut self.released
    }

    /// A symbol that is to be sent again and still can be.
    fn resend(&self, symbol: SymbolRef) -> Option<(&Session, &Symbol)> {
        let session = self.sessions.get(usize::from(symbol.session))?;
        let entry = session.get(symbol.id).filter(|s| s.state == SymbolState::Resend)?;
        Some((session, entry))
    }

    /// Size of a symbol that is to be sent again, with the frame's head; `None` if it need not be,
    /// or has left the window.
    pub fn resend_size(&self, symbol: SymbolRef) -> Option<usize> {
        let bytes = self.resend(symbol)?.0.encoder.symbol(symbol.id)?;
        Some(SourceSymbol::header_size(symbol) + bytes.len())
    }

    /// The frames of a symbol that is to be sent again; none if it need not be.
    pub fn resend_frames(&self, symbol: SymbolRef) -> &[StreamToken] {
        self.resend(symbol).map_or(&[], |(_, entry)| &entry.frames)
    }

    /// Appends a symbol that is to be sent again and returns its frames.
    pub fn write_resend(
        &mut self,
        symbol: SymbolRef,
        out: &mut Vec<u8>,
    ) -> SmallVec<[StreamToken; 1]> {
        let Some((session, entry)) = self.resend(symbol) else { return SmallVec::new() };
        let Some(bytes) = session.encoder.symbol(symbol.id) else { return SmallVec::new() };
        SourceSymbol::encode_header(symbol, out);
        out.extend_from_slice(bytes);
        let frames = entry.frames.iter();
        let frames = frames.map(|f| StreamToken { symbol: Some(symbol), ..*f }).collect();
        self.stats.source_symbols_sent += 1;
        if let Some(s) = self.session(symbol.session) {
            s.set_state(symbol.id, SymbolState::InFlight);
        }
        frames
    }

    /// Drops a symbol that is to be sent again: nobody wants it any more.
    pub fn abandon(&mut self, symbol: SymbolRef) {
        if self.resend(symbol).is_some()
            && let Some(s) = self.session(symbol.session)
        {
            s.done(symbol.id);
            s.slide();
        }
    }

    /// Gives up on sending a symbol again as it is: packets have become too small for it. Its
    /// frames go the ordinary way.
    pub fn orphan(&mut self, symbol: SymbolRef) {
        let Some((_, entry)) = self.resend(symbol) else { return };
        let frames = entry.frames.clone();
        self.abandon(symbol);
        self.orphans.extend(frames);
    }

    /// Divides `bytes`, the size of a repair symbol of `session`, among the streams whose data it
    /// protects, in proportion to how much of each is in the coding window and not known to have
    /// arrived. `charge` is called once for each run of symbols of one stream.
    pub fn share_repair(&self, session: u16, bytes: usize, charge: impl FnMut(StreamId, usize)) {
        if let Some(s) = self.sessions.get(usize::from(session)) {
            s.share(bytes, charge);
        }
    }

    /// Frames that must be sent again outside a session; to be emptied by the caller.
    pub fn orphans(&mut self) -> &mut Vec<StreamToken> {
        &mut self.orphans
    }

    /// Asks the policies what goes into a free slot: a session that wants to send a repair symbol
    /// now, and its frame's size. `has_source` says whether a stream has new data that may be sent.
    pub fn poll_repair(
        &mut self,
        now: Instant,
        rtt: &RttEstimator,
        has_source: impl Fn(StreamId) -> bool,
    ) -> Option<(u16, usize)> {
        for (index, s) in self.sessions.iter_mut().enumerate() {
            if s.is_quiet() {
                continue;
            }
            let session = u16::try_from(index).ok()?;
            let view = s.view(rtt.smoothed());
            let slot = Slot { has_source: s.streams.iter().any(|id| has_source(*id)) };
            if s.policy.decide(now, slot, &view) == Decision::Repair {
                let span = s.span();
                let header = repair_header(session, &span, s.peek_key());
                let Ok(size) = s.encoder.repair_size(span) else { continue };
                return Some((session, header.size() + size));
            }
        }
        None
    }

    /// Appends a REPAIR frame over the window of `session`.
    pub fn write_repair(
        &mut self,
        now: Instant,
        session: u16,
        rtt: &RttEstimator,
        out: &mut Vec<u8>,
    ) -> Option<Token> {
        let s = self.sessions.get_mut(usize::from(session))?;
        let span = s.span();
        let key = s.next_key();
        let start = out.len();
        repair_header(session, &span, key).encode(out);
        if SlidingWindow.encode(&s.encoder, span.clone(), key, out).is_err() {
            out.truncate(start);
            return None;
        }
        s.repair_sent(now, span.clone());
        let view = s.view(rtt.smoothed());
        s.policy.on_repair_sent(now, &view);
        self.stats.repair_symbols_sent += 1;
        self.stats.repair_bytes_sent += (out.len() - start) as u64;
        Some(Token::Repair { session, first: span.start, end: span.end })
    }

    /// A repair symbol was acknowledged or lost: what was held for it is looked at again.
    pub fn on_repair_settled(&mut self, session: u16, first: u64, end: u64) {
        if let Some(s) = self.session(session) {
            s.repair_settled(first, end);
        }
    }

    /// Lets go of held symbols that no repair symbol in flight can mend any more, or whose time is
    /// over. To be called after the frames of a packet were processed, and on the timer.
    pub fn release_held(&mut self, now: Instant) {
        for (session, s) in (0u16..).zip(&mut self.sessions) {
            if !s.holds_any() {
                continue;
            }
            let due: SmallVec<[u64; 8]> = s
                .symbols()
                .filter(|(id, x)| match x.state {
                    SymbolState::Held { until } => until <= now || s.repair_covering(*id).is_none(),
                    _ => false,
                })
                .map(|(id, _)| id)
                .collect();
            for id in due {
                s.set_state(id, SymbolState::Resend);
                self.released.push(SymbolRef { session, id });
            }
        }
    }

    /// Appends SYMBOL_WINDOW frames where the peer could free a good part of its memory.
    pub fn write_windows(&mut self, out: &mut Vec<u8>, room: usize) -> SmallVec<[Token; 1]> {
        let mut tokens = SmallVec::new();
        let Some(limits) = self.limits else { return tokens };
        let start = out.len();
        for (session, s) in (0u16..).zip(&mut self.sessions) {
            let Some(lower) = s.lower_bound_to_tell(limits.symbols as u64) else { continue };
            let window = Frame::SymbolWindow(SymbolWindow { session, lower_bound: lower });
            if out.len() - start + window.size() > room {
                break;
            }
            window.encode(out);
            s.told(lower);
            tokens.push(Token::SymbolWindow(session));
        }
        tokens
    }

    /// When a policy wants to be asked again, or a held symbol is let go. A policy whose time has
    /// come at `now` waits for a slot, and not for the time.
    pub fn timeout(&self, now: Instant) -> Option<Instant> {
        let policies = self.sessions.iter().filter(|s| !s.is_quiet());
        let policy = policies.filter_map(|s| s.policy.timeout().filter(|at| *at > now)).min();
        let holding = self.sessions.iter().filter(|s| s.holds_any());
        let held = holding.flat_map(Session::symbols).filter_map(|(_, s)| match s.state {
            SymbolState::Held { until } => Some(until),
            _ => None,
        });
        held.chain(policy).min()
    }
}

fn repair_header(session: u16, span: &Range<u64>, key: u32) -> RepairHeader {
    RepairHeader::new(session, CodeId::SLIDING_WINDOW, span, key)
}
