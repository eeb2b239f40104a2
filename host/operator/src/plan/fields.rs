//! Compares two manifests field by field. Compares secret values too, but never shows them.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::stamp::{APPLIED_DIGEST, HASH_STANDS_FOR, POD_SPEC_HASH};
use serde::Serialize;
use serde_json::Value;

use crate::{
    masking::{MASK, Masks, Secrecy, is_secret, is_secret_argument},
    schema::{Segment, path},
};

/// A field that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Field {
    /// The path of the field. Named items of a list appear with their names.
    pub path: String,
    /// The value before the change; `None` if the field was missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after the change; `None` if the field is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Returns the fields in which two manifests of one object differ. Leaves out digests and hashes, because they depend
/// on other fields.
pub fn fields(before: &Value, after: &Value) -> Vec<Field> {
    let mut walk = Walk { found: Vec::new(), path: Vec::new(), secret: before["kind"] == "Secret" };
    walk.values(before, after);
    walk.found
}

struct Walk<'a> {
    found: Vec<Field>,
    path: Vec<FieldStep<'a>>,
    secret: bool,
}

#[derive(Clone, Copy)]
enum FieldStep<'a> {
    Key(&'a str),
    Item(usize),
    /// A list item after a secret flag, which is the flag's value: `["--token", "…"]`.
    Argument(usize),
    Named(&'a str),
}

impl<'a> Walk<'a> {
    fn values(&mut self, before: &'a Value, after: &'a Value) {
        match (before, after) {
            _ if before == after => {}
            (Value::Object(old), Value::Object(new)) => {
                let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
                for key in keys {
                    self.step(FieldStep::Key(key), old.get(key), new.get(key));
                }
            }
            (Value::Array(old), Value::Array(new)) => self.lists(old, new),
            _ => self.report(Some(before), Some(after)),
        }
    }

    fn lists(&mut self, old: &'a [Value], new: &'a [Value]) {
        let (Some(names), Some(new_names)) = (names(old), names(new)) else {
            for at in 0..old.len().max(new.len()) {
                let is_argument = is_secret_argument(old, at) || is_secret_argument(new, at);
                let step = if is_argument { FieldStep::Argument(at) } else { FieldStep::Item(at) };
                self.step(step, old.get(at), new.get(at));
            }
            return;
        };
        let items = |names: &[&'a str], items: &'a [Value]| -> BTreeMap<&'a str, &'a Value> {
            names.iter().copied().zip(items).collect()
        };
        let (was, is) = (items(&names, old), items(&new_names, new));
        for name in names.iter().chain(new_names.iter().filter(|name| !was.contains_key(*name))) {
            self.step(FieldStep::Named(name), was.get(name).copied(), is.get(name).copied());
        }
        // Also compare the order of the items that both lists contain: Kubernetes resolves `$(NAME)` only to variables
        // that precede it.
        let order = |these: &[&'a str], others: &BTreeMap<&str, &Value>| -> Vec<&'a str> {
            these.iter().copied().filter(|name| others.contains_key(name)).collect()
        };
        let (was, is) = (order(&names, &is), order(&new_names, &was));
        if was != is {
            let path = format!("{} (order)", self.shown());
            self.found.push(Field { path, before: Some(was.into()), after: Some(is.into()) });
        }
    }

    fn step(&mut self, step: FieldStep<'a>, before: Option<&'a Value>, after: Option<&'a Value>) {
        if matches!(step, FieldStep::Key(APPLIED_DIGEST | POD_SPEC_HASH | HASH_STANDS_FOR)) {
            return;
        }
        self.path.push(step);
        match (before, after) {
            (Some(before), Some(after)) => self.values(before, after),
            (None, None) => {}
            one => self.report(one.0, one.1),
        }
        self.path.pop();
    }

    fn report(&mut self, before: Option<&Value>, after: Option<&Value>) {
        let secrecy = self.secrecy();
        // Show no part of a secret value, and none of the keys inside it.
        let is_hidden =
            |value: &Value| secrecy.hides_texts() && (value.is_string() || value.is_object() || value.is_array());
        let masks = Masks::default();
        let shown = |value: Option<&Value>| {
            value.map(|value| if is_hidden(value) { MASK.into() } else { masks.below(value, secrecy) })
        };
        self.found.push(Field { path: self.shown(), before: shown(before), after: shown(after) });
    }

    /// Returns the secrecy of the value at the current path. The data of a Secret are secret. A name in the path can
    /// also show that a value is secret, such as `env[API_KEY].value` and `data["api-key"]`. A reference to a Secret is
    /// not secret.
    fn secrecy(&self) -> Secrecy {
        let of_secret = ["data", "stringData", "binaryData"];
        let (mut secrecy, mut is_named) = (Secrecy::Open, false);
        for (depth, step) in self.path.iter().enumerate() {
            match step {
                FieldStep::Key(key) if depth == 0 && self.secret && of_secret.contains(key) => return Secrecy::Part,
                FieldStep::Key(key) => secrecy = secrecy.below(key, std::mem::take(&mut is_named)),
                FieldStep::Named(name) => is_named = is_secret(name),
                FieldStep::Argument(_) => secrecy = Secrecy::Whole,
                FieldStep::Item(_) => {}
            }
        }
        secrecy
    }

    fn shown(&self) -> String {
        let segments: Vec<Segment<'_>> = self
            .path
            .iter()
            .map(|step| match step {
                FieldStep::Key(key) => Segment::Key(key),
                FieldStep::Item(at) | FieldStep::Argument(at) => Segment::Index(*at),
                FieldStep::Named(name) => Segment::Named(name),
            })
            .collect();
        path(segments)
    }
}

/// Returns the names of a list's items. Returns `None` if an item has no name, or if two items have the same name.
fn names(items: &[Value]) -> Option<Vec<&str>> {
    let names: Vec<&str> = items.iter().map(|item| item.get("name")?.as_str()).collect::<Option<_>>()?;
    let distinct: BTreeSet<_> = names.iter().collect();
    (distinct.len() == names.len()).then_some(names)
}
