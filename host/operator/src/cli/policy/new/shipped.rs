//! Creates a project from the sources of a default policy, under a new name.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;

use super::sdk::Sdk;

/// The sources of all default policies. `build.rs` embeds them.
const SHIPPED: &str = include_str!(concat!(env!("OUT_DIR"), "/shipped.json"));

/// The prefix of the default policies' package names.
const PREFIX: &str = "kaos-";

/// The sources of a default policy.
#[derive(Debug, Deserialize)]
pub(super) struct ShippedSources {
    package: String,
    features: BTreeMap<String, Vec<String>>,
    dependencies: Vec<Dependency>,
    files: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Dependency {
    name: String,
    version: String,
    is_for_tests: bool,
    optional: bool,
    default_features: bool,
    features: Vec<String>,
    /// The crate's directory in the repository of the SDK, if the repository contains the crate.
    near: Option<String>,
}

impl ShippedSources {
    /// Returns the sources of all default policies.
    fn all() -> anyhow::Result<Vec<Self>> {
        serde_json::from_str(SHIPPED).context("the embedded sources")
    }

    /// Returns the sources of the default policy of this name.
    pub(super) fn named(name: &str) -> anyhow::Result<Self> {
        let all = Self::all()?;
        let names: Vec<String> = all.iter().map(|shipped| shipped.name().to_owned()).collect();
        let Some(found) = all.into_iter().find(|shipped| shipped.name() == name) else {
            bail!("--from {name}: the operator ships no policy of this name: use one of {}", names.join(", "));
        };
        Ok(found)
    }

    /// Returns the name of the default policy for a kind, or `None` if the kind has no default policy.
    pub(super) fn of_kind(api_version: &str, kind: &str) -> Option<String> {
        let is_ours = api_version.split_once('/').is_some_and(|(group, _)| group == kaos_crds::GROUP);
        let name = kind.to_lowercase();
        (is_ours && Self::named(&name).is_ok()).then_some(name)
    }

    pub(super) fn name(&self) -> &str {
        self.package.strip_prefix(PREFIX).unwrap_or(&self.package)
    }

    /// Returns every file of the project, with its path.
    pub(super) fn project(&self, name: &str, sdk: &Sdk) -> anyhow::Result<BTreeMap<String, String>> {
        let library = format!("{}_policy", name.replace('-', "_"));
        let replaced = [
            (format!("name: \"{}\".to_owned()", self.name()), format!("name: \"{name}\".to_owned()")),
            (self.package.replace('-', "_"), library),
            (format!("-p {} ", self.package), String::new()),
        ];
        let renamed = |text: &str| replaced.iter().fold(text.to_owned(), |text, (old, new)| text.replace(old, new));
        let mut files: BTreeMap<String, String> =
            self.files.iter().map(|(path, text)| (path.clone(), renamed(text))).collect();
        if let Some(file) = files.get_mut("policy.yaml") {
            // Remove the name and the version from `policy.yaml`: the component contains the name, and `Cargo.toml`
            // contains the version.
            *file = file
                .lines()
                .filter(|line| !line.starts_with("name:") && !line.starts_with("version:"))
                .fold(String::new(), |text, line| text + line + "\n");
        }
        files.insert("Cargo.toml".to_owned(), self.manifest(name, sdk)?);
        Ok(files)
    }

    fn manifest(&self, name: &str, sdk: &Sdk) -> anyhow::Result<String> {
        let mut features = String::new();
        for (feature, enables) in &self.features {
            features += &format!("{feature} = {}\n", Value::from(enables.clone()));
        }
        let (mut normal, mut tests) = (String::new(), String::new());
        for dependency in &self.dependencies {
            let section = if dependency.is_for_tests { &mut tests } else { &mut normal };
            *section += &if dependency.name == self.package {
                // The policy's crate is its own dependency for tests, because the tests need more of its features.
                let features = Value::from(dependency.features.clone());
                format!("{name}-policy = {{ path = \".\", features = {features} }}\n")
            } else {
                dependency.line(sdk)?
            };
        }
        Ok(format!(
            "[package]\nname = \"{name}-policy\"\n\
             description = \"A KAOS policy that started from the operator's policy {from}\"\n\
             version = \"0.1.0\"\nedition = \"2024\"\nrust-version = \"1.95\"\npublish = false\n\n\
             [lib]\ncrate-type = [\"cdylib\", \"rlib\"]\ndoctest = false\n\n\
             [features]\n{features}\n[dependencies]\n{normal}\n[dev-dependencies]\n{tests}\n\
             [package.metadata.component]\npackage = \"example:{name}\"\n",
            from = self.name(),
        ))
    }
}

impl Dependency {
    /// Returns the line for the dependency in Cargo.toml.
    fn line(&self, sdk: &Sdk) -> anyhow::Result<String> {
        let mut fields = match &self.near {
            Some(near) => sdk.near(near)?,
            None => format!("version = {}", Value::from(self.version.trim_start_matches('^'))),
        };
        if !self.default_features {
            fields += ", default-features = false";
        }
        if !self.features.is_empty() {
            fields += &format!(", features = {}", Value::from(self.features.clone()));
        }
        if self.optional {
            fields += ", optional = true";
        }
        Ok(format!("{} = {{ {fields} }}\n", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_policy_becomes_a_project_under_its_new_name() {
        let all = ShippedSources::all().unwrap();
        assert_eq!(all.len(), crate::embedded::DEFAULTS.len());
        for shipped in all {
            let from = shipped.name();
            let files = shipped.project("red-kite", &Sdk::Version("0.1.0".to_owned())).unwrap();
            let text = |path: &str| files.get(path).unwrap_or_else(|| panic!("{from} has no {path}")).as_str();
            for (path, there) in [
                ("Cargo.toml", "name = \"red-kite-policy\""),
                ("Cargo.toml", "kaos-workload = { version = \"0.1.0\" }"),
                ("src/lib.rs", "name: \"red-kite\".to_owned()"),
                ("tests/samples.rs", "red_kite_policy"),
                ("policy.yaml", "grants:"),
                ("settings.schema.json", "properties"),
            ] {
                assert!(text(path).contains(there), "{from} {path}: {there}\n{}", text(path));
            }
            let file = kaos_policy::manifest::PolicyFile::parse(text("policy.yaml")).unwrap();
            assert_eq!((file.name, file.version), (None, None), "{from}");
            let all: String = files.values().map(String::as_str).collect();
            for left in [format!("kaos_{from}"), format!("-p kaos-{from}"), env!("CARGO_MANIFEST_DIR").to_owned()] {
                assert!(!all.contains(&left), "{from}: {left} is left");
            }
        }
    }
}
