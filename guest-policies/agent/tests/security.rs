//! Tests the protection of an Agent: of its route, its pods, its calls through the Gateway, and its memory.

#![allow(clippy::panic, clippy::unwrap_used)] // helpers of tests; a failure must end the test

use kaos_agent::{Agent, Settings};
use kaos_policy_sdk::testing;
use kaos_policy_sdk::types::{Plan, Refusal};
use kaos_workload::schema::{leaves, with};
use serde_json::{Value, json};

const GUARD: &str = "gateway.envoyproxy.io/v1alpha1 SecurityPolicy";
const NETWORK: &str = "networking.k8s.io/v1 NetworkPolicy";
const ROUTE: &str = "gateway.networking.k8s.io/v1 HTTPRoute";

/// Returns the settings of a cluster with a Gateway and a decision point.
fn secured() -> Vec<(&'static str, Value)> {
    vec![
        ("gateway.enabled", json!(true)),
        ("gateway.name", json!("gw")),
        ("serviceAccount.audience", json!("kaos-gateway")),
        ("security.pdp", json!(true)),
        ("security.agents.issuer", json!("https://cluster")),
        ("security.agents.jwks", json!("{\"keys\":[]}")),
    ]
}

fn settings(changed: &[(&str, Value)]) -> Value {
    let schema: Value = serde_json::from_str(&Settings::schema_text()).unwrap();
    let defaults = leaves(&schema).into_iter().map(|(path, leaf)| (path, leaf["default"].clone()));
    let changed = changed.iter().map(|(path, value)| ((*path).to_owned(), value.clone()));
    defaults.chain(changed).fold(json!({}), |settings, (path, value)| with(&settings, &path, value))
}

fn other(kind: &str, name: &str, port: u16) -> Value {
    let endpoint = format!("http://{}-{name}.ns.svc.cluster.local:{port}", kind.to_lowercase());
    json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": "ns"},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}, "maxReadScope": "user"},
        "status": {"ready": true, "endpoint": endpoint}})
}

/// Returns the plan of an Agent on a cluster that serves these types.
fn planned(spec: &Value, changed: &[(&str, Value)], served: &[&str]) -> Result<Plan, Refusal> {
    let mut agent = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent",
        "metadata": {"name": "a", "namespace": "ns"}, "spec": {"modelAPI": "llm", "model": "m"}});
    for (field, value) in spec.as_object().unwrap() {
        agent["spec"][field] = value.clone();
    }
    let beside = [
        other("ModelAPI", "llm", 8000),
        other("MCPServer", "tools", 8000),
        other("Agent", "peer", 8000),
        other("MemoryStore", "s", 8080),
    ];
    let mut subject = testing::subject(&agent).settings(&settings(changed));
    for of in served {
        let (api_version, kind) = of.split_once(' ').unwrap();
        subject = subject.serves(api_version, kind);
    }
    testing::plan::<Agent>(&subject.beside::<Agent>(&beside).build())
}

fn plan(spec: &Value, changed: &[(&str, Value)]) -> Plan {
    planned(spec, changed, &[ROUTE, GUARD, NETWORK]).unwrap_or_else(|refused| panic!("{refused:?}"))
}

fn kinds(plan: &Plan) -> Vec<String> {
    testing::manifests(plan).iter().map(|manifest| manifest.kind().to_owned()).collect()
}

fn value<'a>(plan: &'a Plan, name: &str) -> Option<&'a str> {
    testing::env_value(&plan.env, "agent", name)
}

