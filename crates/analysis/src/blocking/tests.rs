use super::*;
use crate::build::{Build, frame};
use proptest::prelude::*;
use std::collections::BTreeSet;

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn one_lost_packet_of_one_of_two_streams() {
    // Stream 0: 100 | lost 100 | 100     | again 100
    // Stream 4:         100         200  |
    // at        0   -   1   2       3      10          end 12
    //
    // QUIC holds 0:200..300 from 2 on, and releases 200 bytes at once at 10. TCP's sequence is
    // 0:0..100, 4:0..100, [0:100..200, missing], 0:200..300, 4:100..300. It holds 100 bytes at 2
    // and 300 from 3 on, and releases 400 at 10.
    let trace = Build::default()
        .received(0, 0, &[frame(0, 0, 100)])
        .received(1, 2, &[frame(4, 0, 100)])
        .received(2, 3, &[frame(0, 200, 100)])
        .received(3, 4, &[frame(4, 100, 200)])
        .received(10, 5, &[frame(0, 100, 100)])
        .received(12, 6, &[frame(4, 300, 10)])
        .trace();
    let blocking = head_of_line_blocking(&trace, &[]);
    let quic = Held {
        largest_release: 200,
        bytes: 100,
        peak: 100,
        time: ms(8),
        byte_seconds: 100.0 * 0.008,
        left: 0,
    };
    assert_eq!(blocking.quic, quic);
    assert_eq!(blocking.streams, BTreeMap::from([(0, quic)]));
    let tcp = &blocking.tcp;
    assert_eq!((tcp.largest_release, tcp.bytes, tcp.peak, tcp.left), (400, 300, 300, 0));
    assert_eq!(tcp.time, ms(8));
    // 100 bytes for 8 ms and 200 bytes for 7 ms.
    assert!((tcp.byte_seconds - 2.2).abs() < 1e-9);
    assert_eq!(blocking.ratio(), Some(0.5));
    assert_eq!((blocking.received, blocking.gaps), (610, 1));
    let history = [(ms(2), 100, 100), (ms(3), 100, 300), (ms(10), 0, 0)];
    assert_eq!(blocking.history, history);
    // 0.8 byte seconds and 2.2 byte seconds over 610 bytes.
    assert_eq!(blocking.mean_delays().map(|d| d.as_micros()), [1311, 3606]);
}

#[test]
fn without_a_gap_there_is_no_ratio() {
    let trace = Build::default()
        .received(0, 0, &[frame(0, 0, 100), frame(4, 0, 50)])
        .received(1, 1, &[frame(0, 100, 100), frame(0, 0, 100)])
        .trace();
    let blocking = head_of_line_blocking(&trace, &[]);
    assert_eq!((blocking.ratio(), blocking.gaps), (None, 0));
    assert_eq!(blocking.quic, Held { largest_release: 100, ..Held::default() });
    assert!(blocking.history.is_empty() && blocking.streams.is_empty());
    assert_eq!(head_of_line_blocking(&Trace::default(), &[]), Blocking::default());
}

#[test]
fn recovered_data_ends_the_wait() {
    let trace = Build::default()
        .received(0, 1, &[frame(0, 10, 10)])
        .recovered(3, &[frame(0, 0, 10)])
        .received(9, 5, &[frame(0, 0, 10)])
        .trace();
    let blocking = head_of_line_blocking(&trace, &[]);
    assert_eq!((blocking.quic.time, blocking.quic.left), (ms(3), 0));
}

#[test]
fn what_never_comes_blocks_to_the_end() {
    let trace = Build::default()
        .received(0, 1, &[frame(0, 10, 10)])
        .received(7, 2, &[frame(4, 0, 5)])
        .trace();
    let blocking = head_of_line_blocking(&trace, &[]);
    assert_eq!((blocking.quic.left, blocking.tcp.left), (10, 15));
    assert_eq!(blocking.quic.time, ms(7));
}

#[test]
fn the_order_of_sending_shows_what_the_receiver_cannot_see() {
    // Packets 0 to 3 carry four streams, a stream each; packet 1 is lost and sent again. No stream has a gap,
    // but TCP waits for packet 1: 20 bytes at 2 and 3, released with it at 9.
    let trace = Build::default()
        .received(0, 0, &[frame(0, 0, 10)])
        .received(2, 2, &[frame(8, 0, 10)])
        .received(3, 3, &[frame(12, 0, 10)])
        .received(9, 4, &[frame(4, 0, 10)])
        .trace();
    assert_eq!(head_of_line_blocking(&trace, &[]).ratio(), None);
    let sender = Build::default()
        .sent(0, 0, &[frame(0, 0, 10)])
        .sent(0, 1, &[frame(4, 0, 10)])
        .sent(0, 2, &[frame(8, 0, 10)])
        .sent(0, 3, &[frame(12, 0, 10)])
        .sent(8, 4, &[frame(4, 0, 10)])
        .trace();
    let order = sent_frames(&sender);
    assert_eq!(order.iter().map(|f| f.stream).collect::<Vec<_>>(), [0, 4, 8, 12]);
    let blocking = head_of_line_blocking(&trace, &order);
    assert_eq!((blocking.quic.bytes, blocking.quic.largest_release), (0, 10));
    assert_eq!((blocking.tcp.bytes, blocking.tcp.largest_release), (20, 30));
    assert_eq!((blocking.tcp.time, blocking.gaps), (ms(7), 0));
    assert_eq!(blocking.ratio(), Some(1.0 / 3.0));
}

