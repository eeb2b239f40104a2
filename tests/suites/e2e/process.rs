//! Tests the operator as a process: its HTTP pages, its reaction to signals, and rights that it gets while it runs.

use kaos_tests::harness::read::{counted, text};
use kaos_tests::harness::samples::model_api;
use kaos_tests::harness::{World, is_ready};
use serde_json::{Value, json};

use crate::support::{LEASE, Release, SYSTEM, USER, ending, until, until_image, until_ready};

fn many(count: usize) -> Vec<Value> {
    (0..count).map(|number| model_api(&format!("llm-{number}"))).collect()
}

async fn ready_of(world: &World) -> usize {
    world.list("ModelAPI").await.iter().filter(|object| is_ready(object)).count()
}

#[tokio::test]
async fn the_operators_pages_show_health_and_metrics() {
    let release = Release::install(&[]).await;
    let operator = release.working_operator().await;
    let world = release.world("pages").await;
    world.apply(&model_api("llm")).await;
    until_ready(&world, &[model_api("llm")]).await;
    // Wait for the metric: the operator counts an object only at the end of the pass, after the status write.
    let counted = r#"kaos_operator_objects{group="kaos.tools",kind="ModelAPI",ready="true"} 1"#;
    until("the metric counts the object", &operator, || operator.get("/metrics").contains(counted)).await;
    let page = operator.get("/metrics");
    for line in [
        "kaos_operator_leader 1\n",
        r#"kaos_operator_policy_info{group="kaos.tools",kind="ModelAPI","#,
        r#"kaos_operator_watch_state{group="apps",kind="Deployment",state="synced"} 1"#,
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
    assert!(page.ends_with("# EOF\n"), "{page}");
    assert!(operator.get("/livez").starts_with("HTTP/1.1 200"));
    let known = operator.get("/debug/objects/ModelAPI/pages/llm");
    assert!(known.starts_with("HTTP/1.1 200") && known.contains("modelapi-llm"), "{known}");
}

#[tokio::test]
async fn a_signal_ends_the_operator_in_order_and_releases_the_lease() {
    let release = Release::install(&[]).await;
    let operator = release.working_operator().await;
    let (system, world) = (release.over(SYSTEM), release.world("drained").await);
    // Stop the operator in the middle of its work.
    world.apply_all(&many(30)).await;
    world.until_true("work has begun", async || !world.list("Deployment").await.is_empty()).await;
    operator.signal("TERM").unwrap();
    let (code, log) = ending(operator).await;
    assert_eq!(code, Some(0), "{log}");
    let lease = system.look(LEASE).await;
    assert_eq!(text(&lease["spec"]["holderIdentity"]), "", "{lease:#}");
    // The next operator starts immediately and finishes the remaining work.
    let _next = release.working_operator().await;
    until_ready(&world, &many(30)).await;
}

#[tokio::test]
async fn the_operator_names_missing_rights_and_works_once_they_are_given() {
    let release = Release::install(&["--set", "rbac.create=false"]).await;
    let world = release.world("late").await;
    world.apply(&model_api("llm")).await;
    let operator = release.operator(&[]).await;
    until("the operator names the missing rights", &operator, || {
        let page = operator.get("/readyz");
        page.starts_with("HTTP/1.1 503") && page.contains("leases")
    })
    .await;
    assert!(operator.get("/livez").starts_with("HTTP/1.1 200"));
    release.helm("upgrade", &[]).expect();
    until_ready(&world, &[model_api("llm")]).await;
    until("the operator is ready", &operator, || operator.is_ready()).await;
}

#[tokio::test]
async fn a_revoked_right_is_reported_and_used_again_once_it_is_back() {
    let release = Release::install(&[]).await;
    let operator = release.working_operator().await;
    let world = release.world("taken").await;
    release.cluster.kubectl(&["delete", "clusterrolebinding", "kaos-kaos-operator-kaos-operator-rolebinding"]).expect();
    let may_not = async || !release.cluster.may(USER, "create", "deployments.apps", "taken");
    world.until_true("the operator has lost the right", may_not).await;
    let mark = release.cluster.audit().mark().unwrap();
    world.apply_all(&many(3)).await;
    world.until_true("the API server rejects a request", async || !release.refused_since(mark).is_empty()).await;
    assert_eq!(ready_of(&world).await, 0);
    release.helm("upgrade", &[]).expect();
    until_ready(&world, &many(3)).await;
    until("all watches are back", &operator, || operator.is_ready()).await;
}

#[tokio::test]
async fn changes_during_a_downtime_are_repaired_at_the_start() {
    let release = Release::install(&[]).await;
    let world = release.world("away").await;
    world.apply_all(&many(3)).await;
    {
        let _operator = release.working_operator().await;
        until_ready(&world, &many(3)).await;
    }
    world.delete("Deployment/modelapi-llm-0").await;
    world.delete("ModelAPI/llm-1").await;
    world
        .patch(
            "Service/modelapi-llm-2",
            &json!({"spec": {"ports": [{"port": 8000, "name": "other", "targetPort": 1}]}}),
        )
        .await;
    world.until_gone("Deployment/modelapi-llm-1").await;
    let _operator = release.working_operator().await;
    world
        .until("Deployment/modelapi-llm-0 exists again", "Deployment/modelapi-llm-0", |d| {
            d["status"]["readyReplicas"] == 1
        })
        .await;
    world
        .until("Service/modelapi-llm-2 is corrected", "Service/modelapi-llm-2", |s| {
            s["spec"]["ports"][0]["name"] == "http"
        })
        .await;
    world.quiet().await;
}

#[tokio::test]
async fn a_restart_without_changes_writes_nothing_and_the_next_restart_asks_no_policy() {
    let release = Release::install(&[]).await;
    let world = release.world("restarted").await;
    world.apply_all(&many(10)).await;
    {
        let _operator = release.working_operator().await;
        until_ready(&world, &many(10)).await;
        world.quiet().await;
    }
    // Delete the proofs that the first operator may have written when it ended. Without proofs, the next operator asks
    // policies about all objects.
    let records = ["delete", "configmaps", "--selector", "kaos.tools/settled", "--namespace", SYSTEM];
    release.cluster.kubectl(&records);
    for (result, asks) in [("settled", true), ("skipped", false)] {
        let passes = [r#"kind="ModelAPI""#, &format!(r#"result="{result}""#)];
        release.over(SYSTEM).delete(LEASE).await;
        let mark = release.cluster.audit().mark().unwrap();
        let operator = release.working_operator().await;
        until("the operator has made a pass over every object", &operator, || {
            let metrics = operator.get("/metrics");
            counted(&metrics, "kaos_operator_passes_total", &passes) >= 10.0
                && counted(&metrics, "kaos_operator_queue_depth", &[]) == 0.0
        })
        .await;
        let answers = counted(&operator.get("/metrics"), "kaos_operator_policy_answers_total", &[]);
        assert_eq!(answers > 0.0, asks, "{answers} answers");
        let asked = release.cluster.audit().since(mark, USER).unwrap();
        let writes: Vec<_> = asked.iter().filter(|request| request.writes() && request.resource != "leases").collect();
        assert!(writes.is_empty(), "{writes:#?}");
        // When the operator ends, it writes proofs of the settled objects.
        operator.signal("TERM").unwrap();
        ending(operator).await;
    }
}

#[tokio::test]
async fn objects_wait_for_the_budget_of_their_namespace_until_an_operator_without_limits_serves_them() {
    let release = Release::install(&[]).await;
    let (system, world) = (release.over(SYSTEM), release.world("budgeted").await);
    let is_used_up = async || {
        let all = system.list("PolicyRevision").await;
        all.iter().any(|revision| revision["status"]["namespacesOverBudget"] == json!(["budgeted"]))
    };
    {
        let operator = release.working_operator_with(&["--namespace-passes=4"]).await;
        world.apply_all(&many(10)).await;
        world.until_true("the budget is used up", is_used_up).await;
        until("the metric counts the waiting objects", &operator, || {
            counted(&operator.get("/metrics"), "kaos_operator_objects_over_budget", &[]) > 0.0
        })
        .await;
        let is_told = async || {
            let events = world.list("Event").await;
            events.iter().any(|event| event["reason"] == "BudgetUsedUp")
        };
        world.until_true("an Event reports the budget", is_told).await;
        assert!(ready_of(&world).await < 10, "all objects are ready, so the test proves nothing");
    }
    let _operator = release.working_operator().await;
    until_ready(&world, &many(10)).await;
    world.until_true("no namespace is over its budget", async || !is_used_up().await).await;
}

#[tokio::test]
async fn a_start_with_invalid_settings_uses_the_last_good_ones() {
    let release = Release::install(&["--set", "defaultImages.litellm=registry.example/litellm:1"]).await;
    let (system, world) = (release.over(SYSTEM), release.world("unfit").await);
    let (own, deployment) = ("ConfigMap/kaos-operator-config", "Deployment/modelapi-llm");
    let fits = system.look(own).await["data"].clone();
    {
        let _operator = release.working_operator().await;
        system
            .until("the operator has stored the last good settings", "ConfigMap/kaos-operator-config-fitted", |kept| {
                kept["data"] == fits
            })
            .await;
    }
    release.is_changed();
    let image = "registry.example/litellm:2";
    // Give an existing setting and a new setting invalid values.
    let wrong = json!({"DEFAULT_TELEMETRY_ENABLED": "maybe", "GATEWAY_NAMESPACE": "no name"});
    system.patch(own, &json!({"data": wrong})).await;
    system.patch(own, &json!({"data": {"DEFAULT_LITELLM_IMAGE": image}})).await;
    // Start the operator as in a pod, where the environment also contains the data of this ConfigMap.
    let _operator = release.working_operator().await;
    world.apply(&model_api("llm")).await;
    until_ready(&world, &[model_api("llm")]).await;
    until_image(&world, deployment, text(&fits["DEFAULT_LITELLM_IMAGE"])).await;
    system.until_warned(own, "BadSettings").await;
    let mended = json!({"DEFAULT_TELEMETRY_ENABLED": "false", "GATEWAY_NAMESPACE": null});
    system.patch(own, &json!({"data": mended})).await;
    until_image(&world, deployment, image).await;
}

#[tokio::test]
async fn a_deleted_config_map_leaves_the_settings_of_the_start_in_force() {
    let release = Release::install(&[]).await;
    let (system, world) = (release.over(SYSTEM), release.world("bereft").await);
    let (own, variable, deployment) =
        ("ConfigMap/kaos-operator-config", "DEFAULT_LITELLM_IMAGE", "Deployment/modelapi-llm");
    let [first, second, third] = [1, 2, 3].map(|tag| format!("registry.example/litellm:{tag}"));
    let (first, second) = (first.as_str(), second.as_str());
    let says = |image: &str| json!({"data": {variable: image}});
    system.patch(own, &says(first)).await;
    // Start the operator as in a pod, where the environment also contains the data of this ConfigMap.
    let operator = release.working_operator().await;
    world.apply(&model_api("llm")).await;
    until_image(&world, deployment, first).await;
    system.patch(own, &says(second)).await;
    until_image(&world, deployment, second).await;

    let changes = async || world.look(deployment).await["metadata"]["generation"].as_u64();
    let before = changes().await;
    system.delete(own).await;
    until_image(&world, deployment, first).await;
    until_ready(&world, &[model_api("llm")]).await;
    assert_eq!(
        changes().await,
        before.map(|count| count + 1),
        "the Deployment changed only once, so the defaults never applied"
    );
    let kept = "ConfigMap/kaos-operator-config-fitted";
    system
        .until("the operator has stored the settings of its start", kept, |kept| kept["data"][variable] == first)
        .await;
    // The operator must be ready, and must not log that settings are invalid.
    assert!(operator.is_ready(), "{}", operator.get("/readyz"));
    let log = operator.log();
    assert!(!log.contains("settings do not fit"), "{log}");
    assert!(log.contains("settings were deleted; the settings from the start of this process are in effect"), "{log}");

    release.helm("upgrade", &["--set", &format!("defaultImages.litellm={third}")]).expect();
    until_image(&world, deployment, &third).await;
}
