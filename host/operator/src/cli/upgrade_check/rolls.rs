//! Finds the pods that the upgrade replaces: compares the planned workloads with the workloads that KAOS's operator
//! created.

use std::sync::Arc;

use kaos_policy::{
    contract::{Reference, ResourceType},
    render::{Refused, Verdict},
    stamp::{pod_template, referred_config_maps},
};
use serde_json::{Map, Value, json};

use super::report::{Sort, UpgradeFinding};
use crate::{
    input::Document,
    offline::Entry,
    plan::{Field, fields},
    reconcile::pull_policy,
};

/// Fields for which the API server sets a default, each with the default.
const FILLED_IN: [(&str, &str); 12] = [
    ("terminationMessagePath", "/dev/termination-log"),
    ("terminationMessagePolicy", "File"),
    ("restartPolicy", "Always"),
    ("dnsPolicy", "ClusterFirst"),
    ("schedulerName", "default-scheduler"),
    ("scheme", "HTTP"),
    ("protocol", "TCP"),
    ("terminationGracePeriodSeconds", "30"),
    ("successThreshold", "1"),
    ("defaultMode", "420"),
    ("readOnly", "false"),
    ("initialDelaySeconds", "0"),
];

/// Returns the findings about one object: the workloads whose pods Kubernetes will replace, or why the object is
/// refused or waits.
pub(super) fn findings(object: &Document, entry: &Arc<Entry>, documents: &[Document]) -> Vec<UpgradeFinding> {
    let about = object.identity.to_string();
    let refused = |why: String| vec![UpgradeFinding::new(Sort::Refused, &about, why, "")];
    let manifests = match &entry.rendered.verdict {
        Verdict::Planned(planned) => &planned.manifests,
        Verdict::Refused(refusal) => {
            let Refused { reason, messages } = Refused::of(refusal);
            let messages: Vec<String> = messages.iter().map(ToString::to_string).collect();
            return refused(format!("{reason}: {}", messages.join("; ")));
        }
        Verdict::Failed(failure) => return refused(format!("the policy fails: {failure}")),
    };
    let there = |wanted: &Value| live(wanted, documents);
    let workloads = manifests.iter().filter_map(|wanted| Some((wanted, pod_template(wanted)?, there(wanted)?)));
    let differing = workloads.filter_map(|(wanted, template, live)| {
        let mut fields = differences(wanted, live);
        for config in referred_config_maps(&template["spec"], manifests) {
            let Some(live) = there(config) else { continue };
            let name = config["metadata"]["name"].as_str().unwrap_or_default();
            fields.extend(
                self::fields(&json!({"data": live["data"]}), &json!({"data": config["data"]}))
                    .into_iter()
                    .map(|field| Field { path: format!("ConfigMap {name}: {}", field.path), ..field }),
            );
        }
        let Reference { kind, name, .. } = Reference::of_object(wanted);
        let message = format!("{kind} {name}: its pods are replaced");
        (!fields.is_empty()).then(|| UpgradeFinding { fields, ..UpgradeFinding::new(Sort::Rolls, &about, message, "") })
    });
    differing.collect()
}

/// Returns whether the cluster has all planned workloads of an object.
pub(super) fn are_there(entry: &Entry, documents: &[Document]) -> bool {
    let Verdict::Planned(planned) = &entry.rendered.verdict else { return false };
    let mut workloads = planned.manifests.iter().filter(|wanted| pod_template(wanted).is_some());
    workloads.all(|wanted| live(wanted, documents).is_some())
}

/// Returns the live object for a planned manifest.
pub(super) fn live<'a>(wanted: &Value, documents: &'a [Document]) -> Option<&'a Value> {
    let wanted = Reference::of_object(wanted);
    let is_it = |document: &&Document| Reference::of_object(&document.object) == wanted;
    documents.iter().find(is_it).map(|document| &document.object)
}

/// Returns the fields of the pod template that differ, without the defaults of the API server.
fn differences(wanted: &Value, live: &Value) -> Vec<Field> {
    let template = |of: &Value| {
        let template = pod_template(of).map(|template| plain("", template)).unwrap_or_default();
        json!({"kind": of["kind"], "spec": {"template": template}})
    };
    let mut fields = fields(&template(live), &template(wanted));
    fields.retain(|field| !is_same_amount(field));
    fields
}

