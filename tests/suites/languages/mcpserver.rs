//! Checks the default policy of the kind `MCPServer` in Go and in Python. On every case with an MCPServer, the policy
//! must answer like the policy in Rust, byte for byte. The suite `policies` checks the policy in JavaScript.

use std::fs;
use std::path::Path;

use kaos_policy::gate::CodeForm;
use kaos_tests::mcpservers;

use super::built;

#[test]
fn the_policies_for_mcp_servers_have_the_same_schema_and_samples() {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-policies");
    let files = ["settings.schema.json", "samples/custom.json", "samples/python-string.json", "samples/registry.json"];
    for file in files {
        let read = |folder: &str| fs::read(guests.join(folder).join(file)).unwrap();
        for folder in ["go/mcpserver", "python/mcpserver"] {
            assert!(read(folder) == read("mcpserver"), "{folder}/{file} is old: copy guest-policies/mcpserver/{file}");
        }
    }
}

#[test]
fn the_policy_for_mcp_servers_in_go_answers_like_the_one_in_rust_on_every_recorded_case() {
    let policy = mcpservers::load(CodeForm::Component, built::mcpserver_in_go("compared"));
    mcpservers::same_description(&policy);
    mcpservers::same_answers(&policy);
    mcpservers::same_answers_to_inputs(&policy);
}

#[test]
fn the_policy_for_mcp_servers_in_python_answers_like_the_one_in_rust_on_every_recorded_case() {
    let policy = mcpservers::load(CodeForm::Component, built::mcpserver_in_python("compared"));
    mcpservers::same_description(&policy);
    mcpservers::same_answers(&policy);
    mcpservers::same_answers_to_inputs(&policy);
}
