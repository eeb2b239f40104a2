//! Puts the overlay over the policy `queue`. The tests run only natively, because a Wasm executable cannot contain two
//! components.
#![cfg(not(target_family = "wasm"))]
#![allow(clippy::unwrap_used)]

use kaos_policy_sdk::testing;
use kaos_policy_sdk::types::Plan;
use queue_limits_overlay::QueueLimits;
use queue_policy::Queue;
use serde_json::{Value, json};

const SCHEMA: &str = include_str!("../settings.schema.json");

/// Returns the plan of the policy `queue` with the overlay over it.
fn plan(beside: &[Value]) -> Plan {
    plan_with(&json!({}), beside)
}

/// Returns the plan with these settings of the policy `queue`.
fn plan_with(settings: &Value, beside: &[Value]) -> Plan {
    let queue = json!({"apiVersion": "example.com/v1", "kind": "Queue",
        "metadata": {"name": "jobs", "namespace": "default"}});
    let below = testing::subject(&queue).settings(settings).defaults(include_str!("../../queue/settings.schema.json"));
    let above = testing::subject(&queue).defaults(SCHEMA).beside_overlay::<QueueLimits>(beside);
    testing::overlaid::<Queue, QueueLimits>(&below.beside::<Queue>(&[]).build(), &above.build()).unwrap()
}

fn resources(plan: &Plan) -> Value {
    let set = testing::manifest(plan, "StatefulSet");
    set.at(&["spec", "template", "spec", "containers"]).unwrap()[0]["resources"].clone()
}

#[test]
fn the_servers_get_the_limits_of_their_namespace() {
    let limits = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "queue-limits", "namespace": "default"}, "data": {"cpu": "2", "other": "x"}});
    let plan = plan(&[limits]);
    assert_eq!(resources(&plan)["limits"], json!({"cpu": "2"}));
    assert_eq!(resources(&plan)["requests"]["cpu"], "100m");
    let origin = plan.origins.last().unwrap();
    assert_eq!((origin.manifest, &*origin.from), (3, "limits data.cpu"));
}

#[test]
fn other_limits_stay() {
    let limits = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "queue-limits", "namespace": "default"}, "data": {"cpu": "2"}});
    let settings = json!({"resources": {"limits": {"cpu": "8", "memory": "1Gi"}}});
    let plan = plan_with(&settings, &[limits]);
    assert_eq!(resources(&plan)["limits"], json!({"cpu": "2", "memory": "1Gi"}));
}

#[test]
fn without_limits_the_plan_has_no_change_except_for_a_note() {
    let plan = plan(&[]);
    assert_eq!(resources(&plan).get("limits"), None);
    assert_eq!(plan.notes[0].message, "the servers have no limits: there is no ConfigMap queue-limits");
}
