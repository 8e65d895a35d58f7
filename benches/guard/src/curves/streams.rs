//! By the streams that are open on one connection.

use crate::Error;
use crate::exchange::Exchanges;
use crate::gauge::Meter;
use crate::load::{Load, in_turn, play};
use crate::pair::{Pair, REST};
use crate::rows::with_streams;
use sutura_proto::TransportConfig;

fn connected(meter: Meter, streams: usize) -> Result<Exchanges, Error> {
    let transport = with_streams(TransportConfig::default(), streams);
    Ok(Exchanges::new(Pair::connected(&transport, meter)?))
}

/// Exchanges one after another beside open streams.
pub(super) fn beside(meter: Meter, streams: f64) -> Result<u64, Error> {
    let mut exchanges = connected(meter, streams as usize)?;
    exchanges.hold(streams as usize)?;
    exchanges.pass(REST)?;
    in_turn(exchanges)
}

/// Exchanges at once.
pub(super) fn at_once(meter: Meter, streams: f64) -> Result<u64, Error> {
    play(connected(meter, streams as usize)?, streams as usize)
}

/// The memory of open streams.
pub(super) fn held(meter: Meter, streams: f64) -> Result<u64, Error> {
    let mut exchanges = connected(meter, streams as usize)?;
    exchanges.pair().meter.switch(true);
    exchanges.hold(streams as usize)?;
    exchanges.pass(REST)?;
    Ok(streams as u64)
}
