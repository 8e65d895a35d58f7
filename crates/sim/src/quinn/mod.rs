//! quinn-proto as a node of the simulator, to run beside our own transport.
//!
//! Its connections use the handshake and the packet protection of [`sutura_proto::crypto::null`],
//! as in our own scenarios, or TLS, where a test configures that. Without TLS, a run depends on its seed
//! alone, except that quinn's BBR draws the phase of its gain cycle from the operating system.

mod connection;
mod crypto;
mod host;

pub use connection::QuinnConnection;
pub use crypto::{null_client, null_server};
pub use host::{QuinnAccept, QuinnHost};
