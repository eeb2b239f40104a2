//! Tests overlays that change plans: the registries of images, the placement of pods, and sidecars. If a user removes
//! an overlay, the plan of the policy below the overlay applies again.

use kaos_tests::guests;
use kaos_tests::harness::kinds::Kind;
use kaos_tests::harness::read::controller;
use kaos_tests::harness::{World, condition, play, reason, samples};
use serde_json::{Value, json};

use crate::support::{packed, revisions, scenario, until_state};

const AGENT: &str = "Deployment/agent-a";

/// Creates a ModelAPI and the Agent `a`, and waits until the Agent is ready. Returns the Agent's Deployment.
async fn agent_serves(world: &World) -> Value {
    world.apply_all(&[samples::model_api("llm"), samples::agent("a", "llm", &json!({}))]).await;
    world.until_ready("Agent/a").await;
    world.look(AGENT).await
}

fn pod(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]
}

/// Returns the images of all containers of a Deployment, including init containers.
fn images(deployment: &Value) -> Vec<String> {
    let lists = ["initContainers", "containers"].map(|list| pod(deployment)[list].as_array());
    lists.into_iter().flatten().flatten().map(|it| it["image"].as_str().unwrap().to_owned()).collect()
}

/// Returns a number that grows with each change of a Deployment's spec.
///
/// Kubernetes makes a rollout for each change of the pod template.
fn changes(deployment: &Value) -> i64 {
    deployment["metadata"]["generation"].as_i64().unwrap()
}

/// Removes a package, and waits until the Agent's Deployment again has the template in `before`. Checks that the
/// Deployment changed only once, so that Kubernetes made only one rollout.
async fn removal_restores(world: &World, package: &str, before: &Value) {
    let amended = world.look(AGENT).await;
    world.delete(&format!("kaos-system:ConfigMap/{package}")).await;
    let is_as_before = |live: &Value| live["spec"]["template"] == before["spec"]["template"];
    world.until("it is as before", AGENT, is_as_before).await;
    world.quiet().await;
    let after = world.look(AGENT).await;
    assert_eq!(changes(&after), changes(&amended) + 1, "one rollout");
    assert_eq!(after["spec"], before["spec"]);
    assert_eq!(after["metadata"]["labels"], before["metadata"]["labels"]);
}

#[test]
fn an_overlay_changes_the_registry_of_every_image_and_its_removal_restores_the_plan() {
    play(scenario(), async |world| {
        let mirror = guests::mirror().unwrap();
        world.apply(&samples::mcp_server("tools")).await;
        let before = agent_serves(world).await;
        let all = ["Deployment/agent-a", "Deployment/modelapi-llm", "Deployment/mcpserver-tools"];
        world.apply(&packed("mirror", Some(&mirror), "settings: {registry: mirror.test:5000/hub}")).await;
        let moved = |live: &Value| images(live).iter().all(|image| image.starts_with("mirror.test:5000/hub/"));
        for deployment in all {
            world.until("its images come from the mirror", deployment, moved).await;
        }
        assert_eq!(until_state(world, "mirror", "Active").await["status"]["policy"], "mirror");
        world.quiet().await;
        assert_eq!(changes(&world.look(AGENT).await), changes(&before) + 1, "one rollout");
        assert_eq!(world.look("Agent/a").await["status"]["policy"]["name"], "agent", "the policy below reports");
        removal_restores(world, "mirror", &before).await;
        for deployment in all {
            let live = world.until("its images are as before", deployment, |live| !moved(live)).await;
            assert!(images(&live).iter().all(|image| !image.starts_with("mirror.test")), "{live}");
        }
    });
}

#[test]
fn a_script_can_be_an_overlay() {
    play(scenario(), async |world| {
        let before = agent_serves(world).await;
        let script = include_str!("../../../guest-policies/overlay-template/javascript/policy.js");
        let with = |script: &str, registry: &str| {
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "mirror", "namespace": "kaos-system", "labels": {"kaos.tools/policy": "package"}},
                "data": {"policy.js": script, "policy.yaml": format!("settings: {{registry: '{registry}'}}")}})
        };
        world.apply(&with(script, "mirror.test:5000/hub")).await;
        let moved = |live: &Value| images(live).iter().all(|image| image.starts_with("mirror.test:5000/hub/"));
        world.until("its images come from the mirror", AGENT, moved).await;
        assert_eq!(until_state(world, "mirror", "Active").await["status"]["policy"], "mirror");
        // Edit the script so that it never ends. The gate must refuse the new version with a message that names the
        // line, and the previous version must keep serving.
        let endless = script.replace("  return below;", "  while (below) {}");
        world.apply(&with(&endless, "mirror.test:5000/hub")).await;
        let refused = until_state(world, "mirror", "Refused").await;
        let line = script.lines().position(|line| line == "  return below;").unwrap() + 1;
        let message = refused["status"]["message"].as_str().unwrap();
        assert!(
            message.contains(&format!("policy.js:{line}:")) && message.contains("amend ran out of fuel"),
            "{message}"
        );
        world.quiet().await;
        assert_eq!(changes(&world.look(AGENT).await), changes(&before) + 1, "one rollout");
        world.restart().await;
        world.quiet().await;
        removal_restores(world, "mirror", &before).await;
    });
}

