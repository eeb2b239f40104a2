//! Computes the effects of candidates in the background, before the candidates serve.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::future::BoxFuture;
use kaos_crds::PolicyPreview;
use kaos_policy::digest::Digest;
use serde_json::json;

use super::background::{Background, Stand};
use crate::catalogue::{Replaced, Snapshot};

/// Computes the effect of a proposal on the objects of the cluster.
pub(crate) trait Previewer: Send + Sync {
    /// Computes an effect, without a write to the cluster.
    fn preview(&self, proposal: Proposal) -> BoxFuture<'static, EffectOfProposal>;
}

/// The policies before and after a candidate starts to serve.
pub(crate) struct Proposal {
    pub(crate) before: Arc<Snapshot>,
    pub(crate) after: Arc<Snapshot>,
    /// The paths that must not change.
    pub(crate) frozen: Vec<String>,
    /// The revision that the candidate replaces.
    pub(crate) replaces: Option<String>,
    /// The other revisions that would start to serve together with the candidate.
    pub(crate) together: Vec<String>,
    /// The digest of the candidates and of the policies that they replace.
    pub(crate) basis: String,
}

/// The effect of a proposal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EffectOfProposal {
    pub(crate) preview: PolicyPreview,
    /// The paths of `frozen` at which children change, each with the number of objects whose children change there.
    pub(crate) frozen_changes: Vec<(String, u64)>,
}

/// The facts on which an effect depends: the candidates, the policies that they replace, and the paths that must not
/// change. If these facts change, the operator must compute the effect again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Basis {
    pub(super) replaced: Vec<Replaced>,
    pub(super) candidates: Vec<String>,
    pub(super) frozen: Vec<String>,
}

impl Basis {
    /// Returns the digest of the basis, which ignores the frozen paths. Processes of the same version compute the same
    /// digest.
    pub(super) fn digest(&self) -> String {
        let replaced: Vec<_> = self.replaced.iter().map(Replaced::identity).collect();
        Digest::of_json(&json!([replaced, self.candidates])).to_string()
    }
}

/// The previews that run or ended.
pub(super) struct Previews {
    previewer: Arc<dyn Previewer>,
    background: Background<EffectOfProposal>,
    known: BTreeMap<String, LastPreview>,
}

/// The last preview of a revision.
struct LastPreview {
    basis: Basis,
    effect: Option<EffectOfProposal>,
    /// The number of previews of the revision so far.
    begun: usize,
}

impl Previews {
    /// Creates the value, before any preview has started.
    pub(super) fn new(previewer: Arc<dyn Previewer>) -> Self {
        Self { previewer, background: Background::new(), known: BTreeMap::new() }
    }

    /// Waits until a preview ends.
    pub(super) async fn changed(&self) {
        self.background.changed().await;
    }

    /// Returns the progress of the preview of a revision.
    pub(super) fn stand(&self, revision: &str) -> Stand {
        self.background.stand(revision)
    }

    /// Starts a preview. Ends an earlier preview of the same revision.
    pub(super) fn begin(&mut self, revision: &str, basis: Basis, proposal: Proposal) {
        let begun = self.begun(revision) + 1;
        self.known.insert(revision.to_owned(), LastPreview { basis, effect: None, begun });
        self.background.begin(revision, self.previewer.preview(proposal));
    }

    /// Stores the result of a preview that ended.
    pub(super) async fn take_up(&mut self, revision: &str) {
        if let Some(effect) = self.background.take(revision).await
            && let Some(known) = self.known.get_mut(revision)
        {
            known.effect = Some(effect);
        }
    }

    /// Returns the effect of a revision on this basis. Returns `None` if this effect was not computed.
    pub(super) fn effect(&self, revision: &str, basis: &Basis) -> Option<&EffectOfProposal> {
        self.known.get(revision).filter(|known| known.basis == *basis)?.effect.as_ref()
    }

    /// Returns the last effect of a revision, even if the basis has changed.
    pub(super) fn last(&self, revision: &str) -> Option<&PolicyPreview> {
        self.known.get(revision)?.effect.as_ref().map(|effect| &effect.preview)
    }

    /// Returns the number of previews of a revision on different bases.
    pub(super) fn begun(&self, revision: &str) -> usize {
        self.known.get(revision).map_or(0, |known| known.begun)
    }

    /// Forgets a revision.
    pub(super) fn forget(&mut self, revision: &str) {
        self.keep(|it| it != revision);
    }

    /// Ends and forgets the previews of revisions that are no longer wanted.
    pub(super) fn keep(&mut self, is_wanted: impl Fn(&str) -> bool) {
        self.background.keep(&is_wanted);
        self.known.retain(|revision, _| is_wanted(revision));
    }
}
