//! The numbers of encodings (RFC 6143, section 7.7) and pseudo-encodings (7.8 and the community's).

/// Pixels as they are (7.7.1).
pub const RAW: i32 = 0;
/// A rectangle that the viewer shows elsewhere already (7.7.2).
pub const COPY_RECT: i32 = 1;
/// A background and subrectangles (7.7.3).
pub const RRE: i32 = 2;
/// Tiles of 16x16 pixels (7.7.4).
pub const HEXTILE: i32 = 5;
/// The pointer's shape (7.8.1).
pub const CURSOR: i32 = -239;
/// A new size of the screen (7.8.2).
pub const DESKTOP_SIZE: i32 = -223;
/// The end of an update whose number of rectangles was not known at its start.
pub const LAST_RECT: i32 = -224;
/// A new name of the desktop.
pub const DESKTOP_NAME: i32 = -307;
/// A new size or layout of the screen, which a viewer may ask for.
pub const EXTENDED_DESKTOP_SIZE: i32 = -308;
/// Messages that the other side answers.
pub const FENCE: i32 = -312;
/// Updates that are not asked for one by one.
pub const CONTINUOUS_UPDATES: i32 = -313;

/// Keys with their places on the keyboard (QEMU's extended key event).
pub const EXTENDED_KEYS: i32 = -258;
/// Clipboards in UTF-8.
pub const EXTENDED_CLIPBOARD: i32 = 0xc0a1_e5ce_u32 as i32;

/// The pseudo-encodings that a client adds if it has clipboards in UTF-8, and keys with their places.
pub const INPUT: [i32; 2] = [EXTENDED_CLIPBOARD, EXTENDED_KEYS];

/// The encodings that a client adds if it wants updates without asking for each.
pub const CONTINUOUS: [i32; 2] = [FENCE, CONTINUOUS_UPDATES];

/// The encodings that the [`Decoder`](super::Decoder) decodes, best first.
pub const WANTED: [i32; 9] = [
    COPY_RECT,
    HEXTILE,
    RRE,
    RAW,
    CURSOR,
    DESKTOP_SIZE,
    EXTENDED_DESKTOP_SIZE,
    LAST_RECT,
    DESKTOP_NAME,
];
