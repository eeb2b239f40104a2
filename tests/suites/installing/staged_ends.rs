//! Ends the operator at each write of a rollout, and at each write of a return. The next operator must continue the
//! rollout or the return.

use std::cell::Cell;
use std::time::Duration;

use kaos_tests::harness::{World, play};
use serde_json::json;

use crate::staged::{steer, until_rollout};
use crate::support::{first_edition_serves, package, scenario, states, until_edition, until_state, widget_in};

/// Creates three Widgets that the first edition serves.
pub(crate) async fn three_widgets(world: &World) -> [&'static str; 3] {
    first_edition_serves(world, &json!({})).await;
    for name in ["v", "x"] {
        world.apply(&widget_in("test", name, &json!({}))).await;
    }
    let all = ["ConfigMap/w", "ConfigMap/v", "ConfigMap/x"];
    for config_map in all {
        until_edition(world, config_map, "1").await;
    }
    world.quiet().await;
    all
}

/// Waits until the operator reaches the planned write, ends it there, and starts another operator. Returns false if the
/// operator sent too few writes to reach the planned write.
async fn crash_and_start(world: &World) -> bool {
    let reached = tokio::time::timeout(Duration::from_mins(2), world.crash_point.reached()).await.is_ok();
    world.crash_point.clear();
    world.crash().await;
    world.start().await;
    reached
}

/// Waits until this edition serves all Widgets, and only one revision is active.
pub(crate) async fn ends_with(world: &World, all: &[&str], edition: &str) {
    for config_map in all {
        until_edition(world, config_map, edition).await;
    }
    let settled = async || {
        let states = states(world, "widgets").await;
        states.iter().filter(|state| *state == "Active").count() == 1 && !states.contains(&"Yielding".to_owned())
    };
    world.until_true("one revision serves", settled).await;
}

#[test]
fn an_operator_that_ends_at_any_write_of_a_rollout_arrives_all_the_same() {
    let reached = Cell::new(true);
    for (writes, after) in (0..).flat_map(|writes| [(writes, false), (writes, true)]).take_while(|_| reached.get()) {
        play(scenario(), async |world| {
            let all = three_widgets(world).await;
            world.crash_point.plan(writes, after);
            let rollout = "rollout: {mode: staged, steps: [1, 100%], pause: 30s}";
            world.apply(&package("widgets", "2", rollout)).await;
            reached.set(crash_and_start(world).await);
            ends_with(world, &all, "2").await;
        });
    }
}

#[test]
fn an_operator_that_ends_at_any_write_of_a_return_returns_all_the_same() {
    let reached = Cell::new(true);
    for (writes, after) in (0..).flat_map(|writes| [(writes, false), (writes, true)]).take_while(|_| reached.get()) {
        play(scenario(), async |world| {
            let all = three_widgets(world).await;
            world.apply(&package("widgets", "2", "rollout: {mode: staged, pause: 1h}")).await;
            let moving = until_rollout(world, "widgets", "step 1 of 4").await;
            world.quiet().await;
            world.crash_point.plan(writes, after);
            steer(world, &moving, "return", "alice").await;
            reached.set(crash_and_start(world).await);
            assert_eq!(until_state(world, "widgets", "Quarantined").await["status"]["reason"], "Returned");
            ends_with(world, &all, "1").await;
        });
    }
}
