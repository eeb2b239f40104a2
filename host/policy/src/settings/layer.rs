//! Values from one place, in the form that they come in.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Origin, Schema};
use crate::near::slipped;

/// Values from one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Which place.
    pub origin: Origin,
    /// The policy that they are for; without one, for every policy.
    pub policy: Option<String>,
    /// The values.
    pub content: Content,
}

/// The form that values come in.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// An object of the form that the schema describes, in part.
    Tree(Value),
    /// Variables by name. The schema's `x-env` says which setting one feeds; an empty one counts as unset,
    /// and one that feeds nothing is not looked at.
    Env(BTreeMap<String, String>),
}

impl Layer {
    /// Variables, for every policy.
    pub fn env(origin: Origin, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { origin, policy: None, content: Content::Env(variables.into_iter().collect()) }
    }

    /// A part of the settings of one policy.
    pub fn tree(origin: Origin, policy: impl Into<String>, tree: Value) -> Self {
        Self { origin, policy: Some(policy.into()), content: Content::Tree(tree) }
    }

    /// Variables that feed no setting of these schemas and are spelt almost as one that does, with that one.
    pub fn misspelt<'a>(&self, schemas: impl IntoIterator<Item = &'a Schema>) -> Vec<(&str, &'a str)> {
        let Content::Env(variables) = &self.content else { return Vec::new() };
        let schemas = schemas.into_iter();
        let known: BTreeSet<&str> = schemas.flat_map(|schema| schema.variables().keys().map(String::as_str)).collect();
        let strangers = variables.keys().map(String::as_str).filter(|name| !known.contains(name));
        strangers.filter_map(|name| Some((name, slipped(name, known.iter().copied())?))).collect()
    }

    pub(super) fn concerns(&self, policy: &str) -> bool {
        self.policy.as_deref().is_none_or(|name| name == policy)
    }
}
