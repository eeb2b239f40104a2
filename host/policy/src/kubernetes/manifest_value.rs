//! A value in a manifest, with its path: the names and indices from the manifest's root to the value.

use std::rc::Rc;

use serde_json::Value;

use crate::origins::PathStep;

static NULL: Value = Value::Null;

/// A value of a manifest, and the steps from the manifest's root to the value.
#[derive(Clone)]
pub(super) struct ManifestValue<'a> {
    value: &'a Value,
    way: Option<Rc<Way<'a>>>,
}

/// The last step of a path, and the steps before it.
struct Way<'a> {
    step: Key<'a>,
    before: Option<Rc<Way<'a>>>,
}

#[derive(Clone, Copy)]
enum Key<'a> {
    Name(&'a str),
    Index(usize),
}

impl<'a> ManifestValue<'a> {
    /// Returns the manifest itself as a value with an empty path.
    pub(super) fn of(value: &'a Value) -> Self {
        Self { value, way: None }
    }

    fn next(&self, step: Key<'a>, value: &'a Value) -> Self {
        Self { value, way: Some(Rc::new(Way { step, before: self.way.clone() })) }
    }

    /// Returns the value of a field, with its path. The value is null if the object has no such field.
    pub(super) fn field(&self, name: &'a str) -> Self {
        self.next(Key::Name(name), self.value.get(name).unwrap_or(&NULL))
    }

    /// Returns the items of a list. Returns no items if the value is not a list.
    pub(super) fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let (here, items) = (self.clone(), self.value.as_array());
        items.into_iter().flatten().enumerate().map(move |(index, item)| here.next(Key::Index(index), item))
    }

    /// Returns the items of the list in a field.
    pub(super) fn list(&self, name: &'a str) -> impl Iterator<Item = Self> + use<'a> {
        self.field(name).items()
    }

    /// Returns the entries of a JSON object, except the entries with the value null.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let (here, fields) = (self.clone(), self.value.as_object());
        let fields = fields.into_iter().flatten().filter(|(_, value)| !value.is_null());
        fields.map(move |(name, value)| (name.as_str(), here.next(Key::Name(name), value)))
    }

    /// The value without its path.
    pub(super) fn value(&self) -> &'a Value {
        self.value
    }

    /// Whether the value is not null.
    pub(super) fn is_there(&self) -> bool {
        !self.value.is_null()
    }

    /// Returns the value as a text. Returns an empty text if the value is not a text.
    pub(super) fn text(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    /// Returns the text of a field. Returns an empty text if the value is not a text.
    pub(super) fn text_of(&self, name: &str) -> &'a str {
        self.value[name].as_str().unwrap_or_default()
    }

    /// Returns the value as a whole number, or `None` if the value is not a whole number. Accepts `1.0`, as Go does.
    pub(super) fn number(&self) -> Option<i64> {
        let whole = |number: f64| number.fract() == 0.0 && number.abs() < 9.0e15;
        #[expect(clippy::cast_possible_truncation, reason = "the number is whole and small enough")]
        self.value.as_i64().or_else(|| self.value.as_f64().filter(|number| whole(*number)).map(|number| number as i64))
    }

    /// Returns the path: the names and indices from the manifest's root to the value.
    pub(super) fn steps(&self) -> Vec<PathStep> {
        let (mut steps, mut way) = (Vec::new(), self.way.as_ref());
        while let Some(here) = way {
            steps.push(match here.step {
                Key::Name(name) => PathStep::Name(name.to_owned()),
                Key::Index(index) => PathStep::Index(index),
            });
            way = here.before.as_ref();
        }
        steps.reverse();
        steps
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::origins::written;

    #[test]
    fn a_place_without_a_value_has_a_path() {
        let manifest = json!({"spec": {"ports": [{"port": 1.0}, {"a.b": null}]}});
        let ports: Vec<_> = ManifestValue::of(&manifest).field("spec").list("ports").collect();
        assert_eq!(ports[0].field("port").number(), Some(1));
        assert_eq!(written(&ports[1].field("a.b").steps()), "spec.ports[1][\"a.b\"]");
        assert!(!ports[1].field("a.b").is_there() && ports[1].entries().next().is_none());
        assert_eq!(written(&ports[0].field("name").field("x").steps()), "spec.ports[0].name.x");
    }
}
