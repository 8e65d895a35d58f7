//! Which messages the policy that sets itself protects, by their deadlines.

use super::*;
use crate::FecStats;
use crate::policy::Auto;

/// The time that a message has if a retransmission would come too late.
const HURRIED: Duration = Duration::from_millis(120);
/// The time that a message has if it is there in time even if it is lost.
const PATIENT: Duration = Duration::from_secs(2);
/// The bytes of two packets and some of a third.
const SIZE: usize = 3_000;
const PACKETS: u64 = 3;

/// Takes 5 % of packets to be lost from the start.
fn auto() -> Auto {
    Auto::new(1.0).and_then(|auto| auto.expecting(0.05)).unwrap()
}

/// Sends a message for each of the times at once. Returns the counts of symbols that were sent by the time at
/// which the first message of [`HURRIED`] must leave.
fn send(auto: Auto, times: &[Option<Duration>]) -> FecStats {
    let mut pair = Pair::with_server(|server| {
        server.redundancy = Some(Arc::new(auto));
        server.scheduler = Arc::new(Scheme::DEADLINE);
    });
    for time in times {
        let deadline = time.map(|time| pair.now + time);
        let options = MessageOptions { deadline, ..MessageOptions::default() };
        pair.server.conn().send_message(Bytes::from(pattern(SIZE)), options).unwrap();
    }
    pair.run_for(HURRIED - 50 * MS);
    pair.server.stats().fec
}

#[test]
fn a_message_in_a_hurry_is_protected_although_the_target_is_not() {
    let patient = auto().within(PATIENT, 0.999).unwrap();
    let sent = send(patient, &[Some(HURRIED)]);
    assert_eq!(sent.source_symbols_sent, PACKETS);
    assert!(sent.repair_symbols_sent > 0);
    assert_eq!(send(patient, &[None]).source_symbols_sent, 0);
}

#[test]
fn a_message_that_has_time_for_a_retransmission_is_not_even_marked() {
    assert_eq!(send(auto(), &[Some(PATIENT)]).source_symbols_sent, 0);
    assert_eq!(send(auto(), &[None]).source_symbols_sent, PACKETS, "nobody said that it has time");
}

#[test]
fn a_patient_message_behind_one_in_a_hurry_does_not_keep_repair_symbols_waiting() {
    let sent = send(auto(), &[Some(HURRIED), Some(PATIENT)]);
    assert_eq!(sent.source_symbols_sent, PACKETS);
    assert!(sent.repair_symbols_sent > 0, "{sent:?}");
    let patient = auto().within(PATIENT, 0.999).unwrap();
    let sent = send(patient, &[None, Some(HURRIED), None]);
    assert_eq!(sent.source_symbols_sent, PACKETS);
    assert!(sent.repair_symbols_sent > 0, "{sent:?}");
}
