//! Priorities of requests that have not arrived yet, and of responses that were handed to the
//! transport completely (RFC 9218 sections 7.2 and 8).

use std::collections::{BTreeMap, VecDeque};

use sutura_proto::StreamId;

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

/// The `priority` fields of the latest responses, for updates that arrive while the transport still
/// sends them.
#[derive(Debug, Default)]
pub(super) struct Overrides {
    parameters: BTreeMap<StreamId, PriorityParameters>,
    /// Their streams, oldest first.
    order: VecDeque<StreamId>,
}

impl Overrides {
    /// Remembers the `priority` field of the response on `id`, if it has one.
    pub(super) fn insert(&mut self, id: StreamId, parameters: PriorityParameters) {
        if parameters == PriorityParameters::default() {
            return;
        }
        if self.order.len() >= MAX_PRIORITY_OVERRIDES
            && let Some(oldest) = self.order.pop_front()
        {
            self.parameters.remove(&oldest);
        }
        self.parameters.insert(id, parameters);
        self.order.push_back(id);
    }

    /// The client's wish for the response on `id`, overridden by the response's own field.
    pub(super) fn apply(&self, id: StreamId, client: &PriorityParameters) -> PriorityParameters {
        self.parameters.get(&id).map_or_else(|| client.clone(), |own| client.overridden_by(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_responses_keeps_the_latest_overrides() {
        let urgency = |u| PriorityParameters { urgency: Some(u), ..PriorityParameters::default() };
        let mut overrides = Overrides::default();
        for id in 0..10_000 {
            overrides.insert(StreamId(id * 8), urgency(1));
            overrides.insert(StreamId(id * 8 + 4), PriorityParameters::default());
        }
        assert_eq!(overrides.parameters.len(), MAX_PRIORITY_OVERRIDES);
        assert_eq!(overrides.apply(StreamId(0), &urgency(5)), urgency(5));
        assert_eq!(overrides.apply(StreamId(9_999 * 8), &urgency(5)), urgency(1));
        assert_eq!(overrides.apply(StreamId(9_999 * 8 + 4), &urgency(5)), urgency(5));
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
