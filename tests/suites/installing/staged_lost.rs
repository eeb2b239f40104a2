//! Tests rollouts during which a revision's PolicyRevision, its stored bytes, or the CustomResourceDefinition is lost.
#![allow(clippy::float_cmp, reason = "metrics count in floats")]

use kaos_tests::harness::read::{name, text, uid};
use kaos_tests::harness::{World, is_true, play};
use serde_json::{Value, json};

use crate::staged::{steer, until_rollout};
use crate::staged_ends::{ends_with, three_widgets};
use crate::support::{first_edition_serves, package, retry, revisions, scenario, until_edition, until_state};

const ONE_STEP: &str = "rollout: {mode: staged, steps: [1, 100%], pause: 1h}";

/// Begins a rollout of the second edition of the policy to three Widgets, and waits for the first step. Then the second
/// edition serves one Widget, and the first edition still serves two.
async fn one_of_three_moves(world: &World) -> [&'static str; 3] {
    let all = three_widgets(world).await;
    world.apply(&package("widgets", "2", ONE_STEP)).await;
    until_rollout(world, "widgets", "step 1 of 2 (1): 1 of 3 objects moved").await;
    world.quiet().await;
    all
}

/// Returns, for each Widget, the edition of the policy that serves it.
async fn editions(world: &World, all: &[&str]) -> Vec<String> {
    let mut editions = Vec::new();
    for config_map in all {
        editions.push(text(&world.look(config_map).await["data"]["edition"]).to_owned());
    }
    editions
}

#[test]
fn the_deleted_record_of_a_revision_that_yields_is_written_again() {
    play(scenario(), async |world| {
        let all = one_of_three_moves(world).await;
        let before = editions(world, &all).await;
        let yields = until_state(world, "widgets", "Yielding").await;
        // Delete the PolicyRevision, but keep the ConfigMap with the stored bytes: on a real cluster, the operator
        // reads these bytes before the garbage collector deletes the ConfigMap.
        world.orphan(&format!("kaos-system:PolicyRevision/{}", name(&yields))).await;
        let is_new = |it: &Value| uid(it) != uid(&yields) && it["status"]["state"] == "Yielding";
        let again = async || revisions(world, "widgets").await.iter().any(is_new);
        world.until_true("the operator has written the record again", again).await;
        world.quiet().await;
        world.restart().await;
        world.quiet().await;
        assert_eq!(editions(world, &all).await, before);
        let moving = until_rollout(world, "widgets", "step 1 of 2").await;
        steer(world, &moving, "return", "alice").await;
        until_state(world, "widgets", "Quarantined").await;
        ends_with(world, &all, "1").await;
    });
}

#[test]
fn a_start_stores_missing_bytes_of_a_revision_that_yields_again_if_a_package_has_them() {
    play(scenario(), async |world| {
        one_of_three_moves(world).await;
        let bytes = format!("kaos-system:ConfigMap/{}", name(&until_state(world, "widgets", "Yielding").await));
        world.stop_all().await;
        world.delete(&bytes).await;
        // Apply another package with the same content. The operator must take the bytes from this package.
        let mut copy = package("widgets", "1", "");
        copy["metadata"]["name"] = json!("copy");
        world.apply(&copy).await;
        world.start().await;
        world.until("the bytes are stored again", &bytes, |bytes| !bytes.is_null()).await;
    });
}

#[test]
fn without_its_predecessor_a_rollout_cannot_return_and_the_package_that_served_before_ends_it() {
    play(scenario(), async |world| {
        let all = one_of_three_moves(world).await;
        let before = editions(world, &all).await;
        let yields = until_state(world, "widgets", "Yielding").await;
        world.stop_all().await;
        world.delete(&format!("kaos-system:ConfigMap/{}", name(&yields))).await;
        world.start().await;
        let paused = until_rollout(world, "widgets", "paused: PredecessorMissing").await;
        let lost = until_state(world, "widgets", "Yielding").await;
        assert_eq!(lost["status"]["reason"], "NotLoaded", "{lost:#}");
        assert!(text(&lost["status"]["message"]).contains("keep their children"), "{lost:#}");
        steer(world, &paused, "return", "alice").await;
        let counted =
            async || revisions(world, "widgets").await.iter().any(|it| it["status"]["rollout"]["requests"] == 1);
        world.until_true("the operator has handled the request", counted).await;
        until_rollout(world, "widgets", "paused: PredecessorMissing").await;
        world.quiet().await;
        assert_eq!(editions(world, &all).await, before, "no other policy takes over the objects");
        world.apply(&package("widgets", "1", "")).await;
        ends_with(world, &all, "1").await;
    });
}

/// Waits until a package is pending because the CustomResourceDefinition of PolicyRevisions is too old.
async fn until_old_definition(world: &World) {
    let is_it = |it: &Value| it["status"]["reason"] == "OldDefinition" && it["status"]["state"] == "Pending";
    let waits = async || revisions(world, "widgets").await.iter().any(is_it);
    world.until_true("the package waits for the definition", waits).await;
}

