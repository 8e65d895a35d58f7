//! Synthetic flows. The constants were chosen with the others; those of `flows_that_nothing_was_chosen_by` were made
//! afterwards, and nothing was changed for them.

use std::time::{Duration, Instant};

use sutura_random::Rng;

use super::*;

/// A packet: when, how large, and whether this end sends it.
type Packet = (Duration, usize, bool);

/// A flow that is made up for so many seconds.
struct Made {
    rng: Rng,
    packets: Vec<Packet>,
    length: Duration,
}

const OWN: bool = true;
const OTHER: bool = false;

fn ms(ms: f64) -> Duration {
    Duration::from_secs_f64(ms / 1000.0)
}

impl Made {
    fn new(seed: u64, seconds: u64) -> Self {
        Self { rng: Rng::new(seed), packets: Vec::new(), length: Duration::from_secs(seconds) }
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + self.rng.unit() * (high - low)
    }

    /// Packets at a rate, with jitter, of sizes in a range.
    fn ticks(mut self, way: bool, hertz: f64, jitter: f64, sizes: (f64, f64)) -> Self {
        let mut at = self.between(0.0, 1000.0 / hertz);
        while ms(at) < self.length {
            let (late, size) = (self.between(0.0, jitter), self.between(sizes.0, sizes.1));
            self.packets.push((ms(at + late), size as usize, way));
            at += 1000.0 / hertz;
        }
        self
    }

    /// Events with exponential times between them, each with some packets of a size in a range.
    fn events(mut self, way: bool, per_second: f64, count: usize, sizes: (f64, f64)) -> Self {
        let mut at = 0.0;
        loop {
            at += -(1.0 - self.rng.unit()).ln() * 1000.0 / per_second;
            if ms(at) >= self.length {
                return self;
            }
            for n in 0..count {
                let size = self.between(sizes.0, sizes.1);
                self.packets.push((ms(at + n as f64 * 0.1), size as usize, way));
            }
        }
    }

    /// Frames of a video: packets of at most `full` bytes, the last of each with what is left, or all of equal size.
    fn video(mut self, way: bool, hertz: f64, kilobits: f64, full: usize, equal: bool) -> Self {
        let mut at = 0.0;
        let mean = kilobits * 125.0 / hertz;
        let mut number = 0_u32;
        while ms(at) < self.length {
            let key = if number.is_multiple_of(250) { 5.0 } else { 1.0 };
            let size = (mean * key * self.between(0.4, 1.6)) as usize + 40;
            let count = size.div_ceil(full);
            for n in 0..count {
                let part = if equal { size / count } else { (size - n * full).min(full) };
                self.packets.push((ms(at + n as f64 * 0.08), part, way));
            }
            number += 1;
            at += 1000.0 / hertz + self.between(-1.0, 1.0);
        }
        self
    }

    /// A transfer with acknowledgements the other way: paced packets, `batch` at once.
    fn transfer(mut self, way: bool, kilobits: f64, full: usize, batch: usize, ack: usize) -> Self {
        let apart = full as f64 * batch as f64 / (kilobits * 125.0) * 1000.0;
        let mut at = 0.0;
        while ms(at) < self.length {
            for n in 0..batch {
                let is_other = self.rng.chance(0.02);
                let size = if is_other { self.between(100.0, full as f64) as usize } else { full };
                self.packets.push((ms(at + n as f64 * 0.02), size, way));
            }
            self.packets.push((ms(at + 20.0), ack + self.rng.below(8) as usize, !way));
            at += apart * self.between(0.8, 1.2);
        }
        self
    }

    /// The share of time after `from` in which the flow is of this class, as seen from this end.
    fn share(mut self, class: Class, from: Duration, hint: Option<Class>) -> f64 {
        self.packets.sort_by_key(|packet| packet.0);
        let start = Instant::now();
        let mut recogniser = Recogniser::for_packets(hint);
        let (mut seen, mut right) = (0, 0);
        for (at, size, way) in self.packets {
            let now = start + at;
            let found = match way {
                OWN => recogniser.observe(now, size),
                OTHER => recogniser.observe_other(now, size),
            };
            if at >= from {
                seen += 1;
                right += u32::from(found == class);
            }
        }
        f64::from(right) / f64::from(seen.max(1))
    }
}

/// All but this share of the packets after `from` must be of the class.
fn assert_class(what: &str, made: impl Fn(u64) -> Made, class: Class, from: u64, least: f64) {
    for seed in 1..=5 {
        let share = made(seed).share(class, Duration::from_secs(from), None);
        println!("{what}: {share:.3} {class}");
        assert!(share >= least, "{what}, seed {seed}: {share} {class}");
    }
}

#[test]
fn games_are_real_time_at_every_rate() {
    for hertz in [20.0, 30.0, 60.0, 128.0] {
        let game = |seed| {
            let up = Made::new(seed, 30).ticks(OWN, hertz, 6.0, (60.0, 120.0));
            up.ticks(OTHER, hertz / 2.0, 6.0, (120.0, 400.0))
        };
        assert_class(&format!("game at {hertz} Hz"), game, Class::RealTime, 5, 1.0);
    }
}

