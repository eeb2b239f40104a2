//! Reads the values of a Helm release. Derives the same settings from these values as this operator's chart.

use std::{collections::BTreeSet, path::Path};

use anyhow::{Context, bail};
use kaos_policy::settings::{Layer, Origin};
use serde_json::{Map, Value, json};

use super::{
    super::{compatibility::Compatibility, output::complain},
    go_image,
    table::{Case, Environment, Need, Row, TAKEOVER_TIME, cases_of, rows},
};
use crate::{
    config_maps::OPERATOR_CONFIG,
    input::{self, Document},
    presets::{self, COMPATIBILITY, Preset, PresetError},
};

/// The values of the chart, with their comments.
const DEFAULTS: &str = include_str!("../../../../../deploy/helm/kaos-operator/values.yaml");
/// The default preset of the chart.
const USUAL: &str = "kaos-0.8";
/// The ConfigMap with the data of the chart's decision point.
pub(super) const DATA: &str = "kaos-authz-policy";
/// The ConfigMaps with the runtimes of `MCPServer` objects and of harnesses.
pub(super) const REGISTRIES: [&str; 2] = ["kaos-mcp-runtimes", "kaos-harness-runtimes"];
/// The value with the repository of the operator's image.
pub(super) const REPOSITORY: &str = "controllerManager.manager.image.repository";

/// The policies that have the setting `security`.
const PROTECTING: [&str; 4] = ["agent", "mcpserver", "modelapi", "memorystore"];

/// The values with the images of the preset's runtimes.
const IMAGES: [(&str, &str); 5] = [
    ("python-string", "defaultImages.mcpPythonString"),
    ("pctx-codemode", "defaultImages.mcpPctxCodemode"),
    ("fastmcp-codemode", "defaultImages.mcpFastmcpCodemode"),
    ("kubernetes", "defaultImages.mcpKubernetes"),
    ("slack", "defaultImages.mcpSlack"),
];

/// The values that the chart gets in the upgrade.
#[derive(Debug, Clone)]
pub(super) struct Values {
    root: Value,
    rows: Vec<Row>,
    /// The time of the takeover that the chart finds in the cluster.
    pub(super) takeover: String,
    /// Whether Agents get no tokens with the preset.
    is_anonymous: bool,
}

impl Values {
    /// Reads files of values over the defaults of the chart. A later file wins. A null removes a value. With `reuse`,
    /// the files have all values of the earlier release, and the chart adds only its new values.
    pub(super) fn read(files: &[String], reuse: bool) -> anyhow::Result<Self> {
        let defaults: Value = serde_saphyr::from_str(DEFAULTS).context("the values of the chart in this program")?;
        let mut root = if reuse { json!({}) } else { defaults.clone() };
        for file in files {
            let read = input::document(Path::new(file))?;
            if !read.is_object() && !read.is_null() {
                bail!("{file}: is not a file of values: write the output of `helm get values NAME -o yaml` into it");
            }
            merge(&mut root, read);
        }
        let mut values = Self { root, rows: rows()?, takeover: String::new(), is_anonymous: false };
        values.carry(&defaults);
        Ok(values)
    }

    /// Adds defaults for the values that another chart's values lack, as the chart does. A section that is null gets
    /// its defaults.
    fn carry(&mut self, defaults: &Value) {
        let is_carried = self.at("compatibility").is_null();
        let preset = if self.at("defaultImages.memoryService").is_null() { "kaos-0.1" } else { USUAL };
        if is_carried && self.is_of_go() {
            self.root["controllerManager"]["manager"]["image"] =
                defaults["controllerManager"]["manager"]["image"].clone();
        }
        let Some(root) = self.root.as_object_mut() else { return };
        for (name, section) in defaults.as_object().into_iter().flatten() {
            match root.get_mut(name) {
                None => drop(root.insert(name.clone(), section.clone())),
                Some(given) if is_carried => fill(given, section),
                Some(_) => {}
            }
        }
        if is_carried {
            root.insert("compatibility".to_owned(), preset.into());
        }
    }

    /// Returns the values, with the information whether this preset gives tokens to Agents.
    pub(super) fn under(self, preset: &Preset) -> Self {
        let audience = &preset.sections["agent"]["serviceAccount"]["audience"];
        Self { is_anonymous: audience.as_str().unwrap_or_default().is_empty(), ..self }
    }

