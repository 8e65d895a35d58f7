//! One attack on one server, and its costs.

use crate::Options;
use crate::attacks::{Attack, Pace, quota};
use crate::fleet::{Fleet, Tally};
use crate::honest::{Honest, Service};
use crate::target::{self, SETTLE, Site, Stack, Usage};
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::thread::sleep;
use std::time::{Duration, Instant};
use sutura_benches::Error;
use sutura_benches::server::Server;

/// How long honest clients are watched alone.
const BEFORE: Duration = Duration::from_secs(3);
/// Time between two looks at the server's memory.
const LOOK: Duration = Duration::from_millis(100);
/// How long the attacker waits if no step is due.
const NAP: Duration = Duration::from_micros(500);

/// How long the aftermath lasts at least.
const AT_LEAST: Duration = Duration::from_secs(2);
/// How long a server gets to show that it still answers.
const ANSWER: Duration = Duration::from_secs(15);

/// The result of one attack.
#[derive(Debug, Serialize)]
pub struct Measurement {
    pub attack: &'static str,
    pub event: &'static str,
    pub stack: Stack,
    pub seconds: f64,
    pub sent_bytes: u64,
    pub sent_datagrams: u64,
    pub received_bytes: u64,
    pub events: u64,
    pub opened: u64,
    pub established: u64,
    pub closed: u64,
    pub last_code: Option<u64>,
    /// The server's CPU time during the attack, less the CPU time for the honest clients alone.
    pub cpu_seconds: f64,
    /// Resident memory in KiB: idle, at most, when the attack ended, and some time later.
    pub idle_kib: u64,
    pub peak_kib: u64,
    pub end_kib: u64,
    pub later_kib: u64,
    pub later_seconds: u64,
    pub before: Service,
    pub during: Service,
    pub after: Service,
    /// Whether the server still answers.
    pub alive: bool,
}

impl Measurement {
    /// Nanoseconds of CPU time for each byte that the attacker sent, without headers of UDP and IP.
    pub fn nanoseconds_per_byte(&self) -> f64 {
        self.cpu_seconds * 1e9 / self.sent_bytes as f64
    }

    pub fn microseconds_per_event(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.events as f64
    }

    /// The share of a core that the server needs.
    pub fn load(&self) -> f64 {
        self.cpu_seconds / self.seconds
    }

    /// Bytes that the server holds for each byte that the attacker sent.
    pub fn held_per_byte(&self) -> f64 {
        self.peak_kib.saturating_sub(self.idle_kib) as f64 * 1024.0 / self.sent_bytes as f64
    }
}

fn bar(label: &str, phase: &str, time: Duration) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:40} {wide_bar} {pos}/{len} s");
    let bar = ProgressBar::new(time.as_secs());
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(format!("{label}: {phase}"));
    bar
}

/// Waits, with a progress bar.
fn wait(label: &str, phase: &str, time: Duration) {
    let bar = bar(label, phase, time);
    let start = Instant::now();
    while start.elapsed() < time {
        sleep(LOOK.min(time));
        bar.set_position(start.elapsed().as_secs());
    }
    bar.finish_and_clear();
}

/// Attacks for the time that is set; returns the counters of sent data and the time that it took.
fn assault(
    attack: &Attack,
    options: &Options,
    label: &str,
    fleet: &mut Fleet,
    target: &mut Server,
) -> Result<Duration, Error> {
    let time = Duration::from_secs(options.seconds.unwrap_or(attack.seconds));
    let mut tactic = (attack.start)();
    let bar = bar(label, "attack", time);
    let (start, mut looked) = (Instant::now(), Instant::now());
    loop {
        let now = Instant::now();
        let elapsed = now - start;
        if elapsed >= time || !target.is_alive() {
            break;
        }
        fleet.turn(now);
        let (per_second, done) = match attack.pace {
            Pace::Events(events) => (options.rate.unwrap_or(events), fleet.tally.events),
            Pace::Bits(bits) => (options.rate.unwrap_or(bits) / 8, fleet.tally.bytes),
        };
        let open = quota(per_second, elapsed, done);
        let before = fleet.tally.datagrams;
        if open > 0 {
            tactic.step(fleet, now, open)?;
        }
        if fleet.tally.datagrams == before {
            sleep(NAP);
        }
        if now - looked > LOOK {
            looked = now;
            bar.set_position(elapsed.as_secs());
        }
    }
    bar.finish_and_clear();
    Ok(start.elapsed())
}

