//! Builds the report on a workload. After every outcome of a pass, `phase`, `ready` and `message` agree.
//!
//! A policy adds its own fields and conditions to an [`Assessment`], and then turns it into a report.

use crate::kind::{ROUTE_API, ROUTE_KIND, Workload};
use crate::rollout::Rollout;
use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_policy_sdk::types::{Blocker, Condition, Observation, Outcome, Refusal, Report};
use kaos_policy_sdk::{Object, condition, json as text};
use serde_json::{Map, Value};

/// The phases that all kinds share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The pods are starting.
    Pending,
    /// Pods of the current generation are available.
    Ready,
    /// The policy refused the object, or the host could not apply the plan.
    Failed,
    /// The object waits, because another object is missing or not ready.
    Waiting,
}

impl Phase {
    /// Returns the phase as text for `status.phase`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Ready => "Ready",
            Self::Failed => "Failed",
            Self::Waiting => "Waiting",
        }
    }
}

/// A report under construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Assessment {
    /// `status.phase`, which also determines `status.ready`.
    pub phase: Phase,
    /// `status.message`.
    pub message: String,
    /// The other fields of `status`.
    pub fields: Map<String, Value>,
    /// The policy's conditions.
    pub conditions: Vec<Condition>,
}

impl Assessment {
    /// Turns the assessment into a report.
    pub fn into_report(self) -> Report {
        Report {
            ready: self.phase == Phase::Ready,
            phase: self.phase.as_str().to_owned(),
            message: self.message,
            fields: text::text(&Value::Object(self.fields)),
            conditions: self.conditions,
            extra: text::empty(),
        }
    }
}

/// Assesses `workload` by its live children. `port` is the port of the wanted endpoint, or `None` for an object that is
/// not exposed. `replicas` is the wanted number of pods, used only while the Deployment does not exist.
pub fn assess(workload: &Workload<'_>, port: Option<u16>, replicas: Option<i64>, seen: &Observation) -> Assessment {
    let deployment = live(seen, "apps/v1", "Deployment", &workload.child_name());
    let rollout = Rollout::read(deployment.as_ref(), replicas.unwrap_or(1));
    let (phase, message) = verdict(&seen.outcome, &seen.gates, &rollout);

    let mut fields = Map::new();
    let accepted = matches!(seen.outcome, Outcome::Applied | Outcome::Gated);
    // Other objects can use the address, so keep it while the Service exists, even if the policy refuses the object.
    let in_use = || served_port(&live(seen, "v1", "Service", &workload.child_name())?);
    if let Some(port) = if accepted { port } else { in_use() } {
        fields.insert("endpoint".into(), workload.endpoint(port).into());
    }
    fields.insert("replicas".into(), rollout.replicas.into());
    fields.insert("selector".into(), workload.selector_text().into());
    if let Some(block) = rollout.into_status() {
        fields.insert("deployment".into(), block);
    }
    let route = live(seen, ROUTE_API, ROUTE_KIND, &workload.route_name());
    Assessment { phase, message, fields, conditions: routed(seen, route.as_ref()).into_iter().collect() }
}

/// Returns the first port of a Service, or `None` without a port.
fn served_port(service: &Object) -> Option<u16> {
    let first = service.at(&["spec", "ports"])?.as_array()?.first()?;
    first.get("port")?.as_u64()?.try_into().ok()
}

/// Returns the phase and the message. If an object waits for another object but its pods serve, only its pods decide
/// the phase. So an unstable dependency does not make the object unready.
fn verdict(outcome: &Outcome, gates: &[Blocker], rollout: &Rollout) -> (Phase, String) {
    let by_pods = || {
        let phase = if rollout.serves() { Phase::Ready } else { Phase::Pending };
        (phase, rollout.message())
    };
    let waits = |on: &[Blocker]| {
        if rollout.serves() { by_pods() } else { (Phase::Waiting, first_message(on)) }
    };
    match outcome {
        Outcome::Applied => by_pods(),
        Outcome::Gated => waits(gates),
        Outcome::Refused(Refusal::Waiting(on)) => waits(on),
        Outcome::Refused(Refusal::Invalid(violations)) => {
            let told: Vec<String> =
                violations.iter().map(|wrong| format!("{}: {}", wrong.path, wrong.message)).collect();
            (Phase::Failed, told.join("; "))
        }
        Outcome::Refused(Refusal::Unsupported(message)) | Outcome::Failed(message) => (Phase::Failed, message.clone()),
    }
}

fn first_message(blockers: &[Blocker]) -> String {
    blockers.first().map_or_else(|| "waiting".to_owned(), |blocker| blocker.message.clone())
}

/// Builds the condition `DependenciesReady` of a kind with dependencies. `blockers` contains the dependencies that are
/// missing or do not serve. After the first apply, `blockers` must not contain a dependency that is unready only
/// because of its own rollout. So the rollout of one object causes no status write for the objects that depend on it.
pub fn dependencies_ready(blockers: &[Blocker]) -> Condition {
    let Some(first) = blockers.first() else {
        return condition::yes("DependenciesReady", "Ready", "every dependency serves");
    };
    let messages: Vec<&str> = blockers.iter().map(|blocker| blocker.message.as_str()).collect();
    condition::no("DependenciesReady", &first.reason, messages.join("; "))
}

/// Returns the live child with this identity, or `None` if the child does not exist.
fn live(seen: &Observation, api_version: &str, kind: &str, name: &str) -> Option<Object> {
    let child = seen.children.iter().find(|child| {
        let identity = &child.identity;
        identity.api_version == api_version && identity.kind == kind && identity.name == name
    })?;
    child.live.as_deref().map(Object::parse)
}

