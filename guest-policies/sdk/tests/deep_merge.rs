//! Compares the strategic merge of pod specs with `DeepMerge` of `k8s-openapi`. `k8s-openapi` generates `DeepMerge`
//! from Kubernetes' schemas.
#![cfg(not(target_arch = "wasm32"))]
#![allow(clippy::unwrap_used, reason = "a helper that fails has failed the test")]

use k8s_openapi::DeepMerge;
use k8s_openapi::api::core::v1::PodSpec;
use kaos_policy_sdk::patch;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn name() -> impl Strategy<Value = String> {
    "[a-d]"
}

/// Generates a list of objects with distinct values of `key`.
fn keyed(
    key: &'static str,
    id: impl Strategy<Value = Value> + 'static,
    rest: BoxedStrategy<Value>,
) -> BoxedStrategy<Value> {
    let item = (id, rest);
    vec(item, 0..4)
        .prop_map(move |items| {
            let mut seen = Vec::new();
            let mut list = Vec::new();
            for (id, mut item) in items {
                if !seen.contains(&id) {
                    item[key] = id.clone();
                    seen.push(id);
                    list.push(item);
                }
            }
            Value::Array(list)
        })
        .boxed()
}

fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let fields = fields.into_iter().map(|(name, value)| (Just(name), proptest::option::of(value)));
    fields
        .collect::<Vec<_>>()
        .prop_map(|fields| {
            let set = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Value::Object(set.collect::<Map<_, _>>())
        })
        .boxed()
}

fn text() -> BoxedStrategy<Value> {
    "[a-z]{1,3}".prop_map(Value::from).boxed()
}

fn small() -> BoxedStrategy<Value> {
    (1_i64..4).prop_map(Value::from).boxed()
}

fn flag() -> BoxedStrategy<Value> {
    any::<bool>().prop_map(Value::from).boxed()
}

/// Sets `port`, which the type of `k8s-openapi` requires, because `DeepMerge` would otherwise add a default.
fn ported(mut get: Value) -> Value {
    get["port"] = json!(80);
    get
}

fn spread(mut constraint: Value) -> Value {
    (constraint["maxSkew"], constraint["whenUnsatisfiable"]) = (json!(1), json!("DoNotSchedule"));
    constraint
}

fn named(rest: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    keyed("name", name().prop_map(Value::from), rest)
}

fn container() -> BoxedStrategy<Value> {
    let probe = object(vec![("periodSeconds", small()), ("initialDelaySeconds", small())]);
    let limits = btree_map("cpu|memory", text(), 0..3).prop_map(|map| json!({"limits": map})).boxed();
    object(vec![
        ("image", text()),
        ("args", vec(text(), 1..3).prop_map(Value::Array).boxed()),
        ("env", named(object(vec![("value", text())]))),
        ("ports", keyed("containerPort", (8000..8003_i64).prop_map(Value::from), object(vec![("name", text())]))),
        ("volumeMounts", keyed("mountPath", text(), text().prop_map(|name| json!({"name": name})).boxed())),
        ("livenessProbe", probe),
        ("resources", limits),
        ("startupProbe", object(vec![("httpGet", object(vec![("path", text())]).prop_map(ported).boxed())])),
        ("securityContext", object(vec![("runAsUser", small()), ("readOnlyRootFilesystem", flag())])),
        ("volumeDevices", keyed("devicePath", text(), text().prop_map(|name| json!({"name": name})).boxed())),
        ("envFrom", vec(object(vec![("prefix", text())]), 1..3).prop_map(Value::Array).boxed()),
        ("tty", flag()),
    ])
}

fn pod_spec() -> BoxedStrategy<Value> {
    let hosts = vec(text(), 1..3).prop_map(Value::Array).boxed();
    let spread = object(vec![("minDomains", small())]).prop_map(spread).boxed();
    let claimed = text().prop_map(|claim| json!({"persistentVolumeClaim": {"claimName": claim}})).boxed();
    object(vec![
        ("containers", named(container())),
        ("initContainers", named(container())),
        ("volumes", named(claimed)),
        ("imagePullSecrets", named(object(Vec::new()))),
        ("hostAliases", keyed("ip", text(), object(vec![("hostnames", hosts)]))),
        ("serviceAccountName", text()),
        ("tolerations", vec(object(vec![("key", text())]), 1..3).prop_map(Value::Array).boxed()),
        ("hostNetwork", flag()),
        ("topologySpreadConstraints", keyed("topologyKey", text(), spread)),
        ("schedulingGates", named(object(Vec::new()))),
        ("dnsConfig", object(vec![("nameservers", vec(text(), 1..3).prop_map(Value::Array).boxed())])),
        ("nodeSelector", btree_map("[a-c]", text(), 0..3).prop_map(|map| json!(map)).boxed()),
        ("overhead", btree_map("cpu|memory", text(), 0..3).prop_map(|map| json!(map)).boxed()),
        ("affinity", object(vec![("podAffinity", object(Vec::new())), ("nodeAffinity", object(Vec::new()))])),
        ("securityContext", object(vec![("runAsUser", small()), ("fsGroup", small())])),
    ])
}

/// Sorts lists that merge by key, so that their order does not matter.
fn sorted(value: &mut Value) {
    match value {
        Value::Object(map) => map.iter_mut().for_each(|(key, value)| {
            sorted(value);
            if let Value::Array(items) = value
                && !["args", "tolerations", "hostnames", "envFrom", "nameservers"].contains(&key.as_str())
            {
                items.sort_by_key(ToString::to_string);
            }
        }),
        Value::Array(items) => items.iter_mut().for_each(sorted),
        _ => {}
    }
}

fn typed(value: &Value) -> PodSpec {
    serde_json::from_value(value.clone()).unwrap()
}

proptest! {
    /// The two merges differ in two ways. `DeepMerge` puts new items of a list at another position than a strategic
    /// merge patch. `DeepMerge` also replaces `nodeSelector`, because this field is atomic in the schema of server-side
    /// apply. A strategic merge patch merges this field.
    #[test]
    fn the_merge_equals_deep_merge_except_for_order_and_node_selectors(base in pod_spec(), overlay in pod_spec()) {
        let mut wanted = typed(&base);
        wanted.merge_from(typed(&overlay));
        wanted.node_selector = typed(&base).node_selector;
        if let Some(selector) = typed(&overlay).node_selector {
            wanted.node_selector.get_or_insert_default().extend(selector);
        }
        let merged = patch::merge(base, &overlay, patch::Schema::PodSpec).unwrap();
        let mut wanted = serde_json::to_value(wanted).unwrap();
        let mut merged = serde_json::to_value(typed(&merged)).unwrap();
        sorted(&mut wanted);
        sorted(&mut merged);
        prop_assert_eq!(merged, wanted);
    }
}
