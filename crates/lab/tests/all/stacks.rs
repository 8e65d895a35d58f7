//! The statements of Marx 2020, section 2 about stacks and retransmission approaches, on short files.

use std::sync::Arc;

use sutura_analysis::statistics::{quantile, sorted};
use sutura_analysis::{Arrival, Class};
use sutura_lab::experiments::marx_stacks::{FileLoss, FileTrace, Files, download, server, stack};
use sutura_link::LinkConfig;
use sutura_proto::TransportConfig;
use sutura_research::marx::{fifo, rr};
use sutura_research::stacks::{Preset, resend_order};
use sutura_schedule::Scheme;

const FILES: Files = Files { count: 10, bytes: 200_000 };

fn lossless(name: &str, files: Files) -> FileTrace {
    let (up, down) = FileLoss::Lossless.links().unwrap();
    let server = stack(Preset::by_name(name).unwrap());
    let trace = download(&server, files, (&up, &down), 1).unwrap();
    assert!(trace.received.arrivals.iter().all(|arrival| arrival.class == Class::New));
    assert_eq!(trace.blocking.received, files.count as u64 * files.bytes);
    assert_eq!((trace.blocking.ratio(), trace.blocking.tcp.bytes), (None, 0));
    trace
}

/// Frames of one stream in a row: the stream, and how many.
fn runs(trace: &FileTrace) -> Vec<(u64, usize)> {
    trace.received.runs().collect()
}

/// The files in the order of runs, counted from 0.
fn order(trace: &FileTrace) -> Vec<u64> {
    trace.received.runs().map(|(stream, _)| stream / 4).collect()
}

#[test]
fn round_robin_interleaves_every_packet() {
    for name in ["aioquic", "quiche", "quicly", "ngtcp2", "mvfst"] {
        let trace = lossless(name, FILES);
        let runs = runs(&trace);
        // The last packets of files may meet, and where streams are mixed they do.
        let turns = &runs[..runs.len() - 20];
        let expected = (0..).map(|n| (n % 10 * 4, 1)).take(turns.len());
        assert!(turns.iter().copied().eq(expected), "{name}: {turns:?}");
    }
}

