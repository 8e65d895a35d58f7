//! Handles the fate of the frames that were sent.

use super::Egress;
use super::lost::Unqueued;
use crate::fec::redundancy::{Arrival, PathView};
use crate::fec::{DataKind, LostSymbol};
use crate::ids::{MessageId, StreamId, SymbolRef};
use crate::loss_reaction::{LostData, PATIENCE, RepairOutlook, Verdict};
use crate::recovery::token::StreamToken;
use crate::streams::Streams;
use crate::wire::coding::VARINT_MAX;
use std::ops::Range;
use std::time::Instant;

/// The fate of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketOutcome {
    /// The packet was acknowledged.
    Acked,
    /// The packet was declared lost. The value is the time at which it was sent.
    Lost(Instant),
    /// The packet was acknowledged after it had been declared lost.
    Late,
}

impl Egress {
    /// Handles the outcome of a STREAM frame.
    pub fn on_stream_frame(
        &mut self,
        streams: &mut Streams,
        now: Instant,
        frame: &StreamToken,
        outcome: PacketOutcome,
        path: &PathView,
    ) {
        match outcome {
            PacketOutcome::Acked => self.on_arrived(streams, now, frame, Arrival::Acked, path),
            PacketOutcome::Late => self.on_arrived(streams, now, frame, Arrival::Late, path),
            PacketOutcome::Lost(sent) => self.on_lost(streams, now, frame, sent, path),
        }
    }

    /// The peer has the contents of a frame. Returns the symbols that no longer wait to be sent again for
    /// that reason.
    pub(super) fn delivered(
        &mut self,
        streams: &mut Streams,
        now: Instant,
        frame: &StreamToken,
        path: &PathView,
    ) -> Unqueued {
        if let Some(ended) = streams.delivered(frame) {
            self.on_message_ended(now, ended, path);
        }
        self.lost.arrived(streams, frame)
    }

    /// Tells sessions of the symbols that no longer wait in a stream's queue, although they were not sent.
    /// Each symbol is queued on another stream whose frame in the symbol is missing at the peer, or given up
    /// if there is none. Otherwise its session would wait for the symbol for ever.
    pub(super) fn settle(&mut self, streams: &mut Streams, unqueued: Unqueued) {
        for symbol in unqueued {
            if !self.sessions.resend_frames(symbol).is_empty() {
                self.resend_symbol(streams, symbol);
            }
        }
    }

    /// Handles the outcome of a DATAGRAM frame.
    pub fn on_datagram(
        &mut self,
        streams: &Streams,
        now: Instant,
        id: MessageId,
        symbol: Option<SymbolRef>,
        outcome: PacketOutcome,
        path: &PathView,
    ) {
        let how = match outcome {
            PacketOutcome::Acked => Arrival::Acked,
            PacketOutcome::Late => Arrival::Late,
            PacketOutcome::Lost(_) => return self.on_lost_datagram(streams, now, id, symbol, path),
        };
        self.messages.arrived(id, path.heard_from(now), false);
        if let Some(symbol) = symbol {
            self.sessions.on_acked(symbol, how);
        }
    }

    /// Tells the policies which symbols arrived, once the outcomes of all packets of an acknowledgement were
    /// handled.
    pub fn tell_arrived(&mut self, streams: &Streams, now: Instant, path: &PathView) {
        while let Some(session) = self.sessions.next_with_arrivals() {
            let around = self.surroundings(streams, session, path);
            self.sessions.tell_arrived(now, session, &around);
        }
    }

