//! Tests that the operator continues after a user deletes the PolicyRevision or the stored bytes of an active revision.

use std::time::Duration;

use kaos_cluster::faults::Failure;
use kaos_tests::harness::read::{name, uid};
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::{Fault, condition, play};
use serde_json::{Value, json};

use crate::support::{
    first_edition_serves, own_edition_serves, package, scenario, settings, until_edition, until_state,
    until_written_again,
};

#[test]
fn an_active_policy_keeps_serving_after_its_record_is_deleted() {
    play(scenario().installing(true), async |world| {
        own_edition_serves(world).await;
        let record = until_state(world, "own", "Active").await;
        let before = world.look("ConfigMap/w").await;

        // Make every check of a package hang from now on, so that the test fails if the operator checks the package
        // again.
        let check = Fault::on(&["create"]).of("selfsubjectrulesreviews");
        world.break_it(check.slow(Duration::from_hours(1)).if_ever());
        world.delete(&format!("kaos-system:PolicyRevision/{}", name(&record))).await;
        until_written_again(world, "own", &record).await;
        let again = until_state(world, "own", "Active").await;
        assert_eq!(again["spec"], record["spec"]);
        assert_eq!(again["status"]["since"], record["status"]["since"], "the time of the activation did not change");
        let bytes = format!("kaos-system:ConfigMap/{}", name(&record));
        let is_of_it = |bytes: &Value| bytes["metadata"]["ownerReferences"][0]["uid"] == uid(&again);
        world.until("the new record owns the stored bytes", &bytes, is_of_it).await;
        world.quiet().await;
        assert_eq!(world.look("ConfigMap/w").await, before, "no other policy answered in between");

        world.mend();
        world.patch("ConfigMap/own", &json!({"data": null, "binaryData": null})).await;
        until_state(world, "own", "Refused").await;
        world.restart().await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn the_bytes_of_a_deleted_record_are_kept_for_its_replacement() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let record = until_state(world, "widgets", "Active").await;
        world.orphan(&format!("kaos-system:PolicyRevision/{}", name(&record))).await;
        until_written_again(world, "widgets", &record).await;
        world.quiet().await;
        world.forget_requests();
        world.pass_time(Duration::from_mins(1)).await;
        let refused: Vec<_> = world.requests(Sort::Refused).into_iter().map(|entry| entry.attempt.name).collect();
        assert_eq!(refused, [""; 0], "the operator repeats no rejected write");
        world.patch("kaos-system:ConfigMap/widgets", &json!({"data": null, "binaryData": null})).await;
        until_state(world, "widgets", "Refused").await;
        world.restart().await;
        world.delete("ConfigMap/w").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn a_start_stores_missing_bytes_of_an_active_revision_again() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let bytes = format!("kaos-system:ConfigMap/{}", name(&until_state(world, "widgets", "Active").await));
        world.stop_all().await;
        world.delete(&bytes).await;
        world.start().await;
        world.until("the bytes are stored again", &bytes, |bytes| !bytes.is_null()).await;
    });
}

#[test]
fn a_record_that_cannot_be_restored_yet_delays_nothing() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.quiet().await;
        let record = until_state(world, "widgets", "Active").await;
        let write = Fault::on(&["patch"]).of("policyrevisions").under("status").named(name(&record));
        world.break_it(write.fail(Failure::Server(500)));
        world.delete(&format!("kaos-system:PolicyRevision/{}", name(&record))).await;
        world.until_hit().await;
        world.apply(&settings("sizes", "{name: widget, settings: {size: 5}}")).await;
        let live = world.until("the settings apply", "ConfigMap/w", |live| live["data"]["size"] == "5").await;
        assert_eq!(live["data"]["edition"], "1", "the policy serves without its record");
        world.mend();
        until_written_again(world, "widgets", &record).await;
    });
}

#[test]
fn a_candidate_whose_record_is_deleted_during_its_check_does_not_serve() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let told = world.history("Widget/w").await;
        let check = Fault::on(&["create"]).of("selfsubjectrulesreviews");
        world.break_it(check.slow(Duration::from_secs(5)).times(1));
        world.apply(&package("widgets", "2", "")).await;
        let checked = until_state(world, "widgets", "Checking").await;
        world.delete(&format!("kaos-system:PolicyRevision/{}", name(&checked))).await;
        until_edition(world, "ConfigMap/w", "2").await;
        let told = told.states();
        let is_unserved = |state: &Value| condition(state, "Accepted")["reason"] == "NoPolicy";
        assert!(!told.iter().any(is_unserved), "{told:#?}");
    });
}
