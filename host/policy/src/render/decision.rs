//! The id of a decision. A log line, an Event and a recorded case with the same id are about the same decision.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

use crate::digest::Digest;

/// The number of bytes in an id.
const BYTES: usize = 8;

/// The id of a decision: a short digest of all inputs of a pass. With the same key, the same policies, settings and
/// objects give the same id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecisionId([u8; BYTES]);

/// The key with which a process computes the ids of its decisions. Without the key, nobody can use an id to test
/// guesses of a secret input. With an empty key, the ids are the same in every process.
#[derive(Clone, Default)]
pub struct DecisionKey(Arc<[u8]>);

impl DecisionKey {
    /// Uses these random bytes as the key.
    pub fn new(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl fmt::Debug for DecisionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecisionKey")
    }
}

/// The error for a text that is not the id of a decision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the id of a decision: write 16 hex digits")]
pub struct DecisionIdError(String);

impl DecisionId {
    /// Derives the id from two digests: `key` covers the inputs that are known before the first lookup, and `found`
    /// covers the found objects.
    pub(super) fn new(secret: &DecisionKey, key: &Digest, found: &Digest) -> Self {
        let inputs = Digest::of(&[key.bytes().as_slice(), found.bytes().as_slice()].concat());
        if secret.0.is_empty() {
            return Self::of(&inputs);
        }
        Self::of(&Digest::of(&[&*secret.0, inputs.bytes().as_slice()].concat()))
    }

    /// Derives the id from a digest of all inputs.
    pub fn of(inputs: &Digest) -> Self {
        let mut id = [0; BYTES];
        id.copy_from_slice(&inputs.bytes()[..BYTES]);
        Self(id)
    }

    /// Returns the id as a number.
    pub fn number(self) -> u64 {
        u64::from_be_bytes(self.0)
    }
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.number())
    }
}

impl FromStr for DecisionId {
    type Err = DecisionIdError;

    fn from_str(text: &str) -> Result<Self, DecisionIdError> {
        let is_id = text.len() == 2 * BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_id);
        number.map(|number| Self(number.to_be_bytes())).ok_or_else(|| DecisionIdError(text.to_owned()))
    }
}

impl Serialize for DecisionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DecisionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_parses_its_own_text_and_no_other() {
        let key = DecisionKey::default();
        let id = DecisionId::new(&key, &Digest::of(b"key"), &Digest::of(b"found"));
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_ne!(id, DecisionId::new(&key, &Digest::of(b"key"), &Digest::of(b"other")));
        let other = DecisionKey::new(b"other");
        assert_ne!(id, DecisionId::new(&other, &Digest::of(b"key"), &Digest::of(b"found")));
        assert_eq!(format!("{other:?}"), "DecisionKey");
        for text in ["", "12", "+123456789abcdef", "0123456789abcdeg", "0123456789abcdef0"] {
            assert!(text.parse::<DecisionId>().is_err(), "{text}");
        }
    }
}
