//! CEL rules of custom resources (`x-kubernetes-validations`), evaluated by `kube-cel`.
//!
//! If `kube-cel` cannot evaluate a rule, for example because of a missing macro, the rule accepts every object. A real
//! API server would evaluate the rule.

use kube_cel::{CompiledSchema, ErrorKind, Validator, compile_schema};
use serde_json::Value;

use super::cost;
use crate::status::Cause;

thread_local! {
    /// All CEL rules share this validator, because registering the functions of CEL takes longer than evaluating a
    /// rule.
    static VALIDATOR: Validator = Validator::new();
}

/// The CEL rules of one version of a custom resource.
pub(crate) struct Rules {
    compiled: CompiledSchema,
    any: bool,
    /// Whether one of the CEL rules contains a loop.
    loops: bool,
    /// The top-level fields with CEL rules. `None` if a CEL rule applies to the whole object.
    within: Option<Vec<String>>,
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").field("any", &self.any).finish_non_exhaustive()
    }
}

impl Rules {
    /// Compiles the CEL rules of a structural schema.
    pub(crate) fn compile(schema: &Value) -> Self {
        let compiled = compile_schema(schema);
        Self { any: has_rules(schema), loops: cost::has_loops(&compiled), within: within(schema), compiled }
    }

    /// Returns whether the custom resource has CEL rules.
    pub(crate) fn any(&self) -> bool {
        self.any
    }

    /// Evaluates the CEL rules. `old` is the object before an update. If the update changes no field with CEL rules,
    /// evaluates nothing.
    pub(crate) fn check(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        if !self.any {
            return Vec::new();
        }
        if let (Some(within), Some(old)) = (&self.within, old)
            && within.iter().all(|field| object.get(field) == old.get(field))
        {
            return Vec::new();
        }
        if self.loops
            && let Err(too_much) = cost::check(&self.compiled, object, old)
        {
            let path = too_much.path.trim_start_matches('.');
            let message = format!(
                "no further validation rules will be run due to call cost exceeds limit for rule: {}",
                too_much.rule
            );
            return vec![Cause::invalid_unnamed(path, &message)];
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
        // Sort the errors, because `kube-cel` stores properties in a hash map, whose order is random.
        causes.sort_by(|a, b| (&a.field, &a.message).cmp(&(&b.field, &b.message)));
        causes
    }
}

fn within(schema: &Value) -> Option<Vec<String>> {
    let fields = schema.as_object()?;
    let elsewhere = fields.iter().any(|(name, part)| match name.as_str() {
        "x-kubernetes-validations" => !part.is_null(),
        "properties" => false,
        _ => has_rules(part),
    });
    let properties = schema["properties"].as_object()?;
    let ruled = properties.iter().filter(|(_, part)| has_rules(part)).map(|(name, _)| name.clone());
    (!elsewhere).then(|| ruled.collect())
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

/// Returns the reason why a CEL rule cannot be compiled, or `None` if it can. Also refuses long rules: a long chain of
/// operators becomes a deep tree, which could overflow the stack.
pub(crate) fn fault(rule: &str) -> Option<String> {
    const LENGTH: usize = 10_000;
    const OPERATORS: usize = 400;
    if rule.len() > LENGTH {
        return Some(format!("Too long: may not be more than {LENGTH} bytes"));
    }
    let mut quote: Option<char> = None;
    let mut operators = 0;
    let mut characters = rule.chars();
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(_), '\\') => {
                characters.next();
            }
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, c) if "+-*/%.[<>=!?".contains(c) => operators += 1,
            _ => {}
        }
    }
    (operators > OPERATORS).then(|| format!("Invalid value: may not have more than {OPERATORS} operators"))
}

/// Returns the value at a path such as `spec.list[0].name`, or `None` if the object has no such value.
fn value_at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split(['.', '[', ']']).filter(|part| !part.is_empty()).try_fold(object, |value, part| match value {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        _ => value.get(part),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unchanged_values_of_an_update_are_not_checked_again() {
        let number =
            json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self < 5", "message": "too many"}]});
        let properties = json!({"spec": {"type": "object", "properties": {"n": number}}, "status": {"type": "object"}});
        let mut schema = json!({"type": "object", "properties": properties});
        let (old, new) = (json!({"spec": {"n": 7}}), json!({"spec": {"n": 7}, "status": {"phase": "x"}}));
        let changed = json!({"spec": {"n": 8}});
        let found =
            |schema: &Value, object: &Value, old: Option<&Value>| Rules::compile(schema).check(object, old).len();
        assert_eq!(found(&schema, &old, None), 1);
        assert_eq!(found(&schema, &new, Some(&old)), 0);
        assert_eq!(found(&schema, &changed, Some(&old)), 1);
        schema["x-kubernetes-validations"] = json!([{"rule": "!has(self.status)", "message": "no status"}]);
        assert!(found(&schema, &new, Some(&old)) > 0, "a rule about the whole object");
    }

    #[test]
    fn a_rule_that_would_take_too_long_fails_at_once() {
        let rule = "self.all(x, self.all(y, self.all(z, x + y + z < 9)))";
        let list = json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}]});
        let rules = Rules::compile(&json!({"type": "object", "properties": {"l": list}}));
        let causes = rules.check(&json!({"l": vec![1; 400]}), None);
        assert_eq!(causes.len(), 1);
        assert_eq!(causes[0].field, "l");
        assert!(causes[0].message.ends_with(&format!("call cost exceeds limit for rule: {rule}")));
        assert!(rules.check(&json!({"l": vec![1; 20]}), None).is_empty());
    }

    #[test]
    fn too_long_chains_are_refused_and_texts_are_no_chains() {
        assert!(fault(&format!("self{} > 0", " + 1".repeat(500))).is_some());
        assert!(fault(&format!("self.a{}", ".a".repeat(500))).is_some());
        assert!(fault(&"x".repeat(10_001)).is_some());
        assert_eq!(fault(&format!("self.matches('{}\\'')", "[a.]+".repeat(500))), None);
    }
}
