//! Children that an owner is writing. The watch may report a write before its answer arrives, and the writer need not
//! be woken for that.

use serde_json::Value;

use super::{
    Watch,
    cached_object::{owner_of, version_of},
    owners::Place,
    state::State,
};
use crate::object_key::ObjectKey;

impl State {
    /// Returns the owner in a manifest, and the place of the child.
    fn writer(&self, child: &Value) -> Option<(Place, ObjectKey)> {
        let owner = owner_of(child)?;
        let primary = self.coverage.primary_of(&owner.of)?;
        let at = ObjectKey::of_object(child)?;
        let key = ObjectKey::new(primary.clone(), &*at.namespace, owner.name);
        Some((Place { of: at.of.into(), namespace: (&*at.namespace).into(), name: (&*at.name).into() }, key))
    }
}

/// A child that its owner is writing, until this is dropped.
#[must_use]
pub struct WriteGuard<'a> {
    watch: &'a Watch,
    writer: Option<(Place, ObjectKey)>,
    answered: Option<u64>,
}

impl WriteGuard<'_> {
    /// Takes in the object from the write's answer.
    pub fn answered(mut self, object: &Value) {
        self.watch.wrote(object);
        self.answered = version_of(object["metadata"].get("resourceVersion"));
    }
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            self.watch.0.tell(|state| state.in_flight.end(writer, self.answered));
        }
    }
}

impl Watch {
    /// Announces that the owner in the manifest is about to write the child.
    pub fn writing(&self, child: &Value) -> WriteGuard<'_> {
        let writer = self.0.with(|state| {
            let writer = state.writer(child)?;
            state.in_flight.0.entry(writer.clone()).or_default();
            Some(writer)
        });
        WriteGuard { watch: self, writer, answered: None }
    }
}
