//! Ends the operator at each write of an upgrade to another default policy. The next operator completes the upgrade.

use std::cell::Cell;
use std::time::Duration;

use kaos_operator::catalogue::DefaultsRollout;
use kaos_tests::harness::{World, play};
use serde_json::json;

use crate::own_upgrade::{WIDGETS, edition, first_operator_serves};
use crate::staged::{steer, until_rollout};
use crate::support::{define, scenario, states, until_edition, until_state, widget, widget_in};

const ALL: [&str; 3] = ["ConfigMap/w", "ConfigMap/v", "ConfigMap/x"];

async fn three_widgets(world: &World) {
    first_operator_serves(world).await;
    for name in ["v", "x"] {
        world.apply(&widget_in("test", name, &json!({}))).await;
    }
    for config_map in ALL {
        until_edition(world, config_map, "1").await;
    }
    world.quiet().await;
    world.stop_all().await;
}

/// Waits until the operator reaches the planned write, ends it there, and starts another operator. Returns false if the
/// operator sent too few writes to reach the planned write.
async fn crash_and_start(world: &World) -> bool {
    let reached = tokio::time::timeout(Duration::from_mins(3), world.crash_point.reached()).await.is_ok();
    world.crash_point.clear();
    world.crash().await;
    world.start().await;
    reached
}

async fn ends_with(world: &World, all: &[&str], edition: &str) {
    for config_map in all {
        until_edition(world, config_map, edition).await;
    }
    let settled = async || {
        let states = states(world, WIDGETS).await;
        states.iter().filter(|state| *state == "Active").count() == 1 && !states.contains(&"Yielding".to_owned())
    };
    world.until_true("one default policy is recorded as active", settled).await;
}

/// Runs a story (the code of a test) twice for each write of the operator.
///
/// In the first run, the operator crashes before the write takes effect, and in the second run after the write has
/// taken effect.
fn at_each_write(story: &impl AsyncFn(&World, (u32, bool)) -> bool) {
    let reached = Cell::new(true);
    for crash in (0..).flat_map(|writes| [(writes, false), (writes, true)]).take_while(|_| reached.get()) {
        play(scenario().idle(), async |world| reached.set(story(world, crash).await));
    }
}

#[test]
fn an_operator_that_ends_at_any_write_of_a_first_installation_records_its_policy_all_the_same() {
    at_each_write(&async |world, (writes, after)| {
        define(world).await;
        world.apply(&widget("w", &json!({}))).await;
        world.bring(&[edition("1")], DefaultsRollout::Auto);
        world.crash_point.plan(writes, after);
        world.spawn();
        let reached = crash_and_start(world).await;
        ends_with(world, &ALL[..1], "1").await;
        world.quiet().await;
        world.stop_all().await;
        world.bring(&[edition("2")], DefaultsRollout::Hold);
        world.start().await;
        until_state(world, WIDGETS, "Held").await;
        until_edition(world, "ConfigMap/w", "1").await;
        reached
    });
}

#[test]
fn an_operator_that_ends_at_any_write_of_an_upgrade_at_once_arrives_all_the_same() {
    at_each_write(&async |world, (writes, after)| {
        three_widgets(world).await;
        world.bring(&[edition("2")], DefaultsRollout::Auto);
        world.crash_point.plan(writes, after);
        world.spawn();
        let reached = crash_and_start(world).await;
        ends_with(world, &ALL, "2").await;
        reached
    });
}

#[test]
fn an_operator_that_ends_at_any_write_of_an_upgrade_in_steps_arrives_all_the_same() {
    at_each_write(&async |world, (writes, after)| {
        three_widgets(world).await;
        world.bring(&[edition("2")], DefaultsRollout::Staged);
        world.crash_point.plan(writes, after);
        world.spawn();
        let reached = crash_and_start(world).await;
        ends_with(world, &ALL, "2").await;
        reached
    });
}

#[test]
fn an_operator_that_ends_at_any_write_of_a_return_of_its_policy_returns_all_the_same() {
    at_each_write(&async |world, (writes, after)| {
        three_widgets(world).await;
        world.bring(&[edition("2")], DefaultsRollout::Staged);
        world.start().await;
        let moving = until_rollout(world, WIDGETS, "step 1 of 4").await;
        world.crash_point.plan(writes, after);
        steer(world, &moving, "return", "alice").await;
        let reached = crash_and_start(world).await;
        assert_eq!(until_state(world, WIDGETS, "Quarantined").await["status"]["reason"], "Returned");
        ends_with(world, &ALL, "1").await;
        reached
    });
}
