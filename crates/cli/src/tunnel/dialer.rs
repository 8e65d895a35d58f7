//! Connects to proxies.

use sutura_tunnel::client::{Dial, DialError, Dialled, Dialling, Notices};

use super::known_proxy::KnownProxy;
use crate::connect::Connector;
use crate::failure::Exit;
use crate::monitor::Monitor;
use crate::output;

/// The proxies of a tunnel, in the order in which they are tried.
#[derive(Debug)]
pub struct Dialer {
    pub connector: Connector,
    pub proxies: Vec<KnownProxy>,
    /// Shows the connections, if there is one.
    pub monitor: Option<Monitor>,
}

impl Dial for Dialer {
    fn proxies(&self) -> usize {
        self.proxies.len()
    }

    fn dial(&self, proxy: usize) -> Dialling<'_> {
        Box::pin(async move {
            let KnownProxy { authority, udp } = self
                .proxies
                .get(proxy)
                .ok_or_else(|| DialError { message: "there is no proxy".into(), is_final: true })?;
            let connection =
                self.connector.connect(authority).await.map_err(|failure| DialError {
                    is_final: matches!(failure.exit, Exit::Certificate | Exit::Usage),
                    message: failure.message,
                })?;
            if let Some(monitor) = &self.monitor {
                monitor.follow(&connection);
            }
            Ok(Dialled { connection, authority: authority.to_string(), udp: udp.clone() })
        })
    }
}

/// Tells the user.
#[derive(Debug)]
pub struct Terminal;

impl Notices for Terminal {
    fn note(&self, text: &str) {
        output::note(text);
    }

    fn complain(&self, text: &str) {
        output::complain(text);
    }
}
