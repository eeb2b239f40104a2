//! Between the mapping and the `env` arrays of Kubernetes.

use crate::Path;
use crate::say::Violations;
use crate::types::{EnvSource, EnvVar, KeySelector, Refusal};
use crate::{json, object};
use alloc::{borrow::ToOwned, string::String, vec::Vec};
use serde_json::{Map, Value};

/// The `env` array of one container. An empty value is left out, as API servers do.
pub fn to_json(vars: &[EnvVar], container: &str) -> Vec<Value> {
    vars.iter().filter(|var| var.container == container).map(entry).collect()
}

fn entry(var: &EnvVar) -> Value {
    let from = match &var.source {
        EnvSource::Literal(value) if value.is_empty() => return object! { "name": var.name.as_str() },
        EnvSource::Literal(value) => return object! { "name": var.name.as_str(), "value": value.as_str() },
        EnvSource::SecretKey(selector) => object! { "secretKeyRef": selector_json(selector) },
        EnvSource::ConfigMapKey(selector) => object! { "configMapKeyRef": selector_json(selector) },
        EnvSource::FieldPath(path) => object! { "fieldRef": object! { "fieldPath": path.as_str() } },
        EnvSource::Other(text) => json::parse(text).unwrap_or_default(),
    };
    object! { "name": var.name.as_str(), "valueFrom": from }
}

fn selector_json(selector: &KeySelector) -> Value {
    let mut map = Map::new();
    map.insert("key".to_owned(), selector.key.as_str().into());
    map.insert("name".to_owned(), selector.name.as_str().into());
    if selector.optional {
        map.insert("optional".to_owned(), true.into());
    }
    Value::Object(map)
}

/// The variables in an `env` array that stands at `path` of the object; entry `i` gets the origin
/// `path[i]`. Of entries with the same name the last one holds, as in Kubernetes.
pub fn from_json(container: &str, list: &[Value], path: &str) -> Result<Vec<EnvVar>, Refusal> {
    let mut wrong = Violations::new();
    let vars = read(container, list, &Path::new(path), &mut wrong);
    wrong.into_result().map(|()| vars)
}

/// The final mapping as a pod spec carries it after all merges, init containers included. A variable that
/// is as in `known` keeps its origin; any other came from the patch and gets the origin `patched`, for
/// example `spec.podSpec`. Violations are reported below `patched`, too.
pub fn of_pod_spec(pod_spec: &Value, known: &[EnvVar], patched: &str) -> Result<Vec<EnvVar>, Refusal> {
    let mut wrong = Violations::new();
    let mut vars = Vec::new();
    let mut places = Map::new();
    for (at, var) in known.iter().enumerate() {
        places.insert(place(var), at.into());
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        let containers = pod_spec.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        for (at, container) in containers.iter().enumerate() {
            let path = Path::new(patched).key(list).index(at).key("env");
            let name = container.get("name").and_then(Value::as_str).unwrap_or_default();
            match container.get("env") {
                None | Some(Value::Null) => {}
                Some(Value::Array(env)) => vars.extend(read(name, env, &path, &mut wrong)),
                Some(_) => wrong.add(path, "must be a list of variables"),
            }
        }
    }
    for var in &mut vars {
        let at = places.get(&place(var)).and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
        let before = at.and_then(|at| known.get(at));
        // One value may be told in two ways.
        let same = before.filter(|before| before.source == var.source || entry(before) == entry(var));
        same.map_or(patched, |same| same.origin.as_str()).clone_into(&mut var.origin);
    }
    wrong.into_result().map(|()| vars)
}

/// Where a variable stands: a container has one of a name.
fn place(var: &EnvVar) -> String {
    format!("{}\0{}", var.container, var.name)
}

/// The variables in `list`, each name once.
fn read(container: &str, list: &[Value], path: &Path, wrong: &mut Violations) -> Vec<EnvVar> {
    let mut latest = Map::new();
    for (at, item) in list.iter().enumerate() {
        if let Some(name) = item.get("name").and_then(Value::as_str) {
            latest.insert(name.to_owned(), at.into());
        }
    }
    let holds = |at: usize, name: &str| latest.get(name) == Some(&Value::from(at));
    let mut vars = Vec::with_capacity(latest.len());
    for (at, item) in list.iter().enumerate() {
        let path = path.index(at);
        let Some(name) = item.get("name").and_then(Value::as_str).filter(|name| !name.is_empty()) else {
            wrong.add(path.key("name"), "is required; it is the variable's name");
            continue;
        };
        if name.contains(['=', '\0']) {
            wrong.add(path.key("name"), "must not contain '='");
        } else if let Some(source) = source(item, &path, wrong)
            && holds(at, name)
        {
            vars.push(EnvVar { container: container.to_owned(), name: name.to_owned(), source, origin: path.into() });
        }
    }
    vars
}

fn source(item: &Value, path: &Path, wrong: &mut Violations) -> Option<EnvSource> {
    let value = match item.get("value") {
        None | Some(Value::Null) => "",
        Some(Value::String(value)) => value,
        Some(_) => {
            wrong.add(path.key("value"), "must be text; put it into quotes");
            return None;
        }
    };
    match item.get("valueFrom") {
        None | Some(Value::Null) => Some(EnvSource::Literal(value.to_owned())),
        Some(Value::Object(_)) if !value.is_empty() => {
            wrong.add(path.key("valueFrom"), "must not be set beside value; remove one of them");
            None
        }
        Some(Value::Object(from)) => Some(reference(from)),
        Some(_) => {
            wrong.add(path.key("valueFrom"), "must be an object");
            None
        }
    }
}

