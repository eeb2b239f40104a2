//! Tests rollouts. The evidence from the moved objects decides whether a rollout completes, pauses, or returns all
//! objects.
#![allow(clippy::float_cmp, reason = "metrics count in floats")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kaos_cluster::PodFate;
use kaos_tests::harness::read::{name, text};
use kaos_tests::harness::samples::mcp_server;
use kaos_tests::harness::{World, condition, is_true, play};
use kaos_tests::verdicts::{Verdict, compare};
use serde_json::{Value, json};

use crate::last_good::widgets;
use crate::support::{
    first_edition_serves, package, restart_writes_nothing, revisions, scenario, settings, states, until_edition,
    until_state, widget_in,
};

/// The rollout of most tests, with three steps: one object, half of the objects, all objects.
pub(crate) const STEPS: &str = "rollout: {mode: staged, steps: [1, 50%, 100%], pause: 30s, patience: 1m}";
pub(crate) const SERVERS: usize = 6;

/// Returns a package of settings that changes the pods of all MCPServers. `rollout` is the line of `policy.yaml` about
/// the package's rollout.
pub(crate) fn levels(level: &str, rollout: &str) -> Value {
    settings("levels", &format!("name: mcpserver\nsettings: {{logLevel: {level}}}\n{rollout}\n"))
}

/// Creates the MCPServers, and waits until they are ready.
pub(crate) async fn servers(world: &World) {
    for number in 0..SERVERS {
        world.apply(&mcp_server(&format!("s{number}"))).await;
    }
    for number in 0..SERVERS {
        world.until_ready(&format!("MCPServer/s{number}")).await;
    }
    world.quiet().await;
}

/// Returns the pod template of each MCPServer's Deployment.
async fn templates(world: &World) -> BTreeMap<String, Value> {
    let mut templates = BTreeMap::new();
    for number in 0..SERVERS {
        let deployment = world.look(&format!("Deployment/mcpserver-s{number}")).await;
        templates.insert(format!("s{number}"), deployment["spec"]["template"].clone());
    }
    templates
}

