//! What answers for objects of one kind in one place: a stack of policies, each with what served its place before.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use jiff::Timestamp;
use kaos_policy::{
    contract::{Claim, Cluster, Refusal, ResourceType, Violation},
    manifest::OnRefusal,
    policy::{Policy, PolicyId, Stack},
    render::{Renderer, TOO_LARGE},
    settings::{Layer, SettingsErrors},
};

use super::{Without, made::Made};
use crate::locking::lock;

/// A policy that may answer.
#[derive(Debug, Clone)]
pub struct Member {
    /// The policy.
    pub policy: Arc<Policy>,
    /// The settings that came with it.
    pub settings: Vec<Layer>,
    /// The name of its revision; none for a policy that the process brought along.
    pub revision: Option<Arc<str>>,
    /// What a refusal leads to.
    pub on_refusal: OnRefusal,
    /// Whether the namespace that it answers for installed it itself.
    pub is_local: bool,
    /// Since when it answers.
    pub since: Option<Timestamp>,
    /// What served its place before, and serves it again for an object that this one fails on.
    pub predecessor: Option<Arc<Member>>,
}

/// Settings of a package without a component.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// The settings.
    pub layer: Layer,
    /// The name of their revision.
    pub revision: Arc<str>,
    /// What a refusal under them leads to.
    pub on_refusal: OnRefusal,
    /// Since when they hold.
    pub since: Option<Timestamp>,
    /// What held in their place before.
    pub predecessor: Option<Arc<Tuning>>,
}

/// What answers for an object that something fails on.
#[derive(Debug, Clone)]
pub struct Fallback {
    /// What answers.
    pub kind: Arc<Kind>,
    /// The revision that it goes without.
    pub blamed: Arc<str>,
    /// What that one asks for where it refuses the object.
    pub on_refusal: OnRefusal,
}

impl Member {
    /// A policy that the process brought along.
    pub fn own(policy: Arc<Policy>) -> Arc<Self> {
        Arc::new(Self {
            policy,
            settings: Vec::new(),
            revision: None,
            on_refusal: OnRefusal::default(),
            is_local: false,
            since: None,
            predecessor: None,
        })
    }

    /// The member and what served before it, the newest first.
    pub(super) fn line(self: &Arc<Self>) -> impl Iterator<Item = &Arc<Self>> {
        std::iter::successors(Some(self), |member| member.predecessor.as_ref())
    }

    fn is(&self, other: &Self) -> bool {
        self.revision == other.revision
            && self.policy.id() == other.policy.id()
            && self.policy.grants() == other.policy.grants()
            && self.policy.limits() == other.policy.limits()
            && self.settings == other.settings
            && self.on_refusal == other.on_refusal
    }
}

/// What answers for an object that a policy fails on, by that policy and what was tried already.
type Fallbacks = BTreeMap<(PolicyId, Vec<Arc<str>>), Option<Fallback>>;

/// What answers for objects of one kind in one place.
pub struct Kind {
    of: ResourceType,
    members: Vec<Arc<Member>>,
    tunings: Vec<Arc<Tuning>>,
    stack: Stack,
    shared: Arc<Vec<Layer>>,
    layers: Vec<Layer>,
    /// What would answer in the stead of the lowest member, the strongest first.
    below: Vec<Arc<Member>>,
    /// Revisions that serve and do not answer: they only stand in for these.
    missed: Vec<Without>,
    pub(super) made: Mutex<Option<Made>>,
    fallbacks: Mutex<Fallbacks>,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.policies().map(|policy| policy.id().to_string()).collect();
        f.debug_struct("Kind").field("of", &self.of).field("policies", &ids).finish_non_exhaustive()
    }
}

