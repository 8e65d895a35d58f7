//! What users bring to experiments: their paths, their traces and their policies. Those from a crate of their own are added to
//! [`Options`](crate::Options) by a program of theirs; `examples/own-policies` has one.

use std::sync::Arc;

use sutura_analysis::{StreamFrame, Trace};
use sutura_link::LinkConfig;
use sutura_proto::policy::RedundancyFactory;

use crate::link_trace::{LinkTraceError, read_link};

/// What separates the way to the client from the way back in the description of a path.
const BACK: &str = " | back ";

/// A path that somebody describes.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnPath {
    /// The description.
    pub text: String,
    /// From the client to the server.
    pub up: LinkConfig,
    /// From the server, which sends most, to the client.
    pub down: LinkConfig,
}

impl OwnPath {
    /// Reads the description of a link in both directions, or of the way to the client and of the way back:
    /// `rate=20mbit delay=30ms loss=bern:1% | back rate=2mbit delay=30ms`. Links may name files of traces, as for
    /// [`read_link`].
    ///
    /// # Errors
    /// A file cannot be read, or a description is wrong.
    pub fn read(text: &str) -> Result<Self, LinkTraceError> {
        let (down, up) = text.split_once(BACK).unwrap_or((text, text));
        let [down, up] = [read_link(down)?, read_link(up)?];
        Ok(Self { text: text.to_owned(), up, down })
    }
}

/// A connection that somebody recorded as qlog.
#[derive(Clone, Debug)]
pub struct OwnTrace {
    /// What it is called in tables and plots.
    pub name: String,
    /// What one end recorded.
    pub trace: Arc<Trace>,
    /// The STREAM frames that the other end sent, in order, if its record is there; empty if they are to be
    /// estimated from the order of the packets.
    pub order: Arc<[StreamFrame]>,
}

/// Policies of one's own, which experiments find by their names before they look among those that are built in.
#[derive(Clone, Debug, Default)]
pub struct OwnPolicies {
    redundancy: Vec<Arc<dyn RedundancyFactory>>,
}

impl OwnPolicies {
    /// The same with a redundancy policy.
    #[must_use]
    pub fn with_redundancy(mut self, policy: impl RedundancyFactory + 'static) -> Self {
        self.redundancy.push(Arc::new(policy));
        self
    }

    /// The redundancy policy of this name.
    pub(crate) fn redundancy(&self, name: &str) -> Option<Arc<dyn RedundancyFactory>> {
        self.redundancy.iter().find(|policy| policy.name() == name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_have_another_way_back() {
        let same = OwnPath::read("rate=1mbit delay=5ms").unwrap();
        assert_eq!(same.up, same.down);
        let other = OwnPath::read("rate=1mbit delay=5ms | back delay=9ms").unwrap();
        assert_eq!((other.down, other.up.rate), (same.down, None));
        assert_eq!(other.up.delay.as_millis(), 9);
        for wrong in ["delay=5", "delay=5ms | back loss", "trace=@/nowhere"] {
            assert!(OwnPath::read(wrong).is_err(), "{wrong}");
        }
    }
}
