//! The admitted revisions, and the policy table that follows from them: which policy answers for which place.

mod claims;
mod stages;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use kaos_crds::PolicySource;
use kaos_policy::{
    code::World, contract::ResourceType, manifest::OnRefusal, policy::Policy, rollout::Rollout, settings::Layer,
};
use serde_json::Value;

pub(crate) use self::{
    claims::age_of,
    stages::{moved_by, moved_objects},
};
pub(crate) use super::unfit::Unfit;
use super::{
    pace::{BACKOFF, LOAD_BACKOFF},
    unfit::{drop_unfit_predecessors, fit},
};
use crate::{
    backoff::Backoff,
    catalogue::{Age, Arranged, Conflict, Given, Member, Missed, MovedObjects, Offer, Reach, Tuning, Without, arrange},
};

/// The maximum number of revisions in a chain of predecessors.
pub(super) const BACK: usize = 3;

/// An admitted revision.
#[derive(Debug, Clone)]
pub(crate) struct AdmittedRevision {
    pub(crate) source: PolicySource,
    pub(crate) age: Age,
    pub(crate) reach: Reach,
    pub(crate) pinned: bool,
    pub(crate) content: Content,
    /// The behaviour of the operator if the policy refuses an object.
    pub(crate) on_refusal: OnRefusal,
    /// The package's own limits for its effect, and the steps in which the package starts to serve.
    pub(crate) rollout: Rollout,
    /// The objects that the revision's rollout has moved. `None` if the revision serves all objects.
    pub(crate) stage: Option<MovedObjects>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) predecessor: Option<String>,
}

#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// A policy with its settings.
    Policy(Arc<Policy>, Value),
    /// Settings for the policy of this name.
    Settings(String, Value),
    /// An admitted policy that could not be loaded yet: its name, the kinds that it answers for, and the number of
    /// failed attempts.
    Unloaded(String, Vec<ResourceType>, u32),
    /// A lost revision: an admitted revision that cannot be loaded any more. The predecessor replaces the lost
    /// revision. The fields of this variant come from the PolicyRevision.
    Lost {
        /// The name of the policy. For settings, the policy to which the settings apply.
        policy: String,
        /// The kinds that the revision answered for. Empty for settings.
        kinds: Vec<ResourceType>,
        /// The reason why the operator cannot load the revision.
        why: String,
        /// Whether the bytes of the revision are missing. The bytes can come back.
        bytes_are_gone: bool,
        /// The number of failed attempts to load the revision.
        failures: u32,
    },
}

/// All admitted revisions, and the policies that the process loaded at startup.
pub(crate) struct RevisionSet {
    pub(crate) own: Vec<Offer>,
    pub(crate) entries: BTreeMap<String, AdmittedRevision>,
}

impl Content {
    /// Returns the kinds that the revision answers for. Settings have no kinds.
    pub(super) fn kinds(&self) -> Vec<String> {
        match self {
            Self::Policy(policy, _) => {
                policy.descriptor().claims.iter().map(|claim| claim.primary.to_string()).collect()
            }
            Self::Unloaded(_, kinds, _) | Self::Lost { kinds, .. } => kinds.iter().map(ToString::to_string).collect(),
            Self::Settings(..) => Vec::new(),
        }
    }

    /// Returns the policy of the revision, or `None` if the policy is not loaded.
    pub(super) fn policy(&self) -> Option<&Arc<Policy>> {
        if let Self::Policy(policy, _) = self { Some(policy) } else { None }
    }

    /// Returns the name of the revision's policy. For settings, returns the policy to which the settings apply.
    pub(super) fn policy_name(&self) -> &str {
        match self {
            Self::Policy(policy, _) => &policy.id().name,
            Self::Settings(policy, _) | Self::Unloaded(policy, ..) | Self::Lost { policy, .. } => policy,
        }
    }

    /// Returns the gate's remarks for the author of the policy.
    pub(super) fn remarks(&self) -> &[String] {
        self.policy().map_or(&[], |policy| policy.remarks())
    }

    /// Returns whether the revision can answer.
    pub(super) fn is_loaded(&self) -> bool {
        matches!(self, Self::Policy(..) | Self::Settings(..))
    }

