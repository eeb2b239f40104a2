//! What a change of policy changed: the children before and after, field by field.

use std::{collections::BTreeMap, sync::Arc};

use json_patch::{PatchOperation, diff};
use serde_json::Value;

/// Children by kind, namespace and name.
pub(super) type Children = BTreeMap<String, Arc<Value>>;

/// Those parts of an object that somebody decided.
const DECIDED: [&str; 3] = ["spec", "data", "binaryData"];

/// A line for each field that differs, and for each child that came or went.
pub(super) fn between(before: &Children, after: &Children) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, old) in before {
        match after.get(name) {
            None => lines.push(format!("- {name}")),
            Some(new) => lines.extend(fields(old, new).into_iter().map(|field| format!("~ {name}  {field}"))),
        }
    }
    lines.extend(after.keys().filter(|name| !before.contains_key(*name)).map(|name| format!("+ {name}")));
    lines
}

fn fields(old: &Value, new: &Value) -> Vec<String> {
    let decided = |object: &Value| -> Value {
        let fields = DECIDED.iter().filter_map(|field| Some(((*field).to_owned(), object.get(field)?.clone())));
        Value::Object(fields.collect())
    };
    let (old, new) = (decided(old), decided(new));
    diff(&old, &new).0.iter().filter_map(|operation| field(operation, &old)).collect()
}

fn field(operation: &PatchOperation, old: &Value) -> Option<String> {
    let was = |path: &str| old.pointer(path).map_or_else(String::new, Value::to_string);
    let (path, what) = match operation {
        PatchOperation::Add(add) => (add.path.to_string(), format!("{} (new)", add.value)),
        PatchOperation::Remove(remove) => {
            let path = remove.path.to_string();
            let what = format!("{} (gone)", was(&path));
            (path, what)
        }
        PatchOperation::Replace(replace) => {
            let path = replace.path.to_string();
            let what = format!("{} -> {}", was(&path), replace.value);
            (path, what)
        }
        _ => return None,
    };
    // The hash follows from the rest: it says that the pods roll, not why.
    (!path.contains("pod-spec-hash")).then(|| format!("{}: {what}", dotted(&path)))
}

fn dotted(pointer: &str) -> String {
    let segments = pointer.split('/').skip(1).map(|segment| segment.replace("~1", "/").replace("~0", "~"));
    let mut path = String::new();
    for segment in segments {
        if segment.bytes().all(|byte| byte.is_ascii_digit()) {
            path.push_str(&format!("[{segment}]"));
        } else {
            path.push_str(if path.is_empty() { "" } else { "." });
            path.push_str(&segment);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn children(objects: &[(&str, Value)]) -> Children {
        objects.iter().map(|(name, object)| ((*name).to_owned(), Arc::new(object.clone()))).collect()
    }

    #[test]
    fn fields_that_somebody_decided_are_told_and_no_others() {
        let child = |image: &str, revision: &str, hash: &str| {
            json!({
                "metadata": {"resourceVersion": revision},
                "spec": {"template": {
                    "metadata": {"annotations": {"kaos.tools/pod-spec-hash": hash}},
                    "spec": {"containers": [{"image": image}]},
                }},
                "status": {"replicas": revision},
            })
        };
        let before = children(&[("Deployment a/b", child("one", "1", "x")), ("Service a/b", json!({}))]);
        let after = children(&[("Deployment a/b", child("two", "2", "y")), ("ConfigMap a/b", json!({}))]);
        let lines = [
            "~ Deployment a/b  spec.template.spec.containers[0].image: \"one\" -> \"two\"",
            "- Service a/b",
            "+ ConfigMap a/b",
        ];
        assert_eq!(between(&before, &after), lines);
    }
}
