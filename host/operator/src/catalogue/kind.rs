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
    settings::{Layer, Origin, SettingsErrors},
};

use super::{Without, made::BuiltRenderer};
use crate::locking::lock;

/// A policy in a place, with its settings and its predecessor.
#[derive(Debug, Clone)]
pub struct Member {
    /// The policy.
    pub policy: Arc<Policy>,
    /// The settings in the policy's own package.
    pub settings: Vec<Layer>,
    /// The name of the policy's revision. `None` for a policy that the process loaded at startup.
    pub revision: Option<Arc<str>>,
    /// The behaviour of the operator if the policy refuses an object.
    pub on_refusal: OnRefusal,
    /// Whether the package is in the namespace that the policy answers for.
    pub is_local: bool,
    /// The time at which the policy started to answer.
    pub since: Option<Timestamp>,
    /// The predecessor of the policy. The predecessor answers for an object if this policy fails on the object.
    pub predecessor: Option<Arc<Member>>,
}

/// Settings of a package without a component.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// The settings.
    pub layer: Layer,
    /// The name of the package's revision.
    pub revision: Arc<str>,
    /// The behaviour of the operator if a policy refuses an object under these settings.
    pub on_refusal: OnRefusal,
    /// The time at which the settings took effect.
    pub since: Option<Timestamp>,
    /// The predecessor of these settings.
    pub predecessor: Option<Arc<Tuning>>,
}

/// The policies that answer for an object if the operator leaves out a revision.
#[derive(Debug, Clone)]
pub struct Fallback {
    /// The remaining policies.
    pub kind: Arc<Kind>,
    /// The revision that the operator leaves out, because this revision may be the cause of the failure.
    pub blamed: Arc<str>,
    /// The behaviour that the left-out revision requests for refused objects.
    pub on_refusal: OnRefusal,
}

impl Member {
    /// Returns the member for a policy that the process loaded at startup.
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

/// If a revision refuses an object, the reason for leaving out the revision begins with this text.
pub(crate) const REFUSES: &str = "the policy refuses the object: ";

/// The fallbacks that were computed so far. The key contains the failing policy, and the revisions that the operator
/// already left out.
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
    /// Active revisions that cannot answer. The other policies of this value answer instead of these revisions.
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
    /// Stacks the members, the lowest first, and adds the `shared` settings and the settings of packages. Returns
    /// `None` if the policies of the members cannot form a [`Stack`].
    pub(super) fn new(
        of: ResourceType,
        members: Vec<Arc<Member>>,
        tunings: Vec<Arc<Tuning>>,
        shared: Arc<Vec<Layer>>,
    ) -> Option<Self> {
        let mut policies = members.iter().map(|member| Arc::clone(&member.policy));
        // Return `None` if the lowest member is an overlay: `Stack` does not accept an overlay as its base.
        let stack = Stack::new(policies.next()?, policies.collect()).ok()?;
        let own = members.iter().flat_map(|member| member.settings.iter());
        // Among layers of equal precedence, the last layer wins. So packages of settings override the settings in a
        // policy's own package.
        let layers = shared.iter().chain(own).chain(tunings.iter().map(|tuning| &tuning.layer)).cloned().collect();
        let (made, fallbacks) = (Mutex::default(), Mutex::default());
        let (below, missed) = (Vec::new(), Vec::new());
        Some(Self { of, members, tunings, stack, shared, layers, below, missed, made, fallbacks })
    }

    /// Adds the weaker policies of the place. If the lowest member fails on an object and has no predecessor, a weaker
    /// policy replaces this member.
    pub(super) fn above(self, below: Vec<Arc<Member>>) -> Self {
        Self { below, ..self }
    }

    /// Sets the revisions that these policies replace because the revisions cannot answer.
    pub(super) fn in_the_stead_of(self, missed: Vec<Without>) -> Self {
        Self { missed, ..self }
    }

