//! Converts between the mapping and the `env` arrays of Kubernetes.

use super::order::{order, picked};
use crate::Path;
use crate::say::Violations;
use crate::types::{EnvSource, EnvVar, KeySelector, Refusal};
use crate::{Places, json, object};
use alloc::{borrow::ToOwned, string::String, vec::Vec};
use serde_json::{Map, Value};

const NO_LIST: &str = "must be a list of variables";

/// Returns the `env` array of one container. Omits the field `value` if the value is empty, as API servers do.
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

/// Reads the variables of the `env` array at `path` of the object. Entry `i` gets the origin `path[i]`. If several
/// entries have the same name, the last entry wins, as in Kubernetes. The kept entry moves to the position of the first
/// of these entries, unless its value refers to a variable after that position.
pub fn from_json(container: &str, list: &[Value], path: &str) -> Result<Vec<EnvVar>, Refusal> {
    let vars = all(container, list, path)?;
    let order = order(vars.iter().map(|var| Some(definition(var))));
    Ok(picked(vars, &order))
}

/// Like [`from_json`], but keeps all entries with a repeated name.
pub(super) fn all(container: &str, list: &[Value], path: &str) -> Result<Vec<EnvVar>, Refusal> {
    let mut wrong = Violations::new();
    let path = Path::new(path);
    let mut vars = Vec::with_capacity(list.len());
    for (at, item) in list.iter().enumerate() {
        if let Some((name, source)) = variable(item, &path, at, &mut wrong) {
            let (container, name, origin) = (container.to_owned(), name.to_owned(), path.index(at).into());
            vars.push(EnvVar { container, name, source, origin });
        }
    }
    wrong.into_result().map(|()| vars)
}

/// Returns the name of a variable, and the text that can refer to other variables.
pub(super) fn definition(var: &EnvVar) -> (&str, &str) {
    let text = if let EnvSource::Literal(text) = &var.source { text.as_str() } else { "" };
    (&var.name, text)
}

/// Reads the final mapping, including init containers, from a pod spec after all merges. The caller must first remove
/// repeated variables from each container with [`each_once`](super::each_once).
///
/// A variable that equals its entry in `known` keeps the origin in `known`. Every other variable came from the patch
/// and gets the origin `patched`, for example `spec.podSpec`. The paths of violations also begin with `patched`.
/// [`check_patch`] reports violations with the exact path in the patch.
pub fn of_pod_spec(pod_spec: &Value, known: &[EnvVar], patched: &str) -> Result<Vec<EnvVar>, Refusal> {
    let mut wrong = Violations::new();
    let mut vars = Vec::with_capacity(known.len());
    for (container, _, env) in env_lists(pod_spec) {
        let own = || known.iter().enumerate().filter(|(_, var)| var.container == container);
        let places = own().fold(Places::new(), |mut places, (at, var)| {
            places.insert(&var.name, at);
            places
        });
        let path = Path::new(patched);
        let Value::Array(list) = env else {
            wrong.add(path, NO_LIST);
            continue;
        };
        for (at, item) in list.iter().enumerate() {
            let Some((name, source)) = variable(item, &path, at, &mut wrong) else { continue };
            let (container, name) = (container.to_owned(), name.to_owned());
            let mut var = EnvVar { container, name, source, origin: String::new() };
            let before = places.get(&var.name).and_then(|at| known.get(at));
            // Also compare the `env` entries, because two different values of `EnvSource` can become equal entries.
            let same = before.filter(|before| before.source == var.source || entry(before) == entry(&var));
            same.map_or(patched, |same| same.origin.as_str()).clone_into(&mut var.origin);
            vars.push(var);
        }
    }
    wrong.into_result().map(|()| vars)
}

/// Checks the variables in a patch of a pod spec. `root` is the patch's path in the object. Call this function before
/// the merge, because the merge moves items, and the paths then no longer match the user's text.
pub fn check_patch(patch: &Value, root: &str) -> Result<(), Refusal> {
    let mut wrong = Violations::new();
    for (_, (list, at), env) in env_lists(patch) {
        let place = Path::new(root).key(list).index(at).key("env");
        let Value::Array(items) = env else {
            wrong.add(place, NO_LIST);
            continue;
        };
        // An item with the directive `$patch` is not a variable.
        for (at, item) in items.iter().enumerate().filter(|(_, item)| item.get("$patch").is_none()) {
            variable(item, &place, at, &mut wrong);
        }
    }
    wrong.into_result()
}

/// Iterates over the `env` of each container of a pod spec. Each item has the container's name, the name of the list
/// with the container, the container's position in this list, and the value of `env`.
fn env_lists(pod_spec: &Value) -> impl Iterator<Item = (&str, (&'static str, usize), &Value)> {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(move |list| {
        let containers = pod_spec.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        containers.iter().enumerate().filter_map(move |(at, container)| {
            let env = container.get("env").filter(|env| !env.is_null())?;
            Some((container.get("name").and_then(Value::as_str).unwrap_or_default(), (list, at), env))
        })
    })
}

