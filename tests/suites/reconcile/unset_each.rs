//! B11: after a user sets a field and removes it again, the children equal the children of an object that never had the
//! field. The tests set and remove each optional field of the recorded cases.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use kaos_tests::case::{self, Case};
use kaos_tests::harness::{Scenario, World, condition, play};
use serde_json::{Value, json};

/// The test removes fields down to this depth below the spec. Deeper fields belong to lists and to Kubernetes' own
/// types.
const DEPTH: usize = 3;
/// Fields whose values differ between two otherwise equal objects, or between the children of these objects.
const OWN: [&str; 8] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "clusterIP",
    "clusterIPs",
    "nodePort",
];

/// For each optional field, returns the path of the field, and the object without this field. If the field is the only
/// member of a map, also removes the map, because the server may not keep an empty map.
fn without_each(object: &Value) -> Vec<(String, Value)> {
    fn walk(value: &Value, path: &str, depth: usize, found: &mut Vec<String>) {
        for (field, below) in value.as_object().into_iter().flatten() {
            let path = format!("{path}/{field}");
            if depth < DEPTH {
                walk(below, &path, depth + 1, found);
            }
            found.push(path);
        }
    }
    let mut paths = Vec::new();
    walk(&object["spec"], "/spec", 1, &mut paths);
    let without = |path: &String| {
        let mut object = object.clone();
        let mut at = path.as_str();
        while let Some((parent, field)) = at.rsplit_once('/') {
            let fields = object.pointer_mut(parent)?.as_object_mut()?;
            fields.remove(field)?;
            if !fields.is_empty() || parent == "/spec" {
                break;
            }
            at = parent;
        }
        Some((path.clone(), object))
    };
    paths.iter().filter_map(without).collect()
}

/// Returns a child without the values that differ between two otherwise equal objects.
fn alike(mut child: Value, name: &str) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.retain(|field, _| {
                    !OWN.contains(&field.as_str())
                        && field != "status"
                        && !field.starts_with("kaos.tools/")
                        && !field.starts_with("deployment.kubernetes.io/")
                });
                fields.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut child);
    let text = child.to_string().replace(name, "NAME").replace(&name.to_uppercase().replace('-', "_"), "NAME");
    serde_json::from_str(&text).unwrap_or(child)
}

fn renamed(object: &Value, name: &str) -> Value {
    let mut metadata = json!({"name": name});
    // Copy annotations only if they exist, because a server refuses null.
    if object["metadata"]["annotations"].is_object() {
        metadata["annotations"] = object["metadata"]["annotations"].clone();
    }
    let mut object = object.clone();
    object["metadata"] = metadata;
    object
}

async fn children(w: &World, kind: &str, name: &str) -> BTreeMap<String, Value> {
    let mut children = BTreeMap::new();
    for of in ["Deployment", "Service", "ConfigMap"] {
        for child in w.owned(&format!("{kind}/{name}"), of).await {
            let child = alike(child, name);
            children.insert(format!("{of} {}", child["metadata"]["name"]), child);
        }
    }
    children
}

/// Waits until the status of each of these objects shows the current generation of the object.
async fn until_answered(w: &World, kind: &str, names: &[String]) {
    for name in names {
        let at = format!("{kind}/{name}");
        let is_current = |object: &Value| object["status"]["observedGeneration"] == object["metadata"]["generation"];
        w.until("the status is current", &at, is_current).await;
    }
}

