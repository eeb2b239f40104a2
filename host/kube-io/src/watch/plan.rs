//! The description of one watch: which objects it covers, in which namespace, and how.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use kaos_objects::{ResourceType, Target, metadata};

use super::{cached_object::Extract, coverage::is_guarded, needs::is_of};

/// The namespaces in which the operator works.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scope {
    /// The operator works in every namespace.
    #[default]
    All,
    /// The operator works only in these namespaces. The operator has Roles in these namespaces and no cluster-wide
    /// rights, so it sends no request for anything cluster-scoped.
    Listed(BTreeSet<String>),
}

impl Scope {
    /// Returns whether a namespace is in the scope.
    pub fn holds(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Listed(namespaces) => namespaces.contains(namespace),
        }
    }

    /// Returns the namespaces that need separate watches. `None` means one watch for all namespaces. The list is empty
    /// for a cluster-scoped type if the scope lists namespaces.
    pub(super) fn places(&self, namespaced: bool) -> Vec<Option<String>> {
        match self {
            Self::All => vec![None],
            Self::Listed(namespaces) if namespaced => namespaces.iter().cloned().map(Some).collect(),
            Self::Listed(_) => Vec::new(),
        }
    }
}

/// The description of one watch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Spec {
    pub(super) of: ResourceType,
    /// The namespace. `None` means all namespaces.
    pub(super) namespace: Option<String>,
    pub(super) select: Select,
}

/// The objects of a type and a namespace that a watch selects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Select {
    /// The watch covers all objects.
    Whole,
    /// The watch covers the objects with the operator's label.
    Own,
    /// The watch covers the object of this name.
    Named(String),
    /// The watch covers the objects with these labels.
    Labelled(Vec<(String, String)>),
    /// The watch covers the metadata of the object of this name, because the plan for an object of another owner
    /// contains a child with this name.
    Contested(String),
    /// The watch covers the metadata of all objects, because there are many needs. Of this metadata, the operator
    /// stores names, UIDs, versions and, if selectors need them, hashes of the labels.
    Wide,
}

impl Spec {
    pub(super) fn new(of: &ResourceType, namespace: Option<String>, select: Select) -> Self {
        Self { of: of.clone(), namespace, select }
    }

    /// Returns whether the watch covers only metadata, so that the operator must read needed objects one by one.
    pub(super) fn by_metadata(&self) -> bool {
        match self.select {
            Select::Wide => true,
            Select::Named(_) => self.of.is_secret(),
            _ => false,
        }
    }

    /// Returns whether the requests of the watch ask for metadata only.
    pub(super) fn is_partial(&self) -> bool {
        self.by_metadata() || matches!(self.select, Select::Contested(_))
    }

    /// Returns whether the watch is the store of its type, and not a watch for needs.
    pub(super) fn is_store(&self) -> bool {
        matches!(self.select, Select::Whole | Select::Own)
    }

    /// Returns the label selector of the watch's requests, or `None` if the watch selects by no label.
    pub(super) fn labels(&self) -> Option<String> {
        match &self.select {
            Select::Own => Some(format!("{}={}", metadata::MANAGED_BY, metadata::MANAGER)),
            Select::Labelled(labels) => {
                let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                Some(pairs.join(","))
            }
            _ => None,
        }
    }

    /// Returns the field selector of the watch's requests, or `None` if the watch selects by no name.
    pub(super) fn fields(&self) -> Option<String> {
        match &self.select {
            Select::Named(name) | Select::Contested(name) => Some(format!("metadata.name={name}")),
            _ => None,
        }
    }

    /// Returns whether the watch can answer a target.
    pub(super) fn answers(&self, target: &Target) -> bool {
        let here = is_of(target, &self.of) && self.namespace.as_deref().is_none_or(|at| Some(at) == target.namespace());
        here && match (&self.select, target) {
            (Select::Whole | Select::Wide, _) => true,
            (Select::Named(name), Target::Named(reference)) => *name == reference.name,
            (Select::Labelled(labels), Target::Labelled(selector)) => *labels == selector.labels,
            _ => false,
        }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.of)?;
        if let Some(namespace) = &self.namespace {
            write!(f, " in namespace {namespace}")?;
        }
        match &self.select {
            Select::Named(name) | Select::Contested(name) => write!(f, " {name}"),
            Select::Labelled(_) => write!(f, " by label"),
            _ => Ok(()),
        }
    }
}

/// The needs of a guarded type in one namespace.
#[derive(Default)]
struct Needed<'a> {
    names: Vec<&'a str>,
    selectors: Vec<&'a [(String, String)]>,
}

/// Returns the watches for the needs of a guarded type, with the facts to extract. Usually each name and each selector
/// has its own watch. A namespace with more than `most` names or selectors gets one metadata watch instead, and gets
/// separate watches again only at half that number. So one more or one less object does not switch the namespace back
/// and forth. The function `wide` returns the facts that the current metadata watch of a namespace extracts, or `None`
/// if it has none.
pub(super) fn as_needed<'a>(
    of: &ResourceType,
    targets: impl Iterator<Item = &'a Target>,
    most: impl Fn(&str) -> usize,
    wide: impl Fn(&str) -> Option<Extract>,
) -> Vec<(Spec, Extract)> {
    debug_assert!(is_guarded(of), "the operator watches other types as a whole");
    let mut needed: BTreeMap<&str, Needed<'_>> = BTreeMap::new();
    for target in targets {
        let Some(namespace) = target.namespace() else { continue };
        match target {
            Target::Named(reference) => needed.entry(namespace).or_default().names.push(&reference.name),
            Target::Labelled(selector) if !of.is_secret() => {
                needed.entry(namespace).or_default().selectors.push(&selector.labels);
            }
            Target::Labelled(_) => {}
        }
    }
    let mut specs = Vec::new();
    for (namespace, Needed { names, selectors }) in needed {
        let (most, wide) = (most(namespace), wide(namespace));
        let limit = |is_wide| if is_wide { most / 2 } else { most };
        let keeps_labels = selectors.len() > limit(wide.is_some_and(|wide| wide.labels));
        let mut add = |select, labels| {
            let spec = Spec::new(of, Some(namespace.to_owned()), select);
            specs.push((spec, Extract { labels, ..Extract::default() }));
        };
        if keeps_labels || names.len() > limit(wide.is_some()) {
            add(Select::Wide, keeps_labels);
        } else {
            for name in names {
                add(Select::Named(name.to_owned()), false);
            }
        }
        if !keeps_labels {
            for labels in selectors {
                add(Select::Labelled(labels.to_owned()), true);
            }
        }
    }
    specs
}
