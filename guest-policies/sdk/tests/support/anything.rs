//! Generates hostile values for all tests that pass such values to a policy.

use proptest::prelude::*;
use serde_json::{Map, Value};

/// Generates a value of any form. Some texts in the value are from `words`, which have a meaning for the tested
/// code.
pub(crate) fn anything(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any_text(words).prop_map(Value::from),
        any_text(words).prop_map(Value::from),
    ];
    let name = prop_oneof![
        "(\\$patch|\\$retainKeys|name|value|valueFrom|key|env|image|containers|initContainers|volumes|limits|[a-z./]{0,6})",
        "\\PC{0,5}",
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Generates a text of any length. Some texts have a special meaning for shells, YAML or other formats.
pub(crate) fn any_text(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    let evil = "(\\$\\([A-Z]+\\)|\\$\\(id\\)|`id`|[\"'\\\\\n\u{0}]|https://|\\$patch|delete|:|\\{|é|\u{2028}){0,5}";
    prop_oneof![
        4 => "\\PC{0,20}",
        4 => evil,
        2 => any::<prop::sample::Index>().prop_map(move |at| match words {
            [] => String::new(),
            words => at.get(words).to_string(),
        }),
        1 => Just("a".repeat(100_000)),
    ]
}