#[test]
fn with_an_older_definition_a_staged_package_waits_and_nothing_moves() {
    play(scenario().idle(), async |world| {
        let at_crd = "CustomResourceDefinition/policyrevisions.kaos.tools";
        let current = world.look(at_crd).await["spec"]["versions"][0].clone();
        let mut older = current.clone();
        let status = &mut older["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"];
        status.as_object_mut().unwrap().remove("rollout").unwrap();
        status["state"]["enum"].as_array_mut().unwrap().retain(|state| state != "Yielding");
        world.patch(at_crd, &json!({"spec": {"versions": [older]}})).await;
        world.spawn();
        first_edition_serves(world, &json!({})).await;
        let history = world.history("ConfigMap/w").await;
        world.apply(&package("widgets", "2", ONE_STEP)).await;
        until_old_definition(world).await;
        world.restart().await;
        world.quiet().await;
        until_old_definition(world).await;
        assert!(history.states().iter().all(|state| state["data"]["edition"] == "1"));
        world.stop_all().await;
        world.patch(at_crd, &json!({"spec": {"versions": [current]}})).await;
        world.start().await;
        until_edition(world, "ConfigMap/w", "2").await;
    });
}

#[test]
fn a_rollout_of_a_revision_that_cannot_be_loaded_pauses_goes_on_and_can_return() {
    play(scenario(), async |world| {
        let all = one_of_three_moves(world).await;
        let before = editions(world, &all).await;
        world.refuse_to_compile(Some("EDITION=2"));
        world.restart().await;
        let paused = until_rollout(world, "widgets", "step 1 of 2 (1): 1 of 3 objects moved, paused: NotLoaded").await;
        assert_eq!(paused["status"]["reason"], "NotLoaded");
        assert!(is_true(&paused, "Stalled"), "{paused:#}");
        assert_eq!(world.counted("kaos_operator_rollout_paused", &[r#"reason="NotLoaded""#]), 1.0);
        steer(world, &paused, "promote", "alice").await;
        let is_refused = |it: &Value| {
            let message = &it["status"]["rollout"]["paused"]["message"];
            message
                .as_str()
                .is_some_and(|message| message.starts_with("the operator could not run `policy promote`, which alice"))
        };
        let refused = async || revisions(world, "widgets").await.iter().any(is_refused);
        world.until_true("the operator refuses the request", refused).await;
        for config_map in all {
            until_edition(world, config_map, "1").await;
        }

        world.refuse_to_compile(None);
        retry(world, &paused).await;
        let goes_on = async || {
            let revisions = revisions(world, "widgets").await;
            revisions.iter().any(|it| it["status"]["reason"] == "RollingOut" && it["status"]["state"] == "Active")
        };
        world.until_true("the rollout goes on", goes_on).await;
        let moving = until_rollout(world, "widgets", "step 1 of 2 (1): 1 of 3 objects moved").await;
        assert!(text(&moving["status"]["message"]).contains("step 1 of 2") && !is_true(&moving, "Stalled"));
        let same = async || editions(world, &all).await == before;
        world.until_true("the same Widget is moved", same).await;

        world.refuse_to_compile(Some("EDITION=2"));
        world.restart().await;
        let paused = until_rollout(world, "widgets", "paused: NotLoaded").await;
        steer(world, &paused, "return", "alice").await;
        let returned = until_state(world, "widgets", "Quarantined").await;
        assert!(text(&returned["status"]["message"]).contains("alice returned"), "{returned:#}");
        ends_with(world, &all, "1").await;
    });
}

#[test]
fn a_rollout_does_not_begin_while_the_revision_that_serves_cannot_be_loaded() {
    play(scenario(), async |world| {
        let all = three_widgets(world).await;
        world.refuse_to_compile(Some("EDITION=1"));
        world.restart().await;
        let is_lost = |it: &Value| it["status"]["state"] == "Active" && it["status"]["reason"] == "NotLoaded";
        let lost = async || revisions(world, "widgets").await.into_iter().find(is_lost);
        world.until_true("the first edition is lost", async || lost().await.is_some()).await;
        world.apply(&package("widgets", "2", ONE_STEP)).await;
        let waits = until_state(world, "widgets", "Pending").await;
        assert_eq!(waits["status"]["reason"], "PredecessorMissing", "{waits:#}");
        assert!(text(&waits["status"]["message"]).contains("rollout.mode: now"), "{waits:#}");
        assert!(waits["status"]["rollout"].is_null(), "{waits:#}");

        world.refuse_to_compile(None);
        retry(world, &lost().await.unwrap()).await;
        until_rollout(world, "widgets", "step 1 of 2 (1): 1 of 3 objects moved").await;
        let moved = async || editions(world, &all).await.iter().filter(|edition| *edition == "2").count();
        world.until_true("one Widget is moved", async || moved().await == 1).await;
    });
}

#[test]
fn a_staged_package_that_gets_the_place_of_a_lost_revision_serves_at_once() {
    play(scenario(), async |world| {
        let all = three_widgets(world).await;
        world.refuse_to_compile(Some("EDITION=1"));
        world.restart().await;
        let lost = async || revisions(world, "widgets").await[0]["status"]["reason"] == "NotLoaded";
        world.until_true("the first edition is lost", lost).await;
        world.apply(&package("other", "2", ONE_STEP)).await;
        until_state(world, "other", "Conflict").await;
        world.delete("kaos-system:ConfigMap/widgets").await;
        for config_map in all {
            until_edition(world, config_map, "2").await;
        }
        assert!(until_state(world, "other", "Active").await["status"]["rollout"].is_null());
    });
}