#[test]
fn sequential_stacks_send_one_file_after_the_other() {
    for name in ["ats", "picoquic"] {
        assert_eq!(order(&lossless(name, FILES)), [9, 8, 7, 6, 5, 4, 3, 2, 1, 0], "{name}");
    }
    assert_eq!(order(&lossless("picoquic-alt", FILES)), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn blocks_are_as_long_as_they_are_told_to_be() {
    for (name, length) in [("msquic", 4), ("google", 14)] {
        let trace = lossless(name, FILES);
        let runs = runs(&trace);
        // The last turn of each file is the rest of the file.
        let (turns, rest) = runs.split_at(runs.len() - 10);
        assert!(turns.iter().all(|(_, n)| *n == length), "{name}: {runs:?}");
        assert!(rest.iter().all(|(_, n)| *n <= length), "{name}: {runs:?}");
        assert!(order(&trace)[..10].iter().copied().eq(0..10), "{name}");
    }
}

#[test]
fn turns_of_a_congestion_window_get_longer() {
    let runs = runs(&lossless("lsquic", Files { bytes: 1_000_000, ..FILES }));
    assert!((9..30).contains(&runs[0].1), "{runs:?}");
    let longest = runs.iter().map(|(_, length)| *length).max().unwrap();
    assert!(longest > 4 * runs[0].1, "{runs:?}");
}

#[test]
fn small_stream_windows_stop_streams_for_a_while() {
    // Windows of 256 KiB: a sequential server has to go on with another file.
    let stack = stack(Preset::by_name("picoquic-alt").unwrap());
    let server = stack.with_stream_receive_window(256 << 10);
    let (up, down) = FileLoss::Lossless.links().unwrap();
    let files = Files { count: 3, bytes: 1_000_000 };
    let trace = download(&server, files, (&up, &down), 1).unwrap();
    assert!(trace.received.switches() > 2, "{:?}", runs(&trace));
}

/// Loses the datagrams with these numbers on the way to the client, and all acknowledgements for a while, so
/// that the server learns of all losses at once.
fn lossy(server: &TransportConfig, files: Files, lost: &[usize]) -> FileTrace {
    let mut digits = vec![b'0'; 4000];
    for number in lost {
        digits[*number] = b'1';
    }
    let digits = String::from_utf8(digits).unwrap();
    let up: LinkConfig = "delay=20ms outage=150ms..195ms".parse().unwrap();
    let down = format!("rate=10mbit delay=20ms queue=10mb loss=trace:{digits}").parse().unwrap();
    download(server, files, (&up, &down), 1).unwrap()
}

/// Packets of a download whose numbers are missing.
fn missing(trace: &FileTrace) -> Vec<u64> {
    let numbers: Vec<u64> =
        trace.received.arrivals.iter().filter_map(|arrival| arrival.packet).collect();
    (numbers[0]..*numbers.last().unwrap()).filter(|n| !numbers.contains(n)).collect()
}

/// The files that arrive, by letters, from the first retransmission on; retransmissions in lower case.
fn from_first_retransmission(trace: &FileTrace) -> String {
    let arrivals = &trace.received.arrivals;
    let again = |arrival: &Arrival| arrival.class == Class::Retransmitted;
    let begin = arrivals.iter().position(again).unwrap();
    let letter = |arrival: &Arrival| {
        let first = if again(arrival) { b'a' } else { b'A' };
        char::from(first + (arrival.frame.stream / 4) as u8)
    };
    arrivals[begin..].iter().map(letter).collect()
}

/// A download that loses four packets: two of A and two of B in neighbouring turns, or two of the last
/// packets of A and the first two of B.
fn retransmissions(scheme: Scheme, number: u8) -> String {
    let sequential = scheme == fifo::SCHEME;
    let server = &server()
        .with_scheduler(Arc::new(scheme))
        .with_resend_order(resend_order(number, sequential));
    let bytes = if sequential { 60_000 } else { 150_000 };
    let files = Files { count: 4, bytes };
    // The loss of one packet shows where the packets are among the datagrams.
    let probe = 40;
    let before = missing(&lossy(server, files, &[probe]));
    let offset = probe - usize::try_from(before[0]).unwrap();
    let reference = lossy(server, files, &[]);
    let arrivals = &reference.received.arrivals;
    let number_of =
        |index: usize| offset + usize::try_from(arrivals[index].packet.unwrap()).unwrap();
    let file = |index: usize| arrivals[index].frame.stream / 4;
    let lost: Vec<usize> = if sequential {
        let border = (0..).find(|index| file(*index) == 1).unwrap();
        // The last packet of file A arrives, so that the gap before it is seen.
        [border - 3, border - 2, border, border + 1].map(number_of).to_vec()
    } else {
        let two_of = |wanted| (40..).filter(move |index| file(*index) == wanted).take(2);
        two_of(0).chain(two_of(1)).map(number_of).collect()
    };
    let trace = lossy(server, files, &lost);
    assert!(trace.blocking.gaps >= 2);
    from_first_retransmission(&trace)
}

#[test]
fn lost_data_goes_as_the_approach_says() {
    // Approach 1: in turn with everybody's new data, once in each turn of four.
    let text = retransmissions(rr::SCHEME, 1);
    for turn in [&text[..4], &text[4..8]] {
        let mut turn: Vec<char> = turn.chars().collect();
        turn.sort_unstable();
        assert_eq!(turn, ['C', 'D', 'a', 'b'], "{text}");
    }
    // Approach 2: first, in the usual order; approach 3: first, in another order. Then all go on in turns.
    let text = retransmissions(rr::SCHEME, 2);
    assert!(text.starts_with("abab") || text.starts_with("baba"), "{text}");
    // Data that does not fit any more into its packet, behind an acknowledgement, takes another packet.
    let one_after_the_other = |text: &str| {
        let again: Vec<char> = text.chars().take_while(char::is_ascii_lowercase).collect();
        assert!(again.len() >= 4 && again.is_sorted(), "{text}");
        assert!(again.starts_with(&['a', 'a']) && again.ends_with(&['b', 'b']), "{text}");
    };
    one_after_the_other(&retransmissions(rr::SCHEME, 3));
    one_after_the_other(&retransmissions(fifo::SCHEME, 2));
    let text = retransmissions(fifo::SCHEME, 3);
    assert!(text.starts_with("abab"), "{text}");
}

#[test]
fn a_gap_is_filled_and_both_transports_hand_over_everything() {
    for preset in Preset::ALL {
        let (up, down) = FileLoss::Bursts.links().unwrap();
        let trace = download(&stack(preset), FILES, (&up, &down), 5).unwrap();
        let blocking = &trace.blocking;
        assert_eq!(blocking.received, 2_000_000, "{}", preset.name);
        assert_eq!((blocking.quic.left, blocking.tcp.left), (0, 0), "{}", preset.name);
        assert!(blocking.quic.bytes <= blocking.tcp.bytes, "{}", preset.name);
        assert_eq!(trace.completion.len(), 10);
    }
}

/// Section 3.3, Fig. 3: ten files that take turns share a loss, so that the loss holds back 0.1 to 0.3 of the
/// bytes of one sequence. One file after the other, or a congestion window of each, is nearly one sequence.
#[test]
fn turns_suffer_less_from_every_loss_than_one_file_after_the_other() {
    let (up, down) = FileLoss::Random.links().unwrap();
    let ratios = |name| {
        let server = stack(Preset::by_name(name).unwrap());
        let files = Files { bytes: 400_000, ..FILES };
        let trace = |seed| download(&server, files, (&up, &down), seed).unwrap();
        let ratios: Vec<f64> = (1..10).filter_map(|seed| trace(seed).blocking.ratio()).collect();
        assert_eq!(ratios.len(), 9, "{name}: a download without a loss");
        sorted(ratios)
    };
    for turns in ["quicly", "google"].map(ratios) {
        assert!(turns.iter().all(|ratio| *ratio < 0.2), "{turns:?}");
    }
    for sequence in ["picoquic-alt", "lsquic"].map(ratios) {
        assert!(sequence[0] > 0.2 && quantile(&sequence, 0.5) > 0.5, "{sequence:?}");
    }
}
