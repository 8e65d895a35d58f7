use proptest::prelude::*;
use sutura_proto::TransportConfig;
use sutura_schedule::{
    Extension, Grant, Priority, Scheduler, SchedulerFactory, StreamKey, Urgency, conformance,
};

use super::*;
use crate::testing::{Known, active, any_calls, any_dependency, apply, serve};

/// A list of streams in order of age, and a list of active ones in order of service.
#[derive(Debug)]
struct Model {
    discipline: Discipline,
    known: Vec<(StreamKey, bool)>,
    line: Vec<(StreamKey, u64)>,
    window: u64,
}

impl Model {
    fn control(&self, stream: StreamKey) -> Option<bool> {
        self.known.iter().find(|(key, _)| *key == stream).map(|(_, control)| *control)
    }
}

impl Scheduler for Model {
    fn insert(&mut self, stream: StreamKey, priority: Priority) {
        if self.control(stream).is_some() {
            return self.reprioritize(stream, priority);
        }
        self.known.push((stream, priority.urgency == Urgency::CONTROL));
    }

    fn remove(&mut self, stream: StreamKey) {
        self.deactivate(stream);
        self.known.retain(|(key, _)| *key != stream);
    }

    fn reprioritize(&mut self, stream: StreamKey, priority: Priority) {
        let control = priority.urgency == Urgency::CONTROL;
        if self.control(stream).is_some_and(|old| old != control) {
            let active = self.line.iter().any(|(key, _)| *key == stream);
            self.remove(stream);
            self.known.push((stream, control));
            if active {
                self.activate(stream);
            }
        }
    }

    fn activate(&mut self, stream: StreamKey) {
        let active = self.line.iter().any(|(key, _)| *key == stream);
        if self.control(stream).is_some() && !active {
            self.line.push((stream, 0));
        }
    }

    fn deactivate(&mut self, stream: StreamKey) {
        self.line.retain(|(key, _)| *key != stream);
    }

    fn next(&self, room: usize) -> Option<Grant> {
        let mut line: Vec<StreamKey> = self.line.iter().map(|(key, _)| *key).collect();
        let age = |stream: &StreamKey| self.known.iter().position(|(key, _)| key == stream);
        match self.discipline {
            Discipline::Fifo => line.sort_by_key(age),
            Discipline::Lifo => line.sort_by_key(|stream| std::cmp::Reverse(age(stream))),
            Discipline::RoundRobin(_) => {}
        }
        let control = line.iter().filter(|&&stream| self.control(stream) == Some(true)).min();
        let stream = *control.or(line.first())?;
        (room > 0).then_some(Grant { stream, bytes: room })
    }

    fn charge(&mut self, stream: StreamKey, bytes: usize) {
        let Some(at) = self.line.iter().position(|(key, _)| *key == stream) else { return };
        let full = match self.discipline {
            Discipline::RoundRobin(Block::Packets(packets)) => {
                self.line[at].1 += u64::from(bytes > 0);
                self.line[at].1 >= u64::from(packets)
            }
            Discipline::RoundRobin(block) => {
                let length = if let Block::Bytes(bytes) = block { bytes } else { self.window };
                self.line[at].1 = self.line[at].1.saturating_add(bytes as u64);
                self.line[at].1 >= length
            }
            Discipline::Fifo | Discipline::Lifo => false,
        };
        if full && bytes > 0 {
            self.line.remove(at);
            self.line.push((stream, 0));
        }
    }

    fn on_congestion_window(&mut self, bytes: u64) {
        self.window = bytes;
    }

    fn is_empty(&self) -> bool {
        self.line.is_empty()
    }
}

fn any_discipline() -> impl Strategy<Value = Discipline> {
    prop_oneof![
        Just(Discipline::Fifo),
        Just(Discipline::Lifo),
        (0..5u32).prop_map(|n| Discipline::RoundRobin(Block::Packets(n))),
        (0..6000u64).prop_map(|n| Discipline::RoundRobin(Block::Bytes(n))),
        Just(Discipline::RoundRobin(Block::Window)),
    ]
}

proptest! {
    #[test]
    fn decides_like_the_model(discipline in any_discipline(), calls in any_calls(any_dependency().prop_map(Extension::new))) {
        let mut multiplexer = Multiplexer::new(discipline);
        let mut model = Model { discipline, known: Vec::new(), line: Vec::new(), window: 0 };
        let mut known = Known::default();
        for call in &calls {
            prop_assert_eq!(apply(&mut multiplexer, call), apply(&mut model, call), "{:?}", call);
            prop_assert_eq!(multiplexer.next(1200), model.next(1200), "after {:?}", call);
            known.note(call);
            prop_assert_eq!(multiplexer.sizes().0, known.streams().count());
        }
    }
}

