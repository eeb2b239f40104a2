//! The registry of runtimes: what a name in `spec.runtime` stands for.
//!
//! A cluster's registry is a ConfigMap in the operator's namespace; where there is none, the entries of the
//! settings stand in, so that nothing has to be installed for a policy to answer. The ConfigMap replaces them
//! as a whole: who takes a runtime out of it has taken it away. What becomes of an entry is decided in
//! [`crate::launch`].

use alloc::collections::BTreeMap;
use alloc::{
    borrow::ToOwned,
    string::{String, ToString},
    vec::Vec,
};

use kaos_policy_sdk::{Decode, Lookup, Object, Path, decode, yaml};
#[cfg(feature = "schema")]
use serde::Serialize;
use serde_json::{Map, Value};
use thiserror::Error;

/// How a runtime is started. A ConfigMap may say more about it; that is for people.
#[derive(Clone, Debug, Default, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, Serialize))]
#[serde(rename_all = "camelCase", default)]
pub struct Runtime {
    /// What it is written in; for people.
    #[serde(rename = "type")]
    pub kind: String,
    /// The image; without one, every server of this runtime must name its own.
    pub image: String,
    /// What it is for; for people.
    pub description: String,
    /// Replaces the entrypoint of the image.
    pub command: Option<Vec<String>>,
    /// Replaces the arguments of the image.
    pub args: Option<Vec<String>>,
    /// The variable that `spec.params` is handed over in.
    pub params_env_var: String,
    /// How it speaks MCP; for people.
    pub transport: String,
    /// Variables that a server of this runtime cannot do without.
    pub required_env: Vec<String>,
    /// The tools that it offers, shown as `status.availableTools`.
    pub tools: Vec<String>,
}

/// Why the registry gives no answer.
#[derive(Debug, Error, PartialEq)]
pub(crate) enum RegistryError {
    #[error("failed to get runtime registry: {0}")]
    Unreadable(String),
    #[error("failed to get runtime registry: ConfigMap {name} has no key {key}")]
    NoKey { name: String, key: String },
    #[error("failed to get runtime registry: {key} in ConfigMap {name} is not usable: {reason}")]
    Malformed { name: String, key: String, reason: String },
}

/// One registry.
#[derive(Debug, PartialEq)]
pub(crate) enum Registry<'a> {
    /// The entries of the settings.
    BuiltIn(&'a BTreeMap<String, Runtime>),
    /// The entries of a ConfigMap; one is read when it is asked for, so that a mistake in it harms no other.
    ConfigMap { source: &'a RegistrySource, entries: Map<String, Value> },
}

/// Where the registry is kept.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, Serialize))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RegistrySource {
    /// The ConfigMap in the operator's namespace.
    pub config_map: String,
    /// Its key.
    pub key: String,
}

impl Default for RegistrySource {
    fn default() -> Self {
        Self { config_map: "kaos-mcp-runtimes".to_owned(), key: "runtimes.yaml".to_owned() }
    }
}

impl<'a> Registry<'a> {
    /// The registry that the answer to the need holds, else the built-in one.
    pub(crate) fn read(
        source: &'a RegistrySource,
        found: Lookup<Object>,
        built_in: &'a BTreeMap<String, Runtime>,
    ) -> Result<Self, RegistryError> {
        match found {
            Lookup::There(config_map) => Self::of_config_map(source, &config_map),
            Lookup::Forbidden(why) => Err(RegistryError::Unreadable(why)),
            Lookup::Absent | Lookup::Unserved | Lookup::Unasked => Ok(Self::BuiltIn(built_in)),
        }
    }

    fn of_config_map(source: &'a RegistrySource, config_map: &Object) -> Result<Self, RegistryError> {
        let text = config_map
            .str_at(&["data", &source.key])
            .ok_or_else(|| RegistryError::NoKey { name: source.config_map.clone(), key: source.key.clone() })?;
        let document = yaml::parse(text).map_err(|error| malformed(source, error.to_string()))?;
        match document {
            Value::Object(mut fields) => match fields.remove("runtimes") {
                Some(Value::Object(entries)) => Ok(Self::ConfigMap { source, entries }),
                Some(Value::Null) | None => Ok(Self::ConfigMap { source, entries: Map::new() }),
                Some(_) => Err(malformed(source, "runtimes must be a mapping from names to entries".to_owned())),
            },
            Value::Null => Ok(Self::ConfigMap { source, entries: Map::new() }),
            _ => Err(malformed(source, "it must be a mapping with the key runtimes".to_owned())),
        }
    }