    /// Returns all values.
    pub(super) fn root(&self) -> &Value {
        &self.root
    }

    /// Returns the table of the operator's variables.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the value at a path with dots. Null if the value is missing.
    pub(super) fn at(&self, path: &str) -> &Value {
        path.split('.').fold(&self.root, |value, name| &value[name])
    }

    /// Returns a value as the text of a variable. A list becomes a text with commas. 0 becomes an empty text.
    pub(super) fn text(&self, path: &str) -> String {
        match self.at(path) {
            Value::String(text) => text.clone(),
            Value::Number(number) if number.as_f64() != Some(0.0) => number.to_string(),
            Value::Bool(is) => is.to_string(),
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
            _ => String::new(),
        }
    }

    /// Returns whether a value is true.
    pub(super) fn is_on(&self, path: &str) -> bool {
        *self.at(path) == true
    }

    /// Returns an entry of `extraConfig` as text. `None` if there is no such entry.
    pub(super) fn extra(&self, variable: &str) -> Option<String> {
        let value = self.at("extraConfig").get(variable).filter(|value| !value.is_null())?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    /// Returns whether the values name the image of KAOS's operator.
    pub(super) fn is_of_go(&self) -> bool {
        go_image::is_repository(&self.text(REPOSITORY))
    }

    /// Returns the cases that apply with these values and with `extraConfig`.
    pub(super) fn cases(&self) -> BTreeSet<Case> {
        let given = |variable: &str| {
            let extra = self.extra(variable).filter(|text| !text.is_empty());
            let of = || self.rows.iter().find(|row| row.variable == variable && !row.value.is_empty());
            extra.or_else(|| of().map(|row| self.text(&row.value))).unwrap_or_default()
        };
        let mut cases = cases_of(&given, &self.projection());
        if self.is_anonymous {
            cases.insert(Case::Anonymous);
        }
        cases
    }

    /// Returns whether a condition is true. `cases` contains the cases that apply.
    pub(super) fn holds(&self, need: &Need, cases: &BTreeSet<Case>) -> bool {
        match need {
            Need::Case(case) => cases.contains(case),
            Need::Value(path) => match path.strip_prefix("not ") {
                Some(path) => *self.at(path) == false,
                None => self.is_on(path),
            },
        }
    }

    /// Returns the name of the ConfigMap that the operator writes for a decision point. Empty if it writes none.
    pub(super) fn projection(&self) -> String {
        let named = self.text("security.agentAuth.projection.policyConfigMap.name");
        if named.is_empty() && self.is_on("security.pdp.enabled") { DATA.to_owned() } else { named }
    }

    /// Returns the variables that come from values. Leaves out variables whose text is empty.
    pub(super) fn variables(&self, home: &str) -> Environment {
        let cases = self.cases();
        let of = |row: &Row| {
            let given = self.text(&row.value);
            let given = match row.variable.as_str() {
                "DEFAULT_LOG_LEVEL" => given.to_uppercase(),
                "GATEWAY_NAMESPACE" | "AUTHZ_POLICY_CONFIGMAP_NAMESPACE" if given.is_empty() => home.to_owned(),
                "AUTHZ_POLICY_CONFIGMAP_NAME" => self.projection(),
                "AUTHZ_PROJECTION_NAMESPACES" => match given.split_whitespace().collect::<String>() {
                    listed if listed.is_empty() => self.text("watchNamespaces"),
                    listed => listed,
                },
                TAKEOVER_TIME if given.is_empty() => self.takeover.clone(),
                _ if row.negated && given == "false" => "true".to_owned(),
                _ if row.negated => String::new(),
                _ => given,
            };
            let is_written = match Case::named(&row.when) {
                Some(case) => cases.contains(&case) && given != "false",
                None => row.when.is_empty() || self.is_on(&row.when),
            };
            (is_written && !given.is_empty()).then(|| (row.variable.clone(), given))
        };
        let is_set_by_value = |row: &&Row| !row.variable.is_empty() && !row.value.is_empty() && row.unserved.is_empty();
        self.rows.iter().filter(is_set_by_value).filter_map(of).collect()
    }

    /// Returns the variables of the ConfigMap: those of values, and the entries of `extraConfig`, which win.
    pub(super) fn environment(&self, home: &str) -> Environment {
        let mut environment = self.variables(home);
        let entries = self.at("extraConfig").as_object().into_iter().flatten();
        environment.extend(entries.filter_map(|(name, _)| Some((name.clone(), self.extra(name)?))));
        environment
    }

    /// Returns whether the operator works in a namespace.
    pub(super) fn works_in(&self, namespace: &str) -> bool {
        let listed = self.at("watchNamespaces").as_array();
        listed.is_none_or(|listed| listed.is_empty() || listed.iter().any(|it| it == namespace))
    }

    /// Returns the preset that the chart would write. If the values name a preset that the chart lacks, returns the
    /// default preset: another finding reports the wrong name.
    pub(super) fn preset(&self, flag: &Compatibility) -> Result<Preset, PresetError> {
        let named = self.text("compatibility");
        let is_known = presets::ALL.iter().any(|(name, _)| *name == named);
        let name = flag.name().unwrap_or(if is_known { &named } else { USUAL });
        let mut preset = Preset::named(name)?;
        let provider = self.text("security.agentAuth.identity.provider");
        if !provider.is_empty() {
            preset.set(&["agent", "serviceAccount", "enabled"], (provider == "serviceaccount").into())?;
        }
        if *self.at("security.agentAuth.gatewayJwtOptional") == false {
            for policy in PROTECTING {
                preset.set(&[policy, "security", "jwtOptional"], false.into())?;
            }
        }
        Ok(preset)
    }

    /// Returns the settings layers after the upgrade.
    pub(super) fn layers(&self, preset: &Preset, home: &str) -> Vec<Layer> {
        let mut layers = preset.layers();
        layers.push(Layer::env(Origin::OperatorConfig, self.environment(home)));
        for (name, package) in self.at("policies").as_object().into_iter().flatten() {
            let of = package["policy"].as_str().or(package["name"].as_str());
            let is_elsewhere = package["scope"].is_object() || !package["component"].is_null();
            match of.filter(|_| !is_elsewhere && package["file"].is_null()) {
                Some(of) => layers.push(Layer::tree(
                    Origin::ClusterPolicy(name.clone()),
                    of,
                    package.get("settings").cloned().unwrap_or_else(|| json!({})),
                )),
                None if package.is_null() => {}
                None => complain("note", format_args!("the value policies.{name} is not checked")),
            }
        }
        layers
    }

    /// Returns the objects, with the ConfigMaps of the new chart instead of the operator's existing ConfigMaps.
    pub(super) fn applied_to(
        &self,
        documents: &[Document],
        preset: &Preset,
        home: &str,
    ) -> anyhow::Result<Vec<Document>> {
        let is_replaced = |document: &&Document| {
            let identity = &document.identity;
            let names = [&REGISTRIES[..], &[OPERATOR_CONFIG, COMPATIBILITY]].concat();
            identity.kind == "ConfigMap"
                && identity.namespace.as_deref() == Some(home)
                && names.contains(&identity.name.as_str())
        };
        let mut kept: Vec<Document> = documents.iter().filter(|document| !is_replaced(document)).cloned().collect();
        let config_map = |name: &str, runtimes: &Value| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": home},
                "data": {"runtimes.yaml": json!({"runtimes": runtimes}).to_string()}})
        };
        let registries =
            [config_map(REGISTRIES[0], &self.runtimes(preset)), config_map(REGISTRIES[1], &self.harnesses())];
        let (made, errors) = input::parse(&"the values".into(), &json!(registries[0]).to_string(), home);
        let (more, wrong) = input::parse(&"the values".into(), &json!(registries[1]).to_string(), home);
        if let Some(error) = errors.into_iter().chain(wrong).next() {
            return Err(error).context("the registries of runtimes");
        }
        kept.extend(made.into_iter().chain(more));
        Ok(kept)
    }

    fn runtimes(&self, preset: &Preset) -> Value {
        let mut runtimes = preset.sections["mcpserver"]["runtimes"].clone();
        for (name, path) in IMAGES {
            let image = self.text(path);
            if let Some(Value::Object(runtime)) = runtimes.get_mut(name).filter(|_| !image.is_empty()) {
                runtime.insert("image".to_owned(), image.into());
            }
        }
        self.with_custom(runtimes, "mcpRuntimes.custom")
    }

    fn harnesses(&self) -> Value {
        self.with_custom(
            json!({"pi": {"driver": "pi", "image": self.text("defaultImages.harnessPi")}}),
            "harnessRuntimes.custom",
        )
    }

    /// Returns the runtimes with the user's entries. A user's entry replaces the whole entry of the same name.
    fn with_custom(&self, runtimes: Value, path: &str) -> Value {
        let mut runtimes = match runtimes {
            Value::Object(runtimes) => runtimes,
            _ => Map::new(),
        };
        for (name, runtime) in self.at(path).as_object().into_iter().flatten().filter(|(_, entry)| !entry.is_null()) {
            runtimes.insert(name.clone(), runtime.clone());
        }
        Value::Object(runtimes)
    }
}

