//! Computes which policies answer for each kind in each namespace, from all policies and their scopes. This code is
//! pure.
//!
//! The order of precedence, strongest first:
//!
//! - a policy of the object's own namespace
//! - a policy of the operator's namespace with a scope that lists the object's namespace
//! - a policy for the cluster
//! - a policy that the process loaded at startup
//!
//! An object can pin another policy that applies in its namespace. Overlays apply on top of the policy: first the
//! overlays with the weakest scope, and for equal scopes first the oldest overlay. If two packages claim the same
//! place, the first claimant serves; the module `clash` finds this conflict.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kaos_policy::{
    contract::{Claim, ResourceType},
    policy::Stack,
    settings::Layer,
};

use super::{Answers, Kind, Member, Reach, Staging, Tuning, Without};

/// The age of a policy. If the times of two policies are equal, the namespaces and names of their ConfigMaps decide
/// which policy is older.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age {
    /// The time at which the policy claimed its place. `None` before the gate has admitted the policy.
    pub claimed: Option<Timestamp>,
    /// The creation time of the package's ConfigMap, in the format of Kubernetes.
    pub created: String,
    /// The namespace of the ConfigMap.
    pub namespace: String,
    /// The name of the ConfigMap.
    pub name: String,
}

impl Age {
    /// Returns the age of a package that was created at this time and claims no place yet.
    pub fn new(created: Option<&Time>, namespace: String, name: String) -> Self {
        let created = created.map(|time| time.0.to_string()).unwrap_or_default();
        Self { claimed: None, created, namespace, name }
    }
}

/// A policy that can answer for a kind.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The kind.
    pub of: ResourceType,
    /// The policy.
    pub member: Arc<Member>,
    /// The scope of the policy.
    pub reach: Reach,
    /// Whether the policy answers only for objects that pin it.
    pub pinned: bool,
    /// The age of the policy.
    pub age: Age,
}

/// The settings of a package without a component, with their scope and age.
#[derive(Debug, Clone)]
pub struct Given {
    /// The settings.
    pub tuning: Arc<Tuning>,
    /// The scope of the settings.
    pub reach: Reach,
    /// The age of the settings.
    pub age: Age,
}

/// An active revision that cannot be loaded any more. The predecessor or a weaker policy replaces this revision until
/// the revision can be loaded again.
#[derive(Debug, Clone)]
pub struct Missed {
    /// The revision, and the reason why the revision does not answer.
    pub without: Without,
    /// The name of the revision's policy. For settings, the policy to which the settings apply.
    pub policy: String,
    /// The kinds that the revision answered for. Empty for settings.
    pub kinds: Vec<ResourceType>,
    /// The scope of the revision.
    pub reach: Reach,
    /// Whether the revision answered only for objects that pin it.
    pub pinned: bool,
}

/// The result of [`arrange`].
#[derive(Debug, Default)]
pub struct Arranged {
    /// The policies that answer for each kind.
    pub answers: BTreeMap<ResourceType, Answers>,
    /// Revisions that do not serve because of a conflict, with the reason.
    pub conflicts: BTreeMap<Arc<str>, Conflict>,
    /// The running rollouts. [`arrange`] does not set this field.
    pub staging: Staging,
}

impl Arranged {
    /// Returns every policy table: the table with all revisions, and the tables with predecessors of revisions that are
    /// being rolled out.
    pub(super) fn tables(&self) -> impl Iterator<Item = &BTreeMap<ResourceType, Answers>> {
        std::iter::once(&self.answers).chain(self.staging.tables())
    }
}

/// Why a revision cannot serve together with other revisions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Conflict {
    /// The reason that the status of the revision shows, in one word.
    pub reason: &'static str,
    /// The message for users. The message names the other revision and the remedy.
    pub message: String,
}

/// The status reason of a revision if another package already has the revision's place.
pub(crate) const PLACE_TAKEN: &str = "PlaceTaken";

impl Conflict {
    /// Returns the conflict for a place that an older package already has.
    pub(super) fn over_place(message: String) -> Self {
        Self { reason: PLACE_TAKEN, message }
    }
}

