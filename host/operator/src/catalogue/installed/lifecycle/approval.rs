//! Reads approvals, and decides when the operator looks at a held revision again.

use std::collections::BTreeSet;

use kaos_crds::{PolicyApproval, PolicyRevisionStatus, RevisionState};

use super::Lifecycle;
use crate::{
    catalogue::{
        PLACE_TAKEN,
        installed::records::{APPROVED_BY, APPROVED_FOR},
    },
    package::Package,
    timestamps::written,
};

impl Lifecycle {
    /// Returns the approval of a revision by a person, or `None` without an approval. The annotation with the approval
    /// stays in the PolicyRevision when the revision serves, and when another revision replaces it. So the annotation
    /// counts only for the hold for which the person wrote it.
    pub(super) fn approval(&self, name: &str) -> Option<PolicyApproval> {
        let status = self.records.status(name);
        if status.approved.is_some() {
            return status.approved;
        }
        let annotations = self.records.get(name)?.metadata.annotations.as_ref()?;
        let by = approver(&status, annotations.get(APPROVED_BY)?, annotations.get(APPROVED_FOR)?)?;
        Some(PolicyApproval { by, at: Some(written(self.tools.clock.now())) })
    }

    /// Writes the approval of a held revision into the status, because the revision now leaves the state to which the
    /// approval belongs.
    pub(super) async fn record_approval(&mut self, name: &str) {
        let status = self.records.status(name);
        if status.approved.is_none()
            && let Some(approval) = self.approval(name)
        {
            self.records.write_or_owe(name, PolicyRevisionStatus { approved: Some(approval), ..status }).await;
        }
    }

    /// Returns whether the operator must look at a held revision again, for one of these reasons:
    ///
    /// - a person approved the revision, or a revision that starts to serve together with it
    /// - the limits changed
    /// - another package has the place, and the serving revisions changed
    /// - the revision waits as a rebuild, and no quarantined revision has the same answers any more
    pub(super) fn is_released(&self, name: &str, package: &Package) -> bool {
        let status = self.records.status(name);
        if status.limits_digest != Some(self.limits_digest(&package.file.rollout)) || self.is_no_rebuild(name) {
            return true;
        }
        let now = self.hold_depends_on(name, &status, package);
        match self.refused_under.get(name) {
            Some(then) => *then != now,
            // An earlier process held the revision, so this process does not know on which revisions and approvals the
            // hold depended.
            None => status.reason.as_deref() == Some(PLACE_TAKEN) || !now.is_empty(),
        }
    }

    /// Remembers the approvals and the other revisions on which the hold of a revision depends.
    pub(super) fn remember_hold(&mut self, name: &str, package: &Package) {
        let depends_on = self.hold_depends_on(name, &self.records.status(name), package);
        self.refused_under.insert(name.to_owned(), depends_on);
    }

    /// Returns texts that change when a reason for the hold may be gone. The texts name the approved revisions among
    /// those that start to serve together. If another package has the place, the texts also name the serving revisions
    /// that can apply in the namespace of this package, and say whether their sources were deleted.
    fn hold_depends_on(&self, name: &str, status: &PolicyRevisionStatus, package: &Package) -> BTreeSet<String> {
        let together = status.preview.iter().flat_map(|preview| preview.inputs.together.iter().map(String::as_str));
        let approved = std::iter::once(name).chain(together).filter(|name| self.approval(name).is_some());
        let mut depends_on: BTreeSet<String> = approved.map(|name| format!("approval of {name}")).collect();
        if status.reason.as_deref() == Some(PLACE_TAKEN) {
            let is_rival = |name: &String| {
                let entry = self.revisions.entries.get(name);
                entry.is_some_and(|entry| self.is_in_reach(&entry.source, &package.namespace))
            };
            let rivals = self.facts().serving().into_iter().filter(is_rival);
            depends_on.extend(rivals.map(|name| {
                let is_left = self.without_source.contains(&name);
                if is_left { format!("{name} without a source") } else { name }
            }));
        }
        depends_on
    }
}

/// Returns the name of the person who approved a revision with this status, or `None` if the annotations do not approve
/// its current hold. `hold` is the start of the hold that the person saw.
fn approver(status: &PolicyRevisionStatus, by: &str, hold: &str) -> Option<String> {
    // Ignore an approval while another package has the place: the effect is not known then, so the person cannot have
    // seen it.
    let is_current = status.state == RevisionState::Held
        && status.since.as_deref() == Some(hold.trim())
        && status.reason.as_deref() != Some(PLACE_TAKEN);
    Some(by.trim().to_owned()).filter(|by| is_current && !by.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_annotation_approves_only_the_hold_for_which_it_was_written() {
        let status = |state, since: &str| PolicyRevisionStatus {
            state,
            since: Some(since.to_owned()),
            ..PolicyRevisionStatus::default()
        };
        let held = status(RevisionState::Held, "t2");
        assert_eq!(approver(&held, " alice ", "t2").as_deref(), Some("alice"));
        assert_eq!(approver(&held, "alice", "t1"), None, "the revision was held before");
        assert_eq!(approver(&held, " ", "t2"), None);
        let waits = PolicyRevisionStatus { reason: Some(PLACE_TAKEN.to_owned()), ..held.clone() };
        assert_eq!(approver(&waits, "alice", "t2"), None, "nobody saw an effect");
        assert_eq!(approver(&status(RevisionState::Pending, "t2"), "alice", "t2"), None);
        assert_eq!(approver(&PolicyRevisionStatus { since: None, ..held }, "alice", ""), None);
    }
}
