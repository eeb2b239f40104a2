//! Label and field selectors. Query parameters contain selectors of both kinds. Objects contain only label selectors.

use serde_json::Value;

use super::{
    parse,
    requirement::{Operator, Requirement},
};

/// A label selector.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

impl LabelSelector {
    /// Parses a selector in a query parameter.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        parse::requirements(text).map(Self)
    }

    /// Returns a pair of a label key and a value for each value that the selector compares with a label.
    pub(crate) fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|requirement| {
            let values = requirement.values.iter().map(String::as_str);
            let none = requirement.values.is_empty().then_some("");
            values.chain(none).map(move |value| (requirement.key.as_str(), value))
        })
    }

    /// Reads `matchLabels` and `matchExpressions`.
    pub(crate) fn of_object(selector: &Value) -> Self {
        let labels = selector["matchLabels"].as_object().into_iter().flatten().map(|(key, value)| Requirement {
            key: key.clone(),
            operator: Operator::In,
            values: value.as_str().map(str::to_owned).into_iter().collect(),
        });
        let expressions = selector["matchExpressions"].as_array().into_iter().flatten().map(|expression| Requirement {
            key: expression["key"].as_str().unwrap_or_default().to_owned(),
            operator: match expression["operator"].as_str() {
                Some("In") => Operator::In,
                Some("NotIn") => Operator::NotIn,
                Some("Exists") => Operator::Exists,
                _ => Operator::Absent,
            },
            values: texts(&expression["values"]),
        });
        Self(labels.chain(expressions).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether the selector matches an object's labels.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.matches_labels(&object["metadata"]["labels"])
    }

    /// Returns whether the selector matches these labels.
    pub(crate) fn matches_labels(&self, labels: &Value) -> bool {
        self.0.iter().all(|requirement| {
            let value = labels[&requirement.key].as_str();
            match requirement.operator {
                Operator::In => value.is_some_and(|value| requirement.values.iter().any(|wanted| wanted == value)),
                Operator::NotIn => !value.is_some_and(|value| requirement.values.iter().any(|wanted| wanted == value)),
                Operator::Exists => value.is_some(),
                Operator::Absent => value.is_none(),
                Operator::Greater => compared(value, requirement).is_some_and(std::cmp::Ordering::is_gt),
                Operator::Less => compared(value, requirement).is_some_and(std::cmp::Ordering::is_lt),
            }
        })
    }

    /// Returns the selector as text, in the format of the scale subresource.
    pub(crate) fn text(&self) -> String {
        let parts = self.0.iter().map(|requirement| {
            let (key, values) = (&requirement.key, requirement.values.join(","));
            match requirement.operator {
                Operator::In if requirement.values.len() == 1 => format!("{key}={values}"),
                Operator::In => format!("{key} in ({values})"),
                Operator::NotIn => format!("{key} notin ({values})"),
                Operator::Exists => key.clone(),
                Operator::Absent => format!("!{key}"),
                Operator::Greater => format!("{key}>{values}"),
                Operator::Less => format!("{key}<{values}"),
            }
        });
        parts.collect::<Vec<_>>().join(",")
    }
}

/// Compares the number in a label with the number in a requirement.
fn compared(value: Option<&str>, requirement: &Requirement) -> Option<std::cmp::Ordering> {
    let wanted: i64 = requirement.values.first()?.parse().ok()?;
    Some(value?.parse::<i64>().ok()?.cmp(&wanted))
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A field selector: a list of fields, each with a text that the value of the field must or must not equal.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct FieldSelector(Vec<(String, bool, String)>);

impl FieldSelector {
    /// Parses `metadata.name=a,status.phase!=b`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let parse = |part: &str| {
            let (path, equal, value) = if let Some((path, value)) = part.split_once("!=") {
                (path, false, value)
            } else if let Some((path, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
                (path, true, value)
            } else {
                return Err(format!("invalid selector: '{part}'; can't understand '{part}'"));
            };
            Ok((path.trim().to_owned(), equal, value.trim().to_owned()))
        };
        parts.map(parse).collect::<Result<_, _>>().map(Self)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the name that the selector selects, or `None` if it selects no single name. Access decisions treat this
    /// name as the name in the request.
    pub(crate) fn name(&self) -> Option<&str> {
        let one = self.0.iter().find(|(path, equal, _)| path == "metadata.name" && *equal);
        one.map(|(.., name)| name.as_str())
    }

    /// Returns the paths in the selector.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(path, ..)| path.as_str())
    }

    /// Returns whether the selector matches an object.
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(path, equal, wanted)| {
            let found = path.split('.').fold(object, |value, field| &value[field]);
            let found = match found {
                Value::String(text) => text.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            (found == *wanted) == *equal
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn label_selectors_match_as_kubectl_writes_them() {
        let object = json!({"metadata": {"labels": {"a": "b", "e": "g", "n": "2"}}});
        for (text, matches) in [
            ("a=b,c!=d", true),
            ("a==b,e in (f, g)", true),
            ("e notin (g)", false),
            ("a,!z", true),
            ("z", false),
            ("n>1,n<3", true),
        ] {
            assert_eq!(LabelSelector::parse(text).unwrap().matches(&object), matches, "{text}");
        }
    }

    #[test]
    fn field_selectors_compare_texts() {
        let object = json!({"metadata": {"name": "x"}, "status": {"replicas": 2}});
        assert!(FieldSelector::parse("metadata.name=x,status.replicas=2").unwrap().matches(&object));
        assert!(FieldSelector::parse("status.phase=").unwrap().matches(&object));
        assert!(!FieldSelector::parse("metadata.name!=x").unwrap().matches(&object));
    }
}
