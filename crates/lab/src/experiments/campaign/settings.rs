//! Random settings of an end, with a policy of every seam.

use std::sync::Arc;
use std::time::Duration;

use sutura_proto::policy::{DeliveryFactory, RedundancyFactory};
use sutura_proto::registry::{self, Entry, Registry};
use sutura_proto::{FecConfig, MtuDiscovery, TransportConfig};
use sutura_random::Rng;

use crate::Error;

/// Longer than all outages.
const IDLE: Duration = Duration::from_secs(120);
/// By keep-alives, an end that only receives finds out that it has another address.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// A policy of a seam, with the listed parameters.
fn pick<F: ?Sized>(rng: &mut Rng, registry: &Registry<F>) -> Result<Arc<F>, Error> {
    let entries: &[Entry<F>] = registry.entries();
    let entry = &entries[rng.below(entries.len() as u64) as usize];
    Ok(entry.make(entry.parameters)?)
}

/// The delivery that hands out bytes as they arrive.
///
/// # Errors
/// There is none, which is a bug.
pub fn unordered() -> Result<Arc<dyn DeliveryFactory>, Error> {
    Ok(registry::deliveries().find("arrival")?)
}

/// A redundancy policy, or none.
///
/// # Errors
/// A policy does not accept the parameters that it lists, which is a bug.
pub fn redundancy(rng: &mut Rng) -> Result<Option<Arc<dyn RedundancyFactory>>, Error> {
    Ok(match rng.below(8) {
        0 => None,
        1..4 => TransportConfig::default().redundancy,
        _ => Some(pick(rng, &sutura_research::redundancy())?),
    })
}

/// Random settings, sometimes with windows and buffers so small that flow control is the limit.
/// `slowest` is the rate of the path in Mbit/s, and `mtu` the UDP payload that it always carries.
///
/// # Errors
/// A policy does not accept the parameters that it lists, which is a bug.
pub fn random(rng: &mut Rng, slowest: u64, mtu: u16) -> Result<TransportConfig, Error> {
    let small = rng.below(4) == 0;
    let window = if small { 5000 + rng.below(100_000) } else { 1 << 20 };
    let congestion = match rng.below(10) {
        // The only policy that needs to know the path.
        0 => registry::congestion().find(&format!("fixed:rate={slowest}mbit"))?,
        _ => registry::congestion().find(["newreno", "cubic", "bbr"][rng.below(3) as usize])?,
    };
    let redundancy = redundancy(rng)?;
    Ok(TransportConfig::default()
        .with_congestion(congestion)
        .with_redundancy(redundancy)
        .with_fec((rng.below(4) > 0).then(FecConfig::default))
        .with_scheduler(pick(rng, &sutura_research::schedulers())?)
        .with_loss_reaction(pick(rng, &registry::loss_reactions())?)
        .with_resend_order(pick(rng, &registry::resend_orders())?)
        .with_mix_streams(rng.below(2) == 0)
        .with_stream_receive_window(window)
        .with_max_stream_receive_window(window * (1 + rng.below(8)))
        .with_receive_window(window + window / 2)
        .with_max_receive_window(window * (2 + rng.below(8)))
        .with_send_buffer(if small { 3000 + rng.below(64_000) as usize } else { 1 << 20 })
        .with_connection_send_buffer(if small { 0 } else { 16 << 20 })
        .with_max_concurrent_bidi_streams(1 + rng.below(100))
        .with_max_concurrent_uni_streams(4096)
        .with_max_idle_timeout(Some(IDLE))
        .with_keep_alive(Some(KEEP_ALIVE))
        .with_initial_rtt(Duration::from_millis(20 + rng.below(500)))
        .with_max_ack_delay(Duration::from_millis(rng.below(100)))
        .with_udp_payload_size(1200 + rng.below(u64::from(mtu) - 1199) as u16)
        .with_mtu_discovery((rng.below(2) == 0).then(|| {
            MtuDiscovery::default()
                .with_upper_bound(1200 + rng.below(273) as u16)
                .with_retry_interval(Duration::from_secs(1 + rng.below(60)))
        })))
}
