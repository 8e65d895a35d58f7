//! A policy of our own for each seam of Sutura, in a file each.

pub mod congestion;
pub mod delivery;
pub mod flec;
pub mod loss_reaction;
pub mod observer;
pub mod policies;
pub mod redundancy;
pub mod scheduler;
pub mod tally;
