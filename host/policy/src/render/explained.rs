//! Explains a plan: finds the origin of each value in each manifest.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{Planned, Rendered};
use crate::{
    contract::{Answer, EnvVar, Found, Origin, Reference, ResourceType},
    limits::Limits,
    origins::{Author, Coverage, OriginPlace, Origins, PathStep, Places, coverage, is_equal, leaves, written},
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
    /// The path in the object, in the settings or in a found object from which the value comes. For other values:
    /// `the policy`, `the overlay NAME`, or `the operator`, which writes metadata. For a variable without an equal
    /// value in its declared place: `computed from` and the place. The host cannot verify such an origin.
    pub from: String,
    /// The settings layer that set the value, if the value comes from a setting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// The overlay that set the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlay: Option<String>,
}

impl Rendered {
    /// Returns the origin of each value in each manifest; empty if there is no plan. Shows a declared origin only if
    /// the value there equals the manifest's value. A layer may also compute the literal value of a variable. So if the
    /// value at the variable's origin differs, shows `computed from` and the origin.
    pub fn explained(&self) -> Vec<Explained> {
        let Some(planned) = self.planned() else { return Vec::new() };
        self.within(|within| {
            // No limit is necessary, because the guard has already checked these origins.
            let limits = Limits { origins: usize::MAX, ..Limits::default() };
            let (origins, _) = Origins::read(&planned.origins, &planned.env, &planned.manifests, &limits, within);
            let explain = |(index, manifest)| self.of_manifest(planned, &origins, index, manifest);
            planned.manifests.iter().enumerate().flat_map(explain).collect()
        })
    }

    /// Returns each declared origin with the type of its manifest, and whether the origin covers a value.
    pub(crate) fn declared_origins(&self) -> Vec<(&Origin, ResourceType, Coverage)> {
        let Some(planned) = self.planned() else { return Vec::new() };
        self.within(|within| {
            let declared = planned.origins.iter().filter_map(|origin| {
                let manifest = planned.manifests.get(origin.manifest as usize)?;
                Some((origin, ResourceType::of_object(manifest), coverage(origin, &planned.manifests, within)))
            });
            declared.collect()
        })
    }

    /// Returns the type of the objects that the policy found with the need `id`.
    pub(crate) fn found_type(&self, id: &str) -> Option<ResourceType> {
        let found = self.found();
        found.first()?.get(id)?.first().map(ResourceType::of_object)
    }

    /// Calls `read` with the possible sources of the values in the policy's manifests.
    fn within<R>(&self, read: impl FnOnce(Places<'_>) -> R) -> R {
        let object: Value = serde_json::from_str(&self.subject.object).unwrap_or_default();
        let found = self.found();
        let policies = std::iter::once(&self.policy).chain(&self.overlays);
        let layers: Vec<(&str, &Effective)> =
            policies.zip(&self.settings).map(|(policy, settings)| (policy.name.as_str(), &**settings)).collect();
        read(Places { object: &object, layers: &layers, layer: 0, mapped: None, found: &found })
    }

    /// Returns the objects that the layers found.
    pub fn found_objects(&self) -> Vec<Value> {
        self.found().into_iter().flat_map(BTreeMap::into_values).flatten().collect()
    }

    /// Returns the objects that each layer found, by the ids of its needs.
    fn found(&self) -> Vec<BTreeMap<String, Vec<Value>>> {
        let of_layer = |found: &Vec<Found>| {
            let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
            for Found { id, answer } in found {
                if let Answer::Objects(objects) = answer {
                    let parsed = objects.iter().filter_map(|text| serde_json::from_str(text).ok());
                    all.entry(id.clone()).or_default().extend(parsed);
                }
            }
            all
        };
        std::iter::once(&self.subject.found).chain(self.overlay_found.iter()).map(of_layer).collect()
    }

    fn of_manifest(&self, planned: &Planned, origins: &Origins<'_>, index: usize, manifest: &Value) -> Vec<Explained> {
        let reference = Reference::of_object(manifest);
        let child = format!("{}/{}", reference.kind, reference.name);
        let reference = Reference { namespace: Some(self.object.namespace.clone()), ..reference };
        let explain = |(path, value): (Vec<PathStep>, &Value)| {
            let variable = variable(planned, manifest, &path);
            let written = written(&path);
            let overlay = planned.set_by.overlay(&reference, &written).or_else(|| overlay_of(planned, variable?));
            let places = origins.places_of(overlay.unwrap_or_default(), index, manifest, &path);
            let overlay = overlay.and_then(|at| self.overlays.get(at.checked_sub(1)?)).map(|it| it.name.clone());
            let of_nobody = || match &overlay {
                Some(overlay) => format!("the overlay {overlay}"),
                None => "the policy".to_owned(),
            };
            let (from, layer) = match places.iter().find(|place| !place.is_below && is_equal(place.value, value)) {
                Some(place) => shown(place),
                None if is_stamped(&path) => ("the operator".to_owned(), None),
                None => (computed(variable, &path).unwrap_or_else(of_nobody), None),
            };
            Explained { child: child.clone(), path: written, from, layer, overlay }
        };
        leaves(manifest).into_iter().map(explain).collect()
    }
}

/// Returns the place of an origin as text, in the form of the contract. For a setting, also returns the settings layer.
fn shown(place: &OriginPlace<'_>) -> (String, Option<String>) {
    let path = written(&place.path);
    match place.author {
        Author::Object => (path, None),
        Author::Setting(policy, source) => (format!("settings.{path}"), Some(format!("{source} (policy {policy})"))),
        Author::Found(id) => (format!("{id} {path}"), None),
    }
}

/// Returns the variable of the mapping that contains the value at a path.
fn variable<'p>(planned: &'p Planned, manifest: &Value, path: &[PathStep]) -> Option<&'p EnvVar> {
    let env = path.iter().position(|step| step.name() == Some("env"))?;
    let container = path.get(..env)?.iter().try_fold(manifest, |value, step| step.of(value))?;
    let entry = path.get(env + 1)?.of(&container["env"])?;
    planned.env.iter().find(|it| container["name"] == *it.container && entry["name"] == *it.name)
}

/// Returns the number of the overlay that set a variable.
fn overlay_of(planned: &Planned, EnvVar { container, name, .. }: &EnvVar) -> Option<usize> {
    planned.overlaid.get(&(container.clone(), name.clone())).copied()
}

/// Returns the declared origin of a variable as a text for people, if the path leads to the variable's literal value. A
/// layer may compute this value from the value at the origin.
fn computed(variable: Option<&EnvVar>, path: &[PathStep]) -> Option<String> {
    let [.., PathStep::Index(_), value] = path else { return None };
    (value.name() == Some("value")).then(|| Some(format!("computed from {}", variable?.origin))).flatten()
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
