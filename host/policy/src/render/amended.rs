//! Records the variables and values that the overlays set, and the children that the overlays changed or added.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::{
    contract::{EnvVar, Reference},
    digest::canonical,
    origins::{PathStep, leaves, written},
};

/// The variables that overlays set, by container and name. The value is the number of the overlay; 1 is the lowest.
pub(super) type Overlaid = BTreeMap<(String, String), usize>;

/// Records the variables that the overlay with the number `at` set: the variables in which its mapping `now` differs
/// from the mapping `below`.
pub(super) fn note_variables(overlaid: &mut Overlaid, at: usize, below: &[EnvVar], now: &[EnvVar]) {
    let below: BTreeMap<_, &EnvVar> = below.iter().map(|it| ((&it.container, &it.name), it)).collect();
    let given = now.iter().filter(|it| below.get(&(&it.container, &it.name)) != Some(it));
    overlaid.extend(given.map(|it| ((it.container.clone(), it.name.clone()), at)));
}

/// Compares the mapping that the policy received with the mapping of its plan. Removes from `overlaid` each variable
/// that differs, because the policy is then the author of the variable. So no grant of an overlay applies to the
/// variable, and a breach must not name the overlay.
pub(super) fn keep_returned(overlaid: &mut Overlaid, given: &[EnvVar], returned: &[EnvVar]) {
    if overlaid.is_empty() {
        return;
    }
    let (given, returned) = (by_key(given), by_key(returned));
    overlaid.retain(|(container, name), _| {
        let key = (container.as_str(), name.as_str());
        given.get(&key) == returned.get(&key)
    });
}

/// Returns the entries of each variable, by container and name.
fn by_key(env: &[EnvVar]) -> BTreeMap<(&str, &str), Vec<&EnvVar>> {
    let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for variable in env {
        all.entry((variable.container.as_str(), variable.name.as_str())).or_default().push(variable);
    }
    all
}

/// Returns the children that are new or differ from the plan of the layer below. All children are in `namespace`.
pub(super) fn children(below: &[Value], now: &[Value], namespace: &str) -> Vec<Reference> {
    let child =
        |manifest: &Value| Reference { namespace: Some(namespace.to_owned()), ..Reference::of_object(manifest) };
    let below: BTreeMap<_, _> = below.iter().map(|manifest| (child(manifest), manifest)).collect();
    let now = now.iter().map(|manifest| (child(manifest), manifest));
    now.filter(|(child, manifest)| below.get(child) != Some(manifest)).map(|(child, _)| child).collect()
}

/// The number of the overlay that set each value of a child, by the value's path; 1 is the lowest overlay. The map does
/// not contain values that the policy set.
type Values = BTreeMap<String, usize>;

/// For each child, the overlays that set values in the child's manifest.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SetBy(BTreeMap<Reference, Values>);

impl SetBy {
    /// Returns the number of the overlay that set the value at a path of a child; 1 is the lowest overlay. Returns
    /// `None` if the policy or the operator set the value.
    pub(super) fn overlay(&self, child: &Reference, path: &str) -> Option<usize> {
        self.0.get(child)?.get(path).copied()
    }

    /// Records the values that the overlay with the number `at` set: the values in which `children` differ from the
    /// plan of the layer below.
    pub(super) fn note(&mut self, at: usize, children: &[Reference], below: &[Value], now: &[Value]) {
        for child in children {
            let Some(now) = now.iter().find(|manifest| is_of(manifest, child)) else { continue };
            let below = below.iter().find(|manifest| is_of(manifest, child));
            let before = self.0.remove(child).unwrap_or_default();
            let mut comparison = Comparison { at, before, values: Values::new() };
            comparison.walk(below, now, &mut Vec::new(), &mut Vec::new());
            self.0.insert(child.clone(), comparison.values);
        }
    }
}

/// Returns whether a manifest belongs to this child. Ignores the namespace, because a manifest may have none.
fn is_of(manifest: &Value, child: &Reference) -> bool {
    let Reference { api_version, kind, name, .. } = Reference::of_object(manifest);
    (api_version, kind, name) == (child.api_version.clone(), child.kind.clone(), child.name.clone())
}

