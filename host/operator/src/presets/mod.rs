//! Presets: the defaults of a version of KAOS, as settings of the policies.
//!
//! A preset is a file of settings, with a section for each policy. All other settings layers override a preset, except
//! the policies' own defaults. The chart writes the chosen preset into the ConfigMap [`COMPATIBILITY`], and the
//! operator's pods mount this ConfigMap. The binary also embeds the preset files, so that commands can use them without
//! a cluster. `deploy/generate` copies the files into the chart.

use std::path::Path;

use k8s_openapi::api::core::v1::ConfigMap;
use kaos_policy::settings::{Layer, Origin};
use serde_json::Value;

use crate::input::{self, InputError};

/// The ConfigMap into which the chart writes the preset. The ConfigMap has one key: the name of the preset plus
/// `.yaml`.
pub const COMPATIBILITY: &str = "kaos-operator-compatibility";

/// The preset with the defaults that KAOS had in January 2026.
pub const JANUARY: &str = "kaos-0.1";
/// The preset that the chart chooses for a new installation.
pub const USUAL: &str = "kaos-0.8";

/// The embedded presets: the name and the YAML text of each.
pub const ALL: [(&str, &str); 2] = [(JANUARY, include_str!("kaos-0.1.yaml")), (USUAL, include_str!("kaos-0.8.yaml"))];

/// A preset.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// The name of the preset.
    pub name: String,
    /// The settings of the preset: an object with the settings of each policy, below the policy's name.
    pub sections: Value,
}

/// The reason why the process cannot use a preset.
#[derive(Debug, thiserror::Error)]
pub enum PresetError {
    /// Neither a preset nor a file of this name exists.
    #[error("there is no preset and no file {0}: the presets are {names}", names = names())]
    Unknown(String),
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] InputError),
    /// The text is not YAML.
    #[error("the preset {name} is not YAML: {why}")]
    NotYaml {
        /// The preset.
        name: String,
        /// The parser's message.
        why: String,
    },
    /// The preset is not an object that has an object with settings below the name of each policy.
    #[error("the preset {0} has no section for a policy: write the settings of each policy below the policy's name")]
    NoSections(String),
    /// A setting cannot be added, because the preset has a value instead of an object on the setting's path.
    #[error("the preset {name} must have an object at {path}: write each setting of {path} as a field of this object")]
    NoObject {
        /// The preset.
        name: String,
        /// The path of the value.
        path: String,
    },
    /// The ConfigMap has no preset, or several presets.
    #[error("ConfigMap {COMPATIBILITY} has {0} keys that end in .yaml, but must have exactly one: add or remove keys")]
    Keys(usize),
}

fn names() -> String {
    ALL.map(|(name, _)| name).join(", ")
}

impl Preset {
    /// Returns whether the binary embeds a preset of this name.
    pub(crate) fn is_embedded(name: &str) -> bool {
        ALL.iter().any(|(known, _)| *known == name)
    }

