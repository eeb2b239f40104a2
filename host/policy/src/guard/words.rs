//! Finds out whether the user wrote a value of a manifest, and where the value is in the object.
//!
//! The host does not know how a policy converts specs to manifests. But the host can find the same value below the same
//! field names in the object: `spec.template.spec.volumes` of a Deployment and `spec.podSpec.volumes`. If the policy
//! merged the user's value with another one, the two values differ. In this case, the host compares only the types. For
//! example, if the user wrote an object in place of a list, the merged value is also an object.

use serde_json::Value;

use super::shape::PathStep;

/// Finds a value of a manifest in the object. `path` is the value's path in the manifest. Returns the value's path in
/// the object, or `None` if the object contains no such value. Prefers an equal value. If the object has no equal
/// value, takes the list or object whose path shares the most names with `path`.
pub(crate) fn of_the_user(object: &Value, path: &[PathStep], value: &Value) -> Option<Vec<PathStep>> {
    let mut search = Search { path, value, best: None };
    let mut here = vec![PathStep::Name("spec".to_owned())];
    search.walk(&object["spec"], &mut here);
    search.best.map(|(_, path)| path)
}

struct Search<'a> {
    path: &'a [PathStep],
    value: &'a Value,
    /// The best match so far: whether its value is equal, how many names its path shares with the searched path, and
    /// its path.
    best: Option<((bool, usize), Vec<PathStep>)>,
}

impl Search<'_> {
    fn walk(&mut self, value: &Value, here: &mut Vec<PathStep>) {
        let same = value == self.value || is_same_fraction(value, self.value);
        if same || (value.is_object() && self.value.is_object()) || (value.is_array() && self.value.is_array()) {
            let shared = shared_names(self.path, here);
            if shared > 0 && self.best.as_ref().is_none_or(|(best, _)| (same, shared) > *best) {
                self.best = Some(((same, shared), here.clone()));
            }
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.below(PathStep::Name(name.clone()), value, here);
                }
            }
            Value::Array(items) => {
                for (i, value) in items.iter().enumerate() {
                    self.below(PathStep::Index(i), value, here);
                }
            }
            _ => {}
        }
    }

    fn below(&mut self, step: PathStep, value: &Value, here: &mut Vec<PathStep>) {
        here.push(step);
        self.walk(value, here);
        here.pop();
    }
}

/// Returns whether two numbers are equal except perhaps for the last digit of a fraction. A policy that reads and
/// writes a fraction may change this digit.
fn is_same_fraction(one: &Value, other: &Value) -> bool {
    let fraction = |value: &Value| value.as_f64().filter(|_| value.is_f64());
    fraction(one).zip(fraction(other)).is_some_and(|(one, other)| (one - other).abs() <= one.abs() * 4.0 * f64::EPSILON)
}

/// Returns how many names the ends of both paths have in common. Treats all list indices as equal, because merging
/// moves items.
fn shared_names(one: &[PathStep], other: &[PathStep]) -> usize {
    let alike = |(one, other): &(&PathStep, &PathStep)| match (one, other) {
        (PathStep::Name(one), PathStep::Name(other)) => one == other,
        (PathStep::Index(_), PathStep::Index(_)) => true,
        _ => false,
    };
    let pairs = one.iter().rev().zip(other.iter().rev());
    pairs.take_while(alike).filter(|(step, _)| matches!(step, PathStep::Name(_))).count()
}

#[cfg(test)]
mod tests {
    use super::super::shape::written;
    use super::*;
    use serde_json::json;

    fn found(object: &Value, path: &[&str], value: &Value) -> Option<String> {
        let step = |text: &&str| text.parse().map_or_else(|_| PathStep::Name((*text).to_owned()), PathStep::Index);
        of_the_user(object, &path.iter().map(step).collect::<Vec<_>>(), value).map(|path| written(&path))
    }

    #[test]
    fn an_equal_value_below_the_same_name_is_the_users() {
        let object = json!({"spec": {"podSpec": {"volumes": "x"}, "note": "x"}});
        let path = ["spec", "template", "spec", "volumes"];
        assert_eq!(found(&object, &path, &json!("x")).as_deref(), Some("spec.podSpec.volumes"));
        assert_eq!(found(&object, &path, &json!("y")), None);
        assert_eq!(found(&object, &["spec", "template", "spec", "other"], &json!("x")), None);
    }

    #[test]
    fn a_merged_list_or_object_is_found_by_its_names() {
        let object = json!({"spec": {"podSpec": {"volumes": {"$patch": "merge"}}}});
        let path = ["spec", "template", "spec", "volumes"];
        assert_eq!(found(&object, &path, &json!({})).as_deref(), Some("spec.podSpec.volumes"));
        assert_eq!(found(&object, &path, &json!([])), None);
    }

    #[test]
    fn the_path_that_shares_the_most_names_wins_regardless_of_list_indices() {
        let object = json!({"spec": {
            "container": {"resources": {"limits": 3}},
            "limits": 3,
            "podSpec": {"containers": [{"resources": {"limits": 3}}]},
        }});
        let path = ["spec", "template", "spec", "containers", "1", "resources", "limits"];
        assert_eq!(found(&object, &path, &json!(3)).as_deref(), Some("spec.podSpec.containers[0].resources.limits"));
    }

    #[test]
    fn a_fraction_without_its_last_digit_is_still_the_users() {
        let object = json!({"spec": {"podSpec": {"volumes": 1.116_156_585_423_264_5e-11}}});
        let path = ["spec", "template", "spec", "volumes"];
        let read_again = json!(1.116_156_585_423_264_4e-11);
        assert_eq!(found(&object, &path, &read_again).as_deref(), Some("spec.podSpec.volumes"));
        assert_eq!(found(&object, &path, &json!(1.116e-11)), None);
    }
}
