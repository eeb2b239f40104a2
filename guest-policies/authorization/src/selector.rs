//! Matches the labels of an object with a selector.

use kaos_crds::access::{Expression, Operator, Selector};
use kaos_policy_sdk::{Object, Violations};

/// Returns whether the labels of `object` match `selector`. An empty selector matches every object, as in
/// Kubernetes.
pub(crate) fn matches(selector: &Selector, object: &Object) -> bool {
    let has = |(key, value): (&alloc::string::String, &alloc::string::String)| object.label(key) == Some(value);
    selector.match_labels.iter().all(has) && selector.match_expressions.iter().all(|it| holds(it, object))
}

fn holds(Expression { key, operator, values }: &Expression, object: &Object) -> bool {
    let label = object.label(key);
    let is_listed = label.is_some_and(|label| values.iter().any(|value| value == label));
    match operator {
        Operator::In => is_listed,
        Operator::NotIn => !is_listed,
        Operator::Exists => label.is_some(),
        Operator::DoesNotExist => label.is_none(),
    }
}

/// Collects the violations in the selector at `path`.
pub(crate) fn check(selector: &Selector, path: &str, wrong: &mut Violations) {
    for (at, Expression { operator, values, .. }) in selector.match_expressions.iter().enumerate() {
        let takes_values = matches!(operator, Operator::In | Operator::NotIn);
        let message = match (takes_values, values.is_empty()) {
            (true, true) => "In and NotIn need at least one value",
            (false, false) => "Exists and DoesNotExist take no values: remove them",
            _ => continue,
        };
        wrong.add(format!("{path}.matchExpressions[{at}].values"), message);
    }
}
