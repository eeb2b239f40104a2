//! The registry of runtimes, which defines the valid names for `spec.runtime`.
//!
//! A cluster's registry is a ConfigMap in the operator's namespace. Without this ConfigMap, the entries of the settings
//! apply, so the policy works without an installed registry. The ConfigMap replaces all entries of the settings: a
//! runtime that is not in the ConfigMap does not exist. [`crate::launch`] uses the entries.

use alloc::{borrow::ToOwned, string::String, vec::Vec};

use kaos_policy_sdk::{Decode, DecodeError, Lookup, Object, Path};
use kaos_workload::Registry;
#[cfg(feature = "schema")]
use serde::Serialize;
use serde_json::{Map, Value};
use thiserror::Error;

/// How to start servers of a runtime. An entry in a ConfigMap may have further fields, which the policy ignores.
#[derive(Clone, Debug, Default, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, Serialize))]
#[serde(rename_all = "camelCase", default)]
pub struct Runtime {
    /// The language of the runtime. Only for information.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    #[serde(rename = "type")]
    pub kind: Prose,
    /// The image. If a runtime has no image, each server with this runtime must set an image.
    pub image: String,
    /// The purpose of the runtime. Only for information.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub description: Prose,
    /// Replaces the entrypoint of the image.
    pub command: Option<Vec<String>>,
    /// Replaces the arguments of the image.
    pub args: Option<Vec<String>>,
    /// The variable for `spec.params`. The parameters win over a variable that the policy sets, such as `LOG_LEVEL`. A
    /// variable of the user wins over the parameters.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::any_variable"))]
    pub params_env_var: String,
    /// The transport of MCP. Only for information.
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub transport: Prose,
    /// Variables that servers of this runtime require.
    pub required_env: Vec<String>,
    /// The tools of the runtime, shown as `status.availableTools`.
    pub tools: Vec<String>,
}

/// A text for people, which the policy does not use. A value of another type becomes an empty text, without an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(Serialize))]
pub struct Prose(pub String);

impl Decode for Prose {
    fn decode(value: &Value) -> Result<Self, DecodeError> {
        Ok(Self(value.as_str().unwrap_or_default().to_owned()))
    }
}

/// The reasons why the policy cannot use the registry.
#[derive(Debug, Error, PartialEq)]
pub(crate) enum RegistryError {
    #[error("failed to get runtime registry: {0}")]
    Unreadable(String),
    #[error("failed to get runtime registry: ConfigMap {name} has no key {key}")]
    NoKey { name: String, key: String },
    #[error("failed to get runtime registry: {key} in ConfigMap {name} is not usable: {reason}")]
    Malformed { name: String, key: String, reason: String },
}

/// The ConfigMap of the registry, and the key in this ConfigMap.
#[derive(Clone, Debug, PartialEq, Decode)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, Serialize))]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RegistrySource {
    /// ConfigMap of runtimes in the operator's namespace. The policy can read only this ConfigMap. To use another
    /// ConfigMap, add a grant in policy.yaml.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::object_name"))]
    pub config_map: String,
    /// The key in the ConfigMap.
    #[cfg_attr(feature = "schema", schemars(schema_with = "kaos_workload::shape::file_name"))]
    pub key: String,
}

impl Default for RegistrySource {
    fn default() -> Self {
        Self { config_map: "kaos-mcp-runtimes".to_owned(), key: "runtimes.yaml".to_owned() }
    }
}

/// Reads the registry from the ConfigMap that the host found. If the ConfigMap is absent, returns the runtimes of the
/// settings.
pub(crate) fn read(
    source: &RegistrySource,
    found: Lookup<Object>,
    built_in: &Map<String, Value>,
) -> Result<Registry, RegistryError> {
    let config_map = match found {
        Lookup::There(config_map) => config_map,
        Lookup::Forbidden(why) => return Err(RegistryError::Unreadable(why)),
        Lookup::Absent | Lookup::Unserved | Lookup::Unasked => return Ok(Registry::from(built_in)),
    };
    let text = config_map
        .str_at(&["data", &source.key])
        .ok_or_else(|| RegistryError::NoKey { name: source.config_map.clone(), key: source.key.clone() })?;
    Registry::parse(text).map_err(|reason| malformed(source, reason))
}

/// Returns the entry of the runtime `name`, or an error if the policy cannot decode the entry. Returns `None` if the
/// registry has no entry `name`.
pub(crate) fn runtime(
    registry: &Registry,
    name: &str,
    source: &RegistrySource,
) -> Option<Result<Runtime, RegistryError>> {
    let runtime = registry.entry(name)?.and_then(|runtime: Runtime| {
        if runtime.params_env_var.contains(['=', '\0']) {
            let path = Path::new("runtimes").key(name).key("paramsEnvVar");
            return Err(format!("{path}: a variable's name must not contain '='"));
        }
        Ok(runtime)
    });
    Some(runtime.map_err(|reason| malformed(source, reason)))
}

