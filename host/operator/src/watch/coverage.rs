//! Which types are watched and why: what the policies in force claim, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::{
    contract::{Claim, ResourceType, Target},
    names::is_subdomain,
};

/// What the claims on one primary type come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claimed {
    /// Types of its children, also those that only earlier policies emitted.
    pub emits: BTreeSet<ResourceType>,
    /// Types that its needs name.
    pub reads: BTreeSet<ResourceType>,
    /// Types that are used where they are served; each is in one of the others too.
    pub wishes: BTreeSet<ResourceType>,
}

impl Claimed {
    /// Whether a type plays any part.
    pub fn mentions(&self, of: &ResourceType) -> bool {
        self.emits.contains(of) || self.reads.contains(of) || self.wishes.contains(of)
    }

    /// Every type that plays a part.
    pub fn types(&self) -> impl Iterator<Item = &ResourceType> {
        self.emits.iter().chain(&self.reads).chain(&self.wishes)
    }
}

/// What all policies in force claim, by primary type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    primaries: BTreeMap<ResourceType, Claimed>,
}

/// How the objects of a type are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// All of them.
    Whole,
    /// Those that carry the operator's label.
    Own,
    /// Not as a type, but one by one as they are needed.
    AsNeeded,
}

impl Coverage {
    /// The coverage of claims; several on the same type (a base and its overlays) are joined.
    pub fn of<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Self {
        let mut coverage = Self::default();
        for claim in claims {
            coverage.add(claim);
        }
        coverage
    }

    /// Adds one claim.
    pub fn add(&mut self, claim: &Claim) {
        let claimed = self.primaries.entry(claim.primary.clone()).or_default();
        claimed.emits.extend(claim.emits.iter().cloned());
        claimed.reads.extend(claim.reads.iter().cloned());
        claimed.wishes.extend(claim.wishes.iter().cloned());
    }

    /// Keeps a primary type in view although nobody claims it. It is no harm if it cannot be watched.
    pub fn keep(&mut self, primary: &ResourceType) {
        self.primaries.entry(primary.clone()).or_default();
    }

    /// Whether a type is only kept in view.
    pub(super) fn is_kept(&self, of: &ResourceType) -> bool {
        self.claimed(of) == Some(&Claimed::default())
    }

    /// Adds a type of children that an earlier policy left behind.
    pub fn add_emitted(&mut self, primary: &ResourceType, of: ResourceType) {
        if let Some(claimed) = self.primaries.get_mut(primary) {
            claimed.emits.insert(of);
        }
    }

    /// Has everything followed that pods may refer to by name: what it holds is to roll them.
    pub(super) fn follow_references(&mut self) {
        for claimed in self.primaries.values_mut() {
            claimed.reads.extend(["ConfigMap", "Secret"].map(|kind| ResourceType::new("v1", kind)));
        }
    }

    /// The primary types and what is claimed for each.
    pub fn primaries(&self) -> impl Iterator<Item = (&ResourceType, &Claimed)> {
        self.primaries.iter()
    }

    /// What is claimed for a primary type.
    pub fn claimed(&self, primary: &ResourceType) -> Option<&Claimed> {
        self.primaries.get(primary)
    }

    /// Whether a policy answers for the type.
    pub fn is_primary(&self, of: &ResourceType) -> bool {
        self.primaries.contains_key(of)
    }

    /// Whether any plan may contain it.
    pub fn is_emitted(&self, of: &ResourceType) -> bool {
        self.primaries.values().any(|claimed| claimed.emits.contains(of))
    }

    /// Whether any need may name it.
    pub fn is_read(&self, of: &ResourceType) -> bool {
        self.primaries.values().any(|claimed| claimed.reads.contains(of))
    }

    /// Whether everybody who mentions the type does without it where it is not served.
    pub(super) fn is_optional(&self, of: &ResourceType) -> bool {
        let wished = |claimed: &Claimed| !claimed.mentions(of) || claimed.wishes.contains(of);
        (self.is_kept(of) || !self.is_primary(of)) && self.primaries.values().all(wished)
    }

