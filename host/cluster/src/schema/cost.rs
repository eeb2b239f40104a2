//! Estimates the cost of the CEL rules on an object, before the cluster evaluates them. `kube-cel` has no cost limit,
//! and a rule with nested loops over lists would block all other requests.
//!
//! Every part of an expression costs one step. In a comprehension, the steps of the body count once for each item of
//! the list. An expression cannot build a value with more items than the expression has steps.

use kube_cel::{
    CompiledSchema,
    cel::{
        Program,
        common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr},
    },
};
use serde_json::Value;

/// The maximum number of steps for one evaluation of a rule, as on a real server.
const PER_RULE: u64 = 1_000_000;

/// The maximum number of steps for all rules on one object, as on a real server.
const IN_ALL: u64 = 10_000_000;

/// The number of items that a rule can copy at the cost of one step. In every round, a comprehension copies all items
/// that it has built so far.
const COPIES: u64 = 16;

/// The error if the CEL rules on an object cost too much.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMuch {
    /// The path of the value to which the CEL rule applies.
    pub(super) path: String,
    pub(super) rule: String,
}

/// Returns whether a CEL rule in the schema contains a loop. A CEL rule without a loop costs no more steps than its
/// text has characters.
pub(super) fn has_loops(schema: &CompiledSchema) -> bool {
    let mut programs = schema.validations.iter().flatten().flat_map(|rule| {
        let message = rule.message_program.as_ref();
        std::iter::once(&rule.program).chain(message)
    });
    programs.any(|program| loops(&program.expression().expr)) || parts(schema).any(has_loops)
}

fn parts(schema: &CompiledSchema) -> impl Iterator<Item = &CompiledSchema> {
    let single = [schema.items.as_deref(), schema.additional_properties.as_deref()].into_iter().flatten();
    schema.properties.values().chain(single).chain(junctors(schema))
}

/// Returns the schemas in `allOf`, `anyOf` and `oneOf`, which apply to the same value as `schema`.
fn junctors(schema: &CompiledSchema) -> impl Iterator<Item = &CompiledSchema> {
    schema.all_of.iter().chain(&schema.any_of).chain(&schema.one_of)
}

/// Refuses an object if the CEL rules on it cost too much. `old` is the object before an update.
pub(super) fn check(schema: &CompiledSchema, object: &Value, old: Option<&Value>) -> Result<(), TooMuch> {
    let largest = largest(object).max(old.map_or(0, largest));
    visit(schema, object, old, &mut Budget { largest, left: IN_ALL })
}

/// Returns the size of the largest list or map within a value.
fn largest(value: &Value) -> u64 {
    let within = match value {
        Value::Array(items) => items.iter().map(largest).max(),
        Value::Object(fields) => fields.values().map(largest).max(),
        _ => None,
    };
    size(value).max(within.unwrap_or_default())
}

/// The remaining number of steps for an object.
struct Budget {
    /// The length that the estimate assumes for a list whose length is unknown.
    largest: u64,
    left: u64,
}

fn visit(schema: &CompiledSchema, value: &Value, old: Option<&Value>, budget: &mut Budget) -> Result<(), TooMuch> {
    for rule in schema.validations.iter().flatten() {
        let programs = [Some(&rule.program), rule.message_program.as_ref()].into_iter().flatten();
        let cost = programs.map(|program| steps(program, value, old, budget.largest)).fold(0_u64, u64::saturating_add);
        let left = budget.left.checked_sub(cost).filter(|_| cost <= PER_RULE);
        budget.left = left.ok_or_else(|| TooMuch { path: String::new(), rule: rule.rule.rule.clone() })?;
    }
    for part in junctors(schema) {
        visit(part, value, old, budget)?;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(part) = schema.properties.get(name).or(schema.additional_properties.as_deref()) {
                    let old = old.and_then(|old| old.get(name));
                    visit(part, field, old, budget).map_err(|too_much| too_much.within(&format!(".{name}")))?;
                }
            }
        }
        Value::Array(items) => {
            let Some(part) = schema.items.as_deref() else { return Ok(()) };
            for (at, item) in items.iter().enumerate() {
                // Pass no old value, because the item's value before the update is unknown.
                visit(part, item, None, budget).map_err(|too_much| too_much.within(&format!("[{at}]")))?;
            }
        }
        _ => {}
    }
    Ok(())
}

