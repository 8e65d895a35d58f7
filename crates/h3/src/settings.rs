//! SETTINGS (RFC 9114 section 7.2.4, RFC 9204 section 5).

use crate::codec::{VARINT_MAX, put_varint, take_varint};
use crate::error::{Code, Error};
use crate::webtransport::{WebTransportDraft, WebTransportDrafts};

/// Most settings in a SETTINGS frame; more are excessive load.
pub const MAX_SETTINGS: usize = 64;

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
const QPACK_BLOCKED_STREAMS: u64 = 0x7;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x8;
const H3_DATAGRAM: u64 = 0x33;

/// The settings of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// Largest field section that it accepts, in bytes as RFC 9114 section 4.2.2 counts them
    /// (names, values, and 32 for each field); `None` means no limit.
    pub max_field_section_size: Option<u64>,
    /// Capacity of its decoder's dynamic table, in bytes.
    pub qpack_max_table_capacity: u64,
    /// Streams that may wait for its decoder's dynamic table.
    pub qpack_blocked_streams: u64,
    /// Whether it accepts extended CONNECT (RFC 9220), as a server.
    pub enable_connect_protocol: bool,
    /// Whether it accepts HTTP datagrams in QUIC datagrams (RFC 9297 section 2.1.1).
    pub h3_datagram: bool,
    /// The drafts of WebTransport over HTTP/3 that it speaks.
    pub webtransport: WebTransportDrafts,
}

/// The value of a setting that is 0 or 1.
fn flag(value: u64) -> Result<bool, Error> {
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::new(Code::SETTINGS_ERROR, "setting is neither 0 nor 1")),
    }
}

impl Settings {
    /// Appends the payload of a SETTINGS frame. `grease` is a reserved setting and its value.
    pub(crate) fn encode(&self, grease: Option<(u64, u64)>, out: &mut Vec<u8>) {
        let limit = self.max_field_section_size.map(|size| size.min(VARINT_MAX));
        let known = [
            limit.map(|size| (MAX_FIELD_SECTION_SIZE, size)),
            // Zero is the default of both and can be omitted.
            (self.qpack_max_table_capacity > 0)
                .then_some((QPACK_MAX_TABLE_CAPACITY, self.qpack_max_table_capacity)),
            (self.qpack_blocked_streams > 0)
                .then_some((QPACK_BLOCKED_STREAMS, self.qpack_blocked_streams)),
            self.enable_connect_protocol.then_some((ENABLE_CONNECT_PROTOCOL, 1)),
            self.h3_datagram.then_some((H3_DATAGRAM, 1)),
            grease,
        ];
        let drafts = self.webtransport.iter().map(|draft| (draft.setting(), 1));
        for (id, value) in known.into_iter().flatten().chain(drafts) {
            put_varint(out, id);
            put_varint(out, value);
        }
    }

    /// Reads the payload of a SETTINGS frame. Unknown settings are ignored.
    ///
    /// # Errors
    /// `H3_FRAME_ERROR` for a truncated payload, `H3_SETTINGS_ERROR` for a setting that occurs
    /// twice, belongs to HTTP/2 or has a wrong value, `H3_EXCESSIVE_LOAD` for more than [`MAX_SETTINGS`].
    pub(crate) fn decode(mut payload: &[u8]) -> Result<Self, Error> {
        const CUT: Error = Error::new(Code::FRAME_ERROR, "SETTINGS cut short");
        let mut settings = Self::default();
        let mut seen = Vec::with_capacity(8);
        while !payload.is_empty() {
            let id = take_varint(&mut payload).ok_or(CUT)?;
            let value = take_varint(&mut payload).ok_or(CUT)?;
            if seen.contains(&id) {
                return Err(Error::new(Code::SETTINGS_ERROR, "setting given twice"));
            }
            if seen.len() == MAX_SETTINGS {
                return Err(Error::new(Code::EXCESSIVE_LOAD, "too many settings"));
            }
            seen.push(id);
            match id {
                // RFC 9114 section 7.2.4.1: identifiers of HTTP/2 settings without a counterpart.
                0x0 | 0x2..=0x5 => {
                    return Err(Error::new(Code::SETTINGS_ERROR, "setting of HTTP/2"));
                }
                MAX_FIELD_SECTION_SIZE => settings.max_field_section_size = Some(value),
                QPACK_MAX_TABLE_CAPACITY => settings.qpack_max_table_capacity = value,
                QPACK_BLOCKED_STREAMS => settings.qpack_blocked_streams = value,
                ENABLE_CONNECT_PROTOCOL => settings.enable_connect_protocol = flag(value)?,
                H3_DATAGRAM => settings.h3_datagram = flag(value)?,
                _ => {
                    if let Some(draft) = WebTransportDraft::of_setting(id, value)? {
                        settings.webtransport.insert(draft);
                    }
                }
            }
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_ignores_grease() {
        let settings = Settings {
            max_field_section_size: Some(65_536),
            qpack_max_table_capacity: 4096,
            qpack_blocked_streams: 16,
            enable_connect_protocol: true,
            h3_datagram: true,
            webtransport: WebTransportDrafts::ALL,
        };
        let mut out = Vec::new();
        settings.encode(Some((0x21, 9)), &mut out);
        assert_eq!(Settings::decode(&out), Ok(settings));
        for cut in [1, 3, out.len() - 1] {
            assert_eq!(Settings::decode(&out[..cut]).unwrap_err().code, Code::FRAME_ERROR);
        }
        assert_eq!(Settings::decode(&[]), Ok(Settings::default()));
    }

    #[test]
    fn reserved_repeated_and_too_many_are_errors() {
        for id in [0, 2, 3, 4, 5] {
            assert_eq!(Settings::decode(&[id, 0]).unwrap_err().code, Code::SETTINGS_ERROR);
        }
        assert_eq!(Settings::decode(&[8, 0]), Ok(Settings::default()));
        assert_eq!(Settings::decode(&[0x33, 2]).unwrap_err().code, Code::SETTINGS_ERROR);
        assert_eq!(Settings::decode(&[8, 2]).unwrap_err().code, Code::SETTINGS_ERROR);
        assert_eq!(Settings::decode(&[33, 0, 33, 1]).unwrap_err().code, Code::SETTINGS_ERROR);
        let mut out = Vec::new();
        for i in 0..=MAX_SETTINGS as u64 {
            put_varint(&mut out, 0x1000 + i);
            put_varint(&mut out, 0);
        }
        assert_eq!(Settings::decode(&out).unwrap_err().code, Code::EXCESSIVE_LOAD);
        assert!(Settings::decode(&out[..3 * MAX_SETTINGS]).is_ok());
    }
}
