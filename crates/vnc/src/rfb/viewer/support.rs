//! The encodings that a viewer knows.

use super::super::encoding;

/// Which of the encodings that are written here a viewer listed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Support {
    pub(super) copy_rect: bool,
    pub(super) rre: bool,
    pub(super) hextile: bool,
    pub(super) cursor: bool,
    pub(super) desktop_name: bool,
    pub(super) desktop_size: bool,
    pub(super) extended_desktop_size: bool,
    pub(super) fence: bool,
    pub(super) continuous_updates: bool,
    pub(super) extended_keys: bool,
}

impl Support {
    pub(super) fn of(encodings: &[i32]) -> Self {
        let has = |encoding: i32| encodings.contains(&encoding);
        Self {
            copy_rect: has(encoding::COPY_RECT),
            rre: has(encoding::RRE),
            hextile: has(encoding::HEXTILE),
            cursor: has(encoding::CURSOR),
            desktop_name: has(encoding::DESKTOP_NAME),
            desktop_size: has(encoding::DESKTOP_SIZE),
            extended_desktop_size: has(encoding::EXTENDED_DESKTOP_SIZE),
            fence: has(encoding::FENCE),
            continuous_updates: has(encoding::CONTINUOUS_UPDATES),
            extended_keys: has(encoding::EXTENDED_KEYS),
        }
    }

    pub(super) fn can_resize(self) -> bool {
        self.desktop_size || self.extended_desktop_size
    }
}
