//! Configuration of one end of a connection.

use crate::qpack::FieldLimits;
use crate::settings::Settings;

/// Configuration of one end. The `Default` suits both client and server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Largest field section accepted from the peer, decoded, in bytes as RFC 9114 section 4.2.2
    /// counts them; announced to the peer. It bounds the encoded section as well. 64 KiB.
    pub max_field_section_size: u64,
    /// Most field lines accepted in one section. 128.
    pub max_field_lines: usize,
    /// Seed that picks the reserved setting, frame and stream that are sent for the peer to ignore
    /// (RFC 9114 sections 6.2.3, 7.2.4.1 and 7.2.8); `None` sends none.
    pub grease: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self { max_field_section_size: 64 << 10, max_field_lines: 128, grease: Some(0) }
    }
}

impl Config {
    /// The SETTINGS that announce this configuration.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            max_field_section_size: Some(self.max_field_section_size),
            ..Settings::default()
        }
    }

    pub(crate) const fn limits(&self) -> FieldLimits {
        FieldLimits { size: self.max_field_section_size, lines: self.max_field_lines }
    }
}