impl TooMuch {
    fn within(self, place: &str) -> Self {
        Self { path: format!("{place}{}", self.path), ..self }
    }
}

/// Returns the maximum number of steps that a CEL program takes on a value.
fn steps(program: &Program, value: &Value, old: Option<&Value>, largest: u64) -> u64 {
    let names = vec![("self", Some(vec![value])), ("oldSelf", old.map(|old| vec![old]))];
    Estimate { names, largest }.cost(&program.expression().expr)
}

/// All values that an expression can have; `None` if the values are unknown.
type Values<'a> = Option<Vec<&'a Value>>;

struct Estimate<'a> {
    /// The variables in scope with their values, the innermost variable last.
    names: Vec<(&'a str, Values<'a>)>,
    largest: u64,
}

impl<'a> Estimate<'a> {
    fn cost(&mut self, expression: &'a Expr) -> u64 {
        let below = match expression {
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Call(call) => self.call(call),
            Expr::Select(select) => self.cost(&select.operand.expr),
            Expr::List(list) => self.sum(list.elements.iter().map(|element| &element.expr)),
            Expr::Map(map) => self.sum(map.entries.iter().flat_map(|entry| entries(&entry.expr))),
            Expr::Struct(fields) => self.sum(fields.entries.iter().flat_map(|entry| entries(&entry.expr))),
            Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => 0,
        };
        below.saturating_add(1)
    }

    fn sum(&mut self, expressions: impl Iterator<Item = &'a Expr>) -> u64 {
        expressions.fold(0_u64, |sum, expression| sum.saturating_add(self.cost(expression)))
    }

    fn comprehension(&mut self, comprehension: &'a ComprehensionExpr) -> u64 {
        let range = &comprehension.iter_range.expr;
        let made = self.cost(range);
        let rounds = self.length(range, made);
        let items: Values<'a> = self.values(range).map(|values| values.into_iter().flat_map(members).collect());
        let depth = self.names.len();
        // If the comprehension has one variable, the variable is an item of a list or a key of a map. No loop over a
        // key is possible, because a key has no items.
        match &comprehension.iter_var2 {
            Some(second) => {
                self.names.push((comprehension.iter_var.as_str(), Some(Vec::new())));
                self.names.push((second.as_str(), None));
            }
            None => self.names.push((comprehension.iter_var.as_str(), items)),
        }
        self.names.push((comprehension.accu_var.as_str(), None));
        let body = self.sum([&comprehension.loop_cond.expr, &comprehension.loop_step.expr].into_iter());
        self.names.truncate(depth);
        let copies = if builds(comprehension) { rounds / COPIES } else { 0 };
        let around = self.sum([&comprehension.accu_init.expr, &comprehension.result.expr].into_iter());
        made.saturating_add(around).saturating_add(rounds.saturating_mul(body.saturating_add(copies)))
    }

    fn call(&mut self, call: &'a CallExpr) -> u64 {
        let target = call.target.as_deref().map(|target| &target.expr);
        let arguments = move || call.args.iter().map(|argument| &argument.expr);
        let below = self.sum(target.into_iter().chain(arguments()));
        let work = match call.func_name.as_str() {
            // The cost of these functions does not depend on the size of their operands.
            "_[_]" | "_[?_]" | "size" | "_&&_" | "_||_" | "_?_:_" => 0,
            "@in" => arguments().map(|part| self.length(part, below)).fold(0_u64, u64::saturating_add),
            // Functions on sets compare all items with each other.
            _ if is_of_sets(call) => {
                arguments().map(|part| self.length(part, below).max(1)).fold(1_u64, u64::saturating_mul)
            }
            _ => {
                let known = target.into_iter().chain(arguments()).filter_map(|part| self.values(part));
                known.map(|values| longest(&values)).fold(0_u64, u64::saturating_add)
            }
        };
        below.saturating_add(work)
    }