/// Waits until the server has given its memory back, but not for ever; returns its memory at that time.
fn aftermath(
    label: &str,
    options: &Options,
    idle: Usage,
    target: &mut Server,
) -> Result<Usage, Error> {
    let bar = bar(label, "aftermath", Duration::from_secs(options.after));
    let start = Instant::now();
    loop {
        if !target.is_alive() {
            return Ok(Usage::default());
        }
        let usage = Usage::of(target.id())?;
        let elapsed = start.elapsed();
        let is_back = elapsed >= AT_LEAST && usage.resident_kib * 2 <= idle.resident_kib * 3;
        if is_back || elapsed >= Duration::from_secs(options.after) {
            bar.finish_and_clear();
            return Ok(usage);
        }
        bar.set_position(elapsed.as_secs());
        sleep(LOOK);
    }
}

/// Whether a client that comes now is served.
fn answers(honest: &Honest, now: Instant) -> bool {
    while now.elapsed() < ANSWER {
        let since = honest.service(now, Instant::now());
        if since.clients > since.failed {
            return true;
        }
        sleep(LOOK);
    }
    false
}

/// Attacks a new server.
pub fn measure(
    attack: &Attack,
    stack: Stack,
    site: &Site,
    options: &Options,
) -> Result<Measurement, Error> {
    let extra = &options.server_arguments;
    let mut target = target::start(stack, attack.needs, site, &options.server, extra)?;
    let label = format!("{} on {}", attack.name, stack.name());
    let honest = Honest::start(target.address, &site.identity)?;
    sleep(SETTLE);
    let (began, at_first) = (Instant::now(), Usage::of(target.id())?);
    wait(&label, "honest clients alone", BEFORE);
    let (attacked, idle) = (Instant::now(), Usage::of(target.id())?);
    let honest_load = (idle.cpu - at_first.cpu) / (attacked - began).as_secs_f64();
    let mut fleet = Fleet::new(target.address, attack.setup(&site.identity)?)?;
    let took = assault(attack, options, &label, &mut fleet, &mut target)?;
    let ended = Instant::now();
    let died = !target.is_alive();
    let end = if died { Usage::default() } else { Usage::of(target.id())? };
    let tally: Tally = fleet.tally;
    // From here on, no socket answers at the attackers' addresses.
    drop(fleet);
    let later = aftermath(&label, options, idle, &mut target)?;
    let over = Instant::now();
    let alive = target.is_alive() && answers(&honest, over);
    let after = honest.service(ended, over);
    let cpu = end.cpu - idle.cpu - honest_load * took.as_secs_f64();
    Ok(Measurement {
        attack: attack.name,
        event: attack.event,
        stack,
        seconds: took.as_secs_f64(),
        sent_bytes: tally.bytes,
        sent_datagrams: tally.datagrams,
        received_bytes: tally.received_bytes,
        events: tally.events,
        opened: tally.opened,
        established: tally.established,
        closed: tally.closed,
        last_code: tally.last_code,
        cpu_seconds: cpu.max(0.0),
        idle_kib: idle.resident_kib,
        peak_kib: end.peak_kib.max(later.peak_kib),
        end_kib: end.resident_kib,
        later_kib: later.resident_kib,
        later_seconds: (over - ended).as_secs(),
        before: honest.service(began, attacked),
        during: honest.service(attacked, ended),
        after,
        alive,
    })
}
