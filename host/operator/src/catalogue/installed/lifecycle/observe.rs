//! Observes the packages and the changes since the last round.

use std::{collections::BTreeSet, time::Duration};

use super::{Found, Lifecycle, StepError};
use crate::config_maps::OPERATOR_CONFIG;

impl Lifecycle {
    /// Returns the packages. Returns `None` until the watches have listed the packages and the PolicyRevisions.
    pub(super) async fn observe_packages(
        &mut self,
        wait: &mut Option<Duration>,
    ) -> Result<Option<Vec<Found>>, StepError> {
        if !self.sources.are_known() {
            self.tools.catalogue.waits_for("the policy ConfigMaps were not listed yet".to_owned());
            return Ok(None);
        }
        let mut found = self.sources.packages().await;
        if self.records.are_known() {
            found.extend(self.defaults.found());
            return Ok(Some(found));
        }
        if found.is_empty() && !self.restored && self.needs_no_records() {
            self.serve().await?;
            *wait = self.keep_last_good().await;
            return Ok(None);
        }
        let waits = if self.records.are_forbidden() {
            "the operator is not allowed to read PolicyRevisions, so it does not know which policies served before: grant \
             this right with the Role that `kaos-operator rbac` prints, or start the operator with \
             --default-policies-rollout=now"
        } else {
            "PolicyRevisions were not listed yet: is policyrevisions.kaos.tools installed (kaos-operator crds)?"
        };
        self.tools.catalogue.waits_for(waits.to_owned());
        Ok(None)
    }

    /// Returns whether the policies of the process can serve without the PolicyRevisions. A cluster without installed
    /// policies does not need the PolicyRevision CRD. With this CRD, another version of the operator may have recorded
    /// other default policies, so the default policies wait for the PolicyRevisions. The exception is an operator that
    /// has no right to read the PolicyRevisions, and whose default policies serve at once.
    fn needs_no_records(&self) -> bool {
        let can_serve = self.defaults.serve_at_once() && self.records.are_forbidden();
        self.defaults.are_none() || self.records.are_unserved() || can_serve
    }

    /// Reads the changes since the last round. Ends background work that is no longer wanted.
    pub(super) async fn take_up_changes(&mut self, found: &[Found]) {
        self.records.refresh();
        self.records.settle().await;
        let current = self.current(found);
        self.questions.keep(|name| current.contains(name));
        self.previews.keep(|name| current.contains(name));
        self.trials.keep(|name| name == OPERATOR_CONFIG || current.contains(name));
        self.permitted.retain(|name| current.contains(name));
        self.refused_under.retain(|name, _| current.contains(name));
        let is_left = |name: &String| {
            let entry = self.revisions.entries.get(name);
            entry.is_some_and(|entry| found.iter().all(|found| found.source != entry.source))
        };
        let left: BTreeSet<String> = self.facts().serving().into_iter().filter(is_left).collect();
        if !left.is_subset(&self.without_source) {
            // If the source of a revision with a running rollout was deleted, a waiting package can now replace this
            // revision.
            self.wake_rollouts();
            self.swap_again();
        }
        self.without_source = left;
        self.forget_what_loads_no_more();
        let restoring = std::mem::take(&mut self.restoring);
        self.checks.keep(|name| {
            let is_loading = || self.loading.values().flatten().any(|it| it == name);
            current.contains(name)
                || self.revisions.entries.contains_key(name)
                || restoring.contains_key(name)
                || is_loading()
        });
        let config = self.config();
        if self.restored && self.looked_under != config {
            // After each change of the operator's own ConfigMap, retry every waiting revision once, because the new
            // settings may fit the revision.
            self.due.clear();
        }
        self.looked_under = config;
    }
}
