//! Merges settings layers from weak to strong, and records the source of every value.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Effective, Origin, Path, Source};
use crate::digest::{Digest, canonical};

/// The settings and the sources of the layers that the host has merged so far.
pub(super) struct Merged {
    tree: Value,
    sources: BTreeMap<Path, Source>,
}

impl Merged {
    pub(super) fn new(defaults: &Value) -> Self {
        let mut merged = Self { tree: Value::Object(Map::new()), sources: BTreeMap::new() };
        merged.tree(defaults, &Source { origin: Origin::SchemaDefault, via: None });
        merged
    }

    /// Merges a layer over the weaker layers. Merges objects key by key. Any other value, including a list, replaces
    /// the value of a weaker layer. A `null` also replaces the weaker value, so a `null` resets a setting.
    pub(super) fn tree(&mut self, layer: &Value, source: &Source) {
        overlay(&mut self.tree, layer, &Path::default(), &mut self.sources, source);
    }

    /// Merges one value at a path.
    pub(super) fn leaf(&mut self, path: &Path, value: Value, source: &Source) {
        let wrapped = path.names().iter().rev().fold(value, |inner, name| {
            let mut object = Map::new();
            object.insert(name.clone(), inner);
            Value::Object(object)
        });
        self.tree(&wrapped, source);
    }

    pub(super) fn finish(self) -> Effective {
        let Self { tree, sources } = self;
        let text = canonical(&tree);
        let given: Vec<_> = sources.iter().map(|(path, source)| (path.names(), source)).collect();
        let digest = Digest::of_written(&(&text, given));
        Effective { tree, text, sources, digest }
    }
}

impl From<Effective> for Merged {
    fn from(settings: Effective) -> Self {
        Self { tree: settings.tree, sources: settings.sources }
    }
}

fn overlay(base: &mut Value, layer: &Value, path: &Path, sources: &mut BTreeMap<Path, Source>, source: &Source) {
    match (base, layer) {
        (Value::Object(base), Value::Object(layer)) if !layer.is_empty() => {
            if base.is_empty() {
                sources.remove(path);
            }
            for (name, value) in layer {
                overlay(base.entry(name.clone()).or_insert(Value::Null), value, &path.then(name), sources, source);
            }
        }
        (Value::Object(base), Value::Object(_)) if !base.is_empty() => {}
        (base, layer) => {
            forget(path, sources);
            record(layer, path, sources, source);
            *base = layer.clone();
        }
    }
}

/// Removes the sources of a setting and of all settings below it. Their paths are next to each other in the sorted map.
fn forget(path: &Path, sources: &mut BTreeMap<Path, Source>) {
    let below: Vec<Path> =
        sources.range(path..).map(|(other, _)| other).take_while(|other| path.covers(other)).cloned().collect();
    for path in below {
        sources.remove(&path);
    }
}

fn record(value: &Value, path: &Path, sources: &mut BTreeMap<Path, Source>, source: &Source) {
    match value.as_object().filter(|object| !object.is_empty()) {
        Some(object) => {
            for (name, value) in object {
                record(value, &path.then(name), sources, source);
            }
        }
        // An empty tree gets no source, because a source at the root would apply to every setting.
        None if path.names().is_empty() && value.is_object() => {}
        None => {
            sources.insert(path.clone(), source.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fifty_thousand_values_are_merged_and_replaced() {
        let origin = |origin| Source { origin, via: None };
        let values: Map<String, Value> = (0..50_000).map(|n| (format!("v{n}"), json!(n))).collect();
        let layer = json!({"map": values, "other": 1});
        let mut merged = Merged::new(&layer);
        merged.tree(&layer, &origin(Origin::CommandLine));
        merged.tree(&json!({"map": 1}), &origin(Origin::Annotation));
        let settings = merged.finish();
        let sources: Vec<_> = settings.sources().map(|(path, source)| (path.to_string(), &source.origin)).collect();
        assert_eq!(sources, [("map".to_owned(), &Origin::Annotation), ("other".to_owned(), &Origin::CommandLine)]);
    }
}