/// Compares a child with the same child of the layer below.
struct Comparison {
    at: usize,
    /// The values that the overlays below this overlay set. The key is the path of a value in the plan of the layer
    /// below.
    before: Values,
    values: Values,
}

impl Comparison {
    /// Compares a value with the corresponding value in the layer below. `was` is the old path of the value, and `is`
    /// is its path now.
    fn walk(&mut self, below: Option<&Value>, now: &Value, was: &mut Vec<PathStep>, is: &mut Vec<PathStep>) {
        match (below, now) {
            (Some(Value::Object(below)), Value::Object(fields)) if !fields.is_empty() => {
                for (name, value) in fields {
                    was.push(PathStep::Name(name.clone()));
                    is.push(PathStep::Name(name.clone()));
                    self.walk(below.get(name), value, was, is);
                    was.pop();
                    is.pop();
                }
            }
            (Some(Value::Array(below)), Value::Array(items)) if !items.is_empty() => {
                let items_below = ItemsBelow::of(below);
                for (i, item) in items.iter().enumerate() {
                    let corresponding = items_below.corresponding(item);
                    was.push(PathStep::Index(corresponding.unwrap_or_default()));
                    is.push(PathStep::Index(i));
                    self.walk(corresponding.and_then(|i| below.get(i)), item, was, is);
                    was.pop();
                    is.pop();
                }
            }
            (Some(below), now) if below == now => {
                if let Some(overlay) = self.before.get(&written(was)) {
                    self.values.insert(written(is), *overlay);
                }
            }
            (_, now) => {
                for (path, _) in leaves(now) {
                    self.values.insert(written(&[is.as_slice(), &path].concat()), self.at);
                }
            }
        }
    }
}

/// The items of a list in the layer below. An item with a `name` corresponds to the item with the same name. An item
/// without a `name` corresponds to an equal item.
struct ItemsBelow<'a> {
    named: HashMap<&'a str, usize>,
    others: HashMap<String, usize>,
}

impl<'a> ItemsBelow<'a> {
    fn of(items: &'a [Value]) -> Self {
        let mut all = Self { named: HashMap::new(), others: HashMap::new() };
        for (i, item) in items.iter().enumerate() {
            match item["name"].as_str() {
                Some(name) => all.named.entry(name).or_insert(i),
                None => all.others.entry(canonical(item)).or_insert(i),
            };
        }
        all
    }

    fn corresponding(&self, item: &Value) -> Option<usize> {
        match item["name"].as_str() {
            Some(name) => self.named.get(name).copied(),
            None => self.others.get(&canonical(item)).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(containers: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers}})
    }

    #[test]
    fn a_value_belongs_to_the_overlay_that_set_it_also_after_another_overlay_moved_it() {
        let plans = [
            pod(&json!([{"name": "main", "image": "a:1", "args": ["x"]}])),
            pod(&json!([{"name": "main", "image": "b:1", "args": ["y", "x"]}])),
            pod(&json!([{"name": "side", "image": "s:1"}, {"name": "main", "image": "b:1", "args": ["x", "y"]}])),
        ];
        let child = Reference { namespace: Some("n".to_owned()), ..Reference::of_object(&plans[0]) };
        let mut set_by = SetBy::default();
        for (at, plans) in (1..).zip(plans.windows(2)) {
            set_by.note(at, std::slice::from_ref(&child), &plans[..1], &plans[1..]);
        }
        for (path, overlay) in [
            ("metadata.name", None),
            ("spec.containers[0].name", Some(2)),
            ("spec.containers[0].image", Some(2)),
            ("spec.containers[1].name", None),
            ("spec.containers[1].image", Some(1)),
            ("spec.containers[1].args[0]", None),
            ("spec.containers[1].args[1]", Some(1)),
        ] {
            assert_eq!(set_by.overlay(&child, path), overlay, "{path}");
        }
    }

    #[test]
    fn all_values_of_an_added_child_belong_to_its_overlay() {
        let now = [pod(&json!([]))];
        let child = Reference::of_object(&now[0]);
        let mut set_by = SetBy::default();
        set_by.note(1, std::slice::from_ref(&child), &[], &now);
        assert_eq!(set_by.overlay(&child, "metadata.name"), Some(1));
        assert_eq!(set_by.overlay(&child, "spec.containers"), Some(1));
    }
}
