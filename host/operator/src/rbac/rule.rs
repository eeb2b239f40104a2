//! Defines an RBAC rule, and turns a collection of rights into RBAC rules.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// Rights on resources of one API group.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// The API group. Empty for the core group.
    pub group: String,
    /// The plurals of the resources, and subresources as `plural/subresource`.
    pub resources: BTreeSet<String>,
    /// The names of the objects. Empty for all objects.
    pub names: BTreeSet<String>,
    /// The allowed verbs.
    pub verbs: BTreeSet<&'static str>,
}

impl Rule {
    /// Returns the RBAC rule in the form that a Role contains.
    pub fn manifest(&self) -> Value {
        let Self { group, resources, names, verbs } = self;
        let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
        if !names.is_empty() {
            rule["resourceNames"] = json!(names);
        }
        rule
    }
}

/// An API group, a resource, and the names of its objects. An empty set of names means all objects.
type NamedResource = (String, String, BTreeSet<String>);

/// A collection of rights, from which [`Self::rules`] makes RBAC rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Collected(BTreeMap<NamedResource, BTreeSet<&'static str>>);

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

    /// Removes the rights that `others` already contains.
    pub(super) fn leave_out(&mut self, others: &Self) {
        let gives = |right: &NamedResource, verb: &str| {
            others.0.iter().any(|(other, verbs)| is_within(right, other) && verbs.contains(verb))
        };
        self.retain(|right, verb| !gives(right, verb));
    }

    /// Removes each right that another entry also gives, for more objects.
    fn leave_out_implied(&mut self) {
        let all = self.clone();
        let gives = |right: &NamedResource, verb: &str| {
            let mut others = all.0.iter().filter(|(other, _)| *other != right);
            others.any(|(other, verbs)| is_within(right, other) && verbs.contains(verb))
        };
        self.retain(|right, verb| !gives(right, verb));
    }

    fn retain(&mut self, keep: impl Fn(&NamedResource, &str) -> bool) {
        self.0.retain(|right, verbs| {
            verbs.retain(|verb| keep(right, verb));
            !verbs.is_empty()
        });
    }

    /// Returns the rules. Each rule combines the resources of an API group that have the same verbs and names of
    /// objects. The order is stable.
    pub(super) fn rules(mut self) -> Vec<Rule> {
        self.leave_out_implied();
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

/// Returns whether the second right covers all objects of the first right.
fn is_within((group, resource, names): &NamedResource, (other_group, other_resource, others): &NamedResource) -> bool {
    let among = others.is_empty() || (!names.is_empty() && names.is_subset(others));
    group == other_group && resource == other_resource && among
}
