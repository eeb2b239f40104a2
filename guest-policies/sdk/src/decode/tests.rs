use super::decode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct Spec {
    model: String,
    config: Config,
    models: Vec<String>,
    mode: Option<Mode>,
    raw: Option<Value>,
    labels: BTreeMap<String, i32>,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    memory: Memory,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Memory {
    context_limit: Option<i32>,
}

#[derive(Debug, PartialEq, Deserialize)]
enum Mode {
    Proxy,
    Hosted,
    With(i32),
}

#[derive(Debug, PartialEq, Deserialize)]
struct Strict {
    name: String,
}

fn said<T: serde::de::DeserializeOwned + std::fmt::Debug>(value: &Value) -> String {
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
    assert_eq!(said::<Spec>(&json!({"config": 5})), "config: must be an object, not 5");
    assert_eq!(said::<Spec>(&json!({"models": "a"})), "models: must be a list, not string \"a\"");
    assert_eq!(said::<Spec>(&json!({"labels": []})), "labels: must be an object, not sequence");
}

#[test]
fn unknown_fields_and_variants_name_the_known_ones() {
    let known = "known are model, config, models, mode, raw, labels";
    assert_eq!(said::<Spec>(&json!({"modle": 1})), format!("modle: is no known field; {known}"));
    assert_eq!(said::<Spec>(&json!({"mode": "proxy"})), "mode: must be one of Proxy, Hosted, With, not \"proxy\"");
    assert_eq!(said::<Strict>(&json!({})), "name: is required");
}

#[test]
fn a_null_in_a_struct_is_absent_and_in_raw_json_it_stays() {
    let value = json!({"model": null, "config": null, "raw": {"a": null, "b": [null]}});
    let spec: Spec = decode(&value).unwrap();
    assert_eq!(spec, Spec { raw: Some(json!({"a": null, "b": [null]})), ..Spec::default() });
}

#[test]
fn enums_are_read_in_both_spellings() {
    assert_eq!(decode::<Mode>(&json!("Hosted")).unwrap(), Mode::Hosted);
    assert_eq!(decode::<Mode>(&json!({"With": 3})).unwrap(), Mode::With(3));
    assert_eq!(
        said::<Mode>(&json!({"With": "x"})),
        "With: must be a whole number from -2147483648 to 2147483647, not string \"x\""
    );
    assert_eq!(decode::<Mode>(&json!("Proxy")).unwrap(), Mode::Proxy);
}

#[test]
fn numbers_out_of_range_are_refused_with_the_range_type() {
    let value = json!({"config": {"memory": {"contextLimit": 4_294_967_296_i64}}});
    assert_eq!(
        said::<Spec>(&value),
        "config.memory.contextLimit: must be a whole number from -2147483648 to 2147483647, not integer `4294967296`"
    );
    assert!(decode::<f64>(&json!(3)).is_ok());
}
