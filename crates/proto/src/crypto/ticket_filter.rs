//! Removes the tickets from the messages that a server sends after the handshake.

/// NewSessionTicket (RFC 8446 section 4).
const NEW_SESSION_TICKET: u8 = 4;

/// The type and the length of a message.
const HEADER_LEN: usize = 4;

/// Drops NewSessionTicket messages, however they are cut. TLS judges all other messages.
#[derive(Debug, Default)]
pub struct TicketFilter {
    /// The part of a header that has arrived.
    header: Vec<u8>,
    /// How many bytes of a ticket are still to come.
    skip: usize,
    /// Whether another message came: nothing is dropped any more.
    open: bool,
}

impl TicketFilter {
    /// `data` without tickets.
    pub fn pass(&mut self, mut data: &[u8]) -> Vec<u8> {
        while !self.open && !data.is_empty() {
            let skipped = self.skip.min(data.len());
            self.skip -= skipped;
            let missing = HEADER_LEN - self.header.len();
            let (header, rest) = data[skipped..].split_at(missing.min(data.len() - skipped));
            self.header.extend_from_slice(header);
            data = rest;
            if let [kind, high, middle, low] = self.header[..] {
                if kind == NEW_SESSION_TICKET {
                    self.skip = u32::from_be_bytes([0, high, middle, low]) as usize;
                    self.header.clear();
                } else {
                    self.open = true;
                }
            }
        }
        let mut passed = if self.open { std::mem::take(&mut self.header) } else { Vec::new() };
        passed.extend_from_slice(data);
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tickets_are_dropped_however_they_are_cut() {
        let ticket = [&[NEW_SESSION_TICKET, 0, 1, 2][..], &[7; 0x102]].concat();
        let empty = [NEW_SESSION_TICKET, 0, 0, 0];
        let update = [24, 0, 0, 1, 0];
        let all = [&ticket[..], &empty, &ticket, &update, &ticket].concat();
        for piece in [1, 3, 4, 5, 100, 1000] {
            let mut filter = TicketFilter::default();
            let passed: Vec<u8> = all.chunks(piece).flat_map(|data| filter.pass(data)).collect();
            assert_eq!(passed, [&update[..], &ticket].concat(), "{piece}");
        }
    }

    #[test]
    fn a_flood_of_tickets_is_not_kept() {
        let mut filter = TicketFilter::default();
        for _ in 0..10_000 {
            assert!(filter.pass(&[NEW_SESSION_TICKET, 0, 0, 9, 1, 2, 3]).is_empty());
            assert!(filter.pass(&[4, 5, 6, 7, 8, 9, NEW_SESSION_TICKET, 0, 0]).is_empty());
            assert!(filter.pass(&[0]).is_empty() && filter.header.len() <= HEADER_LEN);
        }
    }
}
