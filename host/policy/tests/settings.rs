//! Tests settings and the memo, in passes of a native policy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;

use crate::widget::{deployment, policy, renderer, widget};
use kaos_policy::{
    contract::{Cluster, Refusal},
    lookup::Fixed,
    memo::Memo,
    policy::Stack,
    render::Renderer,
    settings::{Layer, Origin, Path, Schema},
};
use serde_json::json;

#[test]
fn a_policy_without_settings_has_no_sources() {
    let none = Schema::parse(r#"{"type":"object"}"#).unwrap().resolve("plain", &[]).unwrap();
    assert_eq!((none.sources().count(), none.source(&Path::parse("logLevel"))), (0, None));
    let empty = Schema::parse(r#"{"type":"object","properties":{"labels":{"type":"object","default":{}}}}"#).unwrap();
    let source = empty.resolve("plain", &[]).unwrap().source(&Path::parse("labels")).unwrap().origin.clone();
    assert_eq!(source, Origin::SchemaDefault);
}

#[test]
fn settings_are_merged_in_the_order_of_their_origins_and_know_their_source() {
    let env = |origin, pairs: &[(&str, &str)]| {
        Layer::env(origin, pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    };
    let layers = [
        Layer::tree(Origin::ClusterPolicy("p".into()), "widget", json!({"probe": {"path": "/x"}})),
        env(Origin::OperatorConfig, &[("WIDGET_IMAGE", ""), ("WIDGET_PERIOD", "7")]),
        env(Origin::Environment, &[("WIDGET_IMAGE", "img:env"), ("WIDGET_PERIOD", "6")]),
    ];
    let renderer = renderer("{}", &layers);
    let (_, settings) = renderer.layers().next().unwrap();
    let tree = settings.tree();
    assert_eq!((&tree["image"], &tree["port"]), (&json!("img:env"), &json!(8000)));
    assert_eq!(tree["probe"], json!({"period": 7, "path": "/x"}));
    let source = |path: &str| settings.source(&Path::parse(path)).unwrap().origin.clone();
    assert_eq!(source("image"), Origin::Environment);
    assert_eq!(source("probe.period"), Origin::OperatorConfig);
    assert_eq!(source("probe.path"), Origin::ClusterPolicy("p".into()));
    assert_eq!(source("port"), Origin::SchemaDefault);
}

#[test]
fn a_variable_accepts_the_usual_words_for_true_and_false() {
    let schema = r#"{"type":"object","properties":{
        "enabled":{"type":"boolean","default":false,"x-env":"ENABLED"},
        "word":{"type":"string","default":"","x-env":"WORD"},
        "count":{"type":["integer","boolean"],"default":0,"x-env":"COUNT"}}}"#;
    let schema = Schema::parse(schema).unwrap();
    let given = |name: &str, text: &str| {
        let layer = Layer::env(Origin::Environment, [(name.to_owned(), text.to_owned())]);
        schema.resolve("p", &[layer]).map(|settings| settings.tree().clone())
    };
    for (yes, no) in [("true", "false"), ("True", "FALSE"), ("yes", "No"), ("ON", "off"), ("1", "0"), (" true ", "0 ")]
    {
        assert_eq!(given("ENABLED", yes).unwrap()["enabled"], true, "{yes}");
        assert_eq!(given("ENABLED", no).unwrap()["enabled"], false, "{no}");
    }
    assert!(given("ENABLED", "maybe").is_err());
    assert_eq!(given("WORD", "yes").unwrap()["word"], "yes");
    assert_eq!(given("COUNT", "1").unwrap()["count"], 1);
    let set = |text: &str| kaos_policy::settings::assignments(&[text.to_owned()], &[("p", &schema)]);
    assert!(set("enabled=true").is_ok() && set("enabled=yes").is_err(), "--set accepts only true and false");
}

#[test]
fn an_error_about_a_setting_names_path_layer_and_remedy() {
    let new = |layer| Renderer::new(&Stack::single(policy("{}")).unwrap(), &[layer], Cluster::default());
    let wrong = |layer| new(layer).err().unwrap().to_string();
    let text = wrong(Layer::env(Origin::OperatorConfig, [("WIDGET_PERIOD".to_owned(), "soon".to_owned())]));
    assert!(
        text.contains("widget.probe.period") && text.contains("WIDGET_PERIOD of ConfigMap kaos-operator-config"),
        "{text}"
    );
    let text = wrong(Layer::tree(Origin::File("s.yaml".into()), "widget", json!({"probe": {"period": 0}})));
    assert!(text.contains("file s.yaml") && text.contains("default 10"), "{text}");
    let text = wrong(Layer::tree(Origin::CommandLine, "widget", json!({"colour": "red"})));
    assert!(text.contains("widget.colour") && text.contains("does not exist"), "{text}");
}

#[test]
fn an_annotation_overrides_a_setting_only_if_the_schema_allows_it() {
    let renderer = renderer("{}", &[]);
    let run = |key: &str, value: &str| {
        let mut object = widget(json!({}));
        object["metadata"]["annotations"] = json!({format!("settings.kaos.tools/{key}"): value});
        renderer.render(&object, &Fixed::default()).unwrap()
    };
    assert!(run("image", "mine").subject().settings.contains("\"image\":\"mine\""));
    for (key, value) in [("port", "1"), ("colour", "red")] {
        let refusal = run(key, value);
        let Some(Refusal::Invalid(violations)) = refusal.refused() else { panic!("{key}") };
        assert_eq!(violations[0].path, format!("metadata.annotations[\"settings.kaos.tools/{key}\"]"));
    }
}

#[test]
fn assignments_take_the_type_of_their_setting() {
    let policy = policy("{}");
    let policies = [("widget", policy.schema())];
    let set = |text: &str| kaos_policy::settings::assignments(&[text.to_owned()], &policies);
    assert_eq!(set("widget.port=1").unwrap(), [Layer::tree(Origin::CommandLine, "widget", json!({"port": 1}))]);
    assert_eq!(
        set("probe.path=5").unwrap(),
        [Layer::tree(Origin::CommandLine, "widget", json!({"probe": {"path": "5"}}))]
    );
    for wrong in ["port", "nothing=1", "port=x", "=", ""] {
        assert!(set(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_memo_answers_until_a_found_object_changes() {
    let memo = Arc::new(Memo::new(1 << 20));
    let renderer = renderer("{}", &[]).with_memo(Arc::clone(&memo));
    let object = widget(json!({"needs": [{"name": "c"}]}));
    let found = |data: &str| {
        Fixed::new([json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "c", "namespace": "n", "resourceVersion": data}, "data": {"x": data}})])
    };
    assert!(!renderer.render(&object, &found("1")).unwrap().recalled());
    assert!(renderer.render(&object, &found("1")).unwrap().recalled());
    assert!(!renderer.render(&object, &found("2")).unwrap().recalled());
    assert!(!renderer.render_unstored(&object, &found("3")).unwrap().recalled());
    assert!(
        renderer.render_unstored(&object, &found("2")).unwrap().recalled(),
        "`render_unstored` has stored no answer"
    );
    let small = Arc::new(Memo::new(1));
    let renderer = renderer_with(&small);
    renderer.render(&object, &found("1")).unwrap();
    assert_eq!(small.size(), (0, 0));
}

#[test]
fn the_memo_distinguishes_the_origins_of_a_setting() {
    let memo = Arc::new(Memo::new(1 << 20));
    let privileged = json!({"securityContext": {"privileged": true}});
    let main = json!({"name": "main", "image": "i", "securityContext": {"privileged": true}});
    let origins = json!([["spec.template.spec.containers[0]", "settings.security"]]);
    let plan = json!([deployment(json!({"containers": [main]})).to_string()]);
    let object = widget(json!({"plan": plan, "origins": origins}));
    let render = |origin: &Origin| {
        let layers = [Layer::tree(origin.clone(), "widget", json!({"security": privileged.clone()}))];
        renderer("{}", &layers).with_memo(Arc::clone(&memo)).render(&object, &Fixed::default()).unwrap()
    };
    let (cluster, namespace) = (Origin::ClusterPolicy("p".into()), Origin::NamespacePolicy("n/p".into()));
    assert!(render(&cluster).planned().is_some());
    assert!(render(&cluster).recalled());
    for _ in 0..2 {
        assert!(render(&namespace).refused().is_some(), "settings of a namespace must not raise privilege");
    }
    assert!(render(&cluster).planned().is_some());
}

fn renderer_with(memo: &Arc<Memo>) -> Renderer {
    renderer("{}", &[]).with_memo(Arc::clone(memo))
}
