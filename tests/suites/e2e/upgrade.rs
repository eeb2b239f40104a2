//! Upgrades from KAOS's Go operator to this operator.

use std::collections::BTreeMap;
use std::path::Path;

use kaos_tests::blocks::blocks;
use kaos_tests::case::{self, Case};
use kaos_tests::control_plane::{ControlPlane, files};
use kaos_tests::harness::kinds::At;
use kaos_tests::harness::read::{controller, entries, finalizers, text, uid};
use kaos_tests::harness::samples::model_api;
use kaos_tests::harness::{World, is_ready};
use kube::api::{Api, DynamicObject, PostParams};
use serde_json::{Value, json};

use crate::support::{CHART, LEASE, RELEASE, Release, SYSTEM, at, moved, recorded, until, until_image, until_ready};

/// The field manager of the Go operator. The Go operator writes with create and update.
pub(crate) const GO: &str = "manager";
const IMAGES: [&str; 10] = [
    "--set",
    "compatibility=kaos-0.1",
    "--set",
    "defaultImages.agentRuntime=axsauze/kaos-agent:test",
    "--set",
    "defaultImages.litellm=ghcr.io/berriai/litellm:test",
    "--set",
    "defaultImages.ollama=alpine/ollama:latest",
    "--set",
    "defaultImages.mcpPythonString=axsauze/kaos-mcp-python-string:test",
];

/// Writes a file of Helm values with the registry of runtimes that the recorded cases used.
fn registry(folder: &Path) -> String {
    let recorded = case::documents(&case::golden().join("runtimes.yaml")).unwrap().remove(0);
    let runtimes: Value = serde_saphyr::from_str(text(&recorded["data"]["runtimes.yaml"])).unwrap();
    let file = folder.join("registry.json");
    files::write(&file, &json!({"mcpRuntimes": {"custom": runtimes["runtimes"]}}).to_string()).unwrap();
    file.display().to_string()
}

pub(crate) fn api(world: &World, object: &Value) -> Api<DynamicObject> {
    Api::namespaced_with(world.client.clone(), &world.namespace, &At::of(object, &world.namespace).kind.resource())
}

pub(crate) async fn create(world: &World, object: &Value) -> Value {
    let params = PostParams { field_manager: Some(GO.to_owned()), ..PostParams::default() };
    let typed: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let created = api(world, object).create(&params, &typed).await;
    serde_json::to_value(created.unwrap_or_else(|error| panic!("{object} is refused: {error}"))).unwrap()
}

/// Creates an object in the state that the Go operator leaves, with its finalizer and a ready status.
async fn leave(world: &World, object: &Value) {
    let kind = text(&object["kind"]).to_lowercase();
    let (name, namespace) = (text(&object["metadata"]["name"]), &world.namespace);
    let mut object = object.clone();
    object["metadata"]["finalizers"] = json!([format!("kaos.tools/{kind}-finalizer")]);
    let mut created = create(world, &object).await;
    let port = if object["spec"]["mode"] == "Hosted" { 11434 } else { 8000 };
    let endpoint = format!("http://{kind}-{name}.{namespace}.svc.cluster.local:{port}");
    created["status"] = json!({"phase": "Ready", "ready": true});
    if object["spec"]["agentNetwork"]["expose"] != false {
        created["status"]["endpoint"] = json!(endpoint);
    }
    let params = PostParams { field_manager: Some(GO.to_owned()), ..PostParams::default() };
    let typed: DynamicObject = serde_json::from_value(created).unwrap();
    api(world, &object).replace_status(name, &params, &typed).await.unwrap();
}

/// Creates the objects of a case, and their children as the Go operator leaves them. Returns the keys of the children.
async fn put(world: &World, case: &Case) -> Vec<String> {
    for object in moved(&case.input, &world.namespace) {
        if at(&object).starts_with("Agent/")
            || at(&object).starts_with("ModelAPI/")
            || at(&object).starts_with("MCPServer/")
        {
            leave(world, &object).await;
        } else {
            world.apply(&object).await;
        }
    }
    let children = case.stored().unwrap()["children"].as_array().unwrap().clone();
    let mut made = Vec::new();
    for mut child in moved(&children, &world.namespace) {
        for reference in
            child["metadata"].get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten()
        {
            let owner = format!("{}/{}", text(&reference["kind"]), text(&reference["name"]));
            reference["uid"] = json!(uid(&world.look(&owner).await));
        }
        child.as_object_mut().unwrap().remove("status");
        // Remove fields with values that the API server allocates, because the recording masks these values.
        for field in ["clusterIP", "clusterIPs"] {
            child["spec"].as_object_mut().map(|spec| spec.remove(field));
        }
        create(world, &child).await;
        made.push(at(&child));
    }
    made
}

