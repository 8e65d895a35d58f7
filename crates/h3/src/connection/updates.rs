//! PRIORITY_UPDATE frames that came before their requests (RFC 9218 section 7.2).

use std::collections::BTreeMap;

use sutura_proto::StreamId;

use crate::priority::PriorityParameters;

/// Requests not yet arrived whose priority is remembered; that of further ones is not.
pub const MAX_PRIORITY_UPDATES: usize = 64;

/// The newest priority for each of a bounded number of requests.
#[derive(Debug, Default)]
pub(super) struct PriorityUpdates {
    parameters: BTreeMap<StreamId, PriorityParameters>,
}

impl PriorityUpdates {
    pub(super) fn insert(&mut self, id: StreamId, parameters: PriorityParameters) {
        if self.parameters.len() < MAX_PRIORITY_UPDATES || self.parameters.contains_key(&id) {
            self.parameters.insert(id, parameters);
        }
    }

    pub(super) fn remove(&mut self, id: StreamId) -> Option<PriorityParameters> {
        self.parameters.remove(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_keeps_the_first_ids_and_their_newest_values() {
        let urgency = |u| PriorityParameters { urgency: Some(u), ..PriorityParameters::default() };
        let mut updates = PriorityUpdates::default();
        for round in 0..3 {
            for id in 0..10_000 {
                updates.insert(StreamId(id * 4), urgency(round));
            }
        }
        assert_eq!(updates.parameters.len(), MAX_PRIORITY_UPDATES);
        assert_eq!(updates.remove(StreamId(0)), Some(urgency(2)));
        assert_eq!(updates.remove(StreamId(0)), None);
        assert_eq!(updates.remove(StreamId(4 * MAX_PRIORITY_UPDATES as u64)), None);
    }
}