    /// Counts another failed attempt to load the revision. Returns the delay before the next attempt; `None` if the
    /// revision is loaded.
    pub(super) fn failed_again(&mut self) -> Option<Duration> {
        let (failures, backoff) = match self {
            Self::Unloaded(.., failures) => (failures, LOAD_BACKOFF),
            Self::Lost { failures, .. } => (failures, Backoff { first: BACKOFF.first, ..LOAD_BACKOFF }),
            Self::Policy(..) | Self::Settings(..) => return None,
        };
        *failures = failures.saturating_add(1);
        Some(backoff.full(*failures))
    }

    /// Returns whether the revision cannot be loaded any more.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }
}

impl AdmittedRevision {
    /// Returns whether the revision comes from a tenant's namespace.
    pub(super) fn is_local(&self) -> bool {
        matches!(self.reach, Reach::Own(_))
    }

    pub(super) fn layer(&self, policy: &str, tree: &Value) -> Layer {
        let PolicySource { namespace, config_map } = &self.source;
        Layer::tree(self.reach.origin(namespace, config_map), policy, tree.clone())
    }
}

impl RevisionSet {
    /// Restores the previous entry of this name. Removes the current entry if there was no previous entry.
    pub(super) fn put_back(&mut self, name: &str, before: Option<AdmittedRevision>) {
        match before {
            Some(before) => drop(self.entries.insert(name.to_owned(), before)),
            None => drop(self.entries.remove(name)),
        }
    }

    /// Computes the policy table that applies if the revisions in `serving` serve. `shared` are the settings for the
    /// whole cluster.
    pub(crate) fn arrange(&self, serving: &BTreeSet<String>, shared: &[Layer]) -> Result<Arranged, Unfit> {
        self.arrange_with(None, serving, shared)
    }

    /// Computes the policy table as [`arrange`](Self::arrange) does, while the revision `candidate` is about to be
    /// admitted. If a tenant's revision cannot serve together with the other revisions, the tenant's revision does not
    /// serve, because a tenant must not affect the whole cluster. A predecessor replaces a lost revision only if the
    /// predecessor can serve together with all other revisions.
    pub(crate) fn arrange_with(
        &self,
        candidate: Option<&str>,
        serving: &BTreeSet<String>,
        shared: &[Layer],
    ) -> Result<Arranged, Unfit> {
        let mut arranged = self.arrange_one(candidate, serving, shared)?;
        arranged.staging = self.staging(candidate, serving, &arranged.conflicts, shared)?;
        Ok(arranged)
    }

    /// Computes one policy table, without regard to rollouts.
    fn arrange_one(
        &self,
        candidate: Option<&str>,
        serving: &BTreeSet<String>,
        shared: &[Layer],
    ) -> Result<Arranged, Unfit> {
        let mut left = serving.clone();
        let mut gave_way: BTreeMap<Arc<str>, Conflict> = BTreeMap::new();
        // The lost revisions that no predecessor replaces, because their predecessors cannot serve together with the
        // other revisions.
        let mut bare: BTreeSet<String> = BTreeSet::new();
        loop {
            let mut arranged = self.arrange_all(&left, &bare, shared);
            drop_unfit_predecessors(&mut arranged.answers, &left);
            let Err(unfit) = fit(&arranged.answers) else {
                arranged.conflicts.extend(gave_way);
                return Ok(arranged);
            };
            // If tenants' revisions are part of the problem, the youngest of them does not serve. If the candidate is
            // one of them, the operator refuses the candidate instead.
            if unfit.local.iter().any(|local| candidate == Some(&**local)) {
                return Err(unfit);
            }
            let age = |local: &&Arc<str>| self.entries.get(&***local).map(|entry| &entry.age);
            let youngest = unfit.local.iter().max_by_key(age);
            if let Some(local) = youngest.filter(|local| left.remove(&***local)) {
                let message = format!(
                    "the package does not fit the policies and settings that apply in the same namespaces: {}",
                    unfit.message
                );
                gave_way.insert(Arc::clone(local), Conflict { reason: unfit.reason, message });
                continue;
            }
            // The only other possible cause is the predecessor of a lost revision: the operator admitted it under
            // earlier settings, and it may not fit the current settings.
            let blamed: Vec<String> = match youngest {
                Some(local) => self.stood_in_for(&left, &bare, |revision| revision == local),
                None => self.stood_in_for(&left, &bare, |revision| unfit.concerned.contains(revision)),
            };
            if blamed.is_empty() {
                return Err(unfit);
            }
            bare.extend(blamed);
            // Try all tenants' revisions again: some of them may fit now, without the removed predecessors.
            left.clone_from(serving);
            gave_way.clear();
        }
    }

