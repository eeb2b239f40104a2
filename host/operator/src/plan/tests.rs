use kaos_crds::PreviewInputs;
use kaos_policy::policy::PolicyId;
use serde_json::json;

use super::*;
use crate::masking::MASK;

fn shown(before: &Value, after: &Value) -> Vec<String> {
    let text = |value: Option<Value>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    let line = |Field { path, before, after }| format!("{path}: {} {}", text(before), text(after));
    fields(before, after).into_iter().map(line).collect()
}

fn deployment(containers: &Value) -> Value {
    json!({"kind": "Deployment", "spec": {"template": {"spec": {"containers": containers}}}})
}

#[test]
fn fields_are_named_as_people_write_them() {
    let before =
        deployment(&json!([{"name": "web", "image": "a", "args": ["x", "y"], "ports": [{"containerPort": 1}]}]));
    let after = deployment(
        &json!([{"name": "side", "image": "s"}, {"name": "web", "image": "b", "args": ["x"], "ports": [{"containerPort": 2}]}]),
    );
    assert_eq!(
        shown(&before, &after),
        [
            "spec.template.spec.containers[web].args[1]: \"y\" -",
            "spec.template.spec.containers[web].image: \"a\" \"b\"",
            "spec.template.spec.containers[web].ports[0].containerPort: 1 2",
            "spec.template.spec.containers[side]: - {\"image\":\"s\",\"name\":\"side\"}",
        ]
    );
}

#[test]
fn a_changed_order_of_named_items_is_a_change() {
    let list = |names: [&str; 3]| deployment(&json!(names.map(|name| json!({"name": name}))));
    let told = shown(&list(["a", "b", "c"]), &list(["b", "a", "d"]));
    assert_eq!(
        told,
        [
            "spec.template.spec.containers[c]: {\"name\":\"c\"} -",
            "spec.template.spec.containers[d]: - {\"name\":\"d\"}",
            "spec.template.spec.containers (order): [\"a\",\"b\"] [\"b\",\"a\"]",
        ]
    );
}

#[test]
fn changed_digests_and_hashes_are_no_separate_changes() {
    let with = |digest: &str| json!({"metadata": {"annotations": {"kaos.tools/applied-digest": digest, "kaos.tools/pod-spec-hash": digest}}});
    assert!(fields(&with("a"), &with("b")).is_empty());
}

#[test]
fn no_secret_value_is_shown() {
    let secret = |value: &str| json!({"kind": "Secret", "data": {"a": value}, "stringData": {"b": value}});
    let env = |value: &str| deployment(&json!([{"name": "web", "env": [{"name": "API_KEY", "value": value}]}]));
    let nothing = deployment(&json!([]));
    let added = deployment(
        &json!([{"name": "web", "env": [{"name": "DB_PASSWORD", "value": "topsecret"}], "args": ["--token=topsecret"]}]),
    );
    let arguments = |value: &str| deployment(&json!([{"name": "web", "args": ["--token", value, "--quiet"]}]));
    let config = |value: &str| json!({"kind": "ConfigMap", "data": {"config.yaml": format!("model: m\napi_key: {value}\n"), "api-key": value}});
    for (before, after) in [
        (secret("topsecret"), secret("topsecret2")),
        (env("topsecret"), env("topsecret2")),
        (nothing, added),
        (config("topsecret"), config("topsecret2")),
        (arguments("topsecret"), arguments("topsecret2")),
    ] {
        let told = shown(&before, &after);
        assert!(!told.is_empty() && !told.concat().contains("topsecret"), "{told:?}");
        assert!(told.concat().contains(MASK), "{told:?}");
    }
    let reference = |name: &str| {
        deployment(
            &json!([{"name": "web", "env": [{"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": name}}}]}]),
        )
    };
    assert_eq!(
        shown(&reference("a"), &reference("b")),
        ["spec.template.spec.containers[web].env[API_KEY].valueFrom.secretKeyRef.name: \"a\" \"b\""]
    );
}

#[test]
fn a_change_of_an_immutable_field_is_reported_as_not_applicable() {
    let set = |size: &str, replicas: u32| {
        let claim = json!({"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": size}}}});
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s", "namespace": "t"},
            "spec": {"replicas": replicas, "serviceName": "s", "volumeClaimTemplates": [claim]}})
    };
    let changed = |before: Value, after: Value| {
        let one = |manifest: Value| BTreeMap::from([(Reference::of_object(&manifest), manifest)]);
        let children = children(&one(before), &one(after), &|_| None);
        let object = Reference::of_object(&set("1Gi", 1));
        Difference { object, before: None, after: None, children, pods: 0, newest: [None, None], waits_for: Vec::new() }
    };
    let difference = changed(set("1Gi", 1), set("2Gi", 1));
    let why = difference.children[0].refused.as_deref().unwrap();
    assert!(why.starts_with("spec.volumeClaimTemplates cannot change while the statefulset exists"), "{why}");
    assert!(why.contains("kubectl -n t delete statefulset s") && difference.is_failure(), "{why}");
    let difference = changed(set("1Gi", 1), set("1Gi", 2));
    assert!(difference.is_change() && !difference.is_failure());
}

