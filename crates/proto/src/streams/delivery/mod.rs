//! The delivery seam: which received piece of a stream the application reads next.
//!
//! QUIC delivers streams in order by default, but an implementation may offer bytes out of order (RFC 9000
//! section 2.2). The mechanism keeps the received bytes and delivers each byte once; a [`Delivery`] decides
//! in which order. Flow control gives credit for delivered bytes, whatever their offset, and the end of the
//! stream is reported after all of its bytes.

pub use arrival_order::ArrivalOrder;
pub use stream_order::StreamOrder;

use super::assembler::Assembler;
use bytes::Bytes;
use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use sutura_schedule::policies;

policies! {
    /// The built-in kinds, in the order in which they are listed.
    pub(crate) const ENTRIES: dyn DeliveryFactory = [stream_order, arrival_order];
}

/// Bytes of a stream and their offset.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Chunk {
    /// Stream offset of the first byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: Bytes,
}

/// The bytes of a stream that were received but not delivered.
#[derive(Debug, Clone, Copy)]
pub struct Held<'a> {
    store: &'a Assembler,
    final_size: Option<u64>,
}

impl<'a> Held<'a> {
    pub(crate) fn new(store: &'a Assembler, final_size: Option<u64>) -> Self {
        Self { store, final_size }
    }

    /// The lowest stream offset that was not delivered, whether or not it was received.
    #[must_use]
    pub fn front(&self) -> u64 {
        self.store.read_offset()
    }

    /// The held bytes around `offset` that are contiguous in memory. Such a range may end although
    /// the next bytes are held too. `None` if `offset` is not held.
    #[must_use]
    pub fn range_of(&self, offset: u64) -> Option<Range<u64>> {
        self.store.range_of(offset)
    }

    /// All held bytes, as ascending ranges that are split like those of
    /// [`range_of`](Self::range_of).
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + 'a {
        self.store.held()
    }

    /// The final size of the stream, once it is known.
    #[must_use]
    pub fn final_size(&self) -> Option<u64> {
        self.final_size
    }
}

/// Decides which received, undelivered bytes of one stream the application reads next.
///
/// * [`next`](Self::next) is a pure query: it changes nothing, and its answer stays the same until
///   another method is called.
/// * The mechanism checks the answer. A range counts as no answer if it is empty, not entirely
///   held, or not contiguous in memory (see [`Held::range_of`]). So does a range that does not
///   start at [`Held::front`], if the policy is [ordered](Self::is_ordered). A faulty policy can
///   thus only hold back bytes, together with their flow-control credit and the end of the stream.
/// * If a policy is installed when bytes are held already, it is told of each held range by
///   [`on_received`](Self::on_received), in ascending order.
/// * A policy's state must be bounded by the number of held ranges, which the mechanism bounds. It
///   must not grow with the number of calls: a peer may send single bytes.
///
/// `conformance::delivery` tests whether a policy keeps this contract.
pub trait Delivery: Any + Debug + Send {
    /// Whether bytes are delivered in stream order, so that the application does not need their
    /// offsets. Must never change. Only then can the application use the read methods that return
    /// no offsets.
    fn is_ordered(&self) -> bool {
        false
    }

    /// `range` was received for the first time; it is contiguous in memory. `held` already includes
    /// the whole frame that brought it.
    fn on_received(&mut self, _range: Range<u64>, _held: &Held<'_>) {}

    /// The range that may be delivered next. The application gets the whole range, or its beginning if it
    /// asked for fewer bytes.
    fn next(&self, held: &Held<'_>) -> Option<Range<u64>>;

    /// `range` was delivered: the answer of [`next`](Self::next), or its beginning. `held` no longer includes
    /// the range.
    fn on_delivered(&mut self, _range: Range<u64>, _held: &Held<'_>) {}
}

impl dyn Delivery {
    /// Whether this is [`StreamOrder`], which needs no state and no policy.
    pub(super) fn is_stream_order(&self) -> bool {
        let any: &dyn Any = self;
        any.is::<StreamOrder>()
    }
}

/// Builds deliveries of one kind.
pub trait DeliveryFactory: Debug + Send + Sync {
    /// The name of the kind.
    fn name(&self) -> &str;

    /// A delivery for a stream of which nothing was received yet.
    fn build(&self) -> Box<dyn Delivery>;
}
