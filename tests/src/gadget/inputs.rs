//! The needs of a Gadget.

use kaos_policy::contract::{Answer, Blocker, Need, Reference, ResourceType, SecretFacts, Selector, Subject, Target};
use serde_json::Value;

use super::object::{API_VERSION, KIND, object, text};

/// Returns the needs of a Gadget: a ConfigMap, and a second ConfigMap that the first one names; ConfigMaps by one or
/// many selectors; a Secret; a Gadget; and the ConfigMap with shared defaults.
pub(super) fn needs(subject: &Subject) -> Vec<Need> {
    let object = object(subject);
    let spec = &object["spec"];
    let mut needs = Vec::new();
    let mut named = |id: &str, of: &str, kind: &str, namespace: Option<&str>, name: &str| {
        if !name.is_empty() {
            let namespace = namespace.map(str::to_owned);
            let target =
                Reference { api_version: of.to_owned(), kind: kind.to_owned(), namespace, name: name.to_owned() };
            needs.push(Need { id: id.to_owned(), target: Target::Named(target), fields: Vec::new(), optional: false });
        }
    };
    named("first", "v1", "ConfigMap", None, text(&spec["chain"]));
    if let Some(first) = one(subject, "first") {
        named("second", "v1", "ConfigMap", None, text(&first["data"]["next"]));
    }
    named("token", "v1", "Secret", None, text(&spec["token"]));
    named("after", API_VERSION, KIND, None, text(&spec["after"]));
    if spec["shared"] == true {
        named("shared", "v1", "ConfigMap", Some(&subject.cluster.operator_namespace), "gadget-defaults");
    }
    let mut labelled = |id: String, labels: Vec<(String, String)>| {
        let selector = Selector { of: ResourceType::new("v1", "ConfigMap"), namespace: None, labels };
        needs.push(Need { id, target: Target::Labelled(selector), fields: Vec::new(), optional: false });
    };
    if let Some(value) = spec["listens"].as_str() {
        labelled("heard".to_owned(), vec![("gadget".to_owned(), value.to_owned())]);
    }
    for (at, labels) in spec["hears"].as_array().into_iter().flatten().enumerate() {
        let pairs = labels.as_object().into_iter().flatten();
        labelled(format!("hears-{at}"), pairs.map(|(key, value)| (key.clone(), text(value).to_owned())).collect());
    }
    needs
}

/// Returns the objects that answer a need.
pub(super) fn all(subject: &Subject, id: &str) -> Vec<Value> {
    let found = subject.found.iter().find(|found| found.id == id);
    match found.map(|found| &found.answer) {
        Some(Answer::Objects(objects)) => objects.iter().filter_map(|json| serde_json::from_str(json).ok()).collect(),
        _ => Vec::new(),
    }
}

/// Returns the single object that answers the need `id`, or `None` without such an object.
pub(super) fn one(subject: &Subject, id: &str) -> Option<Value> {
    all(subject, id).pop()
}

/// Returns the facts about the Secret that answers a need, or `None` if the Secret does not exist.
pub(super) fn secret<'a>(subject: &'a Subject, id: &str) -> Option<&'a SecretFacts> {
    let found = subject.found.iter().find(|found| found.id == id)?;
    match &found.answer {
        Answer::Secret(facts) if facts.present => Some(facts),
        _ => None,
    }
}

/// Returns whether the operator lacks the right to read the objects of a need.
pub(super) fn is_forbidden(subject: &Subject, id: &str) -> bool {
    subject.found.iter().any(|found| found.id == id && matches!(found.answer, Answer::Forbidden(_)))
}

/// Returns a blocker for each need with a missing object.
pub(super) fn missing(subject: &Subject) -> Vec<Blocker> {
    let is_missing = |need: &Need| match need.id.as_str() {
        "first" | "second" => one(subject, &need.id).is_none(),
        "token" => secret(subject, "token").is_none() && !is_forbidden(subject, "token"),
        _ => false,
    };
    let absent = needs(subject).into_iter().filter(is_missing);
    absent.filter_map(|need| blocker(need.target, "NotFound", "is not there")).collect()
}

/// Returns a blocker for each need with an object that is not ready.
pub(super) fn unready(subject: &Subject) -> Vec<Blocker> {
    let is_unready =
        |need: &Need| need.id == "after" && one(subject, "after").is_none_or(|other| other["status"]["ready"] != true);
    let unready = needs(subject).into_iter().filter(is_unready);
    unready.filter_map(|need| blocker(need.target, "NotReady", "is not ready")).collect()
}

fn blocker(target: Target, reason: &str, what: &str) -> Option<Blocker> {
    let Target::Named(on) = target else { return None };
    let message = format!("{} {} {what}", on.kind, on.name);
    Some(Blocker { on, reason: reason.to_owned(), message })
}
