//! B11: fields that a user removes from an object. The children lose these fields, but keep fields that other clients
//! set. The module `unset_each` tests each field of the recorded cases.

use kaos_tests::harness::samples::{agent, mcp_server, model_api};
use kaos_tests::harness::{Scenario, play};
use serde_json::{Value, json};

fn account(deployment: &Value) -> (&Value, &Value) {
    let pod = &deployment["spec"]["template"]["spec"];
    (&pod["serviceAccountName"], &pod["serviceAccount"])
}

#[test]
fn pods_drop_a_service_account_that_was_removed_from_their_object() {
    play(Scenario::default(), async |w| {
        w.apply(&model_api("models")).await;
        let mut server = mcp_server("tools");
        server["spec"]["serviceAccountName"] = json!("sa");
        w.apply(&server).await;
        let spec = |field: &str| json!({"podSpec": {"containers": [], field: "sa"}});
        w.apply(&agent("newer", "models", &spec("serviceAccountName"))).await;
        w.apply(&agent("older", "models", &spec("serviceAccount"))).await;
        let children = ["Deployment/mcpserver-tools", "Deployment/agent-newer", "Deployment/agent-older"];
        let runs_as_it = |all: &[Value]| all.iter().all(|child| account(child) == (&json!("sa"), &json!("sa")));
        w.until_all("the pods use the ServiceAccount", &children, runs_as_it).await;
        w.apply(&mcp_server("tools")).await;
        w.apply(&agent("newer", "models", &json!({}))).await;
        w.apply(&agent("older", "models", &json!({}))).await;
        let runs_as_nobody = |all: &[Value]| all.iter().all(|child| account(child) == (&Value::Null, &Value::Null));
        w.until_all("the pods no longer use the ServiceAccount", &children, runs_as_nobody).await;
        // The first rollout creates the pods with the ServiceAccount. The removal of the field may cause one more
        // rollout.
        w.quiet().await;
        for child in children {
            assert!(w.rollouts(child.trim_start_matches("Deployment/")).await <= 2, "{child}");
        }
    });
}

#[test]
fn pods_drop_a_service_account_left_by_an_earlier_operator() {
    play(Scenario::default(), async |w| {
        w.apply(&mcp_server("tools")).await;
        w.until("the Deployment exists", "Deployment/mcpserver-tools", |child| !child.is_null()).await;
        w.stop_all().await;
        // A user sets the field with an apply, and then applies the object without the field. The server keeps the
        // field's deprecated alias, which no field manager owns, and sets the field again from this alias.
        let mut edited = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "mcpserver-tools"},
            "spec": {"template": {"spec": {"serviceAccountName": "sa"}}}});
        w.apply_as("left", &edited).await.unwrap();
        edited.as_object_mut().unwrap().remove("spec");
        w.apply_as("left", &edited).await.unwrap();
        let left = w.look("Deployment/mcpserver-tools").await;
        assert_eq!(account(&left), (&json!("sa"), &json!("sa")), "the server derives one from the other");
        w.start().await;
        let is_clear = |child: &Value| account(child) == (&Value::Null, &Value::Null);
        w.until("the pods no longer use the ServiceAccount", "Deployment/mcpserver-tools", is_clear).await;
    });
}

#[test]
fn pods_drop_a_left_service_account_also_where_the_server_always_stores_another_value() {
    play(Scenario::default(), async |w| {
        w.apply(&model_api("models")).await;
        // The server replaces the empty path with a default, so the stored child always differs from the plan.
        let side = json!({"name": "side", "image": "side:1", "terminationMessagePath": ""});
        w.apply(&agent("a", "models", &json!({"podSpec": {"containers": [side]}}))).await;
        w.until("the Deployment exists", "Deployment/agent-a", |child| !child.is_null()).await;
        w.stop_all().await;
        let mut edited = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "agent-a"},
            "spec": {"template": {"spec": {"serviceAccountName": "sa"}}}});
        w.apply_as("left", &edited).await.unwrap();
        edited.as_object_mut().unwrap().remove("spec");
        w.apply_as("left", &edited).await.unwrap();
        let left = w.look("Deployment/agent-a").await;
        assert_eq!(account(&left), (&json!("sa"), &json!("sa")), "the server derives one from the other");
        let containers = left["spec"]["template"]["spec"]["containers"].as_array().cloned().unwrap_or_default();
        let side = containers.iter().find(|container| container["name"] == "side").unwrap();
        assert_eq!(side["terminationMessagePath"], "/dev/termination-log");
        w.start().await;
        let is_clear = |child: &Value| account(child) == (&Value::Null, &Value::Null);
        w.until("the pods no longer use the ServiceAccount", "Deployment/agent-a", is_clear).await;
    });
}

#[test]
fn a_service_account_set_by_others_stays_and_causes_no_writes() {
    play(Scenario::default(), async |w| {
        w.apply(&mcp_server("tools")).await;
        w.until("the Deployment exists", "Deployment/mcpserver-tools", |child| !child.is_null()).await;
        let edited = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "mcpserver-tools"},
            "spec": {"template": {"spec": {"serviceAccountName": "theirs"}}}});
        w.apply_as("somebody", &edited).await.unwrap();
        w.quiet().await;
        let child = w.look("Deployment/mcpserver-tools").await;
        assert_eq!(account(&child).0, "theirs");
    });
}

