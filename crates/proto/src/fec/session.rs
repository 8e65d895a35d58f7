//! The sending half of one session: its coding window and the state of each symbol.

use super::CodingCounts;
use super::beyond::{Beyond, Left};
use super::carried::Carried;
use super::horizon::Horizon;
use super::lost_symbols::{LostState, LostSymbols};
use super::recv::{IDLE_PERIOD, MAX_PENDING_REPAIRS};
use super::redundancy::{
    Arrival, LOSS_DETECTION_EIGHTHS, Protection, Reason, Redundancy, SHORT_KEYS, View,
};
use super::repairs::Repairs;
use super::send::repair_overhead;
use super::surroundings::Surroundings;
use super::symbol::{Contents, Evicted, NewSymbol, Symbol, SymbolState};
use super::uncovered::Uncovered;
use crate::ids::StreamId;
use crate::loss_reaction::RepairOutlook;
use crate::wire::range_set::RangeSet;
use crate::work;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::{Duration, Instant};
use sutura_erasure::{Encoder, PREFIX, WindowLimits};

/// The kind of data that a session protects. Different kinds do not mix, because their symbols live for
/// different times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataKind {
    /// Streams, each in a session of its own as long as there are enough sessions.
    Streams,
    /// Messages on streams, which share a session so that a repair symbol covers many of them.
    Messages,
    /// Datagrams.
    Datagrams,
}

/// A coding window with its policy.
#[derive(Debug)]
pub(super) struct CodingSession {
    number: u16,
    pub(super) encoder: Encoder,
    pub(super) protection: Protection,
    pub(super) policy: Box<dyn Redundancy>,
    pub(super) kind: DataKind,
    /// Counts since the session has this protection.
    pub(super) counts: CodingCounts,
    /// The policy's reason as the observer knows it; `None` if it does not know the policy.
    reported: Option<Option<Reason>>,
    /// Symbols in the encoder's window, oldest first.
    symbols: VecDeque<Symbol>,
    /// The contents of the symbols that are not [`SymbolState::Done`].
    carried: Carried,
    /// The symbols that are [`SymbolState::Done`].
    done: RangeSet,
    /// Number of symbols in the window that are not [`SymbolState::Done`].
    open: u32,
    /// Symbols in the window that were lost, or are sent again as probes.
    lost: LostSymbols,
    /// Repair symbols that may still mend a symbol.
    repairs: Repairs,
    /// Symbols that left the window and may still be recovered.
    beyond: Beyond,
    /// Symbols that no repair symbol covers yet.
    uncovered: Uncovered,
    /// The first symbol that is not [overdue](Self::leave_out), if it is in the window.
    timely: u64,
    /// How many symbols of the window are overdue and not [`SymbolState::Done`].
    overdue: u32,
    /// Whether more symbols may be held than the repair symbols can mend.
    overheld: bool,
    /// Bytes of frames that fit in a full packet.
    packet_room: usize,
    next_key: u32,
    /// The last lower bound that was sent to the peer.
    told: u64,
    /// When the newest symbol was sent; `None` if no memory is held for symbols.
    used: Option<Instant>,
    /// Acknowledged symbols of which the policy was not told yet.
    arrivals: Vec<(u64, Arrival)>,
}

mod arrival;
#[cfg(feature = "testing")]
mod check;
#[cfg(test)]
mod tests;

impl CodingSession {
    pub(super) fn new(
        number: u16,
        limits: WindowLimits,
        packet_room: usize,
        protection: Protection,
        kind: DataKind,
    ) -> Self {
        Self {
            number,
            encoder: Encoder::new(limits),
            policy: protection.factory().build(),
            protection,
            kind,
            counts: CodingCounts::default(),
            reported: None,
            symbols: VecDeque::new(),
            carried: Carried::default(),
            done: RangeSet::default(),
            open: 0,
            lost: LostSymbols::default(),
            repairs: Repairs::default(),
            beyond: Beyond::default(),
            uncovered: Uncovered::default(),
            timely: 0,
            overdue: 0,
            overheld: false,
            packet_room,
            next_key: 0,
            told: 0,
            used: None,
            arrivals: Vec::new(),
        }
    }

