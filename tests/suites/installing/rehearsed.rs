//! Tests plans that the API server rejects in a dry run. The status must show the same reason as after a rejected
//! apply.

use kaos_cluster::faults::Failure;
use kaos_tests::harness::samples::{agent, model_api};
use kaos_tests::harness::{Fault, condition, is_true, play, reason};
use serde_json::json;

use crate::candidates::good;
use crate::support::{first_edition_serves, scenario, until_edition, until_state, widget};

#[test]
fn revoked_rights_are_reported_and_children_are_repaired_once_they_are_back() {
    play(scenario(), async |world| {
        first_edition_serves(world, &json!({})).await;
        world.until_ready("Widget/w").await;
        world.embedded().authorise(|attempt| {
            attempt.verb.name() != "patch" || attempt.resource != "configmaps" || attempt.name != "w"
        });
        world.apply(&widget("w", &json!({"edition": "any"}))).await;
        let told = world
            .until("Widget/w has the reason NotPermitted for Applied", "Widget/w", |widget| {
                reason(widget, "Applied") == "NotPermitted"
            })
            .await;
        assert!(is_true(&told, "Accepted"), "{told:#}");
        assert_eq!(told["status"]["observedGeneration"], told["metadata"]["generation"]);
        let message = condition(&told, "Applied")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("configmaps"), "{message}");
        world.until_warned("Widget/w", "NotPermitted").await;
        world.embedded().allow_everything();
        until_edition(world, "ConfigMap/w", "0").await;
        world.until_ready("Widget/w").await;
    });
}

#[test]
fn a_temporary_rejection_is_reported_if_it_lasts_and_heals() {
    for failure in [Failure::Server(500), Failure::Server(503), Failure::Throttled(2), Failure::Conflict] {
        play(scenario(), async |world| {
            first_edition_serves(world, &json!({})).await;
            world.until_ready("Widget/w").await;
            world.break_it(Fault::on(&["patch"]).of("configmaps").named("w").fail(failure));
            world.apply(&widget("w", &json!({"edition": "any"}))).await;
            let told = world
                .until("Widget/w has the reason ApplyFailed for Applied", "Widget/w", |widget| {
                    reason(widget, "Applied") == "ApplyFailed"
                })
                .await;
            assert!(is_true(&told, "Accepted"), "{failure:?}: {told:#}");
            assert_eq!(told["status"]["observedGeneration"], told["metadata"]["generation"], "{failure:?}");
            world.mend();
            until_edition(world, "ConfigMap/w", "0").await;
            world.until_ready("Widget/w").await;
        });
    }
}

#[test]
fn an_unknown_field_of_a_user_is_reported_and_counts_against_no_policy() {
    play(scenario(), async |world| {
        world.apply(&good(0).config_map).await;
        until_state(world, "agents", "Active").await;
        world.apply(&model_api("llm")).await;
        world.until_ready("ModelAPI/llm").await;
        world.apply(&agent("a", "llm", &json!({"podSpec": {"nodeSelectr": {"disk": "ssd"}}}))).await;
        let told = world
            .until("Agent/a has the reason ApplyFailed for Applied", "Agent/a", |agent| {
                reason(agent, "Applied") == "ApplyFailed"
            })
            .await;
        let message = condition(&told, "Applied")["message"].as_str().unwrap().to_owned();
        assert!(message.contains("nodeSelectr"), "{message}");
        world.until_warned("Agent/a", "ApplyFailed").await;
        world.quiet().await;
        until_state(world, "agents", "Active").await;
        world.apply(&agent("a", "llm", &json!({"podSpec": {"nodeSelector": {"disk": "ssd"}}}))).await;
        let told = world.until_ready("Agent/a").await;
        assert!(condition(&told, "PolicyFallback").is_null(), "{told:#}");
    });
}
