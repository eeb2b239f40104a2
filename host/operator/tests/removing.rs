//! Runs `kaos-operator policy remove` and `list` on an embedded cluster, as a user does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::stage::{HOME, Process, Stage, package, team};
use crate::support::fits;
use kaos_operator::package::{Package, pack};
use kaos_policy::manifest::{PolicyFile, Scope};
use serde_json::{Value, json};

/// Adds the ConfigMap of a package to the cluster.
fn plant(stage: &Stage, package: &Package) {
    let index = pack(&package.name, &package.namespace, &package.file, None).unwrap().index;
    stage.cluster.plant("", "configmaps", serde_json::to_value(index).unwrap());
}

fn plant_chunk(stage: &Stage, name: &str, index: &str) {
    let chunk = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"part": "AAAA"},
        "metadata": {
            "name": name, "namespace": HOME, "labels": {"kaos.tools/policy": "chunk"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {"kaos.tools/policy-index": index},
        },
    });
    stage.cluster.plant("", "configmaps", chunk);
}

fn is_there(stage: &Stage, name: &str) -> bool {
    stage.cluster.object("", "configmaps", HOME, name).is_some()
}

#[tokio::test(flavor = "multi_thread")]
async fn list_hides_finished_revisions_and_reports_unlisted_chunks() {
    let stage = Stage::start("list-over").await;
    let refused = |name: &str, image: &str| {
        stage.revision(name, &package(image), 3, &json!({"state": "Refused", "policy": "agent", "message": "no"}));
    };
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Superseded", "policy": "agent"}));
    let gone = Package { name: "gone".into(), ..package("x:9") };
    stage.revision("gone-1", &gone, 1, &json!({"state": "Quarantined", "policy": "agent"}));
    let ran = stage.policy(&["list"]).await;
    assert!(ran.code == 0 && ran.stdout.contains("All policy revisions are finished"), "{}{}", ran.stdout, ran.stderr);
    stage.revision("agent-2", &package("x:2"), 2, &json!({"state": "Active", "policy": "agent"}));
    refused("agent-3", "x:3");
    refused("agent-4", "x:4");
    plant(&stage, &package("x:4"));
    plant_chunk(&stage, "left-1", "policy-agent-settings");
    plant_chunk(&stage, "left-2", "nowhere");
    let shown = |stdout: &str| -> Vec<String> {
        stdout.lines().skip(1).filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
    };
    let ran = stage.policy(&["list"]).await;
    // The refused revision `agent-4` can still start to serve, because its content is in the ConfigMap. The refused
    // revision `agent-3` cannot.
    assert_eq!(shown(&ran.stdout), ["agent-2", "agent-4"], "{}{}", ran.stdout, ran.stderr);
    for told in ["finished revisions: 3; --all lists", "kubectl delete configmap -n kaos-system left-1 left-2"] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
    let told = stage.policy(&["list", "-o", "json"]).await.json();
    assert_eq!(told.as_array().unwrap().len(), 2, "{told}");
    fits("policy-list", &told);
    let names = stage.policy(&["list", "-o", "name"]).await.stdout;
    assert!(names.lines().count() == 2 && names.starts_with("policyrevision.kaos.tools/"), "{names}");
    let wide = stage.policy(&["list", "-o", "wide"]).await.stdout;
    assert!(wide.lines().next().unwrap().ends_with("MESSAGE"), "{wide}");
    let ran = stage.policy(&["list", "--all"]).await;
    assert_eq!(shown(&ran.stdout).len(), 5, "{}", ran.stdout);
    assert!(!ran.stderr.contains("are over"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn remove_deletes_index_and_chunks_and_a_dry_run_deletes_nothing() {
    let stage = Stage::start("remove").await;
    team(&stage);
    let active = json!({"state": "Active", "policy": "agent", "claimed": "2026-01-01T00:00:00.000001Z"});
    stage.revision("agent-1", &package("x:1"), 1, &active);
    plant(&stage, &package("x:1"));
    plant_chunk(&stage, "left-1", "policy-agent-settings");
    plant_chunk(&stage, "other-1", "other");
    let ran = stage.policy(&["remove", "agent", "--dry-run"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for told in [
        "to remove: ConfigMap kaos-system/policy-agent-settings (agent-1 is Active)",
        "to remove: ConfigMap kaos-system/left-1 (a chunk)",
        "answers for kaos.tools/v1alpha1 Agent, from the operator's own policies",
        "x:1",
        "Objects that change: 3 of 3",
    ] {
        assert!(ran.stdout.contains(told), "{told}: {}{}", ran.stdout, ran.stderr);
    }
    assert!(is_there(&stage, "policy-agent-settings") && is_there(&stage, "left-1"));
    let ran = stage.policy(&["remove", "kaos-system/policy-agent-settings", "--timeout", "0"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("kaos-operator policy rollback kaos-system/policy-agent-settings"), "{}", ran.stdout);
    assert!(!is_there(&stage, "policy-agent-settings") && !is_there(&stage, "left-1") && is_there(&stage, "other-1"));
    // Without a running operator, the revisions do not stop serving, so the command keeps their records.
    let ran = stage.policy(&["remove", "agent", "--with-history", "--timeout", "1"]).await;
    assert!(
        ran.code == 1 && ran.stderr.contains("The records stay until the operator notices the removal"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    assert!(stage.cluster.object("kaos.tools", "policyrevisions", HOME, "agent-1").is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_came_to_serve_while_the_others_were_waited_for_stays() {
    let stage = Stage::start("remove-serves-again").await;
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Superseded", "policy": "agent"}));
    stage.revision("agent-2", &package("x:2"), 2, &json!({"state": "Active", "policy": "agent"}));
    plant(&stage, &package("x:2"));
    let takes_notice = async {
        while is_there(&stage, "policy-agent-settings") {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        // Make `agent-1` active before `agent-2` stops serving, because `policy remove` waits only until `agent-2` has
        // stopped.
        for (name, state) in [("agent-1", "Active"), ("agent-2", "Superseded")] {
            let record = stage.cluster.object("kaos.tools", "policyrevisions", HOME, name).unwrap();
            let mut record = (*record).clone();
            record["status"]["state"] = json!(state);
            stage.cluster.plant("kaos.tools", "policyrevisions", record);
        }
    };
    let removes = stage.policy(&["remove", "agent", "--with-history"]);
    let (ran, ()) = tokio::join!(removes, takes_notice);
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("PolicyRevision kaos-system/agent-1 stays: the revision serves again"),
        "{}",
        ran.stderr
    );
    let is_known = |name| stage.cluster.object("kaos.tools", "policyrevisions", HOME, name).is_some();
    assert!(is_known("agent-1") && !is_known("agent-2"));
}

#[tokio::test(flavor = "multi_thread")]
async fn scope_chooses_among_several_packages_and_an_unknown_package_is_reported() {
    let stage = Stage::start("remove-which").await;
    for scope in ["blue", "team"] {
        let file =
            PolicyFile { scope: Scope { namespaces: vec![scope.into()], ..Scope::default() }, ..package("x:1").file };
        plant(&stage, &Package { name: format!("policy-agent-settings.{scope}"), file, ..package("x:1") });
    }
    let ran = stage.policy(&["remove", "agent"]).await;
    let several = "kaos-system/policy-agent-settings.blue (in blue), kaos-system/policy-agent-settings.team (in team)";
    assert!(ran.code == 2 && ran.stderr.contains(several), "{}", ran.stderr);
    let ran = stage.policy(&["remove", "agent", "--scope", "team"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("the policy answers for no kind now"), "{}", ran.stdout);
    assert!(is_there(&stage, "policy-agent-settings.blue") && !is_there(&stage, "policy-agent-settings.team"));
    let ran = stage.policy(&["remove", "nothing"]).await;
    assert!(ran.code == 2 && ran.stderr.contains("see `policy list --all`"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_settings_stop_serving_can_return_and_can_be_erased() {
    let stage = Stage::start("remove-story").await;
    team(&stage);
    let _operator = Process::operator(&stage);
    let image = || -> Value {
        let deployment = stage.cluster.object("apps", "deployments", "team", "agent-a");
        deployment.map_or(Value::Null, |it| it["spec"]["template"]["spec"]["containers"][0]["image"].clone())
    };
    let settings = stage.settings("registry.example/x:1");
    let ran = stage.policy(&["push", "--settings", &settings, "--for", "agent"]).await;
    assert_eq!((ran.code, image()), (0, json!("registry.example/x:1")), "{}", ran.stderr);
    for (wanted, args) in [
        (true, ["list", "--namespace", HOME]),
        (false, ["list", "--namespace", "team"]),
        (false, ["list", "--operator-namespace", "team"]),
    ] {
        let ran = stage.policy(&args).await;
        assert_eq!(ran.stdout.contains("policy-agent-settings"), wanted, "{args:?}: {}{}", ran.stdout, ran.stderr);
    }
    let ran = stage.policy(&["remove", "agent"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(!is_there(&stage, "policy-agent-settings"));
    // The default policies still serve.
    let listed = stage.policy(&["list"]).await;
    let shows = |text: &str| listed.stdout.contains(text);
    assert!(shows("default:agent.kaos.tools") && !shows("policy-agent-settings"), "{}", listed.stdout);
    let ran = stage.policy(&["rollback", "agent", "--namespace", "team"]).await;
    assert!(ran.code == 2 && ran.stderr.contains("see `policy list --all`"), "{}", ran.stderr);
    let ran = stage.policy(&["rollback", "agent", "--namespace", HOME]).await;
    assert_eq!((ran.code, image()), (0, json!("registry.example/x:1")), "{}", ran.stderr);
    let ran = stage.policy(&["remove", "agent", "--with-history"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let ran = stage.policy(&["list", "--all"]).await;
    let shows = |text: &str| ran.stdout.contains(text);
    assert!(shows("default:agent.kaos.tools") && !shows("policy-agent-settings"), "{}", ran.stdout);
    let ran = stage.policy(&["rollback", "agent"]).await;
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
}
