//! How the colour of a pixel is written (RFC 6143, section 7.4).

use super::RfbError;
use bytes::BufMut as _;

/// The length on the wire.
const LENGTH: usize = 16;

/// A channel of a colour: it is a number up to `max`, `shift` bits above the pixel's lowest bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Channel {
    max: u16,
    shift: u8,
}

impl Channel {
    /// The bits that the channel takes, if a pixel has them.
    fn bits(self, bits_per_pixel: u8) -> Option<u64> {
        let ones = (u64::from(self.max) + 1).next_power_of_two() - 1;
        // A channel without bits must not be shifted out either.
        let bits = (self.shift < bits_per_pixel).then(|| ones << self.shift)?;
        (bits >> bits_per_pixel == 0).then_some(bits)
    }

    /// The share of 255 as a share of `max`, in its place.
    fn encode(self, value: u32) -> u32 {
        (((value & 255) * u32::from(self.max) + 127) / 255) << self.shift
    }

    /// The reverse of [`Self::encode`].
    fn decode(self, pixel: u32) -> u32 {
        let max = u32::from(self.max).max(1);
        let ones = (max + 1).next_power_of_two() - 1;
        ((pixel >> self.shift & ones).min(max) * 255 + max / 2) / max
    }
}

/// Red, green and blue of the colour map that a viewer gets that asks for one: a number of 8 bits has 2 bits
/// of blue above 3 of green above 3 of red.
const BGR233: [Channel; 3] =
    [Channel { max: 7, shift: 0 }, Channel { max: 7, shift: 3 }, Channel { max: 3, shift: 6 }];

/// A format of pixels: 8, 16 or 32 bits, with red, green and blue in any place.
///
/// With a colour map, the pixel is a number of an entry; [`Self::colour_map`] has the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PixelFormat {
    bits_per_pixel: u8,
    depth: u8,
    big_endian: bool,
    true_colour: bool,
    /// Red, green and blue. Their bits are all below `bits_per_pixel`, at most 32, and do not overlap.
    channels: [Channel; 3],
}

impl PixelFormat {
    /// 32 bits, little-endian: the bytes are blue, green, red and an unused one.
    pub const RGB32: Self = Self {
        bits_per_pixel: 32,
        depth: 24,
        big_endian: false,
        true_colour: true,
        channels: [
            Channel { max: 255, shift: 16 },
            Channel { max: 255, shift: 8 },
            Channel { max: 255, shift: 0 },
        ],
    };

    /// The format as it is on the wire. Where a format has a colour map, its maxima and shifts mean nothing.
    ///
    /// # Errors
    /// Pixels do not have 8, 16 or 32 bits, or the channels do not fit in or overlap.
    pub fn parse(bytes: &[u8; LENGTH]) -> Result<Self, RfbError> {
        let &[bits_per_pixel, depth, big_endian, true_colour, maxima @ .., r, g, b, _, _, _] =
            bytes;
        if !matches!(bits_per_pixel, 8 | 16 | 32) {
            return Err(RfbError::PixelFormat("a pixel does not have 8, 16 or 32 bits"));
        }
        let [r1, r0, g1, g0, b1, b0] = maxima;
        let channel = |high, low, shift| Channel { max: u16::from_be_bytes([high, low]), shift };
        let channels = match true_colour {
            0 => BGR233,
            _ => [channel(r1, r0, r), channel(g1, g0, g), channel(b1, b0, b)],
        };
        check(channels, bits_per_pixel)?;
        let (big_endian, true_colour) = (big_endian != 0, true_colour != 0);
        Ok(Self { bits_per_pixel, depth, big_endian, true_colour, channels })
    }