    /// Returns the revisions that these policies replace.
    pub(super) fn missed(&self) -> &[Without] {
        &self.missed
    }

    /// Returns the stack of the policies, which renders objects.
    pub fn stack(&self) -> &Stack {
        &self.stack
    }

    /// Returns the optional types of the policies (`wishes`) that this cluster serves.
    pub(super) fn served(&self, is_served: impl Fn(&ResourceType) -> bool) -> Vec<ResourceType> {
        let wishes = self.claims().flat_map(|claim| &claim.wishes);
        let mut served: Vec<ResourceType> = wishes.filter(|wish| is_served(wish)).cloned().collect();
        served.sort();
        served.dedup();
        served
    }

    /// Binds the policies to their settings, for a cluster that serves the types in `served`.
    pub(super) fn renderer_on(&self, cluster: &Cluster, served: Vec<ResourceType>) -> Result<Renderer, SettingsErrors> {
        Renderer::new(&self.stack, &self.layers, Cluster { served, ..cluster.clone() })
    }

    /// Binds the policies to their settings. `is_served` returns whether the cluster serves a type.
    pub fn renderer(
        &self,
        cluster: &Cluster,
        is_served: impl Fn(&ResourceType) -> bool,
    ) -> Result<Renderer, SettingsErrors> {
        self.renderer_on(cluster, self.served(is_served))
    }

    /// Returns whether the policies and their settings are those of `other`, so that both give the same answers. Does
    /// not compare fallbacks.
    pub(super) fn answers_like(&self, other: &Self) -> bool {
        let members = self.members.iter().zip(&other.members);
        self.members.len() == other.members.len()
            && members.into_iter().all(|(one, other)| one.is(other))
            && self.layers == other.layers
    }

    /// Returns whether the packages of `self` and of `other` request the same behaviour for refused objects.
    pub(crate) fn refuses_like(&self, other: &Self) -> bool {
        let requested = |kind: &Self| -> Vec<OnRefusal> {
            let of_members = kind.members.iter().map(|member| member.on_refusal);
            of_members.chain(kind.tunings.iter().map(|tuning| tuning.on_refusal)).collect()
        };
        requested(self) == requested(other)
    }

    /// Returns texts that identify the policies, their settings and their behaviour.
    ///
    /// Every process returns the same texts.
    pub(super) fn identity(&self) -> Vec<String> {
        let members = self.members.iter().map(|member| {
            let Member { policy, revision, on_refusal, .. } = &**member;
            format!("{} {revision:?} {on_refusal:?}", policy.id())
        });
        members.chain(self.layers.iter().map(|layer| format!("{layer:?}"))).collect()
    }

    /// Returns whether the policies accept their settings.
    pub(super) fn fits(&self) -> bool {
        Renderer::new(&self.stack, &self.layers, Cluster::default()).is_ok()
    }

    /// Returns the settings layers for these policies. The origin of a layer decides its precedence. Of two layers with
    /// the same precedence, the later layer overrides the earlier layer.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns whether any of the policies comes from a tenant's package.
    pub(crate) fn is_local(&self) -> bool {
        self.members.iter().any(|member| member.is_local)
    }

    /// Returns the revision of the policy that comes from a tenant's package, or `None` if none of the policies comes
    /// from a tenant's package.
    pub(super) fn local_revision(&self) -> Option<&Arc<str>> {
        self.members.iter().find(|member| member.is_local)?.revision.as_ref()
    }

    /// Returns the policies, the lowest first.
    pub fn policies(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.members.iter().map(|member| &member.policy)
    }

