//! Reads an `MCPServer` in its current form and in all deprecated forms.
//!
//! Deprecated fields still work, and the policy adds a note that names the current field. [`crate::registry`] looks up
//! the runtime, and [`crate::launch`] decides how to start the container.

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_crds::mcpserver::{McpConfig, McpTools};
use kaos_crds::{KeySelector, MCPServerSpec, Telemetry};
use kaos_policy_sdk::refusal;
use kaos_policy_sdk::types::{Note, Refusal};
use kaos_workload::notes::{deprecated, ignored, older, older_env};

/// The name of the runtime for Python source in `params`. Deprecated fields for Python source select this runtime.
pub(crate) const PYTHON_STRING: &str = "python-string";
/// The name of the runtime that runs the user's own image. This runtime needs no entry in the registry.
pub(crate) const CUSTOM: &str = "custom";

/// The deprecated type for packages from npm. The policy refuses such a package, because it would install another
/// package of the same name from PyPI.
const NODE: &str = "node-runtime";

/// The program that the server runs.
#[derive(Debug, PartialEq)]
pub(crate) enum Source {
    /// The user's own image.
    Custom,
    /// A runtime of the registry.
    Registry(String),
    /// A Python package that the pod installs when it starts. `path` is the object's field with the package's name.
    Package { name: String, path: &'static str },
}

/// The parameters of the runtime.
#[derive(Debug, PartialEq)]
pub(crate) enum Params {
    Text { text: String, path: &'static str },
    Secret { key: KeySelector, path: &'static str },
}

impl Params {
    /// Returns the path of the field that contains the parameters.
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Text { path, .. } | Self::Secret { path, .. } => path,
        }
    }
}

/// An `MCPServer` after the policy replaced deprecated fields with current fields.
#[derive(Debug, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) source: Source,
    pub(crate) params: Option<Params>,
    pub(crate) telemetry: Option<Telemetry>,
    /// The path of the object's telemetry field.
    pub(crate) telemetry_path: &'static str,
    pub(crate) notes: Vec<Note>,
}

impl Wanted {
    /// Reads the spec.
    pub(crate) fn of(spec: &MCPServerSpec) -> Result<Self, Refusal> {
        let none = McpConfig::default();
        let config = spec.config.as_ref().unwrap_or(&none);
        let mut notes = Vec::new();
        let runtime = text(spec.runtime.as_ref());
        let container = spec.container.as_ref();
        if spec.type_.is_some() {
            notes.push(older("spec.type", "spec.runtime", runtime.is_some()));
        }
        let newer = container.map_or(&[][..], |own| &own.env).iter().map(|variable| variable.name.as_str());
        let names = config.env.iter().map(|variable| variable.name.as_str());
        notes.extend(older_env("spec.config.env", names, "spec.container.env", newer));
        if spec.resources.is_some() {
            let is_newer = container.is_some_and(|own| own.resources.is_some());
            notes.push(older("spec.resources", "spec.container.resources", is_newer));
        }
        let written = sources(config);
        let package =
            package(config, runtime.map(|_| "spec.runtime").or(written.first().map(Params::path)), &mut notes);
        let own = text(spec.params.as_ref()).map(|text| Params::Text { text: text.to_owned(), path: "spec.params" });
        older_sources(&written, own.as_ref(), &mut notes);
        let older = written.into_iter().next();
        let source = match (runtime, package, &older) {
            (Some(CUSTOM), ..) => Source::Custom,
            (Some(name), ..) => Source::Registry(name.to_owned()),
            // Python source wins over a package, as in the Go operator.
            (None, _, Some(_)) => Source::Registry(PYTHON_STRING.to_owned()),
            (None, Some(Source::Package { path, .. }), None) if text(spec.type_.as_ref()) == Some(NODE) => {
                let message = "packages of type node-runtime come from npm, which is not supported: use runtime \
                               custom with container.image";
                return Err(refusal::invalid(path, message));
            }
            (None, Some(package), None) => package,
            (None, None, None) => {
                let message = "a runtime is required: name one from the registry, or custom with container.image";
                return Err(refusal::invalid("spec.runtime", message));
            }
        };
        if config.telemetry.is_some() {
            notes.push(self::older("spec.config.telemetry", "spec.telemetry", spec.telemetry.is_some()));
        }
        let (telemetry, telemetry_path) = match (&spec.telemetry, &config.telemetry) {
            (None, Some(older)) => (Some(older.clone()), "spec.config.telemetry"),
            (own, _) => (own.clone(), "spec.telemetry"),
        };
        Ok(Self { source, params: own.or(older), telemetry, telemetry_path, notes })
    }
}

