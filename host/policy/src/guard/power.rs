//! A field that gives more power than a pod or a Service has by itself.

use serde_json::Value;

use crate::manifest::Privilege;

/// The names that lead to a value: the first one may be the manifest's own, such as the type of a volume.
pub(super) type Field<'a> = (&'a str, &'static [&'static str]);

/// A field of a manifest that raises privilege.
#[derive(Debug)]
pub(super) struct Raised<'a> {
    pub(super) privilege: Privilege,
    /// Where it stands in the manifest.
    pub(super) path: String,
    pub(super) field: Field<'a>,
    pub(super) value: &'a Value,
    /// The container that has it; none when the whole pod or another object does.
    pub(super) container: Option<Container<'a>>,
}

/// One container of a pod.
#[derive(Debug, Clone, Copy)]
pub(super) struct Container<'a> {
    pub(super) name: &'a str,
    /// Whether it is the pod's first: the one that is meant where none is named.
    pub(super) is_main: bool,
}
