//! Reads the paths of changed fields: finds renamed fields, and fields below a frozen path.

use serde_json::Value;

use super::Field;
use crate::masking::MASK;

/// A path whose fields must not change.
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

    /// Returns whether a change of the field `path` can change a field of the frozen path. A frozen path without the
    /// name of an item covers all items of the list.
    pub fn covers(&self, path: &str) -> bool {
        let changed = steps(path.strip_suffix(" (order)").unwrap_or(path));
        let mut wanted = self.steps.iter().peekable();
        for step in &changed {
            match wanted.peek() {
                None => return true,
                Some(next) if *next == step => drop(wanted.next()),
                Some(PathStep::Key(_)) if matches!(step, PathStep::Item(_)) => {}
                Some(_) => return false,
            }
        }
        // Here, the whole changed path leads to the frozen path, so the change can include the frozen path.
        true
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

/// Returns the text in brackets, whether the text is quoted, and the rest of the path. `path` starts after the opening
/// bracket.
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

/// Replaces each pair of a removed and an added field by one renamed field: both fields have the same parent and the
/// same value, and no other field of this parent was removed or added with this value. Leaves masked values alone,
/// because equal masks can hide different values. Returns the path of each field, and whether the field was renamed.
pub(super) fn with_renames(fields: &[Field]) -> Vec<(String, Option<&Field>)> {
    let gone: Vec<(usize, (&str, &str), Value)> = sides(fields, |field| (&field.before, &field.after));
    let come: Vec<(usize, (&str, &str), Value)> = sides(fields, |field| (&field.after, &field.before));
    let mut paths: Vec<Option<(String, Option<&Field>)>> =
        fields.iter().map(|field| Some((field.path.clone(), Some(field)))).collect();
    for (at, (parent, name), value) in &gone {
        let fits = |(_, (other, _), content): &&(usize, (&str, &str), Value)| other == parent && content == value;
        let mut pairs = come.iter().filter(fits);
        let (Some((to, (_, new), _)), None) = (pairs.next(), pairs.next()) else { continue };
        if gone.iter().filter(fits).count() == 1 {
            paths[*at] = Some((format!("{parent}{name} -> {}", new.trim_start_matches('.')), None));
            paths[*to] = None;
        }
    }
    paths.into_iter().flatten().collect()
}

/// Returns the fields that exist only on one side: the index of the field, its parent and its own name, and its value
/// without the name.
fn sides(fields: &[Field], side: fn(&Field) -> (&Option<Value>, &Option<Value>)) -> Vec<(usize, (&str, &str), Value)> {
    let one = |(at, field): (usize, &'_ Field)| match side(field) {
        (Some(value), None) if !is_masked(value) => Some((at, unnamed(value))),
        _ => None,
    };
    let of = fields.iter().enumerate().filter_map(one);
    of.map(|(at, value)| (at, split(&fields[at].path), value)).collect()
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
        let covers = |frozen: &str, path: &str| FrozenPath::new(frozen).covers(path);
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
        assert!(covers("metadata.labels[\"a.b/c\"]", "metadata.labels[\"a.b/c\"]"));
        assert!(!covers("metadata.labels[\"a.b/c\"]", "metadata.labels.a"));
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
