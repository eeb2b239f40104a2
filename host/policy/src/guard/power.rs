//! Types for a field that gives more power than a pod or a Service has by default.

use serde_json::Value;

use crate::{manifest::Privilege, origins::PathStep};

/// The names on the path to a value: the first name, and the names after it. The first name can be a text of the
/// manifest, such as the type of a volume.
pub(super) type Field<'a> = (&'a str, &'static [&'static str]);

/// A field of a manifest that raises privilege.
#[derive(Debug)]
pub(super) struct Raised<'a> {
    pub(super) privilege: Privilege,
    /// The field's path in the manifest. The names in this path can be any text that a user wrote.
    pub(super) path: Vec<PathStep>,
    pub(super) field: Field<'a>,
    pub(super) value: &'a Value,
    /// The container that has the field; `None` if the field belongs to the pod or to another object.
    pub(super) container: Option<Container<'a>>,
}

impl Raised<'_> {
    /// Returns whether `other` has the same privilege, field and value, and is for the same container.
    pub(super) fn is(&self, other: &Self) -> bool {
        let of = |raised: &Self| (raised.privilege, raised.container.map(|container| container.name));
        of(self) == of(other) && self.field == other.field && self.value == other.value
    }
}

/// One container of a pod.
#[derive(Debug, Clone, Copy)]
pub(super) struct Container<'a> {
    pub(super) name: &'a str,
    /// Whether this is the pod's first container. A value that names no container applies to the first container.
    pub(super) is_main: bool,
}
