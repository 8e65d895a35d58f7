//! Pages over HTTP/3 in the simulator: a client that loads what a plan says, a server that makes up
//! what it is asked for, and a count of what erasure coding protects.

mod client;
mod coverage;
mod ideal;
mod load;
mod server;

pub use client::{Arrival, Client, Request};
pub use coverage::{Coverage, StreamBytes};
pub use ideal::{Phase, ideal};
pub use load::{PageLoad, load};
pub use server::{Reply, Server};

use std::fmt::Display;
use std::time::Instant;

use sutura_h3 as h3;
use sutura_proto as quic;
use sutura_proto::StreamEvent;
use sutura_sim::{App, AppError, Quic};

/// One end of HTTP/3, as an application that [`Http`] runs.
pub trait End: 'static {
    /// HTTP/3 told this.
    ///
    /// # Errors
    /// The peer does not do what this end expects.
    fn on_event(
        &mut self,
        http: &mut h3::Connection,
        transport: &mut h3::Quic<'_>,
        event: h3::Event,
    ) -> Result<(), AppError>;

    /// All events were told. Returns when to be asked again if nothing happens.
    ///
    /// # Errors
    /// HTTP/3 refuses something.
    fn poll(
        &mut self,
        http: &mut h3::Connection,
        transport: &mut h3::Quic<'_>,
    ) -> Result<Option<Instant>, AppError> {
        let _ = (http, transport);
        Ok(None)
    }
}

/// HTTP/3 on a simulated connection, from the end of the handshake on.
pub struct Http<E> {
    connection: h3::Connection,
    early: bool,
    end: E,
}

impl<E> Http<E> {
    const fn new(connection: h3::Connection, end: E) -> Self {
        Self { connection, early: false, end }
    }

    /// Begins before the end of the handshake, which lets a server send its SETTINGS a round trip
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
        match event {
            quic::Event::Stream(event) => match event {
                StreamEvent::Readable { id } => http.readable(id),
                StreamEvent::Writable { id } => http.writable(id),
                StreamEvent::Stopped { id, code } => http.stopped(id, h3::Code(code)),
                // HTTP/3 looks for these itself.
                StreamEvent::Opened { .. }
                | StreamEvent::Available { .. }
                | StreamEvent::Finished { .. } => {}
            },
            quic::Event::Connected
            | quic::Event::ConnectionLost(_)
            | quic::Event::DatagramReceived => {}
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
        let http = &mut self.connection;
        let transport = &mut h3::Quic { now, connection };
        http.process(transport).map_err(|error| unexpected("HTTP/3", error))?;
        while let Some(event) = http.poll_event() {
            self.end.on_event(http, transport, event)?;
        }
        self.end.poll(http, transport)
    }
}

fn unexpected(what: &str, why: impl Display) -> AppError {
    AppError(format!("{what}: {why}"))
}
