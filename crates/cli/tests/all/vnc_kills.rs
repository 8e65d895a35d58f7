//! Both ends of `sutura vnc` are killed in turn while somebody types.

use std::collections::BTreeMap;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::Signal;
use sutura_vnc::Rect;
use sutura_vnc::rfb::ClientMessage;

use crate::support::bridge::{connect, connect_on, serve, serve_at};
use crate::support::screen::{Screen, right_answer};
use crate::support::watcher::Watcher;
use crate::support::{Listening, Scratch, wait_until};

/// How often an end is killed.
const KILLS: u32 = 20;
/// How long somebody waits from key to key.
const PAUSE: Duration = Duration::from_millis(1);

/// Somebody who types at a viewer: keys with ever higher numbers, from `first` on.
struct Typist {
    viewer: Arc<Watcher>,
    first: u32,
    next: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Typist {
    fn start(address: &str, screen: &Screen, first: u32) -> Self {
        let viewer = Arc::new(Watcher::start(address, right_answer()));
        viewer.wait_for(screen);
        let (next, stop) = (Arc::new(AtomicU32::new(first)), Arc::<AtomicBool>::default());
        let (hands, counter, done) = (viewer.clone(), next.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let keysym = counter.load(Ordering::Relaxed);
                hands.say(&ClientMessage::Key { down: true, keysym });
                counter.store(keysym + 1, Ordering::Relaxed);
                std::thread::sleep(PAUSE);
            }
        });
        Self { viewer, first, next, stop, thread }
    }

    /// Waits until the screen has heard of a key that is typed from now on.
    fn wait_to_be_heard(&self, screen: &Screen) {
        let next = self.next.load(Ordering::Relaxed);
        wait_until("a new key", || keys(screen).iter().any(|&(_, key)| key > next));
    }

    /// Stops typing. Returns the numbers of the first key and the key that would be next.
    fn stop(self) -> (u32, u32) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        (self.first, self.next.load(Ordering::Relaxed))
    }
}

/// The keys that were pressed, each with the number of its connection to the screen.
fn keys(screen: &Screen) -> Vec<(usize, u32)> {
    let pressed = |(connection, message)| match message {
        ClientMessage::Key { down: true, keysym } => Some((connection, keysym)),
        _ => None,
    };
    screen.heard_by_connection().into_iter().filter_map(pressed).collect()
}

fn kill(mut end: Listening) -> Output {
    end.process.signal(Signal::KILL);
    end.process.output()
}

/// How many messages may have been typed twice, by what the end beside the viewer has said.
fn doubtful(output: &Output) -> usize {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let count = |line: &str| {
        let (_, rest) = line.split_once("before it said whether ")?;
        rest.split(' ').next()?.parse::<usize>().ok()
    };
    said.lines().filter_map(count).sum()
}

#[test]
fn no_key_is_lost_when_the_ends_are_killed_in_turn() {
    let (screen, scratch) = (Screen::start(64, 64, false), Scratch::new());
    // Both ends come back at the addresses that they got the first time.
    let server = serve(&screen, &scratch, &[]);
    let address = server.address.clone();
    let bridge = connect(&server, &[]);
    let listen = bridge.address.clone();
    kill(bridge);
    kill(server);
    let start = || serve_at(&address, &screen.address, &scratch, &[]);
    let mut server = start();
    let mut bridge = connect_on(&listen, &address, &server, &[]);
    let mut typist = Typist::start(&listen, &screen, 1);
    let (mut typed, mut twice) = (Vec::new(), 0);
    for n in 0..KILLS {
        typist.wait_to_be_heard(&screen);
        if n % 2 == 0 {
            kill(server);
            screen.fill(Rect::new(0, 0, 64, 64), n + 1);
            server = start();
            // The viewer is back, and so is who types there.
            typist.viewer.wait_for(&screen);
            typist.wait_to_be_heard(&screen);
        } else {
            twice += doubtful(&kill(bridge));
            typist.viewer.wait_for_end();
            typed.push(typist.stop());
            bridge = connect_on(&listen, &address, &server, &[]);
            typist = Typist::start(&listen, &screen, typed[typed.len() - 1].1);
        }
    }
    typist.wait_to_be_heard(&screen);
    let viewer = typist.viewer.clone();
    let last = typist.stop();
    wait_until("the last key", || keys(&screen).iter().any(|&(_, key)| key + 1 == last.1));
    drop(viewer);
    twice += doubtful(&bridge.interrupt().0);
    check(&keys(&screen), &typed, last, twice);
}

/// Checks what was heard of what was typed at viewers whose end was killed, and at the last one.
fn check(heard: &[(usize, u32)], typed: &[(u32, u32)], last: (u32, u32), twice: usize) {
    let mut times: BTreeMap<u32, usize> = BTreeMap::new();
    heard.iter().for_each(|&(_, key)| *times.entry(key).or_default() += 1);
    for &(first, next) in typed {
        // What the end that was killed had not passed on is lost, and nothing before that.
        let heard_last = times.range(first..next).next_back().map_or(first, |(&key, _)| key + 1);
        assert!(heard_last > first, "nothing was heard of {first} and on");
        let missing: Vec<u32> =
            (first..heard_last).filter(|key| !times.contains_key(key)).collect();
        assert_eq!(missing, Vec::<u32>::new(), "keys before {heard_last}");
    }
    let missing: Vec<u32> = (last.0..last.1).filter(|key| !times.contains_key(key)).collect();
    assert_eq!(missing, Vec::<u32>::new(), "keys of a viewer whose end was not killed");
    let again: usize = times.values().map(|times| times - 1).sum();
    assert!(again <= twice, "{again} keys were typed twice, and {twice} were said to be in doubt");
    // Each connection to the screen has its keys in the order in which they were typed.
    let mut newest = BTreeMap::new();
    for &(connection, key) in heard {
        let before = newest.insert(connection, key);
        assert!(before < Some(key), "{key} after {before:?} on connection {connection}");
    }
}
