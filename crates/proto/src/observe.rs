//! Reports of a connection to an observer, such as a qlog writer.

use crate::ecn::EcnState;
use crate::fec::Protection;
use crate::fec::redundancy::Reason;
use crate::ids::{ConnectionId, Side, SpaceId, StreamId};
use crate::loss_floor::LossFloor;
use crate::wire::transport_parameters::TransportParameters;
use std::any::Any;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// An event of a connection.
#[derive(Debug)]
#[non_exhaustive]
pub enum Observation<'a> {
    /// The connection began.
    Started {
        /// Which end this is.
        side: Side,
        /// The destination identifier of the client's first Initial.
        original_dcid: ConnectionId,
    },
    /// Transport parameters were set.
    Parameters {
        /// Whether they are this end's.
        local: bool,
        /// The parameters.
        parameters: &'a TransportParameters,
    },
    /// A packet was built.
    PacketSent {
        /// Its packet number space.
        space: SpaceId,
        /// Whether it is a 0-RTT packet.
        early: bool,
        /// Its number.
        pn: u64,
        /// Its size in bytes, without UDP and IP headers.
        size: usize,
        /// Its frames, before protection.
        payload: &'a [u8],
    },
    /// A packet was opened.
    PacketReceived {
        /// Its packet number space.
        space: SpaceId,
        /// Whether it is a 0-RTT packet.
        early: bool,
        /// Its number.
        pn: u64,
        /// Its size in bytes, without UDP and IP headers.
        size: usize,
        /// Its frames.
        payload: &'a [u8],
    },
    /// A packet was declared lost.
    PacketLost {
        /// Its packet number space.
        space: SpaceId,
        /// Its number.
        pn: u64,
        /// Its size in bytes.
        size: usize,
    },
    /// The figures of loss recovery changed.
    Metrics(Metrics),
    /// A source symbol that was not received was recovered from repair symbols.
    SymbolRecovered {
        /// The session.
        session: u16,
        /// The symbol.
        id: u64,
        /// The frames that it contains.
        frames: &'a [u8],
    },
    /// The peer reported symbols as recovered whose packets were not acknowledged.
    SymbolsRecoveredByPeer {
        /// The session.
        session: u16,
        /// How many.
        count: u32,
    },
    /// A coding session is used with another policy, or its policy's reason has changed. Reported
    /// with the figures of loss recovery, so not at once.
    RedundancyUpdated {
        /// The session.
        session: u16,
        /// The policy and its parameters.
        protection: &'a Protection,
        /// Why the policy sends redundancy at present, or none, if it says so.
        reason: Option<Reason>,
    },
    /// The estimate of the losses that do not depend on the rate has changed by more than its
    /// uncertainty since the last report ([`LossFloor::contradicts`]).
    LossEstimateUpdated(LossFloor),
    /// The peer is at another address, or the connection has gone back to the previous address.
    PathChanged {
        /// The address of the peer.
        remote: SocketAddr,
    },
    /// The datagram size has changed, in bytes of UDP payload.
    MtuUpdated {
        /// The size until now.
        old: u16,
        /// The size from now on.
        new: u16,
    },
    /// More is known about whether the path carries ECN marks.
    EcnStateUpdated(EcnState),
    /// The protocol above wrote data to a stream.
    Written {
        /// The stream.
        stream: StreamId,
        /// How many bytes.
        length: usize,
    },
    /// An event in the protocol above, as reported by
    /// [`Connection::observe_application`](crate::Connection::observe_application). An observer that knows
    /// the protocol downcasts it to the event type of that protocol; see [`Observer`].
    Application(&'a dyn Any),
    /// The connection is over.
    Closed {
        /// Why, as text.
        reason: &'a str,
    },
}

/// The figures of loss recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Smoothed round-trip time.
    pub smoothed_rtt: Duration,
    /// Newest sample.
    pub latest_rtt: Duration,
    /// Smallest sample.
    pub min_rtt: Duration,
    /// Congestion window in bytes.
    pub congestion_window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Pacing rate in bytes per second.
    pub pacing_rate: Option<u64>,
}

/// Is told everything that a connection does, in order. It must not block.
///
/// The type of an event of the protocol above is defined by that protocol:
///
/// ```
/// use std::time::Instant;
/// use sutura_proto::{Observation, Observer};
///
/// /// An event of some protocol.
/// struct Asked {
///     path: String,
/// }
///
/// /// Observes what that protocol asks for.
/// #[derive(Default)]
/// struct Paths(Vec<String>);
///
/// impl Observer for Paths {
///     fn observe(&mut self, _now: Instant, observation: &Observation<'_>) {
///         if let Observation::Application(event) = observation
///             && let Some(asked) = event.downcast_ref::<Asked>()
///         {
///             self.0.push(asked.path.clone());
///         }
///     }
/// }
///
/// let mut paths = Paths::default();
/// let (known, unknown) = (Asked { path: "/a".into() }, "an event of another protocol");
/// paths.observe(Instant::now(), &Observation::Application(&known));
/// paths.observe(Instant::now(), &Observation::Application(&unknown));
/// assert_eq!(paths.0, ["/a"]);
/// ```
pub trait Observer: Send {
    /// Handles `observation`, which happened at `now`.
    fn observe(&mut self, now: Instant, observation: &Observation<'_>);
}
