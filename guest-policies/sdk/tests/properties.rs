//! What must hold for any input.

use kaos_policy_sdk::{env, names, patch, quote};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value, json};

fn any_json() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        Just("containers".to_owned()),
        Just("env".to_owned()),
        Just("name".to_owned()),
        Just("$patch".to_owned()),
        Just("$retainKeys".to_owned()),
        Just("$setElementOrder/env".to_owned()),
        Just("volumes".to_owned()),
        Just("$setElementOrder/containers".to_owned()),
        Just("$deleteFromPrimitiveList/env".to_owned()),
        ".{0,4}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(json!("replace")),
        Just(json!("delete")),
        ".{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::Array),
            btree_map(key.clone(), inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn has_directive(value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            map.iter().any(|(key, value)| key == "$patch" || key == "$retainKeys" || has_directive(value))
        }
        Value::Array(items) => items.iter().any(has_directive),
        _ => false,
    }
}

proptest! {
    #[test]
    fn any_patch_merges_or_is_refused_and_leaves_no_directive(patch in any_json(), own in "[ab]") {
        let base = json!({"containers": [{"name": "a", "env": [{"name": "A", "value": "1"}]}], "volumes": [{"name": "v"}]});
        if let Ok(merged) = patch::pod_spec(base, &patch, &own) {
            prop_assert!(!has_directive(&merged), "{merged}");
            let _ = env::of_pod_spec(&merged, &[], "spec.podSpec");
        }
    }

    #[test]
    fn any_base_is_merged_without_a_panic(base in any_json(), patch in any_json()) {
        let _ = patch::merge(base.clone(), &patch, patch::Schema::PodSpec);
        let _ = patch::container(base, &patch);
    }

    #[test]
    fn a_patch_onto_itself_changes_nothing(names in proptest::sample::subsequence(vec!["A", "B", "C", "D"], 0..5)) {
        let spec = json!({"env": names.iter().map(|name| json!({"name": name, "value": "x"})).collect::<Vec<_>>()});
        prop_assert_eq!(patch::container(spec.clone(), &spec).unwrap(), spec);
    }

    #[test]
    fn no_text_escapes_from_a_yaml_scalar(text in any::<String>()) {
        let document = format!("key: {}\nnext: 1\n", quote::yaml_scalar(&text));
        prop_assert!(!document.trim_end().replace("\nnext", "").contains('\n'));
        let scalars: Vec<_> = Parser::new_from_str(&document)
            .filter_map(|event| match event.unwrap().0 {
                Event::Scalar(text, style, ..) => Some((text.into_owned(), matches!(style, ScalarStyle::DoubleQuoted))),
                _ => None,
            })
            .collect();
        let plain = |text: &str| (text.to_owned(), false);
        prop_assert_eq!(scalars, [plain("key"), (text, true), plain("next"), plain("1")]);
    }

    #[test]
    fn a_shortened_name_is_valid_and_fits(name in "[a-z]([-a-z0-9]{0,100}[a-z0-9])?", max in 10_usize..64) {
        let short = names::shorten(&name, max);
        prop_assert!(short.len() <= max);
        prop_assert_eq!(names::dns1035_label(&short), None);
    }
}

#[cfg(unix)]
mod shell {
    use super::*;
    use std::process::Command;

    fn words(script: &str) -> Vec<u8> {
        Command::new("sh").arg("-c").arg(script).output().unwrap().stdout
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_text_escapes_from_a_shell_word(texts in vec("[ -~\\n\\t\\r'\"$`\\\\é☃]{0,12}", 1..12)) {
            let quoted: Vec<String> = texts.iter().map(|text| quote::shell_word(text)).collect();
            let script = format!("printf '%s\\0' {}", quoted.join(" "));
            let wanted: Vec<u8> = texts.iter().flat_map(|text| text.bytes().chain([0])).collect();
            prop_assert_eq!(words(&script), wanted);
        }
    }

    #[test]
    fn the_worst_words_are_words() {
        for text in
            ["$(touch /tmp/x)", "`id`", "a'b", "'", "\n", "", "~", "-n", "a;b", "{a,b}", "*", "!!", "#", "=a", "a=b"]
        {
            assert_eq!(words(&format!("printf %s {}", quote::shell_word(text))), text.as_bytes(), "{text:?}");
        }
        assert_eq!(quote::shell_word("smollm2:135m"), "smollm2:135m");
        assert_eq!(quote::shell_word("a\0b"), "'ab'");
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod oracle {
    use super::*;
    use k8s_openapi::DeepMerge;
    use k8s_openapi::api::core::v1::PodSpec;

    fn name() -> impl Strategy<Value = String> {
        "[a-d]"
    }

    /// A list of objects with distinct values of `key`.
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
        ])
    }

    fn pod_spec() -> BoxedStrategy<Value> {
        let hosts = vec(text(), 1..3).prop_map(Value::Array).boxed();
        // Fields that the typed oracle requires are always set: it would fill them in otherwise.
        let claimed = text().prop_map(|claim| json!({"persistentVolumeClaim": {"claimName": claim}})).boxed();
        object(vec![
            ("containers", named(container())),
            ("initContainers", named(container())),
            ("volumes", named(claimed)),
            ("imagePullSecrets", named(object(Vec::new()))),
            ("hostAliases", keyed("ip", text(), object(vec![("hostnames", hosts)]))),
            ("serviceAccountName", text()),
            ("tolerations", vec(object(vec![("key", text())]), 1..3).prop_map(Value::Array).boxed()),
            ("hostNetwork", any::<bool>().prop_map(Value::from).boxed()),
            ("securityContext", object(vec![("runAsUser", small()), ("fsGroup", small())])),
        ])
    }

    /// Lists that merge by key in one order, whatever order they came in.
    fn sorted(value: &mut Value) {
        match value {
            Value::Object(map) => map.iter_mut().for_each(|(key, value)| {
                sorted(value);
                if let Value::Array(items) = value
                    && !["args", "tolerations", "hostnames"].contains(&key.as_str())
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
        #[test]
        fn the_merge_agrees_with_deep_merge_but_for_order(base in pod_spec(), overlay in pod_spec()) {
            let mut wanted = typed(&base);
            wanted.merge_from(typed(&overlay));
            let merged = patch::merge(base, &overlay, patch::Schema::PodSpec).unwrap();
            let mut wanted = serde_json::to_value(wanted).unwrap();
            let mut merged = serde_json::to_value(typed(&merged)).unwrap();
            sorted(&mut wanted);
            sorted(&mut merged);
            prop_assert_eq!(merged, wanted);
        }
    }
}
