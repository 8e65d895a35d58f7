//! The scenarios to run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sutura_proto::policy::{
    ByLoss, First, HoldForRepair, InTurn, LossReactionFactory, ResendAtOnce, ResendOrderFactory,
};
use sutura_proto::{
    Algorithm, Connection, FecConfig, Priority, Protection, Scheme, StreamId, TransportConfig,
    Urgency,
};
use sutura_schedule::{Class, Weight};
use sutura_sim::{
    BulkClient, BulkServer, Clock, DatagramPlan, Ends, Failure, Progress, Scenario, StreamPlan,
    Transfer,
};

use crate::common::{Beside, MS, incremental, link, tail};

/// Runs a scenario that has a seed and a tracer.
pub type Run = fn(Scenario) -> Result<Ends, Failure>;

const CLEAN: &str = "rate=20mbit delay=20ms queue=200p";
const SHALLOW: &str = "rate=20mbit delay=20ms queue=40p";
const LOSSY: &str = "rate=20mbit delay=20ms queue=200p loss=bern:0.02";
const BURSTY: &str = "paper";
const MESSY: &str = "rate=20mbit delay=20ms jitter=3ms,reorder reorder=0.02,10ms duplicate=0.02 \
                     corrupt=0.01 loss=bern:0.01";

/// The name, the seed and the function of each scenario.
pub const ALL: &[(&str, u64, Run)] = &[
    ("byte", 1, |s| bulk(on(s, CLEAN).transfer(Transfer::download(1)))),
    ("pages", 2, |s| bulk(on(s, CLEAN).transfers(pages(8)).gap(100 * MS))),
    ("down", 3, |s| bulk(on(s, CLEAN).transfer(Transfer::download(1_000_000)))),
    ("up", 4, |s| bulk(on(s, CLEAN).transfer(Transfer::upload(1_000_000)))),
    ("both-ways-overflow", 5, |s| bulk(on(s, SHALLOW).transfer(Transfer::both(700_000)))),
    ("loss-newreno", 6, |s| bulk(down(s, LOSSY, &congestion(Algorithm::NEW_RENO)))),
    ("loss-cubic", 7, |s| bulk(down(s, LOSSY, &congestion(Algorithm::CUBIC)))),
    ("loss-bbr", 8, |s| bulk(down(s, LOSSY, &congestion(Algorithm::BBR)))),
    ("bursts-newreno", 9, |s| bulk(down(s, BURSTY, &congestion(Algorithm::NEW_RENO)))),
    ("bursts-cubic", 31, |s| bulk(down(s, BURSTY, &congestion(Algorithm::CUBIC)))),
    ("bursts-bbr", 11, |s| bulk(down(s, BURSTY, &congestion(Algorithm::BBR)))),
    ("disorder", 12, |s| bulk(on(s, MESSY).transfer(Transfer::both(300_000)))),
    ("outage", 13, |s| bulk(on(s, "rate=20mbit delay=20ms outage=200ms..900ms").transfer(HALF))),
    ("small-windows", 14, |s| bulk(down(s, LOSSY, &small_windows()))),
    ("streams-eps", 15, |s| ranked(&on(s, CLEAN), Scheme::EPS, ByLoss)),
    ("streams-eps-loss", 16, |s| ranked(&on(s, LOSSY), Scheme::EPS, InTurn)),
    ("streams-hmm", 17, |s| ranked(&on(s, CLEAN), Scheme::HMM, ByLoss)),
    ("streams-hmm-loss", 18, |s| ranked(&on(s, LOSSY), Scheme::HMM, First)),
    ("streams-mixed", 19, |s| {
        let config = congestion(Algorithm::CUBIC).with_mix_streams(true);
        let small = vec![Transfer::both(3000); 60];
        bulk(on(s, LOSSY).transport(&config).transfers(small).parallel(12))
    }),
    ("tail", 20, |s| bulk(on(s, CLEAN).protect(tail(3)).transfers(pages(12)).gap(50 * MS))),
    ("tail-loss", 21, |s| {
        let config = congestion(Algorithm::BBR);
        bulk(on(s, LOSSY).transport(&config).protect(tail(3)).transfers(pages(12)).gap(50 * MS))
    }),
    ("incremental", 22, |s| bulk(on(s, CLEAN).protect(incremental(2, 25 * MS)).transfer(HALF))),
    ("incremental-loss", 23, |s| {
        bulk(down(s, LOSSY, &wide(HoldForRepair)).protect(incremental(3, Duration::ZERO)))
    }),
    ("incremental-bursts", 24, |s| {
        let config = wide(ResendAtOnce);
        bulk(down(s, BURSTY, &config).protect(incremental(3, 25 * MS)))
    }),
    ("incremental-both-ways", 25, |s| {
        let transfer = Transfer { protection: incremental(2, 10 * MS), ..Transfer::both(60_000) };
        let scenario = on(s, MESSY).protect(incremental(2, Duration::ZERO));
        bulk(scenario.transfers(vec![transfer; 8]).parallel(4))
    }),
    ("datagrams", 26, |s| datagrams(on(s, CLEAN))),
    ("datagrams-loss", 27, |s| datagrams(on(s, MESSY))),
    ("messages", 28, |s| messages(on(s, CLEAN), None)),
    ("messages-tail", 29, |s| messages(on(s, BURSTY), tail(2))),
    ("messages-incremental", 30, |s| messages(on(s, BURSTY), incremental(2, 25 * MS))),
];

