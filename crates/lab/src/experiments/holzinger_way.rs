//! How the objects and streams of Holzinger et al. (2025, section V-B) travel: as plain streams, or as
//! responses of HTTP/3 as in the paper.

use std::time::Duration;

use sutura_h3::{Priority, PriorityParameters};
use sutura_proto::{TransportConfig, registry};
use sutura_sim::{BulkOutcome, Scenario, StreamOutcome, StreamPlan};

use super::holzinger_stream::Steady;
use super::paper_path::{protection, transport};
use crate::Error;
use crate::web::{Carried, Http};

/// The protocol that carries the bytes, and its sender's reaction to loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Whether the bytes are responses of HTTP/3, rather than streams of QUIC.
    pub http: bool,
    /// The congestion controller.
    pub congestion: &'static str,
    /// The reaction to loss.
    pub reaction: &'static str,
}

impl Way {
    /// The way of the other experiments.
    pub const STREAMS: Self = Self { http: false, congestion: "bbr", reaction: "hold-for-repair" };
    /// The same over HTTP/3.
    pub const HTTP: Self = Self { http: true, ..Self::STREAMS };
    /// As the paper has it: every loss counts, and is mended at once.
    pub const PAPER: Self =
        Self { http: true, congestion: "bbr:floor=off", reaction: "resend-at-once" };

    pub(super) fn transport(self) -> Result<TransportConfig, Error> {
        Ok(transport()
            .with_congestion(registry::congestion().find(self.congestion)?)
            .with_loss_reaction(registry::loss_reactions().find(self.reaction)?))
    }

    pub(super) const fn carrier(self) -> &'static str {
        if self.http { "HTTP/3" } else { "streams" }
    }

    /// Makes the transfers of a scenario, each with `burst` repair symbols at its end.
    pub(super) fn transfers(
        self,
        scenario: Scenario,
        burst: u32,
        delay: Duration,
    ) -> Result<BulkOutcome, Error> {
        let scenario = scenario.transport(&self.transport()?);
        if !self.http {
            return Ok(scenario.protect(protection(burst, delay, false)).run()?);
        }
        let priority = priority(burst, delay, false)?;
        let client = |client| Carried::client(client, priority);
        Ok(scenario.run_within(client, Carried::server, Http::carried)?)
    }

    /// Streams the messages of a scenario, protected as `setup` says.
    pub(super) fn stream(
        self,
        scenario: Scenario,
        setup: &Steady,
        plan: StreamPlan,
    ) -> Result<StreamOutcome, Error> {
        let scenario = scenario.transport(&self.transport()?);
        if !self.http {
            return Ok(scenario.stream(StreamPlan { protection: setup.protection()?, ..plan })?);
        }
        let priority = priority(setup.burst.unwrap_or(0), setup.delay, true)?;
        let client = |client| Carried::client(client, priority);
        Ok(scenario.stream_within(plan, client, Carried::server, Http::carried)?)
    }
}

/// A request's priority, in the form of its field.
fn priority(burst: u32, delay: Duration, incremental: bool) -> Result<Priority, Error> {
    let i = if incremental { "i, " } else { "" };
    let text = format!("u=3, {i}exp_b={burst}, exp_d={}", delay.as_millis());
    let parameters = text.parse::<PriorityParameters>();
    let wrong = |error| Error::Priority { name: "holzinger-http", error };
    Ok(parameters.map_err(wrong)?.resolve())
}