    /// The names, sorted.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::BuiltIn(entries) => entries.keys().map(String::as_str).collect(),
            Self::ConfigMap { entries, .. } => entries.keys().map(String::as_str).collect(),
        }
    }

    /// The entry of a runtime, or why it cannot be read; none when there is no such runtime.
    pub(crate) fn runtime(&self, name: &str) -> Option<Result<Runtime, RegistryError>> {
        match self {
            Self::BuiltIn(entries) => entries.get(name).cloned().map(Ok),
            Self::ConfigMap { source, entries } => {
                let entry = without_nulls(entries.get(name)?);
                let read = decode(&entry).map_err(|error| {
                    let path = error.path().under(Path::new("runtimes").key(name).as_str());
                    malformed(source, format!("{path}: {}", error.message()))
                });
                Some(read)
            }
        }
    }
}

fn malformed(source: &RegistrySource, reason: String) -> RegistryError {
    RegistryError::Malformed { name: source.config_map.clone(), key: source.key.clone(), reason }
}

/// `command:` with nothing behind it means the same as no `command`.
fn without_nulls(entry: &Value) -> Value {
    let mut entry = if entry.is_null() { Value::Object(Map::new()) } else { entry.clone() };
    if let Value::Object(fields) = &mut entry {
        fields.retain(|_, value| !value.is_null());
    }
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_map(data: &Value) -> Lookup<Object> {
        Lookup::There(Object::new(serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data})))
    }

    fn read(found: Lookup<Object>) -> Result<Registry<'static>, RegistryError> {
        let built_in = BTreeMap::from([("built-in".to_owned(), Runtime::default())]);
        Registry::read(Box::leak(Box::default()), found, Box::leak(Box::new(built_in)))
    }

    fn written(text: &str) -> Result<Registry<'static>, RegistryError> {
        read(config_map(&serde_json::json!({"runtimes.yaml": text})))
    }

    #[test]
    fn a_config_map_replaces_the_built_in_runtimes() {
        let registry = written("runtimes:\n  b: {image: i}\n  a: {image: j}\n").unwrap();
        assert_eq!(registry.names(), ["a", "b"]);
    }

    #[test]
    fn without_a_config_map_the_built_in_runtimes_are_the_registry() {
        for found in [Lookup::Unasked, Lookup::Absent, Lookup::Unserved] {
            assert_eq!(read(found).unwrap().names(), ["built-in"]);
        }
    }

    #[test]
    fn an_entry_with_every_field_is_read() {
        let registry = written(
            "runtimes:\n  full:\n    type: python\n    image: i:1\n    description: d\n    command: [/bin/mcp, serve]\n    \
             args: [\"--port\", \"8000\"]\n    paramsEnvVar: P\n    transport: http\n    requiredEnv:\n    - A\n    \
             tools: [t]\n    unknown: {x: 1}\n",
        )
        .unwrap();
        let runtime = registry.runtime("full").unwrap().unwrap();
        assert_eq!(runtime.image, "i:1");
        assert_eq!(runtime.command, Some(vec!["/bin/mcp".to_owned(), "serve".to_owned()]));
        assert_eq!(runtime.args, Some(vec!["--port".to_owned(), "8000".to_owned()]));
        assert_eq!((runtime.params_env_var.as_str(), runtime.required_env.len(), runtime.tools.len()), ("P", 1, 1));
    }

    #[test]
    fn a_mistake_in_one_entry_harms_no_other() {
        let registry =
            written("runtimes:\n  bad: {image: [1]}\n  good: {image: i, command: null}\n  empty:\n").unwrap();
        let message = registry.runtime("bad").unwrap().unwrap_err().to_string();
        assert!(message.contains("runtimes.bad"), "{message}");
        assert_eq!(registry.runtime("good").unwrap().unwrap().command, None);
        assert_eq!(registry.runtime("empty").unwrap().unwrap(), Runtime::default());
        assert_eq!(registry.runtime("none"), None);
    }

    #[test]
    fn a_registry_that_cannot_be_used_says_where_and_why() {
        let no_key = read(config_map(&serde_json::json!({"other": ""}))).unwrap_err().to_string();
        assert_eq!(no_key, "failed to get runtime registry: ConfigMap kaos-mcp-runtimes has no key runtimes.yaml");
        for text in ["runtimes: [", "runtimes: [a]"] {
            let message = written(text).unwrap_err().to_string();
            assert!(message.starts_with("failed to get runtime registry: runtimes.yaml in ConfigMap"), "{message}");
        }
        let forbidden = read(Lookup::Forbidden("no grant".to_owned())).unwrap_err().to_string();
        assert_eq!(forbidden, "failed to get runtime registry: no grant");
    }
}
