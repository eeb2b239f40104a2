//! Tests rollouts that return all objects although the package's ConfigMap already has another content.

use kaos_tests::harness::{World, play};
use serde_json::json;

use crate::staged::{steer, until_rollout};
use crate::staged_ends::{ends_with, three_widgets};
use crate::support::{package, packed, revisions, scenario, states, until_state};

const ONE_STEP: &str = "rollout: {mode: staged, steps: [1, 100%], pause: 1h}";

/// Begins a rollout of the second edition of the Widgets' policy. During the rollout, replaces the component in the
/// package's ConfigMap by bytes that the operator refuses. Then requests that the rollout returns all objects.
async fn returns_with_a_refused_content(world: &World) -> [&'static str; 3] {
    let all = three_widgets(world).await;
    world.apply(&package("widgets", "2", ONE_STEP)).await;
    let moving = until_rollout(world, "widgets", "step 1 of 2 (1): 1 of 3 objects moved").await;
    world.apply(&packed("widgets", Some(b"no component"), "")).await;
    until_state(world, "widgets", "Refused").await;
    steer(world, &moving, "return", "alice").await;
    until_state(world, "widgets", "Quarantined").await;
    all
}

#[test]
fn a_return_restores_the_revision_that_served_before_also_if_the_package_has_another_content() {
    play(scenario(), async |world| {
        let all = returns_with_a_refused_content(world).await;
        ends_with(world, &all, "1").await;
        let restored = until_state(world, "widgets", "Active").await;
        assert_eq!(restored["status"]["reason"], "Restored", "{restored:#}");
        world.quiet().await;
        world.restart().await;
        world.quiet().await;
        ends_with(world, &all, "1").await;
        world.apply(&package("widgets", "3", "")).await;
        ends_with(world, &all, "3").await;
    });
}

#[test]
fn a_package_that_is_deleted_after_a_return_does_not_come_back_with_another_content() {
    play(scenario(), async |world| {
        let all = returns_with_a_refused_content(world).await;
        ends_with(world, &all, "1").await;
        world.delete("kaos-system:ConfigMap/widgets").await;
        let ended = async || !states(world, "widgets").await.contains(&"Active".to_owned());
        world.until_true("no revision serves", ended).await;
        world.apply(&packed("widgets", Some(b"no component"), "")).await;
        world.quiet().await;
        let states: Vec<_> = revisions(world, "widgets").await.iter().map(|it| it["status"]["state"].clone()).collect();
        assert!(!states.contains(&json!("Active")), "{states:?}");
    });
}
