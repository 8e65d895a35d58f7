//! Pages over HTTP/3 in the simulator: a client that loads a list of requests, a server that
//! generates the responses, and a count of the bytes that erasure coding protects.

mod carried;
mod client;
mod coverage;
mod ideal;
mod load;
mod news;
mod pages;
mod server;

pub use carried::{Carried, Exchanges};
pub use client::{Arrival, Client, Request};
pub use coverage::{Coverage, StreamBytes};
pub use ideal::{Phase, ideal};
pub use load::{PageLoad, load};
pub use pages::load_over;
pub use server::{Reply, Server};

use std::fmt::Display;
use std::time::Instant;

use sutura_h3 as h3;
use sutura_proto as quic;
use sutura_proto::StreamEvent;
use sutura_sim::{App, AppError, Quic};

/// HTTP/3 and the transport below it, for as long as an [`End`] is called.
pub struct Session<'a> {
    http: &'a mut h3::Connection,
    quic: h3::Quic<'a>,
}

/// An end of HTTP/3, as an application that [`Http`] runs.
pub trait End: 'static {
    /// Handles an event of HTTP/3.
    ///
    /// # Errors
    /// The event is not one that this end expects.
    fn on_event(&mut self, session: &mut Session<'_>, event: h3::Event) -> Result<(), AppError>;

    /// Called after all events. Returns when to call it again if no event happens before.
    ///
    /// # Errors
    /// HTTP/3 refuses a call.
    fn poll(&mut self, session: &mut Session<'_>) -> Result<Option<Instant>, AppError>;
}

/// How both ends use HTTP/3: without dynamic tables, so that the size of a message does not depend on earlier
/// messages.
fn config() -> h3::Config {
    h3::Config::without_dynamic_table()
}

/// HTTP/3 on a simulated connection. It starts when the handshake is complete.
pub struct Http<E> {
    connection: h3::Connection,
    early: bool,
    end: E,
}

impl<E> Http<E> {
    const fn new(connection: h3::Connection, end: E) -> Self {
        Self { connection, early: false, end }
    }

    /// Starts before the handshake is complete, so that a server sends its SETTINGS a round trip
    /// earlier (RFC 9114, section 7.2.4.2).
    #[must_use]
    pub fn early(self) -> Self {
        Self { early: true, ..self }
    }
}

impl<E: End> App<quic::Connection> for Http<E> {
    fn on_event(
        &mut self,
        _: Instant,
        _: &mut quic::Connection,
        event: quic::Event,
    ) -> Result<(), AppError> {
        let http = &mut self.connection;
        // HTTP/3 polls for other events of streams itself, and nothing is sent in 0-RTT.
        match event {
            quic::Event::Stream(StreamEvent::Readable { id }) => http.readable(id),
            quic::Event::Stream(StreamEvent::Writable { id }) => http.writable(id),
            quic::Event::Stream(StreamEvent::Stopped { id, code }) => {
                http.stopped(id, h3::Code(code));
            }
            _ => {}
        }
        Ok(())
    }

    fn poll(
        &mut self,
        now: Instant,
        connection: &mut quic::Connection,
    ) -> Result<Option<Instant>, AppError> {
        if !self.early && !connection.is_established() {
            return Ok(None);
        }
        let mut session =
            Session { http: &mut self.connection, quic: h3::Quic { now, connection } };
        session.http.process(&mut session.quic).map_err(|error| unexpected("HTTP/3", error))?;
        while let Some(event) = session.http.poll_event() {
            self.end.on_event(&mut session, event)?;
        }
        self.end.poll(&mut session)
    }
}

fn unexpected(what: &str, why: impl Display) -> AppError {
    AppError(format!("{what}: {why}"))
}
