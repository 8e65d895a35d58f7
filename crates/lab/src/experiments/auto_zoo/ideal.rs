//! The ideal: what a perfect code could have made of the packets that a connection sent.
//!
//! Repair symbols keep their times and their fates, as do data and what is sent again, but each repair symbol
//! mends whichever packet is worth the most, of those that were sent before it. A message is in time if enough
//! repair symbols arrive for its missing packets until then. No code can do better: by any time it has not
//! solved for more packets than repair symbols have arrived that were sent after these. Nor can any policy with
//! the same packets, so the distance to this bound is what the contents of the repair symbols cost. Which
//! messages are mended is chosen greedily: those first that need the fewest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::time::Duration;

use super::packets::{Transmissions, ZooPiece};

/// Which messages could have been in time: those with these numbers, of `size` bytes and an end, if they were
/// there `limit` after they were made.
pub fn in_time(record: &Transmissions, size: u64, limit: Duration) -> Vec<u64> {
    let repairs = Repairs::of(record);
    let mut in_time = Vec::new();
    let mut torn: Vec<(Need, u64)> = Vec::new();
    let pieces = by_stream(record);
    for (stream, head) in &record.heads {
        let deadline = head.made + limit;
        let pieces = pieces.get(stream).map_or(&[][..], Vec::as_slice);
        match missing(record, pieces, size, deadline) {
            None => {}
            Some(packets) if packets.is_empty() => in_time.push(head.number),
            Some(packets) => torn.push((Need { packets, deadline }, head.number)),
        }
    }
    torn.sort_by_key(|(need, number)| (need.packets.len(), need.deadline, *number));
    let mut chosen = BTreeMap::new();
    for (need, number) in torn {
        let with = need.added_to(&chosen);
        if repairs.suffice_for(&with) {
            chosen = with;
            in_time.push(number);
        }
    }
    in_time
}

/// The packets that a message misses, and until when.
struct Need {
    packets: Vec<usize>,
    deadline: Duration,
}

impl Need {
    fn added_to(&self, chosen: &BTreeMap<usize, Duration>) -> BTreeMap<usize, Duration> {
        let mut with = chosen.clone();
        for packet in &self.packets {
            let deadline = with.entry(*packet).or_insert(self.deadline);
            *deadline = self.deadline.min(*deadline);
        }
        with
    }
}

/// The pieces of each stream, with the places of their packets.
fn by_stream(record: &Transmissions) -> HashMap<u64, Vec<(usize, ZooPiece)>> {
    let mut streams: HashMap<u64, Vec<(usize, ZooPiece)>> = HashMap::new();
    for (place, packet) in record.packets.iter().enumerate() {
        for piece in &packet.pieces {
            streams.entry(piece.stream).or_default().push((place, *piece));
        }
    }
    streams
}

/// The packets that have to be mended so that a message is complete at its deadline; `None` if not all of it
/// was sent.
fn missing(
    record: &Transmissions,
    pieces: &[(usize, ZooPiece)],
    size: u64,
    deadline: Duration,
) -> Option<Vec<usize>> {
    let arrives = |place: usize| {
        let arrived = record.packets.get(place).and_then(|packet| packet.arrived);
        arrived.is_some_and(|at| at <= deadline)
    };
    let mut there: Vec<(u64, u64)> = pieces
        .iter()
        .filter(|(place, _)| arrives(*place))
        .map(|(_, piece)| (piece.offset, piece.offset + piece.bytes))
        .collect();
    there.sort_unstable();
    let mut packets = Vec::new();
    let mut sent = 0;
    for (place, piece) in pieces {
        let end = piece.offset + piece.bytes;
        if end <= sent {
            continue;
        }
        let new = (piece.offset.max(sent), end);
        sent = end;
        if !arrives(*place) && !is_covered(&there, new) && packets.last() != Some(place) {
            packets.push(*place);
        }
    }
    (sent > size).then_some(packets)
}

/// Whether these ranges, in ascending order, cover all bytes from `start` to `end`.
fn is_covered(ranges: &[(u64, u64)], (start, end): (u64, u64)) -> bool {
    let mut until = start;
    for range in ranges {
        if range.0 <= until {
            until = until.max(range.1);
        }
    }
    until >= end
}

/// The repair symbols that arrived.
struct Repairs {
    /// When each did, ascending, and how many packets were sent before any of those so far.
    arrivals: Vec<(Duration, usize)>,
}