/// Reads the name and the source of the variable at index `at` of the list at `path`.
fn variable<'a>(item: &'a Value, path: &Path, at: usize, wrong: &mut Violations) -> Option<(&'a str, EnvSource)> {
    let Some(name) = name(item) else {
        wrong.add(path.index(at).key("name"), "is required; it is the variable's name");
        return None;
    };
    if name.bytes().any(|byte| byte == b'=' || byte == 0) {
        wrong.add(path.index(at).key("name"), "must not contain '='");
        return None;
    }
    source(item, path, at, wrong).map(|source| (name, source))
}

fn name(item: &Value) -> Option<&str> {
    item.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())
}

fn source(item: &Value, path: &Path, at: usize, wrong: &mut Violations) -> Option<EnvSource> {
    let value = match item.get("value") {
        None | Some(Value::Null) => "",
        Some(Value::String(value)) => value,
        Some(_) => {
            wrong.add(path.index(at).key("value"), "must be text; put it into quotes");
            return None;
        }
    };
    match item.get("valueFrom") {
        None | Some(Value::Null) => Some(EnvSource::Literal(value.to_owned())),
        Some(Value::Object(_)) if !value.is_empty() => {
            wrong.add(path.index(at).key("valueFrom"), "must not be set together with value; remove one of them");
            None
        }
        Some(Value::Object(from)) => Some(reference(from)),
        Some(_) => {
            wrong.add(path.index(at).key("valueFrom"), "must be an object");
            None
        }
    }
}

/// Returns a typed source if `EnvSource` has one for every member of `from`. Otherwise returns `from` as JSON text.
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
    use super::{check_patch, from_json, of_pod_spec, to_json};
    use crate::env;
    use crate::types::{EnvVar, Refusal};
    use serde_json::{Value, json};

    fn list(value: Value) -> Vec<Value> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn every_source_survives_a_round_trip() {
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
        assert_eq!(vars[3].source, env::optional(env::secret_key("s", "k")));
        assert_eq!(vars[4].source, env::config_map_key("c", "k"));
        assert_eq!(env::optional(env::literal("x")), env::literal("x"));
        assert_eq!(vars[5].source, env::field("metadata.name"));
        assert_eq!(vars[8].source, env::with_optional(env::secret_key("s", "k"), Some(false)));
        assert_eq!(vars[3].source, env::with_optional(env::secret_key("s", "k"), Some(true)));
        assert_eq!(vars[4].source, env::with_optional(env::config_map_key("c", "k"), None));
        let required = env::other(&json!({"configMapKeyRef": {"key": "k", "name": "c", "optional": false}}));
        assert_eq!(env::with_optional(env::config_map_key("c", "k"), Some(false)), required);
        assert_eq!(env::with_optional(env::literal("x"), Some(false)), env::literal("x"));
        assert_eq!(vars[7].origin, "spec.container.env[7]");
        assert_eq!(to_json(&vars, "c"), array);
        assert!(to_json(&vars, "other").is_empty());
    }

    #[test]
    fn the_last_of_two_entries_with_one_name_wins() {
        let vars =
            from_json("c", &list(json!([{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])), "e").unwrap();
        assert_eq!(vars.len(), 1);
        assert_eq!((&vars[0].source, vars[0].origin.as_str()), (&env::literal("2"), "e[1]"));
    }

    #[test]
    fn the_last_of_two_entries_stands_where_the_first_does() {
        let twice = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)"}, {"name": "A", "value": "2"}]);
        let vars = from_json("c", &list(twice), "e").unwrap();
        assert_eq!(to_json(&vars, "c"), list(json!([{"name": "A", "value": "2"}, {"name": "B", "value": "$(A)"}])));
    }

    #[test]
    fn all_wrong_entries_are_named() {
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
    fn merges_keep_origins_and_patched_values_name_the_patch() {
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
        assert_eq!(wrong[0].path, "spec.podSpec");
    }

    #[test]
    fn an_error_in_a_patch_has_the_path_that_the_user_wrote() {
        let patch = json!({"containers": [
            {"name": "side", "env": [{"$patch": "replace"}, {"name": "A", "$patch": "delete"}, {"name": "B", "value": 1}]},
            {"name": "own", "env": null}, {"name": "c", "env": "x"}, {"name": "d"},
        ], "initContainers": 5});
        let Err(Refusal::Invalid(wrong)) = check_patch(&patch, "spec.podSpec") else { panic!("must be refused") };
        let paths: Vec<_> = wrong.iter().map(|violation| violation.path.as_str()).collect();
        assert_eq!(paths, ["spec.podSpec.containers[0].env[2].value", "spec.podSpec.containers[2].env"]);
        assert_eq!(check_patch(&json!([]), "spec.podSpec"), Ok(()));
    }
}
