//! By what a bulk stream meets on its way.

use crate::Error;
use crate::bulk::Bulk;
use crate::gauge::Meter;
use crate::pair::{Losses, Pair, REST};
use std::sync::Arc;
use std::time::Duration;
use sutura_proto::policy::{Auto, Block, FixedRate};
use sutura_proto::{Protection, TransportConfig};

/// The seed of losses.
pub const SEED: u64 = 20;
/// The size of a full packet.
const PACKET: f64 = 1200.0;
/// How many packets are in flight, where that does not change.
const WINDOW: f64 = 200.0;
/// The least number of packets that are measured, and that are sent before.
const PACKETS: usize = 4000;

/// A stream at a rate of its own: neither losses nor round-trip times change what is in flight, which is what
/// congestion control would let them do.
#[derive(Debug)]
struct Flow {
    /// Packets in flight.
    window: f64,
    rtt: Duration,
    /// The share that is lost.
    loss: f64,
    protection: Option<Protection>,
}

impl Flow {
    fn new(window: f64) -> Self {
        Self { window, rtt: Duration::from_millis(40), loss: 0.0, protection: None }
    }

    /// Windows and buffers for a round trip and as much again, so that they do not limit the rate.
    fn transport(&self) -> Result<TransportConfig, Error> {
        let bytes = self.window * PACKET;
        let rate = FixedRate::new((bytes / self.rtt.as_secs_f64()) as u64);
        let window = (1 << 20).max(4 * bytes as u64);
        Ok(TransportConfig::default()
            .with_congestion(Arc::new(rate.ok_or("there is no such rate")?))
            .with_stream_receive_window(window)
            .with_max_stream_receive_window(window)
            .with_receive_window(2 * window)
            .with_max_receive_window(2 * window)
            .with_send_buffer((2.0 * bytes) as usize)
            .with_connection_send_buffer((4.0 * bytes) as usize))
    }

    /// A stream that has just begun.
    fn begin(self, meter: Meter) -> Result<Bulk, Error> {
        let mut pair = Pair::new(&self.transport()?, meter)?;
        pair.meter.switch(false);
        pair.latency = self.rtt / 2;
        pair.pass(REST);
        pair.losses = (self.loss > 0.0).then(|| Losses::new(SEED, self.loss));
        let mut bulk = Bulk::new(pair, self.protection, usize::MAX)?;
        bulk.fills = true;
        Ok(bulk)
    }

    /// The stream after its start, which is measured if that is asked for.
    fn under_way(self, meter: Meter, measured: bool) -> Result<Bulk, Error> {
        let packets = PACKETS.max(2 * self.window as usize);
        let mut bulk = self.begin(meter)?;
        bulk.pair.meter.switch(measured);
        bulk.until(packets * PACKET as usize)?;
        Ok(bulk)
    }

    /// Measures packets of a stream that is under way. Returns how many full packets its data would fill. Losses
    /// hold up the data behind them for about a round trip, so that more of it is measured.
    fn work(self, meter: Meter) -> Result<u64, Error> {
        let windows = if self.loss > 0.0 { 8.0 } else { 1.0 };
        let packets = PACKETS.max((windows * self.window) as usize);
        let rate = self.window / self.rtt.as_secs_f64();
        let mut bulk = self.under_way(meter, false)?;
        bulk.pair.meter.switch(true);
        let (read, sent, began) = (bulk.read, bulk.pair.client.sent, bulk.pair.now);
        bulk.until(read + packets * PACKET as usize)?;
        let sent = (bulk.pair.client.sent - sent) as f64;
        if sent / (bulk.pair.now - began).as_secs_f64() < 0.8 * rate {
            return Err("the stream is slower than it should be, so that less is in flight".into());
        }
        Ok(((bulk.read - read) as f64 / PACKET).round() as u64)
    }
}

/// With this many packets in flight.
pub(super) fn by_window(meter: Meter, packets: f64) -> Result<u64, Error> {
    Flow::new(packets).work(meter)
}

/// What is held for packets in flight.
pub(super) fn held_by_window(meter: Meter, packets: f64) -> Result<u64, Error> {
    Flow::new(packets).under_way(meter, true)?;
    Ok(packets as u64)
}

fn lossy(window: f64, percent: f64) -> Flow {
    Flow { loss: percent / 100.0, ..Flow::new(window) }
}

/// Protected by the default policy.
fn with_auto(flow: Flow) -> Flow {
    Flow { protection: Some(Protection::new(Arc::new(Auto::default()))), ..flow }
}

/// With losses, which are sent again.
pub(super) fn by_loss(meter: Meter, percent: f64) -> Result<u64, Error> {
    lossy(WINDOW, percent).work(meter)
}

/// With losses, which the default policy may mend.
pub(super) fn by_loss_with_auto(meter: Meter, percent: f64) -> Result<u64, Error> {
    with_auto(lossy(WINDOW, percent)).work(meter)
}

/// With this many packets in flight, and losses among them.
pub(super) fn by_gaps(meter: Meter, packets: f64) -> Result<u64, Error> {
    lossy(packets, 5.0).work(meter)
}

/// The same, where the default policy may mend losses.
pub(super) fn by_gaps_with_auto(meter: Meter, packets: f64) -> Result<u64, Error> {
    with_auto(lossy(packets, 5.0)).work(meter)
}

/// With this many repair symbols for 100 source symbols. Without any, no packet is a source symbol.
pub(super) fn by_repair(meter: Meter, percent: f64) -> Result<u64, Error> {
    let block = (percent > 0.0).then(|| Block::window((100.0 / percent).round() as u32, 1));
    let protection = block.flatten().map(|block| Protection::new(Arc::new(block)));
    Flow { protection, ..Flow::new(WINDOW) }.work(meter)
}

fn distant(milliseconds: f64) -> Flow {
    let rtt = Duration::from_secs_f64(milliseconds / 1000.0);
    Flow { rtt, ..Flow::new(5000.0 * rtt.as_secs_f64()) }
}

/// With this round-trip time in milliseconds.
pub(super) fn by_rtt(meter: Meter, milliseconds: f64) -> Result<u64, Error> {
    distant(milliseconds).work(meter)
}

/// What is held in all.
pub(super) fn held_by_rtt(meter: Meter, milliseconds: f64) -> Result<u64, Error> {
    distant(milliseconds).under_way(meter, true)?;
    Ok(1)
}
