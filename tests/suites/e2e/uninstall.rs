//! Taking the chart away.

use kaos_tests::control_plane::Pod;
use kaos_tests::harness::read::finalizers;
use kaos_tests::harness::samples::{agent, model_api};
use kaos_tests::widgets;
use serde_json::{Value, json};

use crate::support::{RELEASE, Release, SYSTEM, ending, until_ready};

#[tokio::test]
async fn after_the_release_nothing_of_it_is_left_and_nothing_is_stuck() {
    let release = Release::install(&[]).await;
    let world = release.world("left").await;
    let objects = [model_api("llm"), agent("a", "llm", &json!({}))];
    world.apply_all(&objects).await;
    let operator = release.working_operator().await;
    until_ready(&world, &objects).await;
    // A policy of somebody's own holds its objects by a finalizer.
    let file = release.packed_widgets("1 holds", &[]);
    world.apply(&widgets::definition()).await;
    release.apply(&file);
    world.apply(&widgets::widget("w", &json!({}))).await;
    world.until("it is held", "Widget/w", |widget| finalizers(widget) == ["test.example.com/hold"]).await;
    release
        .over(SYSTEM)
        .until("its settings are kept", "ConfigMap/kaos-operator-config-fitted", Value::is_object)
        .await;
    // The nodes here only play: what the hook's pod would do is done as it would.
    let hooks = release.cluster.helm(&["get", "hooks", RELEASE, "-n", SYSTEM]).expect();
    let job: Value = serde_saphyr::from_multiple(&hooks).unwrap().remove(0);
    assert_eq!((&job["kind"], &job["metadata"]["annotations"]["helm.sh/hook"]), (&json!("Job"), &json!("pre-delete")));
    let pod = Pod::of(&job, |_| Value::Null);
    let token = release.cluster.kubectl(&["create", "token", "-n", SYSTEM, &pod.account]).expect();
    let kubeconfig = release.cluster.kubeconfig_for("hook", token.trim()).unwrap();
    let arguments: Vec<&str> = pod.arguments.iter().map(String::as_str).collect();
    let said = release.cluster.operator(&kubeconfig, &arguments);
    assert!(said.ok && said.out.contains("1 released, 0 failed"), "{said:?}");
    let (code, log) = ending(operator).await;
    assert_eq!(code, Some(1), "it goes on writing: {log}");
    assert_eq!(finalizers(&world.look("Widget/w").await), [""; 0]);

    // As the Go operator leaves them, where this one never saw them.
    let held = json!({"metadata": {"finalizers": ["kaos.tools/agent-finalizer", "example.com/foreign"]}});
    world.patch("Agent/a", &held).await;
    let said = release.cluster.operator(&kubeconfig, &arguments).expect();
    assert!(said.contains("1 released, 0 failed"), "{said}");
    assert_eq!(finalizers(&world.look("Agent/a").await), ["example.com/foreign"]);
    world.patch("Agent/a", &json!({"metadata": {"finalizers": null}})).await;

    // What people applied themselves is theirs to take away.
    release.cluster.kubectl(&["delete", "-f", &file]).expect();
    release.is_changed();
    release.cluster.helm(&["uninstall", RELEASE, "-n", SYSTEM, "--wait"]).expect();
    let kinds = "deployments,services,serviceaccounts,configmaps,roles,rolebindings,jobs,pods,networkpolicies";
    let left = release.cluster.kubectl(&["get", kinds, "-n", SYSTEM, "-o", "name"]).expect();
    let own: Vec<&str> = left.lines().filter(|name| name.contains("kaos")).collect();
    assert_eq!(own, Vec::<&str>::new());
    let kinds = "clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings";
    let left = release.cluster.kubectl(&["get", kinds, "-o", "name"]).expect();
    assert!(!left.contains("kaos"), "{left}");
    // What ran goes on running, and goes when it is told to, without an operator.
    assert_eq!(world.look("Deployment/agent-a").await["status"]["readyReplicas"], 1);
    release.cluster.kubectl(&["delete", "agent,modelapi", "--all", "-n", "left", "--timeout=60s"]).expect();
    world.until_gone("Deployment/agent-a").await;
    release.cluster.kubectl(&["delete", "namespace", "left", "--timeout=90s"]).expect();
    release.cluster.kubectl(&["delete", "crd", "widgets.test.example.com"]).expect();
}