    /// Whether all symbols of the session are settled, and no datagrams use it. The session is free if no
    /// stream belongs to it either.
    pub(super) fn is_settled(&self) -> bool {
        self.kind != DataKind::Datagrams && self.is_quiet() && self.beyond.is_empty()
    }

    /// Reuses the session for data with another protection.
    pub(super) fn reuse(&mut self, protection: Protection, kind: DataKind) {
        self.kind = kind;
        self.policy = protection.factory().build();
        if self.protection != protection {
            (self.counts, self.reported) = (CodingCounts::default(), None);
        }
        self.protection = protection;
    }

    /// Number of symbols in the window.
    pub(super) fn window_len(&self) -> usize {
        self.symbols.len()
    }

    /// First symbol of the window.
    pub(super) fn first(&self) -> u64 {
        self.encoder.next_id() - self.symbols.len() as u64
    }

    /// The first symbol that repair symbols may cover: the first symbol of the window, or an earlier symbol
    /// that the policy still needs.
    fn kept(&self) -> u64 {
        self.encoder.window().start
    }

    /// Forgets symbols below the window that the policy no longer needs.
    pub(super) fn release_kept(&mut self) {
        let first = self.first();
        self.encoder.release_below(self.policy.keeps(first).min(first));
    }

    /// Forgets the contents of symbols that no later repair symbol covers. The symbols are sent again, if need
    /// be, with the data of their streams.
    pub(super) fn forget_contents(&mut self) {
        self.encoder.forget_contents_below(self.policy.covers_from(self.kept()));
    }

    /// Forgets all symbols below the window, whether the policy needs them or not. Returns whether there
    /// were any.
    pub(super) fn give_up_kept(&mut self) -> bool {
        let kept = self.kept() < self.first();
        self.encoder.release_below(self.first());
        kept
    }

    /// The oldest symbol that a repair symbol may still cover or that may still turn out to have arrived.
    fn oldest(&self) -> u64 {
        self.beyond.first().map_or_else(|| self.kept(), |beyond| beyond.min(self.kept()))
    }

    /// Whether all symbols in the window are known to have arrived, or are no longer needed.
    pub(super) fn is_quiet(&self) -> bool {
        self.open == 0
    }

    pub(super) fn view(&self, around: &Surroundings<'_>) -> View {
        let Surroundings { has_source, left, buffer, idle, credit, .. } = *around;
        let Surroundings { message, next_message, codes, path, .. } = *around;
        let first = self.first();
        let timely = first.max(self.timely);
        let missing = self.lost.missing();
        let (missing, newest_missing) = match missing.last().filter(|newest| **newest >= timely) {
            None => (0, None),
            newest => (self.repairs.not_arrived_for(missing, timely), newest.copied()),
        };
        View {
            first,
            timely,
            kept: self.kept(),
            next: self.encoder.next_id(),
            capacity: u32::try_from(self.encoder.limits().symbols).unwrap_or(u32::MAX),
            unacked: self.open - self.overdue,
            missing,
            newest_missing,
            added: self.repairs.in_flight(first),
            unprotected: self.uncovered.count(),
            deadline: self.uncovered.earliest(),
            left,
            buffer,
            has_source,
            idle,
            credit,
            message,
            resends: self.kind != DataKind::Datagrams,
            next_message,
            codes,
            path: *path,
        }
    }

    /// Whether the policy wants no repair symbol now, whatever its view is.
    pub(super) fn rests(&self, now: Instant) -> bool {
        self.policy.rests(now, !self.lost.missing().is_empty())
    }

