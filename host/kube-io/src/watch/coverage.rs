//! The watched types, derived from the claims of the active policies.

use std::collections::{BTreeMap, BTreeSet};

use kaos_objects::{ResourceType, Target, names::is_subdomain};

/// The combined claims on one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claimed {
    /// The types of the kind's children, including types that only earlier policies emitted.
    pub emits: BTreeSet<ResourceType>,
    /// The types that policies of the kind can name in needs.
    pub reads: BTreeSet<ResourceType>,
    /// Types that the policies use only if the cluster serves them. Each type in `wishes` is also in `emits` or in
    /// `reads`.
    pub wishes: BTreeSet<ResourceType>,
}

impl Claimed {
    /// Returns whether the claims contain a type.
    pub fn mentions(&self, of: &ResourceType) -> bool {
        self.emits.contains(of) || self.reads.contains(of) || self.wishes.contains(of)
    }

    /// Returns every type that the claims contain.
    pub fn types(&self) -> impl Iterator<Item = &ResourceType> {
        self.emits.iter().chain(&self.reads).chain(&self.wishes)
    }
}

/// The claims of all active policies, by claimed kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    primaries: BTreeMap<ResourceType, Claimed>,
}

/// How the operator watches a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// The operator watches all objects.
    Whole,
    /// The operator watches the objects with its own label.
    Own,
    /// The operator watches single objects while other objects need them.
    AsNeeded,
}

impl Coverage {
    /// Adds a claim on a kind. Merges several claims on one kind, for example the claims of a policy and of its
    /// overlays.
    pub fn add(&mut self, primary: &ResourceType, claim: Claimed) {
        let claimed = self.primaries.entry(primary.clone()).or_default();
        claimed.emits.extend(claim.emits);
        claimed.reads.extend(claim.reads);
        claimed.wishes.extend(claim.wishes);
    }

    /// Keeps watching a kind that no policy claims any more. Readiness ignores errors of the watch on this kind.
    pub fn keep(&mut self, primary: &ResourceType) {
        self.primaries.entry(primary.clone()).or_default();
    }

    /// Returns whether a kind is watched only because of [`keep`](Self::keep).
    pub(super) fn is_kept(&self, of: &ResourceType) -> bool {
        self.claimed(of) == Some(&Claimed::default())
    }

    /// Adds a type of children that an earlier policy emitted.
    pub fn add_emitted(&mut self, primary: &ResourceType, of: ResourceType) {
        if let Some(claimed) = self.primaries.get_mut(primary) {
            claimed.emits.insert(of);
        }
    }

    /// Adds the types that pods refer to by name, because the operator restarts the pods when the content of these
    /// objects changes.
    pub(super) fn follow_references(&mut self) {
        for claimed in self.primaries.values_mut() {
            claimed.reads.extend(["ConfigMap", "Secret"].map(|kind| ResourceType::new("v1", kind)));
        }
    }

    /// Returns the claimed kinds with their claims.
    pub fn primaries(&self) -> impl Iterator<Item = (&ResourceType, &Claimed)> {
        self.primaries.iter()
    }

    /// Returns the combined claims on a kind, or `None` if no policy claims the kind.
    pub fn claimed(&self, primary: &ResourceType) -> Option<&Claimed> {
        self.primaries.get(primary)
    }

    /// Returns whether a policy answers for the type.
    pub fn is_primary(&self, of: &ResourceType) -> bool {
        self.primaries.contains_key(of)
    }

    /// Returns whether a plan can contain the type.
    pub fn is_emitted(&self, of: &ResourceType) -> bool {
        self.primaries.values().any(|claimed| claimed.emits.contains(of))
    }

    /// Returns whether a need can name the type.
    pub fn is_read(&self, of: &ResourceType) -> bool {
        self.primaries.values().any(|claimed| claimed.reads.contains(of))
    }

    /// Returns whether every claim that contains the type also works without the type.
    pub(super) fn is_optional(&self, of: &ResourceType) -> bool {
        let wished = |claimed: &Claimed| !claimed.mentions(of) || claimed.wishes.contains(of);
        (self.is_kept(of) || !self.is_primary(of)) && self.primaries.values().all(wished)
    }

    /// Returns all claimed kinds, and all types in their claims.
    pub fn types(&self) -> BTreeSet<ResourceType> {
        self.primaries.iter().flat_map(|(of, claimed)| std::iter::once(of).chain(claimed.types())).cloned().collect()
    }

    /// Returns the claimed kind to which an owner reference refers, or `None` if no policy claims this kind. Ignores
    /// the version, because all versions of a kind show the same objects.
    pub(super) fn primary_of(&self, owner: &ResourceType) -> Option<&ResourceType> {
        let (exact, _) = self.primaries.get_key_value(owner).unzip();
        exact.or_else(|| self.primaries.keys().find(|of| of.kind == owner.kind && of.group() == owner.group()))
    }

    /// Returns how the operator watches a type.
    ///
    /// A guarded type can have two entries: one for children and one for needs.
    pub(super) fn manners(&self, of: &ResourceType) -> Vec<Manner> {
        let read = self.is_read(of);
        if self.is_primary(of) || (read && !is_guarded(of)) {
            return vec![Manner::Whole];
        }
        let own = self.is_emitted(of).then_some(Manner::Own);
        own.into_iter().chain(read.then_some(Manner::AsNeeded)).collect()
    }
}

/// Returns whether a type is guarded: the operator never watches or lists all objects of the type to answer needs. The
/// reason is that a cluster has too many of these objects, or that they are sensitive.
pub fn is_guarded(of: &ResourceType) -> bool {
    of.is_secret() || (of.group().is_empty() && of.kind == "ConfigMap")
}

/// Returns whether an object with the target's name can exist. The check concerns ConfigMaps and Secrets: the operator
/// sends their names in requests, and some of these names come unchecked from pod specs.
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
    fn emitted_types_are_watched_by_label_and_read_types_as_a_whole() {
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
