//! The session ticket with which a client resumes.

use s2n_tls::callbacks::{ConnectionFuture, SessionTicket, SessionTicketCallback};
use s2n_tls::config::ConnectionInitializer;
use s2n_tls::connection::Connection;
use s2n_tls::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::watch;

/// The newest ticket, shared by all connections.
#[derive(Clone)]
pub struct Tickets(Arc<watch::Sender<Option<Vec<u8>>>>);

impl Tickets {
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }

    /// Waits until there is a ticket.
    pub async fn came(&self) {
        // This cannot fail: the sender lives as long as `self`.
        self.0.subscribe().wait_for(Option::is_some).await.ok();
    }
}

impl SessionTicketCallback for Tickets {
    fn on_session_ticket(&self, _connection: &mut Connection, ticket: &SessionTicket) {
        let data = ticket.len().and_then(|len| {
            let mut data = vec![0; len];
            ticket.data(&mut data).map(|()| data)
        });
        match data {
            Ok(data) => drop(self.0.send_replace(Some(data))),
            Err(error) => eprintln!("s2n-quic: a session ticket: {error}"),
        }
    }
}

impl ConnectionInitializer for Tickets {
    fn initialize_connection(
        &self,
        connection: &mut Connection,
    ) -> Result<Option<Pin<Box<dyn ConnectionFuture>>>, Error> {
        if let Some(ticket) = &*self.0.borrow() {
            connection.set_session_ticket(ticket)?;
        }
        Ok(None)
    }
}
