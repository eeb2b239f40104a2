//! What a component wrote before it ended itself: the record that the SDK makes of a panic.
//!
//! A component that trapped cannot be asked. wasmtime hands its memory over as part of a core dump, and the record in it
//! is found by its mark. All of it is a policy's own text.

use wasmtime::{Store, WasmCoreDump};

use super::state::State;

/// What the record begins with; it begins at a multiple of that many bytes.
const MARK: [u8; 16] = *b"kaos:last-words:";
/// Bytes of a text that are told.
const MOST: usize = 1000;

/// The text, on one line, where there is one.
pub(super) fn of(store: &Store<State>, error: &wasmtime::Error) -> Option<String> {
    let dump = error.downcast_ref::<WasmCoreDump>()?;
    dump.memories().iter().find_map(|memory| read(memory.data(store)))
}

fn read(memory: &[u8]) -> Option<String> {
    let (records, _) = memory.as_chunks::<{ MARK.len() }>();
    let at = records.iter().position(|chunk| *chunk == MARK)?;
    let (length, text) = memory.get((at + 1) * MARK.len()..)?.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let text = String::from_utf8_lossy(text.get(..length.min(MOST))?);
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = line.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(at: usize, length: u32, text: &[u8]) -> Vec<u8> {
        let mut memory = vec![1; at];
        memory.extend(MARK);
        memory.extend(length.to_le_bytes());
        memory.extend(text);
        memory
    }

    #[test]
    fn the_text_behind_the_mark_is_read_as_one_line() {
        let told = read(&memory(32, 20, b"panicked at a:1:2:\nno and more"));
        assert_eq!(told.as_deref(), Some("panicked at a:1:2: n"));
        assert_eq!(read(&memory(0, 4, b"\x1b[2J")).as_deref(), Some("[2J"));
    }

    #[test]
    fn a_record_that_is_empty_broken_or_not_there_says_nothing() {
        for wrong in
            [memory(16, 0, b""), memory(16, 5, b"four"), memory(16, u32::MAX, b"x"), memory(8, 1, b"x"), vec![]]
        {
            assert_eq!(read(&wrong), None);
        }
        let cut = memory(16, 1, b"x");
        for end in 0..cut.len() {
            assert_eq!(read(&cut[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_text_that_is_long_or_no_text_is_bounded() {
        assert_eq!(read(&memory(0, 5000, &[b'x'; 5000])).map(|text| text.len()), Some(MOST));
        assert_eq!(read(&memory(0, 2, &[b'x', 0xff])).as_deref(), Some("x\u{fffd}"));
    }
}
