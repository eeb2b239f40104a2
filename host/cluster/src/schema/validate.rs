//! Validates values by a structural schema, with the messages of a real server. [`super::rules`] evaluates CEL rules.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    format,
    limits::Limits,
    node::{Fields, Items, List, Node, Scalar, Shape},
};
use crate::status::Cause;

/// Returns the errors in `value`.
pub(crate) fn check(value: &Value, node: &Node, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    visit(value, node, path, &mut causes);
    causes
}

fn visit(value: &Value, node: &Node, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() && node.nullable {
        return;
    }
    match (&node.shape, value) {
        (Shape::Any, _) => {}
        (Shape::Scalar(scalar), _) => {
            if let Some(wanted) = mismatch(*scalar, value) {
                return causes.push(Cause::wrong_type(path, type_name(value), wanted));
            }
        }
        (Shape::Map(fields), Value::Object(object)) => {
            check_object(object, fields, path, causes);
        }
        (Shape::Map(_), _) => return causes.push(Cause::wrong_type(path, type_name(value), "object")),
        (Shape::List(list), Value::Array(items)) => check_list(items, list, path, causes),
        (Shape::List(_), _) => return causes.push(Cause::wrong_type(path, type_name(value), "array")),
    }
    if let Some(limits) = &node.limits {
        check_limits(value, limits, path, causes);
    }
}

fn check_object(object: &serde_json::Map<String, Value>, fields: &Fields, path: &str, causes: &mut Vec<Cause>) {
    for name in &fields.required {
        if !object.contains_key(name) {
            causes.push(Cause::required(&join(path, name), ""));
        }
    }
    for (name, value) in object {
        if let Some(field) = fields.known.get(name).or(fields.other.as_ref()) {
            visit(value, field, &join(path, name), causes);
        }
    }
}

fn check_list(items: &[Value], list: &List, path: &str, causes: &mut Vec<Cause>) {
    let mut seen = BTreeSet::new();
    for (index, item) in items.iter().enumerate() {
        let at = format!("{path}[{index}]");
        visit(item, &list.item, &at, causes);
        let identity = match &list.items {
            Items::Atomic => continue,
            Items::Set => item.clone(),
            Items::Keyed(keys) => {
                keys.iter().filter_map(|key| item.get(key).map(|value| (key.clone(), value.clone()))).collect()
            }
        };
        if !seen.insert(identity.to_string()) {
            causes.push(Cause::duplicate(&at, &identity));
        }
    }
}

fn check_limits(value: &Value, limits: &Limits<Node>, path: &str, causes: &mut Vec<Cause>) {
    let mut refuse = |message: String| causes.push(Cause::invalid(path, &shown(value), &message));
    if let Some(number) = value.as_f64() {
        match limits.minimum {
            Some(least) if limits.exclusive_minimum && number <= least => {
                refuse(format!("{path} in body should be greater than {least}"));
            }
            Some(least) if number < least => {
                refuse(format!("{path} in body should be greater than or equal to {least}"));
            }
            _ => {}
        }
        match limits.maximum {
            Some(most) if limits.exclusive_maximum && number >= most => {
                refuse(format!("{path} in body should be less than {most}"));
            }
            Some(most) if number > most => refuse(format!("{path} in body should be less than or equal to {most}")),
            _ => {}
        }
        if let Some(step) = limits.multiple_of
            && (number / step).fract().abs() > f64::EPSILON
        {
            refuse(format!("{path} in body should be a multiple of {step}"));
        }
    }
    if let Value::String(text) = value {
        let length = text.chars().count();
        if limits.min_length.is_some_and(|least| length < least) {
            refuse(format!("{path} in body should be at least {} chars long", limits.min_length.unwrap_or_default()));
        }
        if let Some((source, Some(pattern))) = &limits.pattern
            && !pattern.is_match(text)
        {
            refuse(format!("{path} in body should match '{source}'"));
        }
        if let Some(name) = &limits.format
            && !format::holds(name, text)
        {
            refuse(format!("{path} in body must be of type {name}: {value}"));
        }
        if let Some(most) = limits.max_length
            && length > most
        {
            causes.push(too_long(path, &format!("may not be more than {most} bytes")));
        }
    }
    check_counts(value, limits, path, causes);
    if let Some(choices) = &limits.choices
        && !choices.contains(value)
    {
        causes.push(Cause::unsupported(path, value, choices));
    }
    check_junctors(value, limits, path, causes);
}

