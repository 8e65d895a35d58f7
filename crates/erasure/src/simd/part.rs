//! Loads and stores parts of a 16-byte register, for instruction sets that only access all of it.

/// The `len` bytes from `at` on, fewer than 16, as little-endian words padded with zeros.
///
/// # Safety
///
/// `at` is valid for reads of `len` bytes.
#[inline(always)]
pub(super) unsafe fn load(at: *const u8, len: usize) -> [u64; 2] {
    // Two overlapping reads cover any length up to twice theirs.
    // SAFETY: the caller's promise; no read ends behind `len`.
    unsafe {
        match len {
            8.. => {
                let low = u64::from_le_bytes(at.cast::<[u8; 8]>().read());
                let high = u64::from_le_bytes(at.add(len - 8).cast::<[u8; 8]>().read());
                // In two steps: if `len` is 8, this shifts by 64 bits, which one shift cannot do.
                [low, high >> (8 * (15 - len)) >> 8]
            }
            4.. => {
                let low = u32::from_le_bytes(at.cast::<[u8; 4]>().read());
                let high = u32::from_le_bytes(at.add(len - 4).cast::<[u8; 4]>().read());
                [u64::from(low) | u64::from(high) << (8 * (len - 4)), 0]
            }
            2.. => {
                let low = u16::from_le_bytes(at.cast::<[u8; 2]>().read());
                let high = u16::from_le_bytes(at.add(len - 2).cast::<[u8; 2]>().read());
                [u64::from(low) | u64::from(high) << (8 * (len - 2)), 0]
            }
            1 => [u64::from(at.read()), 0],
            0 => [0, 0],
        }
    }
}

/// Stores the first `len` bytes, fewer than 16, of little-endian words.
///
/// # Safety
///
/// `at` is valid for writes of `len` bytes.
#[inline(always)]
pub(super) unsafe fn store([low, high]: [u64; 2], at: *mut u8, len: usize) {
    // SAFETY: the caller's promise; no write ends behind `len`.
    unsafe {
        match len {
            8.. => {
                let last = low >> (8 * (len - 8)) | high << (8 * (15 - len)) << 8;
                at.cast::<[u8; 8]>().write(low.to_le_bytes());
                at.add(len - 8).cast::<[u8; 8]>().write(last.to_le_bytes());
            }
            4.. => {
                let last = (low >> (8 * (len - 4))) as u32;
                at.cast::<[u8; 4]>().write((low as u32).to_le_bytes());
                at.add(len - 4).cast::<[u8; 4]>().write(last.to_le_bytes());
            }
            2.. => {
                let last = (low >> (8 * (len - 2))) as u16;
                at.cast::<[u8; 2]>().write((low as u16).to_le_bytes());
                at.add(len - 2).cast::<[u8; 2]>().write(last.to_le_bytes());
            }
            1 => at.write(low as u8),
            0 => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn parts_of_every_length_are_loaded_with_zeros_and_stored_alone() {
        for len in 0..16 {
            // A separate allocation, so that tools detect accesses past its end.
            let part: Vec<u8> = (1..=len as u8).map(|byte| byte * 15).collect();
            // SAFETY: the region has that length.
            let words = unsafe { load(part.as_ptr(), len) };
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(bytes[..len], part);
            assert!(bytes[len..].iter().all(|&byte| byte == 0), "{len}");
            let ones = words.map(|word| !word);
            let mut region = [0xA5; 20];
            // SAFETY: the region is longer.
            unsafe { store(ones, region[2..].as_mut_ptr(), len) };
            assert!(region[2..][..len].iter().zip(&part).all(|(stored, byte)| *stored == !byte));
            assert_eq!(region[..2], [0xA5; 2]);
            assert!(region[2 + len..].iter().all(|&byte| byte == 0xA5), "{len}");
        }
    }
}
