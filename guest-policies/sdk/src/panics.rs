//! Records the source location and the message of a component's panic. The host reads the record after the trap.
//!
//! A component imports nothing, so it cannot print. After a trap, it also returns nothing. But the host can still read
//! the component's memory, and searches it for [`MARK`]. After [`MARK`] come the length of the text (four bytes,
//! little-endian) and the text. `docs/reference/contract.md` describes the record for policies with another SDK.

use core::fmt::{self, Display, Write};

/// The bytes at the start of the record. The host searches the memory for these 16 bytes. The address of the record is
/// a multiple of 16.
const MARK: [u8; 16] = *b"kaos:last-words:";
/// The maximum size of the text in bytes. Longer texts are truncated.
const ROOM: usize = 748;

/// The record that the host searches for.
#[repr(C, align(16))]
struct Record {
    mark: [u8; 16],
    length: [u8; 4],
    text: [u8; ROOM],
}

impl Record {
    const fn new() -> Self {
        Self { mark: MARK, length: [0; 4], text: [0; ROOM] }
    }

    /// Writes the message of a panic into the record.
    fn tell(&mut self, panic: &dyn Display) {
        let mut pen = Pen { room: &mut self.text, used: 0 };
        // Ignore the error: the write fails only if the record is full. The record then contains the beginning of the
        // text.
        let _ = write!(pen, "{panic}");
        let used = pen.used;
        // The text is never longer than `ROOM`, so the conversion cannot fail.
        self.length = u32::try_from(used).unwrap_or_default().to_le_bytes();
    }
}

struct Pen<'a> {
    room: &'a mut [u8],
    used: usize,
}

impl Write for Pen<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            *self.room.get_mut(self.used).ok_or(fmt::Error)? = byte;
            self.used += 1;
        }
        Ok(())
    }
}

/// Reserves memory for the component's record.
#[cfg(target_arch = "wasm32")]
mod component {
    use super::Record;
    use core::cell::UnsafeCell;
    use core::fmt::Display;

    /// Memory that the component's only thread writes once.
    struct RecordCell(UnsafeCell<Record>);

    // SAFETY: a component has one thread, and no code runs after its panic.
    unsafe impl Sync for RecordCell {}

    /// No code of the component reads the record. Without `#[used]`, the compiler would remove the record.
    #[used]
    static RECORD: RecordCell = RecordCell(UnsafeCell::new(Record::new()));

    /// Writes the message of a panic into the record.
    pub fn tell(panic: &dyn Display) {
        // SAFETY: there is one thread, and no code runs after its panic.
        unsafe { &mut *RECORD.0.get() }.tell(panic);
    }
}

#[cfg(target_arch = "wasm32")]
pub use component::tell;

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<u8> {
        let mut record = Record::new();
        record.tell(&text);
        assert_eq!(record.mark, MARK);
        record.text[..u32::from_le_bytes(record.length) as usize].to_vec()
    }

    #[test]
    fn a_text_that_fits_is_kept_as_it_is() {
        assert_eq!(told("panicked at src/lib.rs:1:2:\nno"), b"panicked at src/lib.rs:1:2:\nno");
        assert_eq!(told(""), b"");
    }

    #[test]
    fn a_text_that_is_too_long_is_cut() {
        assert_eq!(told(&"x".repeat(ROOM + 1)), "x".repeat(ROOM).into_bytes());
    }
}
