//! FlEC (Michel 2022): one loop for all applications, in which two functions decide at each free slot
//! between new data and redundancy.
//!
//! Algorithm 1 asks the pattern first (`FECPattern()`): whether a repair symbol goes although no loss
//! is known. Then it compares the number of symbols that the peer misses (`md`, [`View::missing`]) with the
//! repair symbols in flight (`ad`, [`View::added`]): one more goes if `1 - loss - md / ad` is below the
//! threshold (`ds()`). Otherwise new data does. So lost data is sent again as a repair symbol, which mends
//! whichever symbol of its span is missing when it arrives.
//!
//! | policy | `ds()` | `FECPattern()` (Table II) |
//! |---|---|---|
//! | [`SrArq`] | `-loss` | never |
//! | [`AcRlnc`] | `c * loss` | once per round trip |
//! | [`Bulk`] | `-loss` | when all data is sent |
//! | [`Buffer`] | `c * loss` | Algorithm 2 |
//! | [`Messages`] | `-loss` | Algorithm 4 |
//!
//! The pair is a [`FlecRules`], which any crate can implement.
//!
//! Where the paper and its implementation differ, the paper is followed in this: `ad` counts only repair
//! symbols in flight, the pattern is asked first after every kind of feedback, recovered packets count as
//! lost, and every repair symbol stays within the congestion window. The implementation is followed in that a
//! repair symbol which has arrived counts against `md` even before it could recover anything: two losses take
//! two repair symbols, and the first to arrive need not be sent again.
//!
//! Neither is followed in the span of a repair symbol for a known loss. The implementation covers only the
//! lost symbol, the paper the whole window. Here the span ends with the newest known loss: the repair symbol
//! mends any known loss, and does not wait for losses that are not known yet.
//!
//! A queue that drops many packets at once drops many of the repair symbols that replace them, too. So
//! with a controller that fills the queue, these policies send more than plain retransmission does.
//!
//! [`View::missing`]: sutura_proto::policy::View::missing
//! [`View::added`]: sutura_proto::policy::View::added

#[cfg(feature = "conformance")]
mod conformance;
mod foresight;
mod last_flight;
mod last_moment;
mod literal;
mod loss_factor;
mod rules;
#[cfg(test)]
mod tests;

pub use ac_rlnc::AcRlnc;
pub use buffer::Buffer;
pub use bulk::Bulk;
#[cfg(feature = "conformance")]
pub use conformance::conformance;
pub use last_flight::LastFlight;
pub use loss_factor::LossFactor;
pub use messages::Messages;
pub use rules::{Flec, FlecRules};
pub use sr_arq::SrArq;

use sutura_proto::policy::RedundancyFactory;
use sutura_schedule::policies;

policies! {
    /// The policies, in the order in which they are listed.
    pub(crate) const POLICIES: dyn RedundancyFactory = [sr_arq, ac_rlnc, bulk, buffer, messages];
}
