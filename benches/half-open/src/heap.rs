//! The memory that malloc has handed out.

/// The name and the value of the variable that keeps malloc from holding freed memory back for the
/// thread that freed it, which would count as handed out.
pub const WITHOUT_CACHES: (&str, &str) = ("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");

/// Bytes that malloc has handed out to this process, its own headers included, in all arenas and in
/// mappings of their own.
#[allow(unsafe_code)]
pub fn in_use() -> usize {
    // SAFETY: the function has no preconditions and returns a struct of numbers.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_allocated_is_counted() {
        for len in [1000, 10_000_000] {
            let before = in_use();
            let bytes = vec![1u8; len];
            let grown = in_use().saturating_sub(before);
            assert!(grown >= len && grown < len + 100_000, "{grown} for {len}");
            drop(bytes);
        }
    }
}
