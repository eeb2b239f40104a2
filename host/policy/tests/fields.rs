//! Tests needs that name fields: the policy sees only the named fields.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use crate::widget::{NATIVE, admitted, alone, of, renderer, rules, widget};
use kaos_policy::{
    code::Native,
    contract::{Answer, Fields, Need, Reference, Refusal, ResourceType, Subject, Target},
    guard::Rule,
    lookup::{Fixed, Lookup, Sighting},
    memo::Memo,
    render::Rendered,
};
use serde_json::{Map, Value, json};

/// Returns a cluster with a ConfigMap that has this label and this data.
fn cluster(label: &str, data: &Value) -> Fixed {
    let metadata = json!({"name": "c", "namespace": "n", "uid": "u", "labels": {"l": label}, "resourceVersion": "7"});
    Fixed::new([json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})])
}

fn reading(fields: &[&str]) -> Value {
    widget(json!({"needs": [{"name": "c", "fields": fields}]}))
}

fn shown(rendered: &Rendered) -> Value {
    let Answer::Objects(shown) = &rendered.subject().found[0].answer else { panic!("no object") };
    serde_json::from_str(&shown[0]).unwrap()
}

#[test]
fn a_policy_sees_the_fields_that_it_names_and_the_identity() {
    let objects = cluster("x", &json!({"a": "1", "b": "2"}));
    let rendered = renderer("{}", &[]).render(&reading(&["data.a"]), &objects).unwrap();
    let metadata = json!({"name": "c", "namespace": "n", "uid": "u"});
    let part = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}});
    assert_eq!(shown(&rendered), part);
    assert_eq!(rendered.needs[0].fields, ["data.a"]);
    let rendered = renderer("{}", &[]).render(&reading(&["metadata"]), &objects).unwrap();
    assert_eq!(shown(&rendered)["metadata"]["labels"], json!({"l": "x"}));
    assert!(shown(&rendered)["metadata"]["resourceVersion"].is_null(), "no policy sees the version");
}

#[test]
fn a_change_of_another_field_leaves_the_answer_remembered() {
    let renderer = renderer("{}", &[]).with_memo(Arc::new(Memo::new(1 << 20)));
    let object = reading(&["data.a"]);
    let recalled = |label: &str, data: Value| renderer.render(&object, &cluster(label, &data)).unwrap().recalled();
    assert!(!recalled("x", json!({"a": "1"})));
    assert!(recalled("y", json!({"a": "1", "b": "2"})));
    assert!(!recalled("y", json!({"a": "2"})));
}

#[test]
fn invalid_fields_are_a_breach_that_names_the_path() {
    let render = |needs: Value| {
        let rendered = renderer("{}", &[]).render(&widget(json!({"needs": needs})), &Fixed::default()).unwrap();
        assert_eq!(rules(&rendered), [Rule::NeedsOrderly]);
        rendered.failed().unwrap().to_string()
    };
    let told = render(json!([{"name": "c", "fields": ["data.a", "data..b"]}]));
    assert!(told.contains("needs[0]: `data..b` is not the path of a field: write a name of letters"), "{told}");
    let many: Vec<String> = (0..33).map(|at| format!("data.k{at}")).collect();
    let told = render(json!([{"name": "c", "fields": many}]));
    assert!(told.contains("a need has at most 32 fields, but this one has 33"), "{told}");
    let told = render(json!([{"name": "c", "fields": ["a".repeat(3_000_000)]}]));
    assert!(told.len() < 1_000 && told.contains("is not the path of a field"), "{told}");
    let told = render(json!([{"name": "s", "kind": "Secret", "fields": ["data.a"]}]));
    assert!(told.contains("a need of a Secret must not list fields: the answer has only facts"), "{told}");
}

/// Renders a Widget whose policy has these needs.
fn asking(needs: fn(&Subject) -> Vec<Need>, object: &Value, cluster: &dyn Lookup) -> Rendered {
    let renderer = alone(admitted(Native { needs, ..NATIVE }, "{}"), &[]);
    renderer.render(object, cluster).unwrap()
}

fn config_map(id: &str, field: &str) -> Need {
    let reference = Reference { api_version: "v1".into(), kind: "ConfigMap".into(), namespace: None, name: "c".into() };
    Need { id: id.into(), target: Target::Named(reference), fields: vec![field.into()], optional: false }
}

#[test]
fn an_id_keeps_its_fields_in_later_rounds() {
    let rendered = asking(
        |subject| vec![config_map("c", if subject.found.is_empty() { "data.a" } else { "data.b" })],
        &widget(json!({})),
        &Fixed::default(),
    );
    let told = rendered.failed().unwrap().to_string();
    assert!(told.contains("the need with id c listed other fields in an earlier round"), "{told}");
    let two = |subject: &Subject| match subject.found.len() {
        0 => vec![config_map("c", "data.a")],
        _ => vec![config_map("c", "data.a"), config_map("more", "data.b")],
    };
    let rendered = asking(two, &widget(json!({})), &cluster("x", &json!({"a": "1", "b": "2"})));
    assert!(rendered.planned().is_some() && rendered.needs.len() == 2, "{:?}", rendered.verdict);
}

#[test]
fn a_policy_knows_whether_its_object_was_applied() {
    fn needs(subject: &Subject) -> Vec<Need> {
        vec![config_map("c", if subject.applied { "data.a" } else { "data.b" })]
    }
    let mut object = widget(json!({}));
    let field = |object: &Value| asking(needs, object, &Fixed::default()).needs[0].fields[0].clone();
    assert_eq!(field(&object), "data.b");
    object["status"] = json!({"appliedGeneration": 3});
    assert_eq!(field(&object), "data.a");
}

#[test]
fn one_field_of_a_large_object_can_be_read() {
    let data: Map<String, Value> = (0..20_000).map(|n| (format!("k{n}"), json!("v"))).collect();
    let objects = cluster("x", &data.into());
    assert!(renderer("{}", &[]).render(&reading(&[]), &objects).unwrap().refused().is_some());
    let rendered = renderer("{}", &[]).render(&reading(&["data.k7"]), &objects).unwrap();
    assert!(rendered.planned().is_some(), "{:?}", rendered.verdict);
    assert_eq!(shown(&rendered)["data"], json!({"k7": "v"}));
}

/// A cluster whose objects are so large that every lookup of fields stops at the limit.
struct Large;

impl Lookup for Large {
    fn look_up(&self, _: &Target) -> Sighting {
        Sighting::Objects(Vec::new())
    }

    fn look_up_fields(&self, _: &Target, _: &Fields, room: &mut usize) -> Sighting {
        *room = 0;
        Sighting::Objects(Vec::new())
    }

    fn is_cluster_scoped(&self, _: &ResourceType) -> bool {
        false
    }
}

#[test]
fn a_pass_waits_while_there_is_too_much_to_read_and_every_change_matters() {
    let rendered = asking(|_| vec![config_map("a", "data.a"), config_map("b", "data.b")], &widget(json!({})), &Large);
    let Some(Refusal::Waiting(blockers)) = rendered.refused() else { panic!("{:?}", rendered.verdict) };
    let [blocker] = &blockers[..] else { panic!("{blockers:?}") };
    assert_eq!((blocker.on.to_string().as_str(), blocker.reason.as_str()), ("Namespace n", "TooLarge"));
    assert!(blocker.message.contains("are larger than 64 MiB in total"), "{}", blocker.message);
    assert!(rendered.needs.len() == 2 && rendered.needs.iter().all(|need| need.fields.is_empty()));
    assert_eq!(rendered.needs[0].target.of(), of("v1", "ConfigMap"));
}