    /// A datagram is never sent again. Its symbol stays in the window as long as repair symbols may mend it;
    /// [`release_overdue`](Self::release_overdue) ends the wait.
    fn on_lost_datagram(
        &mut self,
        streams: &Streams,
        now: Instant,
        id: MessageId,
        symbol: Option<SymbolRef>,
        path: &PathView,
    ) {
        let Some(symbol) = symbol else { return self.messages.give_up(id) };
        let around = self.surroundings(streams, symbol.session, path);
        match self.sessions.on_lost(now, symbol, &around) {
            LostSymbol::Open(_) => {
                let useful = self.messages.last_deadline(self.sessions.datagrams_of(symbol));
                let patience = now + path.pto * PATIENCE;
                self.sessions.keep(symbol, useful.map_or(patience, |at| at.min(patience)));
            }
            LostSymbol::Settled => {}
            LostSymbol::Unprotected => self.messages.give_up(id),
        }
    }

    /// Handles the outcome of a repair symbol that covered the symbols of `span`. Symbols held
    /// for it are reconsidered by [`release_overdue`](Self::release_overdue).
    pub fn on_repair(
        &mut self,
        streams: &Streams,
        now: Instant,
        session: u16,
        span: Range<u64>,
        outcome: PacketOutcome,
        path: &PathView,
    ) {
        let arrived = match outcome {
            PacketOutcome::Acked => true,
            PacketOutcome::Lost(_) => false,
            // The repair symbol already counted as lost.
            PacketOutcome::Late => return,
        };
        self.sessions.on_repair_settled(session, &span, arrived);
        if !arrived && self.sessions.kind(session) == Some(DataKind::Datagrams) {
            let around = self.surroundings(streams, session, path);
            self.sessions.on_repair_lost(now, session, &span, &around);
        }
    }

    fn on_arrived(
        &mut self,
        streams: &mut Streams,
        now: Instant,
        frame: &StreamToken,
        how: Arrival,
        path: &PathView,
    ) {
        let unqueued = self.delivered(streams, now, frame, path);
        if let Some(symbol) = frame.symbol {
            self.sessions.on_acked(symbol, how);
        }
        if !unqueued.is_empty() {
            self.sessions.settle_acked();
            self.settle(streams, unqueued);
        }
    }

    /// The decision point between "declared lost" and "queued to be sent again".
    fn on_lost(
        &mut self,
        streams: &mut Streams,
        now: Instant,
        frame: &StreamToken,
        sent: Instant,
        path: &PathView,
    ) {
        let mut symbol = frame.symbol;
        let mut repair = None;
        if let Some(lost) = symbol {
            let around = self.surroundings(streams, lost.session, path);
            match self.sessions.on_lost(now, lost, &around) {
                LostSymbol::Open(outlook) => repair = Some(outlook),
                LostSymbol::Settled => return,
                LostSymbol::Unprotected => symbol = None,
            }
        }
        if !streams.is_missing(frame) {
            symbol.into_iter().for_each(|symbol| self.give_up_symbol(symbol));
            return;
        }
        let lost = self.lost_data(streams, frame, sent, repair, path);
        let verdict = self.reaction.on_lost(now, &lost);
        self.react(streams, now, (frame, symbol), verdict, path);
    }

    fn lost_data(
        &self,
        streams: &Streams,
        frame: &StreamToken,
        sent: Instant,
        repair: Option<RepairOutlook>,
        path: &PathView,
    ) -> LostData {
        LostData {
            stream: frame.id,
            range: frame.range(),
            fin: frame.fin,
            sent,
            deadline: streams.deadline(frame),
            repair,
            rtt: path.rtt,
            pto: path.pto,
        }
    }

    /// Applies the verdict of the loss reaction to a lost frame. The second part of `lost` is the source symbol
    /// that carried the frame, if the symbol is still in its window.
    fn react(
        &mut self,
        streams: &mut Streams,
        now: Instant,
        lost: (&StreamToken, Option<SymbolRef>),
        verdict: Verdict,
        path: &PathView,
    ) {
        let (frame, symbol) = lost;
        match (verdict, symbol) {
            (Verdict::Resend, Some(symbol)) => self.resend_symbol(streams, symbol),
            (Verdict::Resend, None) => self.resend(streams, frame),
            (Verdict::Hold { until }, Some(symbol)) => self.sessions.hold(symbol, until),
            (Verdict::Hold { until }, None) => {
                if !self.lost.hold(until, *frame) {
                    self.resend(streams, frame);
                }
            }
            (Verdict::Drop { code }, symbol) => {
                symbol.into_iter().for_each(|symbol| self.give_up_symbol(symbol));
                if let Some(ended) = streams.give_up(frame, code.min(VARINT_MAX)) {
                    self.on_message_ended(now, ended, path);
                }
                let unqueued = self.lost.arrived(streams, frame);
                self.settle(streams, unqueued);
            }
        }
    }

