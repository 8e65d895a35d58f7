//! Who a client is.

use std::fmt;
use std::sync::Arc;

/// A client, as far as its rights and limits go: the name of its token or certificate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity(pub Arc<str>);

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
