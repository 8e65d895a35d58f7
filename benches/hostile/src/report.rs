//! From measurements to tables.

use crate::attacks::{Attack, Pace};
use crate::honest::Service;
use crate::measure::Measurement;
use crate::security;
use sutura_analysis::report::Report;
use sutura_analysis::table::{Cell, Table};

fn mib(kib: u64) -> String {
    format!("{:.1}", kib as f64 / 1024.0)
}

/// Median and worst time, and the clients that were not served.
fn served(service: &Service) -> String {
    let failed = if service.failed > 0 {
        format!(", {} of {} not served", service.failed, service.clients)
    } else {
        String::new()
    };
    if service.clients == service.failed {
        return format!("-{failed}");
    }
    format!("{:.0} ({:.0}){failed}", service.median_ms, service.worst_ms)
}

/// The fate of the attacker's connections.
fn fate(m: &Measurement) -> String {
    match (m.opened, m.last_code) {
        (0, _) => "-".to_owned(),
        (opened, None) => format!("{} of {opened}", m.established),
        (opened, Some(code)) => {
            format!("{} of {opened}; {} closed ({code:#x})", m.established, m.closed)
        }
    }
}

fn prices(measurements: &[Measurement]) -> Table {
    Table::of(
        "What the attacker sends, and what it costs the server",
        measurements,
        &[
            ("attack", &|m| m.attack.into()),
            ("server", &|m| m.stack.name().into()),
            ("Mbit/s", &|m| Cell::from(format!("{:.1}", m.sent_bytes as f64 * 8e-6 / m.seconds))),
            ("events/s", &|m| Cell::from(format!("{:.0}", m.events as f64 / m.seconds))),
            ("% of a core", &|m| Cell::from(format!("{:.0}", m.load() * 100.0))),
            ("ns a byte", &|m| Cell::from(security::price(m)[0].as_str())),
            ("us an event", &|m| Cell::from(format!("{:.2}", m.microseconds_per_event()))),
            ("bytes held a byte", &|m| Cell::from(security::price(m)[1].as_str())),
            ("connections established", &|m| fate(m).into()),
        ],
    )
}

fn memory(measurements: &[Measurement]) -> Table {
    Table::of(
        "Resident memory of the server in MiB, and milliseconds of honest clients: median (worst)",
        measurements,
        &[
            ("attack", &|m| m.attack.into()),
            ("server", &|m| m.stack.name().into()),
            ("idle", &|m| mib(m.idle_kib).into()),
            ("peak", &|m| mib(m.peak_kib).into()),
            ("at the end", &|m| mib(m.end_kib).into()),
            ("after", &|m| Cell::from(format!("{} ({} s)", mib(m.later_kib), m.later_seconds))),
            ("honest before", &|m| served(&m.before).into()),
            ("honest during", &|m| served(&m.during).into()),
            ("honest after", &|m| served(&m.after).into()),
            ("still answers", &|m| if m.alive { "yes" } else { "NO" }.into()),
        ],
    )
}

/// The attacks, as `--list` prints them.
pub fn list(attacks: &[&Attack]) -> Table {
    Table::of(
        "Attacks",
        attacks,
        &[
            ("attack", &|attack| attack.name.into()),
            ("what it is", &|attack| attack.about.into()),
            ("an event is a", &|attack| attack.event.into()),
            ("pace", &|attack| {
                Cell::from(match attack.pace {
                    Pace::Events(events) => format!("{events} events/s"),
                    Pace::Bits(bits) => format!("{} Mbit/s", bits / 1_000_000),
                })
            }),
            ("seconds", &|attack| attack.seconds.into()),
        ],
    )
}

pub fn report(attacks: &[&Attack], measurements: &[Measurement], after: u64) -> Report {
    let text = vec![
        "Each attack meets a new server with its defaults, a process of its own, over the loopback device. \
         What it costs is measured from outside: user and system time of the process, less what honest \
         clients alone cost it, and its resident memory. Bytes are those of UDP payload that the attackers \
         have sent, handshakes included. They come from 16 addresses, never close a connection, and vanish \
         at the end."
            .to_owned(),
        format!(
            "Memory is that before the attack, its peak, when the attack ended, and as soon as it was back at \
             one and a half times the first, or {after} s later. Honest clients come every 100 ms, each with a connection of its own, and ask for 10 kB; their times \
             include what the attacker and the machine's other work take from two shared cores."
        ),
    ];
    Report {
        name: "hostile".to_owned(),
        title: "What hostile clients cost a server".to_owned(),
        text,
        tables: vec![prices(measurements), memory(measurements), list(attacks)],
        ..Report::default()
    }
}
