//! Checks a workload: the number of its pods, their labels and their template.

use super::{
    found::{Findings, shown},
    manifest_value::ManifestValue,
    pod, quantity, scheduling,
};

/// Checks a Deployment.
pub(super) fn deployment(manifest: &ManifestValue<'_>, found: &mut Findings) {
    let spec = manifest.field("spec");
    numbers(&spec, found);
    rollout(&spec.field("strategy"), found);
    let (patience, ready) = (spec.field("progressDeadlineSeconds"), spec.field("minReadySeconds"));
    found.at_least(&patience, 0);
    if patience.number().is_some_and(|patience| patience <= ready.number().unwrap_or_default()) {
        found.add(&patience, "must be more than minReadySeconds");
    }
    labels(&spec, found);
    lasting(&spec.field("template").field("spec"), found);
    template(&spec.field("template"), found);
}

/// Checks a `StatefulSet` or a `DaemonSet`.
pub(super) fn set(manifest: &ManifestValue<'_>, found: &mut Findings) {
    let spec = manifest.field("spec");
    numbers(&spec, found);
    labels(&spec, found);
    lasting(&spec.field("template").field("spec"), found);
    let mut claims = Vec::new();
    for claim in spec.list("volumeClaimTemplates") {
        claims.push(claim.field("metadata").text_of("name"));
        // Of the content of a claim template, an API server checks only the quantities.
        for (_, amount) in claim.field("spec").field("resources").field("requests").entries() {
            quantity::check(&amount, found);
        }
    }
    template_with_claims(&spec.field("template"), &claims, found);
}

/// Checks a pod template.
pub(super) fn template(template: &ManifestValue<'_>, found: &mut Findings) {
    template_with_claims(template, &[], found);
}

fn template_with_claims<'a>(template: &ManifestValue<'a>, claims: &[&'a str], found: &mut Findings) {
    found.labels(&template.field("metadata").field("labels"));
    pod::check_with_claims(&template.field("spec"), true, claims, found);
}

fn numbers(spec: &ManifestValue<'_>, found: &mut Findings) {
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit"] {
        found.at_least(&spec.field(field), 0);
    }
}

/// Checks that the pods of a Deployment, `StatefulSet` or `DaemonSet` always restart.
fn lasting(pod: &ManifestValue<'_>, found: &mut Findings) {
    let policy = pod.field("restartPolicy");
    if !matches!(policy.text(), "" | "Always") {
        found.add(&policy, format!("{} is not allowed in long-running pods: write Always", shown(&policy)));
    }
    let deadline = pod.field("activeDeadlineSeconds");
    if deadline.is_there() {
        found.add(&deadline, "is not allowed in long-running pods: remove it");
    }
}

/// Checks that the selector matches the labels of the template.
fn labels(spec: &ManifestValue<'_>, found: &mut Findings) {
    let (selector, labels) = (spec.field("selector"), spec.field("template").field("metadata").field("labels"));
    let wanted = selector.field("matchLabels");
    if wanted.entries().next().is_none() && selector.list("matchExpressions").next().is_none() {
        found.add(&selector, "must name at least one label that the pods have");
    }
    scheduling::selector(&selector, found);
    for (name, value) in wanted.entries() {
        if labels.text_of(name) != value.text() || !labels.field(name).is_there() {
            found.add(&value, "is not a label of the pods in the template");
        }
    }
}

fn rollout(strategy: &ManifestValue<'_>, found: &mut Findings) {
    found.one_of(&strategy.field("type"), &["RollingUpdate", "Recreate"]);
    let steps = strategy.field("rollingUpdate");
    if strategy.text_of("type") == "Recreate" && steps.is_there() {
        return found.add(&steps, "is not allowed with the type Recreate: remove it");
    }
    let percent = |at: &ManifestValue<'_>| at.text().strip_suffix('%').and_then(|digits| digits.parse::<u32>().ok());
    for step in ["maxSurge", "maxUnavailable"].map(|field| steps.field(field)) {
        if step.value().is_string() && percent(&step).is_none() {
            found.add(&step, format!("{} is neither a number nor a percentage", shown(&step)));
        }
        found.at_least(&step, 0);
    }
    let (more, fewer) = (steps.field("maxSurge"), steps.field("maxUnavailable"));
    let is_zero = |at: &ManifestValue<'_>| at.number() == Some(0) || percent(at) == Some(0);
    if is_zero(&more) && is_zero(&fewer) {
        found.add(&fewer, "must not be 0 if maxSurge is 0");
    }
    if percent(&fewer).is_some_and(|percent| percent > 100) {
        found.add(&fewer, "is more than 100%");
    }
}
