//! Tests the upgrade from KAOS 0.8. For each sample of `golden/today`, the test creates the objects that KAOS's
//! operator leaves. This project's operator then takes over these objects, with the preset `kaos-0.8`.
//!
//! The project has no recording of a cluster with KAOS 0.8. Sample 20 contains a Deployment as KAOS's operator writes
//! it. For all other samples, the test renders the children with this operator, without the fields that KAOS ignores.
//! Then the test gives the children the labels and annotations of KAOS's operator, and removes the variable that only
//! this operator sets. Another test compares the rendered children with the description of KAOS 0.8 in
//! `golden/today/expected`.

use std::collections::{BTreeMap, BTreeSet};

use kaos_policy::stamp::APPLIED_DIGEST;
use kaos_tests::case;
use kaos_tests::harness::definitions::routes;
use kaos_tests::harness::read::{controller, entries, finalizers, name, text, uid};
use kaos_tests::harness::samples::volume_for;
use kaos_tests::harness::{World, condition};
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::secured::described;
use crate::support::{Release, at};
use crate::takeover;
use crate::upgrade::{GO, api, create, is_of_go, pods};

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
/// The settings that result from the chart's values for a Gateway.
const ROUTED: [&str; 6] =
    ["--set", "gateway.enabled=true", "--set", "gateway.name=kaos-gateway", "--set", "gateway.namespace=kaos-system"];
/// The values of the release.
const FLAGS: [&str; 4] = ["--set", "compatibility=kaos-0.8", "--set", "gatewayAPI.enabled=true"];
const CLIENT: &str = "kaos.tools/oidc-client-finalizer";
/// The kinds of children that the takeover must not replace.
const DEAR: [&str; 5] = ["ServiceAccount", "PersistentVolumeClaim", "HTTPRoute", "SecurityPolicy", "NetworkPolicy"];

/// The variable that only this operator gives to proxies.
const PERMISSION: &str = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY";
/// The fields of a ModelAPI's container that KAOS's operator ignores, and this operator uses.
const IGNORED: [&str; 4] = ["image", "command", "args", "resources"];

/// One sample on the cluster, with the objects that KAOS's operator leaves for it.
pub(crate) struct Left {
    pub(crate) world: World,
    pub(crate) sample: &'static str,
    /// The objects of KAOS's kinds.
    objects: Vec<String>,
    /// The children that this operator takes over.
    pub(crate) children: Vec<String>,
    /// The UIDs of objects that must survive: objects without an owner, and the kinds in [`DEAR`].
    pub(crate) kept: BTreeMap<String, String>,
    pods: BTreeMap<String, String>,
    /// The Deployments of objects with fields that KAOS ignored. Their pods are replaced.
    pub(crate) rolled: BTreeSet<String>,
}

/// Returns the objects of a sample, moved to another namespace.
fn documents(sample: &str, namespace: &str) -> Vec<Value> {
    let file = |name: &str| case::golden().join(format!("today/{name}.yaml"));
    let mut all = case::documents(&file(sample)).unwrap();
    if sample == "20-as-found" {
        all.extend(case::documents(&file("20-model")).unwrap());
    }
    let moved = |text: String| {
        text.replace("\"namespace\":\"today\"", &format!("\"namespace\":\"{namespace}\""))
            .replace(".today.svc", &format!(".{namespace}.svc"))
            .replace("kaos://agent/today/", &format!("kaos://agent/{namespace}/"))
    };
    let here = all.into_iter().map(|object| serde_json::from_str(&moved(object.to_string())).unwrap());
    here.filter(|object: &Value| object["metadata"]["namespace"] == namespace).collect()
}

fn is_of_kaos(object: &Value) -> bool {
    object["apiVersion"] == "kaos.tools/v1alpha1" && object["kind"] != "AccessGrant"
}

/// Returns an object without the fields that KAOS's operator ignores.
fn as_kaos_reads(mut object: Value) -> Value {
    if object["kind"] == "ModelAPI"
        && let Some(container) = object.pointer_mut("/spec/container").and_then(Value::as_object_mut)
    {
        container.retain(|field, _| !IGNORED.contains(&field.as_str()));
    }
    object
}

/// Creates an object of a KAOS kind with the finalizer and the status of KAOS's operator.
async fn leave(world: &World, object: &Value, rendered: &Value) {
    let kind = text(&object["kind"]).to_lowercase();
    let mut object = object.clone();
    let status = object.as_object_mut().unwrap().remove("status");
    if kind != "memorystore" && object["metadata"]["finalizers"].is_null() {
        object["metadata"]["finalizers"] = json!([format!("kaos.tools/{kind}-finalizer")]);
    }
    let mut created = create(world, &object).await;
    let endpoint = rendered["status"]["endpoint"].clone();
    let ready = json!({"phase": "Ready", "ready": true, "endpoint": endpoint});
    created["status"] = status.unwrap_or(if rendered["manifests"][0].is_null() {
        json!({"phase": "Pending", "ready": false})
    } else {
        ready
    });
    let params = PostParams { field_manager: Some(GO.to_owned()), ..PostParams::default() };
    let typed = serde_json::from_value(created).unwrap();
    api(world, &object).replace_status(name(&object), &params, &typed).await.unwrap();
}

