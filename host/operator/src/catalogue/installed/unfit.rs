//! Checks whether revisions can serve together.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use kaos_policy::{
    contract::{Cluster, ResourceType},
    describe::emitted_primary,
    render::Renderer,
};

use crate::catalogue::{Answers, Kind};

/// The error for revisions that cannot serve together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub(crate) struct Unfit {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// The tenants' revisions that are part of the problem.
    pub(super) local: Vec<Arc<str>>,
    /// All revisions that are part of the problem.
    pub(super) concerned: BTreeSet<Arc<str>>,
    /// The revisions whose rollouts must end before the problem is gone, because only the policies that these rollouts
    /// replace cause the problem. The list is empty if the revisions cannot serve together even after the end of the
    /// rollouts.
    pub(super) before: Vec<Arc<str>>,
}

impl Unfit {
    /// Returns the error for settings of the whole cluster that do not fit the policies.
    pub(super) fn of_settings(message: String) -> Self {
        Self { reason: "BadSettings", message, local: Vec::new(), concerned: BTreeSet::new(), before: Vec::new() }
    }
}

/// Removes predecessors that do not fit the current settings, so that no object can pin them. `serving` contains the
/// serving revisions.
pub(super) fn drop_unfit_predecessors(answers: &mut BTreeMap<ResourceType, Answers>, serving: &BTreeSet<String>) {
    let serves = |kind: &Kind| {
        let base = kind.members().first().and_then(|base| base.revision.as_deref());
        base.is_none_or(|base| serving.contains(base))
    };
    for of in answers.values_mut() {
        of.keep_pinned(|kind| serves(kind) || kind.fits());
    }
}

/// Checks that the policies in a policy table can serve together. The settings must fit their schemas, and no policy
/// must emit a kind that another policy answers for.
pub(super) fn fit(answers: &BTreeMap<ResourceType, Answers>) -> Result<(), Unfit> {
    for of in answers.values() {
        for kind in of.all() {
            if let Err(errors) = Renderer::new(kind.stack(), kind.layers(), Cluster::default()) {
                let local = kind.local_revision().map(Arc::clone).into_iter().collect();
                let concerned = kind.revisions().map(Arc::clone).collect();
                return Err(Unfit {
                    reason: "BadSettings",
                    message: errors.to_string(),
                    local,
                    concerned,
                    before: Vec::new(),
                });
            }
        }
    }
    let kinds = || answers.values().flat_map(Answers::all);
    let claims: Vec<_> = kinds().flat_map(|kind| kind.claims()).collect();
    let Some((claim, of)) = emitted_primary(&claims) else { return Ok(()) };
    // Blame both policies, because either can be a tenant's policy: the policy that emits the kind, and the policy that
    // answers for the kind.
    let answers_for = |kind: &&Arc<Kind>| {
        kind.claims().any(|it| std::ptr::eq(it, claim) || it.primary.group_kind() == of.group_kind())
    };
    let concerned: Vec<_> = kinds().filter(answers_for).collect();
    Err(Unfit {
        reason: "EmitsClaimed",
        message: format!(
            "a policy for {} must not emit {of}, because another policy answers for {of}: remove {of} from `emits` of \
             the first policy, or remove the second policy",
            claim.primary
        ),
        local: concerned.iter().filter_map(|kind| kind.local_revision()).map(Arc::clone).collect(),
        concerned: concerned.iter().flat_map(|kind| kind.revisions()).map(Arc::clone).collect(),
        before: Vec::new(),
    })
}
