//! Compares eight bytes at a time. Rust's own `memcmp` for Wasm without WASI compares single bytes. The speed matters,
//! because each lookup in a JSON object compares keys.

/// Compares `count` bytes. Returns zero if all bytes are equal. Otherwise the first pair of different bytes decides:
/// the result is negative if the byte of `one` is smaller, and positive if the byte of `one` is larger.
///
/// # Safety
///
/// Both pointers must be valid for reads of `count` bytes.
#[inline(always)]
#[allow(clippy::inline_always, reason = "only the two exports below call this function")]
unsafe fn compare(mut one: *const u8, mut other: *const u8, mut count: usize) -> i32 {
    while count >= 8 {
        // SAFETY: at least eight bytes are left, and the read needs no alignment.
        let (a, b) = unsafe { (one.cast::<u64>().read_unaligned(), other.cast::<u64>().read_unaligned()) };
        if a != b {
            return if a.swap_bytes() < b.swap_bytes() { -1 } else { 1 };
        }
        (one, other, count) = (one.wrapping_add(8), other.wrapping_add(8), count - 8);
    }
    while count > 0 {
        // SAFETY: at least one byte is left.
        let (a, b) = unsafe { (one.read(), other.read()) };
        if a != b {
            return i32::from(a) - i32::from(b);
        }
        (one, other, count) = (one.wrapping_add(1), other.wrapping_add(1), count - 1);
    }
    0
}

/// Defines `memcmp` and `bcmp`, which compiled code calls to compare bytes. Rust's own library defines both functions
/// as weak symbols, so the linker chooses the functions in this module.
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
mod component {
    // SAFETY: the C standard requires the caller to pass readable bytes.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(one: *const u8, other: *const u8, count: usize) -> i32 {
        // SAFETY: the caller guarantees that the bytes are readable.
        unsafe { super::compare(one, other, count) }
    }

    // SAFETY: the C standard requires the caller to pass readable bytes.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(one: *const u8, other: *const u8, count: usize) -> i32 {
        // SAFETY: the caller guarantees that the bytes are readable.
        unsafe { memcmp(one, other, count) }
    }
}

#[cfg(test)]
mod tests {
    use super::compare;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_compare_as_slices_do(
            same in prop::collection::vec(any::<u8>(), 0..40),
            rest in prop::collection::vec((any::<u8>(), any::<u8>()), 0..20),
        ) {
            let (a, b): (Vec<u8>, Vec<u8>) = rest.into_iter().unzip();
            let (one, other) = ([same.clone(), a].concat(), [same, b].concat());
            for start in 0..one.len().min(8) {
                let (one, other) = (&one[start..], &other[start..]);
                // SAFETY: both slices have this length.
                let found = unsafe { compare(one.as_ptr(), other.as_ptr(), one.len()) };
                prop_assert_eq!(found.cmp(&0), one.cmp(other));
            }
        }
    }
}
