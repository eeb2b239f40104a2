//! Tests that no case, plan or explanation contains a secret value. The values are random, and appear in every form in
//! which users write them. The test's policy also copies its inputs to other places.

use std::sync::Arc;

use fastrand::Rng;
use k8s_openapi::ByteString;
use kaos_policy::{
    contract::{EnvVar, Outcome, Plan, Refusal, Subject},
    render::Rendered,
};
use serde_json::{Value, json};

use super::{explain::ExplainedObject, plan::table, record::told};
use crate::{
    masking::tests::{canary, shapes, shows},
    offline::Entry,
    plan::{Answers, Around, difference},
    record::Case,
    replay::tests::{Bench, color, object, object_of, plan},
};

/// Plans a ConfigMap whose data contain the object, the colour and the settings.
#[allow(clippy::unnecessary_wraps, reason = "the contract's signature")]
fn copy(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    let object = object_of(subject);
    let token = object["spec"]["env"][0]["value"].as_str().unwrap_or_default();
    let settings: Value = serde_json::from_str(&subject.settings).unwrap();
    let base64 = serde_json::to_value(ByteString(token.as_bytes().to_vec())).unwrap();
    let data = json!({
        "plain": token, "url": format!("http://user:{token}@host?q={token}"), "base64": base64,
        "json": json!({"x": {"copy": token}}).to_string(), "yaml": format!("a: 1\nb: {}\n", json!(token)),
        "spec": object["spec"].to_string(), "color": color(subject), "settings": settings.to_string(),
    });
    Ok(plan(&object, &data, env))
}

fn assert_hidden(text: &str, canary: &str, what: &str) {
    assert!(!shows(text, canary), "{what}: {canary}: {text}");
}

/// Checks every text that the commands print or write about these passes.
fn check(benches: &[Bench; 2], rendered: &[Rendered; 2], kite: &Value, canary: &str, what: &str) {
    let case = benches[0].masked_case_of(&rendered[0]);
    let file = serde_json::to_string_pretty(&case).unwrap();
    assert_hidden(&file, canary, what);
    assert_hidden(&format!("{:?}", told(&case)), canary, what);
    let read = Case::parse(&file).unwrap();
    assert_eq!(read, case);
    let difference = {
        let answers = rendered.each_ref().map(|rendered| Some(Answers::of(rendered)));
        difference(kite, answers, &Around { live: &|_| None, exists: &|_| None, settings: Vec::new() })
    };
    assert!(difference.is_change());
    assert_hidden(&table(std::slice::from_ref(&difference)), canary, what);
    assert_hidden(&serde_json::to_string_pretty(&difference).unwrap(), canary, what);
    let [rendered, _] = rendered.clone();
    let entry = Arc::new(Entry { rendered, outcome: Outcome::Applied, status: Value::Null });
    // A policy can quote a secret value in a sentence.
    let quoted = if ["a variable", "a setting"].contains(&what) { canary } else { "" };
    let explained = ExplainedObject::new(kite.clone(), entry, [format!("the policy said: {quoted}")]);
    assert_hidden(&explained.text(), canary, what);
    assert_hidden(&explained.document().to_string(), canary, what);
}

#[test]
fn no_secret_value_leaves_in_a_case_a_plan_or_an_explanation() {
    for seed in 0..5 {
        let canary = canary(&mut Rng::with_seed(seed));
        let benches = [7, 8].map(|size| Bench::with(copy, &json!({"apiKey": "of-the-settings", "size": size})));
        let passes =
            |kite: &Value, color: &str| benches.each_ref().map(|it| it.rendered(kite, &json!({"color": color})));
        let kite = object(&canary);
        check(&benches, &passes(&kite, "red"), &kite, &canary, "a variable");
        for (shape, text) in shapes(&canary) {
            let mut kite = object("plain");
            kite["spec"]["notes"] = json!(text);
            check(&benches, &passes(&kite, "red"), &kite, &canary, shape);
            let kite = object("plain");
            check(&benches, &passes(&kite, &text), &kite, &canary, shape);
        }
        let benches = [7, 8].map(|size| Bench::with(copy, &json!({"apiKey": canary, "size": size})));
        let kite = object("plain");
        let rendered = benches.each_ref().map(|it| it.rendered(&kite, &json!({"color": "red"})));
        check(&benches, &rendered, &kite, &canary, "a setting");
    }
}
