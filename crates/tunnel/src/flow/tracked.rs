//! One flow, as it is sent.

use std::time::Instant;

use super::class::Class;
use super::hint::hint;
use super::info::FlowInfo;
use super::recogniser::Recogniser;
use super::rule::Changes;
use super::rules::Rules;
use super::treatment::Treatment;
use crate::access::Transport;

/// One flow: its class, and how what it carries is sent. Whoever passes on a packet tells it of that, in both
/// directions.
#[derive(Debug, Clone)]
pub struct Flow {
    changes: Changes,
    /// `None` if a rule names the class.
    recogniser: Option<Recogniser>,
    class: Class,
    treatment: Treatment,
}

impl Flow {
    /// A flow that has carried nothing yet.
    #[must_use]
    pub fn new(rules: &Rules, info: &FlowInfo) -> Self {
        let changes = rules.find(info).cloned().unwrap_or_default();
        let recogniser = match changes.class {
            Some(_) => None,
            None if info.transport == Transport::Tcp => Some(Recogniser::for_stream(hint(info))),
            None => Some(Recogniser::for_packets(hint(info))),
        };
        let by_itself = recogniser.as_ref().map_or(Class::Interactive, Recogniser::class);
        let class = changes.class.unwrap_or(by_itself);
        let treatment = Treatment::of(class).with(&changes);
        Self { changes, recogniser, class, treatment }
    }

    /// A packet of this size, or a piece of a stream, comes from here and is about to be sent. Returns how.
    pub fn sent(&mut self, now: Instant, size: usize) -> &Treatment {
        if let Some(recogniser) = &mut self.recogniser {
            let class = recogniser.observe(now, size);
            self.set(class);
        }
        &self.treatment
    }

    /// A packet of this size, or a piece of a stream, came from the other end.
    pub fn received(&mut self, now: Instant, size: usize) {
        if let Some(recogniser) = &mut self.recogniser {
            let class = recogniser.observe_other(now, size);
            self.set(class);
        }
    }

    fn set(&mut self, class: Class) {
        if self.class != class {
            self.class = class;
            self.treatment = Treatment::of(class).with(&self.changes);
        }
    }

    /// Its class at present.
    #[must_use]
    pub fn class(&self) -> Class {
        self.class
    }

    /// How what it carries is sent at present.
    #[must_use]
    pub fn treatment(&self) -> &Treatment {
        &self.treatment
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn flow(rules: &str, port: u16) -> Flow {
        let info = FlowInfo::to(Transport::Udp, ([192, 0, 2, 1], port).into());
        Flow::new(&Rules::parse(rules).unwrap(), &info)
    }

    /// Sends a lot of packets of one size, without pauses.
    fn flood(flow: &mut Flow) -> Class {
        let start = Instant::now();
        (0..2000).for_each(|n| {
            flow.sent(start + Duration::from_millis(n), 1252);
        });
        flow.class()
    }

    #[test]
    fn a_rule_goes_before_what_packets_look_like() {
        let mut named = flow("udp:7 real-time", 7);
        assert_eq!(flood(&mut named), Class::RealTime);
        let mut other = flow("udp:7 real-time", 8);
        assert_eq!(other.class(), Class::Interactive);
        assert_eq!(flood(&mut other), Class::Bulk);
        assert_eq!(other.treatment(), &Treatment::of(Class::Bulk));
    }

    #[test]
    fn what_a_rule_changes_stays_changed_in_another_class() {
        let mut flow = flow("udp u=2", 7);
        assert_eq!(flow.treatment().urgency, 2);
        flood(&mut flow);
        assert_eq!(flow.treatment().urgency, 2);
        assert_eq!(flow.treatment().deadline, Treatment::of(Class::Bulk).deadline);
    }

    #[test]
    fn a_hint_is_where_a_flow_begins() {
        assert_eq!(flow("", 3478).class(), Class::RealTime);
        assert_eq!(flood(&mut flow("", 3478)), Class::Bulk);
    }
}
