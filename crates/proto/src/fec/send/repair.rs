//! Repair symbols of all sessions of a connection: which session sends the next one, and how it is written.

use super::{RepairBid, SendSessions};
use crate::fec::code::{self, SlidingWindow};
use crate::fec::redundancy::{Decision, RepairPlan};
use crate::fec::session::CodingSession;
use crate::fec::surroundings::Surroundings;
use crate::ids::StreamId;
use crate::recovery::token::Token;
use crate::wire::code_id::CodeId;
use crate::wire::frame::RepairHeader;
use std::ops::Range;
use std::time::Instant;

impl SendSessions {
    /// Divides `bytes`, the size of a repair symbol of `session`, among the streams whose data it protects.
    /// Each stream's share is proportional to its data that is in the coding window and not known to have
    /// arrived. Calls `charge` once for each stream.
    pub fn share_repair(&self, session: u16, bytes: usize, charge: impl FnMut(StreamId, usize)) {
        if let Some(s) = self.sessions.get(usize::from(session)) {
            s.share(bytes, charge);
        }
    }

    /// Asks the policies about a free slot: returns a bid for each session that would send a repair
    /// symbol of at most `room` bytes. `around` returns the surroundings of a session. Changes
    /// nothing.
    pub fn bids<'a>(
        &'a self,
        now: Instant,
        room: usize,
        around: impl Fn(u16) -> Surroundings<'a> + 'a,
    ) -> impl Iterator<Item = RepairBid> + 'a {
        let sessions = (0u16..).zip(&self.sessions);
        let asks =
            move |s: &CodingSession| !s.is_quiet() && !s.rests(now) && !s.is_beyond_mending();
        let bidding = sessions.filter(move |(_, s)| asks(s));
        bidding.filter_map(move |(session, s)| {
            let view = s.view(&around(session));
            let plan = match s.policy.decide(now, &view) {
                Decision::Repair(plan) => plan,
                Decision::Source => return None,
            };
            let span = plan.span.start.max(view.kept)..plan.span.end.min(view.next);
            let (code, key) = self.code_of(&plan, &span, s.peek_key());
            let header = RepairHeader::new(session, code, &span, key);
            let size = header.size() + s.encoder.repair_size(span.clone()).ok()?;
            let plan = RepairPlan { span, ..plan };
            (size <= room).then_some(RepairBid { session, plan, header, size })
        })
    }

    /// The code and the key of a repair symbol: the code and key of the plan, if the peer accepts the code
    /// and the code has such a repair symbol.
    fn code_of(&self, plan: &RepairPlan, span: &Range<u64>, next_key: u32) -> (CodeId, u32) {
        let key = plan.key.unwrap_or(next_key);
        let known = code::find(plan.code).filter(|_| self.codes.contains(plan.code));
        match known {
            Some(code) if code.admits(span, key) => (plan.code, key),
            _ => (CodeId::SLIDING_WINDOW, next_key),
        }
    }

    /// Appends the REPAIR frame of a bid.
    pub fn write_repair(
        &mut self,
        now: Instant,
        bid: &RepairBid,
        around: &Surroundings<'_>,
        out: &mut Vec<u8>,
    ) -> Option<Token> {
        let session = bid.session;
        self.rest = None;
        self.moved = true;
        let s = self.sessions.get_mut(usize::from(session))?;
        let (span, key) = (bid.header.span(), bid.header.key);
        let start = out.len();
        bid.header.encode(out);
        let code = code::find(bid.header.code).unwrap_or(&SlidingWindow);
        if code.encode(&s.encoder, span.clone(), key, out).is_err() {
            out.truncate(start);
            return None;
        }
        let size = out.len() - start;
        s.use_key();
        s.repair_sent(now, &span, size);
        let view = s.view(around);
        s.policy.on_repair_sent(now, &view);
        s.release_kept();
        s.release_repairs();
        s.forget_contents();
        self.count(session, |counts| {
            counts.repair_symbols += 1;
            counts.repair_bytes += size as u64;
        });
        Some(Token::Repair { session, first: span.start, end: span.end })
    }

    /// A repair symbol over `span` was acknowledged, or else lost, so symbols that were held for it
    /// must be reconsidered.
    pub fn on_repair_settled(&mut self, session: u16, span: &Range<u64>, arrived: bool) {
        if let Some(s) = self.session(session) {
            s.repair_settled(span, arrived);
        }
    }
}
