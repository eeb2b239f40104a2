//! Reads the message of a panic from the memory of a trapped component. Before the component traps, the SDK in the
//! component writes the message into a record in this memory.
//!
//! The host cannot call a trapped component. wasmtime provides the component's memory in a core dump. The bytes
//! `MARK` show where the record begins. The text is untrusted, because the policy controls all of it.
//!
//! The module that answers calls of WASI preview 1 keeps its text in globals, because all of the memory belongs to the
//! policy. These globals have the same order as a record: the mark, the length, and the text.

use wasmtime::{Store, Val, WasmCoreDump};

use super::state::State;

/// The bytes at the beginning of the record. Their address is a multiple of their length.
const MARK: [u8; 16] = *b"kaos:last-words:";
/// The maximum length of a reported text, in bytes.
const MAX_BYTES: usize = 1000;

/// The number of globals that contain the text. Each global contains eight bytes of the text.
const GLOBALS: usize = 64;

/// Returns the message of the panic on one line; `None` if neither the memory nor the globals contain a record.
pub(super) fn of(store: &mut Store<State>, error: &wasmtime::Error) -> Option<String> {
    let dump = error.downcast_ref::<WasmCoreDump>()?;
    if let Some(text) = dump.memories().iter().find_map(|memory| read(memory.data(&*store))) {
        return Some(text);
    }
    let globals: Vec<Val> = dump.globals().iter().map(|global| global.get(&mut *store)).collect();
    kept(&globals)
}

/// Returns the first text in the globals.
fn kept(globals: &[Val]) -> Option<String> {
    let (first, second) = MARK.split_at(8);
    let bytes = |global: &Val| global.i64().map(i64::to_le_bytes);
    let is_mark = |global: Option<&Val>, mark: &[u8]| global.and_then(bytes).is_some_and(|bytes| bytes == *mark);
    (0..globals.len()).find_map(|at| {
        if !is_mark(globals.get(at), first) || !is_mark(globals.get(at + 1), second) {
            return None;
        }
        let length = globals.get(at + 2)?.i32()?;
        let all: Vec<[u8; 8]> = globals.get(at + 3..at + 3 + GLOBALS)?.iter().map(bytes).collect::<Option<_>>()?;
        let all = all.as_flattened();
        let used = usize::try_from(length).ok()?.checked_next_multiple_of(8)?;
        let record = [&length.to_le_bytes()[..], all.get(all.len().checked_sub(used)?..)?].concat();
        text(&record)
    })
}

/// Returns the first text in the memory. A memory can have several records, for example one of the SDK and one of the
/// module that answers calls of WASI. Skips records without a text.
fn read(memory: &[u8]) -> Option<String> {
    let (records, _) = memory.as_chunks::<{ MARK.len() }>();
    let marks = records.iter().enumerate().filter(|(_, chunk)| **chunk == MARK);
    marks.filter_map(|(at, _)| memory.get((at + 1) * MARK.len()..)).find_map(text)
}

fn text(record: &[u8]) -> Option<String> {
    let (length, text) = record.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let text = String::from_utf8_lossy(text.get(..length.min(MAX_BYTES))?);
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

    /// Returns globals like those of the module that answers calls of WASI preview 1.
    fn globals(text: &[u8]) -> Vec<Val> {
        let words = |bytes: &[u8]| -> Vec<Val> {
            let padded = |chunk: &[u8]| std::array::from_fn(|at| chunk.get(at).copied().unwrap_or_default());
            bytes.chunks(8).map(|chunk| Val::I64(i64::from_le_bytes(padded(chunk)))).collect()
        };
        let text_words = words(text);
        let empty = vec![Val::I64(0); GLOBALS.saturating_sub(text_words.len())];
        let length = vec![Val::I32(i32::try_from(text.len()).unwrap())];
        [vec![Val::I32(7), Val::I64(7)], words(&MARK), length, empty, text_words].concat()
    }

    #[test]
    fn the_text_in_globals_is_read_as_one_line() {
        for text in ["panic: a", "panic: the kite\n", "fatal error"] {
            assert_eq!(kept(&globals(text.as_bytes())).as_deref(), Some(text.trim_end()));
        }
        assert_eq!(kept(&globals(&[b'x'; 512])).map(|text| text.len()), Some(512));
        assert_eq!(kept(&globals(b"")), None);
        let mut wrong = globals(b"panic");
        wrong[4] = Val::I32(-1);
        assert_eq!(kept(&wrong), None);
        wrong[4] = Val::I32(i32::MAX);
        assert_eq!(kept(&wrong), None);
        let all = globals(b"panic");
        for end in 0..all.len() {
            assert_eq!(kept(&all[..end]), None, "{end}");
        }
    }

    #[test]
    fn the_text_after_the_mark_is_read_as_one_line() {
        let told = read(&memory(32, 20, b"panicked at a:1:2:\nno and more"));
        assert_eq!(told.as_deref(), Some("panicked at a:1:2: n"));
        assert_eq!(read(&memory(0, 4, b"\x1b[2J")).as_deref(), Some("[2J"));
    }

    #[test]
    fn an_empty_broken_or_missing_record_gives_no_text() {
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
    fn records_without_a_text_are_skipped() {
        let both = [memory(0, 0, &[0; 12]), memory(16, 4, b"lost")].concat();
        assert_eq!(read(&both).as_deref(), Some("lost"));
        let both = [memory(0, 4, b"kept"), memory(8, 4, b"lost")].concat();
        assert_eq!(read(&both).as_deref(), Some("kept"));
    }

    #[test]
    fn a_long_or_invalid_text_is_cut() {
        assert_eq!(read(&memory(0, 5000, &[b'x'; 5000])).map(|text| text.len()), Some(MAX_BYTES));
        assert_eq!(read(&memory(0, 2, &[b'x', 0xff])).as_deref(), Some("x\u{fffd}"));
    }
}
