//! Settings layers: the values from one source, in their original form.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Origin, Schema};
use crate::near::slipped;

/// The values from one source.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// The source.
    pub origin: Origin,
    /// The policy that the values are for. `None` means that the values are for every policy.
    pub policy: Option<String>,
    /// The values.
    pub content: Content,
}

/// The form of the values.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Settings as a JSON object, which may contain only some of the settings.
    Tree(Value),
    /// Environment variables by name. The schema's `x-env` connects a variable with a setting. The host ignores empty
    /// variables, and variables that no `x-env` names.
    Env(BTreeMap<String, String>),
}

impl Layer {
    /// Creates a layer of variables, for every policy.
    pub fn env(origin: Origin, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { origin, policy: None, content: Content::Env(variables.into_iter().collect()) }
    }

    /// Creates a layer with a part of the settings of one policy.
    pub fn tree(origin: Origin, policy: impl Into<String>, tree: Value) -> Self {
        Self { origin, policy: Some(policy.into()), content: Content::Tree(tree) }
    }

    /// Returns the variables whose names are probably misspelt. No setting of these schemas uses such a variable, but a
    /// setting uses a similar name. Each entry contains the unused name and the similar name.
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
