//! Helps an overlay to change the plan of the layer below.
//!
//! ```
//! use kaos_policy_sdk::types::{Plan, Refusal, Subject};
//! use kaos_policy_sdk::{amend, plan};
//! use serde_json::json;
//!
//! fn amended(_: &Subject, mut below: Plan) -> Result<Plan, Refusal> {
//!     amend::pod_templates(&mut below, |template| {
//!         for container in amend::containers(template) {
//!             container["imagePullPolicy"] = json!("Always");
//!         }
//!     });
//!     Ok(below)
//! }
//!
//! let pod = json!({"spec": {"containers": [{"name": "main", "image": "app:1"}]}});
//! let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": pod}}).into();
//! let subject = kaos_policy_sdk::testing::subject(&json!({})).build();
//! let plan = amended(&subject, plan::of(&[deployment], Vec::new())).unwrap();
//! assert!(plan.manifests[0].contains(r#""imagePullPolicy":"Always""#));
//! ```
//!
//! The plan keeps the origins of the layer below. To declare the origins of changed values, use [`children`].

use crate::json;
use crate::plan::Child;
use crate::types::Plan;
use alloc::{borrow::ToOwned, string::String};
use serde_json::{Map, Value};

/// The registry of an image whose name contains no registry.
const HUB: &str = "docker.io";
/// The lists of containers in a pod spec.
const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

/// Calls `change` with each child of the plan. Keeps the text of a manifest that did not change. Adds the origins that
/// `change` declares to the origins of the plan.
pub fn children(plan: &mut Plan, mut change: impl FnMut(&mut Child)) {
    for (position, text) in (0..).zip(&mut plan.manifests) {
        let Some(manifest) = json::parse(text) else { continue };
        let mut child = Child::new(manifest.clone());
        change(&mut child);
        plan.origins.extend(child.origins_at(position));
        if child.manifest != manifest {
            *text = json::text(&child.manifest);
        }
    }
}

/// Like [`children`], but `change` sees only the manifest and cannot declare origins.
pub fn manifests(plan: &mut Plan, mut change: impl FnMut(&mut Value)) {
    children(plan, |child| change(&mut child.manifest));
}

/// Adds a child to the plan.
pub fn add(plan: &mut Plan, child: impl Into<Child>) {
    let child = child.into();
    let position = u32::try_from(plan.manifests.len()).unwrap_or(u32::MAX);
    plan.origins.extend(child.origins_at(position));
    plan.manifests.push(json::text(&child.manifest));
}

/// Calls `change` with the pod template of each workload in the plan. A template has `metadata` and `spec`.
pub fn pod_templates(plan: &mut Plan, mut change: impl FnMut(&mut Value)) {
    manifests(plan, |manifest| {
        if let Some(template) = pod_template(manifest) {
            change(template);
        }
    });
}

/// Returns the pod template of a workload. A bare Pod is its own template.
pub fn pod_template(manifest: &mut Value) -> Option<&mut Value> {
    let has_pod = |at: &&str| manifest.pointer(at).is_some_and(|template| template["spec"]["containers"].is_array());
    let at = ["", "/spec/template", "/spec/jobTemplate/spec/template"].into_iter().find(has_pod)?;
    manifest.pointer_mut(at)
}

/// Returns all containers of a pod template, including the init containers.
pub fn containers(template: &mut Value) -> impl Iterator<Item = &mut Value> {
    let spec = template.get_mut("spec").and_then(Value::as_object_mut);
    let lists = spec.into_iter().flatten().filter(|(name, _)| CONTAINERS.contains(&name.as_str()));
    lists.filter_map(|(_, list)| list.as_array_mut()).flatten()
}

/// Adds labels to a manifest or to a pod template. Keeps the values of existing labels, because selectors can use them.
pub fn add_labels<'a>(to: &mut Value, labels: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let Some(metadata) = member(to, "metadata") else { return };
    let Some(existing) = object(metadata.entry("labels").or_insert(Value::Null)) else { return };
    for (key, value) in labels {
        existing.entry(key).or_insert_with(|| value.into());
    }
}

/// Appends an item to a list of a pod template's `spec`, such as `containers`, `tolerations` or `volumes`.
pub fn push(template: &mut Value, list: &str, item: Value) {
    let Some(spec) = member(template, "spec") else { return };
    let items = spec.entry(list).or_insert(Value::Null);
    match items {
        Value::Array(items) => items.push(item),
        other => *other = Value::Array([item].into()),
    }
}

/// Replaces the registry of `image` with `registry`. `registry` is a host, and can have a path:
/// `mirror.example.com/hub`. An image without a registry is an image of Docker Hub, so `nginx` becomes
/// `mirror.example.com/hub/library/nginx`. If `image` already has this registry, returns `image` unchanged.
pub fn on_registry(image: &str, registry: &str) -> String {
    let registry = registry.trim_end_matches('/');
    if registry.is_empty() || image.strip_prefix(registry).is_some_and(|rest| rest.starts_with('/')) {
        return image.to_owned();
    }
    let (host, path) = match image.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => (host, path),
        _ => (HUB, image),
    };
    let official = if host == HUB && !path.contains('/') { "library/" } else { "" };
    format!("{registry}/{official}{path}")
}

