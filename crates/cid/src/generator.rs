//! The generator seam: which connection identifiers an endpoint gives its connections.

use crate::{ConnectionId, MAX_CID_SIZE};
use rand::{Rng, RngCore};
use std::fmt::Debug;

/// The length of identifiers in bytes, unless a generator says otherwise.
pub const USUAL_CID_SIZE: usize = 8;
/// The length in bytes of the shortest identifiers that a server may choose: a client sends the first packets
/// after a Retry to such an identifier (RFC 9000 section 7.2).
pub const MIN_SERVER_CID_SIZE: usize = 8;

/// Generates the identifiers that peers put into the packets for an endpoint's connections (RFC 9000
/// section 5.1). Devices on the way to the endpoint, such as a load balancer, may read their contents.
///
/// Nobody else should learn from two identifiers that they belong to the same connection, and no identifier
/// may be generated twice.
pub trait ConnectionIdGenerator: Debug + Send + Sync {
    /// The length of all identifiers in bytes: 1 to 20, and at least [`MIN_SERVER_CID_SIZE`] on a
    /// server. Must never change, because packets do not tell it.
    fn size(&self) -> usize;

    /// A new identifier.
    fn generate(&self, random: &mut dyn RngCore) -> ConnectionId;

    /// The part of the identifiers that stands for this endpoint, if several endpoints with the same
    /// [`ResetKey`] share an address behind a load balancer. A packet that reaches the wrong endpoint is
    /// answered by a stateless reset that the peer of its connection does not know (RFC 9000 section 21.11).
    /// Empty by default.
    ///
    /// [`ResetKey`]: crate::reset::ResetKey
    fn owner(&self) -> &[u8] {
        &[]
    }

    /// The number of the endpoint to which an identifier belongs, if several endpoints of one process share an
    /// address, as those with [`WorkerIds`](crate::WorkerIds) do, and it is not this one. `None` by default.
    fn elsewhere(&self, cid: &ConnectionId) -> Option<usize> {
        let _ = cid;
        None
    }
}

/// Random identifiers of 8 bytes. The default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RandomIds;

impl ConnectionIdGenerator for RandomIds {
    fn size(&self) -> usize {
        USUAL_CID_SIZE
    }

    fn generate(&self, random: &mut dyn RngCore) -> ConnectionId {
        random_cid(random, USUAL_CID_SIZE)
    }
}

/// A random identifier of this length.
#[must_use]
pub fn random_cid(random: &mut (impl RngCore + ?Sized), size: usize) -> ConnectionId {
    let mut bytes = [0; MAX_CID_SIZE];
    let bytes = &mut bytes[..size.min(MAX_CID_SIZE)];
    random.fill(bytes);
    ConnectionId::new(bytes).unwrap_or_default()
}

/// A new identifier of `generator`. If the generator breaks its contract, the identifier is random instead,
/// so that packets for it are still read.
#[must_use]
pub fn new_cid(generator: &dyn ConnectionIdGenerator, random: &mut impl RngCore) -> ConnectionId {
    let (cid, size) = (generator.generate(random), cid_size(generator));
    debug_assert_eq!(cid.len(), size, "the length of identifiers does not change");
    if cid.len() == size { cid } else { random_cid(random, size) }
}

/// The length of the identifiers of `generator`.
#[must_use]
pub fn cid_size(generator: &dyn ConnectionIdGenerator) -> usize {
    generator.size().clamp(1, MAX_CID_SIZE)
}
