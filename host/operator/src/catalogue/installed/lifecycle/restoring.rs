//! From a record to a revision that serves, as it did before this process began.

use std::sync::Arc;

use kaos_crds::RevisionState;

use super::{
    Found, Lifecycle, StepError, Turn,
    admission::{NO_SUCH_POLICY, NotAdmitted},
};
use crate::{
    catalogue::{
        Age,
        installed::{
            self,
            records::{Revision, was_not_loaded},
            roster::Entry,
        },
    },
    moments::parsed,
    package::Package,
};

/// What became of a revision that is to be loaded.
pub(super) enum Loaded {
    Serves,
    /// It cannot, and its record says why.
    Never,
    /// It served and cannot be loaded any more: what served before stands in for it.
    Withheld,
    /// Not for now: the compiler was killed, or got no processor.
    NotYet(StepError),
}

impl Lifecycle {
    /// Loads what served when the last process ended, and what served before that, from the bytes that were kept. Namespaces'
    /// own policies are loaded beside everything else.
    pub(super) async fn restore(&mut self, found: &[Found]) -> Result<(), StepError> {
        let is_let_in = |revision: &&Revision| revision.status.as_ref().is_some_and(|status| status.state.is_let_in());
        let mut active: Vec<Revision> = self.records.all().values().filter(is_let_in).cloned().collect();
        // Settings are for a policy that has to be there.
        active.sort_by_key(|revision| revision.spec.digest.is_none());
        let mut back = Vec::new();
        for revision in active {
            let name = revision.metadata.name.clone().unwrap_or_default();
            if self.load_beside(&revision, found) {
                continue;
            }
            match self.reload(&revision, found).await {
                Err(error) | Ok(Loaded::NotYet(error)) => self.put_off(&revision, found, error).await?,
                Ok(Loaded::Serves) if was_not_loaded(&revision) => back.push(revision),
                Ok(Loaded::Serves | Loaded::Never | Loaded::Withheld) => {}
            }
            for before in self.before(&name) {
                // What serves does not wait for what it might fall back to.
                if let Some(before) = self.records.get(&before).cloned()
                    && let Err(error) | Ok(Loaded::NotYet(error)) = self.reload(&before, found).await
                {
                    tracing::warn!(%error, "what served before cannot be fallen back to");
                }
            }
        }
        // Only beside all others can it be told whether they still go with these.
        self.let_back(&back, found).await
    }

    /// What a revision was made of, from a ConfigMap that holds it now or from what was kept; none if that is gone.
    pub(super) async fn package_of(
        &self,
        revision: &Revision,
        found: &[Found],
    ) -> Result<Option<Arc<Package>>, StepError> {
        match held_now(revision, found) {
            Some(package) => Ok(Some(Arc::clone(package))),
            None => Ok(self.store.load(revision).await?.map(Arc::new)),
        }
    }

    /// Loads one revision. One that cannot be loaded says why: it does not serve, or is stood in for if it did. One that was
    /// not loaded before has yet to be let back.
    pub(super) async fn reload(&mut self, revision: &Revision, found: &[Found]) -> Result<Loaded, StepError> {
        let name = revision.metadata.name.clone().unwrap_or_default();
        if self.roster.entries.get(&name).is_some_and(|entry| entry.content.is_loaded()) {
            return Ok(Loaded::Serves);
        }
        let serves = revision.status.as_ref().is_some_and(|status| status.state == RevisionState::Active);
        let Some(mut package) = self.package_of(revision, found).await? else {
            let lost = "what was kept of it is gone or was changed";
            if serves {
                self.withhold(revision, found, &format!("BytesLost: {lost}"), true).await;
                return Ok(Loaded::Withheld);
            }
            // Where it came from, it may still be.
            let may_come = found.iter().any(|found| found.source == revision.spec.source && found.held.is_none());
            let turn = if may_come {
                Turn::new(RevisionState::Pending, "BytesLost", format!("{lost}, and its ConfigMap was not read yet"))
            } else {
                Turn::new(RevisionState::Refused, "BytesLost", format!("{lost}: apply its ConfigMap again"))
            };
            self.enter_or_owe(&name, turn, |_| {}).await;
            return Ok(Loaded::Never);
        };
        if package.namespace != revision.spec.source.namespace {
            Arc::make_mut(&mut package).namespace.clone_from(&revision.spec.source.namespace);
        }
        if revision.status.as_ref().is_some_and(|status| status.state.is_let_in()) {
            // It may be that only its ConfigMap holds it, or that what is kept is on its way out.
            self.keep_soon(name.clone(), Arc::clone(&package));
        }
        let content = match self.reach(&package) {
            Ok(reach) => self.content(&name, &package).await.map(|content| (reach, content)),
            Err(refused) => Err(refused),
        };
        match content {
            // Settings for a policy that there is not change nothing.
            Err(NotAdmitted { turn, again: false }) if serves && turn.reason != NO_SUCH_POLICY => {
                self.withhold(revision, found, &format!("{}: {}", turn.reason, turn.message), false).await;
                Ok(Loaded::Withheld)
            }
            Err(NotAdmitted { turn, again: false }) => {
                self.enter_or_owe(&name, turn, |_| {}).await;
                Ok(Loaded::Never)
            }
            Err(NotAdmitted { turn, again: true }) => {
                let what = format!("load PolicyRevision {name}");
                Ok(Loaded::NotYet(StepError { what, message: turn.message, is_answered: true }))
            }
            Ok((reach, content)) => {
                let status = revision.status.clone().unwrap_or_default();
                let entry = Entry {
                    source: revision.spec.source.clone(),
                    age: age_of(revision, found),
                    reach,
                    pinned: package.file.scope.pinned,
                    content,
                    on_refusal: package.file.on_refusal,
                    since: parsed(status.since.as_deref()),
                    predecessor: status.predecessor,
                };
                self.roster.entries.insert(name, entry);
                Ok(Loaded::Serves)
            }
        }
    }
}

/// The package that a revision was made of, if a ConfigMap holds it now.
pub(super) fn held_now<'a>(revision: &Revision, found: &'a [Found]) -> Option<&'a Arc<Package>> {
    let mut held = found.iter().filter_map(|found| found.held.as_ref());
    held.find(|held| held.digest.to_string() == revision.spec.package_digest)?.package.as_ref().ok()
}

/// How old what a revision brings is, beside the ConfigMap that it came from, if that is there.
pub(super) fn age_of(revision: &Revision, found: &[Found]) -> Age {
    let source = found.iter().find(|found| found.source == revision.spec.source);
    installed::age_of(revision, source.map(|found| found.age.created.clone()))
}
