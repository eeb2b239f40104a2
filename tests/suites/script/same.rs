//! Checks that the template in JavaScript answers like the template in Rust, byte for byte.

use std::sync::Arc;

use kaos_policy::gate::CodeForm;
use kaos_policy::native_code;
use kaos_policy::policy::Policy;
use kaos_tests::websites;

const SCRIPT: &str = include_str!("../../../guest-policies/template/javascript/policy.js");

/// Loads a script as the operator does.
pub(super) fn load(text: &str) -> Arc<Policy> {
    websites::load(CodeForm::Script, text.into())
}

#[test]
fn the_template_in_javascript_plans_like_the_template_in_rust() {
    websites::same_plans(load(SCRIPT).code(), &native_code!(kaos_policy_sdk, website_policy::Website));
}

#[test]
fn the_template_in_javascript_assesses_like_the_template_in_rust() {
    websites::same_reports(load(SCRIPT).code(), &native_code!(kaos_policy_sdk, website_policy::Website));
}