    /// Returns the maximum number of items in an expression's value. `made` is the number of steps that the expression
    /// costs.
    fn length(&self, expression: &Expr, made: u64) -> u64 {
        if let Some(values) = self.values(expression) {
            return longest(&values);
        }
        match expression {
            Expr::Comprehension(comprehension) if builds(comprehension) => {
                self.length(&comprehension.iter_range.expr, made)
            }
            _ if self.is_place(expression) => self.largest,
            _ => made,
        }
    }

    fn values(&self, expression: &Expr) -> Values<'a> {
        match expression {
            Expr::Ident(name) => self.names.iter().rev().find(|(known, _)| known == name)?.1.clone(),
            // If a field's real name is not a valid identifier, its name in CEL contains `__`. Treat the values of such
            // fields as unknown.
            Expr::Select(select) if !select.test && !select.field.contains("__") => {
                let values = self.values(&select.operand.expr)?;
                Some(values.into_iter().filter_map(|value| value.get(&select.field)).collect())
            }
            Expr::Call(call) if call.func_name == "_[_]" => {
                let values = self.values(&call.args.first()?.expr)?;
                Some(values.into_iter().flat_map(every).collect())
            }
            Expr::Comprehension(comprehension) if filters(comprehension) => self.values(&comprehension.iter_range.expr),
            Expr::Literal(_) => Some(Vec::new()),
            _ => None,
        }
    }

    /// Returns whether an expression refers to an existing value instead of building a new one.
    fn is_place(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Ident(name) => !name.starts_with('@') && self.names.iter().any(|(known, _)| known == name),
            Expr::Select(select) => !select.test && self.is_place(&select.operand.expr),
            Expr::Call(call) if call.func_name == "_[_]" => {
                call.args.first().is_some_and(|base| self.is_place(&base.expr))
            }
            _ => false,
        }
    }
}

/// Returns whether a comprehension builds a list or a map.
fn builds(comprehension: &ComprehensionExpr) -> bool {
    matches!(comprehension.accu_init.expr, Expr::List(_) | Expr::Map(_))
}

/// Returns whether a comprehension filters items without changing them.
fn filters(comprehension: &ComprehensionExpr) -> bool {
    let Expr::Call(choice) = &comprehension.loop_step.expr else { return false };
    let Some(Expr::Call(add)) = choice.args.get(1).map(|chosen| &chosen.expr) else { return false };
    let Some(Expr::List(added)) = add.args.get(1).map(|added| &added.expr) else { return false };
    let is_item = |one: &Expr| matches!(one, Expr::Ident(name) if *name == comprehension.iter_var);
    let adds_item = matches!(added.elements.as_slice(), [one] if is_item(&one.expr));
    builds(comprehension) && choice.func_name == "_?_:_" && adds_item
}

/// Returns the number of items of the longest list or map.
fn longest(values: &[&Value]) -> u64 {
    values.iter().map(|value| size(value)).max().unwrap_or_default()
}

fn is_of_sets(call: &CallExpr) -> bool {
    call.target.as_deref().is_some_and(|target| matches!(&target.expr, Expr::Ident(name) if name == "sets"))
}

