//! quinn-proto as a node of the simulator.

use std::any::Any;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use quinn_proto as quinn;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use sutura_proto::{EcnCodepoint, Protection, Transmit};
use sutura_sim::{App, AppError, Node, Quic, Received};

use super::tls;

/// A connection of quinn, with the interface that the applications need.
pub struct Connection(pub quinn::Connection);

fn stream_id(stream: u64) -> quinn::StreamId {
    quinn::StreamId::from(quinn::VarInt::from_u64(stream).unwrap())
}

fn number(id: quinn::StreamId) -> u64 {
    quinn::VarInt::from(id).into_inner()
}

fn failed(error: impl std::fmt::Display) -> AppError {
    AppError(format!("quinn: {error}"))
}

impl Quic for Connection {
    type Event = quinn::Event;

    fn is_established(&self) -> bool {
        !self.0.is_handshaking() && !self.0.is_closed()
    }

    fn open(&mut self) -> Option<u64> {
        self.0.streams().open(quinn::Dir::Bi).map(number)
    }

    fn accept(&mut self) -> Option<u64> {
        self.0.streams().accept(quinn::Dir::Bi).map(number)
    }

    fn write(&mut self, stream: u64, data: &[u8]) -> Result<usize, AppError> {
        match self.0.send_stream(stream_id(stream)).write(data) {
            Ok(n) => Ok(n),
            Err(quinn::WriteError::Blocked) => Ok(0),
            Err(error) => Err(failed(error)),
        }
    }

    fn finish(&mut self, stream: u64) -> Result<(), AppError> {
        self.0.send_stream(stream_id(stream)).finish().map_err(failed)
    }

    fn read(&mut self, stream: u64, out: &mut [u8]) -> Result<Received, AppError> {
        let mut recv = self.0.recv_stream(stream_id(stream));
        let mut chunks = recv.read(true).map_err(failed)?;
        let result = match chunks.next(out.len()) {
            Ok(Some(chunk)) => {
                out[..chunk.bytes.len()].copy_from_slice(&chunk.bytes);
                Ok(Received::Data(chunk.bytes.len()))
            }
            Ok(None) => Ok(Received::End),
            Err(quinn::ReadError::Blocked) => Ok(Received::Nothing),
            Err(error) => Err(failed(error)),
        };
        // The result does not matter: the network asks for datagrams after every event anyway.
        let _ = chunks.finalize();
        result
    }

    fn protect(&mut self, _: u64, _: Option<Protection>) -> Result<(), AppError> {
        Ok(())
    }

    fn send_datagram(&mut self, data: Bytes) -> Result<(), AppError> {
        self.0.datagrams().send(data, true).map_err(|e| AppError(format!("{e:?}")))
    }

    fn recv_datagram(&mut self) -> Option<Bytes> {
        self.0.datagrams().recv()
    }
}

struct Guest {
    connection: Connection,
    app: Box<dyn App<Connection>>,
    wake_at: Option<Instant>,
    timeout: Option<Instant>,
    lost: Option<quinn::ConnectionError>,
    failed: Option<AppError>,
}

pub type Accept = Box<dyn FnMut() -> Box<dyn App<Connection>>>;

/// A host that runs quinn-proto.
pub struct QuinnHost {
    endpoint: quinn::Endpoint,
    accept: Option<Accept>,
    guests: HashMap<quinn::ConnectionHandle, Guest>,
    /// Datagrams that the endpoint itself wants to send.
    replies: Vec<(Transmit, Vec<u8>)>,
    errors: Vec<String>,
}

fn transport() -> Arc<quinn::TransportConfig> {
    transport_with(Arc::new(quinn::congestion::CubicConfig::default()))
}

/// The configuration of a quinn connection with this congestion control.
pub fn transport_with(
    congestion: Arc<dyn quinn::congestion::ControllerFactory + Send + Sync>,
) -> Arc<quinn::TransportConfig> {
    let mut config = quinn::TransportConfig::default();
    config.mtu_discovery_config(None).congestion_controller_factory(congestion);
    Arc::new(config)
}

impl QuinnHost {
    fn new(server: Option<Arc<quinn::ServerConfig>>, accept: Option<Accept>, seed: u8) -> Self {
        let key = ring_key(seed);
        let mut config = quinn::EndpointConfig::new(Arc::new(key));
        config.rng_seed(Some([seed; 32]));
        Self {
            endpoint: quinn::Endpoint::new(Arc::new(config), server, true, None),
            accept,
            guests: HashMap::new(),
            replies: Vec::new(),
            errors: Vec::new(),
        }
    }

    pub fn client(seed: u8) -> Self {
        Self::new(None, None, seed)
    }

    pub fn server(accept: Accept, seed: u8) -> Self {
        Self::server_with(accept, seed, transport())
    }

    pub fn server_with(accept: Accept, seed: u8, transport: Arc<quinn::TransportConfig>) -> Self {
        let crypto = QuicServerConfig::try_from(tls::server()).unwrap();
        let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(transport);
        Self::new(Some(Arc::new(config)), Some(accept), seed)
    }

    pub fn connect(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        app: impl App<Connection>,
    ) -> quinn::ConnectionHandle {
        let crypto = QuicClientConfig::try_from(tls::client()).unwrap();
        let mut config = quinn::ClientConfig::new(Arc::new(crypto));
        config.transport_config(transport());
        let (handle, connection) = self.endpoint.connect(now, config, remote, tls::NAME).unwrap();
        self.admit(handle, connection, Box::new(app));
        handle
    }

    pub fn app<T: App<Connection>>(&self) -> Option<&T> {
        let app: &dyn Any = &*self.guests.values().next()?.app;
        app.downcast_ref()
    }

    /// The error of this host, if there is one.
    pub fn error(&self) -> Option<String> {
        let failed = |g: &Guest| Some(g.failed.as_ref()?.to_string());
        let lost = |g: &Guest| Some(g.lost.as_ref()?.to_string());
        let of_guests = self.guests.values().find_map(|g| failed(g).or_else(|| lost(g)));
        of_guests.or_else(|| self.errors.first().cloned())
    }

    pub fn is_empty(&self) -> bool {
        self.guests.is_empty() && self.endpoint.open_connections() == 0
    }

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
        app: Box<dyn App<Connection>>,
    ) {
        let connection = Connection(connection);
        let guest =
            Guest { connection, app, wake_at: None, timeout: None, lost: None, failed: None };
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

fn ring_key(seed: u8) -> impl quinn::crypto::HmacKey {
    Key(seed)
}

/// A key for stateless reset tokens, without any security.
struct Key(u8);

impl quinn::crypto::HmacKey for Key {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        for (i, out) in signature_out.iter_mut().enumerate() {
            *out = self.0 ^ data.get(i % data.len().max(1)).copied().unwrap_or(0) ^ i as u8;
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

impl Guest {
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
    Transmit {
        destination: transmit.destination,
        ecn: transmit.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)),
        size: transmit.size,
        segment_size: transmit.segment_size,
    }
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
            let transmit = guest.connection.0.poll_transmit(now, 10, out);
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