/// Drops empty fields, and fields whose value is the API server's default.
fn plain(name: &str, value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.iter().filter_map(|(name, value)| {
                let value = plain(name, value);
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let is_empty = match &value {
                    Value::Null => true,
                    Value::Object(fields) => fields.is_empty(),
                    Value::Array(items) => items.is_empty(),
                    Value::String(text) => text.is_empty(),
                    _ => false,
                };
                // `serviceAccount` is the older name of `serviceAccountName`.
                let is_filled_in = FILLED_IN.contains(&(name, &text)) || name == "serviceAccount";
                (!is_empty && !is_filled_in).then(|| (name.clone(), value))
            });
            let mut kept: Map<String, Value> = kept.collect();
            if name == "fieldRef" && kept.get("apiVersion").is_some_and(|version| version == "v1") {
                kept.remove("apiVersion");
            }
            if name == "livenessProbe" || name == "readinessProbe" || name == "startupProbe" {
                for (field, usual) in [("timeoutSeconds", 1), ("periodSeconds", 10), ("failureThreshold", 3)] {
                    kept.entry(field).or_insert_with(|| usual.into());
                }
            }
            if let Some(policy) = kept.get("image").and_then(Value::as_str).map(pull_policy) {
                kept.entry("imagePullPolicy").or_insert_with(|| policy.into());
            }
            Value::Object(kept)
        }
        Value::Array(items) => items.iter().map(|item| plain(name, item)).collect(),
        other => other.clone(),
    }
}

/// Returns whether two values are only different spellings of the same amount.
fn is_same_amount(field: &Field) -> bool {
    let text =
        |value: &Option<Value>| value.as_ref().map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
    let (Some(before), Some(after)) = (text(&field.before), text(&field.after)) else { return false };
    field.path.contains(".resources.") && kaos_amounts::same(&before, &after)
}

/// Returns the type of the workloads that KAOS's operator creates.
pub(super) fn workloads() -> ResourceType {
    ResourceType::new("apps/v1", "Deployment")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment(container: &Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
            "spec": {"template": {"metadata": {}, "spec": {"containers": [container]}}}})
    }

    #[test]
    fn defaults_of_the_api_server_are_no_difference_and_other_values_are() {
        let planned = json!({"name": "a", "image": "x", "env": [{"name": "A", "value": ""}],
            "resources": {"limits": {"cpu": "0.5"}},
            "livenessProbe": {"httpGet": {"path": "/", "port": 80}, "initialDelaySeconds": 0}});
        let live = json!({"name": "a", "image": "x", "env": [{"name": "A"}], "resources": {"limits": {"cpu": "500m"}},
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "livenessProbe": {"httpGet": {"path": "/", "port": 80, "scheme": "HTTP"}, "timeoutSeconds": 1,
                "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}});
        assert_eq!(differences(&deployment(&planned), &deployment(&live)), []);
        for (image, policy) in [("x:1", "IfNotPresent"), ("x", "Always"), ("x:latest", "Always")] {
            let filled_in = json!({"name": "a", "image": image, "imagePullPolicy": policy});
            let container = deployment(&json!({"name": "a", "image": image}));
            assert_eq!(differences(&container, &deployment(&filled_in)), [], "{image}");
            let never = json!({"name": "a", "image": image, "imagePullPolicy": "Never"});
            assert_eq!(differences(&container, &deployment(&never)).len(), 1, "{image}");
        }
        let mut other = live.clone();
        other["livenessProbe"]["timeoutSeconds"] = json!(3);
        other["env"] = json!([{"name": "A"}, {"name": "B", "value": "1"}]);
        other["readinessProbe"] = json!({"tcpSocket": {"port": 80}});
        let paths: Vec<String> =
            differences(&deployment(&planned), &deployment(&other)).into_iter().map(|field| field.path).collect();
        let at = |path: &str| format!("spec.template.spec.containers[a].{path}");
        assert_eq!(paths, [at("env[B]"), at("livenessProbe.timeoutSeconds"), at("readinessProbe")]);
    }
}