/// Builds the condition `Routed`. The condition shows whether the Gateway's controller accepts the route. If routes are
/// enabled but the object has no route, the condition says why.
fn routed(seen: &Observation, route: Option<&Object>) -> Option<Condition> {
    const ROUTED: &str = "Routed";
    if let Some(note) = seen.notes.iter().find(|note| note.reason.starts_with("Gateway")) {
        return Some(condition::no(ROUTED, &note.reason, note.message.clone()));
    }
    let parents = route?.at(&["status", "parents"]).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let conditions = || parents.iter().filter_map(|parent| parent.get("conditions")?.as_array()).flatten();
    let field =
        |condition: &Value, name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(refused) = conditions().find(|condition| field(condition, "status") == "False") {
        return Some(condition::no(ROUTED, &field(refused, "reason"), field(refused, "message")));
    }
    let accepted = conditions().any(|c| field(c, "type") == "Accepted" && field(c, "status") == "True");
    Some(if accepted {
        condition::yes(ROUTED, "Accepted", "the Gateway accepted the route")
    } else {
        condition::unknown(ROUTED, "Pending", "no Gateway has accepted the route yet")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use kaos_policy_sdk::{blocker, need, note, refusal, testing};
    use serde_json::json;

    static KIND: Kind = Kind { app: "thing", prefix: "thing", container: "main", route: "thing" };
    const X: Workload<'_> = Workload { kind: &KIND, name: "x", namespace: "ns", domain: "cluster.local" };

    fn deployment(available: i64) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "thing-x", "generation": 1},
            "spec": {"replicas": 1},
            "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1,
                       "readyReplicas": available, "availableReplicas": available},
        })
    }

    fn gate() -> Blocker {
        blocker::new(need::reference("v1", "Secret", "s"), "NotReady", "Secret s is not ready")
    }

    #[test]
    fn an_applied_object_follows_its_pods() {
        let up = testing::observation(Outcome::Applied).child(&deployment(1)).build();
        let report = assess(&X, Some(80), None, &up).into_report();
        assert!(report.ready);
        assert_eq!((report.phase.as_str(), report.message.as_str()), ("Ready", "Deployment ready replicas: 1/1"));
        let down = testing::observation(Outcome::Applied).child(&deployment(0)).build();
        assert_eq!(assess(&X, Some(80), None, &down).phase, Phase::Pending);
    }

    #[test]
    fn a_gated_object_waits_until_its_own_pods_serve() {
        let waiting = testing::observation(Outcome::Gated).gate(gate()).build();
        let said = assess(&X, Some(80), None, &waiting);
        assert_eq!((said.phase, said.message.as_str()), (Phase::Waiting, "Secret s is not ready"));
        assert_eq!(said.fields["endpoint"], "http://thing-x.ns.svc.cluster.local:80");
        let running = testing::observation(Outcome::Gated).gate(gate()).child(&deployment(1)).build();
        assert_eq!(assess(&X, Some(80), None, &running).phase, Phase::Ready);
        assert_eq!(dependencies_ready(&running.gates).message, "Secret s is not ready");
        assert_eq!(dependencies_ready(&[]).message, "every dependency serves");
    }

    #[test]
    fn a_refused_object_is_failed_and_keeps_the_address_that_its_service_has() {
        let ports = json!([{"name": "http", "port": 8000, "targetPort": 80}]);
        let service =
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "thing-x"}, "spec": {"ports": ports}});
        let outcome = Outcome::Refused(refusal::invalid("spec.x", "x is wrong"));
        let bare = testing::observation(outcome.clone()).build();
        let said = assess(&X, Some(80), None, &bare);
        assert_eq!((said.phase, said.message.as_str()), (Phase::Failed, "spec.x: x is wrong"));
        assert!(!said.fields.contains_key("endpoint"));
        let served = testing::observation(outcome).child(&service).child(&deployment(1)).build();
        let said = assess(&X, Some(80), None, &served);
        assert_eq!(said.phase, Phase::Failed);
        // While the policy refuses the object, the port in the spec has no effect.
        assert_eq!(said.fields["endpoint"], "http://thing-x.ns.svc.cluster.local:8000");
    }

    #[test]
    fn an_object_that_is_not_exposed_has_no_endpoint() {
        let seen = testing::observation(Outcome::Applied).build();
        assert!(!assess(&X, None, Some(2), &seen).fields.contains_key("endpoint"));
    }

    #[test]
    fn scale_finds_its_counts_and_selector() {
        let seen = testing::observation(Outcome::Applied).child(&deployment(1)).build();
        let fields = assess(&X, None, None, &seen).fields;
        assert_eq!((&fields["replicas"], &fields["selector"]), (&json!(1), &json!("app=thing,thing=x")));
    }

    #[test]
    fn a_missing_or_refused_route_is_reported() {
        let note = note::warning("GatewayUnserved", "no such type");
        let seen = testing::observation(Outcome::Applied).note(note).build();
        assert_eq!(assess(&X, None, None, &seen).conditions[0].reason, "GatewayUnserved");
        let mut route = json!({"apiVersion": ROUTE_API, "kind": ROUTE_KIND, "metadata": {"name": "thing-x"}});
        let seen = testing::observation(Outcome::Applied).child(&route).build();
        assert_eq!(assess(&X, None, None, &seen).conditions[0].reason, "Pending");
        route["status"] = json!({"parents": [{"conditions": [{"type": "Accepted", "status": "False", "reason": "NoMatchingParent"}]}]});
        let seen = testing::observation(Outcome::Applied).child(&route).build();
        assert_eq!(assess(&X, None, None, &seen).conditions[0].reason, "NoMatchingParent");
    }
}
