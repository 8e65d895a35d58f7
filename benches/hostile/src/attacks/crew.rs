//! A number of connections that are kept open.

use crate::fleet::Fleet;
use crate::puppet::State;
use std::time::{Duration, Instant};
use sutura_benches::Error;

/// Handshakes under way at a time: fewer than a server allows one address.
const OPENING: usize = 64;
/// A handshake that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(5);

/// A fixed number of connections, each of which is replaced when it ends.
pub struct Crew {
    size: usize,
    members: Vec<usize>,
}

impl Crew {
    pub fn new(size: usize) -> Self {
        Self { size, members: Vec::new() }
    }

    /// How many connections the crew is to have.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Lets the crew have `more` further connections.
    pub fn grow(&mut self, more: usize) {
        self.size += more;
    }

    /// Opens the missing connections; returns the connections.
    pub fn tend(&mut self, fleet: &mut Fleet, now: Instant) -> Result<Vec<usize>, Error> {
        self.members.retain(|&at| {
            let over = fleet.puppet(at).is_none_or(|puppet| match puppet.state {
                State::Handshake => now - puppet.opened_at > PATIENCE,
                State::Established => false,
                State::Closed(_) => true,
            });
            if over {
                fleet.forget(at);
            }
            !over
        });
        if self.members.len() < self.size {
            let mut opening = fleet.opening();
            while self.members.len() < self.size && opening < OPENING {
                self.members.push(fleet.open(now)?);
                opening += 1;
            }
        }
        Ok(self.members.clone())
    }

    /// Leaves a connection, so that another takes its place.
    pub fn leave(&mut self, fleet: &mut Fleet, at: usize) {
        self.members.retain(|member| *member != at);
        fleet.forget(at);
    }
}
