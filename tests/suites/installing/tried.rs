//! Settings are tried when they are shipped: what would break every object is not let in.

use kaos_tests::harness::play;
use kaos_tests::harness::samples::{agent, model_api};
use serde_json::json;

use crate::support::{scenario, settings, until_state};

#[test]
fn settings_that_no_pod_can_have_are_refused_before_any_object_meets_them() {
    play(scenario(), async |world| {
        world.apply_all(&[model_api("llm"), agent("a", "llm", &json!({}))]).await;
        world.until_ready("Agent/a").await;
        let file = |more: &str| format!("name: agent\nsettings: {{image: 'x:2', {more}}}\n");
        world.apply(&settings("tuned", &file("resources: {limit: {memory: 1Gi}}"))).await;
        let refused = until_state(world, "tuned", "Refused").await;
        let status = &refused["status"];
        assert_eq!(status["reason"], "BadSettings", "{status}");
        let told = status["message"].as_str().unwrap();
        assert!(
            told.contains("resources.limit: Kubernetes 1.36 has no field")
                && told.contains("setting agent.resources.limit"),
            "{told}"
        );
        world.until_ready("Agent/a").await;
        world.apply(&settings("tuned", &file("resources: {limits: {memory: 1Gi}}"))).await;
        until_state(world, "tuned", "Active").await;
        world
            .until("it holds", "Deployment/agent-a", |it| {
                it["spec"]["template"]["spec"]["containers"][0]["image"] == "x:2"
            })
            .await;
    });
}