#[test]
fn an_overlay_adds_tolerations_and_labels_and_follows_its_settings() {
    play(scenario(), async |world| {
        let placement = guests::example("placement").unwrap();
        let before = agent_serves(world).await;
        let with = |team: &str| {
            let file = format!("settings: {{labels: {{team: {team}}}, tolerations: [{{key: gpu, operator: Exists}}]}}");
            packed("placement", Some(&placement), &file)
        };
        let team = |live: &Value| live["spec"]["template"]["metadata"]["labels"]["team"].clone();
        world.apply(&with("red")).await;
        let placed = world.until("it has the label", AGENT, |live| team(live) == "red").await;
        assert_eq!(pod(&placed)["tolerations"], json!([{"key": "gpu", "operator": "Exists"}]));
        assert_eq!(images(&placed), images(&before), "the rest is the policy's below");
        world.apply(&with("blue")).await;
        world.until("it has the new label", AGENT, |live| team(live) == "blue").await;
        world.quiet().await;
        assert_eq!(changes(&world.look(AGENT).await), changes(&before) + 2, "a rollout for each change");
        removal_restores(world, "placement", &before).await;
    });
}

#[test]
fn an_overlay_adds_a_sidecar_with_a_child_of_its_own() {
    play(scenario(), async |world| {
        let sidecar = guests::example("sidecar").unwrap();
        let before = agent_serves(world).await;
        world.apply(&packed("sidecar", Some(&sidecar), "settings: {target: 'http://logs:1'}")).await;
        let containers = |live: &Value| pod(live)["containers"].as_array().map(Vec::len);
        let with = world.until("it has the sidecar", AGENT, |live| containers(live) > containers(&before)).await;
        let added = pod(&with)["containers"].as_array().unwrap().last().unwrap();
        assert_eq!(added["env"], json!([{"name": "TARGET", "value": "http://logs:1"}]), "{added}");
        let config = world.until("its file is there", "ConfigMap/a-forwarder", |live| !live.is_null()).await;
        assert_eq!(controller(&config)["name"], "a");
        // Delete a child that the overlay added. The operator must create it again, like every other child.
        world.delete("ConfigMap/a-forwarder").await;
        world.until("its file is there again", "ConfigMap/a-forwarder", |live| !live.is_null()).await;
        world.restart().await;
        world.quiet().await;
        assert_eq!(changes(&world.look(AGENT).await), changes(&before) + 1, "one rollout");
        removal_restores(world, "sidecar", &before).await;
        let config_maps = world.list_in(Kind::named("ConfigMap"), "test").await;
        let named = |of: &Value| of["metadata"]["name"] == "a-forwarder";
        assert!(!config_maps.iter().any(named), "the child of the overlay goes with the overlay");
    });
}

#[test]
fn an_overlay_that_breaks_a_rule_for_one_object_is_left_out_for_this_object() {
    play(scenario(), async |world| {
        let sidecar = guests::example("sidecar").unwrap();
        let before = agent_serves(world).await;
        let annotated = |name: &str, annotation: &str, value: &str| {
            let mut agent = samples::agent(name, "llm", &json!({}));
            agent["metadata"]["annotations"] = json!({annotation: value});
            agent
        };
        world.apply(&annotated("logs", "example.org/node-logs", "all")).await;
        world.apply(&annotated("token", "example.org/token", "of-another-user")).await;
        world.apply(&packed("sidecar", Some(&sidecar), "")).await;
        let has_sidecar = |live: &Value| {
            let list = pod(live)["containers"].as_array();
            list.is_some_and(|list| list.iter().any(|container| container["name"] == "forwarder"))
        };
        world.until("it has the sidecar", AGENT, has_sidecar).await;
        for (agent, rule, what) in
            [("logs", "NoPrivilege", "hostPath"), ("token", "NamedReferences", "of-another-user")]
        {
            let fell_back = |told: &Value| condition(told, "PolicyFallback")["status"] == "True";
            let told = world.until("the overlay is left out", &format!("Agent/{agent}"), fell_back).await;
            let message = condition(&told, "PolicyFallback")["message"].as_str().unwrap().to_owned();
            for part in ["policy sidecar 0.1.0", rule, what] {
                assert!(message.contains(part), "{part}: {message}");
            }
            assert_eq!(reason(&told, "PolicyFallback"), "FellBack");
            world.until_ready(&format!("Agent/{agent}")).await;
            let live = world.look(&format!("Deployment/agent-{agent}")).await;
            assert!(!has_sidecar(&live), "the policy below serves: {live}");
            assert_eq!(images(&live), images(&before));
        }
        world.quiet().await;
        let states: Vec<_> = revisions(world, "sidecar").await;
        assert_eq!(states[0]["status"]["state"], "Active", "it serves the other Agent: {states:?}");
    });
}
