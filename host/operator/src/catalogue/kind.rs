//! The policies that answer for objects of one kind in one place: a stack of policies, each with its predecessors.

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

use super::{Without, made::BuiltRenderer};
use crate::locking::lock;

/// A policy in a place, with its settings and its predecessor.
#[derive(Debug, Clone)]
pub struct Member {
    /// The policy.
    pub policy: Arc<Policy>,
    /// The settings that ship with the policy.
    pub settings: Vec<Layer>,
    /// The name of its revision. `None` for a policy that the process loaded at startup.
    pub revision: Option<Arc<str>>,
    /// How to proceed if the policy refuses an object.
    pub on_refusal: OnRefusal,
    /// Whether the package lies in the namespace that the policy answers for.
    pub is_local: bool,
    /// The time since which the policy answers.
    pub since: Option<Timestamp>,
    /// The predecessor of the policy. It answers for an object that this policy fails on.
    pub predecessor: Option<Arc<Member>>,
}

/// Settings of a package without a component.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// The settings.
    pub layer: Layer,
    /// The name of the package's revision.
    pub revision: Arc<str>,
    /// How to proceed if a policy refuses an object under these settings.
    pub on_refusal: OnRefusal,
    /// The time since which the settings are in effect.
    pub since: Option<Timestamp>,
    /// The predecessor of these settings.
    pub predecessor: Option<Arc<Tuning>>,
}

/// The policies that answer for an object after a revision is left out.
#[derive(Debug, Clone)]
pub struct Fallback {
    /// The remaining policies.
    pub kind: Arc<Kind>,
    /// The revision that is left out.
    pub blamed: Arc<str>,
    /// How the revision that is left out asks to proceed if it refuses an object.
    pub on_refusal: OnRefusal,
}

impl Member {
    /// Returns a policy that the process loaded at startup.
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

    /// Returns the member and its predecessors, the newest first.
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

/// Fallbacks by the policy that fails and the revisions that were tried already.
type Fallbacks = BTreeMap<(PolicyId, Vec<Arc<str>>), Option<Fallback>>;

/// The policies that answer for objects of one kind in one place.
pub struct Kind {
    of: ResourceType,
    members: Vec<Arc<Member>>,
    tunings: Vec<Arc<Tuning>>,
    stack: Stack,
    shared: Arc<Vec<Layer>>,
    layers: Vec<Layer>,
    /// Policies that can replace the lowest member, the strongest first.
    below: Vec<Arc<Member>>,
    /// Active revisions that cannot answer. This value only replaces them.
    missed: Vec<Without>,
    pub(super) made: Mutex<Option<BuiltRenderer>>,
    fallbacks: Mutex<Fallbacks>,
}

impl fmt::Debug for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.policies().map(|policy| policy.id().to_string()).collect();
        f.debug_struct("Kind").field("of", &self.of).field("policies", &ids).finish_non_exhaustive()
    }
}

impl Kind {
    /// Stacks the members, the lowest first, under `shared` settings and the settings of packages. Returns `None` if
    /// they form no stack.
    pub(super) fn new(
        of: ResourceType,
        members: Vec<Arc<Member>>,
        tunings: Vec<Arc<Tuning>>,
        shared: Arc<Vec<Layer>>,
    ) -> Option<Self> {
        let mut policies = members.iter().map(|member| Arc::clone(&member.policy));
        // The lowest member may be an overlay. `Stack` does not accept an overlay as its base.
        let stack = Stack::new(policies.next()?, policies.collect()).ok()?;
        let own = members.iter().flat_map(|member| member.settings.iter());
        // Of layers with equal rank the last one wins: packages of settings override the settings that ship with a
        // policy.
        let layers = shared.iter().chain(own).chain(tunings.iter().map(|tuning| &tuning.layer)).cloned().collect();
        let (made, fallbacks) = (Mutex::default(), Mutex::default());
        let (below, missed) = (Vec::new(), Vec::new());
        Some(Self { of, members, tunings, stack, shared, layers, below, missed, made, fallbacks })
    }

    /// Adds the weaker policies of the place. They replace the lowest member if it fails on an object and has no
    /// predecessor.
    pub(super) fn above(self, below: Vec<Arc<Member>>) -> Self {
        Self { below, ..self }
    }

    /// Marks these policies as the replacement of revisions that cannot answer.
    pub(super) fn in_the_stead_of(self, missed: Vec<Without>) -> Self {
        Self { missed, ..self }
    }

