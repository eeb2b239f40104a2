//! Tests decoding, the messages of errors, and agreement with serde.

#![allow(clippy::unwrap_used)]

use kaos_decode::{Decode, decode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;

#[derive(Debug, Default, PartialEq, Decode, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Spec {
    model: String,
    config: Config,
    models: Vec<String>,
    mode: Option<Mode>,
    raw: Option<Value>,
    labels: BTreeMap<String, i32>,
}

#[derive(Debug, Default, PartialEq, Decode, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    memory: Memory,
}

#[derive(Debug, Default, PartialEq, Decode, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Memory {
    context_limit: Option<i32>,
}

#[derive(Debug, PartialEq, Decode, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Mode {
    Proxy,
    #[serde(rename = "HOSTED")]
    Hosted,
}

#[derive(Debug, PartialEq, Decode, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Strict {
    #[serde(rename = "theName")]
    name: String,
    #[serde(default = "three")]
    max_steps: u16,
    #[serde(default)]
    list: Vec<bool>,
    r#type: Option<f64>,
}

fn three() -> u16 {
    3
}

fn said<T: Decode + Debug>(value: &Value) -> String {
    decode::<T>(value).unwrap_err().to_string()
}

#[test]
fn an_error_names_the_path_and_what_is_wanted() {
    let value = json!({"config": {"memory": {"contextLimit": "six"}}});
    assert_eq!(
        said::<Spec>(&value),
        "config.memory.contextLimit: must be a whole number from -2147483648 to 2147483647, not string \"six\""
    );
    assert_eq!(said::<Spec>(&json!({"models": ["a", 7]})), "models[1]: must be a string, not integer `7`");
    assert_eq!(
        said::<Spec>(&json!({"labels": {"a.b/c": "x"}})),
        "labels[\"a.b/c\"]: must be a whole number from -2147483648 to 2147483647, not string \"x\""
    );
    assert_eq!(said::<Spec>(&json!({"config": 5.5})), "config: must be an object, not floating point `5.5`");
    assert_eq!(said::<Spec>(&json!({"models": "a"})), "models: must be a list, not string \"a\"");
    assert_eq!(said::<Spec>(&json!({"models": {}})), "models: must be a list, not an object");
    assert_eq!(said::<Spec>(&json!({"labels": []})), "labels: must be an object, not a list");
    assert_eq!(said::<Spec>(&json!({"models": [null]})), "models[0]: must be a string, not null");
    assert_eq!(said::<Spec>(&json!({"model": true})), "model: must be a string, not boolean `true`");
}

#[test]
fn unknown_fields_and_variants_name_the_known_ones() {
    let known = "the known fields are model, config, models, mode, raw, labels";
    assert_eq!(said::<Spec>(&json!({"modle": 1})), format!("modle: is not a known field; {known}"));
    assert_eq!(said::<Spec>(&json!({"mode": "Proxy"})), "mode: must be one of proxy, HOSTED, not \"Proxy\"");
    assert_eq!(said::<Spec>(&json!({"mode": 1})), "mode: must be one of proxy, HOSTED, not integer `1`");
    assert_eq!(said::<Strict>(&json!({})), "theName: is required");
}

#[test]
fn a_null_in_a_struct_is_absent_and_in_raw_json_it_stays() {
    let value = json!({"model": null, "config": null, "unknown": null, "raw": {"a": null, "b": [null]}});
    let spec: Spec = decode(&value).unwrap();
    assert_eq!(spec, Spec { raw: Some(json!({"a": null, "b": [null]})), ..Spec::default() });
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range() {
    let value = json!({"config": {"memory": {"contextLimit": 4_294_967_296_i64}}});
    assert_eq!(
        said::<Spec>(&value),
        "config.memory.contextLimit: must be a whole number from -2147483648 to 2147483647, not integer `4294967296`"
    );
    assert_eq!(
        said::<Strict>(&json!({"theName": "", "maxSteps": -1})),
        "maxSteps: must be a whole number from 0 to 65535, not integer `-1`"
    );
    assert!(decode::<f64>(&json!(3)).is_ok() && decode::<u64>(&json!(u64::MAX)).is_ok());
    assert!(decode::<i64>(&json!(u64::MAX)).is_err() && decode::<u64>(&json!(-1)).is_err());
}

/// Returns variants of an input. In each variant, a different value replaces one value of the input.
fn mutated(value: &Value) -> Vec<Value> {
    let other = json!([1, -1, 1.5, 70_000, true, "x", "HOSTED", {}, {"x": 1}, [], [1]]);
    let mut all = other.as_array().cloned().unwrap_or_default();
    if value.is_object() {
        // Leave out lists: serde also decodes a struct from a list of its fields.
        all.retain(|other| !other.is_array());
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let with = |changed: Value| {
                    let mut members = members.clone();
                    members.insert(name.clone(), changed);
                    Value::Object(members)
                };
                all.extend(mutated(member).into_iter().map(with));
                let mut without = members.clone();
                without.remove(name);
                all.push(Value::Object(without));
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                all.extend(mutated(item).into_iter().map(|changed| {
                    let mut items = items.clone();
                    items[at] = changed;
                    Value::Array(items)
                }));
            }
        }
        _ => {}
    }
    all
}

fn agree<T: Decode + for<'de> Deserialize<'de> + Debug + PartialEq>(full: &Value) {
    assert!(decode::<T>(full).is_ok(), "{full}");
    for value in mutated(full) {
        let (own, serdes) = (decode::<T>(&value), serde_json::from_value::<T>(value.clone()));
        assert_eq!(own.as_ref().ok(), serdes.as_ref().ok(), "{value}: {own:?} {serdes:?}");
    }
}

#[test]
fn serde_reads_the_same() {
    agree::<Spec>(&json!({
        "model": "m", "config": {"memory": {"contextLimit": 1}}, "models": ["a", "b"], "mode": "proxy",
        "raw": {"a": [1, null]}, "labels": {"a": 1, "b": 2},
    }));
    agree::<Strict>(&json!({"theName": "n", "maxSteps": 4, "list": [true, false], "type": 1.5}));
}
