//! Finds fields in a manifest that the manifest's kind does not have. An API server would refuse such a field. This
//! module knows every kind in a stable version of Kubernetes' own APIs, as Kubernetes [`VERSION`] defines them. The
//! module ignores all other kinds. [`is_known`] tells whether the module knows a kind.
//!
//! Each line of `fields.txt` lists the fields of one type. The type of a kind is called `apiVersion/kind`. `name:Type`
//! means that the value of the field `name`, or each item of the value, has the type `Type`. Another line lists the
//! fields of `Type`. `fields.py` generates `fields.txt`.

use std::{collections::HashMap, sync::LazyLock};

use super::{found::Findings, found::quoted, manifest_value::ManifestValue};
use crate::{contract::ResourceType, near::nearest, origins::PathStep};

/// The version of Kubernetes from which the fields in `fields.txt` come.
pub const VERSION: &str = "1.36";

/// The fields of each type, as `fields.txt` lists them.
static TYPES: LazyLock<HashMap<&'static str, &'static str>> =
    LazyLock::new(|| include_str!("fields.txt").lines().filter_map(|line| line.split_once(' ')).collect());

/// Returns whether the check knows the fields of this kind.
pub fn is_known(of: &ResourceType) -> bool {
    TYPES.contains_key(&*kind(&of.api_version, &of.kind))
}

/// Returns whether the kind may have a field at a path. Returns true for a kind whose fields are unknown.
pub(crate) fn has_field(of: &ResourceType, path: &[PathStep]) -> bool {
    let mut listed = TYPES.get(&*kind(&of.api_version, &of.kind)).copied();
    for name in path.iter().filter_map(PathStep::name) {
        let Some(known) = listed else { return true };
        match fields(known).find(|(field, _)| *field == name) {
            Some((_, of)) => listed = of.and_then(|of| TYPES.get(of)).copied(),
            None => return false,
        }
    }
    true
}

/// Reports every field in a manifest that the manifest's kind does not have.
pub(super) fn check(manifest: &ManifestValue<'_>, version: &str, of: &str, found: &mut Findings) {
    walk(manifest, &kind(version, of), found);
}

fn kind(version: &str, kind: &str) -> String {
    format!("{version}/{kind}")
}

/// Returns the name of each field of a type. If the value of a field is an object with its own fields, also returns the
/// name of the object's type.
fn fields(listed: &'static str) -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    listed.split(' ').map(|field| field.split_once(':').map_or((field, None), |(name, of)| (name, Some(of))))
}

fn walk(at: &ManifestValue<'_>, of: &str, found: &mut Findings) {
    if at.value().is_array() {
        return at.items().for_each(|item| walk(&item, of, found));
    }
    let Some(listed) = TYPES.get(of) else { return };
    for (name, value) in at.entries() {
        if found.is_full() {
            return;
        }
        match fields(listed).find(|(field, _)| *field == name) {
            Some((_, Some(of))) => walk(&value, of, found),
            Some((_, None)) => {}
            None => {
                let near = nearest(name, fields(listed).map(|(field, _)| field));
                let meant = near.map_or("remove it".to_owned(), |near| format!("did you mean {near}?"));
                found.add(&value, format!("Kubernetes {VERSION} has no field {} here: {meant}", quoted(name)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_referenced_type_is_listed() {
        for (name, listed) in TYPES.iter() {
            for of in fields(listed).filter_map(|(_, of)| of) {
                assert!(TYPES.contains_key(of), "{of} of {name}");
            }
        }
        assert!(TYPES.len() > 300, "{}", TYPES.len());
    }

    #[test]
    fn the_kinds_that_policies_make_are_known_and_custom_kinds_are_not() {
        for (version, kind) in [
            ("apps/v1", "StatefulSet"),
            ("apps/v1", "DaemonSet"),
            ("batch/v1", "CronJob"),
            ("policy/v1", "PodDisruptionBudget"),
            ("autoscaling/v2", "HorizontalPodAutoscaler"),
            ("networking.k8s.io/v1", "NetworkPolicy"),
            ("rbac.authorization.k8s.io/v1", "RoleBinding"),
            ("v1", "PersistentVolumeClaim"),
        ] {
            assert!(is_known(&ResourceType::new(version, kind)), "{version} {kind}");
        }
        assert!(!is_known(&ResourceType::new("gateway.networking.k8s.io/v1", "HTTPRoute")));
        assert!(!is_known(&ResourceType::new("v1", "StatefulSet")), "the version is another one");
    }

    #[test]
    fn a_path_leads_through_fields_lists_and_maps() {
        let has = |path: &str| {
            has_field(&ResourceType::new("apps/v1", "StatefulSet"), &crate::origins::steps(path).unwrap_or_default())
        };
        assert!(has("spec.replicas") && has("spec.template.spec.containers[0].image") && has("spec"));
        assert!(has("spec.template.metadata.labels.app") && has("spec.selector.matchLabels.any"));
        assert!(!has("spec.replica") && !has("spec.template.spec.containers[0].img"));
        assert!(has_field(&ResourceType::new("sky.io/v1", "Sky"), &[PathStep::Name("any".to_owned())]));
    }

    /// The table must be small, because each process keeps it in memory.
    #[test]
    fn the_table_is_small() {
        assert!(include_str!("fields.txt").len() < 40 << 10, "{}", include_str!("fields.txt").len());
    }
}
