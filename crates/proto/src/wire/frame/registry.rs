//! The table of all frame types: RFC 9000 table 3, RFC 9221, and the erasure-coding frames.

/// A carrier of frames: a packet type that has a payload, or a source symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// An Initial packet.
    Initial,
    /// A 0-RTT packet.
    ZeroRtt,
    /// A Handshake packet.
    Handshake,
    /// A 1-RTT packet.
    OneRtt,
    /// A source symbol, received within a SOURCE_SYMBOL frame or recovered by the decoder.
    SourceSymbol,
}

impl Carrier {
    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Properties of a frame type that do not depend on the frame's contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameInfo {
    /// The kind of frame.
    pub kind: FrameKind,
    /// The smallest type of this kind. The others follow without gaps and differ only in flag bits.
    pub first_type: u64,
    /// The largest type of this kind.
    pub last_type: u64,
    /// Its name in qlog, which is the name in the RFC in lower case.
    pub name: &'static str,
    /// Whether a packet that contains it must be acknowledged (RFC 9002 section 2).
    pub ack_eliciting: bool,
    /// Whether a packet that contains it counts as in flight (RFC 9002 section 2).
    pub in_flight: bool,
    /// Whether it is a probing frame (RFC 9000 section 9.1).
    pub probing: bool,
    carriers: u8,
}

impl FrameInfo {
    const fn new(
        kind: FrameKind,
        types: (u64, u64),
        name: &'static str,
        carriers: &str,
        marks: &str,
    ) -> Self {
        Self {
            kind,
            first_type: types.0,
            last_type: types.1,
            name,
            ack_eliciting: !has(marks, b'N'),
            in_flight: !has(marks, b'C'),
            probing: has(marks, b'P'),
            carriers: carrier_bits(carriers),
        }
    }

    /// Whether `carrier` may contain the frame (RFC 9000 sections 12.4 and 12.5).
    #[must_use]
    pub const fn allowed_in(&self, carrier: Carrier) -> bool {
        self.carriers & carrier.bit() != 0
    }

    /// Whether erasure coding may protect the frame, that is, put it into a source symbol.
    #[must_use]
    pub const fn protectable(&self) -> bool {
        self.allowed_in(Carrier::SourceSymbol)
    }
}

const fn has(letters: &str, letter: u8) -> bool {
    let letters = letters.as_bytes();
    let mut i = 0;
    while i < letters.len() {
        if letters[i] == letter {
            return true;
        }
        i += 1;
    }
    false
}

const fn carrier_bits(letters: &str) -> u8 {
    const LETTERS: [(u8, Carrier); 5] = [
        (b'I', Carrier::Initial),
        (b'H', Carrier::Handshake),
        (b'0', Carrier::ZeroRtt),
        (b'1', Carrier::OneRtt),
        (b'S', Carrier::SourceSymbol),
    ];
    let mut bits = 0;
    let mut i = 0;
    while i < LETTERS.len() {
        if has(letters, LETTERS[i].0) {
            bits |= LETTERS[i].1.bit();
        }
        i += 1;
    }
    bits
}

