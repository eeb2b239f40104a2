//! Tests the upgrade from KAOS 0.8. This operator, with the preset `kaos-0.8`, takes over the objects that KAOS's
//! operator leaves.

use kaos_policy::stamp::APPLIED_DIGEST;
use kaos_tests::harness::condition;
use kaos_tests::harness::definitions::routes;
use kaos_tests::harness::read::{controller, entries, finalizers, name, uid};
use serde_json::{Value, json};

use crate::left_by_kaos::{Left, put};
use crate::support::{Release, at};
use crate::takeover;
use crate::upgrade::{is_of_go, pods};

/// All samples that contain objects, except samples 14 and 19. API servers reject sample 14, and sample 19 contains
/// ConfigMaps that the release itself creates.
const SAMPLES: [&str; 17] = [
    "01-modelapi-proxy",
    "02-modelapi-hosted",
    "03-mcp-codemode",
    "04-mcp-kubernetes",
    "05-agent-plain",
    "06-agent-autonomous",
    "07-agent-memory-local",
    "08-memorystore-local",
    "09-memorystore-external",
    "10-agents-memory-remote",
    "11-agent-store-not-ready",
    "12-accessgrant",
    "13-team",
    "15-agent-harness-pr",
    "16-container-overrides",
    "17-agent-telemetry",
    "20-as-found",
];
/// The values of the release.
const FLAGS: [&str; 4] = ["--set", "compatibility=kaos-0.8", "--set", "gatewayAPI.enabled=true"];
const CLIENT: &str = "kaos.tools/oidc-client-finalizer";
/// The kinds of children that the takeover must not replace.
const DEAR: [&str; 5] = ["ServiceAccount", "PersistentVolumeClaim", "HTTPRoute", "SecurityPolicy", "NetworkPolicy"];

/// Waits until all pods are ready, and then records what the takeover must not replace.
///
/// Records the pods, the UIDs of the objects in `kept`, and the UIDs of the children of the kinds in [`DEAR`].
pub(crate) async fn remember(left: &mut Left) {
    let names: Vec<&str> =
        left.children.iter().map(String::as_str).filter(|at| at.starts_with("Deployment/")).collect();
    let run = |all: &[Value]| all.iter().all(|it| it["status"]["readyReplicas"] == it["spec"]["replicas"]);
    left.world.until_all(&format!("{} runs", left.sample), &names, run).await;
    let is_dear = |at: &&String| DEAR.iter().any(|kind| at.split('/').next() == Some(*kind));
    let dear: Vec<String> = left.kept.keys().chain(left.children.iter().filter(is_dear)).cloned().collect();
    for at in dear {
        let object = left.world.look(&at).await;
        left.kept.insert(at, uid(&object).to_owned());
    }
    left.pods = pods(&left.world).await;
}

/// Waits until this operator has taken over all children.
///
/// Then waits until nothing changes any more, so that an unwanted rollout would already show.
pub(crate) async fn until_taken_over(all: &[Left]) {
    for left in all {
        for child in &left.children {
            let what = format!("{sample}: {child} belongs to this operator", sample = left.sample);
            let is_ours = |child: &Value| entries(child, "annotations").contains_key(APPLIED_DIGEST);
            left.world.until(&what, child, is_ours).await;
        }
    }
    all[0].world.quiet().await;
}

/// Returns a message for each rollout, each restarted pod, and each object that the takeover replaced or left
/// unfinished.
pub(crate) async fn lost(left: &Left) -> Vec<String> {
    let (world, sample) = (&left.world, left.sample);
    let mut wrong = Vec::new();
    let sets = world.list("ReplicaSet").await;
    for deployment in left.children.iter().filter_map(|at| at.strip_prefix("Deployment/")) {
        let own = sets.iter().filter(|set| controller(set)["name"] == deployment).count();
        if own != 1 + usize::from(left.rolled.contains(deployment)) {
            wrong.push(format!("{sample}: Deployment {deployment} has {own} ReplicaSets"));
        }
    }
    let deployments = world.list("Deployment").await.len();
    let left_ones = left.children.iter().filter(|at| at.starts_with("Deployment/")).count();
    if deployments != left_ones {
        wrong.push(format!("{sample}: {deployments} Deployments of {left_ones}"));
    }
    let now = pods(world).await;
    let is_wanted = |pod: &str| left.rolled.iter().any(|deployment| pod.starts_with(&format!("{deployment}-")));
    let gone = left.pods.iter().filter(|(uid, pod)| !now.contains_key(*uid) && !is_wanted(pod));
    wrong.extend(gone.map(|(_, pod)| format!("{sample}: pod {pod} was restarted")));
    for (at, before) in &left.kept {
        if uid(&world.look(at).await) != before {
            wrong.push(format!("{sample}: {at} is gone"));
        }
    }
    for child in &left.children {
        if is_of_go(&world.look(child).await) {
            wrong.push(format!("{sample}: KAOS's operator still owns fields of {child}"));
        }
    }
    for object in &left.objects {
        let held = finalizers(&world.look(object).await).join(" ");
        if held != if object == "Agent/plain" && sample == "20-as-found" { CLIENT } else { "" } {
            wrong.push(format!("{sample}: {object} has the finalizers {held}"));
        }
    }
    wrong
}

