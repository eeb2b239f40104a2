//! Tests that the plans for the samples match the plans in `samples/plans`.

use kaos_authorization::Authorization;

#[test]
fn plans_for_the_samples_are_the_recorded_ones() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/plans");
    kaos_policy_sdk::testing::assert_recorded_plans::<Authorization>(folder.as_ref());
}
