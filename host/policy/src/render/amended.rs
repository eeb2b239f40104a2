//! Finds out what overlays changed: which variables they set, and which children they changed or added.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::contract::{EnvVar, Reference};

/// The variables that overlays set, by container and name. The value is the number of the overlay; 1 is the lowest.
pub(super) type Overlaid = BTreeMap<(String, String), usize>;

/// Records the variables that differ from the mapping of the layer below. The overlay with the number `at` set them.
pub(super) fn note_variables(overlaid: &mut Overlaid, at: usize, below: &[EnvVar], now: &[EnvVar]) {
    let below: BTreeMap<_, &EnvVar> = below.iter().map(|it| ((&it.container, &it.name), it)).collect();
    let given = now.iter().filter(|it| below.get(&(&it.container, &it.name)) != Some(it));
    overlaid.extend(given.map(|it| ((it.container.clone(), it.name.clone()), at)));
}

/// Returns the children that differ from the plan of the layer below. All children are in `namespace`.
pub(super) fn children(below: &[Value], now: &[Value], namespace: &str) -> Vec<Reference> {
    let child =
        |manifest: &Value| Reference { namespace: Some(namespace.to_owned()), ..Reference::of_object(manifest) };
    let below: BTreeMap<_, _> = below.iter().map(|manifest| (child(manifest), manifest)).collect();
    let now = now.iter().map(|manifest| (child(manifest), manifest));
    now.filter(|(child, manifest)| below.get(child) != Some(manifest)).map(|(child, _)| child).collect()
}
