//! The choice of the work that is measured.

use sutura_proto::Side;

/// A function that does the given work and measures it.
pub type Gauge = fn(&mut dyn FnMut());

/// Hands the work of one side to a gauge while it is switched on.
#[derive(Debug, Clone, Copy)]
pub struct Meter {
    side: Side,
    gauge: Gauge,
    on: bool,
}

impl Meter {
    /// A meter for the work of this side, switched on.
    pub fn new(side: Side, gauge: Gauge) -> Self {
        Self { side, gauge, on: true }
    }

    /// Switches the meter on or off.
    pub fn switch(&mut self, on: bool) {
        self.on = on;
    }

    /// Does work of a side, through the gauge if the meter is on and for this side.
    pub fn run<R: Default>(&self, side: Side, work: impl FnOnce() -> R) -> R {
        if !self.on || side != self.side {
            return work();
        }
        let (mut work, mut result) = (Some(work), R::default());
        (self.gauge)(&mut || {
            if let Some(work) = work.take() {
                result = work();
            }
        });
        result
    }
}