impl Kind {
    /// Members that answer together, the lowest first, under `shared` settings and those of packages.
    pub(super) fn new(
        of: ResourceType,
        members: Vec<Arc<Member>>,
        tunings: Vec<Arc<Tuning>>,
        shared: Arc<Vec<Layer>>,
    ) -> Option<Self> {
        let mut policies = members.iter().map(|member| Arc::clone(&member.policy));
        // What is lowest may turn out to be an overlay, which is no stack.
        let stack = Stack::new(policies.next()?, policies.collect()).ok()?;
        let own = members.iter().flat_map(|member| member.settings.iter());
        // Of equal rank, the last counts: settings alone are there to change those that a policy comes with.
        let layers = shared.iter().chain(own).chain(tunings.iter().map(|tuning| &tuning.layer)).cloned().collect();
        let (made, fallbacks) = (Mutex::default(), Mutex::default());
        let (below, missed) = (Vec::new(), Vec::new());
        Some(Self { of, members, tunings, stack, shared, layers, below, missed, made, fallbacks })
    }

    /// The same, with what else holds in the place: it answers for an object that the lowest member fails on, where that has
    /// nothing before it.
    pub(super) fn above(self, below: Vec<Arc<Member>>) -> Self {
        Self { below, ..self }
    }

    /// The same, in the stead of revisions that cannot answer.
    pub(super) fn in_the_stead_of(self, missed: Vec<Without>) -> Self {
        Self { missed, ..self }
    }

    /// The revisions that it stands in for.
    pub(super) fn missed(&self) -> &[Without] {
        &self.missed
    }

    /// The policies as one.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// The types that the policies wish for, as far as they are served.
    pub(super) fn served(&self, is_served: impl Fn(&ResourceType) -> bool) -> Vec<ResourceType> {
        let wishes = self.claims().flat_map(|claim| &claim.wishes);
        let mut served: Vec<ResourceType> = wishes.filter(|wish| is_served(wish)).cloned().collect();
        served.sort();
        served.dedup();
        served
    }

    /// The policies, bound to their settings, on a cluster that serves these types.
    pub(super) fn renderer_on(&self, cluster: &Cluster, served: Vec<ResourceType>) -> Result<Renderer, SettingsErrors> {
        Renderer::new(&self.stack, &self.layers, Cluster { served, ..cluster.clone() })
    }

    /// The policies, bound to their settings, on a cluster that serves what `is_served` says.
    pub fn renderer(
        &self,
        cluster: &Cluster,
        is_served: impl Fn(&ResourceType) -> bool,
    ) -> Result<Renderer, SettingsErrors> {
        self.renderer_on(cluster, self.served(is_served))
    }

    /// The settings that concern them, in no order.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Whether a policy is among them that the namespace itself installed.
    pub(crate) fn is_local(&self) -> bool {
        self.members.iter().any(|member| member.is_local)
    }

    /// The revision of such a policy.
    pub(super) fn local_revision(&self) -> Option<&Arc<str>> {
        self.members.iter().find(|member| member.is_local)?.revision.as_ref()
    }

    /// The policies, the lowest first.
    pub fn policies(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.members.iter().map(|member| &member.policy)
    }