/// Merges values as Helm does. Maps are merged key by key, a null removes a value, and any other value replaces the
/// earlier value.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                if value.is_null() {
                    into.remove(&name);
                } else {
                    merge(into.entry(name).or_insert(Value::Null), value);
                }
            }
        }
        (_, Value::Null) => {}
        (into, from) => *into = from,
    }
}

/// Copies the keys of `from` that `into` lacks.
fn fill(into: &mut Value, from: &Value) {
    let (Value::Object(into), Value::Object(from)) = (into, from) else { return };
    for (name, value) in from {
        match into.get_mut(name) {
            None => drop(into.insert(name.clone(), value.clone())),
            Some(there) => fill(there, value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str) -> Value {
        let text = std::fs::read_to_string(format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let (documents, errors) = input::parse(&file.into(), &text, "kaos-system");
        assert!(errors.is_empty() || documents.is_empty(), "{errors:?}");
        match &*documents {
            [] => serde_saphyr::from_str(&text).unwrap(),
            all => Value::Array(all.iter().map(|document| document.object.clone()).collect()),
        }
    }

    fn made(name: &str) -> Value {
        let made = read("deploy/install.yaml");
        let is_it = |object: &&Value| object["kind"] == "ConfigMap" && object["metadata"]["name"] == name;
        made.as_array().unwrap().iter().find(is_it).unwrap()["data"].clone()
    }

    #[test]
    fn the_chart_makes_the_same_of_its_own_values() {
        let values = Values::read(&[], false).unwrap();
        let preset = values.preset(&Compatibility::of(None)).unwrap();
        let layers = values.layers(&preset, "kaos-system");
        let Some(Layer { content: kaos_policy::settings::Content::Env(variables), .. }) = layers.last() else {
            panic!("{layers:?}");
        };
        assert_eq!(json!(variables), made(OPERATOR_CONFIG));
        let chosen: Value = serde_saphyr::from_str(made(COMPATIBILITY)["kaos-0.8.yaml"].as_str().unwrap()).unwrap();
        assert_eq!(preset.sections, chosen);
        let registry =
            |name: &str| -> Value { serde_saphyr::from_str(made(name)["runtimes.yaml"].as_str().unwrap()).unwrap() };
        assert_eq!(json!({"runtimes": values.runtimes(&preset)}), registry(REGISTRIES[0]));
        let mut harnesses = registry(REGISTRIES[1]);
        harnesses["runtimes"]["pi"].as_object_mut().unwrap().remove("description");
        assert_eq!(json!({"runtimes": values.harnesses()}), harnesses);
    }

    #[test]
    fn values_of_the_earlier_release_get_what_the_chart_adds() {
        let file = |name: &str| format!("{}/../../tests/golden/today/values/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        for (name, preset) in [("kaos-0.8.2", "kaos-0.8"), ("kaos-0.1", "kaos-0.1")] {
            let values = Values::read(&[file(name)], true).unwrap();
            assert_eq!((values.text("compatibility").as_str(), values.is_of_go()), (preset, false));
            assert_eq!(values.text("logs.format"), "json");
            assert!(Values::read(&[file(name)], false).unwrap().is_of_go());
        }
    }

    #[test]
    fn files_of_values_are_merged_as_helm_merges_them() {
        let mut values = json!({"a": {"b": 1, "c": [1]}, "d": 1});
        merge(&mut values, json!({"a": {"c": [2], "e": 3}, "d": null}));
        assert_eq!(values, json!({"a": {"b": 1, "c": [2], "e": 3}}));
    }
}