#[test]
fn every_length_of_a_turn_keeps_every_rule() {
    for block in [Block::Packets(0), Block::Packets(3), Block::Bytes(0), Block::Bytes(5000)] {
        let discipline = Discipline::RoundRobin(block);
        conformance::scheduler(&Preset { discipline, ..Preset::ALL[0] });
    }
}

#[test]
fn a_preset_sets_all_of_its_parts() {
    let windows = TransportConfig::default()
        .with_receive_window(1 << 20)
        .with_max_receive_window(1 << 22)
        .with_stream_receive_window(1)
        .with_max_stream_receive_window(1);
    let before = |name: &str| {
        // Every part has another value than the default, so that parts which are left unset are seen.
        windows.clone().with_mix_streams(!name.starts_with("mvfst"))
    };
    let stream_windows =
        |config: &TransportConfig| (config.stream_receive_window, config.max_stream_receive_window);
    for preset in Preset::ALL {
        let mut config = before(preset.name);
        preset.apply(&mut config);
        assert_eq!(config.scheduler.name(), preset.name);
        let order = match preset.name {
            "mvfst" | "mvfst-alt" => "first-by",
            "ngtcp2" | "lsquic" | "ats" | "picoquic" | "picoquic-alt" => "first",
            _ => "in-turn",
        };
        let set = (config.resend_order.name(), config.mix_streams);
        assert_eq!(set, (order, preset.name.starts_with("mvfst")), "{}", preset.name);
        // The windows are the client's, not the sender's.
        assert_eq!(stream_windows(&config), (1, 1));
        preset.apply_to_client(&mut config);
        let part = if preset.name == "mvfst-alt" { 4 } else { 1 };
        assert_eq!(stream_windows(&config), ((1 << 20) / part, (1 << 22) / part));
    }
}

#[test]
fn the_third_approach_has_an_order_of_its_own() {
    for (sequential, expected) in [(false, [0, 0, 0, 0]), (true, [0, 4, 0, 4])] {
        let mut order = resend_order(3, sequential).build(&|| unreachable!("it has its own"));
        for stream in [0, 4] {
            order.insert(stream, &Priority::default());
            (0..4).for_each(|_| order.queued(stream));
        }
        let served = expected.map(|_| {
            let stream = order.next().unwrap();
            order.charge(stream, 1200);
            stream
        });
        assert_eq!(served, expected);
    }
}

#[test]
fn every_preset_is_found_by_its_name_and_works() {
    for preset in Preset::ALL {
        assert_eq!(Preset::by_name(preset.name), Some(preset));
        assert!((1..=3).contains(&preset.retransmission));
        let mut scheduler = preset.build();
        scheduler.on_congestion_window(20 * 1400);
        active(&mut *scheduler, 0, Priority::default());
        active(&mut *scheduler, 4, Priority::default());
        let expected: &[(StreamKey, usize)] = match preset.name {
            "msquic" => &[(0, 4), (4, 4), (0, 4)],
            "google" => &[(0, 14), (4, 14), (0, 14)],
            "lsquic" => &[(0, 20), (4, 20), (0, 20)],
            "ats" | "picoquic" => &[(4, 50)],
            "picoquic-alt" => &[(0, 50)],
            _ => &[(0, 1), (4, 1), (0, 1), (4, 1)],
        };
        for &(stream, packets) in expected {
            assert_eq!(serve(&mut *scheduler, packets), vec![stream; packets], "{}", preset.name);
        }
        assert_eq!(preset.one_stream_per_packet, !preset.name.starts_with("mvfst"));
    }
    assert_eq!(Preset::ALL.len(), 12);
    assert_eq!(Preset::by_name("Mvfst"), None);
}

#[test]
fn ten_thousand_streams_and_slots_used_again() {
    for discipline in [Discipline::Lifo, Discipline::RoundRobin(Block::Packets(2))] {
        let mut multiplexer = Multiplexer::new(discipline);
        for round in 0..3 {
            for n in 0..10_000u64 {
                active(&mut multiplexer, 40_000 * round + 4 * n, Priority::default());
            }
            let mut served = 0;
            while let Some(grant) = multiplexer.next(1400) {
                multiplexer.charge(grant.stream, 1400);
                multiplexer.remove(grant.stream);
                served += 1;
            }
            assert_eq!(served, 10_000);
            assert_eq!(multiplexer.sizes(), (0, 10_003));
        }
    }
}
