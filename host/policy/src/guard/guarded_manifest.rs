//! One manifest of a plan, with everything that the guard needs to check the manifest's values.

use serde_json::Value;

use super::manifest;
use crate::{origins::Origins, pods};

/// A manifest with its path for messages, its pod specs and the plan's origins.
pub(super) struct GuardedManifest<'a, 'm> {
    pub(super) index: usize,
    pub(super) path: String,
    pub(super) manifest: &'m Value,
    pub(super) specs: Vec<(String, &'m Value)>,
    /// The manifest of the layer below whose privileges this manifest keeps, with its pod specs.
    pub(super) kept: Option<(&'m Value, Vec<(String, &'m Value)>)>,
    pub(super) origins: &'m Origins<'a>,
}

impl<'a, 'm> GuardedManifest<'a, 'm> {
    pub(super) fn new(index: usize, manifest: &'m Value, kept: Option<&'m Value>, origins: &'m Origins<'a>) -> Self {
        let (path, specs) = (manifest::path(index, manifest), pods::specs(manifest, true));
        let kept = kept.map(|kept| (kept, pods::specs(kept, true)));
        Self { index, path, manifest, specs, kept, origins }
    }
}
