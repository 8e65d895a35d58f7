//! Stream order, the order that QUIC guarantees by default.

use super::{Delivery, DeliveryFactory, Held};
use std::ops::Range;
use std::sync::Arc;
use sutura_schedule::registry::Entry;

pub(super) const ENTRY: Entry<dyn DeliveryFactory> =
    Entry::new("stream", "bytes in the order in which the peer wrote them", |_| {
        Ok(Arc::new(StreamOrder))
    });

/// Bytes are delivered in the order in which the peer wrote them: bytes behind a gap wait until the gap is
/// filled. The default. Keeps no state.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamOrder;

impl Delivery for StreamOrder {
    fn is_ordered(&self) -> bool {
        true
    }

    fn next(&self, held: &Held<'_>) -> Option<Range<u64>> {
        held.range_of(held.front())
    }
}

impl DeliveryFactory for StreamOrder {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn build(&self) -> Box<dyn Delivery> {
        Box::new(Self)
    }
}
