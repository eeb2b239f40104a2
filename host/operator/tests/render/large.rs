//! Tests `render` with very large objects.

use super::{LLM, READY, render, writer};

#[test]
fn an_oversized_peer_is_refused_and_an_object_that_reads_only_its_address_is_not() {
    let keys: Vec<_> = (0..80_000).map(|n| format!("k{n}: v")).collect();
    let spec = format!("model: gpt, podSpec: {{nodeSelector: {{{}}}}}", keys.join(", "));
    let peer = writer("peer").replace("model: gpt", &spec);
    let agent = writer("writer").replace("model: gpt", "model: gpt, agentNetwork: {access: [peer]}");
    let ran = render(&format!("{LLM}{READY}---\n{agent}---\n{peer}{READY}"), &["-o", "json"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let list = ran.json();
    assert!(list[1]["refused"].is_null(), "{}", list[1]["refused"]);
    assert_eq!(list[2]["refused"]["reason"], "Invalid", "the peer itself is too large");
    let message = list[2]["refused"]["messages"][0]["message"].as_str().expect("a text");
    assert!(message.contains("has 80,000 fields, but the limit is 10,000"), "{message}");
}

#[test]
fn object_waits_for_an_oversized_registry() {
    let entries: Vec<_> = (0..5_000).map(|n| format!("  r{n}: {{image: 'i:{n}', args: [a]}}\n")).collect();
    let registry = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kaos-mcp-runtimes", "namespace": "kaos-system"},
        "data": {"runtimes.yaml": format!("runtimes:\n{}", entries.concat())},
    });
    let server = "apiVersion: kaos.tools/v1alpha1\nkind: MCPServer\nmetadata: {name: m}\nspec: {runtime: r1}\n";
    let list = render(&format!("{server}---\n{registry}\n"), &["-o", "json"]).json();
    let refused = &list[0]["refused"];
    assert_eq!(refused["reason"], "Waiting", "{refused}");
    assert_eq!(refused["messages"][0]["path"], "ConfigMap kaos-system/kaos-mcp-runtimes");
    let message = refused["messages"][0]["message"].as_str().expect("a text");
    assert!(message.contains("runtimes.yaml in ConfigMap") && message.contains("limit is 150000"), "{message}");
}

#[test]
fn env_table_prints_a_long_value_in_full() {
    let long = "x".repeat(100_000);
    let variables = format!("model: gpt, container: {{env: [{{name: LONG, value: {long}}}]}}");
    let agent = writer("writer").replace("model: gpt", &variables);
    let ran = render(&format!("{LLM}{READY}---\n{agent}"), &["--env"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains(&long));
    let others = ran.stdout.lines().filter(|line| !line.contains("LONG"));
    assert!(
        others.map(str::len).max().is_some_and(|longest| longest < 500),
        "other lines are not padded to the longest line"
    );
}
