//! Turns a plan's manifests into the manifests that the operator applies. A final manifest differs from the planned
//! manifest only in fields that depend on the live child.
//!
//! A workload of an earlier operator keeps its pod-spec hash, so that the takeover restarts no pod. If another client
//! sets the replicas, the operator stops managing the field `replicas`. All other parts of a manifest stay as planned.

use kaos_policy::{
    contract::{Reference, ResourceType},
    stamp::{
        APPLIED_DIGEST, HASH_STANDS_FOR, carried_hash, leaves_replicas, pod_template, referred_config_maps, seal,
        set_hash,
    },
};
use serde_json::{Value, json};

use crate::hashing::hash;
use crate::reconcile::{children::drift, mark::Mark};

/// The final manifest of one child.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) of: ResourceType,
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// The manifest, with its own digest in an annotation.
    pub(crate) body: Value,
    /// Whether another client sets the replicas, so that the operator must stop managing the field `replicas`.
    pub(crate) releases_replicas: bool,
}

impl Wanted {
    /// Builds the final manifest of a child. `live` is the existing child. The function `was_like` returns whether a
    /// ConfigMap of the `plan` has the same content as the ConfigMap that an earlier operator wrote.
    pub(crate) fn new(
        manifest: &Value,
        object: &Value,
        live: Option<&Value>,
        was_like: &dyn Fn(&Value) -> bool,
        plan: &[Value],
    ) -> Self {
        let mut body = manifest.clone();
        if let Some(live) = live {
            keep_hash(&mut body, live, was_like, plan);
        }
        seal(&mut body);
        let reference = Reference::of_object(&body);
        let releases_replicas = leaves_replicas(object) && pod_template(&body).is_some();
        Self {
            of: reference.of(),
            namespace: reference.namespace.unwrap_or_default(),
            name: reference.name,
            body,
            releases_replicas,
        }
    }

    /// Returns whether the child is a workload with one replica. This can be a default, if the object sets no number.
    pub(crate) fn has_one_replica(&self) -> bool {
        pod_template(&self.body).is_some() && self.body["spec"]["replicas"] == 1
    }

    /// Returns whether other field managers must not add fields to the child's spec. Other managers may write a restart
    /// annotation, a replica count or a container into a workload, and an address into a Service. In any other child,
    /// such as an HTTPRoute, an added rule or host changes the behaviour.
    pub(crate) fn has_whole_spec(&self) -> bool {
        !self.of.group().is_empty() && pod_template(&self.body).is_none()
    }

    /// Returns the digest of this manifest. A live child has the same digest if the operator applied this manifest
    /// last.
    pub(crate) fn digest(&self) -> &str {
        self.body["metadata"]["annotations"][APPLIED_DIGEST].as_str().unwrap_or_default()
    }

    pub(crate) fn reference(&self) -> Reference {
        Reference::of_object(&self.body)
    }
}

/// Returns the rank of a type in the order of applies. First come configuration, identities and protection, then
/// workloads, then Services, routes and all other types. So every workload and route has its protection from the start.
pub(crate) fn rank(of: &ResourceType, runs_pods: bool) -> u8 {
    const FIRST: [&str; 4] = ["ConfigMap", "Secret", "ServiceAccount", "PersistentVolumeClaim"];
    match of.group() {
        "" if FIRST.contains(&of.kind.as_str()) => 0,
        group if !group.is_empty() && of.kind.ends_with("Policy") => 0,
        _ if runs_pods => 1,
        _ => 2,
    }
}

/// Keeps the hash that an earlier operator put on the live pod template, until the template or one of its ConfigMaps in
/// the plan changes. Also writes the hash that this operator computed into an annotation of the child. A later pass
/// compares this annotation to notice a changed template or ConfigMap.
fn keep_hash(body: &mut Value, live: &Value, was_like: &dyn Fn(&Value) -> bool, plan: &[Value]) {
    let (Some(computed), Some(carried)) = (carried_hash(body).map(str::to_owned), carried_hash(live)) else { return };
    if computed == carried {
        return;
    }
    let annotations = &live["metadata"]["annotations"];
    let stands = match (annotations[HASH_STANDS_FOR].as_str(), annotations[APPLIED_DIGEST].as_str()) {
        (Some(stands_for), _) => stands_for == computed,
        // This operator computed the live hash, for an earlier plan.
        (None, Some(_)) => false,
        (None, None) => {
            let mut kept = body.clone();
            set_hash(&mut kept, carried);
            let wanted = pod_template(&kept).zip(pod_template(live));
            wanted.is_some_and(|(wanted, live)| drift::missing(wanted, live).is_none())
                && config_unchanged(&body["spec"], was_like, plan)
        }
    };
    if stands {
        set_hash(body, carried);
        // The indexing does not fail, because stamped manifests always have annotations.
        body["metadata"]["annotations"][HASH_STANDS_FOR] = json!(computed);
    }
}