impl Repairs {
    fn of(record: &Transmissions) -> Self {
        let mut arrivals = Vec::new();
        for (place, packet) in record.packets.iter().enumerate() {
            if let Some(at) = packet.arrived {
                arrivals.extend((0..packet.repairs).map(|_| (at, place)));
            }
        }
        arrivals.sort_unstable();
        // Repair symbols that overtake each other count as if each covered as much as those before it: that
        // favours the ideal.
        let mut most = 0;
        for (_, place) in &mut arrivals {
            most = most.max(*place);
            *place = most;
        }
        Self { arrivals }
    }

    /// Whether each of these packets can have a repair symbol that was sent later and arrives by the packet's
    /// deadline: the packet with the earliest deadline goes first.
    fn suffice_for(&self, packets: &BTreeMap<usize, Duration>) -> bool {
        let mut waiting = BinaryHeap::new();
        let mut packets = packets.iter().peekable();
        // Those before the first packet are of no use.
        let first = packets.peek().map_or(0, |(place, _)| **place);
        let from = self.arrivals.partition_point(|(_, place)| *place <= first);
        for (at, covered) in self.arrivals.get(from..).unwrap_or_default() {
            while let Some((_, deadline)) = packets.next_if(|(place, _)| *place < covered) {
                waiting.push(Reverse(*deadline));
            }
            match waiting.pop() {
                Some(Reverse(deadline)) if deadline < *at => return false,
                Some(_) => {}
                None if packets.peek().is_none() => return true,
                None => {}
            }
        }
        waiting.is_empty() && packets.peek().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::super::packets::{Head, Packet};
    use super::*;

    const LIMIT: Duration = Duration::from_millis(50);

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A record of packets: `d3` is data of message 3 and `r` a repair symbol, and `!` says that it is lost.
    /// One is sent every 10 ms, with a new message in each and a second half of it in any later `d` of the
    /// same number, and takes 20 ms.
    fn record(text: &str) -> Transmissions {
        let mut record = Transmissions::default();
        for (n, word) in (0..).zip(text.split_whitespace()) {
            let (word, lost) = word.strip_suffix('!').map_or((word, false), |word| (word, true));
            let mut packet =
                Packet { arrived: (!lost).then(|| at(10 * n + 20)), ..Packet::default() };
            match word.strip_prefix('d') {
                Some(number) => {
                    let number: u64 = number.parse().unwrap();
                    let again = record.heads.contains_key(&number);
                    record.heads.entry(number).or_insert(Head { number, made: at(10 * n) });
                    let offset = if again { 100 } else { 0 };
                    packet.pieces.push(ZooPiece { stream: number, offset, bytes: 100 });
                }
                None => packet.repairs = 1,
            }
            record.packets.push(packet);
        }
        record
    }

    /// Which messages of `sent` bytes, the last of which stands for the end, are in time.
    fn which(text: &str, sent: u64) -> Vec<u64> {
        let mut in_time = in_time(&record(text), sent - 1, LIMIT);
        in_time.sort_unstable();
        in_time
    }

    #[test]
    fn a_repair_symbol_mends_one_packet_sent_before_it() {
        assert_eq!(which("d1 d2! r d3", 100), [1, 2, 3]);
        assert_eq!(which("d1 r d2! d3", 100), [1, 3]);
        assert_eq!(which("d1 d2! d3! r", 100), [1, 2]);
        assert_eq!(which("d1 d2! d3! r r!", 100), [1, 2]);
        assert_eq!(which("d1! d2! r r", 100), [1, 2]);
    }

    #[test]
    fn a_repair_symbol_that_comes_too_late_is_left_to_others() {
        // The first message is made at 0 ms and late after 50; the repair symbols arrive at 60 and 70.
        assert_eq!(which("d1! d2! d3! d4! r r", 100), [2, 3]);
        assert_eq!(which("d1! d2 d3 d4 r", 100), [2, 3, 4]);
    }

    #[test]
    fn a_message_needs_all_its_packets_and_the_fewest_are_mended_first() {
        assert_eq!(which("d1 d1", 200), [1]);
        assert_eq!(which("d1", 200), [0; 0]);
        assert_eq!(which("d1! d1! d2 d2! r", 200), [2]);
        assert_eq!(which("d1! d1! r r", 200), [1]);
        assert_eq!(which("d1! d1! r", 200), [0; 0]);
    }

    #[test]
    fn data_that_is_sent_again_needs_no_repair_symbol() {
        let mut record = record("d1! d2");
        let again = Packet {
            arrived: Some(at(50)),
            pieces: vec![ZooPiece { stream: 1, offset: 0, bytes: 100 }],
            repairs: 0,
        };
        record.packets.push(again);
        assert_eq!(in_time(&record, 99, LIMIT).len(), 2);
        record.packets[2].arrived = Some(at(51));
        assert_eq!(in_time(&record, 99, LIMIT), [2]);
    }
}