/// Returns the MCPServers whose pods have this log level.
pub(crate) async fn with_level(world: &World, level: &str) -> BTreeSet<String> {
    let has = |template: &Value| template.to_string().contains(&format!(r#""LOG_LEVEL","value":"{level}""#));
    templates(world).await.into_iter().filter(|(_, template)| has(template)).map(|(name, _)| name).collect()
}

pub(crate) async fn until_moved(world: &World, level: &str, many: usize) -> BTreeSet<String> {
    let what = format!("{many} servers are moved");
    world.until_true(&what, async || with_level(world, level).await.len() == many).await;
    with_level(world, level).await
}

/// Waits until the rollout has moved the first MCPServer, and makes its pods not ready. Returns this MCPServer.
pub(crate) async fn fail_first(world: &World) -> BTreeSet<String> {
    let moved = until_moved(world, "DEBUG", 1).await;
    for server in &moved {
        world.pods_of(&format!("mcpserver-{server}"), PodFate::NotReady);
    }
    moved
}

/// Waits until the rollout of a package has this text in its summary. Returns the revision.
pub(crate) async fn until_rollout(world: &World, source: &str, told: &str) -> Value {
    let is_it = |it: &Value| it["status"]["rollout"]["summary"].as_str().is_some_and(|summary| summary.contains(told));
    let holds = async || revisions(world, source).await.iter().any(is_it);
    world.until_true(&format!("the rollout of {source} is at: {told}"), holds).await;
    revisions(world, source).await.into_iter().find(is_it).unwrap()
}

/// Requests a change of a rollout as this user. `verb` is the request: promote, pause, resume or return.
pub(crate) async fn steer(world: &World, revision: &Value, verb: &str, user: &str) {
    let rollout = &revision["status"]["rollout"];
    let request = format!("{}/{}", text(&rollout["started"]), rollout["requests"].as_i64().unwrap_or_default() + 1);
    let annotations =
        json!({"kaos.tools/rollout": verb, "kaos.tools/rollout-by": user, "kaos.tools/rollout-for": request});
    let at = format!("kaos-system:PolicyRevision/{}", name(revision));
    world.patch(&at, &json!({"metadata": {"annotations": annotations}})).await;
}

#[test]
fn staged_settings_move_more_servers_in_each_step_and_arrive() {
    play(scenario(), async |world| {
        servers(world).await;
        world.apply(&levels("DEBUG", STEPS)).await;
        let one = until_moved(world, "DEBUG", 1).await;
        let moving = until_rollout(world, "levels", "step 1 of 3 (1): 1 of 6 objects moved").await;
        assert_eq!((&moving["status"]["state"], &moving["status"]["reason"]), (&json!("Active"), &json!("RollingOut")));
        assert!(is_true(&moving, "Reconciling"), "{moving:#}");
        compare("revision-rolling-out", &Verdict::Waits.record(&moving));
        assert_eq!(world.counted("kaos_operator_rollout_step", &[r#"package="kaos-system/levels""#]), 1.0);
        assert_eq!(world.counted("kaos_operator_rollout_objects", &[r#"moved="false""#]), 5.0);
        let half = until_moved(world, "DEBUG", 3).await;
        assert!(one.is_subset(&half), "{one:?} {half:?}");
        until_moved(world, "DEBUG", SERVERS).await;
        let arrived = until_rollout(world, "levels", "6 of 6 objects moved").await;
        let status = &arrived["status"];
        world
            .until_true("the rollout ended", async || {
                revisions(world, "levels").await[0]["status"]["reason"] == "RolledOut"
            })
            .await;
        assert!(status["rollout"]["paused"].is_null(), "{status:#}");
        assert_eq!(world.counted("kaos_operator_rollout_step", &[]), 0.0, "the rollout has no samples any more");
        assert!(condition(&revisions(world, "levels").await[0], "Reconciling").is_null());
        restart_writes_nothing(world).await;
    });
}

#[test]
fn pods_that_never_become_ready_return_the_only_moved_server_to_the_very_same_template() {
    play(scenario(), async |world| {
        servers(world).await;
        let before = templates(world).await;
        world.apply(&levels("DEBUG", STEPS)).await;
        let moved = fail_first(world).await;
        let paused = until_rollout(world, "levels", "paused: SlowToStart").await;
        assert_eq!(paused["status"]["reason"], "RolloutPaused");
        assert!(is_true(&paused, "Reconciling"), "slow pods can become ready without a person: {paused:#}");
        assert_eq!(with_level(world, "DEBUG").await, moved, "a paused rollout moves no further object");
        let returned = until_state(world, "levels", "Quarantined").await;
        let status = &returned["status"];
        assert_eq!(status["reason"], "Returned");
        let message = text(&status["message"]);
        for told in ["step 1 of 3", "not ready for 1m", "MCPServer test/", "of the 5 other objects, 0 became"] {
            assert!(message.contains(told), "{told}: {message}");
        }
        until_moved(world, "DEBUG", 0).await;
        assert_eq!(templates(world).await, before, "the old ReplicaSets serve again");
        for server in &moved {
            world.pods_of(&format!("mcpserver-{server}"), PodFate::ReadyAfter(Duration::ZERO));
        }
        for number in 0..SERVERS {
            world.until_ready(&format!("MCPServer/s{number}")).await;
        }
        world.quiet().await;
        assert_eq!(world.counted("kaos_operator_rollout_returned_total", &[r#"cause="harm""#]), 1.0);
        // Apply a package of another name with the same content. It must go into quarantine, too.
        let mut again = levels("DEBUG", STEPS);
        again["metadata"]["name"] = json!("renamed");
        world.delete("kaos-system:ConfigMap/levels").await;
        world.apply(&again).await;
        assert_eq!(until_state(world, "renamed", "Quarantined").await["status"]["reason"], "Returned");
        assert_eq!(templates(world).await, before);
    });
}

#[test]
fn slow_pods_pause_a_rollout_which_goes_on_when_they_are_ready() {
    play(scenario(), async |world| {
        servers(world).await;
        world.apply(&levels("DEBUG", STEPS)).await;
        let moved = fail_first(world).await;
        let paused = until_rollout(world, "levels", "step 1 of 3 (1): 1 of 6 objects moved, paused: SlowToStart").await;
        let events = world.events(&format!("kaos-system:PolicyRevision/{}", name(&paused))).await;
        assert!(events.iter().any(|(of, reason, _)| of == "Warning" && reason == "RolloutPaused"), "{events:?}");
        assert_eq!(world.counted("kaos_operator_rollout_paused", &[r#"reason="SlowToStart""#]), 1.0);
        for server in &moved {
            world.pods_of(&format!("mcpserver-{server}"), PodFate::ReadyAfter(Duration::ZERO));
        }
        until_rollout(world, "levels", "step 2 of 3").await;
        until_rollout(world, "levels", "6 of 6 objects moved").await;
        until_moved(world, "DEBUG", SERVERS).await;
    });
}

#[test]
fn trouble_of_the_whole_cluster_pauses_and_does_not_return() {
    play(scenario(), async |world| {
        servers(world).await;
        world.apply(&levels("DEBUG", STEPS)).await;
        until_rollout(world, "levels", "step 1 of 3").await;
        world.pods(PodFate::NotReady);
        let paused = until_rollout(world, "levels", "paused: ClusterTrouble").await;
        assert!(is_true(&paused, "Reconciling"), "the trouble can end without a person: {paused:#}");
        world.pods(PodFate::ReadyAfter(Duration::ZERO));
        until_moved(world, "DEBUG", SERVERS).await;
        assert_eq!(states(world, "levels").await, ["Active"]);
    });
}

#[test]
fn an_operator_that_ends_midway_goes_on_with_the_same_objects() {
    play(scenario(), async |world| {
        servers(world).await;
        world.apply(&levels("ERROR", "")).await;
        until_moved(world, "ERROR", SERVERS).await;
        world.apply(&levels("DEBUG", STEPS)).await;
        let one = until_moved(world, "DEBUG", 1).await;
        let before = until_rollout(world, "levels", "step 1 of 3 (1): 1 of 6").await;
        world.crash().await;
        world.start().await;
        world.pass_time(Duration::from_secs(5)).await;
        assert_eq!(with_level(world, "DEBUG").await, one);
        assert_eq!(with_level(world, "ERROR").await.len(), SERVERS - 1, "the predecessor serves the other objects");
        let half = until_moved(world, "DEBUG", 3).await;
        assert!(one.is_subset(&half));
        let after = until_rollout(world, "levels", "step 2 of 3").await;
        assert_eq!(after["status"]["rollout"]["salt"], before["status"]["rollout"]["salt"]);
        let is_counted = |it: &Value| it["status"]["state"] == "Yielding" && it["status"]["objects"] == 3;
        let counted = async || revisions(world, "levels").await.iter().any(is_counted);
        world.until_true("the predecessor serves three servers", counted).await;
        world.crash().await;
        world.start().await;
        until_moved(world, "DEBUG", SERVERS).await;
        until_state(world, "levels", "Superseded").await;
        assert_eq!(states(world, "levels").await.iter().filter(|state| *state == "Active").count(), 1);
    });
}

#[test]
fn a_staged_policy_moves_namespaces_as_a_whole_and_new_objects_by_the_same_rule() {
    play(scenario(), async |world| {
        let all = widgets(world).await;
        let rollout = "rollout: {mode: staged, by: namespace, steps: [1, 100%], pause: 30s, patience: 1m}";
        world.apply(&package("widgets", "2", rollout)).await;
        until_rollout(world, "widgets", "step 1 of 2 (1): 6 of 12 objects moved").await;
        world.pass_time(Duration::from_secs(3)).await;
        let mut of = BTreeMap::new();
        for config_map in &all {
            let namespace = config_map.split(':').next().unwrap().to_owned();
            let edition = world.look(config_map).await["data"]["edition"].clone();
            of.entry(namespace).or_insert_with(BTreeSet::new).insert(text(&edition).to_owned());
        }
        assert!(of.values().all(|editions| editions.len() == 1) && of["test"] != of["other"], "{of:?}");
        let (moved, left) = if of["test"].contains("2") { ("test", "other") } else { ("other", "test") };
        for namespace in [moved, left] {
            world.apply(&widget_in(namespace, "new", &json!({}))).await;
        }
        until_edition(world, &format!("{moved}:ConfigMap/new"), "2").await;
        until_edition(world, &format!("{left}:ConfigMap/new"), "1").await;
        for config_map in &all {
            until_edition(world, config_map, "2").await;
        }
    });
}

#[test]
fn a_person_pauses_resumes_promotes_and_returns_a_rollout() {
    play(scenario(), async |world| {
        let all = widgets(world).await;
        world.apply(&package("widgets", "2", STEPS)).await;
        let moving = until_rollout(world, "widgets", "step 1 of 3").await;
        steer(world, &moving, "pause", "alice").await;
        let paused = until_rollout(world, "widgets", "paused: PausedByPerson").await;
        assert_eq!(paused["status"]["rollout"]["paused"]["by"], "alice");
        assert!(is_true(&paused, "Stalled"), "{paused:#}");
        compare("revision-rollout-paused", &Verdict::Fails.record(&paused));
        world.pass_time(Duration::from_mins(5)).await;
        let still = until_rollout(world, "widgets", "step 1 of 3").await;
        steer(world, &moving, "promote", "mallory").await;
        world.pass_time(Duration::from_secs(30)).await;
        until_rollout(world, "widgets", "paused: PausedByPerson").await;
        steer(world, &still, "resume", "bob").await;
        let second = until_rollout(world, "widgets", "step 2 of 3 (50%): 6 of 12 objects moved").await;
        steer(world, &second, "return", "carol").await;
        let returned = until_state(world, "widgets", "Quarantined").await;
        assert!(text(&returned["status"]["message"]).contains("carol returned"), "{returned:#}");
        for config_map in &all {
            until_edition(world, config_map, "1").await;
        }
        until_state(world, "widgets", "Active").await;
        world.apply(&package("widgets", "3", STEPS)).await;
        let moving = until_rollout(world, "widgets", "step 1 of 3").await;
        steer(world, &moving, "promote", "dave").await;
        for config_map in &all {
            until_edition(world, config_map, "3").await;
        }
        let done = until_rollout(world, "widgets", "12 of 12 objects moved").await;
        assert!(text(&done["status"]["message"]).contains("promoted by dave"), "{done:#}");
        assert_eq!(states(world, "widgets").await.iter().filter(|state| *state == "Active").count(), 1);
    });
}

#[test]
fn a_correction_during_a_rollout_moves_the_same_objects_first_and_the_way_back_is_at_once() {
    play(scenario(), async |world| {
        servers(world).await;
        world.apply(&levels("ERROR", "")).await;
        until_moved(world, "ERROR", SERVERS).await;
        world.apply(&levels("DEBUG", STEPS)).await;
        let one = until_moved(world, "DEBUG", 1).await;
        world.apply(&levels("WARNING", STEPS)).await;
        assert_eq!(until_moved(world, "WARNING", 1).await, one);
        assert_eq!(with_level(world, "ERROR").await.len(), SERVERS - 1, "no other server saw the first attempt");
        world.apply(&levels("ERROR", "")).await;
        until_moved(world, "ERROR", SERVERS).await;
        assert_eq!(states(world, "levels").await.iter().filter(|state| *state == "Active").count(), 1);
        let states = states(world, "levels").await;
        assert!(!states.contains(&"Yielding".to_owned()), "{states:?}");
    });
}

#[test]
fn a_step_keeps_the_allowed_number_of_pods_not_ready() {
    play(scenario(), async |world| {
        servers(world).await;
        let rollout = "rollout: {mode: staged, steps: [1, 100%], pause: 30s, patience: 5m, maxUnavailable: 2}";
        world.apply(&levels("DEBUG", rollout)).await;
        until_rollout(world, "levels", "step 1 of 2").await;
        world.pods(PodFate::ReadyAfter(Duration::from_secs(15)));
        let (mut moved, mut most) = (0, 0);
        while moved < SERVERS || most == 0 {
            world.pass_time(Duration::from_secs(1)).await;
            moved = with_level(world, "DEBUG").await.len();
            let mut unavailable = 0;
            for number in 0..SERVERS {
                let server = world.look(&format!("MCPServer/s{number}")).await;
                unavailable += usize::from(!is_true(&server, "Ready"));
            }
            assert!(unavailable <= 2, "{unavailable} servers are not ready");
            most = most.max(unavailable);
        }
        assert_eq!(most, 2, "the step uses what is allowed");
        until_rollout(world, "levels", "6 of 6 objects moved").await;
    });
}

#[test]
fn a_rename_during_a_rollout_moves_the_same_objects_first_and_no_other_object_changes() {
    play(scenario(), async |world| {
        servers(world).await;
        world.apply(&levels("ERROR", "")).await;
        until_moved(world, "ERROR", SERVERS).await;
        world.apply(&levels("DEBUG", STEPS)).await;
        let one = until_moved(world, "DEBUG", 1).await;
        let mut renamed = levels("WARNING", STEPS);
        renamed["metadata"]["name"] = json!("levels-renamed");
        world.apply(&renamed).await;
        let waits = until_state(world, "levels-renamed", "Pending").await;
        assert_eq!(waits["status"]["reason"], "AnotherRollout", "{waits:#}");
        world.delete("kaos-system:ConfigMap/levels").await;
        assert_eq!(until_moved(world, "WARNING", 1).await, one);
        assert_eq!(with_level(world, "ERROR").await.len(), SERVERS - 1, "no other server saw a change");
        until_moved(world, "WARNING", SERVERS).await;
        until_rollout(world, "levels-renamed", "6 of 6 objects moved").await;
    });
}

#[test]
fn a_package_waits_for_another_rollout_over_the_same_objects() {
    play(scenario(), async |world| {
        servers(world).await;
        world.apply(&levels("DEBUG", STEPS)).await;
        until_rollout(world, "levels", "step 1 of 3").await;
        let other = "name: mcpserver\nsettings: {extraAnnotations: {team: a}}\n";
        world.apply(&settings("notes", &format!("{other}{STEPS}\n"))).await;
        let waits = until_state(world, "notes", "Pending").await;
        assert_eq!(waits["status"]["reason"], "AnotherRollout", "{waits:#}");
        until_rollout(world, "levels", "6 of 6 objects moved").await;
        until_rollout(world, "notes", "6 of 6 objects moved").await;
    });
}

#[test]
fn without_steps_a_package_serves_at_once_and_the_default_of_the_operator_applies_to_all() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets", "2", "rollout: {mode: now, pause: 1h}")).await;
        until_edition(world, "ConfigMap/w", "2").await;
        let active = until_state(world, "widgets", "Active").await;
        assert!(active["status"]["rollout"].is_null(), "{active:#}");
    });
    let staged = scenario()
        .tuned(|options| options.rollout_defaults = "{mode: staged, steps: [1, 100%], pause: 30s}".parse().unwrap());
    play(staged, async |world| {
        first_edition_serves(world, &json!({})).await;
        world.apply(&package("widgets", "2", "")).await;
        let moving = until_rollout(world, "widgets", "step 1 of 2").await;
        assert_eq!(moving["status"]["rollout"]["patience"], "10m");
        world.apply(&package("widgets", "3", "rollout: {mode: now}")).await;
        until_edition(world, "ConfigMap/w", "3").await;
    });
}
