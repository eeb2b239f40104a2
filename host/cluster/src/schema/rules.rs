//! CEL rules of custom resources (`x-kubernetes-validations`), evaluated by `kube-cel`.
//!
//! A rule that the crate does not carry (a macro it lacks) rejects nothing: a real API server would have evaluated it.

use kube_cel::{CompiledSchema, ErrorKind, Validator, compile_schema};
use serde_json::Value;

use crate::status::Cause;

thread_local! {
    /// Registering the functions of CEL takes longer than evaluating a rule.
    static VALIDATOR: Validator = Validator::new();
}

/// The rules of one version of a custom resource.
pub(crate) struct Rules {
    compiled: CompiledSchema,
    any: bool,
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").field("any", &self.any).finish_non_exhaustive()
    }
}

impl Rules {
    /// Compiles the rules of a structural schema.
    pub(crate) fn compile(schema: &Value) -> Self {
        Self { compiled: compile_schema(schema), any: has_rules(schema) }
    }

    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// Evaluates them; `old` is the object before an update.
    pub(crate) fn check(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        if !self.any {
            return Vec::new();
        }
        let checked = VALIDATOR.with(|validator| validator.validate_compiled(&self.compiled, object, old));
        let Err(errors) = checked else { return Vec::new() };
        let mut causes: Vec<Cause> = errors
            .into_iter()
            .filter(|error| !matches!(error.kind, ErrorKind::CompilationFailure | ErrorKind::UnsupportedReference))
            .map(|error| {
                let path = error.field_path.trim_start_matches('.').to_owned();
                match value_at(object, &path) {
                    Some(Value::Object(_) | Value::Array(_)) | None => Cause::invalid_unnamed(&path, &error.message),
                    Some(value) => Cause::invalid(&path, &value.to_string(), &error.message),
                }
            })
            .collect();
        // The crate keeps properties in a hash map.
        causes.sort_by(|a, b| (&a.field, &a.message).cmp(&(&b.field, &b.message)));
        causes
    }
}

fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => {
            object.get("x-kubernetes-validations").is_some_and(|rules| !rules.is_null())
                || object.values().any(has_rules)
        }
        Value::Array(items) => items.iter().any(has_rules),
        _ => false,
    }
}

/// The value at a path such as `spec.list[0].name`.
fn value_at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split(['.', '[', ']']).filter(|part| !part.is_empty()).try_fold(object, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => value.get(part),
    })
}