/// Waits until the pods of a case are ready.
async fn until_it_runs(world: &World, case: &Case, made: &[String]) {
    let names: Vec<&str> = made.iter().map(String::as_str).filter(|at| at.starts_with("Deployment/")).collect();
    let run = |all: &[Value]| all.iter().all(|deployment| deployment["status"]["readyReplicas"] == 1);
    world.until_all(&format!("{} runs", case.name), &names, run).await;
}

/// Installs the chart with the settings that the recorded cases used.
async fn installed() -> Release {
    let values = registry(ControlPlane::shared().folder());
    Release::install(&[&IMAGES[..], &["--values", &values]].concat()).await
}

pub(crate) async fn pods(world: &World) -> BTreeMap<String, String> {
    let pods = world.list("Pod").await;
    pods.iter().map(|pod| (uid(pod).to_owned(), text(&pod["metadata"]["name"]).to_owned())).collect()
}

/// Returns whether the Go operator manages any field of an object.
pub(crate) fn is_of_go(object: &Value) -> bool {
    object["metadata"]["managedFields"].as_array().into_iter().flatten().any(|entry| entry["manager"] == GO)
}

#[tokio::test]
async fn objects_of_the_go_operator_are_taken_over_without_restarting_a_pod() {
    let release = installed().await;
    let mut left = Vec::new();
    let cases = case::left_by_go().unwrap();
    for (number, case) in cases.iter().enumerate() {
        let world = release.world(&format!("go-{number}")).await;
        let made = put(&world, case).await;
        left.push((case, world, made));
    }
    let mut before = Vec::new();
    for (case, world, made) in &left {
        until_it_runs(world, case, made).await;
        before.push(pods(world).await);
    }

    let _operator = release.working_operator().await;
    let mut wrong = Vec::new();
    for (case, world, made) in &left {
        for name in &case.about.primary {
            let what = format!("{}: {name} is taken over", case.name);
            let taken = world.until(&what, name, |object| is_ready(object) && finalizers(object).is_empty());
            taken.await;
        }
        for name in made {
            let what = format!("{case}: {name} belongs to this operator", case = case.name);
            let child = world.until(&what, name, |child| {
                entries(child, "labels").get("app.kubernetes.io/managed-by").is_some_and(|by| by == "kaos-operator")
            });
            if is_of_go(&child.await) {
                wrong.push(format!("{case}: the Go operator still owns fields of {name}", case = case.name));
            }
        }
    }
    // Wait until nothing changes any more, so that an unwanted rollout would already show.
    left.last().unwrap().1.quiet().await;
    for ((case, world, made), before) in left.iter().zip(&before) {
        let sets = world.list("ReplicaSet").await;
        for name in made.iter().filter_map(|at| at.strip_prefix("Deployment/")) {
            let own = sets.iter().filter(|set| controller(set)["name"] == name).count();
            if own != 1 {
                wrong.push(format!("{case}: Deployment {name} has {own} ReplicaSets", case = case.name));
            }
        }
        let now = pods(world).await;
        wrong.extend(
            before
                .iter()
                .filter(|(uid, _)| !now.contains_key(*uid))
                .map(|(_, pod)| format!("{}: pod {pod} was restarted", case.name)),
        );
    }
    assert!(wrong.is_empty(), "of {} cases:\n{}", left.len(), wrong.join("\n"));

    // Users can delete objects that the Go operator managed.
    let (_, world, made) = &left[0];
    release
        .cluster
        .kubectl(&["delete", "agents,modelapis,mcpservers", "--all", "-n", &world.namespace, "--timeout=60s"])
        .expect();
    for name in made {
        world.until_gone(name).await;
    }
}

