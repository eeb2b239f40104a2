//! Helpers for property tests with hostile objects. One helper puts a value at any path, and another checks that the
//! answer obeys the contract.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeSet;

use kaos_policy_sdk::types::{Outcome, Refusal, Subject};
use kaos_policy_sdk::{Policy, testing};
use serde_json::{Value, json};

/// Returns `object` with `value` at the path `pointer`. Replaces each value along this path that is not an object.
pub(crate) fn with(mut object: Value, pointer: &str, value: Value) -> Value {
    let mut at = &mut object;
    for key in pointer.split('/').skip(1) {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[key];
    }
    *at = value;
    object
}

/// Checks that the policy's plan or refusal obeys the contract, and that the policy can then build a report.
pub(crate) fn assert_answers<P: Policy>(subject: &Subject) {
    let outcome = match testing::plan::<P>(subject) {
        Ok(plan) => {
            let names: BTreeSet<_> = plan.env.iter().map(|var| (&var.container, &var.name)).collect();
            assert_eq!(names.len(), plan.env.len(), "a container has no variable twice");
            Outcome::Applied
        }
        Err(refused) => {
            if let Refusal::Invalid(violations) = &refused {
                assert!(!violations.is_empty() && violations.iter().all(|violation| !violation.path.is_empty()));
            }
            Outcome::Refused(refused)
        }
    };
    let report = P::assess(subject, &testing::observation(outcome).build());
    assert!(!report.phase.is_empty());
}
