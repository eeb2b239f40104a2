//! Children that the passes over their owners are writing now. The watch may report a write before the answer to the
//! write arrives. The watch must not wake the owner for the write of its own pass.

use serde_json::Value;

use super::{
    apply_event,
    cached_object::{owner_of, version_of},
    owners::ChildPlace,
    shared::Shared,
    state::State,
};
use crate::object_key::ObjectKey;

/// Returns the type, namespace and name of the child in a manifest, and the child's owner. `None` if the owner is not
/// of a claimed kind.
fn writer(state: &State, child: &Value) -> Option<(ChildPlace, ObjectKey)> {
    let owner = owner_of(child)?;
    let primary = state.coverage.primary_of(&owner.of)?;
    let at = ObjectKey::of_object(child)?;
    let key = ObjectKey::new(primary.clone(), &*at.namespace, owner.name);
    Some((ChildPlace { of: at.of.into(), namespace: (&*at.namespace).into(), name: (&*at.name).into() }, key))
}

/// A child that its owner is writing. Dropping this guard ends the write.
#[must_use]
pub struct WriteGuard<'a> {
    shared: &'a Shared,
    writer: Option<(ChildPlace, ObjectKey)>,
    answered: Option<u64>,
}

impl<'a> WriteGuard<'a> {
    pub(super) fn new(shared: &'a Shared, child: &Value) -> Self {
        let writer = shared.with(|state| {
            let writer = writer(state, child)?;
            state.in_flight.0.entry(writer.clone()).or_default();
            Some(writer)
        });
        Self { shared, writer, answered: None }
    }

    /// Applies the object in the answer to the write.
    pub fn answered(mut self, object: &Value) {
        self.shared.tell(|state| apply_event::wrote(state, object));
        self.answered = version_of(object["metadata"].get("resourceVersion"));
    }
}

impl Drop for WriteGuard<'_> {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            self.shared.tell(|state| state.in_flight.end(writer, self.answered));
        }
    }
}
