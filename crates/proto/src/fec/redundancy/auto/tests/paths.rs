//! What the path says beside its present losses: changes, room, lateness, other data.

use super::*;

#[test]
fn losses_that_are_expected_count_until_they_can_be_ruled_out() {
    let auto = Auto::new(1.0).unwrap().expecting(0.02).unwrap();
    let floor = |high, rate, excess| {
        LossFloor::default().with_known(1_000).with_high(high).with_rate(rate).with_excess(excess)
    };
    let sleeps = |floor| auto.sleeps(&PathView { floor, ..path() }, Terms::STREAM);
    assert_eq!(sleeps(floor(1.0, 0.0, 0.0)), None);
    // The first losses may have come while a queue was growing.
    assert_eq!(sleeps(floor(0.1, 0.0, 0.05)), None);
    // Bursts queue behind themselves: losses with a queue count, up to the expected share.
    assert_eq!(sleeps(floor(0.015, 0.0, 0.05)), None);
    assert_eq!(sleeps(floor(0.015, 0.0, 0.05).with_crowded(true)), Some(Reason::Congestion));
    let known = |rate, excess| auto.with_expected(floor(0.1, rate, excess)).rate;
    let cases =
        [(0.001, 0.01, 0.011), (0.001, 0.05, 0.02), (0.03, 0.05, 0.03), (0.001, 0.0, 0.001)];
    for (rate, excess, counts) in cases {
        assert!((known(rate, excess) - counts).abs() < 1e-9, "{rate} {excess}");
    }
    assert_eq!(sleeps(floor(0.005, 0.0, 0.0)), Some(Reason::Lossless));
    let unknown = PathView { floor: floor(1.0, 0.0, 0.0), ..path() };
    let mut driver = Driver::new(auto, unknown);
    driver.piece(1, 0);
    assert_eq!(driver.run(RTT).len(), 1);
    assert_eq!(auto.parameters(), "budget=1, expect=0.02");
    assert!(auto.expecting(0.6).is_none());
}

#[test]
fn while_other_data_waits_repair_symbols_must_be_worth_more() {
    let rare = PathView { floor: path().floor.with_rate(0.008), ..path() };
    let count = |idle| {
        let mut driver = warm(Auto::new(1.0).unwrap(), rare);
        driver.view.idle = idle;
        driver.view.path.window = 12_000;
        driver.piece(5, 0);
        driver.run(RTT).len()
    };
    assert!(count(true) > 0);
    assert_eq!(count(false), 0);
}

#[test]
fn a_new_path_is_protected_where_much_is_sent_until_it_has_lost_nothing() {
    let new = |known| PathView { floor: LossFloor::default().with_known(known), ..path() };
    let repairs = |known, symbols| {
        let mut driver = Driver::new(Auto::default(), new(known));
        driver.piece(symbols, 0);
        driver.run(RTT).len()
    };
    assert_eq!(repairs(0, 84), 4);
    assert!((1..4).contains(&repairs(50, 84)));
    assert_eq!(repairs(200, 84), 0);
    assert_eq!(repairs(0, 2), 0, "little is lost of little data");
    let sleeps = |path: &PathView, terms| Auto::default().sleeps(path, terms);
    let long = Terms::STREAM.of_stream(100_000);
    assert_eq!(sleeps(&new(0), long), None);
    assert_eq!(sleeps(&new(200), long), Some(Reason::Unknown));
    assert_eq!(sleeps(&new(0), Terms::STREAM), Some(Reason::Unknown), "it joins no session");
    assert_eq!(sleeps(&new(0), Terms::DATAGRAM), Some(Reason::Unknown));
    let policy = Auto::default().build();
    let view = View { path: new(0), left: 100_000, ..View::default() };
    assert!(policy.protects(&view));
    assert!(!policy.protects(&View { left: 5_000, ..view }), "small data shares packets");
}

#[test]
fn losses_that_come_and_go_are_reckoned_with_while_there_are_none() {
    let clear = LossFloor::default().with_known(1_000).with_high(0.001);
    let repairs = |floor: LossFloor| {
        let mut driver = warm(Auto::default(), PathView { floor, ..path() });
        driver.piece(5, 0);
        driver.run(RTT).len()
    };
    assert_eq!(repairs(clear), 0);
    let other = |secs| {
        let length = Duration::from_secs(secs);
        clear.with_other(Some(Regime::new(0.1, 1.0, length)))
    };
    assert!(repairs(other(1)) >= 1);
    assert_eq!(repairs(other(100)), 0, "it is unlikely to change within a round trip");
    assert_eq!(repairs(other(1).with_crowded(true)), 0);
}

#[test]
fn no_more_is_sent_than_the_path_has_room_for() {
    let repairs = |floor: LossFloor| {
        let mut driver = warm(Auto::default(), PathView { floor, ..path() });
        let pieces = (0..20).map(|_| {
            driver.piece(20, 0);
            let sent = driver.run(RTT).len();
            driver.arrives();
            sent
        });
        pieces.sum::<usize>()
    };
    let lossy = path().floor;
    let [all, some, few] = [f64::INFINITY, 0.1, 0.01].map(|room| repairs(lossy.with_room(room)));
    // Of 400 packets, besides the four that may be saved.
    assert!(all > 40 && (20..=44).contains(&some) && few <= 6, "{all} {some} {few}");
    let withheld = lossy.with_withheld(true);
    assert_eq!(repairs(withheld), 0);
    let view = PathView { floor: withheld, ..path() };
    assert_eq!(Auto::default().sleeps(&view, Terms::STREAM), Some(Reason::Experiment));
}

