//! Parses the keys of objects in tests, and lists the types that tests use.

use std::fmt;

use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use serde_json::Value;

/// A type that tests use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The API version, such as `apps/v1`.
    pub api_version: &'static str,
    /// The kind, such as `Deployment`.
    pub kind: &'static str,
    /// The plural, such as `deployments`.
    pub plural: &'static str,
    /// Whether the type is namespaced.
    pub namespaced: bool,
}

const fn kind(api_version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { api_version, kind, plural, namespaced: true }
}

const fn of_cluster(api_version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind { api_version, kind, plural, namespaced: false }
}

const KINDS: [Kind; 35] = [
    kind("kaos.tools/v1alpha1", "Agent", "agents"),
    kind("kaos.tools/v1alpha1", "ModelAPI", "modelapis"),
    kind("kaos.tools/v1alpha1", "MCPServer", "mcpservers"),
    kind("kaos.tools/v1alpha1", "MemoryStore", "memorystores"),
    kind("kaos.tools/v1alpha1", "PolicyRevision", "policyrevisions"),
    kind("kaos.tools/v1alpha1", "AccessGrant", "accessgrants"),
    kind("kaos.tools/v1alpha1", "AuthorizationPolicy", "authorizationpolicies"),
    kind("test.example.com/v1", "Gadget", "gadgets"),
    kind("test.example.com/v1", "Widget", "widgets"),
    kind("sky.io/v1", "Kite", "kites"),
    kind("apps/v1", "Deployment", "deployments"),
    kind("apps/v1", "ReplicaSet", "replicasets"),
    kind("v1", "Pod", "pods"),
    kind("v1", "Service", "services"),
    kind("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
    kind("v1", "ConfigMap", "configmaps"),
    kind("v1", "Secret", "secrets"),
    kind("v1", "ServiceAccount", "serviceaccounts"),
    kind("v1", "Event", "events"),
    kind("v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
    kind("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets"),
    kind("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes"),
    kind("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy", "securitypolicies"),
    kind("gateway.networking.k8s.io/v1beta1", "ReferenceGrant", "referencegrants"),
    kind("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies"),
    kind("coordination.k8s.io/v1", "Lease", "leases"),
    kind("batch/v1", "Job", "jobs"),
    kind("rbac.authorization.k8s.io/v1", "Role", "roles"),
    kind("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    of_cluster("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles"),
    of_cluster("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings"),
    of_cluster("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions"),
    of_cluster("v1", "PersistentVolume", "persistentvolumes"),
    of_cluster("v1", "Namespace", "namespaces"),
    of_cluster("v1", "Node", "nodes"),
];

impl Kind {
    /// Finds a type by its kind.
    ///
    /// # Panics
    /// If `KINDS` does not contain the kind. Add a missing kind to `KINDS`.
    #[expect(clippy::panic, reason = "a test that names an unknown kind is wrong")]
    pub fn named(name: &str) -> Self {
        KINDS.into_iter().find(|kind| kind.kind == name).unwrap_or_else(|| panic!("no kind {name} in the harness"))
    }

    /// Returns the type of an object.
    pub fn of(object: &Value) -> Self {
        Self::named(object["kind"].as_str().unwrap_or_default())
    }

    /// Returns the type's group, or an empty text for the core group.
    pub fn group(&self) -> &'static str {
        self.api_version.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// Returns the type as the client's `ApiResource`.
    pub fn resource(&self) -> ApiResource {
        let version = self.api_version.rsplit_once('/').map_or(self.api_version, |(_, version)| version);
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(self.group(), version, self.kind), self.plural)
    }
}

/// The key of one object. `Agent/a` is in the test's namespace, and `kaos-system:ConfigMap/x` is in another namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct At {
    /// The type of the object.
    pub kind: Kind,
    /// The namespace of the object. Empty for cluster-scoped types.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
}

impl At {
    /// Parses a key. If the key names no namespace, the object is in `namespace`.
    ///
    /// # Panics
    /// If the text is not a key.
    #[expect(clippy::panic, reason = "a test that names nothing is wrong")]
    pub fn parse(text: &str, namespace: &str) -> Self {
        let (namespace, rest) = text.split_once(':').unwrap_or((namespace, text));
        let Some((kind, name)) = rest.split_once('/') else { panic!("`{text}` is not Kind/name") };
        let kind = Kind::named(kind);
        let namespace = if kind.namespaced { namespace.to_owned() } else { String::new() };
        Self { kind, namespace, name: name.to_owned() }
    }

    /// Returns the key of an object. If the object names no namespace, the object is in `namespace`.
    pub fn of(object: &Value, namespace: &str) -> Self {
        let kind = Kind::of(object);
        let own = object["metadata"]["namespace"].as_str().unwrap_or(namespace);
        let namespace = if kind.namespaced { own.to_owned() } else { String::new() };
        Self { kind, namespace, name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned() }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}/{}", self.namespace, self.kind.kind, self.name)
    }
}
