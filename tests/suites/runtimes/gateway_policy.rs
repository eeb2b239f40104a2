//! The part of a SecurityPolicy that the test gateway obeys. This part names the decision point, and the headers that
//! the decision point gets. It also says what happens to a request if the decision point does not answer.

use kaos_tests::harness::read::text;
use kaos_tests::harness::scenario::SYSTEM;
use serde_json::{Value, json};

use crate::pod::list;

/// The group of SecurityPolicies.
const GROUP: &str = "gateway.envoyproxy.io";

/// The field `extAuth` of a SecurityPolicy, and the namespace of the SecurityPolicy.
#[derive(Debug)]
pub(crate) struct GatewayPolicy {
    namespace: String,
    authorization: Value,
}

impl GatewayPolicy {
    /// Returns the first SecurityPolicy in `policies` that applies to a route and names a decision point.
    pub(crate) fn of(policies: &[Value], route: &str) -> Option<Self> {
        let is_about = |target: &Value| target["kind"] == "HTTPRoute" && target["name"] == *route;
        let protects = |policy: &&Value| {
            policy["spec"]["extAuth"].is_object() && list(&policy["spec"]["targetRefs"]).iter().any(is_about)
        };
        let policy = policies.iter().find(protects)?;
        let namespace = text(&policy["metadata"]["namespace"]).to_owned();
        Some(Self { namespace, authorization: policy["spec"]["extAuth"].clone() })
    }

    /// Returns whether the gateway may ask the decision point of the chart: the SecurityPolicy must name the decision
    /// point's Service, and a `ReferenceGrant` must allow this reference. `grants` are the `ReferenceGrants` in the
    /// namespace of the Service.
    pub(crate) fn reaches(&self, grants: &[Value]) -> bool {
        let backends = list(&self.authorization["grpc"]["backendRefs"]);
        let is_ours = |it: &Value| {
            let namespace = it["namespace"].as_str().unwrap_or(&self.namespace);
            (text(&it["name"]), namespace, &it["port"]) == ("kaos-pdp", SYSTEM, &json!(9191))
        };
        !backends.is_empty() && backends.iter().all(is_ours) && (self.namespace == SYSTEM || self.is_allowed(grants))
    }

    fn is_allowed(&self, grants: &[Value]) -> bool {
        let from = json!({"group": GROUP, "kind": "SecurityPolicy", "namespace": self.namespace});
        let is_to = |to: &Value| {
            to["kind"] == "Service" && to["group"] == "" && (to["name"].is_null() || to["name"] == "kaos-pdp")
        };
        let allows = |grant: &Value| {
            list(&grant["spec"]["from"]).contains(&from) && list(&grant["spec"]["to"]).iter().any(is_to)
        };
        grants.iter().any(allows)
    }

    /// Returns the headers that the decision point gets. If the SecurityPolicy does not list headers, the decision
    /// point gets all headers.
    pub(crate) fn forwarded(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let named: Vec<String> =
            list(&self.authorization["headersToExtAuth"]).iter().map(|it| text(it).to_lowercase()).collect();
        headers.iter().filter(|(name, _)| named.is_empty() || named.contains(name)).cloned().collect()
    }

    /// Returns whether the gateway forwards requests if the decision point gives no answer.
    pub(crate) fn fails_open(&self) -> bool {
        self.authorization["failOpen"] == true
    }
}

#[test]
fn a_security_policy_tells_which_decision_point_gets_which_headers() {
    let policy = |service: &str, headers: Value| {
        json!({"metadata": {"namespace": "team"}, "spec": {"targetRefs": [{"kind": "HTTPRoute", "name": "r"}],
            "extAuth": {"headersToExtAuth": headers,
                "grpc": {"backendRefs": [{"name": service, "namespace": SYSTEM, "port": 9191}]}}}})
    };
    let of = |service: &str, headers: Value| GatewayPolicy::of(&[policy(service, headers)], "r").unwrap();
    let named = of("kaos-pdp", json!(["X-Agent-Authorization"]));
    let header = |name: &str| (name.to_owned(), "x".to_owned());
    let headers = [header("authorization"), header("x-agent-authorization")];
    assert_eq!(named.forwarded(&headers), [header("x-agent-authorization")]);
    assert_eq!(of("kaos-pdp", json!(null)).forwarded(&headers), headers);
    let grant = |namespace: &str, service: &str| {
        json!({"spec": {"from": [{"group": GROUP, "kind": "SecurityPolicy", "namespace": namespace}],
            "to": [{"group": "", "kind": "Service", "name": service}]}})
    };
    assert!(named.reaches(&[grant("other", "kaos-pdp"), grant("team", "kaos-pdp")]) && !named.fails_open());
    for grants in [vec![], vec![grant("other", "kaos-pdp")], vec![grant("team", "opa")]] {
        assert!(!named.reaches(&grants), "{grants:?}");
    }
    assert!(!of("opa", json!([])).reaches(&[grant("team", "opa")]), "another Service");
    assert!(GatewayPolicy::of(&[policy("kaos-pdp", json!([]))], "other").is_none());
}