fn check_counts(value: &Value, limits: &Limits<Node>, path: &str, causes: &mut Vec<Cause>) {
    let (count, least, most, what) = match value {
        Value::Array(items) => (items.len(), limits.min_items, limits.max_items, "items"),
        Value::Object(object) => (object.len(), limits.min_properties, limits.max_properties, "properties"),
        _ => return,
    };
    if let Some(least) = least.filter(|least| count < *least) {
        let message = format!("{path} in body should have at least {least} {what}");
        causes.push(Cause::invalid(path, &count.to_string(), &message));
    }
    if let Some(most) = most.filter(|most| count > *most) {
        let message = format!("Too many: {count}: must have at most {most} items");
        causes.push(Cause { reason: "FieldValueTooMany", message, field: path.to_owned() });
    }
    if let (true, Value::Array(items)) = (limits.unique_items, value) {
        let distinct: BTreeSet<String> = items.iter().map(Value::to_string).collect();
        if distinct.len() < items.len() {
            causes.push(Cause::invalid(path, &shown(value), &format!("{path} in body shouldn't contain duplicates")));
        }
    }
}

fn check_junctors(value: &Value, limits: &Limits<Node>, path: &str, causes: &mut Vec<Cause>) {
    let holds = |node: &Node| check(value, node, path).is_empty();
    for part in &limits.all_of {
        visit(value, part, path, causes);
    }
    let mut refuse = |message: String| causes.push(Cause::invalid(path, &shown(value), &message));
    if !limits.any_of.is_empty() && !limits.any_of.iter().any(holds) {
        refuse(format!("{path} in body must validate at least one schema (anyOf)"));
    }
    if !limits.one_of.is_empty() {
        match limits.one_of.iter().filter(|node| holds(node)).count() {
            1 => {}
            0 => refuse(format!("{path} in body must validate one and only one schema (oneOf). Found none valid")),
            found => refuse(format!(
                "{path} in body must validate one and only one schema (oneOf). Found {found} valid alternatives"
            )),
        }
    }
    if limits.not.as_ref().is_some_and(holds) {
        refuse(format!("{path} in body must not validate the schema (not)"));
    }
}

fn too_long(path: &str, message: &str) -> Cause {
    Cause { reason: "FieldValueTooLong", message: format!("Too long: {message}"), field: path.to_owned() }
}

/// Returns the name of the wanted type if `value` has another type.
pub(crate) fn mismatch(scalar: Scalar, value: &Value) -> Option<&'static str> {
    let whole = |value: &Value| value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0);
    let (fits, name) = match scalar {
        Scalar::String => (value.is_string(), "string"),
        Scalar::Integer => (whole(value), "integer"),
        Scalar::Number => (value.is_number(), "number"),
        Scalar::Boolean => (value.is_boolean(), "boolean"),
        Scalar::IntOrString => (value.is_string() || whole(value), "integer,string"),
        Scalar::StringOrNumber => (value.is_string() || value.is_number(), "string"),
    };
    (!fits).then_some(name)
}

/// Returns Go's name for the type of a JSON value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "\"object\"".to_owned(),
        Value::Array(_) => "\"array\"".to_owned(),
        other => other.to_string(),
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::node::Reader;
    use serde_json::json;

    fn messages(schema: &Value, value: &Value) -> Vec<String> {
        let node = Reader::structural().read(schema);
        check(value, &node, "").into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn wrong_values_are_named_as_a_real_server_names_them() {
        let schema = json!({"type": "object", "required": ["model"], "properties": {
            "model": {"type": "string"},
            "steps": {"type": "integer", "maximum": 20, "minimum": 1},
            "mode": {"type": "string", "enum": ["a", "b"]},
            "name": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"}}});
        assert_eq!(
            messages(&schema, &json!({"steps": 21, "mode": "c", "name": "A"})),
            [
                "model: Required value",
                "mode: Unsupported value: \"c\": supported values: \"a\", \"b\"",
                "name: Invalid value: \"A\": name in body should be at least 2 chars long",
                "name: Invalid value: \"A\": name in body should match '^[a-z]+$'",
                "steps: Invalid value: 21: steps in body should be less than or equal to 20",
            ]
        );
        assert_eq!(
            messages(&schema, &json!({"model": 1})),
            ["model: Invalid value: \"integer\": model in body must be of type string: \"integer\""]
        );
    }

    #[test]
    fn items_of_a_keyed_list_occur_once() {
        let schema = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "properties": {"k": {"type": "string"}}}});
        assert_eq!(messages(&schema, &json!([{"k": "a"}, {"k": "a"}])), ["[1]: Duplicate value: {\"k\":\"a\"}"]);
    }
}
