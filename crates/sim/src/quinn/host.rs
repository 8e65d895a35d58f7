//! A node that runs quinn-proto: an endpoint, its connections and their applications.

use std::any::Any;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto as quinn;
use sutura_proto::{EcnCodepoint, Transmit};
use sutura_random::Rng;

use super::QuinnConnection;
use crate::{App, AppError, Node};

/// The largest number of datagrams in a batch.
const MAX_BATCH: usize = 10;

/// Creates the application of an accepted connection.
pub type QuinnAccept = Box<dyn FnMut() -> Box<dyn App<QuinnConnection>>>;

struct QuinnGuest {
    connection: QuinnConnection,
    app: Box<dyn App<QuinnConnection>>,
    wake_at: Option<Instant>,
    timeout: Option<Instant>,
    lost: Option<quinn::ConnectionError>,
    failed: Option<AppError>,
}

/// A host that runs quinn-proto.
pub struct QuinnHost {
    endpoint: quinn::Endpoint,
    accept: Option<QuinnAccept>,
    guests: BTreeMap<quinn::ConnectionHandle, QuinnGuest>,
    /// Datagrams that the endpoint itself wants to send.
    replies: Vec<(Transmit, Vec<u8>)>,
}

impl std::fmt::Debug for QuinnHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let connections = self.guests.keys();
        f.debug_struct("QuinnHost").field("connections", &connections).finish_non_exhaustive()
    }
}

impl QuinnHost {
    /// A host that only opens connections.
    #[must_use]
    pub fn client(seed: u64) -> Self {
        Self::new(None, None, seed)
    }

    /// A host that also accepts connections and runs on each the application that `accept` creates.
    #[must_use]
    pub fn server(config: Arc<quinn::ServerConfig>, accept: QuinnAccept, seed: u64) -> Self {
        Self::new(Some(config), Some(accept), seed)
    }

    fn new(
        server: Option<Arc<quinn::ServerConfig>>,
        accept: Option<QuinnAccept>,
        seed: u64,
    ) -> Self {
        let mut bytes = [0; 32];
        Rng::new(seed).fill(&mut bytes);
        let mut config = quinn::EndpointConfig::new(Arc::new(ResetKey(seed)));
        config.rng_seed(Some(bytes));
        Self {
            endpoint: quinn::Endpoint::new(Arc::new(config), server, true, None),
            accept,
            guests: BTreeMap::new(),
            replies: Vec::new(),
        }
    }

    /// Opens a connection and runs `app` on it.
    ///
    /// # Errors
    /// The endpoint cannot open the connection.
    pub fn connect(
        &mut self,
        now: Instant,
        config: quinn::ClientConfig,
        remote: SocketAddr,
        server_name: &str,
        app: impl App<QuinnConnection>,
    ) -> Result<quinn::ConnectionHandle, quinn::ConnectError> {
        let (handle, connection) = self.endpoint.connect(now, config, remote, server_name)?;
        self.admit(handle, connection, Box::new(app));
        Ok(handle)
    }

    /// The connections that have not ended.
    pub fn connections(&self) -> impl Iterator<Item = (quinn::ConnectionHandle, &QuinnConnection)> {
        self.guests.iter().map(|(handle, guest)| (*handle, &guest.connection))
    }

    /// The application of a connection that has not ended; `None` if it is not a `T`.
    #[must_use]
    pub fn app<T: App<QuinnConnection>>(&self, handle: quinn::ConnectionHandle) -> Option<&T> {
        let app: &dyn Any = &*self.guests.get(&handle)?.app;
        app.downcast_ref()
    }

    /// The error of an application that gave up, if there is one.
    #[must_use]
    pub fn app_error(&self) -> Option<&AppError> {
        self.guests.values().find_map(|guest| guest.failed.as_ref())
    }

