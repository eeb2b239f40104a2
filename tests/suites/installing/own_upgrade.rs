//! Tests upgrades of the operator to a version with other default policies.
#![allow(clippy::float_cmp, reason = "metrics count in floats")]

use kaos_cluster::faults::Failure;
use kaos_operator::catalogue::{DefaultPolicy, DefaultsRollout};
use kaos_tests::default_policies::{default_policy, mcp_servers_with_level};
use kaos_tests::harness::read::{name, text, uid};
use kaos_tests::harness::{Fault, World, condition, is_true, play};
use kaos_tests::widgets::component;
use serde_json::{Value, json};

use crate::staged::{SERVERS, fail_first, servers, until_moved, until_rollout, with_level};
use crate::support::{
    approve, define, restart_writes_nothing, revisions, scenario, states, until_edition, until_state, widget,
};

/// The source in the revisions of the Widgets' default policy.
pub(crate) const WIDGETS: &str = "default:widget.test.example.com";
/// The source in the revisions of the MCPServers' default policy.
const MCP_SERVERS: &str = "default:mcpserver.kaos.tools";

/// Returns an edition of the Widgets' policy as a default policy.
pub(crate) fn edition(edition: &str) -> DefaultPolicy {
    default_policy(&component(edition).unwrap(), "{}").unwrap()
}

/// Returns the default policy of MCPServers with this log level. Another log level changes all pods.
fn level(level: &str) -> DefaultPolicy {
    mcp_servers_with_level(level).unwrap()
}

/// Ends the running operator, and starts an operator with another default policy.
pub(crate) async fn upgrade(world: &World, policy: &DefaultPolicy, rollout: DefaultsRollout) {
    world.stop_all().await;
    world.bring(std::slice::from_ref(policy), rollout);
    world.start().await;
}

/// Starts the first operator, whose default policy is the first edition of the Widgets' policy. Creates the Widget `w`.
pub(crate) async fn first_operator_serves(world: &World) {
    define(world).await;
    world.apply(&widget("w", &json!({}))).await;
    world.bring(&[edition("1")], DefaultsRollout::Auto);
    world.start().await;
    until_edition(world, "ConfigMap/w", "1").await;
    until_state(world, WIDGETS, "Active").await;
    world.quiet().await;
}

/// Starts the first operator, whose default policy gives the pods of all MCPServers the level ERROR.
async fn first_operator_serves_servers(world: &World) {
    world.bring(&[level("ERROR")], DefaultsRollout::Auto);
    world.start().await;
    servers(world).await;
    until_state(world, MCP_SERVERS, "Active").await;
    assert_eq!(with_level(world, "ERROR").await.len(), SERVERS);
}

fn active(states: &[String]) -> usize {
    states.iter().filter(|state| *state == "Active").count()
}

#[test]
fn a_first_operator_serves_its_default_policies_at_once_and_records_them() {
    play(scenario().idle(), async |world| {
        first_operator_serves(world).await;
        let recorded = &revisions(world, WIDGETS).await[0];
        let status = &recorded["status"];
        assert_eq!((&status["policy"], &status["reason"]), (&json!("widget"), &json!("Active")), "{recorded:#}");
        assert_eq!(status["kinds"], json!(["test.example.com/v1 Widget"]));
        assert!(name(recorded).starts_with("default-widget.test.example.com-"), "{recorded:#}");
        let bytes = world.look(&format!("kaos-system:ConfigMap/{}", name(recorded))).await;
        assert_eq!(bytes["metadata"]["ownerReferences"][0]["uid"], uid(recorded), "{bytes:#}");
        assert_eq!(world.counted("kaos_operator_default_policies_unrecorded", &[]), 0.0);
        let object = world.look("Widget/w").await;
        assert!(condition(&object, "PolicyFallback").is_null(), "{object:#}");
    });
}

#[test]
fn an_upgrade_with_equal_default_policies_writes_nothing() {
    play(scenario().idle(), async |world| {
        first_operator_serves(world).await;
        restart_writes_nothing(world).await;
    });
}

#[test]
fn a_default_policy_that_replaces_no_pods_shows_its_effect_and_serves_at_once() {
    play(scenario().idle(), async |world| {
        first_operator_serves(world).await;
        upgrade(world, &edition("2"), DefaultsRollout::Auto).await;
        until_edition(world, "ConfigMap/w", "2").await;
        let active = until_state(world, WIDGETS, "Active").await;
        let preview = &active["status"]["preview"];
        assert_eq!((&preview["changed"], &preview["objects"]), (&json!(1), &json!(1)), "{active:#}");
        assert!(active["status"]["rollout"].is_null(), "{active:#}");
        until_state(world, WIDGETS, "Superseded").await;
        world.quiet().await;
        restart_writes_nothing(world).await;
    });
}

