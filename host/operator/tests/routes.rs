//! Renders the routes of all kinds for `tests/rego/routes.json`. The tests of the decision point's rules take all paths
//! from this file, so the rules must understand the paths that the policies write.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::run;

/// The namespace of the objects in `tests/rego/data.json`.
const TEAM: &str = "team";

/// Returns objects of every kind for which the policies write routes. `tests/rego/data.json` contains the same names.
fn objects() -> Vec<Value> {
    let object = |kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": TEAM},
            "spec": spec, "status": {"ready": true, "phase": "Ready", "endpoint": "http://address"}})
    };
    let agent = json!({"modelAPI": "llm", "model": "m"});
    let server = json!({"runtime": "python-string", "params": "def one() -> int:\n    return 1\n"});
    let model = json!({"modelAPI": "llm", "model": "m"});
    vec![
        object("Agent", "plain", agent.clone()),
        object("Agent", "watcher", agent),
        object("MCPServer", "sums", server.clone()),
        object("MCPServer", "words", server),
        object(
            "MemoryStore",
            "notes",
            json!({"storage": {"type": "local"}, "models": {"summarization": model, "embedding": model}}),
        ),
        object("ModelAPI", "llm", json!({"mode": "Proxy", "proxyConfig": {"models": ["m"]}})),
    ]
}

#[test]
fn the_rules_are_tested_with_these_routes() {
    let objects = objects();
    let input = objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n");
    let gateway = ["--set", "gateway.enabled=true", "--set", "gateway.name=gw", "--set", "gateway.namespace=gw"];
    let render = ["render", "--compatibility", "kaos-0.8", "-o", "json", "-f", "-"];
    let ran = run(render.into_iter().chain(gateway), &input);
    let mut routes: BTreeMap<String, String> = BTreeMap::new();
    for entry in ran.json().as_array().unwrap() {
        let is_route = |manifest: &&Value| manifest["kind"] == "HTTPRoute";
        let route = entry["manifests"].as_array().unwrap().iter().find(is_route).expect("each object has a route");
        let rule = &route["spec"]["rules"][0];
        let target = &rule["filters"][0]["requestHeaderModifier"]["set"][0];
        assert_eq!(target["name"], "x-kaos-target-resource");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        routes.insert(text(&target["value"]), text(&rule["matches"][0]["path"]["value"]));
    }
    assert_eq!(routes.len(), objects.len(), "{routes:?}");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/rego/routes.json");
    let text = format!("{:#}\n", json!(routes));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), text, "UPDATE_GOLDEN=1 writes tests/rego/routes.json");
}
