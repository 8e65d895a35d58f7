//! The state of a scheduler as its caller knows it.

use std::collections::BTreeMap;

use super::Call;
use crate::{Priority, StreamKey, Urgency};

/// The state of the streams as derived from the calls alone: their priorities, and which of them
/// are active.
#[derive(Clone, Debug, Default)]
pub struct Known(BTreeMap<StreamKey, (Priority, bool)>);

impl Known {
    /// A call was made.
    pub fn note(&mut self, call: &Call) {
        match call.clone() {
            Call::Insert(stream, priority) => {
                self.0.entry(stream).or_insert((Priority::default(), false)).0 = priority;
            }
            Call::Remove(stream) => {
                self.0.remove(&stream);
            }
            Call::Reprioritize(stream, priority) => {
                if let Some(entry) = self.0.get_mut(&stream) {
                    entry.0 = priority;
                }
            }
            Call::Activate(stream) | Call::Deactivate(stream) => {
                if let Some(entry) = self.0.get_mut(&stream) {
                    entry.1 = matches!(call, Call::Activate(_));
                }
            }
            Call::Serve { .. } | Call::Charge(..) | Call::Window(_) | Call::Rest => {}
        }
    }

    /// The inserted streams, their priorities and whether they are active.
    pub fn streams(&self) -> impl Iterator<Item = (StreamKey, &Priority, bool)> {
        self.0.iter().map(|(&stream, (priority, active))| (stream, priority, *active))
    }

    /// The active streams and their priorities.
    pub fn active(&self) -> impl Iterator<Item = (StreamKey, &Priority)> {
        let active = self.streams().filter(|(_, _, active)| *active);
        active.map(|(stream, priority, _)| (stream, priority))
    }

    pub(super) fn has_active_control(&self) -> bool {
        self.active().any(|(_, priority)| is_control(priority))
    }

    pub(super) fn contains(&self, stream: StreamKey) -> bool {
        self.0.contains_key(&stream)
    }

    pub(super) fn is_active(&self, stream: StreamKey) -> bool {
        self.0.get(&stream).is_some_and(|entry| entry.1)
    }

    pub(super) fn is_control(&self, stream: StreamKey) -> bool {
        self.0.get(&stream).is_some_and(|(priority, _)| is_control(priority))
    }
}

fn is_control(priority: &Priority) -> bool {
    priority.urgency == Urgency::CONTROL
}
