//! Tests properties of the SDK with generated inputs.
#![allow(clippy::unwrap_used, reason = "a helper that fails has failed the test")]

use kaos_policy_sdk::{env, names, patch, quote};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Value, json};

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
    /// The host and the sandbox exchange objects as text. Writing and parsing a number must not change it.
    #[test]
    fn a_number_stays_the_same_number_as_text(number in any::<f64>()) {
        let written = Value::from(number).to_string();
        prop_assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), Value::from(number));
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
    fn kubernetes_does_not_change_an_escaped_text(text in "[$()A-C xé]{0,20}") {
        prop_assert_eq!(expanded(&quote::unexpanded(&text)), text);
    }

    #[test]
    fn a_name_is_valid_exactly_if_its_check_reports_no_error(name in "[a-z0-9.-]{0,8}|[a-zA-Z0-9.\\-_é]{0,8}|[a-z]{60,66}|[a-z.]{250,256}") {
        prop_assert_eq!(names::is_dns1035_label(&name), names::dns1035_label(&name).is_none());
        prop_assert_eq!(names::is_dns1123_subdomain(&name), names::dns1123_subdomain(&name).is_none());
    }

    #[test]
    fn a_shortened_name_is_valid_and_fits(name in "[a-z]([-a-z0-9]{0,100}[a-z0-9])?", max in 10_usize..64) {
        let short = names::shorten(&name, max);
        prop_assert!(short.len() <= max);
        prop_assert_eq!(names::dns1035_label(&short), None);
    }
}

/// Expands an argument like Kubernetes. Every variable has the value `!`. If a non-ASCII character follows a `$`,
/// Kubernetes treats the first byte of the character as if it were a complete character. In this case, the function
/// writes `$?` for the `$` and the character.
fn expanded(text: &str) -> String {
    let (mut made, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        made.push_str(before);
        rest = after;
        if let Some(after) = rest.strip_prefix('$') {
            made.push('$');
            rest = after;
        } else if let Some((_, after)) = rest.strip_prefix('(').and_then(|name| name.split_once(')')) {
            made.push('!');
            rest = after;
        } else if let Some(after) = rest.strip_prefix(|c: char| !c.is_ascii()) {
            made.push_str("$?");
            rest = after;
        } else {
            made.push('$');
        }
    }
    made + rest
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
    fn the_worst_texts_stay_single_shell_words() {
        for text in
            ["$(touch /tmp/x)", "`id`", "a'b", "'", "\n", "", "~", "-n", "a;b", "{a,b}", "*", "!!", "#", "=a", "a=b"]
        {
            assert_eq!(words(&format!("printf %s {}", quote::shell_word(text))), text.as_bytes(), "{text:?}");
        }
        assert_eq!(quote::shell_word("smollm2:135m"), "smollm2:135m");
        assert_eq!(quote::shell_word("a\0b"), "'ab'");
    }
}
