//! Decides when the operator tries a refused or waiting package again: when policies or settings changed, so that the
//! reason for the refusal or the wait may be gone.

use std::collections::BTreeSet;

use kaos_crds::{PolicyRevisionStatus, PolicySource, RevisionState};

use super::{
    Found, Held, Lifecycle, Transition,
    not_admitted::{NO_SUCH_POLICY, NotAdmitted},
};
use crate::{
    catalogue::installed::cases::{BAD_SETTINGS, SETTINGS_DO_NOT_FIT},
    package::Package,
};

/// The status reason of settings that wait for another version of their policy.
const AWAITS_POLICY: &str = "AwaitsPolicy";

impl Lifecycle {
    /// Returns whether the reason for which a package was refused or held may be gone.
    pub(super) fn is_overtaken(
        &mut self,
        name: &str,
        held: &Held,
        status: &PolicyRevisionStatus,
        found: &[Found],
    ) -> bool {
        let (Ok(package), Some(reason)) = (&held.package, status.reason.as_deref()) else { return false };
        if status.state == RevisionState::Held {
            return self.is_released(name, package);
        }
        let named = package.file.name.as_deref();
        if reason == NO_SUCH_POLICY {
            return named.is_some_and(|name| self.revisions.knows_policy(name));
        }
        if status.state != RevisionState::Refused || !depends_on_others(package, reason) {
            return false;
        }
        let now = self.counterparts(package, named.or(status.policy.as_deref()), found);
        // At the start of a process, keep the refusals of the previous process.
        *self.refused_under.entry(name.to_owned()).or_insert_with(|| now.clone()) != now
    }

    /// Remembers the policies and settings on which a refusal depends.
    pub(super) fn remember_refusal(
        &mut self,
        name: &str,
        Transition { to, reason, .. }: &Transition,
        package: &Package,
        policy: Option<&str>,
        found: &[Found],
    ) {
        if *to == RevisionState::Refused && depends_on_others(package, reason) {
            let now = self.counterparts(package, package.file.name.as_deref().or(policy), found);
            self.refused_under.insert(name.to_owned(), now);
        }
    }

    /// Returns the revisions that can cause a package's refusal. For settings, returns the serving policies to which
    /// the settings apply. For a policy, returns the packages with settings for this policy, including packages that do
    /// not serve yet. Leaves out packages of other tenants. For a package of the owner, leaves out the packages of all
    /// tenants, so that a tenant cannot cause checks of the owner's packages.
    fn counterparts(&self, package: &Package, policy: Option<&str>, found: &[Found]) -> BTreeSet<String> {
        let Some(policy) = policy else { return BTreeSet::new() };
        if package.component.is_some() {
            let is_for = |found: &&Found| found.package().is_some_and(|package| package.is_settings_for(policy));
            let in_reach = found.iter().filter(|found| self.is_in_reach(&found.source, &package.namespace));
            return in_reach.filter(is_for).filter_map(|found| self.name_of(found)).collect();
        }
        let is_it = |name: &String| {
            let entry = self.revisions.entries.get(name);
            let entry = entry.filter(|entry| self.is_in_reach(&entry.source, &package.namespace));
            entry.and_then(|entry| entry.content.policy()).is_some_and(|it| it.id().name == policy)
        };
        self.facts().serving().into_iter().filter(is_it).collect()
    }

    /// Lets refused settings wait instead if the operator checks another version of their policy, because the settings
    /// may fit this version.
    pub(super) fn or_waits(
        &self,
        not_admitted: NotAdmitted,
        package: &Package,
        settings: &Found,
        found: &[Found],
    ) -> NotAdmitted {
        let Transition { to, reason, message } = &not_admitted.transition;
        let is_misfit = *to == RevisionState::Refused && depends_on_others(package, reason);
        if !is_misfit || !self.awaits_policy(package, settings, found) {
            return not_admitted;
        }
        let message = format!(
            "{message}; these settings may fit another version of the policy, which the operator has not accepted yet"
        );
        NotAdmitted::pending(AWAITS_POLICY, message)
    }

    /// Returns whether settings waited for another version of their policy, and no longer have to wait.
    pub(super) fn has_awaited(&self, held: &Held, status: &PolicyRevisionStatus, at: &Found, found: &[Found]) -> bool {
        let awaits = status.state == RevisionState::Pending && status.reason.as_deref() == Some(AWAITS_POLICY);
        awaits && held.package.as_ref().is_ok_and(|package| !self.awaits_policy(package, at, found))
    }

    /// Returns whether another version of the policy for these settings is being checked, or waits for its check or an
    /// approval. A tenant's packages do not delay settings of other namespaces.
    fn awaits_policy(&self, package: &Package, settings: &Found, found: &[Found]) -> bool {
        let Some(policy) = package.file.name.as_deref().filter(|_| package.component.is_none()) else { return false };
        let mut in_reach = found.iter().filter(|found| self.is_in_reach(&found.source, &settings.source.namespace));
        in_reach.any(|found| {
            let (Some(package), Some(name)) = (found.package(), self.name_of(found)) else { return false };
            let status = self.records.status(&name);
            let named = package.file.name.as_deref().or(status.policy.as_deref());
            package.component.is_some()
                && matches!(
                    status.state,
                    RevisionState::Pending | RevisionState::Checking | RevisionState::Previewing | RevisionState::Held
                )
                && named.is_none_or(|named| named == policy)
        })
    }

    /// Returns whether a package can apply to objects of `namespace`: the package is in this namespace or in the
    /// operator's namespace.
    pub(super) fn is_in_reach(&self, source: &PolicySource, namespace: &str) -> bool {
        source.namespace == self.tools.duties.operator_namespace || source.namespace == namespace
    }
}

/// Returns whether the reason for refusing a package depends on other packages.
fn depends_on_others(package: &Package, reason: &str) -> bool {
    reason == if package.component.is_some() { SETTINGS_DO_NOT_FIT } else { BAD_SETTINGS }
}
