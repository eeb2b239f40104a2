use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn fields(paths: &[&str]) -> Fields {
    let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    Fields::parse(&paths).unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the selected part of a spec, without the fields that every selection contains.
fn of_spec(paths: &[&str], spec: &Value) -> Value {
    let metadata = json!({"name": "a", "namespace": "n", "uid": "u", "labels": {"l": "1"}});
    let object = json!({"apiVersion": "x/v1", "kind": "K", "metadata": metadata, "spec": spec});
    let mut part = fields(paths).of(&object);
    let always = json!({"name": "a", "namespace": "n", "uid": "u"});
    assert_eq!((&part["apiVersion"], &part["kind"], &part["metadata"]), (&json!("x/v1"), &json!("K"), &always));
    part["spec"].take()
}

#[test]
fn a_path_selects_a_member_and_all_below_it() {
    let spec = json!({"a": {"b": 1, "c": [1, 2]}, "d": null, "k.e/y": "v"});
    assert_eq!(of_spec(&["spec.a.b"], &spec), json!({"a": {"b": 1}}));
    assert_eq!(of_spec(&["spec.a"], &spec), json!({"a": {"b": 1, "c": [1, 2]}}));
    assert_eq!(of_spec(&["spec.a", "spec.a.b", "spec.no"], &spec), json!({"a": {"b": 1, "c": [1, 2]}}));
    assert_eq!(of_spec(&[r#"spec["k.e/y"]"#, "spec.d"], &spec), json!({"k.e/y": "v", "d": null}));
    assert_eq!(of_spec(&["status.x"], &spec), Value::Null, "the spec is not selected");
}

#[test]
fn a_value_selects_the_items_that_are_equal() {
    let spec = json!({"models": ["a", "b", "*", 3, "a"]});
    assert_eq!(of_spec(&[r#"spec.models[="a"]"#, r#"spec.models[="*"]"#], &spec), json!({"models": ["*", "a"]}));
    assert_eq!(of_spec(&[r#"spec.models[="c"]"#], &spec), json!({"models": []}));
    let phase = |phase: &str| of_spec(&[r#"spec.phase[="Failed"]"#], &json!({"phase": phase}));
    assert_eq!((phase("Failed"), phase("Ready")), (json!({"phase": "Failed"}), json!({})));
}

#[test]
fn a_member_selects_the_maps_of_a_list() {
    let spec = json!({"conditions": [
        {"type": "Ready", "status": "True", "message": "m"}, {"type": "Other", "status": "True"}, "odd",
    ]});
    let ready = r#"spec.conditions[type="Ready"]"#;
    assert_eq!(of_spec(&[ready], &spec), json!({"conditions": [{"type": "Ready", "status": "True", "message": "m"}]}));
    let status = format!("{ready}.status");
    let and_others = r#"spec.conditions[status="True"].nothing"#;
    assert_eq!(of_spec(&[&status], &spec), json!({"conditions": [{"type": "Ready", "status": "True"}]}));
    assert_eq!(
        of_spec(&[&format!("{ready}.message"), and_others], &spec),
        json!({"conditions": [{"type": "Ready", "status": "True", "message": "m"}, {"status": "True"}]})
    );
}

#[test]
fn a_question_mark_selects_whether_there_is_a_value() {
    let spec = json!({"count": 3, "none": null, "map": {"x": 1}});
    let asked = ["spec.count?", "spec.none?", "spec.map?", "spec.absent?"];
    assert_eq!(of_spec(&asked, &spec), json!({"count": true, "map": true}));
    assert_eq!(of_spec(&["spec.map?", "spec.map.y"], &spec), json!({"map": {}}));
    assert_eq!(of_spec(&["spec.count?", "spec.count"], &spec), json!({"count": 3}));
    assert_eq!(of_spec(&[r#"spec.a[="x"]"#, "spec.a?"], &json!({"a": "y"})), json!({"a": true}));
}

#[test]
fn a_value_of_another_form_stays_whole() {
    for odd in [json!("text"), json!(3), json!([1, {"b": 2}]), json!(null)] {
        assert_eq!(of_spec(&["spec.a.b"], &json!({"a": odd})), json!({"a": odd}));
    }
    for odd in [json!({"x": 1}), json!(3), json!(true)] {
        assert_eq!(of_spec(&[r#"spec.a[="x"]"#], &json!({"a": odd})), json!({"a": odd}));
        assert_eq!(of_spec(&[r#"spec.a[b="x"]"#], &json!({"a": odd})), json!({"a": odd}));
    }
}

#[test]
fn no_path_means_all_fields_and_the_order_of_paths_means_nothing() {
    let object = json!({"a": 1, "metadata": {"labels": {}}});
    assert!(fields(&[]).is_whole());
    assert_eq!(fields(&[]).of(&object), object);
    assert_eq!(fields(&["b", "a", "b"]), fields(&["a", "b"]));
    assert_ne!(fields(&["a"]), fields(&["b"]));
    assert_eq!(fields(&["b", "a"]).paths(), ["a", "b"]);
}

#[test]
fn a_deletion_is_always_shown() {
    let object = |metadata: Value| fields(&["a"]).of(&json!({"metadata": metadata}));
    let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    assert_eq!(object(going.clone())["metadata"], going);
    assert_eq!(object(json!({"generation": 2, "annotations": {"a": "b"}}))["metadata"], json!({}));
}

#[test]
fn a_text_that_is_no_path_names_the_place() {
    for (text, why) in [
        ("", PathError::Name(0)),
        (".a", PathError::Name(0)),
        ("a..b", PathError::Name(2)),
        ("a.b/c", PathError::Rest(3)),
        ("a b", PathError::Rest(1)),
        ("a[0]", PathError::Text(3)),
        ("a[]", PathError::Name(2)),
        ("a[=b]", PathError::Text(3)),
        (r#"a[="b]"#, PathError::Text(3)),
        (r#"a[="b""#, PathError::Open(6)),
        (r#"a["\x"]"#, PathError::Text(2)),
        (r#"a[="b"].c"#, PathError::Rest(7)),
        (r#"a[="b"][="c"]"#, PathError::Rest(7)),
        ("a?.b", PathError::Rest(2)),
        ("a??", PathError::Rest(2)),
        ("é", PathError::Name(0)),
    ] {
        assert_eq!(path::parse(text), Err(why), "{text}");
    }
    assert_eq!(path::parse(&"a".repeat(MAX_BYTES + 1)), Err(PathError::TooLong));
    assert!(path::parse(r#"a["b\"]\\"][c="d"].e[="\u00e9"]?"#).is_ok());
    let many: Vec<String> = (0..=MAX_FIELDS).map(|at| format!("f{at}")).collect();
    assert_eq!(Fields::parse(&many), Err(FieldError::TooMany(MAX_FIELDS + 1)));
    let told = Fields::parse(&["a.".to_owned()]).unwrap_err().to_string();
    assert!(told.starts_with("`a.` is not the path of a field: write a name of letters"), "{told}");
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        "[abc]".prop_map(Value::from)
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

fn path() -> impl Strategy<Value = String> {
    let step = prop_oneof!["\\.[abc]", "\\[\"[abc]\"\\]", "\\[[abc]=\"[abc]\"\\]"];
    ("[abc]", prop::collection::vec(step, 0..4), prop_oneof![Just(String::new()), "\\[=\"[abc]\"\\]".boxed()], "\\??")
        .prop_map(|(name, steps, equal, present)| format!("{name}{}{equal}{present}", steps.concat()))
}

/// Collects all keys and scalars of a value.
fn contents(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| contents(item, into)),
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            into.insert(key.clone());
            contents(value, into);
        }),
        Value::Bool(true) => {}
        scalar => drop(into.insert(scalar.to_string())),
    }
}

proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in ".{0,40}") {
        let _ = path::parse(&text);
    }

    #[test]
    fn a_part_is_in_the_object_and_its_own_part(object in value(), paths in prop::collection::vec(path(), 1..5)) {
        let fields = Fields::parse(&paths).unwrap();
        let part = fields.of(&object);
        let (mut all, mut selected) = (BTreeSet::new(), BTreeSet::new());
        contents(&object, &mut all);
        contents(&part, &mut selected);
        prop_assert!(selected.is_subset(&all), "{part} of {object}");
        prop_assert_eq!(fields.of(&part), part);
    }
}
