//! `sutura link`: a UDP relay that behaves like a lossy link.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sutura_link::{LinkConfig, LinkStats};
use sutura_relay::{Config, Rebinding, Relay, Stats};

use crate::failure::{Exit, Failure};
use crate::interrupt::interrupted;
use crate::listen::Listen;
use crate::output;

const EXAMPLES: &str = "\
A link is written as a preset, settings, or a preset followed by settings that change it:
  perfect, paper, paper-percent, paper-time, paper-background
  rate=10mbit delay=50ms jitter=5ms queue=100p queue=64000b queue=policer:30kb overhead=28
  queue=codel:200kb queue=red:60kb
  loss=2% loss=ge:0.005,0.25,0.95,0.005 loss=gt:240,4.8,0.95,0.005
  reorder=0.01,10ms duplicate=0.001 corrupt=0.0001 background=10mbit outage=2s..3s
  step=2s,rate=5mbit step=4s,delay=80ms step=6s,loss=0.05
  trace=@lte.down in place of a rate: a file with the milliseconds at which the link sends 1500 bytes, one in each line,
  as Mahimahi has it; loss=trace:@lost: a file with 1 for each lost packet and 0 for each other

Examples:
  sutura link --to 127.0.0.1:4433 --profile paper --seed 7
  sutura link --listen [::]:5000 --to example.org:443 --down 'rate=5mbit delay=30ms loss=bern:0.02'
  sutura link --to [::1]:4433 --profile 'paper delay=20ms' --stats-every 1s --json
  sutura link --to 127.0.0.1:4433 --up 'trace=@lte.up delay=20ms' --down 'trace=@lte.down delay=20ms'
  sutura link --to 127.0.0.1:4433 --profile perfect --rebind port@1s --rebind address@6s

--rebind shows the clients to the server at other ports or addresses, as a NAT does that has lost its
state; other addresses only on the loopback device.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct LinkArgs {
    /// Address to listen on for clients; a port alone is one of 127.0.0.1
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "127.0.0.1:5000")]
    #[arg(value_parser = Listen::on_loopback)]
    listen: SocketAddr,
    /// Server to forward to: address or host, and port
    #[arg(long, value_name = "ADDR")]
    to: String,
    /// The link in both directions
    #[arg(long, value_name = "SPEC", default_value = "paper", value_parser = read_link)]
    profile: LinkConfig,
    /// The link from the clients, in place of the profile
    #[arg(long, value_name = "SPEC", value_parser = read_link)]
    up: Option<LinkConfig>,
    /// The link to the clients, in place of the profile
    #[arg(long, value_name = "SPEC", value_parser = read_link)]
    down: Option<LinkConfig>,
    /// Show clients at other ports or addresses from that time on; may be repeated
    #[arg(long, value_name = "port@TIME|address@TIME")]
    rebind: Vec<Rebinding>,
    /// Seed for everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Also report statistics at this interval
    #[arg(long, value_name = "DURATION", value_parser = parse_interval)]
    stats_every: Option<Duration>,
    /// Most clients served at the same time; each takes a socket
    #[arg(long, value_name = "N", default_value_t = Config::DEFAULT_MAX_CLIENTS)]
    max_clients: usize,
    /// Print statistics as JSON
    #[arg(long)]
    json: bool,
}

/// The settings of a link, with its trace in short.
fn settings_of(link: &LinkConfig) -> String {
    let Some(trace) = &link.trace else { return link.to_string() };
    let rest = LinkConfig { trace: None, ..link.clone() };
    let (turns, period) = (trace.as_slice().len(), trace.period().as_secs_f64());
    let megabits = trace.mean_rate() / 1e6;
    format!("{rest}, by a trace of {turns} turns in {period:.1} s, {megabits:.2} Mbit/s")
}

/// Reads a link, and the files that it names.
fn read_link(text: &str) -> Result<LinkConfig, String> {
    sutura_lab::link_trace::read_link(text).map_err(|error| error.to_string())
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = sutura_link::parse_duration(text).map_err(|e| e.to_string())?;
    if interval < Duration::from_millis(10) {
        return Err("must be 10ms at least".into());
    }
    Ok(interval)
}