macro_rules! frames {
    ($($(#[$doc:meta])* $kind:ident $first:literal..=$last:literal $name:literal $carriers:literal $marks:literal;)*) => {
        /// A kind of frame. Kinds whose type contains flag bits have several types.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FrameKind { $($(#[$doc])* $kind,)* }

        impl FrameKind {
            /// All kinds, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// The kind that a frame type belongs to.
            #[must_use]
            pub const fn of(wire_type: u64) -> Option<Self> {
                match wire_type {
                    $($first..=$last => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }

        static REGISTRY: [FrameInfo; FrameKind::ALL.len()] =
            [$(FrameInfo::new(FrameKind::$kind, ($first, $last), $name, $carriers, $marks),)*];
    };
}

// Carriers: I Initial, H Handshake, 0 0-RTT, 1 1-RTT, S source symbol.
// Marks: N not ack-eliciting, C not in flight, P probing. Two lines differ from RFC 9000 table 3:
// section 12.5 forbids RETIRE_CONNECTION_ID in 0-RTT, and RFC 9002 section 3 does not count
// CONNECTION_CLOSE as in flight.
frames! {
    /// PADDING
    Padding 0x00..=0x00 "padding" "IH01" "NP";
    /// PING
    Ping 0x01..=0x01 "ping" "IH01" "";
    /// ACK, with or without ECN counts
    Ack 0x02..=0x03 "ack" "IH_1" "NC";
    /// RESET_STREAM
    ResetStream 0x04..=0x04 "reset_stream" "__01" "";
    /// STOP_SENDING
    StopSending 0x05..=0x05 "stop_sending" "__01" "";
    /// CRYPTO
    Crypto 0x06..=0x06 "crypto" "IH_1" "";
    /// NEW_TOKEN
    NewToken 0x07..=0x07 "new_token" "___1" "";
    /// STREAM
    Stream 0x08..=0x0f "stream" "__01S" "";
    /// MAX_DATA
    MaxData 0x10..=0x10 "max_data" "__01" "";
    /// MAX_STREAM_DATA
    MaxStreamData 0x11..=0x11 "max_stream_data" "__01" "";
    /// MAX_STREAMS, bidirectional or unidirectional
    MaxStreams 0x12..=0x13 "max_streams" "__01" "";
    /// DATA_BLOCKED
    DataBlocked 0x14..=0x14 "data_blocked" "__01" "";
    /// STREAM_DATA_BLOCKED
    StreamDataBlocked 0x15..=0x15 "stream_data_blocked" "__01" "";
    /// STREAMS_BLOCKED, bidirectional or unidirectional
    StreamsBlocked 0x16..=0x17 "streams_blocked" "__01" "";
    /// NEW_CONNECTION_ID
    NewConnectionId 0x18..=0x18 "new_connection_id" "__01" "P";
    /// RETIRE_CONNECTION_ID
    RetireConnectionId 0x19..=0x19 "retire_connection_id" "___1" "";
    /// PATH_CHALLENGE
    PathChallenge 0x1a..=0x1a "path_challenge" "__01" "P";
    /// PATH_RESPONSE
    PathResponse 0x1b..=0x1b "path_response" "___1" "P";
    /// CONNECTION_CLOSE of the transport
    ConnectionClose 0x1c..=0x1c "connection_close" "IH01" "NC";
    /// CONNECTION_CLOSE of the application
    ApplicationClose 0x1d..=0x1d "connection_close" "__01" "NC";
    /// HANDSHAKE_DONE
    HandshakeDone 0x1e..=0x1e "handshake_done" "___1" "";
    /// IMMEDIATE_ACK (draft-ietf-quic-ack-frequency-11)
    ImmediateAck 0x1f..=0x1f "immediate_ack" "___1" "";
    /// RESET_STREAM_AT (draft-ietf-quic-reliable-stream-reset-07)
    ResetStreamAt 0x24..=0x24 "reset_stream_at" "__01" "";
    /// DATAGRAM (RFC 9221)
    Datagram 0x30..=0x31 "datagram" "__01S" "";
    /// ACK_FREQUENCY (draft-ietf-quic-ack-frequency-11)
    AckFrequency 0xaf..=0xaf "ack_frequency" "__01" "";
    /// SOURCE_SYMBOL
    SourceSymbol 0x3f53..=0x3f53 "source_symbol" "___1" "";
    /// REPAIR
    Repair 0x3f54..=0x3f54 "repair" "___1" "";
    /// SYMBOL_ACK
    SymbolAck 0x3f55..=0x3f55 "symbol_ack" "___1" "NC";
    /// SYMBOL_WINDOW
    SymbolWindow 0x3f56..=0x3f56 "symbol_window" "___1" "";
    /// REPAIR_CODED
    RepairCoded 0x3f57..=0x3f57 "repair_coded" "___1" "";
}

impl FrameKind {
    /// Its entry in the table.
    #[must_use]
    pub fn info(self) -> &'static FrameInfo {
        &REGISTRY[self as usize]
    }

    /// Its type with all flag bits clear, by which errors refer to it.
    #[must_use]
    pub fn wire_type(self) -> u64 {
        self.info().first_type
    }

    /// Whether the frame belongs to the erasure-coding extension, which has to be negotiated.
    #[must_use]
    pub const fn is_fec(self) -> bool {
        matches!(
            self,
            Self::SourceSymbol
                | Self::Repair
                | Self::RepairCoded
                | Self::SymbolAck
                | Self::SymbolWindow
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_line() {
        assert_eq!(REGISTRY.len(), FrameKind::ALL.len());
        for (i, (&kind, info)) in FrameKind::ALL.iter().zip(&REGISTRY).enumerate() {
            assert_eq!((kind as usize, info.kind), (i, kind));
            assert!(info.first_type <= info.last_type);
            assert!(!info.name.is_empty());
            assert_ne!(info.carriers, 0, "{} travels in nothing", info.name);
            assert!(info.allowed_in(Carrier::OneRtt), "{} not in 1-RTT", info.name);
            assert!(info.in_flight || !info.ack_eliciting, "{} elicits unseen", info.name);
        }
    }

    #[test]
    fn types_map_to_the_kind_whose_line_has_them() {
        let mut owners = 0;
        for wire_type in 0..0x1_0000 {
            let lines: Vec<_> = REGISTRY
                .iter()
                .filter(|i| (i.first_type..=i.last_type).contains(&wire_type))
                .collect();
            assert!(lines.len() <= 1, "type {wire_type:#x} is claimed twice");
            assert_eq!(FrameKind::of(wire_type), lines.first().map(|i| i.kind));
            owners += lines.len();
        }
        // All registered types are below 2^16, so the loop covered them.
        let registered: u64 = REGISTRY.iter().map(|i| i.last_type - i.first_type + 1).sum();
        assert_eq!(owners as u64, registered);
    }

    #[test]
    fn carriers_follow_rfc9000_section_12() {
        use FrameKind::*;
        let in_carrier = |c: Carrier| {
            FrameKind::ALL.iter().copied().filter(|k| k.info().allowed_in(c)).collect::<Vec<_>>()
        };
        assert_eq!(in_carrier(Carrier::Initial), [Padding, Ping, Ack, Crypto, ConnectionClose]);
        assert_eq!(in_carrier(Carrier::Handshake), in_carrier(Carrier::Initial));
        assert_eq!(in_carrier(Carrier::SourceSymbol), [Stream, Datagram]);
        let zero_rtt = in_carrier(Carrier::ZeroRtt);
        let only_later =
            [Ack, Crypto, HandshakeDone, ImmediateAck, NewToken, PathResponse, RetireConnectionId];
        for kind in only_later {
            assert!(!zero_rtt.contains(&kind), "{kind:?} in 0-RTT");
        }
        assert!(FrameKind::ALL.iter().filter(|k| k.is_fec()).all(|k| !zero_rtt.contains(k)));
        assert_eq!(zero_rtt.len(), FrameKind::ALL.len() - 7 - 5);
    }

    #[test]
    fn marks_follow_rfc9000_table_3() {
        use FrameKind::*;
        let kinds = |f: fn(&FrameInfo) -> bool| {
            REGISTRY.iter().filter(|i| f(i)).map(|i| i.kind).collect::<Vec<_>>()
        };
        assert_eq!(
            kinds(|i| !i.ack_eliciting),
            [Padding, Ack, ConnectionClose, ApplicationClose, SymbolAck]
        );
        assert_eq!(kinds(|i| !i.in_flight), [Ack, ConnectionClose, ApplicationClose, SymbolAck]);
        assert_eq!(kinds(|i| i.probing), [Padding, NewConnectionId, PathChallenge, PathResponse]);
    }
}