/// A byte-by-byte reference model: QUIC and TCP as plain lists of bytes.
#[derive(Default)]
struct Naive {
    /// Stream and offset of each byte of the TCP sequence.
    sequence: Vec<(u64, u64)>,
    there: BTreeSet<(u64, u64)>,
    quic: Counts,
    tcp: Counts,
}

#[derive(Default, Debug, PartialEq)]
struct Counts {
    given: BTreeSet<(u64, u64)>,
    largest: u64,
    held: u64,
    peak: u64,
    byte_millis: u64,
    millis: u64,
}

impl Counts {
    fn give(&mut self, bytes: impl Iterator<Item = (u64, u64)>, new: &[(u64, u64)], there: usize) {
        let before = self.given.len();
        self.given.extend(bytes);
        self.largest = self.largest.max((self.given.len() - before) as u64);
        self.held += new.iter().filter(|b| !self.given.contains(b)).count() as u64;
        self.peak = self.peak.max((there - self.given.len()) as u64);
    }

    fn pass(&mut self, millis: u64, there: usize) {
        let waiting = (there - self.given.len()) as u64;
        self.byte_millis += waiting * millis;
        self.millis += if waiting > 0 { millis } else { 0 };
    }

    fn check(&self, held: &Held) {
        assert_eq!(self.largest, held.largest_release);
        assert_eq!((self.held, self.peak), (held.bytes, held.peak));
        assert_eq!(ms(self.millis), held.time);
        assert!((self.byte_millis as f64 / 1e3 - held.byte_seconds).abs() < 1e-6);
    }
}

impl Naive {
    fn place(&mut self, frame: &StreamFrame) {
        let known = self.sequence.iter().filter(|(s, _)| *s == frame.stream).count() as u64;
        self.sequence.extend((known..frame.end()).map(|offset| (frame.stream, offset)));
    }

    fn receive(&mut self, frame: &StreamFrame) {
        self.place(frame);
        let bytes = (frame.offset..frame.end()).map(|offset| (frame.stream, offset));
        let new: Vec<_> = bytes.filter(|b| self.there.insert(*b)).collect();
        let there = &self.there;
        let in_order = (0..).take_while(|o| there.contains(&(frame.stream, *o)));
        self.quic.give(in_order.map(|o| (frame.stream, o)), &new, there.len());
        let in_order = self.sequence.iter().take_while(|b| there.contains(b));
        self.tcp.give(in_order.copied(), &new, there.len());
    }
}

proptest! {
    #[test]
    fn it_agrees_with_the_naive_model(
        frames in prop::collection::vec((0u64..3, 0u64..60, 1u64..20, 0u64..4), 1..40),
        sent in prop::collection::vec((0u64..3, 0u64..60, 1u64..20), 0..12),
    ) {
        let mut naive = Naive::default();
        let order: Vec<_> = sent.into_iter().map(|(s, o, l)| frame(s * 4, o, l)).collect();
        order.iter().for_each(|frame| naive.place(frame));
        let mut build = Build::default();
        let mut now = 0;
        for (number, (stream, offset, length, gap)) in frames.into_iter().enumerate() {
            let frame = frame(stream * 4, offset, length);
            naive.quic.pass(gap, naive.there.len());
            naive.tcp.pass(gap, naive.there.len());
            now += gap;
            naive.receive(&frame);
            build = build.received(now, number as u64, &[frame]);
        }
        let blocking = head_of_line_blocking(&build.trace(), &order);
        naive.quic.check(&blocking.quic);
        naive.tcp.check(&blocking.tcp);
        let there = naive.there.len();
        prop_assert_eq!(blocking.received, there as u64);
        prop_assert_eq!(blocking.quic.left, (there - naive.quic.given.len()) as u64);
        prop_assert_eq!(blocking.tcp.left, (there - naive.tcp.given.len()) as u64);
        // TCP never releases a byte earlier than QUIC.
        prop_assert!(naive.tcp.given.is_subset(&naive.quic.given));
        prop_assert!(blocking.tcp.byte_seconds >= blocking.quic.byte_seconds - 1e-9);
        let held: u64 = blocking.streams.values().map(|held| held.bytes).sum();
        prop_assert_eq!(held, blocking.quic.bytes);
    }
}
