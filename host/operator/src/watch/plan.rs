//! One watch: of which objects, where, and how.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use kaos_policy::{
    contract::{ResourceType, Target},
    stamp,
};

use super::{coverage::is_guarded, item::Extract, needs::is_of};

/// Where the operator works.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Scope {
    /// In every namespace.
    #[default]
    All,
    /// In these, with Roles only: nothing is asked of the cluster as a whole.
    Listed(BTreeSet<String>),
}

impl Scope {
    /// Whether a namespace is within it.
    pub fn holds(&self, namespace: &str) -> bool {
        match self {
            Self::All => true,
            Self::Listed(namespaces) => namespaces.contains(namespace),
        }
    }

    /// The namespaces that are watched one by one; `None` is all at once. Nothing for what is not in a namespace when
    /// namespaces are listed.
    pub(super) fn places(&self, namespaced: bool) -> Vec<Option<String>> {
        match self {
            Self::All => vec![None],
            Self::Listed(namespaces) if namespaced => namespaces.iter().cloned().map(Some).collect(),
            Self::Listed(_) => Vec::new(),
        }
    }
}

/// One watch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Spec {
    pub(super) of: ResourceType,
    /// Without one: everywhere.
    pub(super) namespace: Option<String>,
    pub(super) select: Select,
}

/// Which objects of a type and a place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Select {
    /// All.
    Whole,
    /// Those with the operator's label.
    Own,
    /// One.
    Named(String),
    /// Those with labels.
    Labelled(Vec<(String, String)>),
    /// The metadata of one whose name somebody wants and somebody else has.
    Contested(String),
    /// Those that are needed, when they are many: the metadata of all is watched, and of it at most the labels are kept.
    Wide,
}

impl Spec {
    pub(super) fn new(of: &ResourceType, namespace: Option<String>, select: Select) -> Self {
        Self { of: of.clone(), namespace, select }
    }

    /// Whether only metadata is watched, and what is needed read one by one.
    pub(super) fn by_metadata(&self) -> bool {
        match self.select {
            Select::Wide => true,
            Select::Named(_) => self.of.is_secret(),
            _ => false,
        }
    }

    /// Whether its requests ask for metadata alone.
    pub(super) fn is_partial(&self) -> bool {
        self.by_metadata() || matches!(self.select, Select::Contested(_))
    }

    /// Whether this is the store of the type, not one of its needed objects.
    pub(super) fn is_store(&self) -> bool {
        matches!(self.select, Select::Whole | Select::Own)
    }

    /// The label selector of its requests.
    pub(super) fn labels(&self) -> Option<String> {
        match &self.select {
            Select::Own => Some(format!("{}={}", stamp::MANAGED_BY, stamp::MANAGER)),
            Select::Labelled(labels) => {
                let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                Some(pairs.join(","))
            }
            _ => None,
        }
    }

    /// The field selector of its requests.
    pub(super) fn fields(&self) -> Option<String> {
        match &self.select {
            Select::Named(name) | Select::Contested(name) => Some(format!("metadata.name={name}")),
            _ => None,
        }
    }

    /// Whether an answer to a target may be found here.
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

/// What is needed of a guarded type in one namespace.
#[derive(Default)]
struct Needed<'a> {
    names: Vec<&'a str>,
    selectors: Vec<&'a [(String, String)]>,
}

/// The watches of one guarded type for what is needed of it, and what is kept of their objects: one for each name and each
/// label selector, or the metadata of a whole namespace where more than `most` names or selectors are needed in it. Going
/// back takes half as many, so that it does not change with every object. `wide` says what a namespace's metadata is watched
/// for now, if it is.
pub(super) fn as_needed<'a>(
    of: &ResourceType,
    targets: impl Iterator<Item = &'a Target>,
    most: impl Fn(&str) -> usize,
    wide: impl Fn(&str) -> Option<Extract>,
) -> Vec<(Spec, Extract)> {
    debug_assert!(is_guarded(of), "other types are watched as a whole");
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