#[test]
fn a_volume_without_a_source_can_get_one() {
    play(Scenario::default(), async |w| {
        w.apply(&model_api("models")).await;
        let volumes = |source: Value| json!({"podSpec": {"containers": [], "volumes": [source]}});
        w.apply(&agent("a", "models", &volumes(json!({"name": "v"})))).await;
        let source = |child: &Value| child["spec"]["template"]["spec"]["volumes"][0].clone();
        w.until("Deployment/agent-a is empty", "Deployment/agent-a", |child| source(child)["emptyDir"].is_object())
            .await;
        w.apply(&agent("a", "models", &volumes(json!({"name": "v", "configMap": {"name": "c"}})))).await;
        let wanted = json!({"name": "v", "configMap": {"name": "c", "defaultMode": 420}});
        w.until("Deployment/agent-a has a source", "Deployment/agent-a", |child| source(child) == wanted).await;
    });
}

#[test]
fn a_changed_image_gets_the_default_pull_policy() {
    play(Scenario::default(), async |w| {
        w.apply(&model_api("models")).await;
        let sidecar = |image: &str| json!({"podSpec": {"containers": [{"name": "side", "image": image}]}});
        let policy = |child: &Value| {
            let containers = child["spec"]["template"]["spec"]["containers"].as_array().cloned().unwrap_or_default();
            let side = containers.iter().find(|container| container["name"] == "side");
            side.map(|side| side["imagePullPolicy"].clone()).unwrap_or_default()
        };
        for (image, wanted) in [("side:latest", "Always"), ("side:1", "IfNotPresent"), ("side", "Always")] {
            w.apply(&agent("a", "models", &sidecar(image))).await;
            w.until(&format!("{image} is pulled {wanted}"), "Deployment/agent-a", |child| policy(child) == wanted)
                .await;
        }
    });
}

#[test]
fn a_changed_image_volume_gets_the_default_pull_policy() {
    play(Scenario::default(), async |w| {
        w.apply(&model_api("models")).await;
        let volume = |image: &str| json!({"podSpec": {"containers": [], "volumes": [{"name": "v", "image": {"reference": image}}]}});
        let policy = |child: &Value| child["spec"]["template"]["spec"]["volumes"][0]["image"]["pullPolicy"].clone();
        for (image, wanted) in [("a:1", "IfNotPresent"), ("a:latest", "Always"), ("a:2", "IfNotPresent")] {
            w.apply(&agent("a", "models", &volume(image))).await;
            w.until(&format!("{image} is pulled {wanted}"), "Deployment/agent-a", |child| policy(child) == wanted)
                .await;
        }
    });
}

#[test]
fn a_probe_can_change_its_type_and_go() {
    const TYPES: [&str; 4] = ["httpGet", "tcpSocket", "exec", "grpc"];
    play(Scenario::default(), async |w| {
        w.apply(&model_api("models")).await;
        let probes = [
            json!({"httpGet": {"port": 80}}),
            json!({"tcpSocket": {"port": 80}}),
            json!({"exec": {"command": ["true"]}}),
            json!({"grpc": {"port": 80}}),
            json!({"httpGet": {"port": 81, "path": "/live"}, "periodSeconds": 20}),
            Value::Null,
        ];
        for probe in probes {
            let mut side = json!({"name": "side", "image": "side:1"});
            if !probe.is_null() {
                side["livenessProbe"] = probe.clone();
            }
            w.apply(&agent("a", "models", &json!({"podSpec": {"containers": [side]}}))).await;
            let is_as_planned = |child: &Value| {
                let containers = child["spec"]["template"]["spec"]["containers"].as_array().cloned();
                let side = containers.into_iter().flatten().find(|container| container["name"] == "side");
                let live = side.map(|side| side["livenessProbe"].clone()).unwrap_or_default();
                TYPES.iter().all(|of| live[of].is_null() == probe[of].is_null())
                    && live.is_null() == probe.is_null()
                    && (probe["httpGet"].is_null() || live["httpGet"]["port"] == probe["httpGet"]["port"])
            };
            w.until(&format!("the Deployment has the probe {probe}"), "Deployment/agent-a", is_as_planned).await;
        }
    });
}

#[test]
fn a_service_keeps_its_address_while_its_port_is_set_and_removed() {
    play(Scenario::default(), async |w| {
        w.apply(&mcp_server("tools")).await;
        let service = "Service/mcpserver-tools";
        let before = w.until("the Service has an address", service, |it| it["spec"]["clusterIP"].is_string()).await;
        let mut annotated = mcp_server("tools");
        annotated["metadata"]["annotations"] = json!({"settings.kaos.tools/servicePort": "9999"});
        w.apply(&annotated).await;
        w.until("the Service has the port", service, |it| it["spec"]["ports"][0]["port"] == 9999).await;
        w.apply(&mcp_server("tools")).await;
        let is_back = |it: &Value| it["spec"]["ports"] == before["spec"]["ports"];
        let after = w.until("the Service has only its former ports", service, is_back).await;
        assert_eq!(after["spec"], before["spec"]);
    });
}
