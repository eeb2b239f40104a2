//! Files that a user names, read up to a limit: one may be far too large, or a device that does not end.

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

/// Bytes of a file with objects: room for tens of thousands.
pub const OBJECTS: u64 = 64 << 20;
/// Bytes of a file with settings or of a policy file, which a ConfigMap must hold.
pub const SETTINGS: u64 = 1 << 20;
/// Bytes of a component; of one that is only somewhat too large the gate says what to do about it.
pub const COMPONENT: u64 = 64 << 20;
/// Bytes of a core module as a compiler leaves it, with everything for a debugger.
pub const MODULE: u64 = 512 << 20;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system says no.
    #[error("{path}: {source}")]
    Unreadable {
        /// As the user named it.
        path: String,
        /// What the system says.
        source: io::Error,
    },
    /// It goes on.
    #[error("{path}: has more than {limit} bytes, which is the most that is read of it: name a smaller file")]
    TooLarge {
        /// As the user named it.
        path: String,
        /// The most that it may have.
        limit: u64,
    },
    /// It is no text.
    #[error("{path}: is {what}: {}", if what.starts_with("text") { "save it as UTF-8" } else { "name a file with YAML or JSON" })]
    NotText {
        /// As the user named it.
        path: String,
        /// What it is.
        what: &'static str,
    },
}

/// How long somebody who writes into a pipe is waited for without a word.
const PATIENCE: Duration = Duration::from_secs(2);

/// The bytes of a file, of which there may be so many.
pub fn bytes(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let name = path.display().to_string();
    // Dropped when everything is read.
    let _told = fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo()).then(|| told_of_waiting(&name));
    let file = File::open(path).map_err(|source| ReadError::Unreadable { path: name.clone(), source })?;
    all(file, name, limit)
}

/// Says after a while that a pipe is waited for, until what this returns is dropped: nobody may be there to write into it.
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

/// The text of a file.
pub fn text(path: &Path, limit: u64) -> Result<String, ReadError> {
    utf8(path.display().to_string(), bytes(path, limit)?)
}

/// The text of standard input.
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
    // UTF-16 of ASCII is UTF-8 too, with a NUL beside each character.
    match encoding(&bytes) {
        Some(what) => Err(ReadError::NotText { path, what }),
        None => String::from_utf8(bytes).map_err(|_| ReadError::NotText { path, what: "no text in UTF-8" }),
    }
}

/// What bytes are that are no UTF-8, by how they begin.
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
        let told = "/dev/zero: has more than 4 bytes, which is the most that is read of it: name a smaller file";
        assert_eq!(endless.to_string(), told);
    }

    #[test]
    fn what_is_no_text_is_told() {
        let told = |bytes: &[u8]| utf8("a".to_owned(), bytes.to_vec()).unwrap_err().to_string();
        assert_eq!(told(&[0xff]), "a: is no text in UTF-8: name a file with YAML or JSON");
        assert_eq!(told(&[0x1f, 0x8b, 8]), "a: is packed with gzip: name a file with YAML or JSON");
        let wide = |bytes: fn(u16) -> [u8; 2]| "kind: A".encode_utf16().flat_map(bytes).collect::<Vec<_>>();
        let (little, big) = (wide(u16::to_le_bytes), wide(u16::to_be_bytes));
        for bytes in [&little, &big, &[&[0xff, 0xfe], &little[..]].concat(), &[&[0xfe, 0xff], &big[..]].concat()] {
            assert_eq!(told(bytes), "a: is text in UTF-16: save it as UTF-8");
        }
        assert!(utf8("a".to_owned(), "\u{feff}kind: A".into()).is_ok(), "a mark of UTF-8 is none of another");
        let missing = text(Path::new("/no/such/file"), 4).unwrap_err().to_string();
        assert!(missing.starts_with("/no/such/file: No such file"), "{missing}");
    }
}
