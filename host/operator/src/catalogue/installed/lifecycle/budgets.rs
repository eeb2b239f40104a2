//! Records, for each revision, the namespaces in which its objects wait because a budget is used up.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use kaos_crds::{PolicyRevisionStatus, RevisionState};
use tokio::time::Instant;

use super::{LOOK_AGAIN, Lifecycle};

/// The maximum number of namespaces in a status.
const MAX_NAMESPACES: usize = 10;

impl Lifecycle {
    /// Updates the PolicyRevision of each revision whose list of namespaces with waiting objects changed. Returns the
    /// time until the next call, or `None` if there are no limits.
    pub(super) async fn note_budgets(&mut self) -> Option<Duration> {
        let budgets = &self.tools.budgets;
        let has_limits = budgets.have_limits();
        let used_up = if has_limits { budgets.used_up(Instant::now()) } else { BTreeMap::new() };
        let mut changed: Vec<(String, PolicyRevisionStatus)> = Vec::new();
        for (name, revision) in self.records.all() {
            let mut status = self.records.status(name);
            let serves = matches!(status.state, RevisionState::Active | RevisionState::Yielding);
            // In `used_up`, all policies of the process share one entry. So the kind of each item in the entry shows to
            // which policy the item belongs.
            let is_of_process = self.defaults.is_of_process(&revision.spec.source);
            let answers: Option<Arc<str>> = if is_of_process { None } else { Some(name.as_str().into()) };
            let waiting = used_up.get(&answers).filter(|_| serves).into_iter().flatten();
            let waiting = waiting.filter(|(of, _)| !is_of_process || status.kinds.contains(&of.to_string()));
            let namespaces: BTreeSet<&String> = waiting.map(|(_, namespace)| namespace).collect();
            let namespaces: Vec<String> = namespaces.into_iter().take(MAX_NAMESPACES).cloned().collect();
            if status.namespaces_over_budget != namespaces {
                status.namespaces_over_budget = namespaces;
                changed.push((name.clone(), status));
            }
        }
        for (name, status) in changed {
            self.records.write_or_owe(&name, status).await;
        }
        has_limits.then_some(LOOK_AGAIN)
    }
}
