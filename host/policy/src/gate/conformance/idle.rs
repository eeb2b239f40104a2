//! Finds origins that cover no value in any sample, and origins that name a place that cannot exist.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    contract::{EnvVar, ResourceType},
    kubernetes::{VERSION, has_field},
    origins::{Coverage, PathStep, Selector, Source, may_have, shown},
    render::Rendered,
};

/// A function that returns the schema of a kind, or `None` if it does not know the kind.
pub type Schemas<'a> = dyn Fn(&ResourceType) -> Option<&'a Value> + 'a;

/// The declared origins in all samples so far. An origin is wrong if one of these conditions is true:
///
/// - The kind of the origin's manifest has no field at the origin's path.
/// - The place that the origin names cannot exist.
/// - The field has a value in a sample, but no sample has an equal value in the place that the origin names.
///
/// If no sample has a value in the origin's field, the origin can still be right.
#[derive(Default)]
pub(super) struct IdleOrigins {
    /// The findings about each origin, by the kind of its manifest, its path, and the place that it names.
    origins: BTreeMap<[String; 3], Known>,
    /// The variables whose origin names a place that cannot exist, each with the reason why it cannot exist. The key
    /// consists of the container, the variable's name and the place.
    variables: BTreeMap<[String; 3], String>,
}

/// The findings about one origin in all samples.
#[derive(Default)]
struct Known {
    covers: bool,
    differs: bool,
    no_field: bool,
    /// The reason why the place cannot exist.
    no_place: Option<String>,
}

impl IdleOrigins {
    /// Adds the origins of one sample, which has the kind `primary`. `settings` is the schema of the settings.
    pub(super) fn add(&mut self, rendered: &Rendered, primary: &ResourceType, settings: &Value, schemas: &Schemas<'_>) {
        let no_place = |from: &str| match Source::parse(from)? {
            Source::Object(path) => no_field(primary, &path, schemas),
            Source::Setting(path) if may_have(settings, &path) => None,
            Source::Setting(path) => Some(format!("the policy has no setting {}", shown(&path))),
            Source::Found(id, path) => no_field(&rendered.found_type(&id)?, &path, schemas),
        };
        for (origin, of, coverage) in rendered.declared_origins() {
            let known = self.origins.entry([of.kind.clone(), origin.path.clone(), origin.from.clone()]).or_default();
            match coverage {
                Coverage::Covers => known.covers = true,
                Coverage::Differs => known.differs = true,
                Coverage::Absent(path) => known.no_field |= !has_field(&of, &path),
                Coverage::NoItem => {}
            }
            known.no_place = known.no_place.take().or_else(|| no_place(&origin.from));
        }
        for EnvVar { container, name, origin, .. } in rendered.env() {
            if let Some(why) = no_place(origin) {
                self.variables.insert([container.clone(), name.clone(), origin.clone()], why);
            }
        }
    }

    /// Returns a sentence for each wrong origin.
    pub(super) fn told(self) -> Vec<String> {
        let origins =
            self.origins.into_iter().filter_map(|([kind, path, from], known)| told(&kind, &path, &from, &known));
        let variables = self.variables.into_iter().map(|([container, name, from], why)| {
            format!(
                "the origin of the variable {name} of the container {container}, {from}, is no place: {why}: correct \
                 the origin"
            )
        });
        origins.chain(variables).collect()
    }
}

/// Returns a reason if a kind has no field at a path. Returns `None` for a kind whose fields are unknown.
fn no_field(of: &ResourceType, path: &[Selector], schemas: &Schemas<'_>) -> Option<String> {
    let steps = || -> Vec<PathStep> { path.iter().filter_map(Selector::as_step).cloned().collect() };
    let is_metadata = path.first().and_then(Selector::as_step).and_then(PathStep::name) == Some("metadata");
    let has = if is_metadata {
        // All kinds have the same metadata.
        has_field(&ResourceType { api_version: "v1".to_owned(), kind: "ConfigMap".to_owned() }, &steps())
    } else {
        schemas(of).map_or_else(|| has_field(of, &steps()), |schema| may_have(schema, path))
    };
    (!has).then(|| format!("the {} has no field {}", of.kind, shown(path)))
}

fn told(kind: &str, path: &str, from: &str, known: &Known) -> Option<String> {
    let path = if path.is_empty() { "the whole manifest" } else { path };
    let origin = format!("the origin of {path} of the {kind}, from {from}, covers no value");
    match known {
        Known { no_field: true, .. } => {
            Some(format!("{origin}: Kubernetes {VERSION} has no such field: correct the path"))
        }
        Known { covers: false, no_place: Some(why), .. } => Some(format!("{origin}: {why}: correct the place")),
        Known { covers: false, differs: true, .. } => Some(format!(
            "{origin} in any sample: correct the path or the place, or add a sample with the same value in both"
        )),
        Known { .. } => None,
    }
}
