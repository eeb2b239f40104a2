//! What was put aside stays so until somebody asks, whatever it comes back as.

use kaos_tests::harness::play;
use kaos_tests::harness::read::name;
use serde_json::json;

use crate::last_good::widgets;
use crate::support::{first_edition_serves, package, retry, scenario, states, until_edition, until_state, widget};

#[test]
fn what_was_put_aside_is_tried_again_when_somebody_asks() {
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
fn what_was_put_aside_stays_so_when_its_config_map_is_deleted_and_comes_again() {
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
fn what_was_put_aside_stays_so_under_another_name() {
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
fn what_was_put_aside_stays_so_when_an_edit_brings_it_back() {
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
