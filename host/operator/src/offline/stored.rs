//! The objects of a simulated cluster, found by type and name.

use std::sync::Arc;

use kaos_policy::{
    contract::{Reference, ResourceType, Target},
    render::ObjectRef,
};
use serde_json::Value;

use super::index::Index;
use crate::input::{Document, is_cluster_scoped};

/// The objects of a simulated cluster, found by type and name.
#[derive(Debug)]
pub struct StoredObjects {
    pub(super) objects: Vec<Arc<Value>>,
    pub(super) index: Index,
}

impl StoredObjects {
    /// Indexes the objects.
    pub fn new(documents: &[Document]) -> Self {
        let objects = documents.iter().map(|document| Arc::new(document.object.clone())).collect();
        Self { objects, index: Index::new(documents) }
    }

    /// Returns the objects in the order of the documents.
    pub fn objects(&self) -> &[Arc<Value>] {
        &self.objects
    }

    pub(super) fn named(&self, reference: &Reference) -> Option<&Value> {
        let target = Target::Named(reference.clone());
        let positions = self.index.find(&target, is_scoped(&reference.of()), &self.objects);
        positions.first().map(|position| &*self.objects[*position])
    }

    pub(super) fn owned_by(&self, owner: &ObjectRef) -> impl Iterator<Item = &Value> {
        self.index.owned_by(owner).map(|position| &*self.objects[position])
    }
}

fn is_scoped(of: &ResourceType) -> bool {
    is_cluster_scoped(of.group(), &of.kind)
}
