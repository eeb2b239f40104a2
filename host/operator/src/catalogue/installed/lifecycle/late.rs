//! A namespace's own policy that was let in, and that cannot be loaded for now when a process begins: the compiler is
//! killed for want of memory, or gets no processor.

use std::time::Duration;

use kaos_crds::{PolicyRevisionSpec, RevisionState};
use kaos_policy::manifest::OnRefusal;
use tokio::time::Instant;

use super::{
    Found, LOOK_AGAIN, Lifecycle, StepError, Turn,
    restoring::{Loaded, age_of},
};
use crate::{
    catalogue::{
        Reach,
        installed::{
            checks::Stand,
            records::{Revision, kinds_of},
            roster::{Content, Entry},
        },
    },
    moments::parsed,
};

/// Why a revision that serves does not answer now.
pub(crate) const NOT_LOADED: &str = "NotLoaded";

/// How long one that cannot be loaded is left alone at most: a try can take a processor for minutes.
const SELDOM: Duration = Duration::from_hours(1);

impl Lifecycle {
    /// Has nothing answer in the place of a namespace's own policy that cannot be loaded for now, until it is: that holds
    /// nobody else up. What holds for others, too, is waited for.
    pub(super) async fn put_off(
        &mut self,
        revision: &Revision,
        found: &[Found],
        error: StepError,
    ) -> Result<(), StepError> {
        let PolicyRevisionSpec { source, scope, digest, .. } = &revision.spec;
        if source.namespace == self.tools.duties.operator_namespace || digest.is_none() {
            return Err(error);
        }
        let name = revision.metadata.name.clone().unwrap_or_default();
        tracing::warn!(revision = name, %error, "nothing answers in its place until it can be loaded");
        let status = revision.status.clone().unwrap_or_default();
        // One that an older package keeps out holds no place.
        let serves = status.state == RevisionState::Active;
        let kinds = if serves { kinds_of(&status).collect() } else { Vec::new() };
        let entry = Entry {
            source: source.clone(),
            age: age_of(revision, found),
            reach: Reach::Own(source.namespace.clone()),
            pinned: scope.pinned,
            content: Content::Unloaded(status.policy.unwrap_or_default(), kinds, LOOK_AGAIN),
            on_refusal: OnRefusal::default(),
            since: parsed(status.since.as_deref()),
            predecessor: status.predecessor,
        };
        self.roster.entries.insert(name.clone(), entry);
        self.due.insert(name.clone(), Instant::now() + LOOK_AGAIN);
        if serves {
            let message = format!("nothing answers in its place until it can be loaded: {}", error.message);
            self.enter_or_owe(&name, Turn::new(RevisionState::Active, NOT_LOADED, message), |_| {}).await;
        }
        Ok(())
    }

    /// Loads one of those that were put off, or that could not be loaded any more and are wanted back, if it is due. Gives
    /// when the next one is.
    pub(super) async fn load_late(&mut self, found: &[Found]) -> Option<Duration> {
        if let Some((due, name)) = self.next_unloaded(found)
            && due <= Instant::now()
            && let Some(revision) = self.records.get(&name).cloned()
        {
            if !self.is_compiled(&name, &revision, found).await {
                return None;
            }
            self.due.remove(&name);
            self.tried_for.insert(name.clone(), self.asked(&name));
            match self.load_again(&revision, found).await {
                // Another thing answers now, although the same revisions serve.
                Ok(Loaded::Serves | Loaded::Withheld) => self.installed = None,
                Ok(Loaded::Never) => drop(self.roster.entries.remove(&name)),
                Err(error) | Ok(Loaded::NotYet(error)) => {
                    tracing::warn!(revision = name, %error, "it cannot be loaded yet, and is tried again");
                    let entry = self.roster.entries.get_mut(&name);
                    if let Some(wait) = entry.and_then(|entry| entry.content.wait()) {
                        *wait = SELDOM.min(*wait * 2);
                        self.due.insert(name, Instant::now() + *wait);
                    }
                }
            }
        }
        self.next_unloaded(found).map(|(due, _)| due.saturating_duration_since(Instant::now()))
    }

    /// Whether a revision can be loaded at once. A component of another namespace is checked beside everything else first,
    /// which tells when it comes to its end.
    async fn is_compiled(&mut self, name: &str, revision: &Revision, found: &[Found]) -> bool {
        let PolicyRevisionSpec { source, digest, .. } = &revision.spec;
        if source.namespace == self.tools.duties.operator_namespace || digest.is_none() {
            return true;
        }
        match self.checks.stand(name) {
            Stand::Ended => true,
            Stand::UnderWay => false,
            Stand::Open if !self.checks.has_room_for(&source.namespace) => false,
            Stand::Open => match self.package_of(revision, found).await {
                Ok(Some(package)) if package.component.is_some() => {
                    self.checks.begin(name, &source.namespace, package);
                    false
                }
                // Loading it tells why there is nothing to check.
                Ok(_) | Err(_) => true,
            },
        }
    }

    /// Which of those that are to be loaded is due first, and when.
    fn next_unloaded(&self, found: &[Found]) -> Option<(Instant, String)> {
        let serving = self.serving();
        let is_asked_anew = |name: &str| self.is_asked_for(name) && self.tried_for.get(name) != Some(&self.asked(name));
        let due = |name: &String| {
            let due = self.due.get(name).copied().filter(|_| !is_asked_anew(name));
            due.unwrap_or_else(Instant::now)
        };
        let put_off = self.roster.unloaded(&serving).map(|(name, _)| name);
        let wanted = serving.iter().filter(|name| self.is_wanted_back(name, found));
        put_off.chain(wanted).map(|name| (due(name), name.clone())).min()
    }
}
