//! Tests the conditions of revisions. Other tools read these conditions to decide whether to wait or to report a
//! failure. `tests/gitops` checks the recorded revisions with the tools' own libraries.

use std::time::Duration;

use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::read::{name, text};
use kaos_tests::harness::{World, condition, is_true, play};
use kaos_tests::verdicts::{Verdict, compare};
use serde_json::{Value, json};

use crate::support::{
    define, first_edition_serves, package, restart_writes_nothing, revisions, scenario, settings, until_state,
};

const BOTH: [&str; 2] = ["Reconciling", "Stalled"];

/// Asserts that a revision has the condition `of`, and no other condition of the list `BOTH`. If `of` is `None`, the
/// revision must have no condition of this list.
fn has_only(of: Option<&str>, revision: &Value) {
    for one in BOTH {
        assert_eq!(is_true(revision, one), of == Some(one), "{one}: {revision:#}");
        assert!(of == Some(one) || condition(revision, one).is_null(), "{revision:#}");
    }
    assert_eq!(revision["status"]["observedGeneration"], revision["metadata"]["generation"]);
}

fn at(revision: &Value) -> String {
    format!("kaos-system:PolicyRevision/{}", name(revision))
}

#[test]
fn a_revision_is_reconciling_until_it_serves_and_stalled_if_it_needs_a_person() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        let active = until_state(world, "widgets", "Active").await;
        has_only(None, &active);
        compare("revision-active", &Verdict::Done.record(&active));
        world.apply(&package("widgets", "2", "")).await;
        let replaced = until_state(world, "widgets", "Superseded").await;
        has_only(None, &replaced);
        compare("revision-superseded", &Verdict::Done.record(&replaced));
        world.apply(&settings("nobody", "name: nobody\nsettings: {a: 1}")).await;
        let refused = until_state(world, "nobody", "Refused").await;
        has_only(Some("Stalled"), &refused);
        let stalled = condition(&refused, "Stalled");
        assert_eq!(
            (&stalled["reason"], &stalled["message"]),
            (&refused["status"]["reason"], &refused["status"]["message"])
        );
        assert_eq!(stalled["lastTransitionTime"], refused["status"]["since"]);
        compare("revision-refused", &Verdict::Fails.record(&refused));
        restart_writes_nothing(world).await;
    });
}

#[test]
fn a_new_revision_is_not_observed_before_its_first_status_and_then_reconciling() {
    play(scenario().idle(), async |world| {
        define(world).await;
        let new = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "PolicyRevision",
            "metadata": {"name": "widgets-0", "namespace": "kaos-system"},
            "spec": {"source": {"namespace": "kaos-system", "configMap": "widgets"}, "packageDigest": "sha256:0"}});
        let new = world.apply(&new).await;
        assert_eq!(new["status"], json!({"observedGeneration": -1, "state": "Pending"}));
        compare("revision-new", &Verdict::Waits.record(&new));
        world.delete(&at(&new)).await;
        world.spawn();
        world.hold_compiler_over(Some("EDITION=1"));
        world.apply(&package("widgets", "1", "")).await;
        world.until_meanwhile("the operator checks the package", async || world.held() == (1, 1)).await;
        let checking = revisions(world, "widgets").await.remove(0);
        has_only(Some("Reconciling"), &checking);
        compare("revision-checking", &Verdict::Waits.record(&checking));
        world.hold_compiler_over(None);
        has_only(None, &until_state(world, "widgets", "Active").await);
    });
}

/// Removes those fields from the revision's status that an earlier version of the operator did not write.
async fn as_before(world: &World, revision: &Value) {
    world.patch_status(&at(revision), &json!({"observedGeneration": null, "conditions": null})).await;
}

#[test]
fn a_record_of_an_earlier_version_gets_its_conditions_at_the_start() {
    play(scenario(), async |world| {
        world.apply(&settings("nobody", "name: nobody\nsettings: {a: 1}")).await;
        let refused = until_state(world, "nobody", "Refused").await;
        world.stop_all().await;
        as_before(world, &refused).await;
        world.start().await;
        let told =
            world.until("the condition Stalled is True", &at(&refused), |revision| is_true(revision, "Stalled")).await;
        has_only(Some("Stalled"), &told);
        restart_writes_nothing(world).await;
    });
}

#[test]
fn an_older_definition_of_revisions_costs_only_the_conditions() {
    play(scenario().idle(), async |world| {
        let at_crd = "CustomResourceDefinition/policyrevisions.kaos.tools";
        let mut crd = world.look(at_crd).await;
        let version = &mut crd["spec"]["versions"][0];
        let status = &mut version["schema"]["openAPIV3Schema"]["properties"]["status"];
        status.as_object_mut().unwrap().remove("default");
        for field in ["conditions", "observedGeneration"] {
            status["properties"].as_object_mut().unwrap().remove(field);
        }
        world.patch(at_crd, &json!({"spec": {"versions": [version]}})).await;
        world.spawn();
        first_edition_serves(world, &json!({})).await;
        let active = until_state(world, "widgets", "Active").await;
        assert!(active["status"]["conditions"].is_null(), "{active:#}");
        world.quiet().await;
        world.forget_requests();
        world.pass_time(Duration::from_mins(5)).await;
        assert_eq!(world.writes(), [""; 0]);
        let all = world.list_in(Kind::named("PolicyRevision"), "kaos-system").await;
        assert!(all.iter().all(|revision| text(&revision["status"]["state"]) == "Active"), "{all:#?}");
    });
}
