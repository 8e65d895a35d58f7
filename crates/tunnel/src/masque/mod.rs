//! What a proxy is asked, and what it answers, on the wire: CONNECT (RFC 9114 section 4.4), CONNECT-UDP (RFC 9298),
//! CONNECT-IP (RFC 9484), Proxy-Status (RFC 9209), and what Sutura adds for flows that outlive their connection and for listening at
//! the proxy.

mod ask;
mod cause;
mod context;
mod fields;
mod progress;
mod template;

pub use ask::{Ask, BadRequest, accept_path};
pub use cause::Cause;
pub use context::{CONTEXT_BYTES, MAX_UDP_PAYLOAD, read_datagram, write_datagram};
pub use fields::{FLOW, FlowRequest, FlowToken, LISTENING, PEER, Resumed};
pub use progress::{MAX_PROGRESS, PROGRESS, Progress, read_progress, write_progress};
pub use template::{InvalidTemplate, UdpTemplate};

/// The protocol of extended CONNECT that proxies UDP (RFC 9298 section 3.4).
pub const CONNECT_UDP: &str = "connect-udp";
/// The protocol of extended CONNECT that proxies IP packets (RFC 9484 section 4.4).
pub const CONNECT_IP: &str = "connect-ip";
/// The protocol of extended CONNECT by which a client waits for one TCP connection to the proxy.
pub const ACCEPT: &str = "sutura-accept";
/// The protocol of extended CONNECT on which both ends tell how much of their flows was taken.
pub const FLOWS: &str = "sutura-flows";
/// The path of [`FLOWS`].
pub const FLOWS_PATH: &str = "/.well-known/sutura/flows/";
/// The field that shows the client's token (RFC 9110 section 11.7.2).
pub const AUTHORIZATION: &str = "proxy-authorization";
/// The field that says how to authenticate (RFC 9110 section 11.7.1).
pub const AUTHENTICATE: &str = "proxy-authenticate";
/// The field that says why the proxy refuses (RFC 9209).
pub const PROXY_STATUS: &str = "proxy-status";
/// The field that says that the data of an exchange is capsules (RFC 9297 section 3.4).
pub const CAPSULE_PROTOCOL: (&str, &[u8]) = ("capsule-protocol", b"?1");
