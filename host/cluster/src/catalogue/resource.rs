//! A served type of objects.

use serde_json::Value;

use crate::{
    schema::{Node, rules::Rules},
    status::Subject,
    storage::GroupResource,
};

/// A served type in one version.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: &'static [&'static str],
    pub(crate) status: bool,
    pub(crate) scale: Option<Scale>,
    pub(crate) node: Node,
    pub(crate) family: Family,
    /// Properties of a custom resource.
    pub(crate) custom: Option<Custom>,
}

/// The paths of the scale subresource.
#[derive(Debug, Clone)]
pub(crate) struct Scale {
    pub(crate) replicas: String,
    pub(crate) status_replicas: String,
    pub(crate) selector: Option<String>,
}

/// Properties of a custom resource, except its schema tree.
#[derive(Debug)]
pub(crate) struct Custom {
    #[cfg_attr(not(feature = "kubectl"), expect(dead_code, reason = "only OpenAPI shows this field"))]
    pub(crate) schema: Value,
    pub(crate) rules: Rules,
    #[cfg_attr(not(feature = "kubectl"), expect(dead_code, reason = "only tables have columns"))]
    pub(crate) columns: Vec<Column>,
    pub(crate) selectable: Vec<String>,
    pub(crate) storage_version: String,
    /// The revision of the store at which the cluster began to serve the type.
    pub(crate) since: u64,
}

/// A printer column of a custom resource.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "kubectl"), expect(dead_code, reason = "only tables have columns"))]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) type_: String,
    pub(crate) format: String,
    pub(crate) description: String,
    pub(crate) priority: i64,
    pub(crate) path: String,
}

/// The kinds for which the server has its own defaults and checks. [`Self::Custom`] stands for all other kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    Namespace,
    ConfigMap,
    Secret,
    Service,
    ServiceAccount,
    Event,
    /// Events in the shape of events.k8s.io. The cluster stores them as objects of the family `Event`.
    NewEvent,
    Pod,
    Node,
    Deployment,
    ReplicaSet,
    StatefulSet,
    Job,
    Lease,
    EndpointSlice,
    /// A PersistentVolumeClaim.
    Claim,
    /// A PodDisruptionBudget.
    Budget,
    Rbac,
    Binding,
    Definition,
    /// Access reviews, which are never stored.
    Review,
    Custom,
}

impl Resource {
    /// Returns the `apiVersion`, such as `apps/v1`, or `v1` for the core group.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Returns the type under which the cluster stores the objects.
    pub(crate) fn storage(&self) -> GroupResource {
        match self.family {
            Family::NewEvent => GroupResource::new("", "events"),
            _ => GroupResource::new(&self.group, &self.plural),
        }
    }

    /// Returns the subject for API errors about the object with this `name`.
    pub(crate) fn subject(&self, name: &str) -> Subject {
        Subject { group: self.group.clone(), kind: self.plural.clone(), name: name.to_owned() }
    }

    /// Returns the subject for API errors about invalid fields of the object with this `name`. Such errors name the
    /// kind instead of the plural.
    pub(crate) fn kind_subject(&self, name: &str) -> Subject {
        Subject { group: self.group.clone(), kind: self.kind.clone(), name: name.to_owned() }
    }
}
