//! Blank objects of built-in kinds. A blank object contains only the fields that a Go client writes even if they are
//! empty. A client that creates an object owns only the fields that differ from the blank object.

use serde_json::{Value, json};

use crate::catalogue::{Family, Resource};

/// Returns the blank object of a kind.
pub(crate) fn blank(resource: &Resource) -> Value {
    let template = json!({"metadata": {}, "spec": {"containers": null}});
    let mut object = match (resource.family, resource.kind.as_str()) {
        (Family::Deployment, _) => {
            json!({"spec": {"selector": null, "strategy": {}, "template": template}, "status": {}})
        }
        (Family::ReplicaSet, _) => json!({"spec": {"selector": null, "template": template}, "status": {"replicas": 0}}),
        (Family::StatefulSet, _) => {
            json!({"spec": {"selector": null, "serviceName": "", "template": template, "updateStrategy": {}},
                "status": {"replicas": 0, "availableReplicas": 0}})
        }
        (Family::Job, _) => json!({"spec": {"template": template}, "status": {}}),
        (Family::Budget, _) => {
            json!({"spec": {}, "status": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}})
        }
        (Family::Pod, _) => json!({"spec": {"containers": null}, "status": {}}),
        (Family::Service, _) => json!({"spec": {}, "status": {"loadBalancer": {}}}),
        (Family::Namespace | Family::Lease | Family::Node, _) => json!({"spec": {}, "status": {}}),
        (Family::Event, _) => {
            json!({"involvedObject": {}, "source": {}, "firstTimestamp": null, "lastTimestamp": null, "eventTime": null,
                "reportingComponent": "", "reportingInstance": ""})
        }
        (Family::NewEvent, _) => {
            json!({"regarding": {}, "deprecatedSource": {}, "deprecatedFirstTimestamp": null,
                "deprecatedLastTimestamp": null, "eventTime": null})
        }
        (Family::EndpointSlice, _) => json!({"addressType": "", "endpoints": null, "ports": null}),
        (Family::Rbac, "Role" | "ClusterRole") => json!({"rules": null}),
        (Family::Rbac, _) => json!({"roleRef": {"apiGroup": "", "kind": "", "name": ""}}),
        (Family::Definition, _) => {
            json!({"spec": {"group": "", "names": {"plural": "", "kind": ""}, "scope": "", "versions": null},
                "status": {"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": null}})
        }
        _ => json!({}),
    };
    object["apiVersion"] = json!(resource.api_version());
    object["kind"] = json!(resource.kind);
    object["metadata"] = json!({});
    object
}