const HALF: Transfer = Transfer { download: 500_000, upload: 0, protection: None };
/// Downloads of 32 kB.
fn pages(count: usize) -> Vec<Transfer> {
    vec![Transfer::download(32_000); count]
}

/// Uses the same kind of link in both directions, and CUBIC.
fn on(scenario: Scenario, path: &str) -> Scenario {
    let scenario = scenario.link(&link(path), &link(path));
    scenario.transport(&congestion(Algorithm::CUBIC))
}

fn down(scenario: Scenario, path: &str, config: &TransportConfig) -> Scenario {
    on(scenario, path).transport(config).transfer(HALF)
}

fn congestion(congestion: Algorithm) -> TransportConfig {
    TransportConfig::default().with_congestion(Arc::new(congestion))
}

/// Settings that make flow control and buffers the limit.
fn small_windows() -> TransportConfig {
    congestion(Algorithm::CUBIC)
        .with_stream_receive_window(30_000)
        .with_max_stream_receive_window(60_000)
        .with_receive_window(40_000)
        .with_max_receive_window(80_000)
        .with_send_buffer(50_000)
        .with_fec(None)
}

/// Settings with large datagrams and coding windows.
fn wide(loss_reaction: impl LossReactionFactory + 'static) -> TransportConfig {
    let fec = FecConfig::default()
        .with_max_window_symbols(1024)
        .with_max_window_bytes(2 << 20)
        .with_max_sessions(4);
    congestion(Algorithm::BBR)
        .with_udp_payload_size(1452)
        .with_fec(Some(fec))
        .with_loss_reaction(Arc::new(loss_reaction))
}

fn bulk(scenario: Scenario) -> Result<Ends, Failure> {
    scenario.run().map(|outcome| outcome.ends)
}

fn datagrams(scenario: Scenario) -> Result<Ends, Failure> {
    let plan = DatagramPlan { size: 900, interval: 10 * MS, count: 300 };
    scenario.datagrams(plan).map(|outcome| outcome.ends)
}

fn messages(scenario: Scenario, protection: Option<Protection>) -> Result<Ends, Failure> {
    let plan = StreamPlan { protection, ..StreamPlan::frames(120) };
    scenario.stream(plan).map(|outcome| outcome.ends)
}

/// Twelve parallel transfers in both directions, with several urgencies, weights and classes.
fn ranked(
    scenario: &Scenario,
    scheduler: Scheme,
    resend_order: impl ResendOrderFactory + 'static,
) -> Result<Ends, Failure> {
    let config = congestion(Algorithm::CUBIC)
        .with_scheduler(Arc::new(scheduler))
        .with_resend_order(Arc::new(resend_order));
    let transfer = Transfer { download: 50_000, upload: 10_000, protection: None };
    let client = BulkClient::new(vec![transfer; 24], 12, Duration::ZERO);
    let server = || Beside(BulkServer::default(), rank());
    scenario.clone().transport(&config).drive(
        Clock::default(),
        Beside(client, rank()),
        server,
        |view| Progress { done: view.client.0.is_done(), busy: view.client.0.is_busy() },
    )
}

/// Gives the streams of an application different priorities.
fn rank() -> impl FnMut(Instant, &mut Connection) {
    let (mut streams, id) = (0, |index| StreamId(4 * index));
    // Streams that were just opened or accepted. Nothing written on them has been sent yet.
    move |_, quic| {
        while quic.send_stream(id(streams)).set_priority(priority(streams)).is_ok() {
            streams += 1;
        }
    }
}

/// The priority of the stream with this index.
fn priority(index: u64) -> Priority {
    let shared = |weight| {
        Priority::default()
            .with_urgency(Urgency::new(5).unwrap())
            .with_incremental(true)
            .with_weight(Weight::new(weight).unwrap())
    };
    let class = Class::default().with_name(Some("class".into())).with_incremental(true);
    match index % 4 {
        0 => shared(1000),
        1 => Priority::new(1, false).unwrap(),
        2 => shared(3000),
        _ => shared(2000).with_parents(Some([class].into())),
    }
}