#[test]
fn a_protected_agent_has_a_decision_point_at_its_route() {
    let mut changed = secured();
    changed.push(("security.users.issuer", json!("http://keycloak.kaos-system.svc:8080/realms/kaos")));
    changed.push(("security.users.audience", json!("kaos")));
    let policy = testing::manifest(&plan(&json!({}), &changed), "SecurityPolicy").value().clone();
    let labels = json!({"app": "agent", "agent": "a"});
    assert_eq!(policy["metadata"], json!({"name": "agent-a", "namespace": "ns", "labels": labels}));
    let agent = json!({
        "name": "agent", "issuer": "https://cluster", "audiences": ["kaos-gateway"],
        "localJWKS": {"type": "Inline", "inline": "{\"keys\":[]}"},
        "extractFrom": {"headers": [{"name": "x-agent-authorization", "valuePrefix": "Bearer "}]},
        "claimToHeaders": [{"claim": "sub", "header": "x-agent-claim-sub"}],
    });
    let user = json!({
        "name": "user", "issuer": "http://keycloak.kaos-system.svc:8080/realms/kaos", "audiences": ["kaos"],
        "remoteJWKS": {"uri": "http://keycloak.kaos-system.svc:8080/realms/kaos/protocol/openid-connect/certs"},
        "claimToHeaders": [
            {"claim": "sub", "header": "x-user-claim-sub"},
            {"claim": "preferred_username", "header": "x-user-claim-username"},
        ],
    });
    assert_eq!(
        policy["spec"],
        json!({
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "agent-a"}],
            "extAuth": {
                "failOpen": false,
                "headersToExtAuth": ["authorization", "x-agent-authorization"],
                "grpc": {"backendRefs": [{"name": "kaos-pdp", "namespace": "kaos-system", "port": 9191}]},
            },
            "jwt": {"optional": true, "providers": [agent, user]},
        })
    );
}

#[test]
fn only_the_gateway_and_the_operator_reach_the_pods_of_a_protected_agent() {
    let from = |names: &[&str]| -> Vec<Value> {
        let peer = |name: &&str| json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}});
        names.iter().map(peer).collect()
    };
    let mut changed = secured();
    let policy = testing::manifest(&plan(&json!({}), &changed), "NetworkPolicy").value().clone();
    assert_eq!(policy["metadata"]["name"], "agent-a");
    let ingress = json!([{"from": from(&["envoy-gateway-system", "kaos-system"])}]);
    let selector = json!({"matchLabels": {"app": "agent", "agent": "a"}});
    assert_eq!(policy["spec"], json!({"podSelector": selector, "policyTypes": ["Ingress"], "ingress": ingress}));

    changed.push(("security.networkPolicy.egress", json!(true)));
    changed.push(("security.authorizer", json!("pdp.authz.svc:9191")));
    changed.push(("security.users.issuer", json!("http://keycloak.login.svc:8080/realms/kaos")));
    // The usual issuer of Agents' tokens is a Service of the namespace `default`. No pod has to reach this Service.
    changed.push(("security.agents.issuer", json!("https://kubernetes.default.svc.cluster.local")));
    let policy = testing::manifest(&plan(&json!({}), &changed), "NetworkPolicy").value().clone();
    let ports = json!([{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]);
    let egress = json!([
        {"to": from(&["kube-system"]), "ports": ports},
        {"to": from(&["envoy-gateway-system", "kaos-system", "login", "authz"])},
    ]);
    assert_eq!((&policy["spec"]["policyTypes"], &policy["spec"]["egress"]), (&json!(["Ingress", "Egress"]), &egress));
}

#[test]
fn the_objects_that_protect_an_agent_follow_its_exposure_and_the_settings() {
    let usual = ["Deployment", "Service", "SecurityPolicy", "NetworkPolicy", "HTTPRoute"];
    assert_eq!(kinds(&plan(&json!({}), &secured())), usual);
    assert_eq!(kinds(&plan(&json!({"agentNetwork": {"expose": false}}), &secured())), ["Deployment"]);
    let with = |path, value| {
        let mut changed = secured();
        changed.push((path, value));
        kinds(&plan(&json!({}), &changed))
    };
    assert_eq!(with("gateway.enabled", json!(false)), ["Deployment", "Service", "NetworkPolicy"]);
    assert_eq!(
        with("security.networkPolicy.disabled", json!(true)),
        ["Deployment", "Service", "SecurityPolicy", "HTTPRoute"]
    );
    let strict = [("security.strict", json!(true)), ("gatewayRouting.host", json!("gw"))];
    assert_eq!(kinds(&plan(&json!({}), &strict)), ["Deployment", "Service"], "no decision point");
}

