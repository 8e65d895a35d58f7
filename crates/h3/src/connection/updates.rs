//! Priorities of requests that have not arrived yet, and of responses that were handed to the
//! transport completely (RFC 9218 sections 7.2 and 8).

use std::collections::{BTreeMap, VecDeque};

use sutura_proto::StreamId;
use sutura_schedule::Extension;

use crate::priority::PriorityParameters;

/// Most requests whose priority is remembered before they arrive. Those with the lowest identifiers
/// are kept.
pub const MAX_PRIORITY_UPDATES: usize = 64;

/// Most responses handed to the transport whose `priority` field is remembered. The latest are
/// kept.
pub const MAX_PRIORITY_OVERRIDES: usize = 128;

/// The newest priority for each of a bounded number of requests, those with the lowest identifiers.
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

/// What the server itself says of a response's priority.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// The `priority` field of the response.
    pub(super) parameters: PriorityParameters,
    /// What it tells its scheduler besides.
    pub(super) extension: Option<Extension>,
}

/// What the server says of the latest responses, for updates that arrive while the transport still
/// sends them.
#[derive(Debug, Default)]
pub(super) struct Overrides {
    own: BTreeMap<StreamId, Own>,
    /// Their streams, oldest first.
    order: VecDeque<StreamId>,
}

impl Overrides {
    /// Remembers what the server says of the response on `id`, if anything.
    pub(super) fn insert(&mut self, id: StreamId, own: Own) {
        if own == Own::default() {
            return;
        }
        if self.order.len() >= MAX_PRIORITY_OVERRIDES
            && let Some(oldest) = self.order.pop_front()
        {
            self.own.remove(&oldest);
        }
        self.own.insert(id, own);
        self.order.push_back(id);
    }

    /// The client's wish for the response on `id`, overridden by what the server says.
    pub(super) fn apply(&self, id: StreamId, client: PriorityParameters) -> Own {
        let Some(Own { parameters, extension }) = self.own.get(&id) else {
            return Own { parameters: client, extension: None };
        };
        Own { parameters: client.overridden_by(parameters), extension: extension.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_responses_keeps_the_latest_overrides() {
        let urgency = |u| PriorityParameters { urgency: Some(u), ..PriorityParameters::default() };
        let own = |u, extension| Own { parameters: urgency(u), extension };
        let known = Some(Extension::new(7));
        let mut overrides = Overrides::default();
        for id in 0..10_000 {
            overrides.insert(StreamId(id * 8), own(1, known.clone()));
            overrides.insert(StreamId(id * 8 + 4), Own::default());
        }
        assert_eq!(overrides.own.len(), MAX_PRIORITY_OVERRIDES);
        assert_eq!(overrides.order.len(), MAX_PRIORITY_OVERRIDES);
        let apply = |id| overrides.apply(StreamId(id), urgency(5));
        assert_eq!(apply(0), own(5, None));
        assert_eq!(apply(9_999 * 8), own(1, known));
        assert_eq!(apply(9_999 * 8 + 4), own(5, None));
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