    /// Writes the format as it is on the wire.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend([self.bits_per_pixel, self.depth]);
        out.extend([u8::from(self.big_endian), u8::from(self.true_colour)]);
        self.channels.iter().for_each(|channel| out.put_u16(channel.max));
        out.extend(self.channels.map(|channel| channel.shift));
        out.extend([0; 3]);
    }

    /// The number of bytes of a pixel.
    #[must_use]
    pub fn bytes_per_pixel(self) -> usize {
        usize::from(self.bits_per_pixel / 8)
    }

    /// Whether a pixel is the colour itself and not the number of an entry in a colour map.
    #[must_use]
    pub fn is_true_colour(self) -> bool {
        self.true_colour
    }

    /// Writes a pixel that is `0x00RRGGBB`.
    pub fn encode(self, pixel: u32, out: &mut Vec<u8>) {
        self.encode_row(&[pixel], out);
    }

    /// Writes pixels that are `0x00RRGGBB`.
    pub fn encode_row(&self, pixels: &[u32], out: &mut Vec<u8>) {
        let [red, green, blue] = self.channels;
        if self.channels.iter().all(|channel| channel.max == 255) {
            // A share of 255 is the pixel's own value.
            self.put_row(pixels, out, |pixel| {
                (pixel >> 16 & 255) << red.shift
                    | (pixel >> 8 & 255) << green.shift
                    | (pixel & 255) << blue.shift
            });
        } else {
            self.put_row(pixels, out, |pixel| {
                red.encode(pixel >> 16) | green.encode(pixel >> 8) | blue.encode(pixel)
            });
        }
    }

    /// Writes pixels, which `convert` converts to this format.
    fn put_row(&self, pixels: &[u32], out: &mut Vec<u8>, convert: impl Fn(u32) -> u32) {
        match (self.bits_per_pixel, self.big_endian) {
            (8, _) => put(pixels, out, |pixel| [convert(pixel) as u8]),
            (16, true) => put(pixels, out, |pixel| (convert(pixel) as u16).to_be_bytes()),
            (16, false) => put(pixels, out, |pixel| (convert(pixel) as u16).to_le_bytes()),
            (_, true) => put(pixels, out, |pixel| convert(pixel).to_be_bytes()),
            (_, false) => put(pixels, out, |pixel| convert(pixel).to_le_bytes()),
        }
    }

    /// The colour `0x00RRGGBB` of a pixel; black if there are fewer than [`Self::bytes_per_pixel`].
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> u32 {
        let bytes = bytes.get(..self.bytes_per_pixel()).unwrap_or_default();
        let join = |number: u32, &byte: &u8| number << 8 | u32::from(byte);
        let pixel = match self.big_endian {
            true => bytes.iter().fold(0, join),
            false => bytes.iter().rev().fold(0, join),
        };
        self.channels.iter().fold(0, |colour, channel| colour << 8 | channel.decode(pixel))
    }

    /// Red, green and blue of every entry of the colour map, as 16 bits each (RFC 6143, section 7.6.2).
    pub fn colour_map() -> impl ExactSizeIterator<Item = [u16; 3]> {
        (0..=255u8).map(|pixel| {
            BGR233.map(|channel| {
                // The result of a decoded channel is at most 255; 257 times that is 65535.
                u16::try_from(channel.decode(pixel.into()) * 257).unwrap_or(u16::MAX)
            })
        })
    }
}

/// Writes the bytes of each pixel.
fn put<const N: usize>(pixels: &[u32], out: &mut Vec<u8>, bytes: impl Fn(u32) -> [u8; N]) {
    let start = out.len();
    out.resize(start + N * pixels.len(), 0);
    let (targets, _) = out[start..].as_chunks_mut();
    for (target, &pixel) in targets.iter_mut().zip(pixels) {
        *target = bytes(pixel);
    }
}

