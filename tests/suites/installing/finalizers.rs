//! Tests finalizers that come from settings, also if the settings change, or if a user deletes the object while no
//! operator runs.

use kaos_tests::harness::read::finalizers;
use kaos_tests::harness::requests::Sort;
use kaos_tests::harness::samples::{agent, model_api};
use kaos_tests::harness::{World, play};
use serde_json::{Value, json};

use crate::support::{scenario, settings};

const FIRST: &str = "kaos.tools/first";
const SECOND: &str = "kaos.tools/second";

/// Returns settings that add a finalizer to Agents.
fn held_by(finalizer: &str) -> Value {
    settings("agents", &format!("{{name: agent, settings: {{finalizer: {finalizer}}}}}"))
}

/// Creates an Agent with the first finalizer, and waits until the Agent is ready.
async fn agent_is_held(world: &World) {
    world.apply(&held_by(FIRST)).await;
    world.apply_all(&[model_api("llm"), agent("a", "llm", &json!({}))]).await;
    world.until("Agent/a is held", "Agent/a", |agent| finalizers(agent) == [FIRST]).await;
    world.until_ready("Agent/a").await;
    world.quiet().await;
}

#[test]
fn finalizers_of_earlier_settings_are_removed() {
    play(scenario(), async |world| {
        agent_is_held(world).await;
        world.patch("Agent/a", &json!({"metadata": {"finalizers": [FIRST, "example.com/foreign"]}})).await;
        world.apply(&held_by(SECOND)).await;
        let next = ["example.com/foreign", SECOND];
        world.until("the second policy's finalizer is set", "Agent/a", |agent| finalizers(agent) == next).await;
        world.delete("kaos-system:ConfigMap/agents").await;
        world
            .until("no policy's finalizer is set", "Agent/a", |agent| finalizers(agent) == ["example.com/foreign"])
            .await;
        world.quiet().await;
        world.forget_requests();
        world.patch("Agent/a", &json!({"metadata": {"annotations": {"touch": "1"}}})).await;
        world.quiet().await;
        assert_eq!((world.writes(), world.reads()), (Vec::new(), Vec::new()));
    });
}

#[test]
fn an_object_deleted_during_a_downtime_is_cleaned_up_and_released() {
    play(scenario(), async |world| {
        agent_is_held(world).await;
        world.stop_all().await;
        world.delete("Agent/a").await;
        assert_eq!(finalizers(&world.look("Agent/a").await), [FIRST]);
        world.forget_requests();
        world.start().await;
        world.until_gone("Agent/a").await;
        let writes = world.requests(Sort::Write);
        let is_taken_down =
            writes.iter().any(|it| it.attempt.verb.name() == "delete" && it.attempt.resource == "deployments");
        assert!(is_taken_down, "the children must be deleted before the Agent: {writes:#?}");
        world.until_gone("Deployment/agent-a").await;
    });
}