    /// Returns the embedded preset of this name. If no such preset exists, reads the preset from the file of this name.
    pub fn named(name: &str) -> Result<Self, PresetError> {
        if let Some((name, text)) = ALL.iter().find(|(known, _)| *known == name) {
            return Self::parsed(name, text);
        }
        let path = Path::new(name);
        if !path.exists() {
            return Err(PresetError::Unknown(name.to_owned()));
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or(name);
        Self::new(stem, input::document(path)?)
    }

    /// Returns the preset in the chart's ConfigMap.
    pub fn of_config(config: &ConfigMap) -> Result<Self, PresetError> {
        let texts = || config.data.iter().flatten().filter_map(|(key, text)| Some((key.strip_suffix(".yaml")?, text)));
        match (texts().next(), texts().count()) {
            (Some((name, text)), 1) => Self::parsed(name, text),
            (_, count) => Err(PresetError::Keys(count)),
        }
    }

    fn parsed(name: &str, text: &str) -> Result<Self, PresetError> {
        let read: Result<Value, _> = serde_saphyr::from_str(text);
        Self::new(name, read.map_err(|why| PresetError::NotYaml { name: name.to_owned(), why: why.to_string() })?)
    }

    fn new(name: &str, sections: Value) -> Result<Self, PresetError> {
        let is_section = |section: &Value| section.is_object();
        match sections.as_object() {
            Some(all) if all.values().all(is_section) => Ok(Self { name: name.to_owned(), sections }),
            _ => Err(PresetError::NoSections(name.to_owned())),
        }
    }

    /// Sets a setting. Creates the objects that are missing on the setting's path.
    pub(crate) fn set(&mut self, path: &[&str], setting: Value) -> Result<(), PresetError> {
        let mut at = &mut self.sections;
        for (depth, name) in path.iter().enumerate() {
            if at.is_null() {
                *at = Value::Object(serde_json::Map::new());
            }
            let Some(fields) = at.as_object_mut() else {
                return Err(PresetError::NoObject { name: self.name.clone(), path: path[..depth].join(".") });
            };
            at = fields.entry(*name).or_insert(Value::Null);
        }
        *at = setting;
        Ok(())
    }

    /// Returns a settings layer for each policy in the preset.
    pub fn layers(&self) -> Vec<Layer> {
        let layer = |(policy, settings): (&String, &Value)| {
            Layer::tree(Origin::Preset(self.name.clone()), policy, settings.clone())
        };
        self.sections.as_object().into_iter().flatten().map(layer).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kaos_policy::{
        contract::Cluster,
        settings::{self, Path as SettingPath, Schema},
    };
    use serde_json::json;

    use super::*;
    use crate::policies::{Loaded, Loader};

    fn policies() -> Vec<Loaded> {
        Loader::new(Cluster::default()).unwrap().load(&[]).unwrap()
    }

    fn schemas(policies: &[Loaded]) -> Vec<(&str, &Schema)> {
        policies.iter().map(|loaded| (&*loaded.policy.id().name, loaded.policy.schema())).collect()
    }

    /// Collects the path of each setting. Does not descend into `runtimes`, because presets may have different
    /// runtimes.
    fn paths(value: &Value, at: &str, into: &mut BTreeSet<String>) {
        match value.as_object().filter(|fields| !fields.is_empty() && !at.ends_with(".runtimes")) {
            Some(fields) => fields.iter().for_each(|(name, value)| paths(value, &format!("{at}.{name}"), into)),
            None => drop(into.insert(at.to_owned())),
        }
    }

    #[test]
    fn every_setting_of_an_embedded_preset_exists_and_fits_its_policy() {
        let policies = policies();
        for (name, _) in ALL {
            let preset = Preset::named(name).unwrap();
            settings::file(name, &preset.sections, &schemas(&policies)).unwrap();
            for (policy, schema) in schemas(&policies) {
                let settings = schema.resolve(policy, &preset.layers()).unwrap();
                let source = settings.source(&SettingPath::parse("image")).map(ToString::to_string);
                assert!(source.is_none_or(|source| source == format!("the preset {name}")), "{policy}");
            }
        }
    }

    #[test]
    fn all_embedded_presets_name_the_same_settings() {
        let all = ALL.map(|(name, _)| {
            let mut named = BTreeSet::new();
            paths(&Preset::named(name).unwrap().sections, "", &mut named);
            named
        });
        assert_eq!(all[0], all[1]);
    }

    /// Returns whether a setting has its default. The parameter `of` is the schema of the setting.
    fn is_default(of: &Value, setting: &Value) -> bool {
        let own = |(name, value): (&String, &Value)| {
            of["default"][name] == *value || is_default(&of["properties"][name], value)
        };
        of["default"] == *setting || setting.as_object().is_some_and(|all| all.iter().all(own))
    }

    #[test]
    fn the_preset_of_january_equals_the_defaults_of_the_policies() {
        let policies = policies();
        for (policy, schema) in schemas(&policies) {
            let mut settings =
                schema.resolve(policy, &Preset::named("kaos-0.1").unwrap().layers()).unwrap().tree().clone();
            // If the default of a group of settings is null, remove the settings in this group that equal their own
            // defaults. If no setting is left, the group equals null.
            for (group, of) in schema.document()["properties"].as_object().unwrap() {
                if let (true, Some(named)) = (schema.defaults()[group].is_null(), settings[group].as_object_mut()) {
                    named.retain(|name, value| !is_default(&of["properties"][name], value));
                    if named.is_empty() {
                        settings[group] = Value::Null;
                    }
                }
            }
            // Ignore the descriptions of runtimes: only the preset has them.
            let runtimes = settings.get_mut("runtimes").and_then(Value::as_object_mut);
            for runtime in runtimes.into_iter().flat_map(|all| all.values_mut()) {
                runtime.as_object_mut().unwrap().remove("description");
            }
            assert_eq!(&settings, schema.defaults(), "{policy}");
        }
    }

    #[test]
    fn a_preset_is_weaker_than_the_environment_and_ignores_unknown_settings() {
        let schema = r#"{"type": "object", "additionalProperties": false, "properties": {
            "image": {"type": "string", "default": "own", "x-env": "IMAGE"},
            "open": {"type": "object", "default": {}},
            "size": {"type": "integer", "default": 1}}}"#;
        let schema = Schema::parse(schema).unwrap();
        let sections = json!({"p": {"image": "preset", "open": {"a": {"b": 1}}, "later": {"x": 1}}});
        let mut layers = Preset::new("x", sections).unwrap().layers();
        let of = |layers: &[Layer]| schema.resolve("p", layers).unwrap().tree().clone();
        assert_eq!(of(&layers), json!({"image": "preset", "open": {"a": {"b": 1}}, "size": 1}));
        layers.push(Layer::env(Origin::Environment, [("IMAGE".to_owned(), "mine".to_owned())]));
        assert_eq!(of(&layers)["image"], "mine");
    }

