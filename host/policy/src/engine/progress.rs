//! Reads the progress of a script from the memory of a script engine whose sandbox ended.
//!
//! The script engine regularly polls whether it must stop the script. The script engine counts every 16th poll, in a
//! record in its memory. The record begins with the bytes of [`MARK`]. These numbers follow: the counted polls so far,
//! the polls that were counted when the running function began, and the line and the column of this function. All
//! numbers are little-endian. See `guest-policies/javascript/src/progress.rs`.

use wasmtime::{Store, WasmCoreDump};

/// The bytes at the beginning of the record. Their address is a multiple of their length.
const MARK: [u8; 16] = *b"kaos:script-poll";

/// The progress of a script when its sandbox ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Progress {
    /// The number of the last counted poll in the function that ran. `None` if this function has no counted poll.
    pub(super) last_poll: Option<u64>,
    /// The line of the function that ran. At least 1.
    pub(super) line: u32,
    /// The column of this function. At least 1.
    pub(super) column: u32,
}

/// Returns the progress; `None` if no memory contains the record.
pub(super) fn of<T: 'static>(store: &Store<T>, error: &wasmtime::Error) -> Option<Progress> {
    let dump = error.downcast_ref::<WasmCoreDump>()?;
    dump.memories().iter().find_map(|memory| read(memory.data(store)))
}

fn read(memory: &[u8]) -> Option<Progress> {
    let (chunks, _) = memory.as_chunks::<{ MARK.len() }>();
    let at = chunks.iter().position(|chunk| *chunk == MARK)?;
    let record = chunks.get(at + 1..)?.as_flattened();
    let (polls, rest) = record.split_first_chunk()?;
    let (before, rest) = rest.split_first_chunk()?;
    let (line, rest) = rest.split_first_chunk()?;
    let (column, _) = rest.split_first_chunk()?;
    let (polls, before) = (u64::from_le_bytes(*polls), u64::from_le_bytes(*before));
    let (line, column) = (u32::from_le_bytes(*line).max(1), u32::from_le_bytes(*column).max(1));
    Some(Progress { last_poll: (polls > before).then_some(polls), line, column })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(polls: u64, before: u64, line: u32, column: u32) -> Vec<u8> {
        let counts = [polls.to_le_bytes(), before.to_le_bytes()].concat();
        let place = [line.to_le_bytes(), column.to_le_bytes()].concat();
        [&[7; 32][..], &MARK, &counts, &place, &[0; 8]].concat()
    }

    #[test]
    fn the_record_in_the_memory_is_read() {
        assert_eq!(read(&memory(300, 20, 4, 8)), Some(Progress { last_poll: Some(300), line: 4, column: 8 }));
        assert_eq!(read(&memory(300, 300, 4, 8)), Some(Progress { last_poll: None, line: 4, column: 8 }));
        assert_eq!(read(&memory(0, 0, 0, 0)), Some(Progress { last_poll: None, line: 1, column: 1 }));
    }

    #[test]
    fn a_memory_without_a_whole_record_has_no_progress() {
        let whole = memory(300, 20, 4, 8);
        for end in 0..whole.len() - 8 {
            assert_eq!(read(&whole[..end]), None, "{end}");
        }
        assert_eq!(read(&[&[0][..], &whole].concat()), None, "the address is no multiple of 16");
    }
}