    /// The error of this host, if there is one: of an application, of a connection that was lost, or of
    /// the endpoint.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        let lost = || self.guests.values().find_map(|guest| Some(guest.lost.as_ref()?.to_string()));
        let failed = self.app_error().map(ToString::to_string);
        failed.or_else(lost)
    }

    /// Whether neither this host nor its endpoint holds a connection.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.guests.is_empty() && self.endpoint.open_connections() == 0
    }

    /// Closes all connections.
    pub fn close(&mut self, now: Instant) {
        for guest in self.guests.values_mut() {
            guest.connection.0.close(now, 0u32.into(), Bytes::from_static(b"done"));
        }
        self.service_all(now);
    }

    fn admit(
        &mut self,
        handle: quinn::ConnectionHandle,
        connection: quinn::Connection,
        app: Box<dyn App<QuinnConnection>>,
    ) {
        let connection = QuinnConnection(connection);
        let guest =
            QuinnGuest { connection, app, wake_at: None, timeout: None, lost: None, failed: None };
        self.guests.insert(handle, guest);
    }

    fn service_all(&mut self, now: Instant) {
        let handles: Vec<_> = self.guests.keys().copied().collect();
        for handle in handles {
            self.service(now, handle);
        }
    }

    fn service(&mut self, now: Instant, handle: quinn::ConnectionHandle) {
        let Some(guest) = self.guests.get_mut(&handle) else { return };
        if let Err(error) = guest.run(now) {
            guest.failed.get_or_insert(error);
        }
        while let Some(event) = guest.connection.0.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                guest.connection.0.handle_event(event);
            }
        }
        guest.timeout = guest.connection.0.poll_timeout();
        if guest.connection.0.is_drained() {
            self.guests.remove(&handle);
        }
    }

    fn reply(&mut self, transmit: &quinn::Transmit, buffer: Vec<u8>) {
        self.replies.push((convert(transmit), buffer));
    }
}

/// A key for stateless reset tokens, without any security.
struct ResetKey(u64);

impl quinn::crypto::HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        for (i, out) in signature_out.iter_mut().enumerate() {
            *out = self.0 as u8 ^ data.get(i % data.len().max(1)).copied().unwrap_or(0) ^ i as u8;
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), quinn::crypto::CryptoError> {
        let mut expected = [0; 32];
        self.sign(data, &mut expected);
        if signature == expected { Ok(()) } else { Err(quinn::crypto::CryptoError) }
    }
}

impl QuinnGuest {
    fn run(&mut self, now: Instant) -> Result<(), AppError> {
        loop {
            let mut told = false;
            while let Some(event) = self.connection.0.poll() {
                told = true;
                if let quinn::Event::ConnectionLost { reason } = &event {
                    self.lost = Some(reason.clone());
                }
                self.app.on_event(now, &mut self.connection, event)?;
            }
            if self.connection.0.is_closed() {
                self.wake_at = None;
                return Ok(());
            }
            self.wake_at = self.app.poll(now, &mut self.connection)?;
            if !told {
                return Ok(());
            }
        }
    }
}

fn convert(transmit: &quinn::Transmit) -> Transmit {
    Transmit::new(transmit.destination, transmit.size)
        .with_ecn(transmit.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)))
        .with_segment_size(transmit.segment_size)
}

impl Node for QuinnHost {
    fn receive(
        &mut self,
        now: Instant,
        from: SocketAddr,
        ecn: Option<EcnCodepoint>,
        payload: &mut [u8],
    ) {
        let ecn = ecn.and_then(|ecn| quinn::EcnCodepoint::from_bits(ecn as u8));
        let mut reply = Vec::new();
        let data = BytesMut::from(&*payload);
        match self.endpoint.handle(now, from, None, ecn, data, &mut reply) {
            Some(quinn::DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(guest) = self.guests.get_mut(&handle) {
                    guest.connection.0.handle_event(event);
                    self.service(now, handle);
                }
            }
            Some(quinn::DatagramEvent::NewConnection(incoming)) => {
                let Some(accept) = &mut self.accept else { return };
                match self.endpoint.accept(incoming, now, &mut reply, None) {
                    Ok((handle, connection)) => {
                        let app = accept();
                        self.admit(handle, connection, app);
                        self.service(now, handle);
                    }
                    // For example, the first packet was damaged. The client will send it again.
                    Err(error) => {
                        if let Some(transmit) = error.response {
                            self.reply(&transmit, reply);
                        }
                    }
                }
            }
            Some(quinn::DatagramEvent::Response(transmit)) => self.reply(&transmit, reply),
            None => {}
        }
    }

    fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Transmit> {
        if let Some((transmit, buffer)) = self.replies.pop() {
            out.extend_from_slice(&buffer[..transmit.size]);
            return Some(transmit);
        }
        for guest in self.guests.values_mut() {
            let transmit = guest.connection.0.poll_transmit(now, MAX_BATCH, out);
            guest.timeout = guest.connection.0.poll_timeout();
            if let Some(transmit) = transmit {
                return Some(convert(&transmit));
            }
        }
        None
    }

    fn timeout(&mut self, now: Instant) {
        for guest in self.guests.values_mut() {
            if guest.timeout.is_some_and(|at| at <= now) {
                guest.connection.0.handle_timeout(now);
            }
        }
        self.service_all(now);
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.guests.values().flat_map(|guest| [guest.timeout, guest.wake_at]).flatten().min()
    }
}
