//! Decides whether the path in a refusal exists, so that a user can find the field.

use serde_json::Value;

/// A step of a path.
#[derive(Debug, PartialEq)]
enum Step {
    Member(String),
    Index(usize),
    /// An item of a list, by its name.
    Named(String),
}

/// Returns whether the object has a field at this path, or the kind's schema allows a field there. Without a schema,
/// only the last step of the path may be missing in the object.
pub(super) fn exists(path: &str, object: &Value, schema: Option<&Value>) -> bool {
    let Some(steps) = parse(path) else { return false };
    let is_of_all_kinds = matches!(steps.first(), Some(Step::Member(first)) if first == "metadata");
    let open = Value::Bool(true);
    // Every kind has metadata, and a structural schema need not declare the fields of metadata.
    let mut schema = if is_of_all_kinds { Some(&open) } else { schema };
    let has_schema = schema.is_some();
    let mut value = Some(object);
    for (at, step) in steps.iter().enumerate() {
        let above = value.is_some();
        value = value.and_then(|value| step.of(value));
        schema = schema.and_then(|schema| below(schema, step));
        let may_be_missing = if has_schema { schema.is_some() } else { above && at + 1 == steps.len() };
        if value.is_none() && !may_be_missing {
            return false;
        }
    }
    !steps.is_empty()
}

impl Step {
    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Member(name) => value.get(name),
            Self::Index(index) => value.get(index),
            Self::Named(name) => value.as_array()?.iter().find(|item| item["name"] == **name),
        }
    }
}

/// Returns the schema of a step below a schema. A schema that accepts any content also accepts any content below it.
fn below<'a>(schema: &'a Value, step: &Step) -> Option<&'a Value> {
    if schema == true {
        return Some(schema);
    }
    let inner = match step {
        Step::Member(name) => schema["properties"].get(name).or_else(|| schema.get("additionalProperties")),
        Step::Index(_) | Step::Named(_) => schema.get("items"),
    };
    let is_open = schema["x-kubernetes-preserve-unknown-fields"] == true;
    inner.filter(|inner| **inner != false).or_else(|| is_open.then_some(&Value::Bool(true)))
}

/// Parses a path such as `spec.env[0].name`, `metadata.labels["a.b/c"]` or `spec.containers[web]`.
fn parse(path: &str) -> Option<Vec<Step>> {
    let (mut steps, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let (name, after) = quoted.split_once("\"]")?;
            let name: String = serde_json::from_str(&format!("\"{name}\"")).unwrap_or_else(|_| name.to_owned());
            steps.push(Step::Member(name));
            rest = after;
        } else if let Some(bracket) = rest.strip_prefix('[') {
            let (inner, after) = bracket.split_once(']')?;
            let named = inner.strip_prefix("name=\"").and_then(|name| name.strip_suffix('"')).unwrap_or(inner);
            steps.push(inner.parse().map_or_else(|_| Step::Named(named.to_owned()), Step::Index));
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name.is_empty() {
                return None;
            }
            steps.push(Step::Member(name.to_owned()));
            rest = after;
        }
        if let Some(after) = rest.strip_prefix('.') {
            // A path does not end in a dot.
            rest = Some(after).filter(|after| !after.is_empty())?;
        }
    }
    Some(steps)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_exists_in_the_object_or_in_the_schema() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"env": [{"name": "A"}]}});
        let schema = json!({"properties": {"spec": {"properties": {
            "title": {"type": "string"}, "env": {"items": {"properties": {"name": {}}}},
            "marks": {"additionalProperties": {"type": "string"}},
            "pod": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}});
        for path in [
            "spec",
            "spec.title",
            "spec.env[0].name",
            "spec.env[7].name",
            "spec.env[A]",
            "spec.env[name=\"A\"].name",
            "spec.marks[\"a.b/c\"]",
            "spec.pod.containers[0].image",
            "metadata.name",
            "metadata.annotations[\"a.b/c\"]",
        ] {
            assert!(exists(path, &object, Some(&schema)), "{path}");
        }
        for path in
            ["", "title", "spec.tilte", "spec.", ".spec", "spec..title", "spec.env[0].value", "spec.env[", "status"]
        {
            assert!(!exists(path, &object, Some(&schema)), "{path}");
        }
    }

    #[test]
    fn without_a_schema_only_the_last_step_may_be_missing() {
        let object = json!({"metadata": {"name": "a"}, "spec": {"env": [{"name": "A"}]}});
        for path in ["spec.title", "spec.env[0].value", "metadata.labels"] {
            assert!(exists(path, &object, None), "{path}");
        }
        for path in ["spec.title.text", "sepc.title", "spec.env[1].name"] {
            assert!(!exists(path, &object, None), "{path}");
        }
    }
}
