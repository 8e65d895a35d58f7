//! Datagrams of one size, which an operating system sends in one call.

use super::Connection;
use super::transmit::Transmit;
use std::time::Instant;

/// A datagram shorter than the path allows by no more than this restricts the datagrams behind it to its size.
const SEGMENT_SLACK: usize = 64;

/// A datagram that was built, but did not fit in its batch because it is larger than the others.
#[derive(Debug)]
pub(super) struct KeptDatagram {
    /// Where to send it, and with which mark.
    transmit: Transmit,
    datagram: Vec<u8>,
}

/// The datagrams of one call.
#[derive(Debug, Default)]
struct Batch {
    /// The size of the first datagram, which is the size of all but the last.
    segment: Option<usize>,
    datagrams: usize,
}

/// What the datagrams of a batch ask of the next one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alignment {
    /// The size to which the datagram is padded if it is little shorter; 0 if it is not padded.
    pub(super) size: u32,
    /// Whether the datagram may not be longer.
    pub(super) bounds: bool,
}

/// How a datagram fits in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// As large as the others: more may follow.
    Alike,
    /// Smaller than the others: it is the last.
    Last,
    /// Larger than the others: it is the first of the next batch.
    Larger,
}

impl Batch {
    /// Adds a datagram, unless it is too large.
    fn add(&mut self, size: usize) -> Fit {
        let segment = *self.segment.get_or_insert(size);
        if size > segment {
            return Fit::Larger;
        }
        self.datagrams += 1;
        if size == segment { Fit::Alike } else { Fit::Last }
    }
}

impl Connection {
    /// Appends the next datagrams to `out`: at most `max_datagrams`, to one destination and of one
    /// size except for the last. Returns `None` if there is nothing to send for now.
    ///
    /// A datagram that does not fit in the batch is kept for the next call, so call this as long as there is
    /// [more](Transmit::more).
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        max_datagrams: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.rest_after_handshake();
        let kept = self.kept.take().filter(|_| !self.is_closed());
        if kept.is_none() {
            if let Some(transmit) = self.transmit_path_frame(now, out) {
                return Some(transmit);
            }
            if let Some(transmit) = self.transmit_mtu_probe(now, out) {
                return Some(transmit);
            }
        }
        self.spare_keys(now);
        self.streams.on_congestion_window(self.path.congestion.window());
        self.tend_messages(now);
        let start = out.len();
        let mut batch = Batch::default();
        let mut to = Transmit::new(self.path.remote, 0).with_ecn(self.mark());
        if let Some(KeptDatagram { transmit, datagram }) = kept.map(|kept| *kept) {
            out.extend_from_slice(&datagram);
            batch.add(datagram.len());
            to = transmit;
        }
        while batch.datagrams < max_datagrams
            && (self.path.remote, self.mark()) == (to.destination, to.ecn)
        {
            // Full datagrams are made equally long. Datagrams that are short because there was no more to put
            // into them do not shorten the datagrams behind them.
            let is_full = |size: &usize| size + SEGMENT_SLACK >= usize::from(self.path.mtu.size());
            let bounds = batch.segment.as_ref().is_some_and(is_full);
            // Datagrams have less than 64 KiB.
            let size = batch.segment.filter(|_| bounds || self.pads_segments).unwrap_or(0) as u32;
            match self.extend_batch(now, &mut batch, Alignment { size, bounds }, &to, out) {
                Some(Fit::Alike) => {}
                Some(Fit::Last | Fit::Larger) => break,
                None => {
                    // There may be a frame that needs a longer datagram, or the end of a connection whose keys
                    // are used up.
                    self.spare_keys(now);
                    to.more = bounds || self.close.due;
                    break;
                }
            }
        }
        self.update_loss_timer(now);
        let size = out.len() - start;
        if size == 0 {
            return None;
        }
        let segment_size = batch.segment.filter(|segment| size > *segment);
        Some(Transmit { size, segment_size, ..to })
    }

    /// The same for a system to which each batch is a call that costs more than a few bytes (segmentation offload):
    /// datagrams that are little shorter than the others are padded instead of ending their batch. Source and
    /// repair symbols of small answers differ by that much.
    pub fn poll_segments(
        &mut self,
        now: Instant,
        max_datagrams: usize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.pads_segments = true;
        let transmit = self.poll_transmit(now, max_datagrams, out);
        self.pads_segments = false;
        transmit
    }

    /// Builds another datagram of a batch. `None` if there is nothing to send for now.
    fn extend_batch(
        &mut self,
        now: Instant,
        batch: &mut Batch,
        alignment: Alignment,
        to: &Transmit,
        out: &mut Vec<u8>,
    ) -> Option<Fit> {
        let before = out.len();
        let most = if alignment.bounds { alignment.size as usize } else { self.datagram_size() };
        if !self.build_datagram(now, most, alignment, out) {
            return None;
        }
        let size = out.len() - before;
        self.path.address.on_sent(size);
        self.stats.sent.datagrams += 1;
        self.stats.sent.bytes += size as u64;
        let fit = batch.add(size);
        if fit == Fit::Larger {
            let datagram = out.split_off(before);
            self.kept = Some(Box::new(KeptDatagram { transmit: *to, datagram }));
        }
        Some(fit)
    }
}
