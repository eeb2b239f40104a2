//! Checks the fields of a pod spec that influence the choice of the pod's node.

use std::collections::BTreeSet;

use super::{
    found::{Findings, shown},
    manifest_value::ManifestValue,
};
use crate::names::is_label_value;

pub(super) fn check(spec: &ManifestValue<'_>, found: &mut Findings) {
    found.labels(&spec.field("nodeSelector"));
    let affinity = spec.field("affinity");
    node_affinity(&affinity.field("nodeAffinity"), found);
    pod_affinity(&affinity.field("podAffinity"), found);
    pod_affinity(&affinity.field("podAntiAffinity"), found);
    spec.list("tolerations").for_each(|toleration| tolerates(&toleration, found));
    spread(spec, found);
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn node_affinity(at: &ManifestValue<'_>, found: &mut Findings) {
    let required = at.field(REQUIRED);
    if required.is_there() {
        let terms = required.field("nodeSelectorTerms");
        if terms.items().next().is_none() {
            found.add(&terms, "is required: at least one term");
        }
        terms.items().for_each(|term| node_term(&term, true, found));
    }
    for term in at.list(PREFERRED) {
        weight(&term, found);
        node_term(&term.field("preference"), false, found);
    }
}

fn weight(term: &ManifestValue<'_>, found: &mut Findings) {
    let weight = term.field("weight");
    if weight.is_there() {
        found.between(&weight, 1, 100);
    } else {
        found.add(&weight, "is required: a number from 1 to 100");
    }
}

fn node_term(term: &ManifestValue<'_>, is_required: bool, found: &mut Findings) {
    for expression in term.list("matchExpressions") {
        selects(&expression, &["Gt", "Lt"], is_required, found);
    }
    for field in term.list("matchFields") {
        let (key, operator) = (field.field("key"), field.field("operator"));
        if key.text() != "metadata.name" {
            found.add(&key, format!("a selector cannot use {}: use metadata.name", shown(&key)));
        }
        if !matches!(operator.text(), "In" | "NotIn") {
            found.add(&operator, format!("{} is not one of In, NotIn", shown(&operator)));
        }
        if field.list("values").count() != 1 {
            found.add(&field.field("values"), "must have exactly one value");
        }
        field.list("values").for_each(|value| found.name(&value));
    }
}

/// Checks an expression of a selector. `further` are operators that label selectors do not have.
fn selects(expression: &ManifestValue<'_>, further: &[&str], values_are_labels: bool, found: &mut Findings) {
    let (operator, values) = (expression.field("operator"), expression.field("values"));
    let count = values.items().count();
    match operator.text() {
        "In" | "NotIn" if count == 0 => found.add(&values, "is required for the operators In and NotIn"),
        "Exists" | "DoesNotExist" if count > 0 => {
            found.add(&values, "is not allowed with the operators Exists and DoesNotExist: remove it");
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other if further.contains(&other) => {
            if count != 1 {
                found.add(&values, "must have exactly one value for the operators Gt and Lt");
            }
        }
        _ => {
            let all: Vec<&str> = ["In", "NotIn", "Exists", "DoesNotExist"].iter().chain(further).copied().collect();
            found.add(&operator, format!("{} is not one of {}", shown(&operator), all.join(", ")));
        }
    }
    let key = expression.field("key");
    found.key(&key, key.text());
    if values_are_labels {
        values.items().for_each(|value| found.label_value(&value));
    }
}

/// Checks a label selector.
pub(super) fn selector(at: &ManifestValue<'_>, found: &mut Findings) {
    found.labels(&at.field("matchLabels"));
    at.list("matchExpressions").for_each(|expression| selects(&expression, &[], true, found));
}

fn pod_affinity(at: &ManifestValue<'_>, found: &mut Findings) {
    at.list(REQUIRED).for_each(|term| pod_term(&term, found));
    for term in at.list(PREFERRED) {
        weight(&term, found);
        pod_term(&term.field("podAffinityTerm"), found);
    }
}

fn pod_term(term: &ManifestValue<'_>, found: &mut Findings) {
    selector(&term.field("labelSelector"), found);
    selector(&term.field("namespaceSelector"), found);
    term.list("namespaces").for_each(|name| {
        found.label(&name);
    });
    let key = term.field("topologyKey");
    if found.needs(&key, "the node label that defines the topology") {
        found.key(&key, key.text());
    }
    label_keys(term, found);
}

/// Checks the fields `matchLabelKeys` and `mismatchLabelKeys`. Kubernetes accepts these fields only together with a
/// selector.
fn label_keys(at: &ManifestValue<'_>, found: &mut Findings) {
    let selector = at.field("labelSelector");
    for field in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = at.field(field);
        if keys.items().next().is_some() && !selector.is_there() {
            found.add(&keys, "needs a labelSelector");
        }
        keys.items().for_each(|key| found.key(&key, key.text()));
    }
    let others: BTreeSet<&str> = at.list("mismatchLabelKeys").map(|key| key.text()).collect();
    for key in at.list("matchLabelKeys") {
        if others.contains(key.text()) {
            found.add(&key, format!("{} is also in mismatchLabelKeys", shown(&key)));
        }
    }
}

fn tolerates(at: &ManifestValue<'_>, found: &mut Findings) {
    let (key, operator, value, effect) = (at.field("key"), at.field("operator"), at.field("value"), at.field("effect"));
    if !key.text().is_empty() {
        found.key(&key, key.text());
    } else if operator.text() != "Exists" {
        found.add(&operator, "must be Exists if there is no key");
    }
    if at.field("tolerationSeconds").is_there() && effect.text() != "NoExecute" {
        found.add(&effect, "must be NoExecute if there are tolerationSeconds");
    }
    match operator.text() {
        "" | "Equal" if !is_label_value(value.text()) => found.label_value(&value),
        "Exists" if !value.text().is_empty() => found.add(&value, "is not allowed with the operator Exists: remove it"),
        "" | "Equal" | "Exists" => {}
        "Lt" | "Gt" if value.text().parse::<i64>().is_ok() => {}
        "Lt" | "Gt" => found.add(&value, format!("{} is not a whole number, which Lt and Gt need", shown(&value))),
        _ => found.add(&operator, format!("{} is not one of Equal, Exists", shown(&operator))),
    }
    found.one_of(&effect, &["NoSchedule", "PreferNoSchedule", "NoExecute"]);
}

fn spread(spec: &ManifestValue<'_>, found: &mut Findings) {
    let constraints = spec.field("topologySpreadConstraints");
    found.differ(&constraints, &[("topologyKey", ""), ("whenUnsatisfiable", "")]);
    for constraint in constraints.items() {
        let (skew, least) = (constraint.field("maxSkew"), constraint.field("minDomains"));
        if skew.is_there() {
            found.at_least(&skew, 1);
        } else {
            found.add(&skew, "is required: a number of at least 1");
        }
        found.needs(&constraint.field("topologyKey"), "the node label that defines the topology");
        let action = constraint.field("whenUnsatisfiable");
        if found.needs(&action, "DoNotSchedule or ScheduleAnyway") {
            found.exactly_one_of(&action, &["DoNotSchedule", "ScheduleAnyway"]);
        }
        found.at_least(&least, 1);
        if least.is_there() && action.text() != "DoNotSchedule" {
            found.add(&least, "needs whenUnsatisfiable: DoNotSchedule");
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            found.exactly_one_of(&constraint.field(policy), &["Ignore", "Honor"]);
        }
        selector(&constraint.field("labelSelector"), found);
        label_keys(&constraint, found);
    }
}