    /// What they claim.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.policies().filter_map(|policy| policy.claim(&self.of))
    }

    /// They and those before them.
    pub(super) fn policies_ever(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.members.iter().flat_map(Member::line).map(|member| &member.policy)
    }

    /// What those claim.
    pub(super) fn claims_ever(&self) -> impl Iterator<Item = &Claim> {
        self.policies_ever().filter_map(|policy| policy.claim(&self.of))
    }

    /// The revisions that answer.
    pub fn revisions(&self) -> impl Iterator<Item = &Arc<str>> {
        let members = self.members.iter().filter_map(|member| member.revision.as_ref());
        members.chain(self.tunings.iter().map(|tuning| &tuning.revision))
    }

    /// What answers for an object that a policy of the stack fails on: what served before the newest of the things that
    /// can be the reason and were not `tried`. None if everything that is left came with the process.
    pub fn without(&self, failed: &PolicyId, tried: &[Arc<str>]) -> Option<Fallback> {
        let mut fallbacks = lock(&self.fallbacks);
        let make = || {
            let mut tried = tried.to_vec();
            loop {
                let (blamed, on_refusal, kind) = self.reduced(failed, &tried)?;
                match kind {
                    Some(kind) => return Some(Fallback { kind: Arc::new(kind), blamed, on_refusal }),
                    // Nothing would answer at all.
                    None => tried.push(blamed),
                }
            }
        };
        fallbacks.entry((failed.clone(), tried.to_vec())).or_insert_with(make).clone()
    }

    /// What answers for an object that a policy refuses and leaves to what served before, as its `policy.yaml` may ask, and
    /// what to say of it. A refusal that waits for something ends by itself; but not one that asks to be shown more than can
    /// be, which speaks against nobody.
    pub fn left_by(&self, refusing: &PolicyId, refusal: &Refusal) -> Option<(Fallback, String)> {
        let why = match refusal {
            Refusal::Invalid(violations) => match violations.first() {
                Some(Violation { path, message }) => format!("{path}: {message}"),
                None => "it is invalid".to_owned(),
            },
            Refusal::Unsupported(what) => what.clone(),
            Refusal::Waiting(blockers) => {
                let blocker = blockers.iter().find(|blocker| blocker.reason == TOO_LARGE)?;
                let fallback = self.without(refusing, &[])?;
                return Some((Fallback { on_refusal: OnRefusal::Hold, ..fallback }, blocker.message.clone()));
            }
        };
        let fallback = self.without(refusing, &[]).filter(|fallback| fallback.on_refusal != OnRefusal::Tell)?;
        Some((fallback, format!("it refuses the object: {why}")))
    }

    /// The newest thing that can be the reason, and what is left without it.
    fn reduced(&self, failed: &PolicyId, tried: &[Arc<str>]) -> Option<(Arc<str>, OnRefusal, Option<Self>)> {
        let at = self.members.iter().position(|member| member.policy.id() == failed);
        let member = at.filter(|at| self.members[*at].revision.as_ref().is_some_and(|it| !tried.contains(it)));
        let concerned = |tuning: &&Arc<Tuning>| {
            !tried.contains(&tuning.revision) && tuning.layer.policy.as_deref().is_none_or(|name| name == failed.name)
        };
        let tuning = self.tunings.iter().filter(concerned).max_by_key(|tuning| tuning.since);
        let newer = |at: usize, tuning: &Tuning| tuning.since > self.members[at].since;
        let (mut members, mut tunings, mut below) = (self.members.clone(), self.tunings.clone(), self.below.clone());
        let (blamed, on_refusal) = match (member, tuning) {
            (Some(at), tuning) if tuning.is_none_or(|tuning| !newer(at, tuning)) => {
                let member = members.remove(at);
                let before =
                    member.line().skip(1).find(|before| before.policy.claim(&self.of).is_some()).map(Arc::clone);
                let before = before.or_else(|| (at == 0 && !below.is_empty()).then(|| below.remove(0)));
                members.splice(at..at, before);
                (member.revision.clone()?, member.on_refusal)
            }
            (_, Some(tuning)) => {
                tunings.retain(|other| !Arc::ptr_eq(other, tuning));
                tunings.extend(tuning.predecessor.clone());
                (Arc::clone(&tuning.revision), tuning.on_refusal)
            }
            _ => return None,
        };
        let left = Self::new(self.of.clone(), members, tunings, Arc::clone(&self.shared));
        Some((blamed, on_refusal, left.map(|left| left.above(below))))
    }

    /// Whether it would answer as another one does, and fall back to the same.
    pub(super) fn is(&self, other: &Self) -> bool {
        let lines = |one: &Arc<Member>, other: &Arc<Member>| {
            one.line().count() == other.line().count() && one.line().zip(other.line()).all(|(one, other)| one.is(other))
        };
        self.of == other.of
            && self.members.len() == other.members.len()
            && self.members.iter().zip(&other.members).all(|(one, other)| lines(one, other))
            && self.below.len() == other.below.len()
            && self.below.iter().zip(&other.below).all(|(one, other)| lines(one, other))
            && self.layers == other.layers
            && self.missed == other.missed
            && self.revisions().eq(other.revisions())
    }
}