    #[test]
    fn a_setting_is_set_in_a_section_and_refused_in_a_text() {
        let mut preset = Preset::new("mine", json!({"agent": {"image": "x", "serviceAccount": "y"}})).unwrap();
        preset.set(&["agent", "security", "jwtOptional"], false.into()).unwrap();
        preset.set(&["modelapi", "image"], "z".into()).unwrap();
        let told = preset.set(&["agent", "serviceAccount", "enabled"], true.into()).unwrap_err().to_string();
        assert!(told.starts_with("the preset mine must have an object at agent.serviceAccount: "), "{told}");
        let set = json!({"agent": {"image": "x", "serviceAccount": "y", "security": {"jwtOptional": false}}, "modelapi": {"image": "z"}});
        assert_eq!(preset.sections, set);
    }

    #[test]
    fn a_preset_that_cannot_be_used_says_why() {
        let unknown = Preset::named("kaos-0.9").unwrap_err().to_string();
        assert_eq!(unknown, "there is no preset and no file kaos-0.9: the presets are kaos-0.1, kaos-0.8");
        let config = |data: Value| serde_json::from_value::<ConfigMap>(json!({"data": data})).unwrap();
        let fails = |data| Preset::of_config(&config(data)).unwrap_err().to_string();
        assert!(fails(json!({})).contains("0 keys") && fails(json!({"a.yaml": "", "b.yaml": ""})).contains("2 keys"));
        assert!(fails(json!({"a.yaml": "x: ["})).contains("a is not YAML"));
        assert!(fails(json!({"a.yaml": "image: x"})).contains("below the policy's name"));
        let read = Preset::of_config(&config(json!({"mine.yaml": "agent: {image: x}"}))).unwrap();
        assert_eq!((read.name.as_str(), &read.sections), ("mine", &json!({"agent": {"image": "x"}})));
    }
}
