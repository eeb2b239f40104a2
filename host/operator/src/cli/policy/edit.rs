//! Computes the effect of an edit of one object, before a user makes the edit. Renders the object before and after the
//! edit, and compares both plans, as `policy plan` does. Only reads from the cluster.

use std::sync::Arc;

use kaos_policy::{
    contract::{Cluster, Reference, Target},
    kubernetes::Checks,
    settings::Effective,
    stamp::LAST_APPLIED,
};
use serde_json::{Map, Value};

use super::{
    plan::lines,
    rendered::{RenderedObject, rendered},
    serving::ServingPolicies,
};
use crate::{
    input::{self, Document, Identity},
    live::{Gathered, KnownObjects},
    masking::MASK,
    offline::Started,
    plan::{Answers, Around, Difference, Said, difference, masked},
    schema::{Finding, KnownCrds},
    yaml,
};

/// The fields of an object that a user does not edit.
const KEPT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// An edit that fits the schema of the kind.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct Edited {
    pub(in crate::cli) object: Value,
    /// The fields that the API server would drop.
    pub(in crate::cli) warnings: Vec<String>,
}

/// The effect of an edit.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::cli) struct EditEffect {
    /// Child, field, and the values before and after, for each change.
    pub(in crate::cli) lines: Vec<[String; 4]>,
    /// The number of workloads for which Kubernetes would replace the pods.
    pub(in crate::cli) rolls: usize,
    /// Why the policies would give no plan for the object after the edit; `None` if they would give a plan.
    pub(in crate::cli) problem: Option<String>,
    /// The messages of the policies.
    pub(in crate::cli) notes: Vec<String>,
    /// The phase and the message in the first status that the object would get after the edit.
    pub(in crate::cli) status: [String; 2],
}

