//! Other systems than Linux have no rights that could be kept without root.

use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub struct UserArgs {}

/// What a tunnel still needs root's rights for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// A TUN device, and routes to it.
    pub device: bool,
    /// Ports below 1024.
    pub low_ports: bool,
}

impl UserArgs {
    /// Never.
    pub fn give_up_root(&self, _: Needs) -> Result<(), Failure> {
        Ok(())
    }
}
