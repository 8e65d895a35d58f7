//! The transport parameters that this end has announced.

use crate::ids::Side;
use crate::wire::transport_parameters::{TransportParameters, VersionInformation};

/// The transport parameters that this end has announced. Hardly anybody asks for them afterwards, so they are
/// kept as they were sent, which takes a third of the memory.
#[derive(Debug)]
pub struct Announced(Box<[u8]>);

impl Announced {
    /// The parameters that were sent as `encoded`.
    pub fn new(encoded: &[u8]) -> Self {
        Self(encoded.into())
    }

    /// The parameters of this end, without those that are reserved.
    pub fn get(&self, side: Side) -> TransportParameters {
        // What this end has encoded it can decode.
        TransportParameters::decode(&self.0, side).unwrap_or_default()
    }

    /// Announces other information on versions; returns all parameters, encoded.
    pub fn announce_versions(
        &mut self,
        side: Side,
        versions: Option<VersionInformation>,
    ) -> Vec<u8> {
        let mut parameters = self.get(side);
        parameters.version_information = versions;
        let mut encoded = Vec::new();
        parameters.encode(side, &mut encoded);
        *self = Self::new(&encoded);
        encoded
    }

    /// The bytes that were sent.
    #[cfg(test)]
    pub fn encoded(&self) -> &[u8] {
        &self.0
    }
}