#[test]
fn nothing_is_sent_while_acknowledgements_are_overdue_unless_little_is_in_flight() {
    // A quarter of the window of 100,000 bytes, and a byte more.
    let (little, much) = (25_000, 25_001);
    let path = |silent, in_flight| PathView { silent, in_flight, ..path() };
    let sleeps = |auto: Auto, path: PathView| auto.sleeps(&path, Terms::STREAM);
    assert_eq!(sleeps(Auto::default(), path(false, much)), None);
    assert_eq!(sleeps(Auto::default(), path(true, little)), None);
    assert_eq!(sleeps(Auto::default(), path(true, much)), Some(Reason::Silent));
    let deaf = Auto { without: Some(Aspect::Silence), ..Auto::default() };
    assert_eq!(sleeps(deaf, path(true, much)), None);
    let repairs = |in_flight| {
        let mut driver = warm(Auto::default(), path(false, in_flight));
        driver.view.path = path(true, in_flight);
        driver.piece(5, 0);
        (driver.run(RTT).len(), driver.reason())
    };
    assert_eq!(repairs(much), (0, Reason::Silent));
    assert!(repairs(little).0 > 0, "{:?}", repairs(little));
}

#[test]
fn packets_that_are_late_count_as_lost_where_they_are_too_late() {
    let floor = LossFloor::default()
        .with_known(1_000)
        .with_high(0.001)
        .with_late(0.05)
        .with_late_by(20 * MS);
    let path = PathView { floor, ..path() };
    let repairs = |auto| {
        let mut driver = warm(auto, path);
        driver.piece(5, 0);
        driver.run(RTT).len()
    };
    assert!(repairs(Auto::default()) >= 1);
    assert_eq!(repairs(Auto { without: Some(Aspect::Lateness), ..Auto::default() }), 0);
    // Half a round trip and 20 ms are 70 ms.
    let within = |ms: u32| Auto::default().within(ms * MS, 0.999).unwrap();
    assert!(repairs(within(69)) >= 1);
    assert_eq!(repairs(within(70)), 0);
}

#[test]
fn where_pieces_overlap_and_fill_the_window_repair_symbols_must_be_worth_more() {
    let repairs = |auto, window, other, rate| {
        let floor = path().floor.with_rate(rate).with_low(rate).with_high(rate);
        let path = PathView { window, in_flight: 20_000, floor, ..path() };
        let mut driver = warm(auto, path);
        driver.view.unacked = other;
        driver.piece(5, 0);
        (driver.run(RTT).len(), driver.reason())
    };
    let usual = Auto::default();
    // Room for a quarter more is room for what the budget allows.
    assert!(repairs(usual, 25_000, 5, 0.02).0 > 0);
    // A packet takes a twentieth of a round trip, and a retransmission half of one later.
    assert_eq!(repairs(usual, 24_000, 5, 0.02), (0, Reason::Window));
    assert!(repairs(usual, 24_000, 5, 0.15).0 > 0, "more is lost than would wait");
    assert!(repairs(usual, 24_000, 0, 0.02).0 > 0, "a single piece");
    assert!(repairs(Auto { without: Some(Aspect::Window), ..usual }, 24_000, 5, 0.02).0 > 0);
}

#[test]
fn where_packets_wait_for_others_repair_symbols_must_be_worth_more() {
    let repairs = |auto, held, queued, rate| {
        let floor = path().floor.with_rate(rate).with_low(rate).with_high(rate);
        let floor = floor.with_queued(queued);
        let path = PathView { window: 24_000, held, floor, ..path() };
        let mut driver = warm(auto, path);
        driver.piece(5, 0);
        (driver.run(RTT).len(), driver.reason())
    };
    let usual = Auto::default();
    assert!(repairs(usual, 0.0, 0.0, 0.02).0 > 0);
    assert!(repairs(usual, 0.25, 0.0, 0.02).0 > 0, "they wait in a quarter of the cases");
    for (held, queued) in [(1.0, 0.0), (0.0, 1.0)] {
        assert_eq!(repairs(usual, held, queued, 0.02), (0, Reason::Waiting));
        assert!(repairs(usual, held, queued, 0.15).0 > 0, "more is lost than would wait");
        let without = Auto { without: Some(Aspect::Waiting), ..usual };
        assert!(repairs(without, held, queued, 0.02).0 > 0);
    }
}

#[test]
fn only_the_last_packets_are_protected_where_they_alone_are_mended_late() {
    let last = |rtt, pto, pause| {
        let floor = path().floor.with_burst(1.0).with_burst_time(Duration::ZERO);
        let mut driver = warm(Auto::default(), PathView { rtt, pto, floor, ..path() });
        for _ in 0..50 {
            driver.piece(40, 0);
            driver.run(pause);
            driver.arrives();
        }
        let sent = driver.sent;
        driver.piece(40, 0);
        driver.run(pause);
        (driver.sent - sent, driver.reason())
    };
    assert!(last(RTT, 130 * MS, 40 * MS).0 > 1);
    assert_eq!(last(4 * MS, 30 * MS, 40 * MS).0, 1);
    // The next piece shows the loss.
    assert_eq!(last(4 * MS, 30 * MS, 3 * MS), (0, Reason::RetransmissionIsEnough));
}

#[test]
fn repair_symbols_do_not_wait_where_the_number_of_packets_ends_bursts() {
    let first = |auto, by_number| {
        let floor = path().floor.with_burst_time(8 * MS).with_by_number(by_number);
        let mut driver = warm(auto, PathView { floor, ..path() });
        driver.piece(5, 0);
        driver.run(RTT)[0]
    };
    let auto = Auto::new(1.0).unwrap();
    assert_eq!(first(auto, false), 8 * MS);
    assert_eq!(first(auto, true), FLUSH_LINGER);
    assert_eq!(first(Auto { without: Some(Aspect::Number), ..auto }, true), 8 * MS);
}
