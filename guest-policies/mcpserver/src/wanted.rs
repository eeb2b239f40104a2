//! What an `MCPServer` asks for, whichever of the forms of the years it is written in.
//!
//! Older fields are honoured with a note that names the field to use now. What is asked for is looked up in
//! [`crate::registry`] and turned into a container in [`crate::launch`].

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_crds::mcpserver::{McpConfig, McpTools};
use kaos_crds::{KeySelector, MCPServerSpec, Telemetry};
use kaos_policy_sdk::refusal;
use kaos_policy_sdk::types::{Note, Refusal};
use kaos_workload::notes::deprecated;

/// The runtime whose `params` are Python source, and what older forms of the same are now.
pub(crate) const PYTHON_STRING: &str = "python-string";
/// The runtime that is nothing but the user's own image.
pub(crate) const CUSTOM: &str = "custom";

/// The older type whose packages are those of npm: another index may have another package of the same name.
const NODE: &str = "node-runtime";

/// What runs.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    /// The user's own image.
    Custom,
    /// A runtime of the registry.
    Registry(String),
    /// A Python package that is installed when the pod starts; `path` is where the object names it.
    Package { name: String, path: &'static str },
}

/// What the runtime is given.
#[derive(Debug, PartialEq)]
pub(crate) enum Params {
    Text { text: String, path: &'static str },
    Secret { key: KeySelector, path: &'static str },
}

/// An `MCPServer` with its aliases resolved.
#[derive(Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) source: Source,
    pub(crate) params: Option<Params>,
    pub(crate) telemetry: Option<Telemetry>,
    /// Where the object says it.
    pub(crate) telemetry_path: &'static str,
    pub(crate) notes: Vec<Note>,
}

impl Wanted {
    /// Reads the spec.
    pub(crate) fn of(spec: &MCPServerSpec) -> Result<Self, Refusal> {
        let none = McpConfig::default();
        let config = spec.config.as_ref().unwrap_or(&none);
        let mut notes = Vec::new();
        if spec.type_.is_some() {
            notes.push(deprecated("spec.type", Some("spec.runtime")));
        }
        if !config.env.is_empty() {
            notes.push(deprecated("spec.config.env", Some("spec.container.env")));
        }
        if spec.resources.is_some() {
            notes.push(deprecated("spec.resources", Some("spec.container.resources")));
        }
        let package = package(config, &mut notes);
        let older = older_params(config, &mut notes);
        let source = match (text(spec.runtime.as_ref()), package, &older) {
            (Some(CUSTOM), ..) => Source::Custom,
            (Some(name), ..) => Source::Registry(name.to_owned()),
            // As ever: the source text first, the package where there is none.
            (None, _, Some(_)) => Source::Registry(PYTHON_STRING.to_owned()),
            (None, Some(Source::Package { path, .. }), None) if text(spec.type_.as_ref()) == Some(NODE) => {
                let message = "packages of type node-runtime are npm's, which are not installed: use runtime custom with \
                               container.image";
                return Err(refusal::invalid(path, message));
            }
            (None, Some(package), None) => package,
            (None, None, None) => {
                let message = "a runtime is required: name one of the registry, or custom with container.image";
                return Err(refusal::invalid("spec.runtime", message));
            }
        };
        let params = match text(spec.params.as_ref()) {
            Some(text) => Some(Params::Text { text: text.to_owned(), path: "spec.params" }),
            None => older,
        };
        if config.telemetry.is_some() {
            notes.push(deprecated("spec.config.telemetry", Some("spec.telemetry")));
        }
        let (telemetry, telemetry_path) = match (&spec.telemetry, &config.telemetry) {
            (None, Some(older)) => (Some(older.clone()), "spec.config.telemetry"),
            (own, _) => (own.clone(), "spec.telemetry"),
        };
        Ok(Self { source, params, telemetry, telemetry_path, notes })
    }
}

/// The package of the oldest forms.
fn package(config: &McpConfig, notes: &mut Vec<Note>) -> Option<Source> {
    let from_tools = config.tools.as_ref().and_then(|tools| text(tools.from_package.as_ref()));
    let (name, path) = match (from_tools, text(config.mcp.as_ref())) {
        (Some(name), _) => (name, "spec.config.tools.fromPackage"),
        (None, Some(name)) => (name, "spec.config.mcp"),
        (None, None) => return None,
    };
    notes.push(deprecated(path, Some("a runtime of the registry, or spec.runtime custom with container.image")));
    Some(Source::Package { name: name.to_owned(), path })
}

/// The source text of the older forms.
fn older_params(config: &McpConfig, notes: &mut Vec<Note>) -> Option<Params> {
    let no_tools = McpTools::default();
    let tools = config.tools.as_ref().unwrap_or(&no_tools);
    let written = [
        (tools.from_string.as_ref(), "spec.config.tools.fromString"),
        (config.tools_string.as_ref(), "spec.config.toolsString"),
    ];
    let mut params = None;
    for (source, path) in written {
        if let Some(source) = text(source) {
            notes.push(deprecated(path, Some("spec.runtime python-string with spec.params")));
            params = params.or_else(|| Some(Params::Text { text: source.to_owned(), path }));
        }
    }
    if let Some(key) = &tools.from_secret_key_ref {
        let path = "spec.config.tools.fromSecretKeyRef";
        notes.push(deprecated(path, Some("spec.runtime python-string, and MCP_TOOLS_STRING in spec.container.env")));
        params = params.or_else(|| Some(Params::Secret { key: key.clone(), path }));
    }
    params
}

fn text(value: Option<&String>) -> Option<&str> {
    value.map(String::as_str).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn wanted(spec: Value) -> Result<Wanted, Refusal> {
        Wanted::of(&serde_json::from_value(spec).unwrap())
    }

    fn deprecated_paths(wanted: &Wanted) -> Vec<&str> {
        wanted.notes.iter().filter(|n| n.reason == "Deprecated").filter_map(|n| n.path.as_deref()).collect()
    }

    #[test]
    fn a_runtime_with_params_is_what_it_says() {
        let wanted = wanted(json!({"runtime": "full", "params": "p"})).unwrap();
        assert_eq!(wanted.source, Source::Registry("full".to_owned()));
        assert_eq!(wanted.params, Some(Params::Text { text: "p".to_owned(), path: "spec.params" }));
        assert_eq!(wanted.notes, []);
    }

    #[test]
    fn python_source_in_older_fields_is_the_python_string_runtime() {
        for (config, path) in [
            (json!({"toolsString": "s"}), "spec.config.toolsString"),
            (json!({"tools": {"fromString": "s"}}), "spec.config.tools.fromString"),
        ] {
            let wanted = wanted(json!({"type": "python-runtime", "config": config})).unwrap();
            assert_eq!(wanted.source, Source::Registry(PYTHON_STRING.to_owned()));
            assert_eq!(wanted.params, Some(Params::Text { text: "s".to_owned(), path }));
            assert_eq!(deprecated_paths(&wanted), ["spec.type", path]);
        }
    }

    #[test]
    fn a_secret_with_python_source_is_referred_to() {
        let key = json!({"name": "n", "key": "k"});
        let wanted = wanted(json!({"config": {"tools": {"fromSecretKeyRef": key}}})).unwrap();
        let Some(Params::Secret { key, .. }) = &wanted.params else { panic!("{wanted:?}") };
        assert_eq!((key.name.as_str(), key.key.as_str()), ("n", "k"));
    }

    #[test]
    fn packages_of_both_older_forms_are_packages() {
        for (config, path) in [
            (json!({"mcp": "mcp-server-time"}), "spec.config.mcp"),
            (json!({"tools": {"fromPackage": "mcp-server-time"}}), "spec.config.tools.fromPackage"),
        ] {
            let python = wanted(json!({"type": "python-runtime", "config": config})).unwrap();
            assert_eq!(python.source, Source::Package { name: "mcp-server-time".to_owned(), path });
            assert_eq!(deprecated_paths(&python), ["spec.type", path]);
            let Err(Refusal::Invalid(violations)) = wanted(json!({"type": "node-runtime", "config": config})) else {
                panic!("an npm package is looked for in PyPI")
            };
            assert_eq!(violations[0].path, path);
        }
    }

    #[test]
    fn a_runtime_wins_over_older_fields_and_params_over_their_source() {
        let spec = json!({"runtime": "r", "params": "new", "config": {"mcp": "p", "toolsString": "old"}});
        let wanted = wanted(spec).unwrap();
        assert_eq!(wanted.source, Source::Registry("r".to_owned()));
        assert_eq!(wanted.params, Some(Params::Text { text: "new".to_owned(), path: "spec.params" }));
    }

    #[test]
    fn a_server_without_any_runtime_is_refused_with_the_path() {
        for spec in [json!({}), json!({"runtime": ""}), json!({"params": "x"}), json!({"config": {"env": []}})] {
            let Err(Refusal::Invalid(violations)) = wanted(spec) else { panic!("accepted") };
            assert_eq!(violations[0].path, "spec.runtime");
        }
    }

    #[test]
    fn older_telemetry_counts_where_there_is_no_newer() {
        let older = json!({"runtime": "r", "config": {"telemetry": {"enabled": true}}});
        let read = wanted(older.clone()).unwrap();
        assert_eq!(read.telemetry.as_ref().and_then(|t| t.enabled), Some(true));
        assert_eq!(deprecated_paths(&read), ["spec.config.telemetry"]);
        let mut both = older;
        both["telemetry"] = json!({"enabled": false});
        assert_eq!(wanted(both).unwrap().telemetry.and_then(|t| t.enabled), Some(false));
    }
}
