//! Holds a package that is another build of a quarantined package. A compiler may produce different bytes from the same
//! source. So the operator compares the digests of the answers (`status.answersDigest`). A corrected build can have the
//! same digest, because samples do not show every mistake. So the operator does not refuse the package, and a person
//! can let it serve.

use kaos_crds::RevisionState;

use super::{Lifecycle, Transition, not_admitted::NotAdmitted};
use crate::catalogue::installed::{
    is_default,
    records::Revision,
    revision_set::{AdmittedRevision, Content},
};

/// The status reason of a package that answers its samples like a quarantined package.
pub(super) const ANSWERS_LIKE_QUARANTINED: &str = "AnswersLikeQuarantined";

impl Lifecycle {
    /// Returns the revision, or an error if the revision has to wait for a person because it is a rebuild.
    pub(super) fn unless_rebuild(
        &mut self,
        name: &str,
        entry: AdmittedRevision,
    ) -> Result<AdmittedRevision, NotAdmitted> {
        let Some(held) = self.rebuild(name, &entry.content) else { return Ok(entry) };
        // Rights can change while the package waits.
        self.permitted.remove(name);
        Err(held)
    }

    /// Returns why a checked package waits for a person: it is probably another build of a quarantined package. Returns
    /// `None` if the package served before, or if a person requested an attempt or approved the package.
    fn rebuild(&self, name: &str, content: &Content) -> Option<NotAdmitted> {
        let digest = answers_of(content)?;
        let status = self.records.status(name);
        if status.claimed.is_some() || self.asked(name).is_some() || self.approval(name).is_some() {
            return None;
        }
        let twin = self.quarantined_with(name, &digest)?;
        let why = self.records.status(twin).message.unwrap_or_default();
        let message = format!(
            "for its samples, this build gives the same answers as {twin}, which is in quarantine ({why}). If the \
             build corrects the failure, give the policy another version, or request an attempt: {}",
            self.remedy(name)
        );
        let transition = Transition::new(RevisionState::Held, ANSWERS_LIKE_QUARANTINED, message);
        Some(NotAdmitted { transition, again: false })
    }

    /// Returns whether a revision waits as a rebuild although no quarantined revision has the same answers any more.
    pub(super) fn is_no_rebuild(&self, name: &str) -> bool {
        let status = self.records.status(name);
        let is_like = |digest: &String| self.quarantined_with(name, digest).is_some();
        status.reason.as_deref() == Some(ANSWERS_LIKE_QUARANTINED) && !status.answers_digest.iter().any(is_like)
    }

    /// Returns the quarantined revision of the same namespace and scope with this digest of its answers.
    fn quarantined_with(&self, name: &str, digest: &str) -> Option<&String> {
        let spec = &self.records.get(name)?.spec;
        let is_it = |(other, revision): &(&String, &Revision)| {
            *other != name
                && revision.spec.scope == spec.scope
                && revision.spec.source.namespace == spec.source.namespace
                && is_default(&revision.spec.source) == is_default(&spec.source)
                && revision.status.as_ref().is_some_and(|status| {
                    status.state == RevisionState::Quarantined && status.answers_digest.as_deref() == Some(digest)
                })
        };
        self.records.all().iter().find(is_it).map(|(other, _)| other)
    }
}

/// Returns the digest of the answers of a checked policy, as a status contains it.
pub(super) fn answers_of(content: &Content) -> Option<String> {
    content.policy()?.answers().map(|digest| digest.to_string())
}
