//! Checks the needs of a policy.

use std::collections::{BTreeMap, BTreeSet};

use super::{Breach, Rule, breaches::Breaches};
use crate::{
    contract::{Claim, Cluster, Fields, Need, Selector, Target},
    cut::cut,
    limits::Limits,
    manifest::{Grants, OPERATOR_NAMESPACE},
    names::{is_key, is_label_value, is_subdomain},
};

/// The maximum number of characters of a need's id. An id of this length can contain any kind, namespace and name.
const ID: usize = 512;

/// The maximum number of characters of a label in a message.
const SHOWN: usize = 128;
/// The maximum number of labels of one selector. A request to the API server contains all labels of a selector.
const LABELS: usize = 32;

/// Checks the needs of one round. The caller has already filled in missing namespaces. `known` contains the needs of
/// earlier rounds.
pub(crate) fn needs(needs: &[Need], known: &BTreeMap<String, Need>, claim: &Claim, limits: &Limits) -> Vec<Breach> {
    let mut breaches = Breaches::default();
    let mut seen = BTreeSet::new();
    for (i, Need { id, target, fields, optional: _ }) in needs.iter().enumerate() {
        let mut breach = |rule, message: String| breaches.add(rule, format_args!("needs[{i}]"), message);
        if id.is_empty() || id.len() > ID {
            breach(Rule::NeedsOrderly, format!("the id of a need must have 1 to {ID} characters"));
        }
        if !seen.insert(id) {
            breach(Rule::NeedsOrderly, format!("id {id} is used twice"));
        }
        match known.get(id) {
            Some(before) if before.target != *target => {
                breach(Rule::NeedsOrderly, format!("the need with id {id} had another target in an earlier round"));
            }
            Some(before) if before.fields != *fields => {
                breach(Rule::NeedsOrderly, format!("the need with id {id} listed other fields in an earlier round"));
            }
            Some(_) | None => {}
        }
        if let Err(error) = Fields::parse(fields) {
            breach(Rule::NeedsOrderly, error.to_string());
        }
        let of = target.of();
        if !claim.reads.contains(&of) {
            breach(Rule::ReadsClaimed, format!("{of} is not a type that the claim reads"));
        }
        if let Some(name) = unusable_name(target) {
            breach(Rule::ValidNames, format!("`{name}` is not a valid name"));
        }
        if of.is_secret() && !fields.is_empty() {
            let message = "a need of a Secret must not list fields: the answer has only facts about the Secret";
            breach(Rule::NeedsOrderly, message.to_owned());
        }
        if let Target::Labelled(Selector { labels, .. }) = target {
            if labels.len() > LABELS {
                breach(
                    Rule::NeedsOrderly,
                    format!("a selector has at most {LABELS} labels, but this one has {}", labels.len()),
                );
            }
            for (key, value) in labels.iter().filter(|(key, value)| !is_key(key) || !is_label_value(value)) {
                breach(
                    Rule::ValidNames,
                    format!("`{}` is not a valid label to select by", cut(&format!("{key}={value}"), SHOWN)),
                );
            }
        }
    }
    let new = seen.iter().filter(|id| !known.contains_key(id.as_str())).count();
    if known.len() + new > limits.needs {
        let mut all = vec![Breach {
            rule: Rule::NeedsOrderly,
            path: "needs".to_owned(),
            message: format!("the policy names more than {} needs in all rounds together", limits.needs),
        }];
        all.extend(breaches.into_vec());
        return all;
    }
    breaches.into_vec()
}

fn unusable_name(target: &Target) -> Option<&str> {
    let name = match target {
        Target::Named(reference) => Some(reference.name.as_str()),
        Target::Labelled(_) => None,
    };
    let usable = |name: &str| !name.is_empty() && name.len() <= 253 && !name.contains(['/', '%', '\0']);
    name.filter(|name| !usable(name)).or_else(|| target.namespace().filter(|namespace| !is_subdomain(namespace)))
}

/// Returns whether a policy is allowed to look up a target. Targets in the object's own namespace are always allowed.
/// The policy needs a grant for targets in other namespaces and for cluster-scoped targets.
pub(crate) fn may_read(
    target: &Target,
    cluster_scoped: bool,
    own_namespace: &str,
    grants: &Grants,
    cluster: &Cluster,
) -> Result<(), String> {
    if !cluster_scoped && target.namespace() == Some(own_namespace) {
        return Ok(());
    }
    let namespace = if cluster_scoped { None } else { target.namespace() };
    // Only the operator's owner writes objects in the operator's namespace. In any other namespace, a user could see
    // objects of other namespaces through the policy.
    let is_home = own_namespace == cluster.operator_namespace && !target.of().is_secret();
    if is_home && namespace.is_some_and(|namespace| grants.reads_namespace(namespace)) {
        return Ok(());
    }
    let granted = |name: &str| {
        grants.reads.iter().any(|grant| {
            let granted_namespace = match grant.namespace.as_deref() {
                Some(OPERATOR_NAMESPACE) => Some(cluster.operator_namespace.as_str()),
                other => other,
            };
            grant.of() == target.of()
                && granted_namespace == namespace
                && grant.names.iter().any(|granted| granted == name)
        })
    };
    let place = namespace.map_or_else(|| "the cluster".to_owned(), |namespace| format!("namespace {namespace}"));
    match target {
        Target::Named(reference) if granted(&reference.name) => Ok(()),
        Target::Named(reference) => Err(format!(
            "the policy has no grant to read {} {} in {place}: add a grant to grants.reads in policy.yaml",
            reference.kind, reference.name
        )),
        Target::Labelled(selector) => Err(format!(
            "the policy must not read {} in {place} by label: read the objects by name, with a grant in grants.reads; \
                 only for an object in the operator's namespace, grants.namespaces (default policies: \
                 --read-namespaces) allows labels",
            selector.of.kind
        )),
    }
}
