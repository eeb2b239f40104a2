//! The built-in types.

use std::sync::{Arc, LazyLock};

use super::{Family, Resource, Scale};
use crate::schema::definitions;

const ALL: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const NO_COLLECTION: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const CREATE: &[&str] = &["create"];

struct Row(&'static str, &'static str, &'static str, &'static str, Family, u8);

const NAMESPACED: u8 = 1;
const STATUS: u8 = 2;
const SCALE: u8 = 4;
const CATEGORY_ALL: u8 = 8;

/// The built-in types, each with group, kind, plural, short names, family and flags. The version is always `v1`.
const ROWS: &[Row] = &[
    Row("", "Namespace", "namespaces", "ns", Family::Namespace, STATUS),
    Row("", "ConfigMap", "configmaps", "cm", Family::ConfigMap, NAMESPACED),
    Row("", "Secret", "secrets", "", Family::Secret, NAMESPACED),
    Row("", "Service", "services", "svc", Family::Service, NAMESPACED | STATUS | CATEGORY_ALL),
    Row("", "ServiceAccount", "serviceaccounts", "sa", Family::ServiceAccount, NAMESPACED),
    Row("", "Event", "events", "ev", Family::Event, NAMESPACED),
    Row("", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", Family::Claim, NAMESPACED | STATUS),
    Row("", "Pod", "pods", "po", Family::Pod, NAMESPACED | STATUS | CATEGORY_ALL),
    Row("", "Node", "nodes", "no", Family::Node, STATUS),
    Row("", "Binding", "bindings", "", Family::Binding, NAMESPACED),
    Row("apps", "Deployment", "deployments", "deploy", Family::Deployment, NAMESPACED | STATUS | SCALE | CATEGORY_ALL),
    Row("apps", "ReplicaSet", "replicasets", "rs", Family::ReplicaSet, NAMESPACED | STATUS | SCALE | CATEGORY_ALL),
    Row("apps", "StatefulSet", "statefulsets", "sts", Family::StatefulSet, NAMESPACED | STATUS | SCALE | CATEGORY_ALL),
    Row("batch", "Job", "jobs", "", Family::Job, NAMESPACED | STATUS | CATEGORY_ALL),
    Row("policy", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", Family::Budget, NAMESPACED | STATUS),
    Row("coordination.k8s.io", "Lease", "leases", "", Family::Lease, NAMESPACED),
    Row("events.k8s.io", "Event", "events", "ev", Family::NewEvent, NAMESPACED),
    Row("discovery.k8s.io", "EndpointSlice", "endpointslices", "", Family::EndpointSlice, NAMESPACED),
    Row("rbac.authorization.k8s.io", "Role", "roles", "", Family::Rbac, NAMESPACED),
    Row("rbac.authorization.k8s.io", "RoleBinding", "rolebindings", "", Family::Rbac, NAMESPACED),
    Row("rbac.authorization.k8s.io", "ClusterRole", "clusterroles", "", Family::Rbac, 0),
    Row("rbac.authorization.k8s.io", "ClusterRoleBinding", "clusterrolebindings", "", Family::Rbac, 0),
    Row("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", "", Family::Review, 0),
    Row("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", "", Family::Review, 0),
    Row("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews", "", Family::Review, 0),
    Row("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews", "", Family::Review, 0),
    Row(
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd,crds",
        Family::Definition,
        STATUS,
    ),
];

/// The built-in types. The crate builds these types only once, because reading their schemas takes time.
pub(super) static RESOURCES: LazyLock<Vec<Arc<Resource>>> =
    LazyLock::new(|| resources().into_iter().map(Arc::new).collect());

/// Returns group and kind of each stored type.
pub(super) fn kinds() -> impl Iterator<Item = (&'static str, &'static str)> {
    let stored = ROWS.iter().filter(|row| !matches!(row.4, Family::Review | Family::Binding | Family::NewEvent));
    stored.map(|row| (row.0, row.1))
}

/// Converts the rows to resources.
fn resources() -> Vec<Resource> {
    ROWS.iter()
        .map(|Row(group, kind, plural, short, family, flags)| Resource {
            group: (*group).into(),
            version: "v1".into(),
            kind: (*kind).into(),
            plural: (*plural).into(),
            singular: kind.to_lowercase(),
            short_names: short.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            categories: match family {
                Family::Definition => vec!["api-extensions".into()],
                _ if flags & CATEGORY_ALL != 0 => vec!["all".into()],
                _ => Vec::new(),
            },
            namespaced: flags & NAMESPACED != 0,
            verbs: match family {
                Family::Namespace => NO_COLLECTION,
                Family::Review | Family::Binding => CREATE,
                _ => ALL,
            },
            status: flags & STATUS != 0,
            scale: (flags & SCALE != 0).then(|| Scale {
                replicas: ".spec.replicas".into(),
                status_replicas: ".status.replicas".into(),
                selector: None,
            }),
            node: definitions::name_of(group, "v1", kind).map(definitions::read).unwrap_or_default(),
            family: *family,
            custom: None,
        })
        .collect()
}
