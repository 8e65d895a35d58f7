//! Does a policy keep the contract of its trait? A function for each seam, to be called from the
//! tests of whoever writes a policy; it panics, with what was wrong, if the answer is no.

mod delivery;

pub use delivery::delivery;
