//! Lost symbols of all sessions of a connection: how each is held, sent again or given up.

use super::{LostSymbol, SendSessions};
#[cfg(doc)]
use crate::fec::redundancy::Redundancy;
use crate::fec::session::{CodingSession, DataKind};
use crate::fec::surroundings::Surroundings;
use crate::fec::symbol::{Contents, Frames, Symbol, SymbolState};
use crate::ids::{MessageId, SymbolRef};
use crate::recovery::token::StreamToken;
use crate::wire::frame::SourceSymbol;
use smallvec::SmallVec;
use std::ops::Range;
use std::time::Instant;

impl SendSessions {
    /// The packet with `symbol` was declared lost, and congestion control was told.
    pub fn on_lost(
        &mut self,
        now: Instant,
        symbol: SymbolRef,
        around: &Surroundings<'_>,
    ) -> LostSymbol {
        let Some(s) = self.session(symbol.session) else { return LostSymbol::Unprotected };
        match s.state(symbol.id) {
            None => LostSymbol::Unprotected,
            Some(SymbolState::InFlight) => {
                s.on_lost(now, symbol.id);
                let outlook = s.outlook(symbol.id);
                if !s.is_beyond(symbol.id) {
                    let view = s.view(around);
                    s.policy.on_lost(now, symbol.id, &view);
                    if s.kind == DataKind::Datagrams && outlook.repairs <= outlook.held {
                        s.policy.on_unmended(now, symbol.id, &view);
                    }
                }
                LostSymbol::Open(outlook)
            }
            Some(SymbolState::Held { .. } | SymbolState::Resend | SymbolState::Done) => {
                LostSymbol::Settled
            }
        }
    }

    /// A repair symbol over `span` was lost: tells the policy which datagram it was to mend, if no other does.
    pub fn on_repair_lost(
        &mut self,
        now: Instant,
        session: u16,
        span: &Range<u64>,
        around: &Surroundings<'_>,
    ) {
        let Some(s) = self.session(session) else { return };
        if let Some(id) = s.unmended(span) {
            let view = s.view(around);
            s.policy.on_unmended(now, id, &view);
        }
    }

    /// A lost symbol waits until `until` for repair symbols in flight that cover it.
    pub fn hold(&mut self, symbol: SymbolRef, until: Instant) {
        if let Some(s) = self.session(symbol.session) {
            s.hold(symbol.id, until);
            self.held += 1;
        }
    }

    /// Keeps a lost symbol that is never sent again in the window until `until`, as long as repair symbols
    /// can mend the symbol.
    pub fn keep(&mut self, symbol: SymbolRef, until: Instant) {
        if let Some(s) = self.session(symbol.session) {
            s.hold(symbol.id, until);
        }
    }

    /// Gives up a symbol that left its window before it was known to have arrived. Returns its contents,
    /// whose frames can only be sent again as bare data.
    pub fn send_bare(&mut self, symbol: SymbolRef) -> Option<Contents> {
        self.session(symbol.session)?.send_bare(symbol.id)
    }

    /// Queues a symbol to be sent again. Returns its frames.
    pub fn queue(&mut self, symbol: SymbolRef) -> &[StreamToken] {
        if let Some(s) = self.session(symbol.session) {
            s.queue(symbol.id);
        }
        self.resend_frames(symbol)
    }

    /// A symbol is no longer needed. Returns the datagrams that it carried, unless it was done before.
    pub fn finish(&mut self, symbol: SymbolRef) -> Vec<MessageId> {
        let Some(s) = self.session(symbol.session) else { return Vec::new() };
        let contents = s.done(symbol.id);
        s.slide();
        s.release_repairs();
        contents.map(|contents| contents.datagrams).unwrap_or_default()
    }

    /// The oldest symbol in `span` that is held.
    pub fn oldest_held(&self, session: u16, span: Range<u64>) -> Option<SymbolRef> {
        let s = self.sessions.get(usize::from(session))?;
        s.oldest_held(&span).map(|id| SymbolRef { session, id })
    }

