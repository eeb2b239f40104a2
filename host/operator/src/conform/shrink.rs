//! Finds a small object that still fails a check: removes fields one by one.

use serde_json::Value;

use super::{
    cases::Case,
    error::ConformError,
    exam::{Exam, Problem},
    results::Property,
};

/// The maximum number of smaller objects to try.
const MAX_TRIES: usize = 400;

/// Returns a smaller case on which the policy still violates the property that `problem` names.
pub(super) fn smallest(exam: &Exam<'_>, case: Case, problem: Problem) -> Result<(Case, Problem), ConformError> {
    let property = problem.property;
    let violations = exam.violations(&case);
    let (mut best, mut tries) = ((case, problem), 0);
    loop {
        let mut is_smaller = false;
        // A removal changes the positions of later items, so start with the last item.
        let mut paths = Vec::new();
        collect(&best.0.object, &mut Vec::new(), &mut paths);
        for path in outermost_first(paths) {
            let mut smaller = best.0.clone();
            if tries >= MAX_TRIES || !remove(&mut smaller.object, &path) {
                continue;
            }
            tries += 1;
            if let Some(problem) = failing(exam, &smaller, property, violations)? {
                (best, is_smaller) = ((smaller, problem), true);
            }
        }
        for at in (0..best.0.others.len()).rev() {
            if tries >= MAX_TRIES {
                break;
            }
            let mut smaller = best.0.clone();
            smaller.others.remove(at);
            tries += 1;
            if let Some(problem) = failing(exam, &smaller, property, violations)? {
                (best, is_smaller) = ((smaller, problem), true);
            }
        }
        if !is_smaller || tries >= MAX_TRIES {
            return Ok(best);
        }
    }
}

/// Returns the problem if the policy still violates the property on the smaller case.
///
/// Returns `None` if the object violates more rules of its CRD than the original object.
fn failing(
    exam: &Exam<'_>,
    case: &Case,
    property: Property,
    violations: usize,
) -> Result<Option<Problem>, ConformError> {
    if exam.violations(case) > violations {
        return Ok(None);
    }
    let examined = exam.examine(case)?;
    Ok(examined.problems.into_iter().find(|problem| problem.property == property))
}

/// Sorts paths. A value comes before its inner values, and a later item of a list comes before an earlier item.
fn outermost_first(mut paths: Vec<Vec<String>>) -> Vec<Vec<String>> {
    paths.reverse();
    paths.sort_by_key(Vec::len);
    paths
}

/// Collects the paths of all values that can be removed. Every object needs its type, its name and its namespace.
fn collect(value: &Value, here: &mut Vec<String>, paths: &mut Vec<Vec<String>>) {
    let mut inner = |name: String, value: &Value| {
        here.push(name);
        let is_needed = matches!(here.as_slice(), [one] if ["apiVersion", "kind", "metadata"].contains(&&**one))
            || matches!(here.as_slice(), [one, two] if one == "metadata" && ["name", "namespace"].contains(&&**two));
        if !is_needed {
            paths.push(here.clone());
        }
        collect(value, here, paths);
        here.pop();
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| inner(name.clone(), value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(index, value)| inner(index.to_string(), value)),
        _ => {}
    }
}

/// Removes the value at a path. Returns whether the object had this value.
fn remove(object: &mut Value, path: &[String]) -> bool {
    let Some((last, above)) = path.split_last() else { return false };
    let parent = above.iter().try_fold(object, |value, name| match value {
        Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?),
        other => other.get_mut(name),
    });
    match (parent, last.parse::<usize>()) {
        (Some(Value::Object(members)), _) => members.remove(last).is_some(),
        (Some(Value::Array(items)), Ok(index)) if index < items.len() => {
            items.remove(index);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_can_go_except_the_objects_identity() {
        let object = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a", "namespace": "n", "labels": {"a": "b"}},
            "spec": {"list": [1, 2]}});
        let mut paths = Vec::new();
        collect(&object, &mut Vec::new(), &mut paths);
        let told: Vec<String> = outermost_first(paths.clone()).iter().map(|path| path.join(".")).collect();
        assert_eq!(told, ["spec", "spec.list", "metadata.labels", "spec.list.1", "spec.list.0", "metadata.labels.a"]);
        let mut smaller = object.clone();
        assert!(remove(&mut smaller, &["spec".into(), "list".into(), "0".into()]));
        assert_eq!(smaller["spec"]["list"], json!([2]));
        assert!(!remove(&mut smaller, &["spec".into(), "list".into(), "1".into()]));
    }
}
