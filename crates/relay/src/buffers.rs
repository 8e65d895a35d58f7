//! The datagrams that are under way.

use crate::clients::ClientId;

/// Bytes of datagrams under way, in both directions together. A link that is told to delay more
/// than this is refused the rest.
pub(crate) const MAX_BYTES: usize = 256 << 20;

/// Buffers that grew beyond this are not kept for later.
const MAX_KEPT_CAPACITY: usize = 16 << 10;

/// Names a datagram in [`Buffers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferId(u32);

#[derive(Debug)]
struct Buffer {
    data: Vec<u8>,
    client: ClientId,
    holders: u8,
}

/// Datagrams by name, in storage that is used again and again.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    all: Vec<Buffer>,
    free: Vec<BufferId>,
    bytes: usize,
}

impl Buffers {
    /// Keeps a datagram of or for `client`, held once; `None` if there is no room for it.
    pub(crate) fn insert(&mut self, data: &[u8], client: ClientId) -> Option<BufferId> {
        if self.bytes + data.len() > MAX_BYTES {
            return None;
        }
        let id = match self.free.pop() {
            Some(id) => id,
            None => {
                let id = BufferId(u32::try_from(self.all.len()).ok()?);
                self.all.push(Buffer { data: Vec::new(), client, holders: 0 });
                id
            }
        };
        let buffer = self.all.get_mut(id.0 as usize)?;
        buffer.data.clear();
        buffer.data.extend_from_slice(data);
        buffer.client = client;
        buffer.holders = 1;
        self.bytes += data.len();
        Some(id)
    }

    /// One more holds the datagram.
    pub(crate) fn share(&mut self, id: BufferId) {
        if let Some(buffer) = self.all.get_mut(id.0 as usize) {
            buffer.holders += 1;
        }
    }

    pub(crate) fn get(&self, id: BufferId) -> Option<(&[u8], ClientId)> {
        self.all.get(id.0 as usize).map(|buffer| (buffer.data.as_slice(), buffer.client))
    }

    /// One fewer holds the datagram.
    pub(crate) fn release(&mut self, id: BufferId) {
        let Some(buffer) = self.all.get_mut(id.0 as usize) else { return };
        buffer.holders = buffer.holders.saturating_sub(1);
        if buffer.holders == 0 {
            self.bytes -= buffer.data.len();
            if buffer.data.capacity() > MAX_KEPT_CAPACITY {
                buffer.data = Vec::new();
            }
            self.free.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_is_used_again_once_nobody_holds_it() {
        let mut buffers = Buffers::default();
        let client = ClientId::default();
        let first = buffers.insert(b"first", client).unwrap();
        buffers.share(first);
        buffers.release(first);
        assert_eq!(buffers.get(first).unwrap().0, b"first");
        let second = buffers.insert(b"second", client).unwrap();
        assert_ne!(first, second);
        buffers.release(first);
        assert_eq!(buffers.insert(b"third", client), Some(first));
        assert_eq!(buffers.get(first).unwrap().0, b"third");
        assert_eq!(buffers.all.len(), 2);
    }

    #[test]
    fn a_flood_is_bounded_and_leaves_room_when_it_is_over() {
        let mut buffers = Buffers::default();
        let datagram = vec![0; 65_000];
        let mut held = Vec::new();
        while let Some(id) = buffers.insert(&datagram, ClientId::default()) {
            held.push(id);
        }
        assert_eq!(held.len(), MAX_BYTES / datagram.len());
        for id in held {
            buffers.release(id);
        }
        assert_eq!(buffers.bytes, 0);
        assert!(buffers.all.iter().all(|b| b.data.capacity() <= MAX_KEPT_CAPACITY));
        assert!(buffers.insert(&datagram, ClientId::default()).is_some());
    }
}
