//! Finds declared origins that cover no value. The author of the policy probably wrote a wrong path, or named a wrong
//! place as the origin.

use std::slice;

use serde_json::Value;

use super::{Origins, PathStep, Places, is_equal, leaves, path};
use crate::{contract::Origin, limits::Limits};

/// Whether an origin covers a value in its manifest, and if not, the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// At least one value at or below the origin's path equals the value in the place that the origin names.
    Covers,
    /// The manifest has a value at the origin's path, but the place that the origin names has no equal value.
    Differs,
    /// The manifest has no value at the origin's path.
    Absent(Vec<PathStep>),
    /// The manifest does not have the list item that the origin names.
    NoItem,
}

/// Checks whether an origin covers a value in its manifest.
pub(crate) fn coverage(origin: &Origin, manifests: &[Value], within: Places<'_>) -> Coverage {
    let index = origin.manifest as usize;
    let Some(manifest) = manifests.get(index) else { return Coverage::NoItem };
    let start = path::parse(&origin.path).and_then(|steps| path::resolve(&steps, manifest));
    let Some(start) = start else { return Coverage::NoItem };
    let mut below = leaves(manifest);
    below.retain(|(path, _)| path.starts_with(&start));
    if below.is_empty() {
        return Coverage::Absent(start);
    }
    let (alone, _) = Origins::read(slice::from_ref(origin), &[], manifests, &Limits::default(), within);
    let covers = below
        .into_iter()
        .any(|(path, value)| alone.places(index, manifest, &path).iter().any(|place| is_equal(place.value, value)));
    if covers { Coverage::Covers } else { Coverage::Differs }
}
