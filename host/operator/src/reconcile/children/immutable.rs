//! Explains to the user why the API server rejects a change of an immutable field.
//!
//! The operator does not delete and recreate the child, because data or pods would be lost. It reports the field, and
//! what the user can do.

use serde_json::Value;

use crate::reconcile::{children::drift, error::CallError};

/// Texts by which this module recognizes an API server's message about an immutable field.
const SAYINGS: [&str; 5] = [
    "field is immutable",
    "is immutable after creation",
    "may not change once set",
    "updates to statefulset spec for fields other than",
    "cannot change roleRef",
];

/// If the API server rejects `wanted` because of an immutable field, adds the fields and the remedy to the error.
pub(crate) fn explained(error: CallError, wanted: &Value, live: &Value) -> CallError {
    if !SAYINGS.iter().any(|saying| error.message.contains(saying)) {
        return error;
    }
    let changed = changed(wanted, live);
    let told: Vec<&String> = changed.iter().filter(|path| error.message.contains(*path)).collect();
    let fields = if told.is_empty() {
        // For some types, the message lists the mutable fields instead, each in quotes.
        let may_change = |path: &str| error.message.contains(&format!("'{}'", path.trim_start_matches("spec.")));
        changed.iter().filter(|path| !may_change(path)).collect()
    } else {
        told
    };
    let fields: Vec<&str> = fields.into_iter().map(String::as_str).collect();
    let subject = if fields.is_empty() { "a field".to_owned() } else { fields.join(", ") };
    let remedy = never_changes(&subject, wanted);
    CallError { message: format!("{remedy}; the API server says: {}", error.message), ..error }
}

/// Returns the message that these fields never change while the child exists, and the remedy.
pub(crate) fn never_changes(fields: &str, wanted: &Value) -> String {
    let text = |field: &str| wanted["metadata"][field].as_str().unwrap_or_default();
    let kind = wanted["kind"].as_str().unwrap_or_default().to_lowercase();
    let loss = if kind == "persistentvolumeclaim" { "; all data in the volume claim is lost" } else { "" };
    format!(
        "{fields} cannot change while the {kind} exists: undo the change, or delete the {kind} (kubectl -n {} delete \
         {kind} {}), and the operator creates it again as planned{loss}",
        text("namespace"),
        text("name"),
    )
}

/// Returns the paths of the fields that differ from the plan: fields of the spec, and top-level fields such as `data`.
fn changed(wanted: &Value, live: &Value) -> Vec<String> {
    let differs = |wanted: &Value, live: &Value| drift::missing(wanted, live).is_some();
    let mut paths = Vec::new();
    for (field, value) in wanted.as_object().into_iter().flatten() {
        match field.as_str() {
            "apiVersion" | "kind" | "metadata" => {}
            "spec" => {
                let fields = value.as_object().into_iter().flatten();
                let fields = fields.filter(|(field, value)| differs(value, &live["spec"][field.as_str()]));
                paths.extend(fields.map(|(field, _)| format!("spec.{field}")));
            }
            _ if differs(value, &live[field.as_str()]) => paths.push(field.clone()),
            _ => {}
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::reconcile::error::Class;

    fn explained(said: &str, wanted: &Value, live: &Value) -> String {
        let mut wanted = wanted.clone();
        wanted["metadata"] = json!({"namespace": "t", "name": "a"});
        let (what, message) = ("apply it".to_owned(), said.to_owned());
        super::explained(CallError { what, class: Class::Permanent, message }, &wanted, live).message
    }

    #[test]
    fn a_rejection_names_the_immutable_field_and_the_remedy() {
        let of = |app: &str, replicas: u32| json!({"kind": "Deployment", "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": app}}}});
        let said = "Deployment.apps \"a\" is invalid: spec.selector: Invalid value: {}: field is immutable";
        let told = explained(said, &of("x", 1), &of("y", 2));
        assert!(told.starts_with("spec.selector cannot change while the deployment exists"), "{told}");
        assert!(told.contains("kubectl -n t delete deployment a") && told.ends_with(said), "{told}");
    }

    #[test]
    fn with_a_claim_for_storage_its_data_would_go() {
        let of = |size: &str| json!({"kind": "PersistentVolumeClaim", "spec": {"resources": {"requests": {"storage": size}}}});
        let said = "spec: Forbidden: spec is immutable after creation except resources.requests for bound claims";
        let told = explained(said, &of("6Gi"), &of("5Gi"));
        assert!(told.contains("again as planned; all data in the volume claim is lost; the API server"), "{told}");
    }

    #[test]
    fn a_rejection_that_lists_mutable_fields_names_the_immutable_ones() {
        let of = |name: &str, replicas: u32| {
            json!({"kind": "StatefulSet", "spec": {"replicas": replicas, "serviceName": "s",
                "volumeClaimTemplates": [{"metadata": {"name": name}}]}})
        };
        let said = "StatefulSet.apps \"a\" is invalid: spec: Forbidden: updates to statefulset spec for fields other \
            than 'replicas', 'template' are forbidden";
        let told = explained(said, &of("new", 1), &of("old", 2));
        assert!(told.starts_with("spec.volumeClaimTemplates cannot change"), "{told}");
    }

    #[test]
    fn other_refusals_stay_as_they_are() {
        let said = "spec.ports[0].port: Invalid value: 70000: must be between 1 and 65535";
        assert_eq!(explained(said, &json!({"kind": "Service"}), &json!({})), said);
    }
}