/// The typed source where the type says all that `from` says; the text otherwise.
fn reference(from: &Map<String, Value>) -> EnvSource {
    let typed = match from.iter().next() {
        Some((kind, content)) if from.len() == 1 => match kind.as_str() {
            "secretKeyRef" => selector(content).map(EnvSource::SecretKey),
            "configMapKeyRef" => selector(content).map(EnvSource::ConfigMapKey),
            "fieldRef" => field_path(content).map(EnvSource::FieldPath),
            _ => None,
        },
        _ => None,
    };
    typed.unwrap_or_else(|| EnvSource::Other(json::text(&Value::Object(from.clone()))))
}

fn selector(content: &Value) -> Option<KeySelector> {
    let map = content.as_object()?;
    let mut selector = KeySelector { name: String::new(), key: String::new(), optional: false };
    for (member, value) in map {
        match (member.as_str(), value) {
            ("name", Value::String(name)) => selector.name.clone_from(name),
            ("key", Value::String(key)) => selector.key.clone_from(key),
            ("optional", Value::Bool(true)) => selector.optional = true,
            _ => return None,
        }
    }
    (!selector.name.is_empty() && !selector.key.is_empty()).then_some(selector)
}

fn field_path(content: &Value) -> Option<String> {
    let map = content.as_object()?;
    if map.len() == 1 { map.get("fieldPath")?.as_str().map(ToOwned::to_owned) } else { None }
}

#[cfg(test)]
mod tests {
    use super::{from_json, of_pod_spec, to_json};
    use crate::env;
    use crate::types::{EnvVar, Refusal};
    use serde_json::{Value, json};

    fn list(value: Value) -> Vec<Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn every_source_survives_the_way_there_and_back() {
        let array = list(json!([
            {"name": "A", "value": "x"},
            {"name": "B"},
            {"name": "C", "valueFrom": {"secretKeyRef": {"key": "k", "name": "s"}}},
            {"name": "D", "valueFrom": {"secretKeyRef": {"key": "k", "name": "s", "optional": true}}},
            {"name": "E", "valueFrom": {"configMapKeyRef": {"key": "k", "name": "c"}}},
            {"name": "F", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "G", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
            {"name": "H", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
            {"name": "I", "valueFrom": {"secretKeyRef": {"key": "k", "name": "s", "optional": false}}},
        ]));
        let vars = from_json("c", &array, "spec.container.env").unwrap();
        assert_eq!(vars[2].source, env::secret_key("s", "k"));
        assert_eq!(vars[5].source, env::field("metadata.name"));
        assert_eq!(vars[7].origin, "spec.container.env[7]");
        assert_eq!(to_json(&vars, "c"), array);
        assert!(to_json(&vars, "other").is_empty());
    }

    #[test]
    fn of_two_entries_with_a_name_the_last_holds() {
        let vars =
            from_json("c", &list(json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])), "e").unwrap();
        assert_eq!(vars.len(), 1);
        assert_eq!((&vars[0].source, vars[0].origin.as_str()), (&env::literal("2"), "e[1]"));
    }

    #[test]
    fn wrong_entries_are_all_named() {
        let array = list(json!([
            {"value": "x"}, {"name": "A", "value": 1}, {"name": "B", "value": "x", "valueFrom": {"fieldRef": {}}},
            {"name": "C=D"}, "text", {"name": "E", "valueFrom": []},
        ]));
        let Err(Refusal::Invalid(wrong)) = from_json("c", &array, "spec.env") else { panic!("must be refused") };
        let paths: Vec<_> = wrong.iter().map(|violation| violation.path.as_str()).collect();
        let wanted = ["[0].name", "[1].value", "[2].valueFrom", "[3].name", "[4].name", "[5].valueFrom"];
        assert_eq!(paths, wanted.map(|path| format!("spec.env{path}")));
    }

    #[test]
    fn origins_survive_the_merges_and_what_the_patch_set_says_so() {
        let known = vec![
            EnvVar { container: "c".into(), name: "A".into(), source: env::literal("1"), origin: "settings.a".into() },
            EnvVar { container: "c".into(), name: "B".into(), source: env::literal("2"), origin: "settings.b".into() },
        ];
        let spec = json!({
            "initContainers": [{"name": "i", "env": [{"name": "A", "value": "1"}]}],
            "containers": [{"name": "c", "env": [{"name": "B", "value": "3"}, {"name": "A", "value": "1"}]}, {"name": "d"}],
        });
        let vars = of_pod_spec(&spec, &known, "spec.podSpec").unwrap();
        let said: Vec<_> = vars.iter().map(|v| (v.container.as_str(), v.name.as_str(), v.origin.as_str())).collect();
        assert_eq!(said, [("i", "A", "spec.podSpec"), ("c", "B", "spec.podSpec"), ("c", "A", "settings.a")]);
        let wrong = of_pod_spec(&json!({"containers": [{"name": "c", "env": "x"}]}), &known, "spec.podSpec");
        let Err(Refusal::Invalid(wrong)) = wrong else { panic!("must be refused") };
        assert_eq!(wrong[0].path, "spec.podSpec.containers[0].env");
    }
}
