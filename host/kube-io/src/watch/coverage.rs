//! The watched types, derived from the claims of the active policies.

use std::collections::{BTreeMap, BTreeSet};

use kaos_objects::{ResourceType, Target, names::is_subdomain};

/// The combined claims on one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claimed {
    /// The types of its children, including those that only earlier policies emitted.
    pub emits: BTreeSet<ResourceType>,
    /// The types of its needs.
    pub reads: BTreeSet<ResourceType>,
    /// Types that are used only if they are served. Each is also in one of the other sets.
    pub wishes: BTreeSet<ResourceType>,
}

impl Claimed {
    /// Whether the claims involve a type.
    pub fn mentions(&self, of: &ResourceType) -> bool {
        self.emits.contains(of) || self.reads.contains(of) || self.wishes.contains(of)
    }

    /// Returns every type that the claims involve.
    pub fn types(&self) -> impl Iterator<Item = &ResourceType> {
        self.emits.iter().chain(&self.reads).chain(&self.wishes)
    }
}

/// The claims of all active policies, by claimed kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    primaries: BTreeMap<ResourceType, Claimed>,
}

/// The manner in which a type is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// All objects.
    Whole,
    /// The objects with the operator's label.
    Own,
    /// Single objects, while they are needed.
    AsNeeded,
}

impl Coverage {
    /// Adds a claim on a kind. Several claims on one kind are merged, for example a policy and its overlays.
    pub fn add(&mut self, primary: &ResourceType, claim: Claimed) {
        let claimed = self.primaries.entry(primary.clone()).or_default();
        claimed.emits.extend(claim.emits);
        claimed.reads.extend(claim.reads);
        claimed.wishes.extend(claim.wishes);
    }

    /// Keeps watching a kind without a claim. An error of that watch does no harm.
    pub fn keep(&mut self, primary: &ResourceType) {
        self.primaries.entry(primary.clone()).or_default();
    }

    /// Whether a kind is watched only because of [`keep`](Self::keep).
    pub(super) fn is_kept(&self, of: &ResourceType) -> bool {
        self.claimed(of) == Some(&Claimed::default())
    }

    /// Adds a type of children from an earlier policy.
    pub fn add_emitted(&mut self, primary: &ResourceType, of: ResourceType) {
        if let Some(claimed) = self.primaries.get_mut(primary) {
            claimed.emits.insert(of);
        }
    }

    /// Adds the types that pods refer to by name, because a change of their content restarts the pods.
    pub(super) fn follow_references(&mut self) {
        for claimed in self.primaries.values_mut() {
            claimed.reads.extend(["ConfigMap", "Secret"].map(|kind| ResourceType::new("v1", kind)));
        }
    }

    /// Returns the claimed kinds with their claims.
    pub fn primaries(&self) -> impl Iterator<Item = (&ResourceType, &Claimed)> {
        self.primaries.iter()
    }

    /// Returns the claims on a kind.
    pub fn claimed(&self, primary: &ResourceType) -> Option<&Claimed> {
        self.primaries.get(primary)
    }

    /// Whether a policy answers for the type.
    pub fn is_primary(&self, of: &ResourceType) -> bool {
        self.primaries.contains_key(of)
    }

    /// Whether a plan may contain the type.
    pub fn is_emitted(&self, of: &ResourceType) -> bool {
        self.primaries.values().any(|claimed| claimed.emits.contains(of))
    }

    /// Whether a need may name the type.
    pub fn is_read(&self, of: &ResourceType) -> bool {
        self.primaries.values().any(|claimed| claimed.reads.contains(of))
    }

    /// Whether every claim that involves the type works without it.
    pub(super) fn is_optional(&self, of: &ResourceType) -> bool {
        let wished = |claimed: &Claimed| !claimed.mentions(of) || claimed.wishes.contains(of);
        (self.is_kept(of) || !self.is_primary(of)) && self.primaries.values().all(wished)
    }

    /// Returns all involved types.
    pub fn types(&self) -> BTreeSet<ResourceType> {
        self.primaries.iter().flat_map(|(of, claimed)| std::iter::once(of).chain(claimed.types())).cloned().collect()
    }

    /// Returns the claimed kind that an owner reference means. The versions of a kind are views of the same objects.
    pub(super) fn primary_of(&self, owner: &ResourceType) -> Option<&ResourceType> {
        let (exact, _) = self.primaries.get_key_value(owner).unzip();
        exact.or_else(|| self.primaries.keys().find(|of| of.kind == owner.kind && of.group() == owner.group()))
    }

    /// Returns the manners of watching a type. A type may have two.
    pub(super) fn manners(&self, of: &ResourceType) -> Vec<Manner> {
        let read = self.is_read(of);
        if self.is_primary(of) || (read && !is_guarded(of)) {
            return vec![Manner::Whole];
        }
        let own = self.is_emitted(of).then_some(Manner::Own);
        own.into_iter().chain(read.then_some(Manner::AsNeeded)).collect()
    }
}

/// Whether a type is never watched or listed in full for reading. Clusters hold too many such objects, or sensitive
/// ones.
pub fn is_guarded(of: &ResourceType) -> bool {
    of.is_secret() || (of.group().is_empty() && of.kind == "ConfigMap")
}

/// Whether a target's name is valid in the API server. Names of ConfigMaps and Secrets become part of requests, and
/// some come unchecked from pod specs.
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
        let mut coverage = Coverage::default();
        coverage.add(&of(primary), Claimed { emits: list(emits), reads: list(reads), ..Claimed::default() });
        coverage
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