/// Returns the part of an object that a user edits, as YAML. Masks secret values.
pub(in crate::cli) fn shown_for_edit(object: &Value) -> anyhow::Result<String> {
    let mut shown = Map::new();
    for field in ["apiVersion", "kind"] {
        shown.insert(field.to_owned(), object[field].clone());
    }
    let mut metadata = Map::new();
    for field in ["name", "namespace", "labels"] {
        let value = &object["metadata"][field];
        if !value.is_null() {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let annotations = object["metadata"]["annotations"].as_object().into_iter().flatten();
    let annotations: Map<String, Value> = annotations
        .filter(|(name, _)| *name != LAST_APPLIED)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !annotations.is_empty() {
        metadata.insert("annotations".to_owned(), annotations.into());
    }
    shown.insert("metadata".to_owned(), metadata.into());
    let other = object.as_object().into_iter().flatten().filter(|(name, _)| !KEPT.contains(&name.as_str()));
    shown.extend(other.map(|(name, value)| (name.clone(), value.clone())));
    Ok(yaml::text(&masked(&Value::Object(shown)))?)
}

/// Reads an edit of the object `live`. If the edit contains the mask of a secret value, this function takes the value
/// from the live object. Returns messages for the user if the edit is not usable.
pub(in crate::cli) fn edited(live: &Value, text: &str) -> Result<Edited, Vec<String>> {
    let place = live["metadata"]["namespace"].as_str().unwrap_or_default();
    let (documents, errors) = input::parse(&"the text".into(), text, place);
    if !errors.is_empty() {
        return Err(errors.iter().map(ToString::to_string).collect());
    }
    let [Document { identity, object: mut edit, .. }] = <[Document; 1]>::try_from(documents)
        .map_err(|documents| vec![format!("write one object, not {}", documents.len())])?;
    let own = Identity::from(&Reference::of_object(live));
    if identity != own || edit["apiVersion"] != live["apiVersion"] {
        return Err(vec![format!("the text is about {identity}, but this page is about {own}: restore the name")]);
    }
    let mut unknown = Vec::new();
    unmask(&mut edit, live, &masked(live), "", &mut unknown);
    if !unknown.is_empty() {
        let remedy = format!("write the whole value, or leave {MASK} where it was");
        return Err(unknown.into_iter().map(|path| format!("{path} contains {MASK}: {remedy}")).collect());
    }
    let mut object = merged(live, &edit);
    let catalogue = KnownCrds::embedded().map_err(|error| vec![error.to_string()])?;
    let admission = catalogue.admit(&own.group, &own.kind, &mut object);
    let told =
        |findings: Vec<Finding>| findings.into_iter().map(|Finding { path, message }| format!("{path}: {message}"));
    if !admission.violations.is_empty() {
        return Err(told(admission.violations).collect());
    }
    Ok(Edited { object, warnings: told(admission.unknown).collect() })
}

/// Returns the edit, with the live object's values for all parts that a user cannot change.
fn merged(live: &Value, edit: &Value) -> Value {
    let mut object = live.clone();
    let Some(fields) = object.as_object_mut() else { return object };
    fields.retain(|name, _| KEPT.contains(&name.as_str()));
    let other = edit.as_object().into_iter().flatten().filter(|(name, _)| !KEPT.contains(&name.as_str()));
    fields.extend(other.map(|(name, value)| (name.clone(), value.clone())));
    let mut annotations = edit["metadata"]["annotations"].clone();
    let applied = &live["metadata"]["annotations"][LAST_APPLIED];
    if !applied.is_null() {
        annotations[LAST_APPLIED] = applied.clone();
    }
    let labels = edit["metadata"]["labels"].clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for (field, value) in [("labels", labels), ("annotations", annotations)] {
            metadata.remove(field);
            if !value.is_null() {
                metadata.insert(field.to_owned(), value);
            }
        }
    }
    object
}

/// If the edit contains the masked form of a live value, replaces the masked form by the live value. Collects the paths
/// of all other masked values.
fn unmask(edit: &mut Value, live: &Value, shown: &Value, path: &str, unknown: &mut Vec<String>) {
    match edit {
        Value::String(text) if text.contains(MASK) => {
            if shown.as_str() == Some(text.as_str()) {
                *edit = live.clone();
            } else {
                unknown.push(path.to_owned());
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let is_it = |other: &Value| !item["name"].is_null() && other["name"] == item["name"];
                let named = shown.as_array().and_then(|items| items.iter().position(is_it));
                let at = named.unwrap_or(index);
                unmask(item, &live[at], &shown[at], &format!("{path}[{index}]"), unknown);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if name.contains(MASK) {
                    unknown.push(below.clone());
                }
                unmask(value, &live[name], &shown[name], &below, unknown);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Computes the effect of an edit of the object `identity`, which `gathered` already has.
pub(in crate::cli) async fn edit_effect(
    gathered: &mut Gathered,
    known: &dyn KnownObjects,
    serving: &ServingPolicies,
    cluster: &Cluster,
    identity: &Identity,
    edited: &Value,
) -> anyhow::Result<EditEffect> {
    let started = Started { cluster: cluster.clone(), grantable: None, checks: Checks::Values };
    let before = rendered(gathered, &serving.snapshot, &started, identity, None).await?;
    let after = rendered(gathered, &serving.snapshot, &started, identity, Some(edited)).await?;
    let live = |reference: &Reference| {
        let read = gathered.iter().find(|document| document.identity == Identity::from(reference));
        let object = read.map(|document| document.object.clone());
        object.or_else(|| Some((*known.find(&Target::Named(reference.clone()))?.into_iter().next()?).clone()))
    };
    let settings = |of: &RenderedObject| of.entry.rendered.settings.clone();
    let settings: Vec<Arc<Effective>> = [&before, &after].into_iter().flat_map(settings).collect();
    let exists = |reference: &Reference| live(reference).is_some().then_some(true);
    let around =
        Around { live: &live, exists: &exists, settings: settings.iter().map(|settings| settings.tree()).collect() };
    let answers = [&before, &after].map(|side| Some(Answers::of(&side.entry.rendered)));
    let found = difference(edited, answers, &around);
    let problem = found.after.as_ref().map(|side| &side.said).filter(|said| **said != Said::Planned);
    let notes = after.entry.rendered.planned().map(|planned| planned.notes.clone()).unwrap_or_default();
    let notes = notes.iter().map(|note| masked_text(edited, &format!("{}: {}", note.reason, note.message)));
    let status =
        ["phase", "message"].map(|field| masked_text(edited, after.entry.status[field].as_str().unwrap_or_default()));
    Ok(EditEffect {
        rolls: found.children.iter().filter(|child| child.rolls).count(),
        problem: problem.map(ToString::to_string),
        notes: notes.collect(),
        status,
        lines: told(&found),
    })
}

fn told(difference: &Difference) -> Vec<[String; 4]> {
    lines(difference).into_iter().map(|(_, line)| line).collect()
}

/// Masks the secret values of an object in a text.
fn masked_text(object: &Value, text: &str) -> String {
    let mut both = object.clone();
    both["text"] = text.into();
    masked(&both)["text"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn agent() -> Value {
        json!({
            "apiVersion": "kaos.tools/v1alpha1", "kind": "Agent",
            "metadata": {"name": "writer", "namespace": "team", "uid": "1", "annotations": {LAST_APPLIED: "{}"}},
            // The object contains the defaults of the schema, as in a cluster.
            "spec": {"modelAPI": "llm", "model": "gpt", "replicas": 1, "waitForDependencies": true, "container": {"env": [
                {"name": "A", "value": "plain"}, {"name": "API_KEY", "value": "s3cret-value"}]}},
            "status": {"phase": "Ready"},
        })
    }

    #[test]
    fn an_edit_keeps_masked_values_and_everything_that_a_user_does_not_edit() {
        let live = agent();
        let text = shown_for_edit(&live).unwrap();
        assert!(text.contains(MASK) && !text.contains("s3cret") && !text.contains("status"), "{text}");
        assert_eq!(edited(&live, &text).unwrap(), Edited { object: live.clone(), warnings: vec![] });
        // The edit changes the order of the variables and one value.
        let moved = text.replace("plain", "other");
        let Edited { object, .. } = edited(&live, &moved).unwrap();
        assert_eq!(object["spec"]["container"]["env"][1]["value"], "s3cret-value");
        assert_eq!(object["spec"]["container"]["env"][0]["value"], "other");
        assert_eq!(object["metadata"]["uid"], "1");
    }

    #[test]
    fn an_edit_that_the_server_would_refuse_says_why() {
        let live = agent();
        let text = shown_for_edit(&live).unwrap();
        let wrong = |text: &str| edited(&live, text).unwrap_err().join("; ");
        assert!(wrong(&text.replace("writer", "other")).contains("restore the name"));
        assert!(wrong(&text.replace("plain", &format!("x{MASK}"))).contains("write the whole value"));
        assert!(wrong("{").contains("the text"), "{}", wrong("{"));
        assert!(wrong("").contains("one object"));
        assert!(wrong(&text.replace("model: gpt", "model: [1]")).contains("spec.model"));
        let unknown = edited(&live, &text.replace("model: gpt", "model: gpt\n  unknown: 1")).unwrap();
        assert!(unknown.warnings.join("").contains("spec.unknown"), "{:?}", unknown.warnings);
        let mut live = agent();
        live["metadata"]["annotations"]["x.s3cret-value"] = json!("1");
        let masked_key = edited(&live, &shown_for_edit(&live).unwrap()).unwrap_err().join("; ");
        assert!(masked_key.contains(&format!("x.{MASK} contains {MASK}")), "{masked_key}");
    }
}
