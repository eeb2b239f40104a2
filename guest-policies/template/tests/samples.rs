//! Compares the plans for the samples with the plans in `samples/plans`. `UPDATE_GOLDEN=1 cargo test` writes them.

use website_policy::Website;

#[test]
fn plans_for_the_samples_are_the_recorded_ones() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/samples/plans");
    kaos_policy_sdk::testing::assert_recorded_plans::<Website>(folder.as_ref());
}