#[test]
fn calls_are_real_time_also_after_silence() {
    let call = |seed| {
        Made::new(seed, 20).ticks(OWN, 50.0, 4.0, (160.0, 220.0)).ticks(
            OTHER,
            50.0,
            4.0,
            (160.0, 220.0),
        )
    };
    assert_class("call", call, Class::RealTime, 5, 1.0);
    // Who speaks sends 50 packets a second, and who listens two and a half.
    let turns = |seed| {
        let made = Made::new(seed, 40).ticks(OWN, 50.0, 4.0, (160.0, 220.0));
        let mut made = made.ticks(OTHER, 50.0, 4.0, (160.0, 220.0));
        made.packets.sort_by_key(|packet| packet.0);
        let mut last = [Duration::ZERO; 2];
        made.packets.retain(|(at, _, way)| {
            let is_speech = (at.as_millis() / 4000 % 2 == 0) == *way;
            let last = &mut last[usize::from(*way)];
            let kept = is_speech || *at >= *last + ms(400.0);
            if kept {
                *last = *at;
            }
            kept
        });
        made
    };
    assert_class("call with silences", turns, Class::RealTime, 5, 0.97);
}

#[test]
fn videos_are_real_time_as_their_packets_may_be_cut() {
    for (hertz, kilobits) in [(15.0, 300.0), (30.0, 1500.0), (30.0, 4000.0), (60.0, 8000.0)] {
        for equal in [false, true] {
            let video = |seed| {
                let down = Made::new(seed, 30).video(OWN, hertz, kilobits, 1180, equal);
                down.ticks(OTHER, 10.0, 30.0, (60.0, 120.0))
            };
            let what = format!("video at {hertz} Hz, {kilobits} kbit/s, equal {equal}");
            assert_class(&what, video, Class::RealTime, 5, 0.97);
        }
    }
    let with_sound = |seed| {
        let video = Made::new(seed, 30).video(OWN, 30.0, 1200.0, 1100, true);
        video.ticks(OWN, 50.0, 3.0, (90.0, 140.0)).ticks(OTHER, 50.0, 3.0, (90.0, 140.0))
    };
    assert_class("video with sound", with_sound, Class::RealTime, 5, 0.97);
}

#[test]
fn keystrokes_and_look_ups_are_interactive() {
    for per_second in [1.0, 4.0, 8.0] {
        let keys = |seed| {
            let keys = Made::new(seed, 60).events(OWN, per_second, 1, (76.0, 140.0));
            keys.events(OTHER, per_second, 1, (76.0, 300.0))
        };
        assert_class(&format!("{per_second} keys a second"), keys, Class::Interactive, 0, 1.0);
    }
    let names = |seed| {
        Made::new(seed, 60).events(OWN, 0.5, 6, (40.0, 90.0)).events(OTHER, 0.5, 6, (80.0, 500.0))
    };
    assert_class("look-ups", names, Class::Interactive, 0, 1.0);
    // A page now and then, each of 60 kB.
    let pages = |seed| {
        let down = Made::new(seed, 60).events(OTHER, 0.1, 45, (1252.0, 1252.9));
        down.events(OWN, 0.1, 20, (40.0, 900.0))
    };
    assert_class("pages", pages, Class::Interactive, 0, 0.9);
}

#[test]
fn transfers_are_bulk_at_both_ends() {
    for (kilobits, batch, full) in [
        (500.0, 1, 1252),
        (2000.0, 1, 1452),
        (5000.0, 2, 1252),
        (20_000.0, 10, 1452),
        (100_000.0, 40, 1312),
    ] {
        for way in [OWN, OTHER] {
            let transfer = |seed| Made::new(seed, 15).transfer(way, kilobits, full, batch, 96);
            let what = format!("transfer of {kilobits} kbit/s, own {way}");
            assert_class(&what, transfer, Class::Bulk, 6, 0.97);
        }
    }
}

#[test]
fn a_slow_transfer_is_never_real_time() {
    for way in [OWN, OTHER] {
        for seed in 1..=5 {
            let slow = Made::new(seed, 60).transfer(way, 150.0, 1252, 1, 96);
            let share = slow.share(Class::RealTime, Duration::from_secs(2), None);
            assert!(share < 0.01, "{share}");
        }
    }
}

#[test]
fn a_tunnel_is_what_it_carries_at_the_time() {
    let start = Instant::now();
    let mut recogniser = Recogniser::for_packets(None);
    let mut play = |made: Made, after: u64| {
        let mut packets = made.packets;
        packets.sort_by_key(|packet| packet.0);
        let mut class = Class::Interactive;
        for (at, size, way) in packets {
            let now = start + Duration::from_secs(after) + at;
            class = match way {
                OWN => recogniser.observe(now, size),
                OTHER => recogniser.observe_other(now, size),
            };
        }
        class
    };
    // Padded to 16 bytes, as WireGuard does.
    let keys =
        || Made::new(9, 15).events(OWN, 4.0, 1, (96.0, 160.0)).events(OTHER, 4.0, 1, (96.0, 160.0));
    assert_eq!(play(keys(), 0), Class::Interactive);
    assert_eq!(play(Made::new(9, 10).transfer(OTHER, 30_000.0, 1452, 20, 96), 20), Class::Bulk);
    assert_eq!(play(keys(), 40), Class::Interactive);
    assert_eq!(play(Made::new(9, 10).video(OWN, 30.0, 3000.0, 1420, false), 60), Class::RealTime);
    assert_eq!(play(Made::new(9, 10).transfer(OWN, 60_000.0, 1452, 30, 96), 80), Class::Bulk);
    assert_eq!(play(keys(), 100), Class::Interactive);
}

