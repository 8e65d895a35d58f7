//! Priorities of requests that have not arrived yet, and of responses that were handed to the
//! transport completely (RFC 9218 sections 7.2 and 8).

use std::collections::{BTreeMap, VecDeque};

use sutura_proto::{Priority as StreamPriority, StreamId};
use sutura_schedule::Extension;

use crate::priority::PriorityParameters;

/// Most requests whose priority is remembered before they arrive. Requests with the lowest identifiers are
/// kept.
pub const MAX_PRIORITY_UPDATES: usize = 64;

/// Most responses handed to the transport whose `priority` field is remembered. The latest are
/// kept.
pub const MAX_PRIORITY_OVERRIDES: usize = 128;

/// The newest priority for each of a bounded number of requests with the lowest identifiers.
#[derive(Debug, Default)]
pub(super) struct PriorityUpdates {
    parameters: BTreeMap<StreamId, PriorityParameters>,
}

impl PriorityUpdates {
    pub(super) fn insert(&mut self, id: StreamId, parameters: PriorityParameters) {
        self.parameters.insert(id, parameters);
        if self.parameters.len() > MAX_PRIORITY_UPDATES {
            self.parameters.pop_last();
        }
    }

    pub(super) fn remove(&mut self, id: StreamId) -> Option<PriorityParameters> {
        self.parameters.remove(&id)
    }
}

/// All statements about a response's priority.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// The client's wishes.
    pub(super) client: PriorityParameters,
    /// The `priority` field of the response.
    pub(super) server: PriorityParameters,
    /// The server's additional information for its scheduler.
    pub(super) extension: Option<Extension>,
}

impl Said {
    /// Whether the server gave the response a priority or an extension.
    pub(super) fn is_of_server(&self) -> bool {
        self.server != PriorityParameters::default() || self.extension.is_some()
    }

    /// The parameters that result.
    pub(super) fn parameters(&self) -> PriorityParameters {
        self.client.overridden_by(&self.server)
    }

    /// The priority of the response's stream.
    pub(super) fn of_stream(&self) -> StreamPriority {
        self.parameters().resolve().of_stream(self.extension.clone())
    }
}

/// The priorities of the latest responses that a server gave a priority or an extension, for changes while
/// the transport still sends them.
#[derive(Debug, Default)]
pub(super) struct Overrides {
    said: BTreeMap<StreamId, Said>,
    /// Their streams, oldest first.
    order: VecDeque<StreamId>,
}

impl Overrides {
    /// Remembers the priority of the response on `id`, to which the server gave a priority or an extension.
    pub(super) fn insert(&mut self, id: StreamId, said: Said) {
        if self.order.len() >= MAX_PRIORITY_OVERRIDES
            && let Some(oldest) = self.order.pop_front()
        {
            self.said.remove(&oldest);
        }
        self.said.insert(id, said);
        self.order.push_back(id);
    }

    /// Takes a new wish of the client for the response on `id`, and returns all statements about its
    /// priority.
    pub(super) fn update(&mut self, id: StreamId, client: PriorityParameters) -> Said {
        match self.said.get_mut(&id) {
            Some(said) => {
                said.client = client;
                said.clone()
            }
            None => Said { client, ..Said::default() },
        }
    }

    /// Takes the server's additional information about the response on `id`, and returns all statements about
    /// its priority; `None` if it is not remembered.
    pub(super) fn extend(&mut self, id: StreamId, extension: Option<Extension>) -> Option<&Said> {
        let said = self.said.get_mut(&id)?;
        said.extension = extension;
        Some(said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_responses_keeps_the_latest_overrides() {
        let urgency = |u| PriorityParameters { urgency: Some(u), ..PriorityParameters::default() };
        let said = |extension| Said { server: urgency(1), extension, ..Said::default() };
        let known = Some(Extension::new(7));
        let mut overrides = Overrides::default();
        for id in 0..10_000 {
            overrides.insert(StreamId(id * 8), said(known.clone()));
        }
        assert_eq!(overrides.said.len(), MAX_PRIORITY_OVERRIDES);
        assert_eq!(overrides.order.len(), MAX_PRIORITY_OVERRIDES);
        let mut update = |id| overrides.update(StreamId(id), urgency(5));
        assert_eq!(update(0).parameters(), urgency(5));
        assert_eq!(update(9_999 * 8).parameters(), urgency(1));
        assert_eq!(update(9_999 * 8).extension, known);
        assert_eq!(update(9_999 * 8 + 4).parameters(), urgency(5));
        assert!(said(None).is_of_server() && said(known.clone()).is_of_server());
        assert!(!Said { client: urgency(2), ..Said::default() }.is_of_server());
        assert_eq!(overrides.said.len(), MAX_PRIORITY_OVERRIDES);
        assert!(overrides.extend(StreamId(0), None).is_none());
        let latest = overrides.extend(StreamId(9_999 * 8), None);
        assert_eq!(latest, Some(&Said { client: urgency(5), ..said(None) }));
    }

    #[test]
    fn a_flood_keeps_the_lowest_ids_and_their_newest_values() {
        let urgency = |u| PriorityParameters { urgency: Some(u), ..PriorityParameters::default() };
        let mut updates = PriorityUpdates::default();
        for round in 0..3 {
            for id in 0..10_000 {
                // In ascending or descending order.
                let id = if round == 1 { 9_999 - id } else { id };
                updates.insert(StreamId(id * 4), urgency(round));
                assert!(updates.parameters.len() <= MAX_PRIORITY_UPDATES);
            }
        }
        assert_eq!(updates.parameters.len(), MAX_PRIORITY_UPDATES);
        assert_eq!(updates.remove(StreamId(0)), Some(urgency(2)));
        assert_eq!(updates.remove(StreamId(0)), None);
        assert_eq!(updates.remove(StreamId(4 * MAX_PRIORITY_UPDATES as u64)), None);
    }
}