impl Offer {
    /// Returns an offer for each policy of a stack. The process loaded these policies at startup.
    pub fn of_process(of: &ResourceType, stack: &Stack) -> Vec<Self> {
        let offer = |(at, policy): (usize, _)| Self {
            of: of.clone(),
            member: Member::own(Arc::clone(policy)),
            reach: Reach::Process,
            pinned: false,
            // Overlays with equal times are sorted by name. These names keep the overlays in the order of the stack.
            age: Age { name: format!("{at:04}"), ..Age::default() },
        };
        std::iter::once(stack.base()).chain(stack.overlays()).enumerate().map(offer).collect()
    }

    /// Returns one offer for each kind that an installed policy claims.
    pub fn of_member(member: &Arc<Member>, reach: &Reach, pinned: bool, age: &Age) -> Vec<Self> {
        let offer = |claim: &Claim| Self {
            of: claim.primary.clone(),
            member: Arc::clone(member),
            reach: reach.clone(),
            pinned,
            age: age.clone(),
        };
        member.policy.descriptor().claims.iter().map(offer).collect()
    }
}

/// Computes which policies answer for each kind in each namespace. `shared` are the settings for the whole cluster.
pub fn arrange(offers: &[Offer], given: &[Given], missed: &[Missed], shared: &[Layer]) -> Arranged {
    let mut sorted: Vec<&Offer> = offers.iter().collect();
    sorted.sort_by(|one, other| one.age.cmp(&other.age));
    let mut arranged = Arranged::default();
    let mut serving: Vec<&Offer> = Vec::new();
    let is_of = |offer: &Offer, revision: &Arc<str>| offer.member.revision.as_ref() == Some(revision);
    for offer in &sorted {
        let clash = serving.iter().find_map(|older| offer.clash(older));
        match (clash, &offer.member.revision) {
            (_, Some(revision)) if arranged.conflicts.contains_key(revision) => {}
            (Some(why), Some(revision)) => {
                // If a revision loses a conflict for one kind, it serves for no kind and takes no place: a policy must
                // serve as a whole or not at all.
                serving.retain(|other| !is_of(other, revision));
                arranged.conflicts.insert(Arc::clone(revision), Conflict::over_place(why));
            }
            _ => serving.push(offer),
        }
    }
    let mut sorted: Vec<&Given> = given.iter().collect();
    sorted.sort_by(|one, other| one.age.cmp(&other.age));
    let mut given: Vec<&Given> = Vec::new();
    for settings in sorted {
        match given.iter().find_map(|older| settings.clash(older)) {
            Some(why) => {
                arranged.conflicts.insert(Arc::clone(&settings.tuning.revision), Conflict::over_place(why));
            }
            None => given.push(settings),
        }
    }
    let shared = Arc::new(shared.to_vec());
    given.sort_by(|one, other| (one.reach.rank(), &one.age).cmp(&(other.reach.rank(), &other.age)));
    let places: BTreeSet<&String> = serving
        .iter()
        .flat_map(|offer| offer.reach.places())
        .chain(given.iter().flat_map(|given| given.reach.places()))
        .chain(missed.iter().flat_map(|missed| missed.reach.places()))
        .collect();
    let kinds: BTreeSet<&ResourceType> = serving.iter().map(|offer| &offer.of).collect();
    for of in kinds {
        let mut of_kind: Vec<&Offer> = serving.iter().copied().filter(|offer| offer.of == *of).collect();
        of_kind.sort_by(|one, other| (one.reach.rank(), &one.age).cmp(&(other.reach.rank(), &other.age)));
        let answers = Places { of, offers: &of_kind, given: &given, missed, shared: &shared }.answers(&places);
        arranged.answers.insert(of.clone(), answers);
    }
    arranged
}

/// The offers for one kind, all settings, and all missed revisions. The offers and the settings are in the order of
/// precedence, weakest first.
struct Places<'a> {
    of: &'a ResourceType,
    offers: &'a [&'a Offer],
    given: &'a [&'a Given],
    missed: &'a [Missed],
    shared: &'a Arc<Vec<Layer>>,
}

