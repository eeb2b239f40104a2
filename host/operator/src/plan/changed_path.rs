//! Finds renamed fields among changed fields, and changed fields below a frozen path.

use std::collections::HashMap;

use serde_json::Value;

use super::Field;
use crate::masking::MASK;

/// A path below which a package must not change fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrozenPath {
    /// The path, as the user wrote it.
    pub path: String,
    steps: Vec<PathStep>,
}

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum PathStep {
    Key(String),
    /// The index or the name of a list's item.
    Item(String),
}

impl FrozenPath {
    /// Reads a path.
    pub fn new(path: &str) -> Self {
        Self { path: path.to_owned(), steps: steps(path) }
    }

    /// Returns whether a change of the field at `changed` can change the field at the frozen path. If the frozen path
    /// leaves out the name of a list's item, the path covers all items of the list.
    pub(super) fn covers(&self, ChangedPath(changed): &ChangedPath) -> bool {
        let mut wanted = self.steps.iter().peekable();
        for step in changed {
            match wanted.peek() {
                None => return true,
                Some(next) if *next == step || is_any_item(next, step) => drop(wanted.next()),
                Some(PathStep::Key(_)) if matches!(step, PathStep::Item(_)) => {}
                Some(_) => return false,
            }
        }
        // The changed field is the frozen field, or contains it and may therefore change it.
        true
    }

    /// Returns whether a manifest has a field at this path.
    pub(super) fn is_in(&self, manifest: &Value) -> bool {
        is_in(&self.steps, manifest)
    }
}

/// The path of a changed field, split into its steps.
pub(super) struct ChangedPath(Vec<PathStep>);

impl ChangedPath {
    pub(super) fn new(path: &str) -> Self {
        Self(steps(path.strip_suffix(" (order)").unwrap_or(path)))
    }
}

/// Returns whether the changed step is an index, which can mean any item of the frozen path's list. The comparison
/// identifies items by index if they have no names.
fn is_any_item(wanted: &PathStep, changed: &PathStep) -> bool {
    matches!((wanted, changed), (PathStep::Item(_), PathStep::Item(index)) if index.parse::<usize>().is_ok())
}

fn is_in(steps: &[PathStep], value: &Value) -> bool {
    match (steps, value) {
        ([], _) => true,
        ([PathStep::Item(item), rest @ ..], Value::Array(items)) => {
            let named = items.iter().find(|it| it["name"] == item.as_str());
            let item = named.or_else(|| items.get(item.parse::<usize>().ok()?));
            item.is_some_and(|item| is_in(rest, item))
        }
        ([PathStep::Key(_), ..], Value::Array(items)) => items.iter().any(|item| is_in(steps, item)),
        ([PathStep::Key(key), rest @ ..], Value::Object(fields)) => {
            fields.get(key).is_some_and(|field| is_in(rest, field))
        }
        _ => false,
    }
}

/// Splits a path as [`crate::schema::path`] formats it.
fn steps(path: &str) -> Vec<PathStep> {
    let (mut steps, mut rest) = (Vec::new(), path);
    while !rest.is_empty() {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(inner) = rest.strip_prefix('[') {
            let (text, quoted, left) = bracket(inner);
            steps.push(if quoted { PathStep::Key(text) } else { PathStep::Item(text) });
            rest = left;
            continue;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        if end > 0 {
            steps.push(PathStep::Key(rest[..end].to_owned()));
        }
        rest = &rest[end..];
    }
    steps
}

/// Splits a path that starts after an opening bracket. Returns the text in the brackets, whether this text is quoted,
/// and the rest of the path.
fn bracket(path: &str) -> (String, bool, &str) {
    if path.starts_with('"') {
        let mut values = serde_json::Deserializer::from_str(path).into_iter::<String>();
        if let Some(Ok(text)) = values.next() {
            let left = &path[values.byte_offset()..];
            return (text, true, left.strip_prefix(']').unwrap_or(left));
        }
    }
    let end = path.find(']').unwrap_or(path.len());
    (path[..end].to_owned(), false, path.get(end + 1..).unwrap_or_default())
}

/// Returns whether the change removes a field and adds a field. Otherwise, it renames no field.
pub(super) fn can_have_renames(fields: &[Field]) -> bool {
    let has = |before, after| fields.iter().any(|it| (it.before.is_some(), it.after.is_some()) == (before, after));
    has(true, false) && has(false, true)
}

/// Finds renamed fields, and returns all fields with their paths. A field counts as renamed if a removed and an added
/// field have the same parent and the same value. A field `name` inside the value may differ. Several removed or
/// several added fields with this value are no rename. Masked values are ignored, because equal masks can hide
/// different values. The result has one path with both names for a renamed field, and `None` instead of the field.
pub(super) fn with_renames(fields: &[Field]) -> Vec<(String, Option<&Field>)> {
    let gone = sides(fields, |field| (&field.before, &field.after));
    let come = sides(fields, |field| (&field.after, &field.before));
    let mut paths: Vec<Option<(String, Option<&Field>)>> =
        fields.iter().map(|field| Some((field.path.clone(), Some(field)))).collect();
    for (content, gone) in &gone {
        if let ([(at, name)], Some([(to, new)])) = (gone.as_slice(), come.get(content).map(Vec::as_slice)) {
            paths[*at] = Some((format!("{}{name} -> {}", content.0, new.trim_start_matches('.')), None));
            paths[*to] = None;
        }
    }
    paths.into_iter().flatten().collect()
}

/// Groups of fields with the same parent and the same value. The key of a group is the parent and the text of the
/// value. The entries of a group are the index and the name of each field.
type Alike<'a> = HashMap<(&'a str, String), Vec<(usize, &'a str)>>;

/// Returns the fields that exist only on one side, grouped by their parent and their value.
fn sides(fields: &[Field], side: fn(&Field) -> (&Option<Value>, &Option<Value>)) -> Alike<'_> {
    let mut alike = Alike::new();
    for (at, field) in fields.iter().enumerate() {
        if let (Some(value), None) = side(field)
            && !is_masked(value)
        {
            let (parent, name) = split(&field.path);
            alike.entry((parent, unnamed(value).to_string())).or_default().push((at, name));
        }
    }
    alike
}