/// Checks the ConfigMaps in the plan that a workload uses. Returns whether each of these ConfigMaps already had its
/// planned content before this operator first wrote the ConfigMap.
fn config_unchanged(spec: &Value, was_like: &dyn Fn(&Value) -> bool, plan: &[Value]) -> bool {
    referred_config_maps(spec, plan).into_iter().all(was_like)
}

/// Returns a hash of a ConfigMap's content. An empty map has the same hash as a missing map.
pub(crate) fn held(config: &Value) -> Mark {
    hash(["data", "binaryData"].map(|field| config[field].as_object().filter(|map| !map.is_empty())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "t", "name": "c"}, "data": {"k": text}})
    }

    fn deployment(hash: &str, annotations: &Value, image: &str) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "t", "name": "a", "annotations": annotations},
            "spec": {"replicas": 2, "template": {
                "metadata": {"annotations": {"kaos.tools/pod-spec-hash": hash}},
                "spec": {"containers": [{"name": "a", "image": image, "envFrom": [{"configMapRef": {"name": "c"}}]}]},
            }},
        })
    }

    fn wanted(manifest: &Value, live: &Value, live_config: &Value, config: &Value) -> Wanted {
        let was_like = |config: &Value| held(config) == held(live_config);
        let plan = [config.clone(), manifest.clone()];
        Wanted::new(manifest, &json!({}), Some(live), &was_like, &plan)
    }

    #[test]
    fn an_equal_template_of_an_earlier_operator_keeps_its_hash() {
        let live = deployment("theirs", &json!({}), "x");
        let plan = deployment("ours", &json!({}), "x");
        let kept = wanted(&plan, &live, &config("v"), &config("v"));
        assert_eq!(carried_hash(&kept.body), Some("theirs"));
        // The child also keeps the hash if only fields outside its template change.
        let mut later = plan.clone();
        later["metadata"]["labels"] = json!({"new": "label"});
        let kept = wanted(&later, &kept.body, &config("v"), &config("v"));
        assert_eq!(carried_hash(&kept.body), Some("theirs"));
        // The child keeps the earlier operator's hash until the plan has another hash.
        let changed = wanted(&deployment("new", &json!({}), "x"), &kept.body, &config("v"), &config("w"));
        assert_eq!(carried_hash(&changed.body), Some("new"));
        assert!(changed.body["metadata"]["annotations"][HASH_STANDS_FOR].is_null());
    }

    #[test]
    fn a_hash_moves_when_the_template_or_its_configuration_differs() {
        let live = deployment("theirs", &json!({}), "x");
        let plan = deployment("ours", &json!({}), "y");
        assert_eq!(carried_hash(&wanted(&plan, &live, &config("v"), &config("v")).body), Some("ours"));
        let plan = deployment("ours", &json!({}), "x");
        assert_eq!(carried_hash(&wanted(&plan, &live, &config("v"), &config("w")).body), Some("ours"));
    }

    #[test]
    fn a_hash_of_our_own_moves_with_the_plan() {
        let live = deployment("old", &json!({"kaos.tools/applied-digest": "d"}), "x");
        let plan = deployment("new", &json!({}), "x");
        assert_eq!(carried_hash(&wanted(&plan, &live, &config("v"), &config("v")).body), Some("new"));
    }

    #[test]
    fn replicas_are_released_where_another_client_sets_them() {
        let external = json!({"metadata": {"annotations": {"kaos.tools/replicas": "external"}}});
        let releases =
            |manifest: &Value, object: &Value| Wanted::new(manifest, object, None, &|_| false, &[]).releases_replicas;
        assert!(releases(&deployment("h", &json!({}), "x"), &external));
        assert!(!releases(&config("v"), &external));
        assert!(!releases(&deployment("h", &json!({}), "x"), &json!({})));
    }

    #[test]
    fn configuration_comes_first_and_workloads_last() {
        let rank = |api_version: &str, kind: &str, pods| rank(&ResourceType::new(api_version, kind), pods);
        assert!(rank("v1", "ConfigMap", false) < rank("apps/v1", "Deployment", true));
        assert!(rank("apps/v1", "Deployment", true) < rank("v1", "Service", false));
        assert_eq!(rank("v1", "Service", false), rank("gateway.networking.k8s.io/v1", "HTTPRoute", false));
        for (api_version, kind) in
            [("networking.k8s.io/v1", "NetworkPolicy"), ("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy")]
        {
            assert!(rank(api_version, kind, false) < rank("apps/v1", "Deployment", true), "{kind}");
        }
    }
}
