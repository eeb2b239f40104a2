//! Finds the revisions that failed in service, from the results of passes over their objects.

use std::collections::BTreeMap;

use super::{Lifecycle, execute::FAILED, plan::ServiceFailure};
use crate::watch::ObjectKey;

impl Lifecycle {
    /// Returns the serving revisions that failed in service, with the message for their quarantine.
    pub(super) fn failed_in_service(&self) -> BTreeMap<String, ServiceFailure> {
        let ledger = self.tools.catalogue.ledger();
        let serving = self.facts().serving();
        let failing = serving.into_iter().filter(|name| ledger.counts(name).1 > 0);
        let verdict = |name: String| {
            let why = ledger.book(&name).verdict(&self.concerned(&name))?;
            Some((name, ServiceFailure { reason: FAILED, why }))
        };
        failing.filter_map(verdict).collect()
    }

    /// Returns the objects without a pin for which a revision answers. So if the revision answers only for objects that
    /// pin it, returns no objects.
    pub(super) fn concerned(&self, name: &str) -> Vec<ObjectKey> {
        let Some(snapshot) = self.tools.catalogue.load() else { return Vec::new() };
        let choosing = self.tools.catalogue.ledger().choosing();
        let mut concerned = Vec::new();
        for (of, answers) in snapshot.kinds() {
            if !answers.revisions().any(|revision| &**revision == name) {
                continue;
            }
            let answers_for = |key: &ObjectKey| {
                let usual = snapshot.usual_for(of, &key.namespace, &key.name);
                usual.is_some_and(|kind| kind.revisions().any(|revision| &**revision == name))
            };
            let keys = self.tools.watch.keys(of).into_iter();
            concerned.extend(keys.filter(|key| answers_for(key) && !choosing.contains(key)));
        }
        concerned
    }
}
