//! Files that a user names, read up to a limit: one may be far too large, or a device that does not end.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

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
    #[error("{path}: is no text in UTF-8: name a file with YAML or JSON")]
    NotText {
        /// As the user named it.
        path: String,
    },
}

/// The bytes of a file, of which there may be so many.
pub fn bytes(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|source| ReadError::Unreadable { path: name.clone(), source })?;
    all(file, name, limit)
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
    String::from_utf8(bytes).map_err(|_| ReadError::NotText { path })
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
        assert!(matches!(utf8("a".to_owned(), vec![0xff]), Err(ReadError::NotText { .. })));
        let missing = text(Path::new("/no/such/file"), 4).unwrap_err().to_string();
        assert!(missing.starts_with("/no/such/file: No such file"), "{missing}");
    }
}
