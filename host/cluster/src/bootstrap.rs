//! The content of a new cluster: namespaces, a node and the API server's Service.

use serde_json::{Value, json};

use crate::{
    api,
    state::State,
    storage::{GroupResource, Key},
};

/// Adds the content of a new cluster to an empty state.
pub(crate) fn fill(state: &mut State, now: &str) {
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        add(state, "namespaces", "", name, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {}}), now);
    }
    let capacity = json!({"cpu": "64", "memory": "512Gi", "pods": "5000"});
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"labels": {"kubernetes.io/hostname": "node-0", "kubernetes.io/os": "linux"}}, "spec": {}});
    add(state, "nodes", "", "node-0", node, now);
    let place = (GroupResource::new("", "nodes"), Key::new("", "node-0"));
    if let Some(node) = state.store.get(&place.0, &place.1).cloned() {
        let mut node = (*node).clone();
        node["status"] = json!({"allocatable": capacity, "capacity": capacity,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "",
                "lastHeartbeatTime": now, "lastTransitionTime": now}],
            "nodeInfo": {"kubeletVersion": "embedded", "operatingSystem": "linux", "architecture": "amd64"}});
        state.store.put(&place.0, &place.1, node);
    }
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"labels": {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "type": "ClusterIP", "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}]}});
    add(state, "services", "default", "kubernetes", service, now);
}

fn add(state: &mut State, plural: &str, namespace: &str, name: &str, mut object: Value, now: &str) {
    let place = GroupResource::new("", plural);
    let Some(resource) = state.catalogue.of_storage(&place).cloned() else { return };
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object["metadata"]["name"] = json!(name);
    crate::kinds::normalise(&resource, &mut object);
    api::stamp(state, &resource, &mut object, name, now);
    state.store.put(&place, &Key::new(namespace, name), object);
}