    /// Returns the lost revisions that a predecessor replaces, if the function `is_one` returns true for one of their
    /// predecessors.
    fn stood_in_for(
        &self,
        serving: &BTreeSet<String>,
        bare: &BTreeSet<String>,
        is_one: impl Fn(&Arc<str>) -> bool,
    ) -> Vec<String> {
        let stands_in = |name: &&String| {
            let is_lost = self.entries.get(*name).is_some_and(|entry| entry.content.is_lost());
            let is_member =
                || self.member(name, 0).is_some_and(|it| it.line().any(|it| it.revision.iter().any(&is_one)));
            let is_tuning = || self.tuning(name, 0).is_some_and(|tuning| is_one(&tuning.revision));
            is_lost && (is_member() || is_tuning())
        };
        serving.iter().filter(|name| !bare.contains(*name)).filter(stands_in).cloned().collect()
    }

    pub(super) fn arrange_all(
        &self,
        serving: &BTreeSet<String>,
        bare: &BTreeSet<String>,
        shared: &[Layer],
    ) -> Arranged {
        let (mut offers, mut given): (Vec<Offer>, Vec<Given>) = (Vec::new(), Vec::new());
        for (name, entry) in serving.iter().filter_map(|name| self.entries.get_key_value(name)) {
            // The predecessor of a lost revision answers only in the place of that revision. If the predecessor already
            // serves in a place of its own, it does not get the place of the lost revision.
            let is_lost = entry.content.is_lost();
            let answers = |revision: &str| !is_lost || (!bare.contains(name) && !serving.contains(revision));
            let is_its_own = |offer: &Offer| match &entry.content {
                Content::Lost { kinds, .. } => kinds.contains(&offer.of),
                _ => true,
            };
            let member = self.member(name, 0).filter(|it| it.revision.as_deref().is_some_and(answers));
            let offered = member.iter().flat_map(|it| Offer::of_member(it, &entry.reach, entry.pinned, &entry.age));
            offers.extend(offered.filter(is_its_own));
            let tuning = self.tuning(name, 0).filter(|it| answers(&it.revision));
            given.extend(tuning.map(|tuning| Given { tuning, reach: entry.reach.clone(), age: entry.age.clone() }));
        }
        offers.extend(self.own_beside(&offers));
        let mut arranged = arrange(&offers, &given, &self.missed(serving), shared);
        for (_, entry) in self.unloaded(serving).filter(|(_, entry)| !entry.pinned) {
            let Content::Unloaded(_, kinds, _) = &entry.content else { continue };
            for of in kinds {
                // Until this policy is loaded, no policy may act on its objects, not even its predecessor.
                let Some(answers) = arranged.answers.get_mut(of) else { continue };
                for namespace in entry.reach.places() {
                    answers.withhold(namespace);
                }
            }
        }
        arranged
    }

