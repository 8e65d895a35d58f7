//! The delivery seam: which received piece of a stream the application gets next.
//!
//! QUIC delivers streams in order by default, and lets an implementation offer their bytes out of
//! order (RFC 9000 section 2.2). The mechanism keeps what was received and delivers each byte once;
//! a [`Delivery`] decides in which order. Flow control gives credit for what was delivered, wherever
//! it stands, and the end of the stream is told after all of its bytes.

pub use arrival_order::ArrivalOrder;
pub use stream_order::StreamOrder;

use super::assembler::Assembler;
use bytes::Bytes;
use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;
use sutura_schedule::policies;

policies! {
    /// The built-in kinds, as they are listed.
    pub(crate) const ENTRIES: dyn DeliveryFactory = [stream_order, arrival_order];
}

/// Bytes of a stream, and where they stand in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Stream offset of the first byte.
    pub offset: u64,
    /// The bytes.
    pub bytes: Bytes,
}

/// What of a stream was received and not delivered.
#[derive(Debug, Clone, Copy)]
pub struct Held<'a> {
    store: &'a Assembler,
    final_size: Option<u64>,
}

impl<'a> Held<'a> {
    pub(crate) fn new(store: &'a Assembler, final_size: Option<u64>) -> Self {
        Self { store, final_size }
    }

    /// The lowest stream offset that was not delivered, received or not.
    #[must_use]
    pub fn front(&self) -> u64 {
        self.store.read_offset()
    }

    /// The held bytes around `offset`: as many as lie together in memory, which ends at certain
    /// offsets even if the next bytes are held, too. `None` if `offset` is not held.
    #[must_use]
    pub fn range_of(&self, offset: u64) -> Option<Range<u64>> {
        self.store.range_of(offset)
    }

    /// All held bytes, in ascending order and ranges as [`range_of`](Self::range_of) has them.
    pub fn ranges(&self) -> impl Iterator<Item = Range<u64>> + 'a {
        self.store.held()
    }

    /// The length of the stream, once it is known.
    #[must_use]
    pub fn final_size(&self) -> Option<u64> {
        self.final_size
    }
}

/// Decides which received, undelivered bytes of one stream the application gets next.
///
/// * [`next`](Self::next) is a question: it changes nothing and has the same answer until one of
///   the other methods is called. Only those take part in what happens.
/// * The mechanism checks the answer. A range that is empty, or of which not every byte is held and
///   lies together with the others (see [`Held::range_of`]), counts as no answer; so does one of an
///   [ordered](Self::is_ordered) policy that does not start at [`Held::front`]. A policy that is wrong
///   can thus only hold back bytes, with the credit for them and the end of the stream.
/// * A policy that comes when something is held already is told of each held range by
///   [`on_received`](Self::on_received), in ascending order.
/// * What a policy keeps is bounded by the number of held ranges, which the mechanism bounds. The
///   number of calls is not: a peer may send single bytes.
///
/// [`conformance::delivery`](crate::conformance::delivery) tells whether a policy keeps to this.
pub trait Delivery: Any + Debug + Send {
    /// Whether bytes leave in stream order, so that the application can do without their offsets;
    /// the same at all times. Only then can it use the reading methods that tell no offsets.
    fn is_ordered(&self) -> bool {
        false
    }

    /// `range` was received and had not been before; it lies together. `held` is what is held with
    /// the whole frame that brought it.
    fn on_received(&mut self, _range: Range<u64>, _held: &Held<'_>) {}

    /// What may be delivered next. The application gets it, or as much of its beginning as it asked
    /// for.
    fn next(&self, held: &Held<'_>) -> Option<Range<u64>>;

    /// `range` was delivered, the answer of [`next`](Self::next) or its beginning; `held` is what
    /// is left.
    fn on_delivered(&mut self, _range: Range<u64>, _held: &Held<'_>) {}
}

/// Makes the deliveries of streams, of one kind.
pub trait DeliveryFactory: Debug + Send + Sync {
    /// The name of the kind.
    fn name(&self) -> &str;

    /// A delivery for a stream of which nothing was received.
    fn build(&self) -> Box<dyn Delivery>;
}
