//! The model of a page load: the resources, their sizes, and the cause of each request.

use std::time::Duration;

#[cfg(test)]
use sutura_research::marx::Kind;
use sutura_research::marx::Resource;

use super::requests::Requests;

/// When a resource is requested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trigger {
    /// This long after the start.
    Start(Duration),
    /// When this share, 0 to 1, of the resource with this index has arrived.
    During(usize, f64),
    /// This long after the resource with this index is complete.
    After(usize, Duration),
}

/// A resource of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct PageResource {
    /// The size of its response.
    pub bytes: u64,
    /// The properties that the schemes know.
    pub resource: Resource,
    /// When it is requested.
    pub trigger: Trigger,
}

/// A page load.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Its name in the corpus.
    pub id: String,
    /// A trigger only names resources before its own.
    pub resources: Vec<PageResource>,
}

impl Page {
    /// Bytes of all resources.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.resources.iter().map(|r| r.bytes).sum()
    }

    /// The state of a client at the beginning of the load.
    #[must_use]
    pub fn requests(&self) -> Requests {
        Requests::new(self.resources.iter().map(|resource| (resource.bytes, resource.trigger)))
    }
}

#[cfg(test)]
impl Page {
    /// A page of resources about which no more is known than kind, size and trigger.
    pub(crate) fn of(resources: &[(Kind, u64, Trigger)]) -> Self {
        let resource = |&(kind, bytes, trigger): &(Kind, u64, Trigger)| PageResource {
            bytes,
            resource: Resource { kind, ..Resource::default() },
            trigger,
        };
        Self { id: String::new(), resources: resources.iter().map(resource).collect() }
    }
}
