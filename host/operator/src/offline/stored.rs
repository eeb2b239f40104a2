//! The objects of a simulated cluster, found by type and name.

use std::sync::Arc;

use kaos_policy::{
    contract::{Reference, ResourceType, Scopes, Target},
    render::ObjectRef,
};
use serde_json::Value;

use super::index::Index;
use crate::input::Document;

/// The objects of a simulated cluster, found by type and name.
#[derive(Debug)]
pub struct StoredObjects {
    pub(super) objects: Vec<Arc<Value>>,
    pub(super) index: Index,
    scopes: Scopes,
}

impl StoredObjects {
    /// Indexes the objects. If `known` does not say whether a type is namespaced, this function uses a CRD among the
    /// objects, or the namespaces of the type's objects.
    pub fn new(documents: &[Document], known: &Scopes) -> Self {
        let objects = documents.iter().map(|document| Arc::new(document.object.clone())).collect();
        let mut scopes = Scopes::of(documents.iter().map(|document| &document.object));
        scopes.add(known);
        Self { objects, index: Index::new(documents), scopes }
    }

    /// Returns the objects in the order of the documents.
    pub fn objects(&self) -> &[Arc<Value>] {
        &self.objects
    }

    /// Returns the object that a reference names.
    pub(crate) fn named(&self, reference: &Reference) -> Option<&Value> {
        let target = Target::Named(reference.clone());
        let positions = self.index.find(&target, self.is_cluster_scoped(&reference.of()), &self.objects);
        positions.first().map(|position| &*self.objects[*position])
    }

    pub(super) fn owned_by(&self, owner: &ObjectRef) -> impl Iterator<Item = &Value> {
        self.index.owned_by(owner).map(|position| &*self.objects[position])
    }

    pub(super) fn is_cluster_scoped(&self, of: &ResourceType) -> bool {
        self.scopes.is_cluster_scoped(&of.api_version, &of.kind)
    }
}
