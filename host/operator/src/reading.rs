//! Reads files that a user names, up to a size limit: a file may be far too large, or an endless device.

use std::{
    fs::{self, File},
    io::{self, Read, Write as _},
    os::unix::fs::FileTypeExt as _,
    path::Path,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::Duration,
};

use kaos_policy::printable::printable;

/// The size limit for a file with objects, in bytes: enough for tens of thousands of objects.
pub const OBJECTS: u64 = 64 << 20;
/// The size limit for a settings file or a `policy.yaml`, in bytes: the maximum size of a ConfigMap.
pub const SETTINGS: u64 = 1 << 20;
/// The size limit for a component, in bytes. This limit is above the gate's limit, so that the gate can report how to
/// make a component smaller.
pub const COMPONENT: u64 = 64 << 20;
/// The size limit for a core module from a compiler, in bytes. A module can contain much debug information.
pub const MODULE: u64 = 512 << 20;

/// The reason why the program could not read a file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refused to read the file.
    #[error("{path}: {source}")]
    Unreadable {
        /// The path as the user gave it.
        path: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is larger than the limit.
    #[error("{path}: is larger than the limit of {limit} bytes: name a smaller file")]
    TooLarge {
        /// The path as the user gave it.
        path: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The file is not text.
    #[error("{path}: is {what}: {}", if what.starts_with("text") { "save it as UTF-8" } else { "name a file with YAML or JSON" })]
    NotText {
        /// The path as the user gave it.
        path: String,
        /// The detected format.
        what: &'static str,
    },
}

/// The time after which the program prints a note that it waits for a pipe.
const PATIENCE: Duration = Duration::from_secs(2);

/// Reads a file of at most `limit` bytes.
pub fn bytes(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let name = path.display().to_string();
    // When this function returns, it drops the sender in `_told`, so that the thread no longer prints the note about
    // the pipe.
    let _told = fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()).then(|| told_of_waiting(&name));
    let file = File::open(path).map_err(|source| ReadError::Unreadable { path: name.clone(), source })?;
    all(file, name, limit)
}

/// Starts a thread that after [`PATIENCE`] prints a note that the program waits for a pipe, because possibly no process
/// writes to this pipe. If the caller drops the returned sender earlier, the thread prints no note.
fn told_of_waiting(name: &str) -> mpsc::Sender<()> {
    let (read, is_read) = mpsc::channel();
    let told =
        format!("note: {}: waiting for another process to write to this pipe and to close it\n", printable(name));
    thread::spawn(move || {
        if is_read.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            let _ = io::stderr().write_all(told.as_bytes());
        }
    });
    read
}

/// Reads the text of a file.
pub fn text(path: &Path, limit: u64) -> Result<String, ReadError> {
    utf8(path.display().to_string(), bytes(path, limit)?)
}

/// Reads the text of standard input.
pub fn standard_input(limit: u64) -> Result<String, ReadError> {
    utf8("-".to_owned(), all(io::stdin().lock(), "-".to_owned(), limit)?)
}

fn all(source: impl Read, path: String, limit: u64) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    match source.take(limit.saturating_add(1)).read_to_end(&mut bytes) {
        Err(source) => Err(ReadError::Unreadable { path, source }),
        Ok(length) if u64::try_from(length).is_ok_and(|length| length <= limit) => Ok(bytes),
        Ok(_) => Err(ReadError::TooLarge { path, limit }),
    }
}

fn utf8(path: String, bytes: Vec<u8>) -> Result<String, ReadError> {
    // Check for UTF-16 first: ASCII text in UTF-16 is also valid UTF-8, with a NUL next to each character.
    match encoding(&bytes) {
        Some(what) => Err(ReadError::NotText { path, what }),
        None => String::from_utf8(bytes).map_err(|_| ReadError::NotText { path, what: "no text in UTF-8" }),
    }
}

/// Recognizes a format other than UTF-8 by the first bytes.
fn encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("text in UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("text in UTF-16"),
        [0, second, 0, ..] if *second != 0 => Some("text in UTF-16"),
        [first, 0, second, 0, ..] if *first != 0 && *second != 0 => Some("text in UTF-16"),
        [0x1f, 0x8b, ..] => Some("packed with gzip"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_the_limit_and_one() {
        let read = |source: &[u8]| all(source, "a".to_owned(), 4);
        assert_eq!(read(b"1234").unwrap(), b"1234");
        assert!(matches!(read(b"12345"), Err(ReadError::TooLarge { limit: 4, .. })));
        let endless = all(io::repeat(0), "/dev/zero".to_owned(), 4).unwrap_err();
        let told = "/dev/zero: is larger than the limit of 4 bytes: name a smaller file";
        assert_eq!(endless.to_string(), told);
    }

    #[test]
    fn bytes_that_are_not_text_are_reported() {
        let told = |bytes: &[u8]| utf8("a".to_owned(), bytes.to_vec()).unwrap_err().to_string();
        assert_eq!(told(&[0xff]), "a: is no text in UTF-8: name a file with YAML or JSON");
        assert_eq!(told(&[0x1f, 0x8b, 8]), "a: is packed with gzip: name a file with YAML or JSON");
        let wide = |bytes: fn(u16) -> [u8; 2]| "kind: A".encode_utf16().flat_map(bytes).collect::<Vec<_>>();
        let (little, big) = (wide(u16::to_le_bytes), wide(u16::to_be_bytes));
        for bytes in [&little, &big, &[&[0xff, 0xfe], &little[..]].concat(), &[&[0xfe, 0xff], &big[..]].concat()] {
            assert_eq!(told(bytes), "a: is text in UTF-16: save it as UTF-8");
        }
        assert!(utf8("a".to_owned(), "\u{feff}kind: A".into()).is_ok(), "the byte order mark of UTF-8 is allowed");
        let missing = text(Path::new("/no/such/file"), 4).unwrap_err().to_string();
        assert!(missing.starts_with("/no/such/file: No such file"), "{missing}");
    }
}
