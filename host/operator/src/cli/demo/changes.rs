//! Compares the children before and after a change of a policy, field by field.

use std::{collections::BTreeMap, io, sync::Arc};

use serde_json::Value;

use super::screen::Screen;
use crate::plan::{self, Field};

/// The children by kind, namespace and name.
pub(super) type Children = BTreeMap<String, Arc<Value>>;

/// The fields of an object that the demo compares: the kind, and the fields that the author of the object sets.
const DECIDED: [&str; 4] = ["kind", "spec", "data", "binaryData"];

/// Returns a line for each field that differs, and for each child that was created or deleted.
fn between(before: &Children, after: &Children) -> Vec<String> {
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

/// Prints the changes between two sets of children.
pub(super) fn tell(before: &Children, after: &Children, screen: &mut Screen) -> io::Result<()> {
    let changes = between(before, after);
    screen.step(&format!("All changes in {} children:", after.len()))?;
    for line in &changes {
        screen.say(&format!("  {line}"))?;
    }
    if changes.is_empty() {
        screen.say("  nothing")?;
    }
    Ok(())
}

fn fields(old: &Value, new: &Value) -> Vec<String> {
    let decided = |object: &Value| -> Value {
        let fields = DECIDED.iter().filter_map(|field| Some(((*field).to_owned(), object.get(field)?.clone())));
        Value::Object(fields.collect())
    };
    plan::fields(&decided(old), &decided(new)).iter().map(told).collect()
}

fn told(Field { path, before, after }: &Field) -> String {
    match (before, after) {
        (Some(before), Some(after)) => format!("{path}: {before} -> {after}"),
        (Some(before), None) => format!("{path}: {before} (gone)"),
        (None, after) => format!("{path}: {} (new)", after.as_ref().unwrap_or(&Value::Null)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn children(objects: &[(&str, Value)]) -> Children {
        objects.iter().map(|(name, object)| ((*name).to_owned(), Arc::new(object.clone()))).collect()
    }

    #[test]
    fn only_changes_of_decided_fields_are_reported() {
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
