//! Datagrams of a client that arrive before the application has decided about it.

use crate::socket::Received;
use std::net::IpAddr;
use sutura_proto::EcnCodepoint;

/// Datagrams that are kept of a client until the application has decided about it; further ones are
/// dropped, and the client sends them again.
const MAX_HELD_DATAGRAMS: usize = 8;
/// The most bytes of datagrams that are kept of a client until the application has decided about it.
const MAX_HELD_BYTES: usize = 16 * 1024;

/// Datagrams of a client that the application has not decided about.
#[derive(Debug, Default)]
pub(crate) struct Held {
    datagrams: Vec<(Option<EcnCodepoint>, Vec<u8>)>,
    bytes: usize,
    /// The address of this end that the newest datagram was sent to.
    pub(crate) local: Option<IpAddr>,
}

impl Held {
    /// Keeps a datagram, unless there are too many.
    pub(crate) fn push(&mut self, meta: &Received, datagram: &[u8]) {
        self.local = meta.local;
        let bytes = self.bytes + datagram.len();
        if self.datagrams.len() < MAX_HELD_DATAGRAMS && bytes <= MAX_HELD_BYTES {
            self.bytes = bytes;
            self.datagrams.push((meta.ecn, datagram.to_vec()));
        }
    }

    pub(crate) fn into_datagrams(self) -> impl Iterator<Item = (Option<EcnCodepoint>, Vec<u8>)> {
        self.datagrams.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_datagrams_is_held_within_bounds() {
        let remote = ([192, 0, 2, 1], 1).into();
        let meta = Received { remote, local: None, ecn: None };
        for len in [0, 1, 1200, 9000, 65_000] {
            let mut held = Held::default();
            for _ in 0..1000 {
                held.push(&meta, &vec![7; len]);
            }
            let datagrams: Vec<_> = held.into_datagrams().map(|(_, datagram)| datagram).collect();
            let bytes = datagrams.iter().map(Vec::len).sum::<usize>();
            assert!(datagrams.len() <= MAX_HELD_DATAGRAMS && bytes <= MAX_HELD_BYTES);
            assert_eq!(
                datagrams.len(),
                MAX_HELD_DATAGRAMS.min(MAX_HELD_BYTES / len.max(1)),
                "{len}"
            );
        }
    }
}