fn malformed(source: &RegistrySource, reason: String) -> RegistryError {
    RegistryError::Malformed { name: source.config_map.clone(), key: source.key.clone(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config_map(data: &Value) -> Lookup<Object> {
        Lookup::There(Object::new(json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data})))
    }

    fn looked_up(found: Lookup<Object>) -> Result<Registry, RegistryError> {
        let mut built_in = Map::new();
        built_in.insert("built-in".to_owned(), json!({}));
        read(&RegistrySource::default(), found, &built_in)
    }

    fn written(text: &str) -> Result<Registry, RegistryError> {
        looked_up(config_map(&json!({"runtimes.yaml": text})))
    }

    #[test]
    fn a_config_map_replaces_the_built_in_runtimes() {
        let registry = written("runtimes:\n  b: {image: i}\n  a: {image: j}\n").unwrap();
        assert_eq!(registry.names(), ["a", "b"]);
    }

    #[test]
    fn without_a_config_map_the_built_in_runtimes_are_the_registry() {
        for found in [Lookup::Unasked, Lookup::Absent, Lookup::Unserved] {
            assert_eq!(looked_up(found).unwrap().names(), ["built-in"]);
        }
    }

    #[test]
    fn an_entry_with_every_field_is_read() {
        let registry = written(
            "runtimes:\n  full:\n    type: python\n    image: i:1\n    description: d\n    command: [/bin/mcp, \
             serve]\n    args: [\"--port\", \"8000\"]\n    paramsEnvVar: P\n    transport: http\n    requiredEnv:\n    \
             - A\n    tools: [t]\n    unknown: {x: 1}\n",
        )
        .unwrap();
        let read: Runtime = runtime(&registry, "full", &RegistrySource::default()).unwrap().unwrap();
        assert_eq!(read.image, "i:1");
        assert_eq!(read.command, Some(vec!["/bin/mcp".to_owned(), "serve".to_owned()]));
        assert_eq!(read.args, Some(vec!["--port".to_owned(), "8000".to_owned()]));
        assert_eq!((read.params_env_var.as_str(), read.required_env.len(), read.tools.len()), ("P", 1, 1));
    }

    fn read_entry(text: &str) -> Runtime {
        runtime(&written(text).unwrap(), "r", &RegistrySource::default()).unwrap().unwrap()
    }

    #[test]
    fn scalars_without_quotes_are_texts() {
        let read = read_entry("r: {image: 5, args: [--port, 8000, 1.10, true], transport: 1, tools: [7]}");
        assert_eq!((read.image.as_str(), read.transport.0.as_str()), ("5", "1"));
        assert_eq!(read.args.unwrap(), ["--port", "8000", "1.10", "true"]);
        assert_eq!(read.tools, ["7"]);
    }

    #[test]
    fn descriptive_fields_of_an_entry_may_have_any_type() {
        let read = read_entry("r: {image: i, type: [python], description: {en: d}, transport: [http, sse]}");
        assert_eq!((read.image.as_str(), read.description), ("i", Prose::default()));
    }

    #[test]
    fn the_error_for_an_unusable_registry_has_place_and_reason() {
        let no_key = looked_up(config_map(&json!({"other": ""}))).unwrap_err().to_string();
        assert_eq!(no_key, "failed to get runtime registry: ConfigMap kaos-mcp-runtimes has no key runtimes.yaml");
        for text in ["runtimes: [", "runtimes: [a]"] {
            let message = written(text).unwrap_err().to_string();
            assert!(message.starts_with("failed to get runtime registry: runtimes.yaml in ConfigMap"), "{message}");
        }
        let entry = written("r: {image: i, paramsEnvVar: 'P='}").unwrap();
        let no_variable = runtime(&entry, "r", &RegistrySource::default()).unwrap().unwrap_err().to_string();
        assert!(no_variable.contains("runtimes.r.paramsEnvVar: "), "{no_variable}");
        let dotted = written("my.r: {paramsEnvVar: 'P='}").unwrap();
        let message = runtime(&dotted, "my.r", &RegistrySource::default()).unwrap().unwrap_err().to_string();
        assert!(message.contains("runtimes[\"my.r\"].paramsEnvVar: "), "{message}");
        let long = written(&"# of no use\n".repeat(20_000)).unwrap_err().to_string();
        assert!(
            long.contains("runtimes.yaml in ConfigMap kaos-mcp-runtimes is not usable: it has 240000 bytes"),
            "{long}"
        );
        let registry = written("runtimes: {bad: {image: [1]}}").unwrap();
        let message = runtime(&registry, "bad", &RegistrySource::default()).unwrap().unwrap_err().to_string();
        assert!(message.contains("runtimes.bad.image"), "{message}");
        let forbidden = looked_up(Lookup::Forbidden("no grant".to_owned())).unwrap_err().to_string();
        assert_eq!(forbidden, "failed to get runtime registry: no grant");
    }
}
