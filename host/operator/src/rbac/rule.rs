//! One rule, and putting rules together.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Rights on resources of one API group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// The group; empty for the core group.
    pub group: String,
    /// Plurals, with their subresources.
    pub resources: BTreeSet<String>,
    /// Only objects of these names; none for all.
    pub names: BTreeSet<String>,
    /// What may be done.
    pub verbs: BTreeSet<&'static str>,
}

impl Rule {
    /// As it stands in a Role.
    pub fn manifest(&self) -> Value {
        let Self { group, resources, names, verbs } = self;
        let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
        if !names.is_empty() {
            rule["resourceNames"] = json!(names);
        }
        rule
    }
}

/// Rights as they come up.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Collected(BTreeMap<(String, String, BTreeSet<String>), BTreeSet<&'static str>>);

impl Collected {
    pub(super) fn add(&mut self, group: &str, resource: impl Into<String>, verbs: &[&'static str]) {
        self.add_named(group, resource, BTreeSet::new(), verbs);
    }

    pub(super) fn add_named(
        &mut self,
        group: &str,
        resource: impl Into<String>,
        names: BTreeSet<String>,
        verbs: &[&'static str],
    ) {
        self.0.entry((group.to_owned(), resource.into(), names)).or_default().extend(verbs);
    }

    /// Leaves out what others give already, for objects of all names.
    pub(super) fn leave_out(&mut self, others: &Self) {
        self.0.retain(|(group, resource, _), verbs| {
            let given = others.0.get(&(group.clone(), resource.clone(), BTreeSet::new()));
            given.is_none_or(|given| !verbs.is_subset(given))
        });
    }

    /// One rule for the resources of a group with which the same may be done, in a stable order.
    pub(super) fn rules(self) -> Vec<Rule> {
        let mut rules: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for ((group, resource, names), verbs) in self.0 {
            rules.entry((group, names, verbs)).or_default().insert(resource);
        }
        let mut rules: Vec<_> = rules
            .into_iter()
            .map(|((group, names, verbs), resources)| Rule { group, resources, names, verbs })
            .collect();
        rules.sort();
        rules
    }
}