/// Returns a rendered child as KAOS's operator would write it. The caller must still add the owner's UID to the owner
/// reference.
fn as_kaos_writes(mut child: Value) -> Value {
    let (is_account, is_deployment) = (child["kind"] == "ServiceAccount", child["kind"] == "Deployment");
    let metadata = child["metadata"].as_object_mut().unwrap();
    metadata.remove("annotations");
    let labels = metadata["labels"].as_object_mut().unwrap();
    if is_account {
        labels.retain(|label, _| label == "app.kubernetes.io/managed-by" || label == "kaos.tools/agent");
    } else {
        labels.remove("app.kubernetes.io/managed-by");
    }
    if is_deployment {
        child["spec"]["template"]["metadata"]["annotations"] = json!({"kaos.tools/pod-spec-hash": "0123456789abcdef"});
        for container in child["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap() {
            if let Some(variables) = container["env"].as_array_mut() {
                variables.retain(|variable| variable["name"] != PERMISSION);
            }
        }
    }
    child
}

/// Returns the owner reference that KAOS's operator writes on a child of `owner`.
fn owned_by(owner: &Value) -> Value {
    json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": owner["kind"], "name": name(owner), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true}])
}

/// Creates a sample, and its children as KAOS's operator leaves them. The namespace's name begins with `prefix`.
/// `settings` are flags of `render` for the settings of the cluster.
pub(crate) async fn put(release: &Release, sample: &'static str, prefix: &str, settings: &[&str]) -> Left {
    let world = release.world(&format!("{prefix}-{}", &sample[..2])).await;
    let all = documents(sample, &world.namespace);
    let file = release.cluster.folder().join(format!("{sample}.yaml"));
    let text_of_all =
        all.iter().map(|object| as_kaos_reads(object.clone()).to_string()).collect::<Vec<_>>().join("\n---\n");
    std::fs::write(&file, text_of_all).unwrap();
    let harnesses = case::golden().join("today/harness-runtimes.yaml").display().to_string();
    let base = ["render", "--compatibility", "kaos-0.8", "--status", "-o", "json", "-f", &harnesses];
    let asked = [&base[..], &ROUTED, settings, &["-f"]].concat();
    // Ignore the exit code, because `render` fails if a policy refuses an object.
    let ran = release
        .cluster
        .operator(&release.cluster.kubeconfig(), &[&asked[..], &[file.display().to_string().as_str()]].concat());
    // `render` prints nothing if the sample has no object of a KAOS kind.
    let rendered: Vec<Value> = match serde_json::from_str(&ran.out) {
        Ok(rendered) => rendered,
        Err(_) if !all.iter().any(is_of_kaos) => Vec::new(),
        Err(error) => panic!("{sample}: {error}: {}", ran.err),
    };
    let of = |object: &Value| {
        let is_it = |entry: &&Value| {
            entry["object"]["kind"] == object["kind"] && entry["object"]["name"] == object["metadata"]["name"]
        };
        rendered.iter().find(is_it).cloned().unwrap_or_default()
    };
    let is_changed = |object: &&Value| as_kaos_reads((*object).clone()) != **object;
    let mut left = Left {
        world,
        sample,
        objects: Vec::new(),
        children: Vec::new(),
        kept: BTreeMap::new(),
        pods: BTreeMap::new(),
        rolled: all.iter().filter(is_changed).map(|object| format!("modelapi-{}", name(object))).collect(),
    };
    // Sample 20 also contains children. Create these children after the objects that own them.
    let (own, others): (Vec<&Value>, Vec<&Value>) = all.iter().partition(|object| is_of_kaos(object));
    for object in &own {
        leave(&left.world, object, &of(object)).await;
        left.objects.push(at(object));
    }
    for object in &others {
        let mut object = (*object).clone();
        if sample == "20-as-found" {
            object["metadata"]["ownerReferences"] = owned_by(&left.world.look("Agent/plain").await);
            left.children.push(at(&object));
        } else {
            left.kept.insert(at(&object), String::new());
        }
        let mut created = create(&left.world, &object).await;
        if object["kind"] == "AccessGrant" {
            created["status"] = json!({"conditions": [{"type": "Enforced", "status": "True", "reason": "Enforced",
                "message": "", "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
            let params = PostParams { field_manager: Some(GO.to_owned()), ..PostParams::default() };
            let typed = serde_json::from_value(created).unwrap();
            api(&left.world, &object).replace_status(name(&object), &params, &typed).await.unwrap();
        }
    }
    for object in &own {
        let rendered = of(object);
        if rendered["gates"].as_array().is_some_and(|gates| !gates.is_empty()) {
            continue;
        }
        let owner = left.world.look(&at(object)).await;
        for child in rendered["manifests"].as_array().into_iter().flatten() {
            if left.children.contains(&at(child)) {
                continue;
            }
            let mut child = as_kaos_writes(described(child, &rendered["manifests"]));
            child["metadata"]["ownerReferences"] = owned_by(&owner);
            if child["kind"] == "PersistentVolumeClaim" {
                left.world.apply(&volume_for(&child)).await;
            }
            create(&left.world, &child).await;
            left.children.push(at(&child));
        }
        let is_guarded = left.children.contains(&format!("NetworkPolicy/agent-{}", name(object)));
        if object["kind"] == "Agent" && !rendered["manifests"][0].is_null() && !is_guarded {
            let guard = json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
                "metadata": {"name": format!("agent-{}", name(object)), "namespace": left.world.namespace,
                    "ownerReferences": owned_by(&owner)},
                "spec": {"podSelector": {"matchLabels": {"agent": name(object)}}, "policyTypes": ["Ingress"]}});
            create(&left.world, &guard).await;
            left.kept.insert(at(&guard), String::new());
        }
    }
    left
}

/// Waits until all pods are ready.
///
/// Then remembers the pods, and the UIDs of the objects that the takeover must not replace.
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
/// Then waits until nothing changes, so that an unwanted rollout would have begun.
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
    // `upgrade-check` reports the leftovers of KAOS's operator, and the only pod that the upgrade will replace.
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

    // A user can delete the Agent with KAOS's finalizer for an OpenID client. Kubernetes then deletes the Agent's
    // children, too.
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