    /// Returns the revision of a policy, and the origin of the settings in its package. Both are `None` for a policy
    /// that the process loaded at startup.
    pub(crate) fn source_of(&self, policy: &PolicyId) -> (Option<Arc<str>>, Option<Origin>) {
        let member = self.members.iter().find(|member| member.policy.id() == policy);
        let Some(revision) = member.and_then(|member| member.revision.clone()) else { return (None, None) };
        let settings = member.and_then(|member| member.settings.first());
        (Some(revision), settings.map(|layer| layer.origin.clone()))
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
    pub(crate) fn policies_ever(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.members.iter().flat_map(Member::line).map(|member| &member.policy)
    }

    /// Returns the claims of the policies and of their predecessors for this kind.
    pub(super) fn claims_ever(&self) -> impl Iterator<Item = &Claim> {
        self.policies_ever().filter_map(|policy| policy.claim(&self.of))
    }

    /// Returns the revisions that answer.
    pub fn revisions(&self) -> impl Iterator<Item = &Arc<str>> {
        self.answering().flatten()
    }

    /// Like [`Self::revisions`], but also returns `None` for each policy that the process loaded at startup.
    pub(crate) fn answering(&self) -> impl Iterator<Item = Option<&Arc<str>>> {
        let members = self.members.iter().map(|member| member.revision.as_ref());
        members.chain(self.tunings.iter().map(|tuning| Some(&tuning.revision)))
    }

    /// Returns the fallback for an object on which the policy `failed` fails. The cause can be the revision of this
    /// policy, or a revision with settings for it. The fallback leaves out the newest of these revisions that is not in
    /// `tried`, and uses the predecessor of the left-out revision, if there is one. Returns `None` if `tried` contains
    /// every revision that can be the cause.
    pub fn without(&self, failed: &PolicyId, tried: &[Arc<str>]) -> Option<Fallback> {
        let mut fallbacks = lock(&self.fallbacks);
        let make = || {
            let mut tried = tried.to_vec();
            loop {
                let (blamed, on_refusal, kind) = self.reduced(failed, &tried)?;
                match kind {
                    Some(kind) => return Some(Fallback { kind: Arc::new(kind), blamed, on_refusal }),
                    // Without this revision, no policy can answer. So leave out another revision.
                    None => tried.push(blamed),
                }
            }
        };
        fallbacks.entry((failed.clone(), tried.to_vec())).or_insert_with(make).clone()
    }

    /// Returns the fallback for a refused object, and the reason of the refusal as a message. Returns `None` if the
    /// `policy.yaml` of the left-out revision asks for no fallback. A refusal that waits for other objects has no
    /// fallback, because the wait ends when the other objects change. The exception is a refusal because the objects of
    /// a need exceed the size limit: this wait never ends. Such a refusal does not count against the revision.
    pub fn left_by(&self, refusing: &PolicyId, refusal: &Refusal) -> Option<(Fallback, String)> {
        let why = match refusal {
            Refusal::Invalid(violations) => match violations.first() {
                Some(Violation { path, message }) => format!("{path}: {message}"),
                None => "the object is invalid".to_owned(),
            },
            Refusal::Unsupported(what) => what.clone(),
            Refusal::Waiting(blockers) => {
                let blocker = blockers.iter().find(|blocker| blocker.reason == TOO_LARGE)?;
                let fallback = self.without(refusing, &[])?;
                return Some((Fallback { on_refusal: OnRefusal::Hold, ..fallback }, blocker.message.clone()));
            }
        };
        let fallback = self.without(refusing, &[]).filter(|fallback| fallback.on_refusal != OnRefusal::Tell)?;
        Some((fallback, format!("{REFUSES}{why}")))
    }

    /// Returns the newest revision that can be the cause of the failure: its name, its behaviour for refused objects,
    /// and the policies that remain without it. Returns `None` if `tried` contains every revision that can be the
    /// cause.
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
        // Check the settings again, because a predecessor can conflict with the current settings.
        let left = Self::new(self.of.clone(), members, tunings, Arc::clone(&self.shared)).filter(Self::fits);
        Some((blamed, on_refusal, left.map(|left| left.above(below))))
    }

    /// Returns whether both values have the same policies, settings and fallbacks.
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