#[tokio::test]
async fn the_guides_preview_shows_the_differences() {
    let release = installed().await;
    let world = release.world("beforehand").await;
    // The image of the MCPServer comes from the registry of runtimes. The image of the ModelAPI comes from the
    // settings.
    for name in ["mcpserver-full-overrides", "modelapi-proxy-minimal"] {
        let case = recorded(name);
        let made = put(&world, &case).await;
        until_it_runs(&world, &case, &made).await;
    }
    // Wait until no client writes any more: a status write during the comparison would look like a difference.
    world.quiet().await;
    let folder = release.cluster.folder().join("beforehand");
    std::fs::create_dir_all(&folder).unwrap();
    let typed = || -> Vec<String> {
        let blocks = blocks("docs/guide/upgrade-from-kaos.md", &["cluster"]).unwrap();
        let typed = blocks.iter().map(|block| {
            // Restrict the commands to this test's namespace, because other tests use the other namespaces.
            let block = block.replace(" -A ", &format!(" -n {} ", world.namespace));
            release.cluster.shell(&format!("cd {}\n{block}", folder.display())).expect()
        });
        typed.collect()
    };
    let printed = typed();
    let [table, difference] = &printed[..] else { panic!("{printed:?}") };
    assert_eq!(table.matches(" rendered ").count(), 2, "{table}");
    assert_eq!(difference, "");
    release.is_changed();
    let other = json!({"data": {"DEFAULT_LITELLM_IMAGE": "registry.example/litellm:other"}});
    release.over(SYSTEM).patch("ConfigMap/kaos-operator-config", &other).await;
    let printed = typed();
    let changed: Vec<&str> =
        printed[1].lines().filter(|line| line.starts_with('+') && !line.starts_with("+++")).collect();
    assert_eq!(changed.len(), 1, "{printed:?}");
    assert!(changed[0].ends_with("image: registry.example/litellm:other"), "{changed:?}");

    // The operator must make the changes that the guide's commands showed before.
    let _operator = release.working_operator().await;
    until_image(&world, "Deployment/modelapi-m", "registry.example/litellm:other").await;
    for name in ["MCPServer/t", "ModelAPI/m"] {
        world.until(&format!("{name} is taken over"), name, |object| finalizers(object).is_empty()).await;
    }
}

#[tokio::test]
async fn while_the_go_operator_holds_the_lease_nothing_is_written() {
    let release = Release::install(&[]).await;
    let system = release.over(SYSTEM);
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "kaos-operator.kaos.tools", "namespace": SYSTEM},
        "spec": {"holderIdentity": "go", "leaseDurationSeconds": 3600, "leaseTransitions": 1,
            "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-01T00:00:00.000000Z"}});
    system.apply(&lease).await;
    let world = release.world("held").await;
    world.apply(&model_api("llm")).await;
    let operator = release.operator(&[]).await;
    until("the operator stands by", &operator, || operator.get("/readyz").contains("standing by for go")).await;
    assert!(world.list("Deployment").await.is_empty());
    // Release the Lease, as the Go operator does when it ends.
    system.patch(LEASE, &json!({"spec": {"holderIdentity": "", "leaseDurationSeconds": 1}})).await;
    until_ready(&world, &[model_api("llm")]).await;
}

/// Writes a chart with those parts of the KAOS chart that matter for an upgrade: the Deployment with its selector, the
/// environment, the ServiceAccount, and the CustomResourceDefinitions. Helm installs these CustomResourceDefinitions,
/// but never updates or deletes them.
fn chart_of_kaos(folder: &Path) -> String {
    let chart = folder.join("kaos-operator");
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    std::fs::create_dir_all(chart.join("crds")).unwrap();
    let labels = json!({"app.kubernetes.io/managed-by": "kustomize", "control-plane": "controller-manager",
        "app.kubernetes.io/name": "kaos-operator", "app.kubernetes.io/instance": "kaos"});
    let container = json!({"name": "manager", "image": "registry.example/kaos-operator:go", "command": ["/manager"],
        "args": ["--leader-elect"], "envFrom": [{"configMapRef": {"name": "kaos-operator-config"}}],
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}});
    let pods = json!({"metadata": {"labels": labels}, "spec": {"containers": [container], "securityContext":
        {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}}}});
    let objects = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "kaos-kaos-operator-controller-manager"},
            "spec": {"selector": {"matchLabels": labels}, "template": pods}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kaos-kaos-operator"}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kaos-operator-config"},
            "data": {"DEFAULT_AGENT_IMAGE": "registry.example/agent:go"}}]});
    let about = json!({"apiVersion": "v2", "name": "kaos-operator", "version": "0.1.4"});
    std::fs::write(chart.join("Chart.yaml"), about.to_string()).unwrap();
    std::fs::copy(case::golden().join("today/values/kaos-0.1.yaml"), chart.join("values.yaml")).unwrap();
    std::fs::write(chart.join("templates/all.yaml"), objects.to_string()).unwrap();
    for kind in ["agents", "modelapis", "mcpservers"] {
        let file = format!("{kind}.yaml");
        std::fs::copy(format!("../crds/generated/{file}"), chart.join("crds").join(file)).unwrap();
    }
    chart.display().to_string()
}

