//! Tests that `render` parses manifests as kubectl and the API server do.

use super::{LLM, READY, render, writer};

#[test]
fn null_field_counts_as_missing() {
    let blank = "instructions: null, description: null";
    let agent =
        writer("writer").replace("metadata: {name: writer}", "metadata: {name: writer, annotations: , labels: }");
    let agent = agent.replace(
        "model: gpt",
        &format!(
            "model: gpt, mcpServers: null, agentNetwork: null, gatewayRoute: null, config: {{{blank}}}, container: \
             {{env: [{{name: A, value: null}}]}}"
        ),
    );
    let llm = LLM.replace("apiKey: {value: s3cret}", "apiKey:").replace("spec:", "spec:\n  telemetry:");
    let server =
        "apiVersion: kaos.tools/v1alpha1\nkind: MCPServer\nmetadata: {name: m}\nspec: {runtime: fetch, params: }\n";
    let ran = render(&format!("{llm}{READY}---\n{agent}---\n{server}"), &["-o", "table"]);
    assert_ne!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.lines().all(|line| !line.starts_with("error: ")), "{}", ran.stderr);
}

#[test]
fn yes_and_no_are_booleans_and_2_0_is_an_integer() {
    let written = |more: &str| {
        let agent = writer("writer").replace("model: gpt", &format!("model: gpt, {more}"));
        render(&format!("{LLM}{READY}---\n{agent}"), &["-o", "json"])
    };
    let ran = written("waitForDependencies: no, agentNetwork: {expose: Off}, replicas: 2.0");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let list = ran.json();
    let manifests = list[1]["manifests"].as_array().expect("a list");
    assert!(manifests.iter().all(|manifest| manifest["kind"] != "Service"), "the Agent is not exposed");
    let deployment = manifests.iter().find(|manifest| manifest["kind"] == "Deployment").expect("one");
    assert_eq!(deployment["spec"]["replicas"], 2);
    let refused = written("container: {env: [{name: A, value: yes}]}");
    assert_eq!(refused.code, 2, "the API server also refuses a value that is not a text");
    assert!(refused.stderr.contains("spec.container.env[0].value: "), "{}", refused.stderr);
}

#[test]
fn object_under_deletion_gets_no_manifests() {
    let going = LLM.replace("{name: llm}", "{name: llm, deletionTimestamp: '2026-01-01T00:00:00Z'}");
    let ran = render(&going, &["-o", "json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let list = ran.json();
    let entry = &list[0];
    assert_eq!((&entry["manifests"], &entry["notes"][0]["reason"]), (&serde_json::json!([]), &"BeingDeleted".into()));
    assert!(render(&going, &[]).stderr.contains("note: "), "a note names the deletion");
}

#[test]
fn list_whose_items_are_no_list_is_reported() {
    let ran = render("apiVersion: v1\nkind: List\nitems: {a: b}\n", &[]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("document 1: items: must be a list of objects"), "{}", ran.stderr);
}