fn unnamed(value: &Value) -> Value {
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("name");
    }
    value
}

fn is_masked(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(MASK),
        Value::Array(items) => items.iter().any(is_masked),
        Value::Object(fields) => fields.values().any(is_masked),
        _ => false,
    }
}

/// Splits a path into its parent and its last step.
fn split(path: &str) -> (&str, &str) {
    let at = if path.ends_with(']') { path.rfind('[') } else { path.rfind('.') };
    path.split_at(at.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_frozen_path_covers_its_fields_in_all_items_and_the_fields_above() {
        let covers = |frozen: &str, path: &str| FrozenPath::new(frozen).covers(&ChangedPath::new(path));
        for path in [
            "spec.template.spec.containers[web].image",
            "spec.template.spec.containers[web]",
            "spec.template.spec",
            "spec.template.spec.containers (order)",
        ] {
            assert!(covers("spec.template.spec.containers.image", path), "{path}");
        }
        assert!(covers("spec", "spec.selector.matchLabels[\"a.b/c\"]"));
        assert!(covers("spec.containers[web].env", "spec.containers[web].env[A].value"));
        for path in ["spec.template.spec.containers[web].env[A].value", "spec.replicas", "metadata.labels[\"spec\"]"] {
            assert!(!covers("spec.template.spec.containers.image", path), "{path}");
        }
        assert!(!covers("spec.containers[web].env", "spec.containers[other].env[A].value"));
        assert!(covers("spec.ports[http].port", "spec.ports[0].port"), "a list with an item without a name");
        assert!(covers("metadata.labels[\"a.b/c\"]", "metadata.labels[\"a.b/c\"]"));
        assert!(!covers("metadata.labels[\"a.b/c\"]", "metadata.labels.a"));
    }

    #[test]
    fn a_frozen_path_is_in_a_manifest_that_has_the_field() {
        let manifest = json!({"spec": {"containers": [{"name": "web", "env": []}, {"name": "side", "image": "x"}]}});
        for path in ["spec", "spec.containers.image", "spec.containers[side].image", "spec.containers[0].env"] {
            assert!(FrozenPath::new(path).is_in(&manifest), "{path}");
        }
        for path in ["spec.containers[web].image", "spec.replicas", "data", "spec.containers[7]"] {
            assert!(!FrozenPath::new(path).is_in(&manifest), "{path}");
        }
    }

    fn field(path: &str, before: Option<Value>, after: Option<Value>) -> Field {
        Field { path: path.to_owned(), before, after }
    }

    fn paths(fields: &[Field]) -> Vec<String> {
        with_renames(fields).into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn a_field_that_only_gets_another_name_is_one_renamed_field() {
        let item = |name: &str, value: &str| Some(json!({"name": name, "value": value}));
        let renamed = [
            field("c[web].env[OLD]", item("OLD", "1"), None),
            field("c[web].env[NEW]", None, item("NEW", "1")),
            field("c[web].image", Some(json!("a")), Some(json!("b"))),
        ];
        assert_eq!(paths(&renamed), ["c[web].env[OLD] -> [NEW]", "c[web].image"]);
        let keys = [field("data.edition", Some(json!("1")), None), field("data.release", None, Some(json!("1")))];
        assert_eq!(paths(&keys), ["data.edition -> release"]);
    }

    #[test]
    fn fields_with_other_values_or_several_partners_are_not_renamed() {
        let one = |path: &str, value: &str| field(path, Some(json!(value)), None);
        let new = |path: &str, value: &str| field(path, None, Some(json!(value)));
        for fields in [
            [one("data.a", "1"), new("data.b", "2"), new("data.c", "3")],
            [one("data.a", "1"), new("data.b", "1"), new("data.c", "1")],
            [one("data.a", MASK), new("data.b", MASK), new("data.c", "3")],
            [one("data.a", "1"), new("other.b", "1"), new("data.c", "3")],
        ] {
            assert_eq!(paths(&fields).len(), 3, "{fields:?}");
        }
    }
}
