//! The connection handle.

use super::Shared;
use crate::sync::enlist;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::{Duration, Instant};
use sutura_proto::crypto::ExportError;
use sutura_proto::{ConnectionError, ConnectionStats, Dir, Observer, ProtectionStats, Version};

/// What both ends agreed on in the handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandshakeData {
    /// The application protocol (RFC 7301).
    pub protocol: Option<Vec<u8>>,
    /// The server name that the client asked for (RFC 6066 section 3).
    pub server_name: Option<String>,
}

/// A QUIC connection. Cheap to clone. It is closed when its last clone and its last stream are
/// dropped.
#[derive(Debug)]
pub struct Connection(pub(crate) Arc<Shared>);

impl Clone for Connection {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.0.handles.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let mut state = self.0.lock();
        if !state.quic.is_closed() {
            state.close(Instant::now(), 0, b"");
            drop(state);
            self.0.touch();
        }
    }
}

impl Connection {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared.handles.fetch_add(1, Ordering::Relaxed);
        Self(shared)
    }

    /// Sets how many unidirectional streams the peer may have open at a time. A lower number has no
    /// effect on streams that it was already allowed to open.
    pub fn set_max_concurrent_uni_streams(&self, count: u64) {
        self.0.lock().quic.set_max_concurrent_streams(Dir::Uni, count);
        self.0.touch();
    }

    /// Sets how many bidirectional streams the peer may have open at a time. A lower number has no
    /// effect on streams that it was already allowed to open.
    pub fn set_max_concurrent_bi_streams(&self, count: u64) {
        self.0.lock().quic.set_max_concurrent_streams(Dir::Bi, count);
        self.0.touch();
    }

    /// Sets how many bytes the peer may send on all streams before the application has read any. A lower
    /// number does not take back credit that the peer already has.
    pub fn set_receive_window(&self, bytes: u64) {
        self.0.lock().quic.set_receive_window(bytes);
        self.0.touch();
    }

    /// Waits until the handshake is complete. Waiting is only necessary on a connection from
    /// [`Connecting::into_0rtt`](crate::Connecting::into_0rtt).
    ///
    /// # Errors
    /// The connection is over.
    pub async fn handshake_complete(&self) -> Result<(), ConnectionError> {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if state.connected {
                return Poll::Ready(Ok(()));
            }
            state.check()?;
            state.wait_connected(cx);
            Poll::Pending
        })
        .await
    }

    /// Whether 0-RTT packets are accepted. `None` while that is not known, and on a client that sends
    /// none.
    #[must_use]
    pub fn zero_rtt_accepted(&self) -> Option<bool> {
        self.0.lock().quic.zero_rtt_accepted()
    }

    /// Closes the connection at once. Data that the peer has not received may be lost.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.0.lock().close(Instant::now(), code, reason);
        self.0.touch();
    }

    /// Waits for the end of the connection and returns the cause.
    pub async fn closed(&self) -> ConnectionError {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if let Some(error) = &state.error {
                return Poll::Ready(error.clone());
            }
            enlist(&mut state.waiters.closed, cx);
            Poll::Pending
        })
        .await
    }

    /// Why the connection ended, if it has.
    #[must_use]
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.0.lock().error.clone()
    }

    /// Counters and gauges, including those of erasure coding.
    #[must_use]
    pub fn stats(&self) -> ConnectionStats {
        self.0.lock().quic.stats()
    }

    /// The protections in force, and why the policies send redundancy at present, or none.
    #[must_use]
    pub fn protections(&self) -> Vec<ProtectionStats> {
        self.0.lock().quic.protections()
    }

    /// The smoothed round-trip time (RFC 9002 section 5.3); the initial estimate until there is a sample.
    #[must_use]
    pub fn rtt(&self) -> Duration {
        self.0.lock().quic.smoothed_rtt()
    }

    /// A number that no other connection of this process has while this one's handles exist: the same for all
    /// clones of a handle, and for all addresses that the peer moves to.
    #[must_use]
    pub fn stable_id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// What the handshake has told so far: the application protocol, and the server name that the client asked
    /// for. `None` until either is known.
    #[must_use]
    pub fn handshake_data(&self) -> Option<HandshakeData> {
        let state = self.0.lock();
        let (protocol, server_name) = (state.quic.alpn(), state.quic.server_name());
        (protocol.is_some() || server_name.is_some())
            .then_some(HandshakeData { protocol, server_name })
    }

    /// The peer's address.
    #[must_use]
    pub fn remote_address(&self) -> SocketAddr {
        self.0.lock().quic.remote_address()
    }

    /// The version of QUIC.
    #[must_use]
    pub fn version(&self) -> Version {
        self.0.lock().quic.version()
    }

    /// The negotiated application protocol.
    #[must_use]
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.0.lock().quic.alpn()
    }

    /// The peer's certificate chain in DER, its own certificate first.
    #[must_use]
    pub fn peer_certificates(&self) -> Option<Vec<Vec<u8>>> {
        self.0.lock().quic.peer_certificates()
    }

    /// The server name that the client asked for.
    #[must_use]
    pub fn server_name(&self) -> Option<String> {
        self.0.lock().quic.server_name()
    }

    /// Updates the keys of 1-RTT packets (RFC 9001 section 6), which otherwise happens by itself before
    /// they have protected too much. Returns whether it was possible: not before the handshake is
    /// confirmed, nor before the peer has acknowledged a packet under the present keys.
    pub fn update_keys(&self) -> bool {
        let updated = self.0.lock().quic.update_keys();
        self.0.touch();
        updated
    }

    /// Fills `output` with keying material that both ends of this connection can compute, and nobody
    /// else, for instance to bind a login to the connection (RFC 5705, RFC 8446 section 7.5). `label` names
    /// the purpose and `context` is further data that the material is bound to; both ends must agree on them.
    ///
    /// # Errors
    /// The handshake is not complete, the length of `output` is zero or too large, or this is a server whose
    /// configuration does not ask for [exports](crate::ServerConfig::exporter).
    pub fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        self.0.lock().quic.export_keying_material(output, label, context)
    }

    /// Reports everything that the connection does from now on to `observer`.
    pub fn observe(&self, observer: Box<dyn Observer>) {
        self.0.lock().quic.set_observer(Instant::now(), observer);
    }
}
