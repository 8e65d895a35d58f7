//! Which packets of a connection go into one system call. The rules are those of tokio-quiche: packets of one size, of
//! which the last may be smaller, up to what congestion control allows at a time and the kernel takes.

use super::entry::Connection;
use quiche::Error;
use std::net::SocketAddr;

/// Bytes and packets of a batch at most.
pub const LARGEST_BATCH: usize = 65_507;
const MOST_SEGMENTS: usize = 64;
/// Packets below this size, such as acknowledgements, end a batch.
const SMALL: usize = 1000;

/// RFC 9000 section 20.1.
const INTERNAL_ERROR: u64 = 1;

/// Packets in the buffer that they were written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    pub to: SocketAddr,
    pub len: usize,
    /// Bytes of each packet, except for the last.
    pub segment: usize,
    pub packets: usize,
}

/// Writes packets to `buffer`; `None` if there are none.
pub fn gather(connection: &mut Connection, buffer: &mut [u8], segments: usize) -> Option<Batch> {
    let buffer_len = buffer.len().min(LARGEST_BATCH);
    let most = segments.clamp(1, MOST_SEGMENTS);
    let mut batch: Option<Batch> = None;
    loop {
        let (start, end) = match batch {
            None => (0, buffer_len),
            Some(Batch { len, segment, .. }) => (len, buffer_len.min(len + segment)),
        };
        let (len, to) = match connection.send(&mut buffer[start..end]) {
            Ok((len, info)) => (len, info.to),
            Err(Error::Done) => return batch,
            Err(_) => {
                // Only if the connection is closing already is there nothing to close.
                let _ = connection.close(false, INTERNAL_ERROR, &[]);
                return batch;
            }
        };
        let first = Batch { to, len: 0, segment: len, packets: 0 };
        let current = batch.get_or_insert(first);
        let is_first = current.packets == 0;
        current.len += len;
        current.packets += 1;
        let segment = current.segment;
        let is_last = !is_first && (len != segment || len < SMALL);
        let allowed = connection.send_quantum().min(buffer_len);
        let allowed = if is_first { allowed } else { allowed / segment * segment };
        if is_last || current.packets == most || current.len >= allowed {
            return batch;
        }
    }
}