#[tokio::test]
async fn a_release_of_the_kaos_chart_is_upgraded_in_place_and_rolled_back() {
    let release = Release::prepare().await;
    let old = chart_of_kaos(release.cluster.folder());
    // Install the release like Helm 3, without server-side apply.
    let helm = |arguments: &[&str]| release.cluster.helm(&[arguments, &["--namespace", SYSTEM, "--wait"]].concat());
    let definitions = ["agents.kaos.tools", "modelapis.kaos.tools", "mcpservers.kaos.tools"];
    release.cluster.kubectl(&[&["delete", "crd", "--ignore-not-found"], &definitions[..]].concat()).expect();
    helm(&["install", RELEASE, &old, "--server-side=false"]).expect();
    let command = async || {
        let deployment = release.over(SYSTEM).look("Deployment/kaos-kaos-operator-controller-manager").await;
        deployment["spec"]["template"]["spec"]["containers"][0]["command"].clone()
    };
    assert_eq!(command().await, json!(["/manager"]));
    helm(&["upgrade", RELEASE, CHART, "--take-ownership", "--reuse-values"]).expect();
    assert_eq!(command().await, Value::Null);
    // Helm's flags for reusing and resetting values do not matter: the preset and the images of the first upgrade stay
    // until a user's values choose others.
    let kept = async |flags: &[&str]| {
        helm(&[&["upgrade", RELEASE, CHART], flags].concat()).expect();
        let config = release.over(SYSTEM).look("ConfigMap/kaos-operator-config").await;
        let preset = text(&entries(&config, "annotations")["kaos.tools/compatibility"]).to_owned();
        (preset, config["data"]["DEFAULT_AGENT_IMAGE"].clone())
    };
    let january = ("kaos-0.1".to_owned(), json!("axsauze/kaos-agent:v0.1.4-dev"));
    let own = ("kaos-0.8".to_owned(), Value::Null);
    assert_eq!(kept(&["--reuse-values"]).await, january);
    assert_eq!(kept(&[]).await, january);
    assert_eq!(kept(&["--reset-then-reuse-values"]).await, january);
    assert_eq!(kept(&["--reset-values", "--set", "compatibility=kaos-0.8"]).await, own);
    assert_eq!(kept(&["--reset-values"]).await, own);
    release.until_owners_are_known().await;
    let world = release.world("upgraded").await;
    world.apply(&model_api("llm")).await;
    {
        let _operator = release.working_operator().await;
        until_ready(&world, &[model_api("llm")]).await;
    }
    helm(&["rollback", RELEASE, "1"]).expect();
    assert_eq!(command().await, json!(["/manager"]));
    assert!(is_ready(&world.look("ModelAPI/llm").await));
}

#[tokio::test]
async fn the_chart_refuses_a_cluster_that_kaos_secured_until_a_user_accepts_it() {
    let release = Release::prepare().await;
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kaos-operator-config", "namespace": SYSTEM}, "data": {"SECURITY_PDP_ENABLED": "true"}});
    release.over(SYSTEM).apply(&config).await;
    // The Helm values of KAOS's security are missing, but the ConfigMap still shows that KAOS secured the cluster.
    let install = |flags: &[&str]| {
        let install = ["install", RELEASE, CHART, "--namespace", SYSTEM, "--take-ownership", "--dry-run=server"];
        release.cluster.helm(&[&install[..], flags].concat())
    };
    let (stopped, accepted) = (install(&[]), install(&["--set", "security.acceptUnserved={security.pdp.enabled}"]));
    release.cluster.kubectl(&["delete", "configmap", "kaos-operator-config", "-n", SYSTEM]).expect();
    let refused = stopped.expect_failure();
    for text in
        ["SECURITY_PDP_ENABLED in ConfigMap kaos-operator-config", "security.acceptUnserved={security.pdp.enabled}"]
    {
        assert!(refused.contains(text), "{refused}");
    }
    accepted.expect();
}