fn scaled(kind: &str, replicas: &Value, image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "d", "namespace": "t"},
        "spec": {"replicas": replicas, "template": {
            "metadata": {"annotations": {kaos_policy::stamp::POD_SPEC_HASH: image}},
            "spec": {"containers": [{"name": "c", "image": image}]}}}})
}

fn one(manifest: Value) -> BTreeMap<Reference, Value> {
    BTreeMap::from([(Reference::of_object(&manifest), manifest)])
}

#[test]
fn pods_that_end_count_whether_kubernetes_replaces_or_deletes_them() {
    let pods = |before: Value, after: Value| -> u64 {
        children(&one(before), &one(after), &|_| None).iter().map(|child| child.pods).sum()
    };
    let deployment = |replicas: u64, image: &str| scaled("Deployment", &json!(replicas), image);
    assert_eq!(pods(deployment(3, "a"), deployment(3, "b")), 3);
    assert_eq!(pods(deployment(3, "a"), deployment(0, "a")), 3, "a scale-down deletes pods");
    assert_eq!(pods(deployment(3, "a"), deployment(5, "a")), 0);
}

#[test]
fn live_children_tell_the_pods_that_manifests_leave_open() {
    let live = |_: &Reference| Some(scaled("Deployment", &json!(7), "a"));
    let open = |image: &str| scaled("Deployment", &Value::Null, image);
    assert_eq!(children(&one(open("a")), &one(open("b")), &live)[0].pods, 7);
    let appeared = &appearing(&one(open("b")), &live)[0];
    assert_eq!((appeared.rolls, appeared.pods), (true, 7), "an earlier plan made the child");
    assert_eq!(appearing(&one(open("a")), &live)[0].pods, 0);
    assert_eq!(appearing(&one(open("a")), &|_| None)[0].pods, 0);
}

#[test]
fn a_secret_value_is_masked_under_its_new_name_and_in_messages() {
    let canary = "canary-4711";
    let env = |name: &str| deployment(&json!([{"name": "web", "env": [{"name": name, "value": canary}]}]));
    let (before, after) = (env("TOKEN"), env("FOO"));
    let policy = PolicyId { name: "p".into(), version: "1".into(), digest: kaos_policy::digest::Digest::of(b"p") };
    let said = Said::Failed(format!("cannot use {canary}"));
    let side = Side { policy, overlays: Vec::new(), fuel: 1, said };
    let children = children(&one(before.clone()), &one(after.clone()), &|_| None);
    let object = Reference::of_object(&before);
    let mut difference = Difference {
        object,
        before: None,
        after: Some(side),
        children,
        pods: 0,
        newest: [None, None],
        waits_for: Vec::new(),
    };
    assert!(serde_json::to_string(&difference).unwrap().contains(canary));
    difference.mask(&Masks::of([&before, &after]));
    let told = serde_json::to_string(&difference).unwrap();
    assert!(!told.contains(canary) && told.contains("FOO"), "{told}");
}

#[test]
fn an_effect_masks_the_examples_of_any_order_and_counts_as_a_plan_does() {
    let canary = "canary-4711";
    let around = Around { live: &|_| None, exists: &|_| None, settings: Vec::new() };
    let policy = PolicyId { name: "p".into(), version: "1".into(), digest: kaos_policy::digest::Digest::of(b"p") };
    let side = Side { policy, overlays: Vec::new(), fuel: 1, said: Said::Planned };
    // The names of the object's fields show that their values are secret. The plans contain these values in fields with
    // other names, as a text and as a number.
    let object = |number: usize| {
        json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata": {"name": format!("w{number}"), "namespace": "n"},
            "spec": {"token": canary, "apiKey": 471_147_114_711_u64}})
    };
    let manifests = |edition: &str, port: u64| {
        let env = json!([{"name": "FOO", "value": format!("{edition} {canary}")}, {"name": "BAR", "value": edition}]);
        let mut manifest = deployment(&json!([{"name": "web", "env": env}]));
        manifest["spec"]["number"] = json!(port);
        vec![manifest]
    };
    let (before, after) = (manifests("1", 12), manifests("2", 471_147_114_711));
    let sides = || {
        [&before, &after].map(|manifests| {
            Some(AnsweredSide { side: side.clone(), manifests: Some(manifests), needs: &[], rendered: None })
        })
    };
    for order in [[0, 1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1, 0], [3, 7, 0, 5, 1, 6, 2, 4]] {
        let (mut effect, mut whole) = (Effect::default(), Effect::default());
        // Add the first objects again at the end, so that the effect must remove their examples and add them again.
        for number in order.into_iter().chain([0, 1]) {
            let object = object(number);
            let difference = unmasked(&object, &sides(), [None, None], &around);
            let is_masked = false;
            effect.add(Compared { difference, is_masked, object: &object, sides: sides(), around: &around });
            whole.set(&difference_of(&object, &sides(), [None, None], &around));
        }
        let [effect, whole] = [effect, whole].map(|effect| effect.preview(PreviewInputs::default()));
        assert_eq!(effect, whole);
        let shown = serde_json::to_string(&effect).unwrap();
        assert!(shown.contains("FOO") && !shown.contains(canary) && !shown.contains("47114711"), "{shown}");
    }
}