impl Places<'_> {
    fn answers(&self, places: &BTreeSet<&String>) -> Answers {
        let mut answers = Answers { cluster: self.usual(None), ..Answers::default() };
        self.pins(None, &mut answers);
        for place in places {
            answers.namespaces.insert((*place).clone(), self.usual(Some(place)));
            self.pins(Some(place), &mut answers);
        }
        let claims = self.offers.iter().flat_map(|offer| offer.member.line());
        let claims = claims.filter_map(|member| member.policy.claim(self.of));
        answers.emitted = claims.flat_map(|claim| claim.emits.iter().cloned()).collect();
        answers
    }

    fn here<'a>(&'a self, place: Option<&'a str>) -> impl DoubleEndedIterator<Item = &'a &'a Offer> {
        self.offers.iter().filter(move |offer| offer.reach.holds(place))
    }

    /// Returns the policies that can answer in a place for objects without a pin, the strongest first.
    fn bases<'a>(&'a self, place: Option<&'a str>) -> impl Iterator<Item = &'a &'a Offer> {
        self.here(place).rev().filter(|offer| !offer.is_overlay() && !offer.pinned)
    }

    fn usual(&self, place: Option<&str>) -> Option<Arc<Kind>> {
        let base = self.bases(place).next()?;
        // Ignore a missed revision with a weaker scope: the base policy would answer even if the missed revision were
        // loaded.
        self.over(&base.member, place, |missed| !missed.pinned && missed.reach.rank() >= base.reach.rank())
    }

    /// Adds the policies that an object of a place can pin: the policies that apply in the place, and their
    /// predecessors.
    fn pins(&self, place: Option<&str>, answers: &mut Answers) {
        let mut seen = BTreeSet::new();
        for offer in self.here(place).rev().filter(|offer| !offer.is_overlay()) {
            for member in offer.member.line().filter(|member| member.policy.claim(self.of).is_some()) {
                if seen.insert(member.policy.id())
                    && let Some(kind) = self.over(member, place, |missed| missed.policy == member.policy.id().name)
                {
                    answers.pins.push((place.map(str::to_owned), kind));
                }
            }
        }
    }

    /// Stacks the overlays of the place on a base. The result also lists the missed revisions that it replaces: each
    /// missed policy for which `is_in_the_place_of` returns true, and all missed settings of the policies in the stack.
    fn over(
        &self,
        base: &Arc<Member>,
        place: Option<&str>,
        is_in_the_place_of: impl Fn(&Missed) -> bool,
    ) -> Option<Arc<Kind>> {
        let overlays = self.here(place).filter(|offer| offer.is_overlay() && !offer.pinned);
        let members: Vec<_> =
            std::iter::once(base).chain(overlays.map(|offer| &offer.member)).map(Arc::clone).collect();
        let named = |given: &Given| {
            let policy = given.tuning.layer.policy.as_deref();
            policy.is_none_or(|name| members.iter().any(|member| member.policy.id().name == name))
        };
        let tunings = self.given.iter().filter(|given| given.reach.holds(place) && named(given));
        let tunings = tunings.map(|given| Arc::clone(&given.tuning)).collect();
        let is_missed = |missed: &&Missed| match &*missed.kinds {
            [] => members.iter().any(|member| member.policy.id().name == missed.policy),
            kinds => kinds.contains(self.of) && is_in_the_place_of(missed),
        };
        let missed = self.missed.iter().filter(|missed| missed.reach.holds(place)).filter(is_missed);
        let missed = missed.map(|missed| missed.without.clone()).collect();
        // `below` contains the policies that are weaker than the base. If the base answers only for objects that pin
        // it, `below` contains all policies that answer for objects without a pin.
        let weaker = self.bases(place).position(|offer| Arc::ptr_eq(&offer.member, base)).map_or(0, |at| at + 1);
        let below = self.bases(place).skip(weaker).map(|offer| Arc::clone(&offer.member)).collect();
        let kind = Kind::new(self.of.clone(), members, tunings, Arc::clone(self.shared))?;
        Some(Arc::new(kind.above(below).in_the_stead_of(missed)))
    }
}