/// Reads the package from the oldest fields. If a newer field wins over them, `newer` is the path of the newer field.
fn package(config: &McpConfig, newer: Option<&'static str>, notes: &mut Vec<Note>) -> Option<Source> {
    let from_tools = config.tools.as_ref().and_then(|tools| text(tools.from_package.as_ref()));
    let mut package: Option<(&str, &'static str)> = None;
    for (name, path) in [(from_tools, "spec.config.tools.fromPackage"), (text(config.mcp.as_ref()), "spec.config.mcp")]
    {
        let Some(name) = name else { continue };
        notes.push(match newer.or(package.as_ref().map(|(_, path)| *path)) {
            Some(newer) => ignored(path, newer),
            None => deprecated(path, Some("a runtime of the registry, or spec.runtime custom with container.image")),
        });
        package = package.or(Some((name, path)));
    }
    package.map(|(name, path)| Source::Package { name: name.to_owned(), path })
}

/// Returns the Python sources in the deprecated fields. The policy uses the first of these sources.
fn sources(config: &McpConfig) -> Vec<Params> {
    let no_tools = McpTools::default();
    let tools = config.tools.as_ref().unwrap_or(&no_tools);
    let written = [
        (tools.from_string.as_ref(), "spec.config.tools.fromString"),
        (config.tools_string.as_ref(), "spec.config.toolsString"),
    ];
    let texts = written.into_iter().filter_map(|(source, path)| Some((text(source)?, path)));
    let mut all: Vec<Params> = texts.map(|(text, path)| Params::Text { text: text.to_owned(), path }).collect();
    let key = tools.from_secret_key_ref.as_ref();
    all.extend(key.map(|key| Params::Secret { key: key.clone(), path: "spec.config.tools.fromSecretKeyRef" }));
    all
}

/// Adds notes on the deprecated fields for Python source. `own` contains the parameters in `spec.params`.
fn older_sources(written: &[Params], own: Option<&Params>, notes: &mut Vec<Note>) {
    for (at, params) in written.iter().enumerate() {
        let counts = own.or(written.first().filter(|_| at > 0));
        notes.push(match (counts, params) {
            (Some(counts), _) => ignored(params.path(), counts.path()),
            (None, Params::Text { .. }) => {
                deprecated(params.path(), Some("spec.runtime python-string with spec.params"))
            }
            (None, Params::Secret { .. }) => {
                let now = "spec.runtime python-string, and MCP_TOOLS_STRING in spec.container.env";
                deprecated(params.path(), Some(now))
            }
        });
    }
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
    fn a_runtime_with_params_is_taken_as_given() {
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
                panic!("the policy looks for an npm package in PyPI")
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
    fn an_older_field_that_a_newer_one_replaces_is_reported_as_ignored() {
        let ignored = |spec: Value| -> Vec<(String, String)> {
            let (start, end) = (" is an older field and is ignored, since ", " is set: remove it");
            let told = wanted(spec).unwrap().notes.into_iter().filter_map(|note| {
                let (old, newer) = note.message.split_once(start)?;
                Some((old.to_owned(), newer.strip_suffix(end)?.to_owned()))
            });
            told.collect()
        };
        let pair = |(old, newer): (&str, &str)| (format!("spec.{old}"), format!("spec.{newer}"));
        let variable = json!([{"name": "A", "value": "1"}]);
        let spec = json!({
            "runtime": "r", "params": "new", "type": "python-runtime", "telemetry": {}, "resources": {},
            "container": {"env": variable, "resources": {}},
            "config": {"mcp": "p", "toolsString": "old", "env": variable, "telemetry": {}},
        });
        let wanted = [
            ("type", "runtime"),
            ("config.env", "container.env"),
            ("resources", "container.resources"),
            ("config.mcp", "runtime"),
            ("config.toolsString", "params"),
            ("config.telemetry", "telemetry"),
        ];
        assert_eq!(ignored(spec), wanted.map(pair));
        let key = json!({"name": "n", "key": "k"});
        let tools = json!({"fromString": "a", "fromPackage": "p", "fromSecretKeyRef": key});
        let spec = json!({"type": "t", "config": {"tools": tools, "toolsString": "b", "mcp": "q"}});
        let wanted = [
            ("config.tools.fromPackage", "config.tools.fromString"),
            ("config.mcp", "config.tools.fromString"),
            ("config.toolsString", "config.tools.fromString"),
            ("config.tools.fromSecretKeyRef", "config.tools.fromString"),
        ];
        assert_eq!(ignored(spec), wanted.map(pair));
        let spec = json!({"config": {"tools": {"fromPackage": "p"}, "mcp": "q"}});
        assert_eq!(ignored(spec), [pair(("config.mcp", "config.tools.fromPackage"))]);
    }

    #[test]
    fn a_server_without_any_runtime_is_refused_with_the_path() {
        for spec in [json!({}), json!({"runtime": ""}), json!({"params": "x"}), json!({"config": {"env": []}})] {
            let Err(Refusal::Invalid(violations)) = wanted(spec) else { panic!("accepted") };
            assert_eq!(violations[0].path, "spec.runtime");
        }
    }

    #[test]
    fn older_telemetry_applies_if_there_is_no_newer() {
        let older = json!({"runtime": "r", "config": {"telemetry": {"enabled": true}}});
        let read = wanted(older.clone()).unwrap();
        assert_eq!(read.telemetry.as_ref().and_then(|t| t.enabled), Some(true));
        assert_eq!(deprecated_paths(&read), ["spec.config.telemetry"]);
        let mut both = older;
        both["telemetry"] = json!({"enabled": false});
        assert_eq!(wanted(both).unwrap().telemetry.and_then(|t| t.enabled), Some(false));
    }
}
