//! Reads the values of a Helm release. Derives the same settings from these values as this operator's chart.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context as _, bail};
use kaos_policy::settings::{Layer, Origin};
use serde_json::{Value, json};

use super::{
    super::{compatibility::Compatibility, output::complain},
    go_image, merging,
    table::{Case, Environment, Need, Row, TAKEOVER_TIME, cases_of, rows},
};
use crate::{
    input,
    presets::{JANUARY, Preset, PresetError, USUAL},
};

/// The values of the chart, with their comments.
const DEFAULTS: &str = include_str!("../../../../../deploy/helm/kaos-operator/values.yaml");
/// Chart values that KAOS of January 2026 did not have. A user can have removed some of these values with null.
const NEWER: [&str; 5] = [
    "harnessRuntimes",
    "defaultImages.memoryService",
    "defaultImages.harnessPi",
    "defaultImages.mcpPctxCodemode",
    "defaultImages.mcpFastmcpCodemode",
];
/// A chart value that only this chart has.
const OWN: &str = "chartOfValues";
/// The ConfigMap with the data of the chart's decision point.
pub(super) const DATA: &str = "kaos-authz-policy";
/// The chart value that lists the changes of protection that the user accepts.
pub(super) const ACCEPTED: &str = "security.acceptUnserved";
/// The chart value that contains the repository of the operator's image.
pub(super) const REPOSITORY: &str = "controllerManager.manager.image.repository";

/// The policies that have the setting `security`.
const PROTECTING: [&str; 4] = ["agent", "mcpserver", "modelapi", "memorystore"];

/// The values that the chart gets in the upgrade.
#[derive(Debug, Clone)]
pub(super) struct Values {
    root: Value,
    /// The defaults of the chart.
    defaults: Value,
    rows: Vec<Row>,
    /// Whether the values come from KAOS's chart.
    pub(super) is_carried: bool,
    /// Whether the values come from the chart of KAOS of January 2026.
    is_of_january: bool,
    /// The time of the takeover that the chart finds in the cluster.
    pub(super) takeover: String,
    /// The address of the Gateway in the cluster. Empty without an address.
    pub(super) gateway_address: String,
    /// Whether the preset gives no tokens to Agents.
    is_anonymous: bool,
}

impl Values {
    /// Reads files of values, and merges them over the defaults of the chart. A later file wins. A null removes a
    /// value. With `reuse`, the files have all values of the earlier release, and the chart adds only its new values.
    pub(super) fn read(files: &[String], reuse: bool) -> anyhow::Result<Self> {
        let defaults: Value = serde_saphyr::from_str(DEFAULTS).context("the values of the chart in this program")?;
        let mut root = if reuse { json!({}) } else { defaults.clone() };
        for file in files {
            let read = input::document(Path::new(file))?;
            if !read.is_object() && !read.is_null() {
                bail!("{file}: is not a file of values: write the output of `helm get values NAME -o yaml` into it");
            }
            merging::merge(&mut root, read);
        }
        let mut values = Self {
            root,
            defaults,
            rows: rows()?,
            is_carried: false,
            is_of_january: false,
            takeover: String::new(),
            gateway_address: String::new(),
            is_anonymous: false,
        };
        values.carry();
        Ok(values)
    }

    /// Adds defaults for the values that KAOS's chart lacks, as the chart does. A section that is null gets its
    /// defaults.
    fn carry(&mut self) {
        self.is_carried = self.at(OWN).is_null();
        self.is_of_january = self.is_carried && NEWER.iter().all(|path| self.at(path).is_null());
        if self.is_carried && self.is_of_go() {
            self.take_usual_image();
        }
        let defaults = &self.defaults;
        let Some(root) = self.root.as_object_mut() else { return };
        for (name, section) in defaults.as_object().into_iter().flatten() {
            match root.get_mut(name) {
                None => drop(root.insert(name.clone(), section.clone())),
                Some(given) if self.is_carried => merging::fill(given, section),
                Some(_) => {}
            }
        }
    }

    /// Replaces the image of the operator by the chart's default image.
    pub(super) fn take_usual_image(&mut self) {
        let usual = self.defaults["controllerManager"]["manager"]["image"].clone();
        merging::set(&mut self.root, "controllerManager.manager.image", usual);
    }

    /// Returns the preset for the version of KAOS whose chart the values come from.
    pub(super) fn version(&self) -> Option<&'static str> {
        self.is_carried.then_some(if self.is_of_january { JANUARY } else { USUAL })
    }

    /// Sets the text of a value.
    pub(super) fn set(&mut self, path: &str, text: &str) {
        merging::set(&mut self.root, path, text.into());
    }

    /// Returns the default text of a value.
    pub(super) fn usual(&self, path: &str) -> &str {
        path.split('.').fold(&self.defaults, |value, name| &value[name]).as_str().unwrap_or_default()
    }

    /// Returns the images in `defaultImages` that are set.
    pub(super) fn images(&self) -> BTreeMap<String, String> {
        let images = self.at("defaultImages").as_object().into_iter().flatten();
        let set = images.filter_map(|(name, image)| Some((name.clone(), image.as_str()?.to_owned())));
        set.filter(|(_, image)| !image.is_empty()).collect()
    }

    /// Returns whether the user accepts a change of protection.
    pub(super) fn accepts(&self, change: &str) -> bool {
        self.accepted().any(|name| name == change)
    }

    /// Returns the names of the changes of protection that the user accepts.
    pub(super) fn accepted(&self) -> impl Iterator<Item = &str> {
        self.at(ACCEPTED).as_array().into_iter().flatten().filter_map(Value::as_str)
    }

    /// Records whether this preset gives tokens to Agents.
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
                "SECURITY_GATEWAY_HOST" if given.is_empty() => self.gateway_address.clone(),
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

    /// Returns the variables of the ConfigMap.
    ///
    /// A variable comes from a value of the chart, or from an entry of `extraConfig`. The entry overrides the value.
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
        let name = flag.name().unwrap_or(if Preset::is_embedded(&named) { &named } else { USUAL });
        let mut preset = Preset::named(name)?;
        // Do not treat an empty provider as a missing provider: if it is empty, KAOS uses the broker, and gives Agents
        // no ServiceAccounts.
        if let Some(provider) = self.at("security.agentAuth.identity.provider").as_str() {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_earlier_release_get_what_the_chart_adds() {
        let file = |name: &str| format!("{}/../../tests/golden/today/values/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
        for (name, preset) in [("kaos-0.8.2", "kaos-0.8"), ("kaos-0.1", "kaos-0.1")] {
            let values = Values::read(&[file(name)], true).unwrap();
            assert_eq!(
                (values.is_carried, values.is_of_january, values.is_of_go()),
                (true, preset == "kaos-0.1", false)
            );
            assert_eq!(values.text("logs.format"), "json");
            let as_file = Values::read(&[file(name)], false).unwrap();
            assert!(as_file.is_of_go() && !as_file.is_carried);
        }
    }
}