fn check(channels: [Channel; 3], bits_per_pixel: u8) -> Result<(), RfbError> {
    let mut taken = 0;
    for channel in channels {
        let bits = channel
            .bits(bits_per_pixel)
            .ok_or(RfbError::PixelFormat("a colour does not fit into a pixel"))?;
        if taken & bits != 0 {
            return Err(RfbError::PixelFormat("colours overlap in a pixel"));
        }
        taken |= bits;
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Formats that viewers ask for, as they are on the wire.
    pub(in crate::rfb) const COMMON: [[u8; 16]; 6] = [
        [32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0],
        [32, 24, 1, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0],
        [16, 16, 0, 1, 0, 31, 0, 63, 0, 31, 11, 5, 0, 0, 0, 0],
        [16, 15, 1, 1, 0, 31, 0, 31, 0, 31, 10, 5, 0, 0, 0, 0],
        [8, 8, 0, 1, 0, 7, 0, 7, 0, 3, 0, 3, 6, 0, 0, 0],
        [8, 8, 0, 0, 0, 7, 0, 7, 0, 3, 0, 3, 6, 0, 0, 0],
    ];

    fn encoded(format: PixelFormat, pixel: u32) -> Vec<u8> {
        let mut out = Vec::new();
        format.encode(pixel, &mut out);
        out
    }

    #[test]
    fn common_formats_encode_as_they_should() {
        let expected: [&[u8]; 6] = [
            &[0x33, 0x80, 0xff, 0],
            &[0, 0x33, 0x80, 0xff],
            &[6, 0xfc],
            &[0x7e, 6],
            &[0x67],
            &[0x67],
        ];
        for (bytes, expected) in COMMON.iter().zip(expected) {
            let format = PixelFormat::parse(bytes).unwrap();
            assert_eq!(encoded(format, 0x00ff_8033), expected, "{format:?}");
            let mut out = Vec::new();
            format.write(&mut out);
            assert_eq!(out, bytes);
        }
        assert_eq!(PixelFormat::parse(&COMMON[0]), Ok(PixelFormat::RGB32));
    }

    #[test]
    fn formats_that_do_not_fit_are_refused() {
        let with = |changes: &[(usize, u8)]| {
            let mut bytes = COMMON[0];
            changes.iter().for_each(|&(at, byte)| bytes[at] = byte);
            PixelFormat::parse(&bytes).map_err(|error| error.to_string())
        };
        for bits in [0, 1, 24, 33, 64, 255] {
            assert!(with(&[(0, bits)]).unwrap_err().contains("8, 16 or 32 bits"));
        }
        for change in [(0, 16), (0, 8), (10, 25), (10, 63), (10, 64), (10, 255)] {
            let error = with(&[change]).unwrap_err();
            assert_eq!(error, "unusable pixel format: a colour does not fit into a pixel");
        }
        assert!(with(&[(5, 0), (10, 32)]).is_err());
        assert!(with(&[(5, 0), (10, 31)]).is_ok());
        assert_eq!(
            with(&[(10, 9)]).unwrap_err(),
            "unusable pixel format: colours overlap in a pixel"
        );
        assert!(with(&[(10, 24)]).is_ok());
    }

    #[test]
    fn the_colour_map_has_the_colours_of_bgr233() {
        let format = PixelFormat::parse(&COMMON[5]).unwrap();
        assert!(!format.is_true_colour());
        for (number, entry) in (0..=255u8).zip(PixelFormat::colour_map()) {
            let colour = entry.iter().fold(0, |colour, &part| colour << 8 | u32::from(part / 257));
            assert_eq!(format.decode(&[number]), colour);
            assert_eq!(encoded(format, colour), [number]);
        }
        assert_eq!(PixelFormat::colour_map().len(), 256);
    }

    /// Formats with channels of any width one above the other.
    fn any_format() -> impl Strategy<Value = PixelFormat> {
        let size = prop_oneof![Just(8u8), Just(16), Just(32)];
        (size, any::<bool>(), [0..=16u32, 0..=16, 0..=16], any::<[u16; 3]>()).prop_filter_map(
            "channels fit",
            |(bits_per_pixel, big_endian, widths, maxima)| {
                let mut shift = 0;
                let mut bytes = [0; LENGTH];
                bytes[..4].copy_from_slice(&[bits_per_pixel, 24, big_endian.into(), 1]);
                for ((at, width), max) in widths.into_iter().enumerate().zip(maxima) {
                    let max = max & ((1u32 << width) - 1) as u16;
                    bytes[4 + 2 * at..][..2].copy_from_slice(&max.to_be_bytes());
                    bytes[10 + at] = shift;
                    shift += width as u8;
                }
                PixelFormat::parse(&bytes).ok()
            },
        )
    }

    proptest! {
        #[test]
        fn a_colour_that_a_format_has_comes_back(format in any_format(), pixel in any::<u32>()) {
            let once = format.decode(&encoded(format, pixel));
            prop_assert!(once <= 0x00ff_ffff);
            prop_assert_eq!(encoded(format, pixel).len(), format.bytes_per_pixel());
            if format.channels.iter().all(|channel| channel.max <= 255) {
                prop_assert_eq!(format.decode(&encoded(format, once)), once);
            }
            for (at, channel) in format.channels.iter().enumerate() {
                let part = |colour: u32| (colour >> (16 - 8 * at) & 255) as i64;
                let error = (part(once) - part(pixel)).abs();
                let step = 255 / i64::from(channel.max.max(1));
                prop_assert!(channel.max == 0 || error <= step / 2 + 1, "{error} {channel:?}");
            }
            let mut out = Vec::new();
            format.write(&mut out);
            prop_assert_eq!(PixelFormat::parse(&out.try_into().unwrap()), Ok(format));
        }

        #[test]
        fn no_bytes_make_the_parser_or_the_codec_panic(bytes in any::<[u8; LENGTH]>(), pixel in any::<u32>()) {
            for size in [8, 16, 32, bytes[0]] {
                let mut bytes = bytes;
                bytes[0] = size;
                if let Ok(format) = PixelFormat::parse(&bytes) {
                    prop_assert!(format.decode(&encoded(format, pixel)) <= 0x00ff_ffff);
                }
            }
        }
    }
}
