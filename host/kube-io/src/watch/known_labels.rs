//! The labels of a cached object. The cache stores the labels in full if passes compare them, and as hashes if a watch
//! only has to find objects.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::{Value, value::RawValue};

use crate::hashing::hash;

/// The cache ignores the labels of an object with more than this number of labels, so no selector finds the object.
/// Kubernetes sets no limit, and an object may have a hundred thousand labels.
pub(super) const MAX_LABELS: usize = 1_000;

/// The labels of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KnownLabels {
    /// The labels in full, sorted by key. Empty if no selector needs them.
    Pairs(Box<[(Box<str>, Box<str>)]>),
    /// A hash of each label, sorted.
    Marks(Box<[u64]>),
    /// The object has more than [`MAX_LABELS`] labels. No selector finds an object with so many labels.
    TooMany,
}

impl Default for KnownLabels {
    fn default() -> Self {
        Self::Pairs(Box::default())
    }
}

impl KnownLabels {
    /// Returns the labels of an object in full. Skips values that are not texts.
    pub(super) fn of(object: &Value) -> Self {
        let Some(labels) = object["metadata"]["labels"].as_object() else { return Self::default() };
        if labels.len() > MAX_LABELS {
            return Self::TooMany;
        }
        let text = |(key, value): (&String, &Value)| Some((key.as_str().into(), value.as_str()?.into()));
        let mut pairs: Vec<(Box<str>, Box<str>)> = labels.iter().filter_map(text).collect();
        pairs.sort_unstable();
        Self::Pairs(pairs.into())
    }

    /// Returns whether the object has these labels. Returns `false` if the cache stores only hashes, because equal
    /// hashes do not prove equal labels.
    pub(super) fn carry(&self, wanted: &[(String, String)]) -> bool {
        let Self::Pairs(pairs) = self else { return false };
        wanted.iter().all(|(key, value)| {
            let found = pairs.binary_search_by(|(label, _)| (**label).cmp(key));
            found.is_ok_and(|at| *pairs[at].1 == **value)
        })
    }

    /// Returns the hashes of the labels, sorted.
    pub(super) fn marks(&self) -> Box<[u64]> {
        match self {
            Self::Pairs(pairs) => {
                let mut marks: Vec<u64> = pairs.iter().map(|(key, value)| mark(key, value)).collect();
                marks.sort_unstable();
                marks.into()
            }
            Self::Marks(marks) => marks.clone(),
            Self::TooMany => Box::default(),
        }
    }
}

/// Returns the hash of one label.
pub(super) fn mark(key: &str, value: &str) -> u64 {
    hash((key, value))
}

/// Decodes the labels of an object into hashes, one label at a time.
pub(super) struct Marks(pub(super) KnownLabels);

impl<'de> Deserialize<'de> for Marks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MarksVisitor).map(Self)
    }
}

struct MarksVisitor;

impl<'de> Visitor<'de> for MarksVisitor {
    type Value = KnownLabels;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("labels")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KnownLabels, A::Error> {
        let mut marks = Vec::new();
        while let Some((key, value)) = map.next_entry::<Cow<'de, str>, &'de RawValue>()? {
            if marks.len() == MAX_LABELS {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                return Ok(KnownLabels::TooMany);
            }
            if let Ok(value) = serde_json::from_str::<Cow<'_, str>>(value.get()) {
                marks.push(mark(&key, &value));
            }
        }
        marks.sort_unstable();
        Ok(KnownLabels::Marks(marks.into()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn labels(count: usize) -> Value {
        let labels: serde_json::Map<String, Value> =
            (0..count).map(|number| (format!("l{number}"), json!("1"))).collect();
        json!({"metadata": {"labels": labels}})
    }

    fn marks(object: &Value) -> KnownLabels {
        serde_json::from_str::<Marks>(&object["metadata"]["labels"].to_string()).unwrap().0
    }

    #[test]
    fn decoded_hashes_are_the_hashes_of_the_labels() {
        let odd = json!({"metadata": {"labels": {"b": "2", "a": "\u{e4}\"", "odd": 3}}});
        for object in [odd, labels(MAX_LABELS)] {
            let KnownLabels::Marks(decoded) = marks(&object) else { panic!("{object}") };
            assert_eq!(decoded, KnownLabels::of(&object).marks());
        }
    }

    #[test]
    fn an_object_with_too_many_labels_keeps_none() {
        let many = labels(MAX_LABELS + 1);
        for known in [KnownLabels::of(&many), marks(&many)] {
            assert_eq!(known, KnownLabels::TooMany);
            assert!(known.marks().is_empty() && !known.carry(&[("l1".to_owned(), "1".to_owned())]));
        }
    }
}
