//! Explicit congestion notification: the marks of packets and their counts.

/// The mark in a packet's IP header (RFC 3168 section 5). No value: not ECN-capable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EcnCodepoint {
    /// ECT(1).
    Ect1 = 0b01,
    /// ECT(0).
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl EcnCodepoint {
    /// Reads the two low bits of a traffic class.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Self> {
        match bits & 0b11 {
            0b01 => Some(Self::Ect1),
            0b10 => Some(Self::Ect0),
            0b11 => Some(Self::Ce),
            _ => None,
        }
    }
}

/// Whether a path carries ECN marks (RFC 9000 section 13.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EcnState {
    /// The test is under way.
    Testing,
    /// The path carries marks, as far as is known.
    Capable,
    /// The path does not carry marks, or the peer does not report marks, or this end cannot set them.
    Failed,
}

/// How many packets arrived with each mark, over the life of a packet number space: the ECN
/// section of an ACK frame (RFC 9000 section 19.3.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EcnCounts {
    /// Packets marked ECT(0).
    pub ect0: u64,
    /// Packets marked ECT(1).
    pub ect1: u64,
    /// Packets marked CE.
    pub ce: u64,
}

impl EcnCounts {
    /// Counts a packet.
    pub fn add(&mut self, mark: EcnCodepoint) {
        let count = match mark {
            EcnCodepoint::Ect0 => &mut self.ect0,
            EcnCodepoint::Ect1 => &mut self.ect1,
            EcnCodepoint::Ce => &mut self.ce,
        };
        *count = count.saturating_add(1);
    }
}
