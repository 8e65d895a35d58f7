//! The datagrams in transit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quinn_udp::EcnCodepoint;

use crate::clients::ClientId;

/// Maximum number of bytes in transit, in both directions together. If a link would have to delay
/// more than this, further datagrams are refused.
pub(crate) const MAX_BYTES: usize = 256 << 20;

/// A datagram in transit. It counts against the limit until it is dropped.
#[derive(Debug)]
pub(crate) struct Datagram {
    pub(crate) data: Box<[u8]>,
    /// Its mark when it was sent.
    pub(crate) ecn: Option<EcnCodepoint>,
    /// Its sender or its receiver.
    pub(crate) client: ClientId,
    room: Room,
}

impl Drop for Datagram {
    fn drop(&mut self) {
        self.room.0.fetch_sub(self.data.len(), Ordering::Relaxed);
    }
}

/// The budget for datagrams in transit. The value is the number of bytes in use.
#[derive(Debug, Clone, Default)]
pub(crate) struct Room(Arc<AtomicUsize>);

impl Room {
    /// Stores a datagram from or to `client`; `None` if there is no room for it.
    pub(crate) fn hold(
        &self,
        data: &[u8],
        ecn: Option<EcnCodepoint>,
        client: ClientId,
    ) -> Option<Arc<Datagram>> {
        if self.0.load(Ordering::Relaxed) + data.len() > MAX_BYTES {
            return None;
        }
        self.0.fetch_add(data.len(), Ordering::Relaxed);
        Some(Arc::new(Datagram { data: data.into(), ecn, client, room: self.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_bounded_and_leaves_room_when_it_is_over() {
        let room = Room::default();
        let datagram = vec![0; 65_000];
        let hold = || room.hold(&datagram, None, ClientId::default());
        let held: Vec<_> = std::iter::from_fn(hold).collect();
        assert_eq!(held.len(), MAX_BYTES / datagram.len());
        let copy = held[0].clone();
        drop(held);
        // A datagram held twice counts once, until both holders have dropped it.
        assert_eq!(room.0.load(Ordering::Relaxed), datagram.len());
        drop(copy);
        assert_eq!(room.0.load(Ordering::Relaxed), 0);
    }
}