#[test]
fn a_class_does_not_change_with_each_packet() {
    for seed in 1..=5 {
        let flows = [
            Made::new(seed, 60).transfer(OWN, 2000.0, 1252, 2, 96),
            Made::new(seed, 60).ticks(OWN, 20.0, 20.0, (60.0, 300.0)),
            Made::new(seed, 60).video(OWN, 30.0, 4000.0, 1180, false),
            Made::new(seed, 60).events(OWN, 9.0, 2, (60.0, 300.0)),
        ];
        for mut made in flows {
            made.packets.sort_by_key(|packet| packet.0);
            let start = Instant::now();
            let mut recogniser = Recogniser::for_packets(None);
            let classes: Vec<_> = made
                .packets
                .iter()
                .map(|(at, size, way)| match *way {
                    OWN => recogniser.observe(start + *at, *size),
                    OTHER => recogniser.observe_other(start + *at, *size),
                })
                .collect();
            let changes = classes.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(changes <= 3, "{changes} changes in {} packets", classes.len());
        }
    }
}

#[test]
fn streams_are_bulk_while_there_is_much_of_them() {
    let start = Instant::now();
    let mut stream = Recogniser::for_stream(Some(Class::Interactive));
    let mut now = start;
    for n in 0..600 {
        now = start + Duration::from_millis(50 * n);
        assert_eq!(stream.observe(now, 100), Class::Interactive);
    }
    for n in 0..40 {
        now += Duration::from_millis(1);
        stream.observe(now, 8000 + n);
    }
    assert_eq!(stream.class(), Class::Bulk);
    assert_eq!(stream.observe(now + Duration::from_secs(15), 100), Class::Interactive);
}

#[test]
fn time_that_goes_back_changes_nothing() {
    let start = Instant::now() + Duration::from_secs(100);
    let mut recogniser = Recogniser::for_packets(Some(Class::RealTime));
    for n in 0..1000_u64 {
        let now = start - Duration::from_millis(n * 7 % 50_000);
        recogniser.observe(now, 100);
        assert_eq!(recogniser.observe_other(now, 90), Class::RealTime);
    }
}

#[test]
fn flows_that_nothing_was_chosen_by() {
    for hertz in [25.0, 40.0, 64.0, 100.0] {
        let game = |seed| {
            let up = Made::new(seed + 70, 25).ticks(OTHER, hertz, 10.0, (60.0, 400.0));
            up.ticks(OWN, hertz, 10.0, (80.0, 160.0))
        };
        assert_class(&format!("another game at {hertz} Hz"), game, Class::RealTime, 5, 1.0);
    }
    for apart in [20.0, 40.0, 60.0] {
        let call = |seed| Made::new(seed + 70, 25).ticks(OWN, 1000.0 / apart, 8.0, (60.0, 110.0));
        assert_class(&format!("another call, {apart} ms"), call, Class::RealTime, 5, 0.97);
    }
    for (hertz, kilobits, full) in [(24.0, 700.0, 1200), (25.0, 2500.0, 1400), (50.0, 6000.0, 1250)]
    {
        for equal in [false, true] {
            let video = |seed| Made::new(seed + 70, 25).video(OTHER, hertz, kilobits, full, equal);
            let what = format!("another video at {hertz} Hz, {kilobits} kbit/s, equal {equal}");
            assert_class(&what, video, Class::RealTime, 5, 0.97);
        }
    }
    for (kilobits, full, batch) in [(1200.0, 1350, 1), (12_000.0, 1452, 8), (40_000.0, 1252, 16)] {
        for way in [OWN, OTHER] {
            let transfer =
                |seed| Made::new(seed + 70, 15).transfer(way, kilobits, full, batch, 112);
            let what = format!("another transfer of {kilobits} kbit/s, own {way}");
            assert_class(&what, transfer, Class::Bulk, 6, 0.97);
        }
    }
    let keys = |seed| {
        let keys = Made::new(seed + 70, 90).events(OWN, 6.0, 1, (112.0, 128.0));
        keys.events(OTHER, 6.0, 2, (112.0, 500.0))
    };
    assert_class("keys in a VPN", keys, Class::Interactive, 0, 1.0);
    let names = |seed| {
        Made::new(seed + 70, 90).events(OWN, 2.0, 2, (45.0, 70.0)).events(
            OTHER,
            2.0,
            2,
            (90.0, 512.0),
        )
    };
    assert_class("more look-ups", names, Class::Interactive, 0, 1.0);
}