/// Applies two copies of a case's first primary object, for each field that the test can remove. The test sets the
/// field in the first copy and removes it again. The second copy never has the field. Returns the differences between
/// the children of the two copies. Adds the compared fields to `compared`.
async fn differing(w: &World, case: &Case, compared: &mut BTreeSet<String>) -> Vec<String> {
    let (kind, name) = case.about.primary[0].split_once('/').unwrap();
    let is_primary = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    let Some(primary) = case.input.iter().find(is_primary) else { return Vec::new() };
    let beside: Vec<Value> = case.input.iter().filter(|object| !is_primary(object)).cloned().collect();
    w.apply_all(&beside).await;
    let mut variants = Vec::new();
    for (at, (path, without)) in without_each(primary).into_iter().enumerate() {
        let (set, never) = (format!("set{at:03}"), format!("nev{at:03}"));
        // Skip a field if the server rejects a copy, because the field is required or because the case is invalid.
        if w.try_apply(&renamed(primary, &set)).await.is_ok() && w.try_apply(&renamed(&without, &never)).await.is_ok() {
            variants.push((path, without, set, never));
        }
    }
    let names: Vec<String> = variants.iter().flat_map(|(_, _, set, never)| [set.clone(), never.clone()]).collect();
    until_answered(w, kind, &names).await;
    w.quiet().await;
    for (_, without, set, _) in &variants {
        w.apply(&renamed(without, set)).await;
    }
    until_answered(w, kind, &names).await;
    w.quiet().await;
    let mut differing = Vec::new();
    for (path, _, set, never) in &variants {
        let object = w.look(&format!("{kind}/{never}")).await;
        // Skip an object if the policy refuses it or the server rejects its children, because such an object keeps its
        // earlier children.
        if ["Accepted", "Applied"].iter().any(|of| condition(&object, of)["status"] != "True") {
            continue;
        }
        compared.insert(path.clone());
        let (ours, wanted) = (children(w, kind, set).await, children(w, kind, never).await);
        if ours != wanted {
            let pretty = |children: &BTreeMap<String, Value>| serde_json::to_string_pretty(children).unwrap();
            let (ours, wanted) = (pretty(&ours), pretty(&wanted));
            let diff = similar::TextDiff::from_lines(&wanted, &ours);
            let diff = diff.unified_diff().context_radius(3).header("never set", "set and removed").to_string();
            differing.push(format!("=== {} without {path}\n{diff}", case.name));
        }
    }
    differing
}

/// Returns only as many cases as are needed so that each field of any case occurs in one of them, because a case takes
/// several seconds.
fn with_every_field(mut cases: Vec<Case>) -> Vec<Case> {
    let fields = |case: &Case| -> BTreeSet<String> {
        let (kind, name) = case.about.primary[0].split_once('/').unwrap();
        let mut primaries =
            case.input.iter().filter(|object| object["kind"] == kind && object["metadata"]["name"] == name);
        primaries.next().map(without_each).into_iter().flatten().map(|(path, _)| path).collect()
    };
    cases.sort_by_key(|case| Reverse(fields(case).len()));
    let mut seen = BTreeSet::new();
    cases.retain(|case| {
        let before = seen.len();
        seen.extend(fields(case));
        seen.len() > before
    });
    cases
}

/// Chooses recorded cases of `kind` that need no special environment and together have every field. Runs each of them
/// with a new operator. Asserts that at least `at_least` recorded cases need no special environment, and that the
/// number of compared fields is at least `fields`.
fn set_and_removed(kind: &str, at_least: usize, fields: usize) {
    let environment = case::default_environment().unwrap();
    let fits = |case: &Case| {
        case.about.primary[0].starts_with(&format!("{kind}/"))
            && case.environment == environment
            && !case.name.contains("-rejected-")
    };
    let mut cases: Vec<Case> = case::all().unwrap().into_iter().filter(fits).collect();
    assert!(cases.len() >= at_least, "only {} cases are left", cases.len());
    cases = with_every_field(cases);
    let (mut found, mut compared) = (Vec::new(), BTreeSet::new());
    for case in &mut cases {
        // Leave out the registry of runtimes, because the cluster already has it. Also leave out children that exist
        // before the object, because other tests cover them.
        case.input.retain(|object| object["metadata"]["namespace"] != "kaos-system" && object["kind"] != "Deployment");
        for object in &mut case.input {
            object["metadata"].as_object_mut().unwrap().remove("namespace");
        }
        play(Scenario::default(), async |w| found.extend(differing(w, case, &mut compared).await));
    }
    assert!(compared.len() >= fields, "the test compared only {count} fields: {compared:#?}", count = compared.len());
    assert!(found.is_empty(), "{} differ\n{}", found.len(), found.join("\n"));
}

#[test]
fn each_field_of_a_recorded_agent_can_be_set_and_removed() {
    set_and_removed("Agent", 20, 55);
}

#[test]
fn each_field_of_a_recorded_model_api_can_be_set_and_removed() {
    set_and_removed("ModelAPI", 15, 20);
}

#[test]
fn each_field_of_a_recorded_mcp_server_can_be_set_and_removed() {
    set_and_removed("MCPServer", 10, 18);
}
