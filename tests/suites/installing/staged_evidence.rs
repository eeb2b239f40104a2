//! Tests what a rollout counts as evidence: objects for which the package cannot answer, objects that their users
//! break, and pods that crash again and again.

use std::time::Duration;

use kaos_cluster::PodFate;
use kaos_tests::harness::{World, play};
use serde_json::json;

use crate::last_good::widgets;
use crate::staged::{SERVERS, STEPS, fail_first, levels, servers, steer, until_moved, until_rollout, with_level};
use crate::support::{package, package_in, scenario, states, until_edition, until_state};

const READY: PodFate = PodFate::ReadyAfter(Duration::ZERO);

/// Checks that the rollout of the package `levels` is paused for this reason, and neither moves nor returns an object
/// for a long time.
async fn stays_paused(world: &World, reason: &str, moved: usize) {
    until_rollout(world, "levels", &format!("paused: {reason}")).await;
    world.pass_time(Duration::from_mins(10)).await;
    until_rollout(world, "levels", &format!("paused: {reason}")).await;
    assert_eq!(with_level(world, "DEBUG").await.len(), moved);
}

#[test]
fn a_rollout_of_the_owner_ends_beside_the_own_policy_of_a_tenant() {
    play(scenario().installing(true), async |world| {
        let all = widgets(world).await;
        world.apply(&package_in("other", "own", "3", "")).await;
        until_state(world, "own", "Active").await;
        until_edition(world, "other:ConfigMap/w1", "3").await;
        world.apply(&package("widgets", "2", STEPS)).await;
        until_rollout(world, "widgets", "step 1 of 3 (1): 1 of 6 objects moved").await;
        until_rollout(world, "widgets", "6 of 6 objects moved").await;
        for config_map in &all {
            until_edition(world, config_map, if config_map.starts_with("test") { "2" } else { "3" }).await;
        }
    });
}

#[test]
fn a_rollout_with_a_narrower_scope_ends() {
    play(scenario(), async |world| {
        let all = widgets(world).await;
        world.apply(&package("widgets", "2", &format!("scope: {{namespaces: [test]}}\n{STEPS}"))).await;
        until_rollout(world, "widgets", "step 1 of 3 (1): 1 of 6 objects moved").await;
        until_rollout(world, "widgets", "6 of 6 objects moved").await;
        for config_map in all.iter().filter(|config_map| config_map.starts_with("test")) {
            until_edition(world, config_map, "2").await;
        }
    });
}

#[test]
fn an_object_that_is_being_deleted_delays_no_rollout() {
    play(scenario(), async |world| {
        servers(world).await;
        world.patch("MCPServer/s0", &json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
        world.try_delete("MCPServer/s0").await.unwrap();
        world.apply(&levels("DEBUG", STEPS)).await;
        until_rollout(world, "levels", "step 1 of 3 (1): 1 of 5 objects moved").await;
        until_rollout(world, "levels", "5 of 5 objects moved").await;
    });
}

#[test]
fn a_server_that_its_user_breaks_returns_nothing() {
    play(scenario(), async |world| {
        servers(world).await;
        world.apply(&levels("DEBUG", STEPS)).await;
        let moved = until_moved(world, "DEBUG", 1).await;
        for server in &moved {
            world.patch(&format!("MCPServer/{server}"), &json!({"spec": {"params": "def broken("}})).await;
            world.pods_of(&format!("mcpserver-{server}"), PodFate::CrashLoop);
        }
        stays_paused(world, "NothingWasReady", 1).await;
        assert_eq!(states(world, "levels").await, ["Active"]);
    });
}

#[test]
fn one_harmed_server_of_three_pauses_and_a_person_accepts_it_once() {
    play(scenario(), async |world| {
        servers(world).await;
        world.apply(&levels("DEBUG", STEPS)).await;
        until_rollout(world, "levels", "step 2 of 3").await;
        let moved = until_moved(world, "DEBUG", 3).await;
        let harmed = moved.first().unwrap();
        world.pods_of(&format!("mcpserver-{harmed}"), PodFate::NotReady);
        stays_paused(world, "FewHarmed", 3).await;
        let paused = until_rollout(world, "levels", "paused: FewHarmed").await;
        steer(world, &paused, "resume", "alice").await;
        until_rollout(world, "levels", "6 of 6 objects moved").await;
        until_moved(world, "DEBUG", SERVERS).await;
        world.pods_of(&format!("mcpserver-{harmed}"), READY);
        world.until_ready(&format!("MCPServer/{harmed}")).await;
    });
}

#[test]
fn pods_that_crash_again_and_again_return_although_no_crash_lasts_for_the_patience() {
    play(scenario(), async |world| {
        servers(world).await;
        world.apply(&levels("DEBUG", STEPS)).await;
        let moved = fail_first(world).await;
        for _ in 0..4 {
            for (fate, seconds) in [(PodFate::NotReady, 25), (READY, 15)] {
                for server in &moved {
                    world.pods_of(&format!("mcpserver-{server}"), fate);
                }
                world.pass_time(Duration::from_secs(seconds)).await;
            }
        }
        let returned = until_state(world, "levels", "Quarantined").await;
        assert_eq!(returned["status"]["reason"], "Returned");
        until_moved(world, "DEBUG", 0).await;
    });
}