/// Returns an object's member as an object. Creates the member if it is missing.
fn member<'a>(of: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    object(object(of)?.entry(name).or_insert(Value::Null))
}

/// Returns the value as an object. Turns null into an empty object.
fn object(value: &mut Value) -> Option<&mut Map<String, Value>> {
    if value.is_null() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::{add, add_labels, children, containers, manifests, on_registry, pod_template, pod_templates, push};
    use crate::plan::{self, Child};
    use crate::types::Plan;
    use serde_json::{Value, json};

    fn deployment() -> Value {
        let pod = json!({"metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "c"}], "initContainers": [{"name": "i"}]}});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": {"template": pod}})
    }

    #[test]
    fn an_image_gets_another_registry_and_keeps_its_name() {
        for (image, there) in [
            ("nginx", "m.example/library/nginx"),
            ("nginx:1.29", "m.example/library/nginx:1.29"),
            ("docker.io/nginx", "m.example/library/nginx"),
            ("axsauze/agent:v1", "m.example/axsauze/agent:v1"),
            ("ghcr.io/org/app@sha256:ab", "m.example/org/app@sha256:ab"),
            ("localhost/app", "m.example/app"),
            ("registry:5000/app:1", "m.example/app:1"),
            ("m.example/org/app:1", "m.example/org/app:1"),
        ] {
            assert_eq!(on_registry(image, "m.example"), there, "{image}");
        }
        assert_eq!(on_registry("m.example/app", "m.example/hub/"), "m.example/hub/app");
        assert_eq!(on_registry("nginx", ""), "nginx");
    }

    #[test]
    fn pod_templates_are_found_in_all_workloads() {
        let pod = json!({"spec": {"containers": []}});
        for mut manifest in [
            json!({"kind": "Pod", "spec": {"containers": []}}),
            json!({"kind": "Deployment", "spec": {"template": pod}}),
            json!({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": pod}}}}),
        ] {
            assert!(pod_template(&mut manifest).is_some(), "{manifest}");
        }
        assert!(pod_template(&mut json!({"kind": "Service", "spec": {}})).is_none());
    }

    #[test]
    fn only_changed_manifests_are_written_again() {
        let mut plan = plan::of(&[deployment().into(), json!({"kind": "Service"}).into()], Vec::new());
        // The text of the second manifest is not canonical JSON, so a rewritten text would differ.
        plan.manifests[1] = "{ }".to_owned();
        pod_templates(&mut plan, |template| {
            containers(template).for_each(|container| container["image"] = json!("x:1"));
        });
        assert_eq!(plan.manifests[0].matches("x:1").count(), 2, "{}", plan.manifests[0]);
        assert_eq!(plan.manifests[1], "{ }");
        manifests(&mut plan, |manifest| manifest["kind"] = json!("Other"));
        assert_eq!(plan.manifests[1], r#"{"kind":"Other"}"#);
    }

    #[test]
    fn a_changed_child_and_an_added_child_have_origins_at_their_positions() {
        let below = Child::new(deployment()).origin("spec.replicas", "spec.replicas");
        let mut plan = plan::of(&[json!({"kind": "Service"}).into(), below], Vec::new());
        children(&mut plan, |child| {
            if let Some(template) = pod_template(&mut child.manifest) {
                push(template, "tolerations", json!({"key": "gpu"}));
                child.declare("spec.template.spec.tolerations", "settings.tolerations");
            }
        });
        add(&mut plan, Child::new(json!({"kind": "ConfigMap"})).origin("data", "settings.data"));
        let origins = |plan: &Plan| -> Vec<_> {
            plan.origins.iter().map(|it| format!("{} {} {}", it.manifest, it.path, it.from)).collect()
        };
        assert_eq!(
            origins(&plan),
            [
                "1 spec.replicas spec.replicas",
                "1 spec.template.spec.tolerations settings.tolerations",
                "2 data settings.data"
            ]
        );
        assert!(plan.manifests[1].contains("gpu") && plan.manifests[2].contains("ConfigMap"), "{plan:?}");
    }

    #[test]
    fn labels_and_items_are_added_and_existing_labels_stay() {
        let mut manifest = deployment();
        add_labels(&mut manifest, [("team", "a")]);
        assert_eq!(manifest["metadata"]["labels"], json!({"team": "a"}));
        let template = pod_template(&mut manifest).unwrap();
        add_labels(template, [("team", "a"), ("app", "other")]);
        push(template, "tolerations", json!({"key": "gpu"}));
        push(template, "containers", json!({"name": "proxy"}));
        assert_eq!(template["metadata"]["labels"], json!({"app": "a", "team": "a"}));
        assert_eq!(template["spec"]["tolerations"], json!([{"key": "gpu"}]));
        assert_eq!(template["spec"]["containers"][1]["name"], "proxy");
    }
}