#[tokio::test]
async fn objects_of_kaos_0_8_are_taken_over_without_restarting_a_pod() {
    let release = Release::install(&FLAGS).await;
    // The next test must not reuse this release, because this test adds a CustomResourceDefinition to it.
    release.is_changed();
    let unknown = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "thirdpartyservices.kaos.tools"},
        "spec": {"group": "kaos.tools", "scope": "Namespaced",
            "names": {"plural": "thirdpartyservices", "singular": "thirdpartyservice", "kind": "ThirdPartyService",
                "listKind": "ThirdPartyServiceList"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    let system = release.over("default");
    for definition in [&unknown, &routes()] {
        system.apply(definition).await;
        let served = |crd: &Value| condition(crd, "Established")["status"] == "True";
        system.until("the definition is served", &at(definition), served).await;
    }
    let mut all = Vec::new();
    for sample in SAMPLES {
        all.push(put(&release, sample, "today", &[]).await);
    }
    for left in &mut all {
        remember(left).await;
    }
    let count = |prefix: &str| all.iter().flat_map(|left| &left.children).filter(|at| at.starts_with(prefix)).count();
    assert!(count("Deployment/") > 30 && count("ServiceAccount/") > 15, "{} Deployments", count("Deployment/"));
    assert!(count("HTTPRoute/") > 30, "{} HTTPRoutes", count("HTTPRoute/"));

    takeover::is_forgotten(&release).await;
    // `upgrade-check` must report the leftovers of KAOS's operator, and the only pod that the upgrade will replace.
    let asked = release.cluster.operator(&release.cluster.kubeconfig(), &["upgrade-check", "-o", "json"]);
    let told: Value = serde_json::from_str(&asked.out).unwrap_or_else(|_| panic!("{}", asked.err));
    let findings = told["findings"].as_array().unwrap();
    let of = |sort: &str, about: &str| {
        findings.iter().filter(|it| it["sort"] == sort && it["about"].to_string().contains(about)).count()
    };
    assert_eq!((of("rolls", ""), of("note", "AccessGrant"), of("lost", "Agent today-20/plain")), (1, 3, 1), "{told:#}");
    assert_eq!((of("rolls", "ModelAPI today-16/llm"), of("note", "ModelAPI today-16/llm")), (1, 1), "{told:#}");
    assert_eq!((of("breaks", "NetworkPolicy"), of("note", "takeoverTime")), (1, 1), "{told:#}");

    takeover::is_recorded(&release).await;
    let operator = release.working_operator().await;
    assert!(operator.log().contains("the cluster serves ThirdPartyService"), "{}", operator.log());
    until_taken_over(&all).await;
    for left in &all {
        for deployment in &left.rolled {
            let has_rolled = async || {
                let sets = left.world.list("ReplicaSet").await;
                sets.iter().filter(|set| controller(set)["name"] == **deployment).count() > 1
            };
            left.world.until_true("a field that KAOS ignored counts", has_rolled).await;
        }
    }
    // Without a decision point, the status of an AccessGrant must no longer say that the AccessGrant is in force.
    for left in &all {
        for grant in left.kept.keys().filter(|at| at.starts_with("AccessGrant/")) {
            let told = |it: &Value| condition(it, "Enforced")["reason"] == "AuthorizationDisabled";
            let grant = left.world.until("the grant reports that it is not enforced", grant, told).await;
            assert_eq!(condition(&grant, "Enforced")["status"], "False");
        }
    }
    let mut wrong = Vec::new();
    for left in &all {
        wrong.extend(lost(left).await);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));

    // A user can delete an Agent even if it has KAOS's finalizer for an OpenID client. Kubernetes then deletes the
    // Agent's children, too.
    let found = all.last().unwrap();
    found.world.delete("Agent/plain").await;
    for gone in ["Agent/plain", "Deployment/agent-plain", "ServiceAccount/kaos-agent-plain"] {
        found.world.until_gone(gone).await;
    }
    let told = found.world.list("Event").await.iter().any(|event| event["reason"] == "ClientLeft");
    assert!(told, "no Event reports that the client stays");
    for definition in [&unknown, &routes()] {
        system.delete(&at(definition)).await;
        system.until_gone(&at(definition)).await;
    }
    for volume in system.list("PersistentVolume").await {
        system.delete(&format!("PersistentVolume/{}", name(&volume))).await;
    }
}
