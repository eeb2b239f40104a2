//! Stamps manifests: adds the owner reference, the managed-by label and digests. If another client, such as an
//! autoscaler, sets the number of pods, removes the field `replicas`.

use std::collections::BTreeSet;

pub use kaos_objects::metadata::{LAST_APPLIED, MANAGED_BY, MANAGER, controller, owners};
use serde_json::{Map, Value, json};

use crate::{
    digest::{Digest, canonical},
    object::ObjectRef,
    pods,
};

/// The annotation that contains the digest of the applied manifest. Every child has this annotation.
pub const APPLIED_DIGEST: &str = "kaos.tools/applied-digest";
/// The annotation that contains the hash of a pod template. Every pod template has this annotation. Kubernetes restarts
/// the pods only if this hash changes.
pub const POD_SPEC_HASH: &str = "kaos.tools/pod-spec-hash";
/// The annotation with the operator's own hash of a child's pod template. The template itself keeps the hash that an
/// earlier operator computed for the same template.
pub const HASH_STANDS_FOR: &str = "kaos.tools/pod-spec-hash-stands-for";
/// The annotation of an object that decides who sets the replicas of its workloads. With the value `external`, another
/// client sets the replicas, and not the operator.
pub const REPLICAS: &str = "kaos.tools/replicas";
/// The value of the annotation [`REPLICAS`] that leaves the replicas to another client.
pub const EXTERNAL: &str = "external";

/// Returns the manifests of an object in the form that the host applies. `kept` contains the names of the
/// PersistentVolumeClaims that outlive the object.
pub(crate) fn stamped(mut manifests: Vec<Value>, owner: &ObjectRef, object: &Value, kept: &[String]) -> Vec<Value> {
    if leaves_replicas(object) {
        manifests.iter_mut().for_each(without_replicas);
    }
    let hashes: Vec<_> = manifests.iter().map(|manifest| pod_spec_hash(manifest, &manifests)).collect();
    let stamp = |(mut manifest, hash)| {
        let is_kept = is_claim(&manifest)
            && manifest["metadata"]["name"].as_str().is_some_and(|it| kept.iter().any(|name| name == it));
        stamp(&mut manifest, hash, owner, is_kept);
        manifest
    };
    manifests.into_iter().zip(hashes).map(stamp).collect()
}

/// Returns whether a manifest is a PersistentVolumeClaim.
fn is_claim(manifest: &Value) -> bool {
    manifest["apiVersion"] == "v1" && manifest["kind"] == "PersistentVolumeClaim"
}

/// Returns whether another client, and not the operator, sets the replicas of an object's workloads.
pub fn leaves_replicas(object: &Value) -> bool {
    object["metadata"]["annotations"][REPLICAS] == EXTERNAL
}

/// Removes the field `replicas` from a manifest that has pods.
pub fn without_replicas(manifest: &mut Value) {
    if pods::template(manifest).is_some()
        && let Some(spec) = manifest["spec"].as_object_mut()
    {
        spec.remove("replicas");
    }
}

/// Returns the digest of a manifest. The digest excludes the annotation that contains the digest.
pub fn applied_digest(manifest: &Value) -> Digest {
    let mut manifest = manifest.clone();
    if let Some(annotations) = manifest["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(APPLIED_DIGEST);
    }
    Digest::of_json(&manifest)
}

/// Returns one hash over a workload's pod template and the ConfigMaps to which the template refers. `beside` contains
/// the manifests of the plan. Returns `None` for manifests without pods.
pub fn pod_spec_hash(manifest: &Value, beside: &[Value]) -> Option<String> {
    let mut template = pods::template(manifest)?.clone();
    if let Some(annotations) = template["metadata"].get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(POD_SPEC_HASH);
        if annotations.is_empty() {
            template["metadata"].as_object_mut().map(|metadata| metadata.remove("annotations"));
        }
    }
    let mut hashed = canonical(&template);
    for config in referred_config_maps(&template["spec"], beside) {
        hashed.push('\n');
        hashed.push_str(&canonical(&json!([config["metadata"]["name"], config["data"], config["binaryData"]])));
    }
    Some(Digest::of(hashed.as_bytes()).short())
}

