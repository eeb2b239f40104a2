//! Applies the settings in an object's annotations, which override the other settings for this object.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::layer::PassLayer;
use crate::object::annotations;
use crate::{
    contract::Violation,
    settings::{ANNOTATION_PREFIX, Path, SettingsError},
};

/// Applies the object's annotations to the settings of each layer. Adds the number of steps of this work to `steps`.
/// Returns a violation for each annotation whose setting no layer has, and for each value that does not fit the schema
/// of its setting.
pub(super) fn annotate<'a>(
    object: &Value,
    base: &mut PassLayer<'a>,
    overlays: &mut [PassLayer<'a>],
    steps: &mut usize,
) -> Result<(), Vec<Violation>> {
    let given: BTreeMap<&str, &str> =
        annotations(object).into_iter().filter(|(key, _)| key.starts_with(ANNOTATION_PREFIX)).collect();
    if given.is_empty() {
        return Ok(());
    }
    let mut violations = Vec::new();
    let layers: Vec<&mut PassLayer<'a>> = std::iter::once(base).chain(overlays).collect();
    for key in given.keys() {
        let path = Path::parse(key.strip_prefix(ANNOTATION_PREFIX).unwrap_or_default());
        if !layers.iter().any(|layer| layer.bound.policy.schema().has(&path)) {
            violations.push(Violation {
                path: path_of(key),
                message: format!("there is no setting {path}: remove the annotation or correct its name"),
            });
        }
    }
    for layer in layers {
        let (annotated, taken) = layer.bound.policy.schema().annotated(layer.name(), &layer.settings, &given);
        *steps = steps.saturating_add(taken);
        match annotated {
            Ok(settings) => layer.settings = Arc::new(settings),
            Err(errors) => violations.extend(errors.0.iter().map(violation)),
        }
    }
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

fn violation(error: &SettingsError) -> Violation {
    let key = error.source.as_ref().and_then(|source| source.via.as_deref());
    let path = key.map_or_else(|| "metadata.annotations".to_owned(), path_of);
    Violation { path, message: format!("setting {} {}", error.path, error.message) }
}

fn path_of(key: &str) -> String {
    format!("metadata.annotations[\"{key}\"]")
}
