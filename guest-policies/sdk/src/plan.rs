//! Builds plans, and declares where the values of manifests come from.
//!
//! The host needs the origin of each value that raises a privilege or names a Secret or a PersistentVolumeClaim. Users
//! also see origins. An origin covers all values below its path, so one line is enough for a part of a manifest:
//!
//! ```
//! use kaos_policy_sdk::plan::{self, Child};
//! use serde_json::json;
//!
//! let pod = json!({"imagePullSecrets": [{"name": "registry"}], "containers": [{"name": "web", "image": "web:1"}]});
//! let deployment = json!({"kind": "Deployment", "spec": {"template": {"spec": pod}}});
//! let child = Child::new(deployment)
//!     .origin("spec.template.spec.containers[name=\"web\"].image", "settings.image")
//!     .origin("spec.template.spec.imagePullSecrets[0].name", "spec.pullSecret");
//! let plan = plan::of(&[child], Vec::new());
//! assert_eq!(plan.origins[1].from, "spec.pullSecret");
//! ```

use crate::json;
use crate::types::{EnvVar, Origin, Plan};
use alloc::{string::String, vec::Vec};
use serde_json::Value;

/// A manifest, and the origins of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Child {
    /// The manifest.
    pub manifest: Value,
    /// Pairs of a path in the manifest and a source.
    origins: Vec<(String, String)>,
}

impl Child {
    /// Creates a child without origins: all values of the child are the policy's own.
    pub fn new(manifest: Value) -> Self {
        Self { manifest, origins: Vec::new() }
    }

    /// Declares that the value at `path` of the manifest, and all values below it, come from `source`. A source is a
    /// field of the object (`spec.podSpec`), a setting (`settings.image`), or a field of a found object. For a found
    /// object, write the id of the need, a space and the path: `ModelAPI/llm status.endpoint`.
    #[must_use]
    pub fn origin(mut self, path: impl Into<String>, source: impl Into<String>) -> Self {
        self.declare(path, source);
        self
    }

    /// Like [`Child::origin`], but changes the child in place.
    pub fn declare(&mut self, path: impl Into<String>, source: impl Into<String>) {
        self.origins.push((path.into(), source.into()));
    }

    /// Returns the child's origins. `manifest` is the child's position in the plan.
    pub(crate) fn origins_at(&self, manifest: u32) -> impl Iterator<Item = Origin> {
        let origin = move |(path, from): &(String, String)| Origin { manifest, path: path.clone(), from: from.clone() };
        self.origins.iter().map(origin)
    }
}

impl From<Value> for Child {
    fn from(manifest: Value) -> Self {
        Self::new(manifest)
    }
}

/// Builds a plan from `children` and the complete mapping `env`. To add gates, notes and a finalizer, set fields of
/// the result.
pub fn of(children: &[Child], env: Vec<EnvVar>) -> Plan {
    let origins = (0..).zip(children).flat_map(|(position, child)| child.origins_at(position)).collect();
    Plan {
        manifests: children.iter().map(|child| json::text(&child.manifest)).collect(),
        origins,
        gates: Vec::new(),
        env,
        notes: Vec::new(),
        finalizer: None,
        kept: Vec::new(),
        gates_hold: false,
        extra: json::empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Child, of};
    use serde_json::json;

    #[test]
    fn manifests_are_canonical_and_keep_their_order() {
        let plan = of(&[json!({"kind": "B", "apiVersion": "v1"}).into(), json!({"kind": "A"}).into()], Vec::new());
        assert_eq!(plan.manifests, [r#"{"apiVersion":"v1","kind":"B"}"#, r#"{"kind":"A"}"#]);
        assert!(plan.gates.is_empty() && plan.notes.is_empty() && plan.finalizer.is_none() && plan.extra == "{}");
        assert!(plan.origins.is_empty());
    }

    #[test]
    fn an_origin_names_the_position_of_its_manifest() {
        let own = Child::new(json!({"kind": "A"}));
        let plan = of(&[own.clone(), own.origin("spec.type", "settings.serviceType")], Vec::new());
        let origin = &plan.origins[0];
        assert_eq!((origin.manifest, &*origin.path, &*origin.from), (1, "spec.type", "settings.serviceType"));
        assert_eq!(plan.origins.len(), 1);
    }
}
