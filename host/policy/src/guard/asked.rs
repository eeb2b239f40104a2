//! Finds the field with which an object asks for a privilege that the operator does not let users raise. The field is
//! in the object's spec, or an annotation of the object sets it.

use serde_json::Value;

use super::{
    power::Raised,
    rules::Rules,
    said::Said,
    shape::{PathStep, written},
};
use crate::{pods, settings::Origin};

/// Returns the path of the field that asks for the privilege; `spec` if no single field has the value.
pub(super) fn place(raised: &Raised<'_>, rules: &Rules<'_>) -> String {
    let mut search = RaiseSearch { raised, best: None };
    search.walk(&rules.object["spec"], None, &mut vec![PathStep::Name("spec".to_owned())]);
    if let Some((_, path)) = search.best {
        return written(&path);
    }
    let annotation = rules.layers.iter().find_map(|(_, settings)| {
        let mut given = settings.given_one_by_one(|origin| *origin == Origin::Annotation);
        given.find_map(|(_, source, value)| says(raised, &value).then_some(source.via.as_ref())?)
    });
    annotation.map_or_else(|| "spec".to_owned(), |key| format!("metadata.annotations[\"{key}\"]"))
}

fn says(raised: &Raised<'_>, settings: &Value) -> bool {
    Said::about(std::slice::from_ref(raised), &[], settings).have(raised)
}

struct RaiseSearch<'a> {
    raised: &'a Raised<'a>,
    /// The best match so far: whether the field is in the container that has the privilege, and the field's path.
    best: Option<(bool, Vec<PathStep>)>,
}

impl RaiseSearch<'_> {
    fn walk(&mut self, value: &Value, container: Option<&str>, here: &mut Vec<PathStep>) {
        match value {
            Value::Object(fields) => {
                let (first, rest) = self.raised.field;
                if fields.get(first).is_some_and(|value| is_part(at(value, rest), self.raised.value)) {
                    self.found(container, here);
                }
                for (name, value) in fields {
                    here.push(PathStep::Name(name.clone()));
                    match value.as_array().filter(|_| pods::CONTAINERS.contains(&name.as_str())) {
                        Some(items) => {
                            for (i, item) in items.iter().enumerate() {
                                here.push(PathStep::Index(i));
                                self.walk(item, item["name"].as_str(), here);
                                here.pop();
                            }
                        }
                        None => self.walk(value, container, here),
                    }
                    here.pop();
                }
            }
            Value::Array(items) => {
                for (i, item) in items.iter().enumerate() {
                    here.push(PathStep::Index(i));
                    self.walk(item, container, here);
                    here.pop();
                }
            }
            _ => {}
        }
    }

    fn found(&mut self, container: Option<&str>, here: &[PathStep]) {
        let is_its = self.raised.container.map(|of| of.name) == container;
        if self.best.as_ref().is_none_or(|(best, _)| is_its && !best) {
            let (first, rest) = self.raised.field;
            let names = std::iter::once(first).chain(rest.iter().copied());
            let path = here.iter().cloned().chain(names.map(|name| PathStep::Name(name.to_owned())));
            self.best = Some((is_its, path.collect()));
        }
    }
}

fn at<'a>(value: &'a Value, names: &[&str]) -> &'a Value {
    names.iter().fold(value, |value, name| &value[*name])
}

/// Returns whether the two values share a field, an item or a leaf. A policy can merge a planned value from two fields
/// of the object.
fn is_part(said: &Value, planned: &Value) -> bool {
    match (said, planned) {
        (Value::Object(said), Value::Object(planned)) => {
            said.iter().any(|(key, value)| !value.is_null() && planned.get(key) == Some(value))
        }
        (Value::Array(said), Value::Array(planned)) => said.iter().any(|item| planned.contains(item)),
        (said, planned) => !said.is_null() && said == planned,
    }
}
