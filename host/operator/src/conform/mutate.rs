//! Turns a valid object into a random object that its kind's schema accepts.

use kaos_policy::contract::ResourceType;
use serde_json::{Map, Value, json};

use crate::{
    fuzz::{Draw, Generator},
    schema::KnownCrds,
};

/// The fields that every object has. The content of these fields does not come from the kind's schema.
const COMMON: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// Changes objects of one kind.
pub(super) struct Mutator<'a> {
    pub(super) crds: &'a KnownCrds,
    pub(super) generator: &'a Generator,
    pub(super) of: &'a ResourceType,
    pub(super) draw: &'a mut Draw,
    /// Of twelve fields, this many get another value on average.
    pub(super) often: u8,
}

impl Mutator<'_> {
    /// Changes some fields of an object. Reverts each change that violates the schema, because an API server would
    /// refuse the object.
    pub(super) fn change(&mut self, object: &mut Value) {
        match self.crds.schema(self.of) {
            Some(schema) => self.members(object, &mut Vec::new(), schema),
            None => self.known_fields(object),
        }
        self.metadata(object);
    }

    /// Changes the members of the object at a path, as their schemas allow.
    fn members(&mut self, object: &mut Value, path: &mut Vec<String>, schema: &Value) {
        for (name, part) in schema["properties"].as_object().into_iter().flatten() {
            if path.is_empty() && COMMON.contains(&name.as_str()) {
                continue;
            }
            path.push(name.clone());
            let is_group = part["properties"].is_object();
            let has_members = at(object, path).is_some_and(Value::is_object);
            let is_top = path.len() == 1 && is_group;
            match self.draw.rng.u8(..12) {
                _ if is_top && !has_members => {
                    let value = self.made(part, name);
                    self.put(object, path, Some(value));
                }
                0 if !is_top => self.put(object, path, None),
                chance if !is_top && chance <= self.often => {
                    let value = self.made(part, name);
                    self.put(object, path, Some(value));
                }
                _ if has_members && is_group => self.members(object, path, part),
                _ => {}
            }
            path.pop();
        }
    }

    /// Changes values of an object without a schema. Keeps the type of each value.
    fn known_fields(&mut self, object: &mut Value) {
        for (name, value) in object.as_object_mut().into_iter().flatten() {
            if !COMMON.contains(&name.as_str()) {
                self.vary(value, name);
            }
        }
    }

    fn vary(&mut self, value: &mut Value, name: &str) {
        match value {
            Value::Object(members) => {
                let removed: Vec<String> = members.keys().filter(|_| self.draw.one_in(10)).cloned().collect();
                members.retain(|member, _| !removed.contains(member));
                members.iter_mut().for_each(|(name, value)| self.vary(value, name));
            }
            Value::Array(items) => {
                for item in items.iter_mut() {
                    self.vary(item, name);
                }
                match self.draw.rng.u8(..10) {
                    0 => items.clear(),
                    1 => items.extend(items.first().cloned()),
                    _ => {}
                }
            }
            Value::String(_) if self.draw.one_in(3) => *value = self.made(&json!({"type": "string"}), name),
            Value::Number(_) if self.draw.one_in(3) => *value = self.made(&json!({"type": "integer"}), name),
            Value::Bool(is_set) if self.draw.one_in(3) => *is_set = !*is_set,
            _ => {}
        }
    }

    /// Gives some objects another name or labels.
    fn metadata(&mut self, object: &mut Value) {
        const NAMES: [&str; 4] = ["a", "a.b", "1a", "a--b"];
        let mut path = vec!["metadata".to_owned(), "name".to_owned()];
        match self.draw.rng.u8(..30) {
            0 => self.put(object, &path, Some(json!("a".repeat(63)))),
            1 => self.put(object, &path, Some(json!("a".repeat(253)))),
            2..=4 => {
                let name = self.draw.rng.choice(NAMES).unwrap_or_default();
                self.put(object, &path, Some(json!(name)));
            }
            5..=7 => {
                "labels".clone_into(&mut path[1]);
                self.put(object, &path, Some(json!({"app": "other", "example.com/a": ""})));
            }
            _ => {}
        }
    }

    fn made(&mut self, schema: &Value, name: &str) -> Value {
        self.generator.value(schema, name, self.draw)
    }

    /// Sets or removes the value at a path, unless this change adds violations of the schema.
    fn put(&self, object: &mut Value, path: &[String], value: Option<Value>) {
        let mut changed = object.clone();
        let Some((last, above)) = path.split_last() else { return };
        let members = above.iter().try_fold(&mut changed, |value, name| {
            if value.is_null() {
                *value = Value::Object(Map::new());
            }
            value.as_object_mut().map(|members| members.entry(name.as_str()).or_insert(json!({})))
        });
        let Some(members) = members.and_then(Value::as_object_mut) else { return };
        match value {
            Some(value) => drop(members.insert(last.clone(), value)),
            None => drop(members.remove(last)),
        }
        if self.violations(&mut changed) <= self.violations(&mut object.clone()) {
            *object = changed;
        }
    }

    fn violations(&self, object: &mut Value) -> usize {
        self.crds.admit(self.of.group(), &self.of.kind, object).violations.len()
    }
}

fn at<'a>(object: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}
