//! SHA-256 digests. The digest of a JSON value is the digest of its canonical form.

use std::{fmt, io, str::FromStr};

use serde::{Deserialize, Serialize, de::Error as _};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest. The text form of a digest is `sha256:` and 64 hex digits. The parser also accepts the digits
/// without the prefix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// The error for a text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a SHA-256 digest: write 64 hex digits, with or without `sha256:` before them")]
pub struct DigestError(String);

impl Digest {
    /// Returns the digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the digest of a JSON value, independent of the order of its keys.
    pub fn of_json(value: &Value) -> Self {
        Self::of(canonical(value).as_bytes())
    }

    /// Returns the digest of a value's JSON text. The value's type must not contain unordered maps, because equal
    /// values would then have different texts.
    pub fn of_written(it: &impl Serialize) -> Self {
        let mut hasher = Hasher(Sha256::new());
        let _ = serde_json::to_writer(io::BufWriter::new(&mut hasher), it);
        hasher.0.into()
    }

    /// Returns the digest of all bytes that a reader returns. Only a small part of the bytes is in memory at a time.
    pub fn of_read(mut reader: impl io::Read) -> io::Result<Self> {
        let mut hasher = Hasher(Sha256::new());
        io::copy(&mut reader, &mut hasher)?;
        Ok(hasher.0.into())
    }

    /// Returns the 64 hex digits.
    pub fn hex(&self) -> String {
        let mut text = String::with_capacity(64);
        for byte in self.0 {
            for digit in [byte >> 4, byte & 15] {
                text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
            }
        }
        text
    }

    /// Returns the first 16 hex digits, for names and annotations.
    pub fn short(&self) -> String {
        let mut hex = self.hex();
        hex.truncate(16);
        hex
    }

    /// Returns the 32 bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A writer that hashes all written bytes.
struct Hasher(Sha256);

impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl From<Sha256> for Digest {
    fn from(hasher: Sha256) -> Self {
        Self(hasher.finalize().into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let wrong = || DigestError(text.to_owned());
        let hex = text.strip_prefix("sha256:").unwrap_or(text).as_bytes();
        if hex.len() != 64 {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            for digit in pair {
                let digit = char::from(*digit).to_digit(16).ok_or_else(wrong)?;
                *byte = (*byte << 4) | u8::try_from(digit).map_err(|_| wrong())?;
            }
        }
        Ok(Self(bytes))
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Returns JSON text without spaces and with sorted keys. The order of the keys in `value` has no effect.
pub fn canonical(value: &Value) -> String {
    let mut text = Vec::new();
    write_canonical(value, &mut text);
    String::from_utf8(text).unwrap_or_default()
}

fn write_canonical(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push(b'{');
            for (i, (key, value)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_scalar(key, out);
                out.push(b':');
                write_canonical(value, out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_canonical(item, out);
            }
            out.push(b']');
        }
        scalar => write_scalar(scalar, out),
    }
}

/// Writes a scalar as JSON. Ignores the result, because the serialization of a scalar cannot fail.
fn write_scalar(scalar: &(impl Serialize + ?Sized), out: &mut Vec<u8>) {
    let _ = serde_json::to_writer(out, scalar);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_digest_parses_its_own_text() {
        let digest = Digest::of(b"policy");
        assert_eq!(digest.to_string().parse(), Ok(digest));
        assert_eq!(digest.hex().parse(), Ok(digest));
    }

    #[test]
    fn an_invalid_digest_is_an_error_without_a_panic() {
        for text in ["", "sha256:", "sha256:zz", &"é".repeat(32), &"g".repeat(64)] {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }

    #[test]
    fn canonical_json_sorts_keys_at_every_depth() {
        let value = json!({"b": [{"d": 1, "c": "\n\"é"}], "a": null});
        assert_eq!(canonical(&value), r#"{"a":null,"b":[{"c":"\n\"é","d":1}]}"#);
    }
}