/// Returns the hash in a workload's pod template, or `None` if the template has no hash.
pub fn carried_hash(manifest: &Value) -> Option<&str> {
    pods::template(manifest)?["metadata"]["annotations"][POD_SPEC_HASH].as_str()
}

/// Sets the hash of a workload's pod template. After this change, the caller must [`seal`] the manifest again.
pub fn set_hash(manifest: &mut Value, hash: &str) {
    if let Some(template) = pods::template_mut(manifest) {
        entry(entry(template, "metadata"), "annotations")[POD_SPEC_HASH] = json!(hash);
    }
}

/// Returns the JSON pointer to the pod template of a workload, or `None` if the manifest has no pods. The pointer is
/// empty for a bare Pod, which is its own template.
pub fn pod_template_pointer(manifest: &Value) -> Option<&'static str> {
    pods::template_pointer(manifest)
}

/// Returns the pod template of a workload, or `None` if the manifest has no pods.
pub fn pod_template(manifest: &Value) -> Option<&Value> {
    pods::template(manifest)
}

/// Updates the digest of a manifest that the host changed after stamping.
pub fn seal(manifest: &mut Value) {
    // Create the annotations before the digest, so that a second call gives the same digest.
    entry(entry(manifest, "metadata"), "annotations");
    let digest = applied_digest(manifest);
    manifest["metadata"]["annotations"][APPLIED_DIGEST] = json!(digest.to_string());
}

fn stamp(manifest: &mut Value, hash: Option<String>, owner: &ObjectRef, is_kept: bool) {
    let mut reference = json!({
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "controller": true,
        "blockOwnerDeletion": true,
    });
    if let Some(uid) = &owner.uid {
        reference["uid"] = json!(uid);
    }
    if let (Some(hash), Some(template)) = (hash, pods::template_mut(manifest)) {
        entry(entry(template, "metadata"), "annotations")[POD_SPEC_HASH] = json!(hash);
    }
    let metadata = entry(manifest, "metadata");
    metadata["namespace"] = json!(owner.namespace);
    if !is_kept {
        metadata["ownerReferences"] = json!([reference]);
    }
    entry(metadata, "labels")[MANAGED_BY] = json!(MANAGER);
    seal(manifest);
}

/// Returns an object's field. If the field is not an object, replaces it with an empty object.
fn entry<'a>(value: &'a mut Value, field: &str) -> &'a mut Value {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let inner = &mut value[field];
    if !inner.is_object() {
        *inner = Value::Object(Map::new());
    }
    inner
}

/// Returns the ConfigMaps of a plan to which a pod spec, or a part of a pod spec, refers.
pub fn referred_config_maps<'a>(spec: &Value, plan: &'a [Value]) -> Vec<&'a Value> {
    let referred = references(spec);
    let is_referred = |config: &&Value| {
        config["metadata"]["name"].as_str().is_some_and(|name| referred.contains(&("ConfigMap", name)))
    };
    plan.iter().filter(|manifest| is_config_map(manifest)).filter(is_referred).collect()
}

/// Returns whether a manifest is a ConfigMap.
pub fn is_config_map(manifest: &Value) -> bool {
    manifest["apiVersion"] == "v1" && manifest["kind"] == "ConfigMap"
}

/// Returns the kind and name of each ConfigMap and Secret that pods mount or take variables from. `spec` is a pod spec
/// or a part of a pod spec.
pub fn references(spec: &Value) -> BTreeSet<(&'static str, &str)> {
    let mut found = BTreeSet::new();
    collect(spec, &mut found);
    found
}

