//! Records the objects that the watch reports while a preview runs: changed objects, and objects whose policies read a
//! changed object.

use std::{collections::BTreeSet, sync::Mutex};

use crate::{locking::lock, watch::ObjectKey};

/// The objects that the watch reported. Records nothing while no preview runs.
#[derive(Debug, Default)]
pub(crate) struct Changes(Mutex<Option<BTreeSet<ObjectKey>>>);

/// A running recording. The recording ends when this value is dropped.
pub(super) struct Recording<'a>(&'a Changes);

impl Changes {
    /// Records an object that the watch reported.
    pub(crate) fn about(&self, key: &ObjectKey) {
        if let Some(changed) = lock(&self.0).as_mut() {
            changed.insert(key.clone());
        }
    }

    /// Starts a recording.
    pub(super) fn record(&self) -> Recording<'_> {
        *lock(&self.0) = Some(BTreeSet::new());
        Recording(self)
    }
}

impl Recording<'_> {
    /// Returns the objects that the watch reported since the last call.
    pub(super) fn take(&self) -> BTreeSet<ObjectKey> {
        lock(&self.0.0).as_mut().map(std::mem::take).unwrap_or_default()
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        *lock(&self.0.0) = None;
    }
}

#[cfg(test)]
mod tests {
    use kaos_policy::contract::ResourceType;

    use super::*;

    #[test]
    fn only_a_running_preview_records_objects() {
        let changes = Changes::default();
        let key = |name: &str| ObjectKey::new(ResourceType::new("x.io/v1", "Widget"), "n", name);
        changes.about(&key("early"));
        let recording = changes.record();
        assert!(recording.take().is_empty());
        changes.about(&key("a"));
        assert_eq!(recording.take(), BTreeSet::from([key("a")]));
        assert!(recording.take().is_empty());
        drop(recording);
        changes.about(&key("late"));
        assert!(changes.record().take().is_empty());
    }
}