    /// All types that play any part.
    pub fn types(&self) -> BTreeSet<ResourceType> {
        self.primaries.iter().flat_map(|(of, claimed)| std::iter::once(of).chain(claimed.types())).cloned().collect()
    }

    /// The primary type that an owner reference means: versions of one kind are views on the same object.
    pub(super) fn primary_of(&self, owner: &ResourceType) -> Option<&ResourceType> {
        let (exact, _) = self.primaries.get_key_value(owner).unzip();
        exact.or_else(|| self.primaries.keys().find(|of| of.kind == owner.kind && of.group() == owner.group()))
    }

    /// The ways in which a type is watched; a type may be watched in two.
    pub(super) fn manners(&self, of: &ResourceType) -> Vec<Manner> {
        let read = self.is_read(of);
        if self.is_primary(of) || (read && !is_guarded(of)) {
            return vec![Manner::Whole];
        }
        let own = self.is_emitted(of).then_some(Manner::Own);
        own.into_iter().chain(read.then_some(Manner::AsNeeded)).collect()
    }
}

/// Types of which a cluster holds so many, or so sensitive ones, that they are never watched or listed as a whole to be
/// read.
pub(crate) fn is_guarded(of: &ResourceType) -> bool {
    of.is_secret() || (of.group().is_empty() && of.kind == "ConfigMap")
}

/// Whether an API server can have what a target names. Names of ConfigMaps and Secrets become part of requests, and come
/// from specs of pods, too, which nobody checks for that.
pub(super) fn can_exist(target: &Target) -> bool {
    match target {
        Target::Named(reference) => !is_guarded(&reference.of()) || is_subdomain(&reference.name),
        Target::Labelled(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> ResourceType {
        let (api_version, kind) = text.split_once(' ').unwrap();
        ResourceType::new(api_version, kind)
    }

    fn coverage(primary: &str, emits: &[&str], reads: &[&str]) -> Coverage {
        let list = |types: &[&str]| types.iter().map(|text| of(text)).collect();
        Coverage::of(&[Claim {
            primary: of(primary),
            emits: list(emits),
            reads: list(reads),
            wishes: Vec::new(),
            finalizer: None,
            retired_finalizers: Vec::new(),
            samples: Vec::new(),
            extra: "{}".to_owned(),
        }])
    }

    #[test]
    fn what_is_emitted_is_watched_by_label_and_what_is_read_as_a_whole() {
        let coverage = coverage("x.io/v1 Widget", &["apps/v1 Deployment", "x.io/v1 Gadget"], &["x.io/v1 Gadget"]);
        assert_eq!(coverage.manners(&of("x.io/v1 Widget")), [Manner::Whole]);
        assert_eq!(coverage.manners(&of("apps/v1 Deployment")), [Manner::Own]);
        assert_eq!(coverage.manners(&of("x.io/v1 Gadget")), [Manner::Whole]);
    }

    #[test]
    fn config_maps_and_secrets_are_never_watched_as_a_whole_to_be_read() {
        let coverage = coverage("x.io/v1 Widget", &["v1 ConfigMap"], &["v1 ConfigMap", "v1 Secret"]);
        assert_eq!(coverage.manners(&of("v1 ConfigMap")), [Manner::Own, Manner::AsNeeded]);
        assert_eq!(coverage.manners(&of("v1 Secret")), [Manner::AsNeeded]);
    }

    #[test]
    fn an_owner_of_another_version_is_the_same_kind() {
        let coverage = coverage("x.io/v1 Widget", &[], &[]);
        assert_eq!(coverage.primary_of(&of("x.io/v1alpha1 Widget")), Some(&of("x.io/v1 Widget")));
        assert_eq!(coverage.primary_of(&of("y.io/v1 Widget")), None);
    }
}