fn collect<'a>(value: &'a Value, found: &mut BTreeSet<(&'static str, &'a str)>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let (kind, name) = match field.as_str() {
                    "configMap" | "configMapRef" | "configMapKeyRef" => ("ConfigMap", value["name"].as_str()),
                    "secretRef" | "secretKeyRef" => ("Secret", value["name"].as_str()),
                    // A projected Secret has a `name`, and a Secret volume has a `secretName`.
                    "secret" => ("Secret", value["name"].as_str().or_else(|| value["secretName"].as_str())),
                    _ => ("", None),
                };
                found.extend(name.filter(|name| !name.is_empty()).map(|name| (kind, name)));
                collect(value, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(annotations: &Value) -> Vec<Value> {
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "namespace": "n", "annotations": annotations},
        });
        let template = json!({"spec": {"containers": [{"name": "c"}]}});
        let manifests = vec![
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3, "template": template}}),
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"replicas": 2, "template": template}}),
            json!({"apiVersion": "example.com/v1", "kind": "Shards", "spec": {"replicas": 2}}),
        ];
        let owner = ObjectRef::of(&object).unwrap_or_else(|error| panic!("{error}"));
        stamped(manifests, &owner, &object, &[])
    }

    #[test]
    fn only_a_kept_persistent_volume_claim_has_no_owner() {
        let of = |kind: &str| json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "data"}});
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n"},
        });
        let owner = ObjectRef::of(&object).unwrap_or_else(|error| panic!("{error}"));
        let manifests = || vec![of("PersistentVolumeClaim"), of("Secret")];
        let owned = |kept: &[&str]| {
            let kept: Vec<_> = kept.iter().map(|name| (*name).to_owned()).collect();
            let stamped = stamped(manifests(), &owner, &object, &kept);
            stamped.iter().map(|manifest| owners(manifest).len()).collect::<Vec<_>>()
        };
        assert_eq!(owned(&["data"]), [0, 1]);
        assert_eq!(owned(&["other"]), [1, 1]);
        assert_eq!(owned(&[]), [1, 1]);
    }

    #[test]
    fn sealing_a_manifest_again_gives_the_same_digest() {
        for mut manifest in plan(&json!({})) {
            let before = manifest.clone();
            seal(&mut manifest);
            assert_eq!(manifest, before);
        }
    }

    #[test]
    fn a_workload_omits_replicas_that_another_manager_controls() {
        let left = plan(&json!({"kaos.tools/replicas": "external"}));
        assert!(left[0]["spec"]["replicas"].is_null() && left[1]["spec"]["replicas"].is_null());
        assert_eq!(left[2]["spec"]["replicas"], 2, "a kind without pods is not a workload");
        assert!(left.iter().all(|manifest| manifest["metadata"]["annotations"][APPLIED_DIGEST].is_string()));
        let others = json!({"kaos.tools/replicas": "ours"});
        let kept = plan(&others);
        assert_eq!((&kept[0]["spec"]["replicas"], &kept[1]["spec"]["replicas"]), (&json!(3), &json!(2)));
    }

    #[test]
    fn a_pod_refers_to_its_mounts_and_sources_of_variables() {
        let spec = json!({
            "imagePullSecrets": [{"name": "pull"}],
            "volumes": [
                {"name": "a", "configMap": {"name": "mounted"}},
                {"name": "b", "secret": {"secretName": "mounted"}},
                {"name": "c", "projected": {"sources": [
                    {"configMap": {"name": "projected"}}, {"secret": {"name": "projected"}},
                ]}},
            ],
            "containers": [{
                "name": "c",
                "envFrom": [{"configMapRef": {"name": "all"}}, {"secretRef": {"name": "all"}}],
                "env": [
                    {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "one", "key": "k"}}},
                    {"name": "B", "valueFrom": {"secretKeyRef": {"name": "one", "key": "k"}}},
                    {"name": "C", "valueFrom": {"secretKeyRef": {"name": "", "key": "k"}}},
                ],
            }],
        });
        let named = |kind| ["all", "mounted", "one", "projected"].map(|name| (kind, name));
        let all: Vec<_> = named("ConfigMap").into_iter().chain(named("Secret")).collect();
        assert_eq!(references(&spec).into_iter().collect::<Vec<_>>(), all);
    }
}
