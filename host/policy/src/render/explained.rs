//! Explains a plan: for each value of each manifest, the place from which it comes.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{Planned, Rendered};
use crate::{
    contract::{Answer, EnvVar},
    limits::Limits,
    origins::{Author, Origins, PathStep, Place, Places, is_equal, leaves, written},
    settings::Effective,
    stamp::{APPLIED_DIGEST, HASH_STANDS_FOR, MANAGED_BY, POD_SPEC_HASH},
};

/// The metadata that the operator itself writes, besides the owner reference.
const STAMPED: [&str; 4] = [APPLIED_DIGEST, HASH_STANDS_FOR, MANAGED_BY, POD_SPEC_HASH];

/// The origin of one value of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The manifest, as `Kind/name`.
    pub child: String,
    /// The path of the value in the manifest.
    pub path: String,
    /// The place in the object, in the settings or in a found object; `the policy` for the policy's own values, and
    /// `the operator` for metadata that the operator writes.
    pub from: String,
    /// The layer that set the value, if it comes from a setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
}

impl Rendered {
    /// Returns the origin of each value of each manifest; empty without a plan. Shows an origin that the policy declares
    /// only if the value there is equal. For a variable whose value the policy computes, shows the declared origin.
    pub fn explained(&self) -> Vec<Explained> {
        let Some(planned) = self.planned() else { return Vec::new() };
        let object: Value = serde_json::from_str(&self.subject.object).unwrap_or_default();
        let found = self.found();
        let policies = std::iter::once(&self.policy).chain(&self.overlays);
        let layers: Vec<(&str, &Effective)> =
            policies.zip(&self.settings).map(|(policy, settings)| (policy.name.as_str(), &**settings)).collect();
        let within = Places { object: &object, layers: &layers, found: &found };
        // The guard has limited and checked these origins before.
        let limits = Limits { origins: usize::MAX, ..Limits::default() };
        let (origins, _) = Origins::read(&planned.origins, &planned.env, &planned.manifests, &limits, within);
        let explain = |(index, manifest)| of_manifest(planned, &origins, index, manifest);
        planned.manifests.iter().enumerate().flat_map(explain).collect()
    }

    /// Returns the objects that the policy found, by the ids of its needs.
    fn found(&self) -> BTreeMap<String, Vec<Value>> {
        let parsed = |text: &String| serde_json::from_str(text).ok();
        let objects = self.subject.found.iter().filter_map(|found| match &found.answer {
            Answer::Objects(objects) => Some((found.id.clone(), objects.iter().filter_map(parsed).collect())),
            Answer::Secret(_) | Answer::Unserved | Answer::Forbidden(_) => None,
        });
        objects.collect()
    }
}

fn of_manifest(planned: &Planned, origins: &Origins<'_>, index: usize, manifest: &Value) -> Vec<Explained> {
    let what = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let child = format!("{}/{}", what(&manifest["kind"]), what(&manifest["metadata"]["name"]));
    let explain = |(path, value): (Vec<PathStep>, &Value)| {
        let places = origins.places(index, manifest, &path);
        let (from, layer) = match places.iter().find(|place| is_equal(place.value, value)) {
            Some(place) => shown(place),
            None if is_stamped(&path) => ("the operator".to_owned(), None),
            None => (computed(planned, manifest, &path).unwrap_or_else(|| "the policy".to_owned()), None),
        };
        Explained { child: child.clone(), path: written(&path), from, layer }
    };
    leaves(manifest).into_iter().map(explain).collect()
}

/// Returns the place in the form of the contract, and the layer of a setting.
fn shown(place: &Place<'_>) -> (String, Option<String>) {
    let path = written(&place.path);
    match place.author {
        Author::Object => (path, None),
        Author::Setting(policy, source) => (format!("settings.{path}"), Some(format!("{source} (policy {policy})"))),
        Author::Found(id) => (format!("{id} {path}"), None),
    }
}

/// Returns the origin of a variable's literal value that the policy computes from another value.
fn computed(planned: &Planned, manifest: &Value, path: &[PathStep]) -> Option<String> {
    let [above @ .., env, PathStep::Index(index), value] = path else { return None };
    if env.name() != Some("env") || value.name() != Some("value") {
        return None;
    }
    let container = above.iter().try_fold(manifest, |value, step| step.of(value))?;
    let is_it = |variable: &&EnvVar| {
        container["name"] == *variable.container && container["env"][index]["name"] == *variable.name
    };
    planned.env.iter().find(is_it).map(|variable| variable.origin.clone())
}

fn is_stamped(path: &[PathStep]) -> bool {
    let [.., metadata, field, key] = path else {
        return matches!(path, [metadata, field] if metadata.name() == Some("metadata") && field.name() == Some("namespace"));
    };
    let of_a_key = metadata.name() == Some("metadata")
        && matches!(field.name(), Some("labels" | "annotations"))
        && key.name().is_some_and(|key| STAMPED.contains(&key));
    of_a_key || path[1].name() == Some("ownerReferences")
}