    /// Streams whose data is in the window and not known to have arrived.
    pub(super) fn protected_streams(&self) -> impl Iterator<Item = StreamId> + '_ {
        self.carried.streams()
    }

    fn index(&self, id: u64) -> Option<usize> {
        usize::try_from(id.checked_sub(self.first())?).ok()
    }

    pub(super) fn get(&self, id: u64) -> Option<&Symbol> {
        self.symbols.get(self.index(id)?)
    }

    /// See [`super::SendSessions::share_repair`].
    pub(super) fn share(&self, bytes: usize, charge: impl FnMut(StreamId, usize)) {
        self.carried.share(bytes, charge);
    }

    /// Identifiers of the symbols in `range` whose fate is open, also of those that left the window.
    pub(super) fn open_within(&self, range: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let window = range.start.max(self.first())..range.end.min(self.encoder.next_id());
        self.beyond
            .within(range)
            .chain(self.done.gaps(window).flatten())
            .inspect(|_| work::steps(1))
    }

    /// Whether [`take_overdue`](Self::take_overdue) may have work to do.
    pub(super) fn has_overdue(&self) -> bool {
        self.lost.holds_any() || self.beyond.has_bare()
    }

    /// How many symbols of the window are held.
    #[cfg(test)]
    pub(super) fn held_len(&self) -> usize {
        self.lost.held_len()
    }

    /// Whether the session may have work to do at `now`, or later without any event: the policy or
    /// [`take_overdue`](Self::take_overdue) has to be asked, or the policy sees a deadline.
    pub(super) fn is_restless(&self, now: Instant) -> bool {
        let is_over = |at: Instant| at <= now;
        let asks = !self.is_quiet() && self.policy.timeout().is_some_and(is_over);
        let releases = self.overheld || self.held_until().is_some_and(is_over);
        asks || releases || self.uncovered.earliest().is_some()
    }

    /// When the first of the held symbols stops waiting.
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.lost.held_until()
    }

    /// The state of a symbol whose fate may be open: in the window or beyond it.
    pub(super) fn state(&self, id: u64) -> Option<SymbolState> {
        let is_done = match self.get(id) {
            Some(symbol) => symbol.done,
            None => self.beyond.get(id)?.bare,
        };
        let open = || self.lost.state(id).map_or(SymbolState::InFlight, SymbolState::from);
        Some(if is_done { SymbolState::Done } else { open() })
    }

    /// The state of a symbol in the window.
    pub(super) fn window_state(&self, id: u64) -> Option<SymbolState> {
        self.get(id).and_then(|_| self.state(id))
    }

    /// Whether the fate of a symbol is open: in the window or beyond it.
    fn is_open(&self, id: u64) -> bool {
        self.state(id).is_some_and(|state| state != SymbolState::Done)
    }

    /// Whether a symbol left the window and is remembered.
    pub(super) fn is_beyond(&self, id: u64) -> bool {
        self.beyond.get(id).is_some()
    }

    /// The contents of a symbol whose fate is open.
    pub(super) fn contents(&self, id: u64) -> Option<&Contents> {
        let window = self.get(id).map(|symbol| &symbol.contents);
        window.or_else(|| self.beyond.get(id).map(|left| &left.contents))
    }

    /// Number of symbols that left the window and are remembered.
    pub(super) fn beyond_len(&self) -> usize {
        self.beyond.len()
    }

    /// Gives up a symbol that left the window. Its contents, which this returns, are only sent bare from now
    /// on. A report that the peer recovered the symbol is still taken, if a repair symbol may have brought
    /// the symbol and as long as such a repair symbol is in flight.
    pub(super) fn send_bare(&mut self, id: u64) -> Option<Contents> {
        let contents = self.beyond.send_bare(id)?;
        self.lost.sent_bare(id);
        let is_awaited = self.repairs.on_sent_bare(id);
        if !is_awaited || !self.is_beyond(id) {
            self.remove_beyond(id);
        }
        self.release_repairs();
        Some(contents)
    }

    /// Forgets a symbol that left the window. Returns its contents.
    fn remove_beyond(&mut self, id: u64) -> Option<Contents> {
        self.lost.remove(id);
        self.beyond.remove(id).map(|left| left.contents)
    }

    /// Forgets the oldest of the symbols that left the window.
    pub(super) fn forget_beyond(&mut self) -> Option<Evicted> {
        let id = self.beyond.first()?;
        let is_open = match self.lost.state(id) {
            None | Some(LostState::InFlight | LostState::Resend) => true,
            Some(LostState::Held { .. }) => false,
        };
        let contents = self.remove_beyond(id)?;
        self.repairs.on_abandoned(id);
        Some(Evicted { id, in_flight: is_open, queued: false, contents })
    }

    /// A symbol that is not done waits to be sent again.
    pub(super) fn queue(&mut self, id: u64) {
        if self.get(id).is_some_and(|symbol| !symbol.done) {
            self.lost.queue(id);
        }
    }

    /// Records a symbol that was just sent. To make room, the oldest symbols leave the window and
    /// are appended to `evicted`.
    pub(super) fn push(
        &mut self,
        now: Instant,
        symbol: &NewSymbol<'_>,
        evicted: &mut SmallVec<[Evicted; 1]>,
    ) -> Option<u64> {
        let deadline = symbol.message.and_then(|message| message.deadline);
        let id = loop {
            match self.encoder.push(symbol.bytes) {
                Ok(id) => break id,
                Err(_) if self.give_up_kept() => {}
                Err(_) if self.symbols.is_empty() => return None,
                Err(_) => evicted.extend(self.evict()),
            }
            self.release_repairs();
        };
        self.carried.add(symbol.frame);
        let contents = Contents::of(symbol);
        self.symbols.push_back(Symbol { contents, done: false, deadline, sent: now });
        self.uncovered.add(deadline);
        self.open += 1;
        self.used = Some(now);
        Some(id)
    }

    /// Removes the oldest symbol from the window; returns the symbol if its fate is open and no repair symbol
    /// in flight can bring it. If a repair symbol can, the symbol is remembered.
    pub(super) fn evict(&mut self) -> Option<Evicted> {
        let id = self.first();
        let sent = self.symbols.front()?.sent;
        let (state, record) = (self.window_state(id)?, self.lost.record(id));
        let contents = self.done(id);
        self.slide();
        self.give_up_kept();
        let queued = state == SymbolState::Resend;
        let contents = contents?;
        if let Some(last_repair) = self.repairs.newest_number(id).filter(|_| !queued) {
            self.beyond.insert(id, Left { contents, sent, last_repair, bare: false });
            record.into_iter().for_each(|record| self.lost.leave(id, record, last_repair));
            return None;
        }
        self.repairs.on_abandoned(id);
        Some(Evicted { id, in_flight: state == SymbolState::InFlight, queued, contents })
    }

    /// When a session releases its memory, after all its symbols have arrived.
    pub(super) fn idle_at(&self) -> Option<Instant> {
        self.used.filter(|_| self.is_quiet()).map(|at| at + IDLE_PERIOD)
    }

    /// Releases memory that is kept for future symbols.
    pub(super) fn shrink(&mut self) {
        self.encoder.shrink();
        self.symbols.shrink_to_fit();
        self.arrivals.shrink_to_fit();
        self.used = self.used.filter(|_| !self.is_quiet());
    }

    /// Forgets repair symbols that cover no symbol of the window, once the policy was told which symbols
    /// arrived.
    pub(super) fn release_repairs(&mut self) {
        self.repairs.release_below(self.first(), self.oldest());
    }

    /// Marks the key of the next repair symbol as used. The same key returns long after the repair symbols
    /// with its first use have left every window.
    pub(super) fn use_key(&mut self) {
        self.next_key = (self.next_key + 1) % SHORT_KEYS;
    }

    /// The key of the next repair symbol.
    pub(super) fn peek_key(&self) -> u32 {
        self.next_key
    }

    /// A repair symbol over `span` was sent in a frame of `size` bytes.
    pub(super) fn repair_sent(&mut self, now: Instant, span: &Range<u64>, size: usize) {
        self.repairs.on_sent(now, span.clone(), size);
        if span.end == self.encoder.next_id() {
            self.uncovered.cover_all(span.end);
            return;
        }
        let open = self.open_within(self.uncovered.start()..span.end);
        let covered: SmallVec<[(u64, Option<Instant>); 8]> =
            open.filter_map(|id| Some((id, self.get(id)?.deadline))).collect();
        covered.iter().for_each(|(id, deadline)| self.uncovered.remove(*id, *deadline));
        self.uncovered.cover(span.end);
    }

    /// Time has passed. Returns whether any uncovered symbol comes too late now.
    pub(super) fn expire(&mut self, horizon: Horizon) -> bool {
        self.leave_out(horizon.least);
        let before = self.uncovered.count();
        self.uncovered.expire(horizon.expected);
        self.uncovered.count() != before
    }

    /// Leaves overdue symbols out of all later repair symbols: the oldest datagrams, as far as they must be at the
    /// receiver before `time`. Where many are lost, repair symbols that cover these too would mend nothing.
    fn leave_out(&mut self, time: Instant) {
        if self.kind != DataKind::Datagrams {
            return;
        }
        self.timely = self.timely.max(self.first());
        let is_over = |symbol: &Symbol| symbol.deadline.is_some_and(|deadline| deadline < time);
        while let Some(symbol) =
            self.get(self.timely).filter(|symbol| symbol.done || is_over(symbol))
        {
            self.overdue += u32::from(!symbol.done);
            self.timely += 1;
        }
    }

    /// A repair symbol over `span` was acknowledged, or else lost.
    pub(super) fn repair_settled(&mut self, span: &Range<u64>, arrived: bool) {
        if self.has_arrivals() {
            // A repair symbol mends nothing below the symbols that arrived before it.
            self.slide();
            self.release_repairs();
        }
        if arrived {
            self.repairs.on_arrived(span, self.oldest());
        } else {
            self.repairs.on_lost(span);
        }
        self.overheld = self.lost.holds_any();
    }

    /// A symbol was sent again.
    pub(super) fn sent_again(&mut self, now: Instant, id: u64) {
        if self.get(id).is_some() {
            self.lost.sent_again(now, id);
        }
    }

    /// Holds a lost symbol until `until`.
    pub(super) fn hold(&mut self, id: u64, until: Instant) {
        if self.is_open(id) {
            self.lost.hold(id, until, &self.repairs);
        }
        self.overheld = true;
    }

    /// The chance of the repair symbols to recover `id`.
    pub(super) fn outlook(&self, id: u64) -> RepairOutlook {
        if self.is_beyond(id) {
            return self.lost.outlook_beyond(id, &self.repairs);
        }
        self.lost.outlook(id, &self.repairs, self.mends())
    }

    /// The first held symbol of `span` for which no repair symbol is left.
    pub(super) fn unmended(&self, span: &Range<u64>) -> Option<u64> {
        self.lost.unmended(&self.repairs, span)
    }

    /// Whether losses are mended by repair symbols instead of being sent again.
    fn mends(&self) -> bool {
        self.policy.mends() && !self.is_beyond_mending()
    }

    /// Whether the policy would mend losses that repair symbols cannot: more losses than the peer can recover
    /// together, because it keeps a limited number of repair symbols until they suffice, or symbols that are
    /// too large for the packets of a new path. Until some of the lost data has been sent again, repair
    /// symbols would recover none of it, and would go on for ever in place of the data.
    pub(super) fn is_beyond_mending(&self) -> bool {
        let missing = self.lost.missing();
        let Some(newest) = missing.last() else { return false };
        self.policy.mends()
            && (missing.len() > MAX_PENDING_REPAIRS || !self.packets_carry_repairs(*newest))
    }

    /// The most bytes that a REPAIR frame adds to the longest source symbol of a span that begins with
    /// `first`.
    pub(super) fn repair_overhead(&self, first: u64) -> usize {
        repair_overhead(self.number, first, self.policy.largest_key())
    }

    /// Whether a repair symbol over all symbols up to `newest` fits in a packet.
    fn packets_carry_repairs(&self, newest: u64) -> bool {
        let span = self.first()..newest.saturating_add(1);
        let overhead = self.repair_overhead(span.start);
        let size = self.encoder.repair_size(span);
        size.is_ok_and(|size| size.saturating_sub(PREFIX) + overhead <= self.packet_room)
    }

    /// Sets the space for frames in a full packet.
    pub(super) fn set_packet_room(&mut self, bytes: usize) {
        self.packet_room = bytes;
        self.overheld = self.lost.holds_any();
    }

    /// Whether more repair symbols are to come for held symbols: the policy mends losses, or has yet to
    /// protect datagrams, which only repair symbols can bring.
    fn awaits_repairs(&self) -> bool {
        let planned = || self.policy.timeout().is_some();
        self.mends() || self.kind == DataKind::Datagrams && planned()
    }

    /// Held symbols that must wait no longer, in the window and beyond it; see [`LostSymbols::overdue`]. They
    /// have to be sent again.
    pub(super) fn take_overdue(&mut self, now: Instant) -> SmallVec<[u64; 4]> {
        let oldest = self.repairs.oldest_in_flight();
        while let Some(id) = self.beyond.over(oldest) {
            self.remove_beyond(id);
        }
        let mut due = self.lost.overdue_beyond(now, &self.repairs);
        self.discount_arrived();
        let awaited = self.awaits_repairs();
        let changed = std::mem::take(&mut self.overheld);
        due.extend(self.lost.overdue(now, &self.repairs, awaited, changed));
        due
    }

    /// The oldest symbol in `span` that is held, in the window or beyond it.
    pub(super) fn oldest_held(&self, span: &Range<u64>) -> Option<u64> {
        self.lost.oldest_held(span)
    }

    /// Once no packet of the session is in flight, the repair symbols that arrived have mended all that they
    /// can. If they seem to suffice for the symbols that are still missing, the peer has used them up for
    /// other symbols: symbols that also came by themselves, or whose reports were lost.
    fn discount_arrived(&mut self) {
        let settled =
            self.lost.held_len() == self.open as usize && self.repairs.in_flight(self.first()) == 0;
        if settled && self.repairs.not_arrived_for(self.lost.missing(), 0) == 0 {
            self.repairs.forget_all_arrived();
        }
    }

    /// Notes when a symbol was first declared lost.
    pub(super) fn on_lost(&mut self, now: Instant, id: u64) {
        if self.is_open(id) {
            let left = self.beyond.get(id).map(|left| left.last_repair);
            self.lost.on_lost(now, id, left);
        }
    }

    /// How much earlier the peer had symbol `id`, which it reports as recovered at `now`, than a
    /// retransmission would have brought it. See [`CodingCounts::time_saved`].
    pub(super) fn time_saved(&self, now: Instant, id: u64, rtt: Duration) -> Duration {
        let window = self.get(id).map(|symbol| symbol.sent);
        let sent = window.or_else(|| self.beyond.get(id).map(|left| left.sent));
        let Some(sent) = sent else { return Duration::ZERO };
        let detected = sent + rtt * LOSS_DETECTION_EIGHTHS / 8;
        let resent = self.lost.lost_at(id).unwrap_or(detected);
        // A retransmission takes half a round trip to the peer, and the report takes as long back.
        (resent + rtt).saturating_duration_since(now)
    }

    /// The policy's reason, if the observer does not know it yet.
    pub(super) fn take_news(&mut self) -> Option<Option<Reason>> {
        let reason = self.policy.reason();
        (self.reported.replace(reason) != Some(reason)).then_some(reason)
    }
}
