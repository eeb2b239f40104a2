//! Tests the end of a quarantine.
//!
//! A quarantine lasts until a user requests a retry, and also applies to a later package with equal bytes.

use std::time::Duration;

use kaos_tests::harness::read::name;
use kaos_tests::harness::{Fault, play};
use kaos_tests::widgets::component;
use serde_json::json;
use tokio::time::Instant;

use crate::last_good::widgets;
use crate::support::{
    approve, first_edition_serves, package, package_in, packed, restart_writes_nothing, retry, scenario, states,
    until_edition, until_state, widget,
};

#[test]
fn a_quarantined_revision_is_tried_again_on_request() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({"fragile": true})).await;
        world.apply(&package("widgets", "2 traps", "")).await;
        let aside = until_state(world, "widgets", "Quarantined").await;
        world.apply(&widget("w", &json!({"fragile": false}))).await;
        world.quiet().await;
        until_edition(world, "ConfigMap/w", "1").await;
        retry(world, &aside).await;
        until_edition(world, "ConfigMap/w", "2").await;
    });
}

#[test]
fn a_quarantine_survives_deleting_and_recreating_the_config_map() {
    play(scenario(), async |world| {
        let all = widgets(world).await;
        let bad = package("widgets", "2 traps", "");
        world.apply(&bad).await;
        until_state(world, "widgets", "Quarantined").await;
        until_state(world, "widgets", "Active").await;
        world.delete("kaos-system:ConfigMap/widgets").await;
        until_state(world, "widgets", "Superseded").await;
        world.apply(&bad).await;
        until_state(world, "widgets", "Active").await;
        world.quiet().await;
        assert_eq!(states(world, "widgets").await.iter().filter(|state| *state == "Quarantined").count(), 1);
        for config_map in &all {
            world.delete(config_map).await;
            until_edition(world, config_map, "1").await;
        }
    });
}

#[test]
fn a_quarantine_survives_renaming_the_package() {
    play(scenario(), async |world| {
        let all = widgets(world).await;
        world.apply(&package("widgets", "2 traps", "")).await;
        let aside = until_state(world, "widgets", "Quarantined").await;
        world.delete("kaos-system:ConfigMap/widgets").await;
        until_state(world, "widgets", "Superseded").await;
        world.apply(&package("renamed", "2 traps", "")).await;
        let again = until_state(world, "renamed", "Quarantined").await;
        let message = again["status"]["message"].as_str().unwrap();
        assert!(message.contains(name(&aside)), "{message}");
        world.quiet().await;
        world.delete(&all[0]).await;
        until_edition(world, &all[0], "1").await;
    });
}

#[test]
fn a_quarantine_survives_an_edit_that_restores_the_package() {
    play(scenario(), async |world| {
        let all = widgets(world).await;
        world.apply(&package("widgets", "2 traps", "")).await;
        until_state(world, "widgets", "Quarantined").await;
        for edition in ["3", "4", "5", "6"] {
            world.apply(&package("widgets", edition, "")).await;
            until_edition(world, &all[1], edition).await;
        }
        world.apply(&package("widgets", "2 traps", "")).await;
        world.quiet().await;
        world.delete(&all[0]).await;
        until_edition(world, &all[0], "6").await;
        assert_eq!(states(world, "widgets").await.iter().filter(|state| *state == "Active").count(), 1);
    });
}

/// Returns the component of this edition as another build would produce it: with an additional section that has no
/// effect.
fn rebuilt(edition: &str) -> Vec<u8> {
    let mut bytes = component(edition).unwrap();
    let section = b"build:2";
    bytes.extend([0, 8, 7]);
    bytes.extend(section);
    bytes
}

#[test]
fn a_rebuild_of_a_quarantined_policy_waits_for_a_person_and_the_last_good_one_serves() {
    play(scenario(), async |world| {
        let all = widgets(world).await;
        world.apply(&package("widgets", "2 traps", "")).await;
        let first = until_state(world, "widgets", "Quarantined").await;
        world.apply(&packed("widgets", Some(&rebuilt("2 traps")), "")).await;
        let held = until_state(world, "widgets", "Held").await;
        let (status, message) = (&held["status"], held["status"]["message"].as_str().unwrap());
        assert_eq!(status["reason"], "AnswersLikeQuarantined", "{held:#}");
        assert_eq!(status["answersDigest"], first["status"]["answersDigest"], "{held:#}");
        assert!(message.contains(name(&first)) && message.contains("kaos.tools/retry=1"), "{message}");
        for config_map in &all {
            until_edition(world, config_map, "1").await;
        }
        restart_writes_nothing(world).await;
        retry(world, &held).await;
        let aside = async || states(world, "widgets").await.iter().filter(|state| *state == "Quarantined").count();
        world.until_true("both builds are in quarantine", async || aside().await == 2).await;
        for config_map in &all {
            until_edition(world, config_map, "1").await;
        }
        // Apply the first build again. Its revision must still be in quarantine.
        world.apply(&package("widgets", "2 traps", "")).await;
        world.quiet().await;
        let again = world.look(&format!("kaos-system:PolicyRevision/{}", name(&first))).await;
        assert_eq!(again["status"]["state"], "Quarantined");
        world.delete(&all[0]).await;
        until_edition(world, &all[0], "1").await;
        assert_eq!(states(world, "widgets").await.iter().filter(|state| *state == "Active").count(), 1);
    });
}

#[test]
fn a_held_rebuild_serves_when_a_person_approves_it_or_the_quarantine_ends() {
    for approves in [true, false] {
        play(scenario(), async |world| {
            first_edition_serves(world, &json!({"fragile": true})).await;
            world.apply(&package("widgets", "2 traps", "")).await;
            let first = until_state(world, "widgets", "Quarantined").await;
            world.apply(&packed("widgets", Some(&rebuilt("2 traps")), "")).await;
            let held = until_state(world, "widgets", "Held").await;
            world.apply(&widget("w", &json!({"fragile": false}))).await;
            world.quiet().await;
            until_edition(world, "ConfigMap/w", "1").await;
            if approves {
                approve(world, &held, "alice").await;
            } else {
                world.delete(&format!("kaos-system:PolicyRevision/{}", name(&first))).await;
            }
            until_edition(world, "ConfigMap/w", "2").await;
        });
    }
}

#[test]
fn a_slow_rights_check_does_not_delay_the_quarantine_of_another_policy() {
    play(scenario().installing(true), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets", "2 traps", "")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        let asked = Fault::on(&["create"]).of("selfsubjectrulesreviews");
        world.break_it(asked.slow(Duration::from_mins(5)));
        world.apply(&package_in("test", "own", "3", "")).await;
        world.until_hit().await;
        let began = Instant::now();
        world.apply(&widget("w", &json!({"fragile": true}))).await;
        until_state(world, "widgets", "Quarantined").await;
        assert!(began.elapsed() < Duration::from_secs(5), "the quarantine took {:?}", began.elapsed());
        until_edition(world, "ConfigMap/w", "1").await;
        until_state(world, "own", "Checking").await;
        world.mend();
        until_edition(world, "ConfigMap/w", "3").await;
    });
}
