//! Tests unknown fields inside of open fields. An open field is a field for which the CustomResourceDefinition accepts
//! any content. A policy must not silently drop an unknown field: it must pass the field to the API server, refuse the
//! object, or write a note.

use kaos_crds::manifests;
use kaos_policy::render::Verdict;
use kaos_tests::hostile::Subject;
use serde_json::{Value, json};

use super::NATIVE;

/// The name of a field that no type has.
const UNKNOWN: &str = "unknownField";

#[test]
fn an_unknown_field_of_an_open_schema_is_passed_on_refused_or_reported() {
    let (mut open_fields, mut dropped) = (0, Vec::new());
    for (text, kind) in manifests::ALL.iter().zip(manifests::KINDS) {
        let definition: Value = serde_saphyr::from_str(text).unwrap();
        let spec = &definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        for pointer in open(spec, "/spec") {
            let mut subjects = NATIVE.iter().filter(|subject| subject.object["kind"] == kind);
            if !subjects.any(|subject| is_seen(subject, &pointer)) {
                dropped.push(format!("{kind}: {pointer}"));
            }
            open_fields += 1;
        }
    }
    assert!(dropped.is_empty(), "silently dropped: {dropped:#?}");
    assert!(open_fields > 50, "only {open_fields} fields are open");
}

/// Returns the open fields below a schema as JSON pointers, including open fields inside of other open fields. A field
/// whose schema lists its members is not open, because the API server reports unknown members. For a list, the pointer
/// names the first item.
fn open(schema: &Value, pointer: &str) -> Vec<String> {
    let own = (schema["x-kubernetes-preserve-unknown-fields"] == true).then(|| pointer.to_owned());
    let fields = schema["properties"].as_object().into_iter().flatten();
    let below = fields.flat_map(|(name, field)| open(field, &format!("{pointer}/{name}")));
    let below = own.into_iter().chain(below);
    below.chain(schema.get("items").into_iter().flat_map(|items| open(items, &format!("{pointer}/0")))).collect()
}

/// Returns whether the policy's answer contains the unknown field.
fn is_seen(subject: &Subject, pointer: &str) -> bool {
    let mut object = subject.object.clone();
    // Remove `spec.container.resources`: while this field is set, the deprecated field `resources` has no effect.
    if let Some(newer) = object["spec"]["container"].as_object_mut().filter(|_| pointer.contains("/resources")) {
        newer.remove("resources");
    }
    put(&mut object, pointer);
    match subject.verdict(&object).unwrap() {
        Verdict::Refused(refusal) => format!("{refusal:?}").contains(UNKNOWN),
        Verdict::Planned(plan) => {
            let is_in = |value: &Value| value.to_string().contains(UNKNOWN);
            plan.manifests.iter().any(is_in) || plan.notes.iter().any(|note| note.message.contains(UNKNOWN))
        }
        Verdict::Failed(failure) => panic!("{pointer}: {failure}"),
    }
}

/// Puts the unknown field into `object` at `pointer`. Creates missing objects and lists on the way.
fn put(object: &mut Value, pointer: &str) {
    let mut here = object;
    for step in pointer.split('/').skip(1) {
        if step == "0" {
            if !here.is_array() {
                *here = json!([{}]);
            }
            here = &mut here[0];
        } else {
            if !here.is_object() {
                *here = json!({});
            }
            if step == "valueFrom" {
                *here = json!({"name": "FROM_ELSEWHERE"});
            }
            here = &mut here[step];
        }
    }
    if !here.is_object() {
        *here = json!({});
    }
    here[UNKNOWN] = json!("x");
}
