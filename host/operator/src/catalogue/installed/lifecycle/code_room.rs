//! Makes room for the compiled code of a tenant's policy, or refuses the policy.

use std::collections::BTreeMap;

use kaos_crds::RevisionState;
use kaos_policy::policy::Policy;

use super::{Lifecycle, not_admitted::NotAdmitted};
use crate::catalogue::installed::{
    code_share::{CodeSum, TooMuchCode},
    revision_set::Content,
};

impl Lifecycle {
    /// Refuses a tenant's policy if its compiled code exceeds a limit together with the code of other policies. If
    /// needed, first drops fallbacks of the policy's namespace from memory, the oldest first. The operator loads a
    /// fallback again when the fallback is needed.
    pub(super) fn make_room(&mut self, name: &str, namespace: &str, policy: &Policy) -> Result<(), NotAdmitted> {
        if namespace == self.tools.duties.operator_namespace {
            return Ok(());
        }
        let (share, code, mut others) =
            (self.tools.code_share, policy.code().bytes(), self.code_beside(name, namespace));
        let mut dropped = Vec::new();
        let mut fallbacks = self.fallbacks_of(name, namespace).into_iter();
        while let Err(too_much) = share.admit(namespace, others, code) {
            let Some((fallback, code)) = fallbacks.next() else {
                let message = format!("{too_much}; then run {}", self.remedy(name));
                return Err(NotAdmitted::refused(TooMuchCode::REASON, message));
            };
            others.namespace = others.namespace.saturating_sub(code);
            others.tenants = others.tenants.saturating_sub(code);
            dropped.push(fallback);
        }
        for fallback in dropped {
            tracing::info!(revision = fallback, "unloaded a fallback to make room for compiled code");
            self.revisions.entries.remove(&fallback);
            // Swap again, because other policies answer now, although the same revisions serve.
            self.swap_again();
        }
        Ok(())
    }

    /// Returns the size of the compiled code of tenants' policies in memory, without the code of the revision `name`.
    fn code_beside(&self, name: &str, namespace: &str) -> CodeSum {
        let entries =
            self.revisions.entries.iter().map(|(name, entry)| (name, (&entry.source.namespace, &entry.content)));
        let waiting = self.waiting.iter().filter_map(|(name, content)| {
            let revision = self.records.get(name)?;
            Some((name, (&revision.spec.source.namespace, content)))
        });
        // A revision may be in both maps, `waiting` and `entries`, with the same code. Collect by name, so that this
        // code counts once.
        let all: BTreeMap<&String, (&String, &Content)> = waiting.chain(entries).collect();
        let mut sum = CodeSum::default();
        for (of, content) in all.into_iter().filter(|(other, _)| *other != name).map(|(_, it)| it) {
            let code = content.policy().map_or(0, |policy| policy.code().bytes());
            if *of == self.tools.duties.operator_namespace {
                continue;
            }
            sum.tenants = sum.tenants.saturating_add(code);
            if of == namespace {
                sum.namespace = sum.namespace.saturating_add(code);
            }
        }
        sum
    }

    /// Returns the fallbacks of a namespace that are in memory, the oldest first, with the size of their compiled code
    /// in bytes.
    fn fallbacks_of(&self, name: &str, namespace: &str) -> Vec<(String, usize)> {
        let serving = self.facts().serving();
        let entries = self.revisions.entries.iter();
        let is_fallback = |other: &String| {
            // Keep a revision that yields to a rollout: it still serves the objects that are not moved.
            let yields = self.records.status(other).state == RevisionState::Yielding;
            other != name && !yields && !serving.contains(other) && !self.waiting.contains_key(other)
        };
        let mut found: Vec<_> = entries
            .filter(|(other, entry)| entry.source.namespace == namespace && is_fallback(other))
            .filter_map(|(other, entry)| Some((entry.since, other.clone(), entry.content.policy()?.code().bytes())))
            .collect();
        found.sort();
        found.into_iter().map(|(_, other, code)| (other, code)).collect()
    }
}
