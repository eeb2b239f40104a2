//! Compares selectors, and the pod labels that they select, between an amended plan and the plan of the layer below. If
//! a pod lost such a label, a Service would send it no requests, and a NetworkPolicy would not protect it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Rule, breaches::Breaches};
use crate::{json::list, pods};

/// The fields of a spec that select objects by labels.
const BY_LABELS: [&str; 5] = ["endpointSelector", "podSelector", "selector", "targetSelectors", "workloadSelector"];
/// The fields of a spec that select objects by name.
const BY_NAME: [&str; 3] = ["scaleTargetRef", "targetRef", "targetRefs"];

/// The names of all labels by which the selectors in a plan select.
pub(super) struct SelectedLabels<'a>(BTreeSet<&'a str>);

impl<'a> SelectedLabels<'a> {
    pub(super) fn of(manifests: &'a [Value]) -> Self {
        let mut labels = BTreeSet::new();
        for manifest in manifests {
            for field in BY_LABELS {
                add(&manifest["spec"][field], &mut labels);
            }
        }
        Self(labels)
    }

    /// Compares a manifest with the manifest `was` of the layer below. Adds a breach for each selector that differs,
    /// and for each selected label of a pod that differs.
    pub(super) fn check(&self, path: &str, was: &Value, now: &Value, breaches: &mut Breaches) {
        for field in BY_LABELS.iter().chain(&BY_NAME) {
            if now["spec"][field] != was["spec"][field] {
                let message = "selects objects for the layer below: an overlay must not change it";
                breaches.add(Rule::KeepsBelow, format_args!("{path} spec.{field}"), message);
            }
        }
        if self.0.is_empty() || was == now {
            return;
        }
        let templates: BTreeMap<_, _> = pods::templates(now).into_iter().collect();
        for (at, template) in pods::templates(was) {
            let labels = |template: &Value| template["metadata"]["labels"].clone();
            let (was, now) =
                (labels(template), templates.get(&at).map(|template| labels(template)).unwrap_or_default());
            for label in self.0.iter().filter(|label| was[**label] != now[**label]) {
                let message =
                    "is a label by which a child of the layer below selects pods: an overlay must not change it";
                let dot = if at.is_empty() { "" } else { "." };
                breaches.add(Rule::KeepsBelow, format_args!("{path} {at}{dot}metadata.labels[\"{label}\"]"), message);
            }
        }
    }
}

/// Adds the names of the labels in a selector. In a Service, the selector itself contains the labels. In other kinds, a
/// field of the selector contains them.
fn add<'a>(selector: &'a Value, labels: &mut BTreeSet<&'a str>) {
    for item in list(selector) {
        add(item, labels);
    }
    let Some(fields) = selector.as_object() else { return };
    let mut is_plain = true;
    for field in ["labels", "matchLabels"] {
        if let Some(named) = fields.get(field).and_then(Value::as_object) {
            is_plain = false;
            labels.extend(named.keys().map(String::as_str));
        }
    }
    if let Some(expressions) = fields.get("matchExpressions") {
        is_plain = false;
        labels.extend(list(expressions).filter_map(|expression| expression["key"].as_str()));
    }
    if is_plain {
        labels.extend(fields.iter().filter(|(_, value)| value.is_string()).map(|(name, _)| name.as_str()));
    }
}
