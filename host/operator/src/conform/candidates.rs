//! Finds values for a setting that differ from its current value. The caller keeps the values that the settings schema
//! accepts.

use fastrand::Rng;
use serde_json::{Value, json};

use crate::fuzz::{Draw, Generator};

/// Texts in the formats of common settings: a word, a number, an amount, a duration, a path, an image, a URL, keys.
const TEXTS: [&str; 11] = [
    "other",
    "1",
    "3Gi",
    "45s",
    "/other",
    "example.com/other",
    "example.com/other:2",
    "http://other.example:81",
    "Other",
    "2",
    "{\"keys\": []}",
];

/// Returns values for the setting `name` that differ from `current`. `facets` contains the parts of the schema that
/// describe the setting.
pub(super) fn candidates(generator: &Generator, name: &str, facets: &[&Value], current: Option<&Value>) -> Vec<Value> {
    let mut found = Vec::new();
    for facet in facets {
        for listed in ["enum", "examples"] {
            found.extend(facet[listed].as_array().into_iter().flatten().cloned());
        }
        found.extend(facet.get("const").cloned());
    }
    for facet in facets {
        match &facet["type"] {
            Value::String(one) => of_type(generator, name, facet, one, current, &mut found),
            Value::Array(several) => {
                for one in several.iter().filter_map(Value::as_str) {
                    of_type(generator, name, facet, one, current, &mut found);
                }
            }
            _ => {}
        }
    }
    if facets.iter().all(|facet| facet["type"].is_null()) {
        found.extend([json!("other"), json!(2), json!(true), json!(["other"]), json!({"other": "other"})]);
    }
    let mut distinct: Vec<Value> = Vec::new();
    for value in found {
        if current != Some(&value) && !distinct.contains(&value) {
            distinct.push(value);
        }
    }
    distinct
}

fn of_type(
    generator: &Generator,
    name: &str,
    facet: &Value,
    of: &str,
    current: Option<&Value>,
    found: &mut Vec<Value>,
) {
    match of {
        "boolean" => found.extend([json!(true), json!(false)]),
        "integer" | "number" => {
            let bounds = ["minimum", "maximum"].iter().filter_map(|bound| facet[*bound].as_i64());
            let now = current.and_then(Value::as_i64);
            let near = now.into_iter().flat_map(|now| [now.saturating_add(1), now.saturating_sub(1), now / 2]);
            found.extend(near.chain([1, 2, 30, 1000]).chain(bounds).map(Value::from));
        }
        "string" => {
            if let Some(now) = current.and_then(Value::as_str).filter(|now| !now.is_empty()) {
                found.extend([format!("{now}x"), format!("{now}1"), format!("x{now}")].map(Value::from));
            }
            found.extend(TEXTS.map(Value::from));
            found.push(json!(""));
        }
        "array" => {
            let item = generator.value(&facet["items"], name, &mut valid());
            found.extend([json!([item]), json!(["other"]), json!([])]);
        }
        "object" => {
            let value = match &facet["additionalProperties"] {
                schema @ Value::Object(_) => generator.value(schema, name, &mut valid()),
                _ => json!("other"),
            };
            found.extend([json!({"other": value}), json!({"example.com/other": value}), json!({})]);
        }
        "null" => found.push(Value::Null),
        _ => {}
    }
}

/// Returns a source of random values that are all valid. The seed is fixed, so the values are the same in every run.
fn valid() -> Draw {
    Draw { rng: Rng::with_seed(1), nasty: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(schema: &Value, current: &Value) -> Vec<Value> {
        candidates(&Generator::default(), "n", &[schema], Some(current))
    }

    #[test]
    fn candidates_differ_from_the_current_value() {
        assert_eq!(of(&json!({"type": "boolean"}), &json!(true)), [json!(false)]);
        assert_eq!(of(&json!({"enum": ["a", "b"]}), &json!("a"))[0], json!("b"));
        assert!(of(&json!({"type": "integer", "minimum": 7}), &json!(8)).contains(&json!(7)));
        assert_eq!(of(&json!({"type": "string"}), &json!("img:1"))[0], json!("img:1x"));
        assert_eq!(
            of(&json!({"type": "object"}), &json!({})),
            [json!({"other": "other"}), json!({"example.com/other": "other"})]
        );
    }
}
