//! Finds out whether the user's spec or the settings contain a privileged value. Builds an index of the values in the
//! user's spec and in the settings, so that each check is one lookup.
//!
//! The index compares single leaves of a value, and ignores nulls. The reason is that a policy may merge a value from
//! two fields of the spec, and may remove nulls.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::power::{Field, Raised};
use crate::{digest::canonical, pods};

/// The pod or container for which a value was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum For<'a> {
    /// The value is for the container with this name.
    Container(&'a str),
    /// The value is for the whole pod, or for its main container.
    Pod,
    /// The value comes from the operator's settings, and is for every container.
    Everyone,
}

/// A leaf of a value: the key of the leaf, and its canonical text.
type Leaf<'a> = (&'a str, String);

/// The values that the spec and the settings contain for the fields that a plan raises.
#[derive(Debug)]
pub(super) struct Said<'a>(BTreeSet<(Field<'a>, For<'a>, Leaf<'a>)>);

impl<'a> Said<'a> {
    /// Collects the values of the raised fields from the user's spec and from the operator's settings.
    pub(super) fn about(raised: &[Raised<'a>], user: &[&'a Value], settings: &'a Value) -> Self {
        let mut wanted: BTreeMap<&str, BTreeSet<Field<'a>>> = BTreeMap::new();
        for Raised { field, .. } in raised {
            wanted.entry(field.0).or_default().insert(*field);
        }
        let mut said = Self(BTreeSet::new());
        for text in user {
            said.hear(text, For::Pod, &wanted);
        }
        said.hear(settings, For::Everyone, &wanted);
        said
    }

    /// Returns whether the user's spec or the settings contain each leaf of the value, for the pod or container that
    /// has the field. A value that a user wrote for one container allows nothing for another container. A value that a
    /// user wrote for no particular container applies to the main container.
    pub(super) fn have(&self, raised: &Raised<'a>) -> bool {
        let heard =
            |whom: For<'a>, (key, text): &Leaf<'a>| self.0.contains(&(raised.field, whom, (*key, text.clone())));
        leaves(raised.value).iter().all(|leaf| {
            heard(For::Everyone, leaf)
                || match raised.container {
                    None => heard(For::Pod, leaf),
                    Some(of) => heard(For::Container(of.name), leaf) || (of.is_main && heard(For::Pod, leaf)),
                }
        })
    }

    fn hear(&mut self, value: &'a Value, whom: For<'a>, wanted: &BTreeMap<&str, BTreeSet<Field<'a>>>) {
        match value {
            Value::Object(fields) => {
                for (name, inner) in fields {
                    for field in wanted.iter().filter(|(first, _)| means(name, first, whom)).flat_map(|(_, all)| all) {
                        let here = field.1.iter().fold(inner, |value, name| &value[*name]);
                        if !here.is_null() {
                            self.0.extend(leaves(here).into_iter().map(|leaf| (*field, whom, leaf)));
                        }
                    }
                    let containers = inner.as_array().filter(|_| pods::CONTAINERS.contains(&name.as_str()));
                    match containers {
                        Some(containers) => {
                            for container in containers {
                                let named = container["name"].as_str().map_or(whom, For::Container);
                                self.hear(container, named, wanted);
                            }
                        }
                        None => self.hear(inner, whom, wanted),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.hear(item, whom, wanted)),
            _ => {}
        }
    }
}

/// Returns whether the name of a field or a setting stands for the field `first`. In settings, a prefix is allowed:
/// `podSecurityContext` stands for `securityContext`.
fn means(name: &str, first: &str, whom: For<'_>) -> bool {
    let with_a_word_before = || {
        let mut letters = first.chars();
        let capital = letters.next().map(|letter| letter.to_ascii_uppercase());
        name.strip_suffix(letters.as_str()).is_some_and(|before| before.ends_with(|letter| Some(letter) == capital))
    };
    name == first || (whom == For::Everyone && with_a_word_before())
}

/// Returns the fields of an object, the items of a list, or a value of another type as a single leaf.
fn leaves(value: &Value) -> Vec<Leaf<'_>> {
    let leaves: Vec<Leaf<'_>> = match value {
        Value::Object(fields) => {
            let filled = fields.iter().filter(|(_, value)| !value.is_null());
            filled.map(|(key, value)| (key.as_str(), canonical(&without_nulls(value)))).collect()
        }
        Value::Array(items) => items.iter().map(|item| ("", canonical(&without_nulls(item)))).collect(),
        _ => Vec::new(),
    };
    if leaves.is_empty() { vec![("", canonical(&without_nulls(value)))] } else { leaves }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let filled = fields.iter().filter(|(_, value)| !value.is_null());
            filled.map(|(key, value)| (key.clone(), without_nulls(value))).collect()
        }
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}