    /// Returns the serving revisions that could not be loaded yet.
    pub(super) fn unloaded<'a>(
        &'a self,
        serving: &'a BTreeSet<String>,
    ) -> impl Iterator<Item = (&'a String, &'a AdmittedRevision)> {
        let entries = serving.iter().filter_map(move |name| self.entries.get_key_value(name));
        entries.filter(|(_, entry)| matches!(entry.content, Content::Unloaded(..)))
    }

    /// Returns the serving revisions that cannot be loaded any more.
    fn missed(&self, serving: &BTreeSet<String>) -> Vec<Missed> {
        let entries = serving.iter().filter_map(|name| self.entries.get_key_value(name));
        let missed = |(name, entry): (&String, &AdmittedRevision)| {
            let Content::Lost { policy, kinds, why, .. } = &entry.content else { return None };
            Some(Missed {
                without: Without { revision: name.as_str().into(), how: why.clone(), counts: false, is_lost: true },
                policy: policy.clone(),
                kinds: kinds.clone(),
                reach: entry.reach.clone(),
                pinned: entry.pinned,
            })
        };
        entries.filter_map(missed).collect()
    }

    /// Returns the conflict of a policy with an older, lost revision that still has the place. Returns `None` without
    /// such a revision. The PolicyRevision of a lost revision does not say whether the revision is an overlay. The
    /// operator assumes an overlay only if the predecessor is an overlay.
    pub(super) fn kept_out(&self, entry: &AdmittedRevision, serving: &BTreeSet<String>) -> Option<Conflict> {
        let is_overlay = |policy: &Policy| policy.world() == World::Overlay;
        let Content::Policy(policy, _) = &entry.content else { return None };
        if entry.pinned || is_overlay(policy) {
            return None;
        }
        let holds = |name: &&String| {
            let Some(older) = self.entries.get(*name) else { return false };
            let Content::Lost { kinds, .. } = &older.content else { return false };
            !older.pinned
                && older.age < entry.age
                && older.source != entry.source
                && older.reach.meets(&entry.reach)
                && policy.descriptor().claims.iter().any(|claim| kinds.contains(&claim.primary))
                && self.member(name, 0).is_none_or(|member| !is_overlay(&member.policy))
        };
        serving.iter().find(holds).map(|older| {
            Conflict::over_place(format!(
                "{older} already claims the same kind in the same namespaces, and keeps its place although the \
                 operator can no longer load {older}: delete one of the two packages, or give them different scopes"
            ))
        })
    }

    /// Returns whether another revision of a tenant's namespace could not be loaded yet. Until that revision is loaded,
    /// the operator cannot decide which revisions serve in the namespace.
    pub(super) fn is_open(&self, name: &str, serving: &BTreeSet<String>) -> bool {
        let Some(entry) = self.entries.get(name) else { return false };
        matches!(entry.reach, Reach::Own(_)) && self.unloaded(serving).any(|(_, other)| other.reach == entry.reach)
    }

    fn member(&self, name: &str, back: usize) -> Option<Arc<Member>> {
        let entry = self.entries.get(name).filter(|_| back < BACK)?;
        let predecessor = entry.predecessor.as_ref().and_then(|before| self.member(before, back + 1));
        let (policy, settings) = match &entry.content {
            Content::Policy(policy, settings) => (policy, settings),
            Content::Lost { .. } => return predecessor,
            Content::Settings(..) | Content::Unloaded(..) => return None,
        };
        let settings = Some(settings).filter(|settings| !settings.is_null());
        Some(Arc::new(Member {
            policy: Arc::clone(policy),
            settings: settings.map(|settings| entry.layer(&policy.id().name, settings)).into_iter().collect(),
            revision: Some(name.into()),
            on_refusal: entry.on_refusal,
            is_local: matches!(entry.reach, Reach::Own(_)),
            since: entry.since,
            predecessor,
        }))
    }

    fn tuning(&self, name: &str, back: usize) -> Option<Arc<Tuning>> {
        let entry = self.entries.get(name).filter(|_| back < BACK)?;
        let predecessor = entry.predecessor.as_ref().and_then(|before| self.tuning(before, back + 1));
        let (policy, tree) = match &entry.content {
            Content::Settings(policy, tree) => (policy, tree),
            Content::Lost { .. } => return predecessor,
            Content::Policy(..) | Content::Unloaded(..) => return None,
        };
        Some(Arc::new(Tuning {
            layer: entry.layer(policy, tree),
            revision: name.into(),
            on_refusal: entry.on_refusal,
            since: entry.since,
            predecessor,
        }))
    }

    /// Returns the kinds that loaded policies of this name claim.
    pub(super) fn claimed_by(&self, name: &str) -> BTreeSet<&ResourceType> {
        let own = self.own.iter().map(|offer| &offer.member.policy);
        let all = own.chain(self.entries.values().filter_map(|entry| entry.content.policy()));
        let claims = all.filter(|policy| policy.id().name == name).flat_map(|policy| &policy.descriptor().claims);
        claims.map(|claim| &claim.primary).collect()
    }

    /// Returns whether a policy of this name answers, or could answer when it is loaded.
    pub(super) fn knows_policy(&self, name: &str) -> bool {
        let own = self.own.iter().any(|offer| offer.member.policy.id().name == name);
        let is_it = |entry: &AdmittedRevision| match &entry.content {
            Content::Policy(policy, _) => policy.id().name == name,
            Content::Unloaded(policy, ..) => policy == name,
            Content::Lost { policy, kinds, .. } => !kinds.is_empty() && policy == name,
            Content::Settings(..) => false,
        };
        own || self.entries.values().any(is_it)
    }
}
