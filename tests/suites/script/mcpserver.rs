//! Checks that the default policy of the kind `MCPServer` in JavaScript answers like the one in Rust, byte for byte.

use kaos_policy::gate::CodeForm;
use kaos_tests::mcpservers;

const SCRIPT: &str = include_str!("../../../guest-policies/mcpserver/policy.js");

#[test]
fn the_policy_for_mcp_servers_in_javascript_answers_like_the_one_in_rust_on_every_recorded_case() {
    let policy = mcpservers::load(CodeForm::Script, SCRIPT.into());
    mcpservers::same_description(&policy);
    mcpservers::same_answers(&policy);
    mcpservers::same_answers_to_inputs(&policy);
}