    /// Whether a probe may send a symbol: it is in the window, and has neither arrived nor waits to
    /// be sent again.
    pub fn may_probe(&self, symbol: SymbolRef) -> Option<bool> {
        let s = self.sessions.get(usize::from(symbol.session))?;
        match s.window_state(symbol.id)? {
            SymbolState::InFlight | SymbolState::Held { .. } => Some(true),
            SymbolState::Resend | SymbolState::Done => Some(false),
        }
    }

    /// A symbol that waits to be sent again, if it is still in the window.
    fn resend(&self, symbol: SymbolRef) -> Option<(&CodingSession, &Symbol)> {
        let session = self.sessions.get(usize::from(symbol.session))?;
        let is_queued = session.window_state(symbol.id) == Some(SymbolState::Resend);
        Some((session, session.get(symbol.id).filter(|_| is_queued)?))
    }

    /// Size of a symbol that waits to be sent again, including the frame's header. `None` if the symbol need
    /// not be sent again, or if it left the window.
    pub fn resend_size(&self, symbol: SymbolRef) -> Option<usize> {
        let len = self.resend(symbol)?.0.encoder.symbol_len(symbol.id)?;
        Some(SourceSymbol::header_size(symbol) + len)
    }

    /// The frames of a symbol that waits to be sent again; empty if the symbol need not be sent again.
    pub fn resend_frames(&self, symbol: SymbolRef) -> &[StreamToken] {
        self.resend(symbol).map_or(&[], |(_, entry)| &entry.contents.frames)
    }

    /// Whether a lost symbol may still be mended: by repair symbols that no held symbol needs, or by a policy that
    /// mends.
    pub fn may_mend(&self, symbol: SymbolRef) -> bool {
        let session = self.sessions.get(usize::from(symbol.session));
        let outlook = session.map(|session| session.outlook(symbol.id));
        outlook.is_some_and(|outlook| outlook.mends || outlook.held < outlook.repairs)
    }

    /// Appends a symbol that is sent again, and returns its frames. If its contents were
    /// [forgotten](Redundancy::covers_from), `rewrite` appends its only frame again, unless the data is gone.
    /// Returns no frame, and appends nothing, if there is no such symbol.
    pub fn write_resend(
        &mut self,
        now: Instant,
        symbol: SymbolRef,
        out: &mut Vec<u8>,
        rewrite: impl Fn(&StreamToken, &mut Vec<u8>) -> bool,
    ) -> Frames {
        let Some((session, entry)) = self.resend(symbol) else { return Frames::new() };
        let Some(len) = session.encoder.symbol_len(symbol.id) else { return Frames::new() };
        let before = out.len();
        SourceSymbol::encode_header(symbol, out);
        let start = out.len();
        let written = match (session.encoder.symbol(symbol.id), &entry.contents.frames[..]) {
            (Some(bytes), _) => {
                out.extend_from_slice(bytes);
                true
            }
            (None, [frame]) => rewrite(frame, out) && out.len() - start == len,
            (None, _) => false,
        };
        if !written {
            out.truncate(before);
            return Frames::new();
        }
        let size = len as u64;
        let frames = entry.contents.frames.iter();
        let frames = frames.map(|f| StreamToken { symbol: Some(symbol), ..*f }).collect();
        self.count(symbol.session, |counts| {
            counts.source_symbols += 1;
            counts.resent_symbols += 1;
            counts.source_bytes += size;
        });
        if let Some(s) = self.session(symbol.session) {
            s.sent_again(now, symbol.id);
        }
        frames
    }

    /// Takes the held symbols that wait no longer: their time is over, or the repair symbols in flight cannot
    /// mend all held symbols. The caller sends them again. Call this after the frames of a packet were
    /// processed, and when the timer fires.
    pub fn take_overdue(&mut self, now: Instant) -> SmallVec<[SymbolRef; 4]> {
        let mut due = SmallVec::new();
        if self.is_resting(now) {
            return due;
        }
        self.rest = None;
        for (session, s) in (0u16..).zip(&mut self.sessions).filter(|(_, s)| s.has_overdue()) {
            due.extend(s.take_overdue(now).into_iter().map(|id| SymbolRef { session, id }));
        }
        due
    }
}