#[test]
fn an_agent_that_cannot_be_protected_is_refused() {
    for (served, missing) in [([ROUTE, NETWORK], "SecurityPolicy"), ([ROUTE, GUARD], "NetworkPolicy")] {
        match planned(&json!({}), &secured(), &served) {
            Err(Refusal::Unsupported(why)) => {
                assert!(why.contains(missing) && why.contains("would be open"), "{why}");
            }
            other => panic!("{missing}: {other:?}"),
        }
    }
    // An Agent without a route needs no protection at the Gateway.
    let mut unrouted = secured();
    unrouted.push(("gateway.enabled", json!(false)));
    assert!(planned(&json!({}), &unrouted, &[NETWORK]).is_ok());
    for missing in ["security.agents.issuer", "security.agents.jwks", "serviceAccount.audience"] {
        let mut changed = secured();
        changed.push((missing, json!("")));
        let Err(Refusal::Invalid(wrong)) = planned(&json!({}), &changed, &[ROUTE, GUARD, NETWORK]) else {
            panic!("{missing}: is open")
        };
        let path = if missing == "serviceAccount.audience" { "security.agents.audience" } else { missing };
        assert_eq!(wrong[0].path, format!("settings.{path}"));
        assert!(wrong[0].message.contains("in the settings for the cluster, set it"), "{}", wrong[0].message);
    }
}

#[test]
fn a_route_names_its_resource_to_authorizers_before_the_path_is_rewritten() {
    let changed =
        [("gateway.enabled", json!(true)), ("gateway.name", json!("gw")), ("security.targetHeader", json!(true))];
    let route = testing::manifest(&plan(&json!({}), &changed), "HTTPRoute").value().clone();
    let set = json!([{"name": "x-kaos-target-resource", "value": "kaos://agent/ns/a"}]);
    let rewrite = json!({"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}});
    let filters = json!([
        {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": set}},
        {"type": "URLRewrite", "urlRewrite": rewrite},
    ]);
    assert_eq!(route["spec"]["rules"][0]["filters"], filters);
}

#[test]
fn routed_agents_call_models_tools_peers_and_stores_through_the_gateway() {
    let spec = json!({"mcpServers": ["tools"], "agentNetwork": {"access": ["peer"]}, "config": {"memory": {"memoryStore": "s", "maxReadScope": "agent"}}});
    let addresses = |plan: &Plan| {
        ["MODEL_API_URL", "MCP_SERVER_tools_URL", "PEER_AGENT_PEER_CARD_URL", "MEMORY_STORE_ENDPOINT"]
            .map(|name| value(plan, name).unwrap().to_owned())
    };
    let direct = plan(&spec, &[]);
    assert_eq!(addresses(&direct)[0], "http://modelapi-llm.ns.svc.cluster.local:8000");
    for switch in ["gatewayRouting.enabled", "security.strict"] {
        let routed = plan(&spec, &[(switch, json!(true)), ("gatewayRouting.host", json!("gw.example:8080"))]);
        assert_eq!(
            addresses(&routed),
            [
                "http://gw.example:8080/ns/modelapi/llm",
                "http://gw.example:8080/ns/mcp/tools",
                "http://gw.example:8080/ns/agent/peer",
                "http://gw.example:8080/ns/memorystore/s",
            ],
            "{switch}"
        );
        let Err(Refusal::Invalid(wrong)) = planned(&spec, &[(switch, json!(true))], &[ROUTE]) else {
            panic!("{switch}: calls past the Gateway")
        };
        assert_eq!(wrong[0].path, "settings.gatewayRouting.host");
    }
}

#[test]
fn the_memory_of_protected_agents_requires_identities() {
    let spec = |scope: &str| json!({"config": {"memory": {"memoryStore": "s", "maxReadScope": scope}}});
    let required = |plan: &Plan| {
        ["MEMORY_REQUIRE_PRINCIPAL", "MEMORY_REQUIRE_AGENT_IDENTITY"].map(|name| value(plan, name).map(str::to_owned))
    };
    let yes = Some("true".to_owned());
    let mut changed = secured();
    assert_eq!(required(&plan(&spec("agent"), &[])), [None, None]);
    assert_eq!(required(&plan(&spec("agent"), &changed)), [None, yes.clone()]);
    assert!(planned(&spec("user"), &changed, &[ROUTE, GUARD, NETWORK]).is_err(), "requests carry no user");
    changed.push(("security.users.issuer", json!("https://login")));
    assert_eq!(required(&plan(&spec("user"), &changed)), [yes.clone(), yes]);
    // The setting `security.users.issuer` alone causes no protection.
    let issuer = [("security.users.issuer", json!("https://login"))];
    assert_eq!(required(&plan(&spec("agent"), &issuer)), [None, None]);
}
