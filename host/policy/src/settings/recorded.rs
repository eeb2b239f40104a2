//! Settings in a form that a file can hold: all values, and the source of each value that is not a default.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Effective, Layer, Origin, Path, Source, effective::put, merge::Merged};

/// The settings of one layer of a recorded pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedSettings {
    /// The settings as one object, with all defaults.
    pub values: Value,
    /// The sources of values. All other values are defaults of the policy's schema.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<RecordedSource>,
}

/// The source of one value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedSource {
    /// The path of the value.
    pub path: String,
    /// The source.
    #[serde(flatten)]
    pub source: Source,
}

impl RecordedSettings {
    /// Records settings.
    pub fn of(settings: &Effective) -> Self {
        let given = settings.sources().filter(|(_, source)| source.origin != Origin::SchemaDefault);
        let sources = given.map(|(path, source)| RecordedSource { path: path.to_string(), source: source.clone() });
        Self { values: settings.tree().clone(), sources: sources.collect() }
    }

    /// Returns the recorded settings, for the policy of the recorded pass.
    pub fn effective(&self) -> Effective {
        let mut merged = Merged::new(&self.values);
        for (path, source, value) in self.given() {
            merged.leaf(&path, value.clone(), source);
        }
        merged.finish()
    }

    /// Returns the settings layers, for another version of the policy. Leaves out defaults, because the other version
    /// has its own. Also leaves out annotations, because a pass reads them from the object.
    pub fn layers(&self, policy: &str) -> Vec<Layer> {
        let mut layers: Vec<(&Origin, Value)> = Vec::new();
        for (path, Source { origin, .. }, value) in self.given().filter(|(_, it, _)| it.origin != Origin::Annotation) {
            let at = layers.iter().position(|(known, _)| *known == origin).unwrap_or_else(|| {
                layers.push((origin, Value::Object(Map::new())));
                layers.len() - 1
            });
            put(&mut layers[at].1, path.names(), value.clone());
        }
        layers.into_iter().map(|(origin, tree)| Layer::tree(origin.clone(), policy, tree)).collect()
    }

    /// Returns the values with a recorded source.
    fn given(&self) -> impl Iterator<Item = (Path, &Source, &Value)> {
        self.sources.iter().filter_map(|RecordedSource { path, source }| {
            let path = Path::parse(path);
            let value = path.find_in(&self.values)?;
            Some((path, source, value))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::Schema;

    #[test]
    fn recorded_settings_have_the_same_values_sources_and_digest() {
        let schema = json!({
            "type": "object", "additionalProperties": false,
            "properties": {
                "image": {"type": "string", "default": "a"},
                "port": {"type": "integer", "default": 1},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}, "default": {}},
            },
        });
        let schema = Schema::parse(&schema.to_string()).unwrap();
        let layers = [
            Layer::tree(Origin::ClusterPolicy("p".into()), "kite", json!({"image": "b", "labels": {"a.b/c": "d"}})),
            Layer::tree(Origin::CommandLine, "kite", json!({"port": 2})),
        ];
        let settings = schema.resolve("kite", &layers).unwrap();
        let recorded = RecordedSettings::of(&settings);
        let text = serde_json::to_string(&recorded).unwrap();
        let read: RecordedSettings = serde_json::from_str(&text).unwrap();
        assert_eq!(read.effective(), settings);
        assert_eq!(schema.resolve("kite", &read.layers("kite")).unwrap(), settings);
    }
}