fn loops(expression: &Expr) -> bool {
    match expression {
        Expr::Comprehension(_) => true,
        Expr::Call(call) => {
            let target = call.target.as_deref();
            is_of_sets(call) || target.into_iter().chain(&call.args).any(|part| loops(&part.expr))
        }
        Expr::Select(select) => loops(&select.operand.expr),
        Expr::List(list) => list.elements.iter().any(|element| loops(&element.expr)),
        Expr::Map(map) => map.entries.iter().flat_map(|entry| entries(&entry.expr)).any(loops),
        Expr::Struct(fields) => fields.entries.iter().flat_map(|entry| entries(&entry.expr)).any(loops),
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => false,
    }
}

fn entries(entry: &EntryExpr) -> Vec<&Expr> {
    match entry {
        EntryExpr::StructField(field) => vec![&field.value.expr],
        EntryExpr::MapEntry(entry) => vec![&entry.key.expr, &entry.value.expr],
    }
}

fn size(value: &Value) -> u64 {
    let members = match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    };
    u64::try_from(members).unwrap_or(u64::MAX)
}

/// Returns the items of a list.
fn members(value: &Value) -> &[Value] {
    value.as_array().map_or(&[][..], Vec::as_slice)
}

/// Returns the items of a list or the values of a map.
fn every(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(fields) => fields.values().collect(),
        other => members(other).iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use kube_cel::compile_schema;
    use serde_json::json;

    use super::*;

    fn schema(rule: &str) -> CompiledSchema {
        let list = |items: Value| json!({"type": "array", "items": items});
        let named = json!({"type": "object", "properties": {"name": {"type": "string"},
            "tags": list(json!({"type": "string"}))}});
        let spec = json!({"type": "object", "x-kubernetes-validations": [{"rule": rule}],
            "properties": {"list": list(named.clone()), "few": list(named)}});
        compile_schema(&json!({"type": "object", "properties": {"spec": spec}}))
    }

    fn object(count: usize) -> Value {
        let item = json!({"name": "x", "tags": ["a", "b"]});
        json!({"spec": {"list": vec![item.clone(); count], "few": [item]}})
    }

    fn passes(rule: &str, count: usize) -> bool {
        let schema = schema(rule);
        let object = object(count);
        assert!(has_loops(&schema), "{rule}");
        check(&schema, &object, None).is_ok()
    }

    #[test]
    fn the_costs_of_nested_lists_multiply() {
        let nested = "self.list.all(x, self.list.all(y, self.list.all(z, x.name == y.name || z.name != '')))";
        assert!(passes(nested, 20));
        assert!(!passes(nested, 400));
        let twice = "self.list.all(x, self.list.exists_one(y, y.name == x.name))";
        assert!(passes(twice, 100));
        assert!(!passes(twice, 2000));
    }

    #[test]
    fn rules_on_short_values_cost_less_than_on_long_ones() {
        for rule in [
            "self.few.all(x, self.few.all(y, self.few.all(z, x.name == y.name)))",
            "self.list.all(x, x.tags.all(y, x.tags.exists(z, z == y)))",
            "self.list.exists(x, x.name == 'MODEL_NAME')",
            "self.list.filter(x, x.name == 'x').all(y, y.name != '')",
        ] {
            assert!(passes(rule, 10_000) || rule.contains("filter"), "{rule}");
            assert!(passes(rule, 1000), "{rule}");
        }
    }

    #[test]
    fn a_value_of_unknown_length_counts_with_the_maximum() {
        let nested = "oldSelf.list.all(x, oldSelf.list.all(y, oldSelf.list.all(z, x == y)))";
        assert!(!passes(nested, 400));
        assert!(!passes("self.list.map(x, self.list.map(y, y)).all(z, z.all(u, u.name != ''))", 1000));
        assert!(!passes("sets.intersects(self.list, self.list)", 2000));
    }

    #[test]
    fn the_error_names_the_rule_and_its_place() {
        let rule = "self.list.all(x, self.list.all(y, x == y))";
        let too_much = check(&schema(rule), &object(2000), None).unwrap_err();
        assert_eq!(too_much, TooMuch { path: ".spec".into(), rule: rule.into() });
    }
}