    /// Queues the part of a frame that has not arrived to be sent again, as bare data.
    pub(super) fn resend(&mut self, streams: &mut Streams, frame: &StreamToken) {
        if self.lost.queue(streams, frame) {
            self.resent_bytes += u64::from(frame.len);
            self.queued_again(streams, frame.id);
        }
    }

    /// Turns a symbol queued by a stream into bare data, because the symbol can no longer be sent
    /// as it is.
    pub(super) fn unbind(&mut self, streams: &mut Streams, id: StreamId, symbol: SymbolRef) {
        let (bytes, unqueued) = self.lost.unbind(streams, id, symbol);
        self.resent_bytes += bytes;
        self.settle(streams, unqueued);
    }

    /// Queues a symbol on a stream that still misses one of its frames. Drops the symbol if no stream misses
    /// a frame, as with datagrams. If the symbol left its window, its frames are sent again as bare data.
    pub(super) fn resend_symbol(&mut self, streams: &mut Streams, symbol: SymbolRef) {
        if let Some(contents) = self.sessions.send_bare(symbol) {
            contents.datagrams.iter().for_each(|id| self.messages.give_up(*id));
            contents.frames.iter().for_each(|frame| self.resend(streams, frame));
            return;
        }
        let frames = self.sessions.queue(symbol);
        match frames.iter().find(|frame| streams.is_missing(frame)) {
            Some(frame) => {
                self.lost.queue_symbol(streams, symbol, frame);
                let id = frame.id;
                self.queued_again(streams, id);
            }
            None => self.give_up_symbol(symbol),
        }
    }

    /// Data of a stream waits to be sent again. If the stream carries a message that comes too late, the
    /// message is cancelled.
    fn queued_again(&mut self, streams: &Streams, id: StreamId) {
        streams.message_id(id).into_iter().for_each(|id| self.messages.queued_again(id));
    }

    /// Releases held data whose time is over, and held symbols that the repair symbols in flight cannot mend.
    /// Called once all frames of a packet were processed, and by the timer.
    pub fn release_overdue(&mut self, streams: &mut Streams, now: Instant) {
        for symbol in self.sessions.take_overdue(now) {
            self.resend_symbol(streams, symbol);
        }
        for frame in self.lost.take_due(streams, now) {
            self.resend(streams, &frame);
        }
        // Data that arrived leaves its buffers in the lists of free buffers, which may have outgrown the
        // budget.
        self.enforce_budget(streams);
    }

    /// Sends again, as a probe, the oldest data that waits for a repair symbol over `span`: if the repair
    /// symbol was lost too, the data helps at once.
    pub fn probe_repair(&mut self, streams: &mut Streams, session: u16, span: Range<u64>) {
        if let Some(symbol) = self.sessions.oldest_held(session, span) {
            self.resend_symbol(streams, symbol);
        }
    }

    /// Sends a frame again as a probe, even if the loss reaction would rather wait.
    pub fn probe(&mut self, streams: &mut Streams, frame: &StreamToken) {
        let may_probe = frame.symbol.and_then(|symbol| {
            let may = self.sessions.may_probe(symbol)?;
            Some((symbol, may))
        });
        match may_probe {
            Some((symbol, true)) if streams.is_missing(frame) => {
                self.resend_symbol(streams, symbol);
            }
            Some(_) => {}
            None => self.resend(streams, frame),
        }
    }
}
