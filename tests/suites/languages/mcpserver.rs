//! Checks that the default policy of the kind `MCPServer` in Go and in Python answers like the one in Rust, byte for
//! byte, on every case with such an object. The suite `policies` checks the policy in JavaScript.

use kaos_policy::gate::CodeForm;
use kaos_tests::mcpservers;

use super::built;

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
