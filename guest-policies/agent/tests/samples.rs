//! Tests that the plans for the samples match the plans in `samples/plans`.

use kaos_agent::Agent;

#[test]
fn plans_for_the_samples_are_the_recorded_ones() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/plans");
    kaos_policy_sdk::testing::assert_recorded_plans::<Agent>(folder.as_ref());
}