/// Relays until interrupted.
pub async fn run(args: LinkArgs) -> Result<Exit, Failure> {
    let to = resolve(&args.to).await?;
    let mut config = Config::new(args.listen, to).link(&args.profile).seed(args.seed);
    config.max_clients = args.max_clients;
    config.rebindings = args.rebind;
    if let Some(up) = args.up {
        config.up = up;
    }
    if let Some(down) = args.down {
        config.down = down;
    }
    let [up, down] = [&config.up, &config.down].map(settings_of);
    let relay = Relay::start(&config)
        .map_err(|e| Failure::local(format!("cannot relay from {}: {e}", args.listen)))?;
    let start = Instant::now();
    let mut interrupted = std::pin::pin!(interrupted());
    if args.json {
        output::json(&json!({
            "listening": relay.local_addr().to_string(), "to": to.to_string(), "seed": args.seed,
            "up": up, "down": down,
        }))?;
    } else {
        output::line(&format!("{} -> {to}, seed {}", relay.local_addr(), args.seed))?;
        output::line(&format!("up:   {up}\ndown: {down}"))?;
    }
    loop {
        let pause = args.stats_every.unwrap_or(Duration::MAX);
        tokio::select! {
            stop = &mut interrupted => {
                stop?;
                break;
            }
            () = tokio::time::sleep(pause) => report(&relay.stats(), start, args.json)?,
        }
    }
    report(&relay.stop(), start, args.json)?;
    Ok(Exit::Success)
}

/// Resolves a host and port.
async fn resolve(to: &str) -> Result<SocketAddr, Failure> {
    if !to.contains(':') {
        return Err(Failure::usage(format!("--to {to}: expected an address and a port")));
    }
    let found = tokio::net::lookup_host(to).await;
    let mut found = found.map_err(|e| {
        if e.kind() == std::io::ErrorKind::InvalidInput {
            return Failure::usage(format!("--to {to}: {e}"));
        }
        Failure::new(Exit::UnknownHost, format!("unknown host in {to}: {e}"))
    })?;
    found.next().ok_or_else(|| Failure::new(Exit::UnknownHost, format!("{to} has no address")))
}

fn report(stats: &Stats, start: Instant, json: bool) -> Result<(), Failure> {
    let elapsed = start.elapsed();
    if json {
        return output::json(&to_json(stats, elapsed));
    }
    let mut text = format!(
        "after {:.1} s: {} clients, {} forwarded, {} refused, {} unsent, late {:.3} ms on average, \
         {:.3} ms at most",
        elapsed.as_secs_f64(),
        stats.clients_seen,
        stats.forwarded,
        stats.refused,
        stats.unsent,
        output::millis(stats.late_mean()),
        output::millis(stats.late_max),
    );
    for (name, link) in [("up:  ", &stats.up), ("down:", &stats.down)] {
        text += &format!("\n{name} {}", describe(link));
    }
    output::line(&text)
}

fn describe(link: &LinkStats) -> String {
    let share = link.lost as f64 * 100.0 / (link.sent.max(1) as f64);
    format!(
        "{} sent ({}), {} delivered, {} lost ({share:.2} %), {} queue overflow, {} outage, \
         {} too long, {} duplicated, {} corrupted, {} held back",
        link.sent,
        output::bytes(link.sent_bytes),
        link.delivered,
        link.lost,
        link.overflow,
        link.outage,
        link.too_long,
        link.duplicated,
        link.corrupted,
        link.held_back,
    )
}

fn to_json(stats: &Stats, elapsed: Duration) -> Value {
    json!({
        "seconds": elapsed.as_secs_f64(),
        "clients": stats.clients_seen,
        "forwarded": stats.forwarded,
        "refused": stats.refused,
        "unsent": stats.unsent,
        "rebindings": stats.rebindings,
        "late_ms": { "mean": output::millis(stats.late_mean()), "max": output::millis(stats.late_max) },
        "up": link_to_json(&stats.up),
        "down": link_to_json(&stats.down),
    })
}

/// The counters of a link as JSON.
pub fn link_to_json(link: &LinkStats) -> Value {
    json!({
        "sent": link.sent,
        "sent_bytes": link.sent_bytes,
        "delivered": link.delivered,
        "delivered_bytes": link.delivered_bytes,
        "lost": link.lost,
        "outage": link.outage,
        "overflow": link.overflow,
        "too_long": link.too_long,
        "duplicated": link.duplicated,
        "corrupted": link.corrupted,
        "held_back": link.held_back,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_summed_up() {
        let read = read_link("trace=3,7 delay=5ms loss=trace:010").unwrap();
        let settings = "delay=5ms loss=trace:010, by a trace of 2 turns in 0.0 s, 3.43 Mbit/s";
        assert_eq!(settings_of(&read), settings);
        assert!(read_link("delay=5").is_err());
    }
}