#[test]
fn a_default_policy_that_replaces_pods_serves_in_steps_and_arrives() {
    play(scenario().idle(), async |world| {
        first_operator_serves_servers(world).await;
        upgrade(world, &level("DEBUG"), DefaultsRollout::Auto).await;
        until_moved(world, "DEBUG", 1).await;
        let moving = until_rollout(world, MCP_SERVERS, "step 1 of 3 (1): 1 of 6 objects moved").await;
        assert_eq!(moving["status"]["preview"]["podsReplaced"], 6, "{moving:#}");
        assert!(is_true(&moving, "Reconciling"), "{moving:#}");
        assert_eq!(with_level(world, "ERROR").await.len(), SERVERS - 1);
        until_state(world, MCP_SERVERS, "Yielding").await;
        // Restart the same version of the operator. It must continue the rollout, and not begin again with another
        // object.
        world.restart().await;
        until_moved(world, "DEBUG", 3).await;
        until_moved(world, "DEBUG", SERVERS).await;
        until_state(world, MCP_SERVERS, "Superseded").await;
        world.quiet().await;
        restart_writes_nothing(world).await;
        assert_eq!(active(&states(world, MCP_SERVERS).await), 1);
    });
}

#[test]
fn a_default_policy_whose_pods_fail_returns_and_stays_aside_after_a_restart() {
    play(scenario().idle(), async |world| {
        first_operator_serves_servers(world).await;
        let mut before = Vec::new();
        for number in 0..SERVERS {
            before.push(world.look(&format!("Deployment/mcpserver-s{number}")).await["spec"]["template"].clone());
        }
        upgrade(world, &level("DEBUG"), DefaultsRollout::Auto).await;
        fail_first(world).await;
        let returned = until_state(world, MCP_SERVERS, "Quarantined").await;
        assert_eq!(returned["status"]["reason"], "Returned", "{returned:#}");
        until_moved(world, "DEBUG", 0).await;
        for (number, template) in before.iter().enumerate() {
            let now = world.look(&format!("Deployment/mcpserver-s{number}")).await;
            assert_eq!(now["spec"]["template"], *template, "the old ReplicaSets serve again");
        }
        world.quiet().await;
        restart_writes_nothing(world).await;
        assert_eq!(with_level(world, "ERROR").await.len(), SERVERS);
        // The quarantine must not apply to the default policy of a third version of the operator.
        upgrade(world, &level("WARNING"), DefaultsRollout::Now).await;
        until_moved(world, "WARNING", SERVERS).await;
    });
}

#[test]
fn the_way_back_to_the_earlier_version_has_no_steps() {
    play(scenario().idle(), async |world| {
        first_operator_serves_servers(world).await;
        upgrade(world, &level("DEBUG"), DefaultsRollout::Auto).await;
        let one = until_moved(world, "DEBUG", 1).await;
        upgrade(world, &level("ERROR"), DefaultsRollout::Auto).await;
        until_moved(world, "ERROR", SERVERS).await;
        world.quiet().await;
        assert_eq!(active(&states(world, MCP_SERVERS).await), 1);
        upgrade(world, &level("DEBUG"), DefaultsRollout::Auto).await;
        assert_eq!(until_moved(world, "DEBUG", 1).await, one, "the same server moves first");
        until_moved(world, "DEBUG", SERVERS).await;
        until_state(world, MCP_SERVERS, "Superseded").await;
        world.quiet().await;
        upgrade(world, &level("ERROR"), DefaultsRollout::Auto).await;
        until_moved(world, "ERROR", SERVERS).await;
        let restored = until_state(world, MCP_SERVERS, "Active").await;
        assert!(restored["status"]["rollout"].is_null(), "{restored:#}");
    });
}

#[test]
fn a_held_default_policy_waits_for_a_person() {
    play(scenario().idle(), async |world| {
        first_operator_serves(world).await;
        upgrade(world, &edition("2"), DefaultsRollout::Hold).await;
        let held = until_state(world, WIDGETS, "Held").await;
        assert_eq!(held["status"]["reason"], "AwaitsApproval", "{held:#}");
        assert_eq!(held["status"]["preview"]["changed"], 1, "{held:#}");
        world.restart().await;
        world.quiet().await;
        until_edition(world, "ConfigMap/w", "1").await;
        let held = until_state(world, WIDGETS, "Held").await;
        approve(world, &held, "alice").await;
        until_edition(world, "ConfigMap/w", "2").await;
    });
}