    /// Returns the revisions that these policies replace.
    pub(super) fn missed(&self) -> &[Without] {
        &self.missed
    }

    /// Returns the policies as a stack.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Returns the optional types that the policies ask for and that the cluster serves.
    pub(super) fn served(&self, is_served: impl Fn(&ResourceType) -> bool) -> Vec<ResourceType> {
        let wishes = self.claims().flat_map(|claim| &claim.wishes);
        let mut served: Vec<ResourceType> = wishes.filter(|wish| is_served(wish)).cloned().collect();
        served.sort();
        served.dedup();
        served
    }

    /// Binds the policies to their settings, for a cluster that serves these types.
    pub(super) fn renderer_on(&self, cluster: &Cluster, served: Vec<ResourceType>) -> Result<Renderer, SettingsErrors> {
        Renderer::new(&self.stack, &self.layers, Cluster { served, ..cluster.clone() })
    }

    /// Binds the policies to their settings, for a cluster whose served types `is_served` tells.
    pub fn renderer(
        &self,
        cluster: &Cluster,
        is_served: impl Fn(&ResourceType) -> bool,
    ) -> Result<Renderer, SettingsErrors> {
        self.renderer_on(cluster, self.served(is_served))
    }

    /// Returns whether the policies accept their settings.
    pub(super) fn fits(&self) -> bool {
        Renderer::new(&self.stack, &self.layers, Cluster::default()).is_ok()
    }

    /// Returns the settings layers for these policies, in no particular order.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns whether any of the policies was installed in the namespace itself.
    pub(crate) fn is_local(&self) -> bool {
        self.members.iter().any(|member| member.is_local)
    }

    /// Returns the revision of the policy that was installed in the namespace itself.
    pub(super) fn local_revision(&self) -> Option<&Arc<str>> {
        self.members.iter().find(|member| member.is_local)?.revision.as_ref()
    }

    /// Returns the policies, the lowest first.
    pub fn policies(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.members.iter().map(|member| &member.policy)
    }

    /// Returns the policies with their revisions, the lowest first.
    pub(super) fn members(&self) -> &[Arc<Member>] {
        &self.members
    }

    /// Returns the claims of the policies for this kind.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.policies().filter_map(|policy| policy.claim(&self.of))
    }

    /// Returns the policies and their predecessors.
    pub(super) fn policies_ever(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.members.iter().flat_map(Member::line).map(|member| &member.policy)
    }

    /// Returns the claims of the policies and of their predecessors for this kind.
    pub(super) fn claims_ever(&self) -> impl Iterator<Item = &Claim> {
        self.policies_ever().filter_map(|policy| policy.claim(&self.of))
    }

    /// Returns the revisions that answer.
    pub fn revisions(&self) -> impl Iterator<Item = &Arc<str>> {
        let members = self.members.iter().filter_map(|member| member.revision.as_ref());
        members.chain(self.tunings.iter().map(|tuning| &tuning.revision))
    }

    /// Returns the policies for an object that policy `failed` fails on. Leaves out the newest possible cause that is
    /// not in `tried`, and uses its predecessor. Returns `None` if no installed revision is left to leave out.
    pub fn without(&self, failed: &PolicyId, tried: &[Arc<str>]) -> Option<Fallback> {
        let mut fallbacks = lock(&self.fallbacks);
        let make = || {
            let mut tried = tried.to_vec();
            loop {
                let (blamed, on_refusal, kind) = self.reduced(failed, &tried)?;
                match kind {
                    Some(kind) => return Some(Fallback { kind: Arc::new(kind), blamed, on_refusal }),
                    // Without this revision no policy would answer. Leave out another one.
                    None => tried.push(blamed),
                }
            }
        };
        fallbacks.entry((failed.clone(), tried.to_vec())).or_insert_with(make).clone()
    }

    /// Returns the fallback for a refused object, and the message for it, if the `policy.yaml` of the refusing revision
    /// asks for a fallback. A waiting refusal has no fallback, because it ends by itself. The exception is a need that
    /// exceeds the size limit: it never ends, and does not count against the revision.
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

    /// Returns the newest possible cause of the failure, and the policies that are left without it.
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
        // A predecessor need not fit the settings of today.
        let left = Self::new(self.of.clone(), members, tunings, Arc::clone(&self.shared)).filter(Self::fits);
        Some((blamed, on_refusal, left.map(|left| left.above(below))))
    }

    /// Returns whether both values give the same answers and have the same fallbacks.
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
