//! Checks objects as the API server does: a JSON Schema validator checks the structural schema, and a CEL interpreter
//! checks the rules in the schema.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use kaos_crds::access::{AccessGrantSpec, AuthorizationPolicySpec};
use kaos_crds::{AgentSpec, MCPServerSpec, MemoryStoreSpec, ModelAPISpec, generate};
use kaos_decode::Decode;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

struct Definition {
    kind: String,
    schema: Value,
    compiled: jsonschema::Validator,
}

fn definitions() -> Vec<Definition> {
    let made = |crd: Value| {
        let schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
        let mut plain = schema.clone();
        as_json_schema(&mut plain);
        Definition {
            kind: crd["spec"]["names"]["kind"].as_str().unwrap().into(),
            compiled: jsonschema::validator_for(&plain).unwrap(),
            schema,
        }
    };
    generate::definitions().unwrap().map(made).into()
}

/// Converts OpenAPI's `nullable` to JSON Schema, in all nodes of a schema.
fn as_json_schema(node: &mut Value) {
    match node {
        Value::Object(map) => {
            if map.get("nullable") == Some(&json!(true))
                && let Some(of) = map.get("type").cloned()
            {
                map.insert("type".into(), json!([of, "null"]));
            }
            map.values_mut().for_each(as_json_schema);
        }
        Value::Array(items) => items.iter_mut().for_each(as_json_schema),
        _ => {}
    }
}

/// Returns the object without nulls in fields that are not nullable. The API server also drops these nulls, so that
/// defaults apply.
fn stored(definitions: &[Definition], object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(of) = definitions.iter().find(|of| object["kind"] == of.kind.as_str()) {
        drop_nulls(&of.schema, &mut object);
    }
    object
}

fn drop_nulls(schema: &Value, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| drop_nulls(&schema["items"], item)),
        Value::Object(fields) => fields.retain(|name, field| {
            let others = Some(&schema["additionalProperties"]).filter(|others| others.is_object());
            let Some(known) = schema["properties"].get(name).or(others) else { return true };
            drop_nulls(known, field);
            !field.is_null() || known["nullable"] == true
        }),
        _ => {}
    }
}

/// Returns all errors of an object. Returns no errors for kinds of other projects.
fn complaints(definitions: &[Definition], object: &Value) -> Vec<String> {
    let Some(of) = definitions.iter().find(|of| object["kind"] == of.kind.as_str()) else { return Vec::new() };
    let object = &stored(definitions, object);
    let mut found: Vec<_> =
        of.compiled.iter_errors(object).map(|error| format!("{}: {error}", error.instance_path())).collect();
    if let Err(errors) = kube_cel::Validator::new().validate(&of.schema, object, None) {
        found.extend(errors.into_iter().map(|error| format!("{}: {}", error.field_path, error.message)));
    }
    found
}

fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    // As in YAML 1.2, `y` is a text and not a boolean.
    let options = serde_saphyr::options! { strict_booleans: true };
    let all: Vec<Value> = serde_saphyr::from_multiple_with_options(&text, options)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    all.into_iter().filter(Value::is_object).collect()
}

fn input(name: &str) -> Vec<Value> {
    documents(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs").join(name))
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/cases");
    let mut all: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.join("input.yaml").exists());
    all.sort();
    assert!(all.len() > 100, "only {} cases", all.len());
    all
}

#[test]
fn recorded_inputs_are_accepted_or_refused_as_they_were() {
    let definitions = definitions();
    for case in cases() {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let recorded: Value = serde_json::from_str(&fs::read_to_string(case.join("expected.json")).unwrap()).unwrap();
        // The schemas accept two inputs whose recorded result is a rejection: the schemas allow a partial pod spec, and
        // do not check names. The API server checks the names of every kind itself.
        let refused = !recorded["rejected"].is_null()
            && name != "agent-rejected-podspec-no-containers"
            && name != "agent-rejected-name-uppercase";
        let found: Vec<_> =
            documents(&case.join("input.yaml")).iter().flat_map(|object| complaints(&definitions, object)).collect();
        assert_eq!(refused, !found.is_empty(), "{name}: {found:?}");
    }
}

#[test]
fn older_and_complete_manifests_are_accepted() {
    let definitions = definitions();
    for object in input("older.yaml").into_iter().chain(input("accepted.yaml")) {
        assert_eq!(complaints(&definitions, &object), Vec::<String>::new(), "{}", object["metadata"]["name"]);
    }
}

#[test]
fn wrong_manifests_are_refused_with_the_field() {
    let definitions = definitions();
    for object in input("refused.yaml") {
        let found = complaints(&definitions, &object);
        let wanted = object["metadata"]["annotations"]["refused"].as_str().unwrap();
        assert!(found.iter().any(|text| text.contains(wanted)), "{}: {found:?}", object["metadata"]["name"]);
    }
}

#[test]
fn accepted_manifests_are_read_without_losing_a_known_field() {
    let definitions = definitions();
    // Leave out one case: the API server keeps an unknown field of its object, and the policy refuses the object.
    let known = cases().into_iter().filter(|case| !case.ends_with("modelapi-configyaml-misspelt"));
    let mut all: Vec<_> = known.flat_map(|case| documents(&case.join("input.yaml"))).collect();
    all.extend(input("older.yaml"));
    all.extend(input("accepted.yaml"));
    for object in all {
        let Some(of) = definitions.iter().find(|of| object["kind"] == of.kind.as_str()) else { continue };
        if !complaints(&definitions, &object).is_empty() {
            continue;
        }
        let object = stored(&definitions, &object);
        let read = match of.kind.as_str() {
            "Agent" => read::<AgentSpec>(&object["spec"]),
            "ModelAPI" => read::<ModelAPISpec>(&object["spec"]),
            "MemoryStore" => read::<MemoryStoreSpec>(&object["spec"]),
            "AccessGrant" => read::<AccessGrantSpec>(&object["spec"]),
            "AuthorizationPolicy" => read::<AuthorizationPolicySpec>(&object["spec"]),
            _ => read::<MCPServerSpec>(&object["spec"]),
        };
        assert_kept(&object["spec"], &read, "spec");
    }
}

/// Decodes `spec` as its type and serializes it again. Checks that policies and serde decode the same value.
fn read<T: Serialize + DeserializeOwned + Decode + PartialEq + Debug>(spec: &Value) -> Value {
    let read: T = serde_json::from_value(spec.clone()).unwrap_or_else(|error| panic!("{spec}: {error}"));
    assert_eq!(kaos_decode::decode::<T>(spec).as_ref(), Ok(&read));
    serde_json::to_value(read).unwrap()
}

/// Checks that `read` contains all values of `written`. Fields with the value null and empty lists may be missing.
fn assert_kept(written: &Value, read: &Value, path: &str) {
    let empty = Map::new();
    match written {
        Value::Object(fields) => {
            let read = read.as_object().unwrap_or(&empty);
            for (name, field) in fields {
                if !field.is_null() && *field != json!([]) {
                    let path = format!("{path}.{name}");
                    assert_kept(field, read.get(name).unwrap_or_else(|| panic!("{path} was lost")), &path);
                }
            }
        }
        _ => assert_eq!(written, read, "{path}"),
    }
}
