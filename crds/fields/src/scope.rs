//! The scope of a type: whether its objects are in a namespace, or belong to the whole cluster.
//!
//! Without a cluster, three sources give the scope, in this order: the built-in types, the known definitions, and the
//! objects themselves. An object without a namespace shows that its type is cluster-scoped.

use alloc::{
    borrow::ToOwned,
    collections::BTreeMap,
    string::{String, ToString},
};

use serde_json::Value;

/// The built-in groups, each with its cluster-scoped kinds. All other kinds of these groups are namespaced.
const BUILT_IN: [(&str, &[&str]); 27] = [
    ("", &["ComponentStatus", "Namespace", "Node", "PersistentVolume"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("apps", &[]),
    ("authentication.k8s.io", &["SelfSubjectReview", "TokenReview"]),
    ("authorization.k8s.io", &["SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"]),
    ("autoscaling", &[]),
    ("batch", &[]),
    ("certificates.k8s.io", &["CertificateSigningRequest", "ClusterTrustBundle"]),
    ("coordination.k8s.io", &[]),
    ("discovery.k8s.io", &[]),
    ("events.k8s.io", &[]),
    ("flowcontrol.apiserver.k8s.io", &["FlowSchema", "PriorityLevelConfiguration"]),
    ("gateway.networking.k8s.io", &["GatewayClass"]),
    ("internal.apiserver.k8s.io", &["StorageVersion"]),
    ("kaos.tools", &[]),
    ("metrics.k8s.io", &["NodeMetrics"]),
    ("networking.k8s.io", &["IPAddress", "IngressClass", "ServiceCIDR"]),
    ("node.k8s.io", &["RuntimeClass"]),
    ("policy", &[]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("resource.k8s.io", &["DeviceClass", "DeviceTaintRule", "ResourceSlice"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("snapshot.storage.k8s.io", &["VolumeSnapshotClass", "VolumeSnapshotContent"]),
    ("storage.k8s.io", &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"]),
    ("storagemigration.k8s.io", &["StorageVersionMigration"]),
];

/// The scopes of types, without a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scopes {
    /// Whether a type is cluster-scoped, by its group and kind, according to its definition.
    defined: BTreeMap<(String, String), bool>,
    /// Whether a type is cluster-scoped, by its group and kind, according to its objects.
    seen: BTreeMap<(String, String), bool>,
}

impl Scopes {
    /// Returns the scopes that objects show. A `CustomResourceDefinition` among the objects defines the scope of its
    /// kind.
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut scopes = Self::default();
        for object in objects {
            scopes.see(object);
        }
        scopes
    }

    /// Sets the scope of a type.
    pub fn define(&mut self, group: &str, kind: &str, is_cluster_scoped: bool) {
        self.defined.insert((group.to_owned(), kind.to_owned()), is_cluster_scoped);
    }

    /// Learns from an object. One object with a namespace shows that its type is namespaced, because other objects may
    /// just leave out their namespace.
    pub fn see(&mut self, object: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let group = group(&api_version);
        if group == "apiextensions.k8s.io" && kind == "CustomResourceDefinition" {
            let spec = &object["spec"];
            self.define(&text(&spec["group"]), &text(&spec["names"]["kind"]), spec["scope"] == "Cluster");
        }
        let has_none = text(&object["metadata"]["namespace"]).is_empty();
        let is_cluster_scoped = self.seen.entry((group.to_owned(), kind)).or_insert(has_none);
        *is_cluster_scoped &= has_none;
    }

    /// Adds the definitions of other scopes.
    pub fn add(&mut self, others: &Self) {
        self.defined.extend(others.defined.clone());
    }

    /// Returns whether a type is cluster-scoped. A type that no source knows is namespaced.
    pub fn is_cluster_scoped(&self, api_version: &str, kind: &str) -> bool {
        let group = group(api_version);
        let of = (group.to_owned(), kind.to_owned());
        built_in(group, kind).or_else(|| self.defined.get(&of).or_else(|| self.seen.get(&of)).copied()).unwrap_or(false)
    }
}

/// Returns whether a built-in type is cluster-scoped. `None` if the type is not built in.
fn built_in(group: &str, kind: &str) -> Option<bool> {
    BUILT_IN.iter().find(|(of, _)| *of == group).map(|(_, kinds)| kinds.contains(&kind))
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(api_version: &str, kind: &str, namespace: Option<&str>) -> Value {
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a", "namespace": namespace}})
    }

    #[test]
    fn a_built_in_type_keeps_its_scope() {
        let scopes =
            Scopes::of(&[object("v1", "ConfigMap", None), object("storage.k8s.io/v1", "StorageClass", Some("a"))]);
        assert!(!scopes.is_cluster_scoped("v1", "ConfigMap"));
        assert!(scopes.is_cluster_scoped("storage.k8s.io/v1", "StorageClass"));
        assert!(scopes.is_cluster_scoped("v1", "Namespace"));
    }

    #[test]
    fn a_definition_overrides_the_objects() {
        let definition = |scope: &str| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "kites.example.org"},
                "spec": {"group": "example.org", "names": {"kind": "Kite"}, "scope": scope}})
        };
        for (scope, is_cluster_scoped) in [("Cluster", true), ("Namespaced", false)] {
            for namespace in [None, Some("a")] {
                let scopes = Scopes::of(&[object("example.org/v1", "Kite", namespace), definition(scope)]);
                assert_eq!(scopes.is_cluster_scoped("example.org/v2", "Kite"), is_cluster_scoped, "{scope}");
            }
        }
    }

    #[test]
    fn an_object_without_a_namespace_shows_a_cluster_scoped_type() {
        let of = |namespaces: &[Option<&str>]| {
            let objects: alloc::vec::Vec<Value> =
                namespaces.iter().map(|namespace| object("example.org/v1", "Kite", *namespace)).collect();
            Scopes::of(&objects).is_cluster_scoped("example.org/v1", "Kite")
        };
        assert!(of(&[None]) && of(&[None, Some("")]));
        assert!(!of(&[]) && !of(&[Some("a")]) && !of(&[None, Some("a")]) && !of(&[Some("a"), None]));
    }

    #[test]
    fn definitions_are_added_and_objects_are_not() {
        let (mut scopes, mut others) = (Scopes::default(), Scopes::of(&[object("example.org/v1", "Sky", None)]));
        others.define("example.org", "Kite", true);
        scopes.add(&others);
        assert!(scopes.is_cluster_scoped("example.org/v1", "Kite"));
        assert!(!scopes.is_cluster_scoped("example.org/v1", "Sky"));
    }
}
