//! Creates the objects that the operator of KAOS 0.8 leaves for a sample of `golden/today`.
//!
//! The project has no recording of a cluster with KAOS 0.8. Sample 20 contains a Deployment as KAOS's operator writes
//! it. For all other samples, this module renders the children with this operator, after it has removed the fields that
//! KAOS's operator ignores. Then it gives the children the labels and annotations of KAOS's operator, and removes the
//! variable that only this operator sets. Another test compares the rendered children with the description of KAOS 0.8
//! in `golden/today/expected`.

use std::collections::{BTreeMap, BTreeSet};

use kaos_tests::case;
use kaos_tests::harness::World;
use kaos_tests::harness::read::{name, text, uid};
use kaos_tests::harness::samples::volume_for;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::secured::described;
use crate::support::{Release, at};
use crate::upgrade::{GO, api, create};

/// Flags of `render` with the settings that the chart sets for a Gateway.
const ROUTED: [&str; 6] =
    ["--set", "gateway.enabled=true", "--set", "gateway.name=kaos-gateway", "--set", "gateway.namespace=kaos-system"];
/// The variable in the pods of proxies that only this operator sets.
const PERMISSION: &str = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY";
/// The fields of a ModelAPI's container that KAOS's operator ignores, and this operator uses.
const IGNORED: [&str; 4] = ["image", "command", "args", "resources"];

/// One sample on the cluster, with the objects that KAOS's operator leaves for it.
pub(crate) struct Left {
    pub(crate) world: World,
    pub(crate) sample: &'static str,
    /// The objects of KAOS's kinds.
    pub(crate) objects: Vec<String>,
    /// The children that this operator takes over.
    pub(crate) children: Vec<String>,
    /// The UIDs of objects that the takeover must not replace: objects without an owner, and objects of the kinds in
    /// `DEAR`.
    pub(crate) kept: BTreeMap<String, String>,
    pub(crate) pods: BTreeMap<String, String>,
    /// The Deployments of objects with fields that KAOS's operator ignored. The takeover replaces the pods of these
    /// Deployments.
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
/// `settings` are the flags that give `render` the settings of the cluster.
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