#[test]
fn the_limits_of_the_operator_apply_to_default_policies() {
    let limited = scenario().idle().tuned(|options| options.rollout_gate = "{maxObjectsChanged: 0}".parse().unwrap());
    play(limited, async |world| {
        first_operator_serves(world).await;
        upgrade(world, &edition("2"), DefaultsRollout::Now).await;
        let held = until_state(world, WIDGETS, "Held").await;
        assert_eq!(held["status"]["reason"], "TooManyObjects", "{held:#}");
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn a_recorded_policy_that_this_version_cannot_run_makes_room_at_once() {
    play(scenario().idle(), async |world| {
        first_operator_serves(world).await;
        world.refuse_to_compile(Some("EDITION=1"));
        upgrade(world, &edition("2"), DefaultsRollout::Staged).await;
        until_edition(world, "ConfigMap/w", "2").await;
        let replaced = until_state(world, WIDGETS, "Superseded").await;
        let status = &replaced["status"];
        assert_eq!(status["reason"], "NotLoaded", "{replaced:#}");
        assert!(text(&status["message"]).contains("no longer accepts the component"), "{replaced:#}");
        let events = world.events(&format!("kaos-system:PolicyRevision/{}", name(&replaced))).await;
        assert!(events.iter().any(|(of, reason, _)| of == "Warning" && reason == "NotLoaded"), "{events:?}");
        until_state(world, WIDGETS, "Active").await;
        world.refuse_to_compile(None);
        world.quiet().await;
        restart_writes_nothing(world).await;
    });
}

#[test]
fn without_the_stored_bytes_the_policy_of_the_process_serves() {
    play(scenario().idle(), async |world| {
        first_operator_serves(world).await;
        let recorded = until_state(world, WIDGETS, "Active").await;
        world.stop_all().await;
        world.delete(&format!("kaos-system:ConfigMap/{}", name(&recorded))).await;
        world.bring(&[edition("2")], DefaultsRollout::Auto);
        world.start().await;
        until_edition(world, "ConfigMap/w", "2").await;
        let replaced = until_state(world, WIDGETS, "Superseded").await;
        assert!(text(&replaced["status"]["message"]).contains("bytes are missing"), "{replaced:#}");
    });
}

#[test]
fn a_deleted_record_comes_back_with_its_bytes() {
    play(scenario().idle(), async |world| {
        first_operator_serves(world).await;
        let recorded = until_state(world, WIDGETS, "Active").await;
        world.delete(&format!("kaos-system:PolicyRevision/{}", name(&recorded))).await;
        crate::support::until_written_again(world, WIDGETS, &recorded).await;
        world.quiet().await;
        upgrade(world, &edition("2"), DefaultsRollout::Hold).await;
        until_state(world, WIDGETS, "Held").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}

#[test]
fn an_operator_that_cannot_write_records_serves_and_records_later() {
    play(scenario().idle(), async |world| {
        define(world).await;
        world.apply(&widget("w", &json!({}))).await;
        world.break_it(Fault::on(&["create"]).of("policyrevisions").fail(Failure::Server(403)));
        world.bring(&[edition("1")], DefaultsRollout::Auto);
        world.start().await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.until_hit().await;
        let unrecorded = async || world.counted("kaos_operator_default_policies_unrecorded", &[]) == 1.0;
        world.until_true("the metric counts the policy", unrecorded).await;
        world.mend();
        until_state(world, WIDGETS, "Active").await;
        let recorded = async || world.counted("kaos_operator_default_policies_unrecorded", &[]) == 0.0;
        world.until_true("the metric counts no policy", recorded).await;
    });
}

#[test]
fn an_operator_that_cannot_read_records_waits_and_names_the_right_except_with_mode_now() {
    play(scenario().idle(), async |world| {
        first_operator_serves(world).await;
        world.stop_all().await;
        world.break_it(Fault::on(&["list", "watch"]).of("policyrevisions").fail(Failure::Server(403)));
        world.bring(&[edition("2")], DefaultsRollout::Auto);
        world.spawn();
        world.until_hit().await;
        let told = async || {
            let missing = world.probe().ready().err().unwrap_or_default().join("; ");
            missing.contains("PolicyRevisions") && missing.contains("kaos-operator rbac")
        };
        world.until_true("readiness names the right", told).await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.stop_all().await;
        world.bring(&[edition("2")], DefaultsRollout::Now);
        world.spawn();
        until_edition(world, "ConfigMap/w", "2").await;
        world.mend();
    });
}

#[test]
fn packages_and_settings_of_users_apply_to_recorded_default_policies() {
    play(scenario().idle(), async |world| {
        first_operator_serves(world).await;
        let file = "name: widget\nsettings: {size: 7}\n";
        world.apply(&crate::support::settings("sizes", file)).await;
        let sized = |live: &Value| live["data"]["size"] == "7" || live["data"]["size"] == 7;
        world.until("the settings apply", "ConfigMap/w", sized).await;
        upgrade(world, &edition("2"), DefaultsRollout::Hold).await;
        until_state(world, WIDGETS, "Held").await;
        world.until("the settings still apply", "ConfigMap/w", sized).await;
        until_edition(world, "ConfigMap/w", "1").await;
        world.apply(&crate::support::package("widgets", "3", "")).await;
        until_edition(world, "ConfigMap/w", "3").await;
        world.delete("kaos-system:ConfigMap/widgets").await;
        until_edition(world, "ConfigMap/w", "1").await;
    });
}
