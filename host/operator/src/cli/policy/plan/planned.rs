//! The result of a comparison, and the cluster and namespace that the comparison is about.

use std::collections::BTreeSet;

use kaos_policy::contract::Reference;

use super::Sides;
use crate::{input::Document, offline::Started, plan::Difference};

/// The result of a comparison.
pub(in crate::cli::policy) struct Planned {
    /// Number of objects that the package answers for, or that change.
    pub(super) objects: usize,
    pub(super) differences: Vec<Difference>,
}

impl Planned {
    /// Creates the result of a comparison of recorded cases.
    pub(in crate::cli::policy) fn new(objects: usize, differences: Vec<Difference>) -> Self {
        Self { objects, differences }
    }

    pub(super) fn of(sides: &Sides, documents: &[Document], differences: Vec<Difference>) -> Self {
        let answered = sides.answered(documents).map(|document| Reference::of_object(&document.object));
        let differing = differences.iter().map(|difference| difference.object.clone());
        let objects = answered.chain(differing).collect::<BTreeSet<_>>().len();
        Self { objects, differences }
    }
}

/// The operator's start options, and the namespace of the compared objects; `None` for all namespaces.
pub(in crate::cli::policy) struct PlanScope {
    pub(in crate::cli::policy) started: Started,
    pub(in crate::cli::policy) namespace: Option<String>,
}
