//! A flow of TCP at either end of a tunnel: bytes both ways between a socket and an exchange of HTTP/3, with the end of
//! each direction of its own, and resets.
//!
//! A flow that can be *resumed* outlives the connection that carries it. Each end keeps what it has sent until the
//! other end's program has taken it, and sends it again on the next connection from where that program has come to.

mod carry;
mod kept;
mod ledger;
mod pool;

pub(crate) use carry::{Ending, Pipe, PipeAtRest};
pub(crate) use kept::{Kept, KeptAtRest};
pub(crate) use ledger::Ledger;
pub(crate) use pool::Pool;

pub use kept::{FLOW_RESERVE, MAX_KEPT_BY_FLOW};
pub use ledger::{PROGRESS_BYTES, PROGRESS_DELAY, SMALL_PROGRESS_BYTES, SMALL_PROGRESS_DELAY};
