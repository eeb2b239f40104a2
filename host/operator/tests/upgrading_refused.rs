//! Tests that `kaos-operator upgrade-check` names the values that the chart refuses. Also tests that the check names a
//! broker that the earlier release uses, although no value names this broker.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::{
    support::Folder,
    today::sample,
    upgrading::{check, of},
};
use serde_json::{Value, json};

#[test]
fn what_the_chart_refuses_is_named_with_path_and_remedy() {
    let folder = Folder::new("upgrade-refused");
    for (values, about) in [
        ("{security: {webhooks: {enabled: true}}}", "security"),
        ("{nonsense: 1}", "the values"),
        ("{security: true}", "security"),
        ("{defaultImages: [a], mcpRuntimes: x}", "mcpRuntimes"),
        ("{security: {pdp: {enabled: 'true'}}}", "security.pdp.enabled"),
        ("{gatewayAPI: {gatewayName: null}}", "gatewayAPI.gatewayName"),
        ("{logLevel: LOUD}", "logLevel"),
        ("{gateway: {defaultTimeouts: {agent: 5}}}", "gateway.defaultTimeouts.agent"),
        ("{compatibility: kaos-0.9}", "compatibility"),
        ("{compatibility: ./mine.yaml}", "compatibility"),
        (
            "{controllerManager: {manager: {image: {repository: axsauze/kaos-operator}}}}",
            "controllerManager.manager.image.repository",
        ),
        ("{controllerManager: {replicas: 2, manager: {args: []}}}", "controllerManager.replicas"),
        (
            "{controllerManager: {manager: {env: [{name: RUST_LOG, value: x}]}}}",
            "controllerManager.manager.env: RUST_LOG",
        ),
        ("{extraConfig: {WATCH_NAMESPACES: a}}", "extraConfig.WATCH_NAMESPACES"),
        (
            "{security: {strictGatewayApi: {enabled: true}}, extraConfig: {SECURITY_NETWORK_POLICY_DISABLED: 'true'}}",
            "extraConfig.SECURITY_NETWORK_POLICY_DISABLED",
        ),
        (
            "{security: {strictGatewayApi: {enabled: true}}, controllerManager: {manager: {env: \
             [{name: SECURITY_NETWORK_POLICY_DISABLED, value: 'true'}]}}}",
            "controllerManager.manager.env: SECURITY_NETWORK_POLICY_DISABLED",
        ),
        (
            "{controllerManager: {manager: {env: [{name: AUTHZ_PROJECTION_NAMESPACES, \
             valueFrom: {configMapKeyRef: {name: x, key: y}}}]}}}",
            "controllerManager.manager.env: AUTHZ_PROJECTION_NAMESPACES",
        ),
        (
            "{controllerManager: {manager: {extraArgs: ['--authorization-namespaces=a,b']}}}",
            "controllerManager.manager.extraArgs: --authorization-namespaces",
        ),
        (
            "{controllerManager: {manager: {args: [--leader-elect, --decision-point]}}}",
            "controllerManager.manager.args: --decision-point",
        ),
        ("{security: {strictGatewayApi: {enabled: true}}}", "gatewayAPI.enabled"),
        ("{security: {userAuth: {issuer: 'https://login'}}}", "security.strictGatewayApi.enabled"),
        (
            "{compatibility: kaos-0.1, security: {pdp: {enabled: true}}}",
            "security.agentAuth.identity.serviceAccount.audience",
        ),
        ("{compatibility: kaos-0.1, security: {pdp: {enabled: true}}}", "security.agentAuth.identity.provider"),
        ("{gatewayAPI: {createGateway: true, gatewayClassName: x}}", "gatewayAPI.enabled"),
        ("{gatewayAPI: {enabled: true, createGateway: true}}", "gatewayAPI.gatewayClassName"),
        ("{serviceAccount: {create: false}}", "serviceAccount.name"),
        ("{watchSecrets: {enabled: true}}", "watchSecrets.digestKeySecret"),
        ("{policies: {kaos-authz-policy: {policy: agent, settings: {logLevel: DEBUG}}}}", "policies.kaos-authz-policy"),
        (
            "{security: {agentAuth: {projection: {policyConfigMap: {name: rules}}}}, \
             policies: {rules: {policy: agent, settings: {logLevel: DEBUG}}}}",
            "policies.rules",
        ),
        (
            "{policies: {kaos-kaos-operator-dashboard: {policy: agent, settings: {logLevel: DEBUG}}}}",
            "policies.kaos-kaos-operator-dashboard",
        ),
        (
            "{fullnameOverride: x, policies: {x-dashboard: {policy: agent, settings: {logLevel: DEBUG}}}}",
            "policies.x-dashboard",
        ),
        (
            "{policies: {kaos-operator-config: {policy: agent, settings: {logLevel: DEBUG}}}}",
            "policies.kaos-operator-config",
        ),
    ] {
        let file = folder.write("values.yaml", values);
        let ran = check(&["-f", &sample("20-model.yaml"), "--values", &file, "-o", "json"]);
        let stops = of(&ran, "stops");
        let found = ran.json()["findings"].clone();
        let has_remedy = |it: &Value| it["sort"] != "stops" || it["do"].as_str().is_some_and(|text| !text.is_empty());
        assert!(found.as_array().unwrap().iter().all(has_remedy), "{values}: {found}");
        assert!(ran.code == 2 && stops.iter().any(|(it, _)| it == about), "{values}: {stops:?} {}", ran.stderr);
    }
    for values in [
        "{defaultImages: null, security: null, mcpRuntimes: {custom: null}, policies: null}",
        "{}",
        "",
        "{policies: {my-dashboard: {policy: agent, settings: {logLevel: DEBUG}}}}",
        "{controllerManager: {manager: {env: [{name: SECURITY_GATEWAY_NAMESPACE, value: envoy-gateway-system}]}}}",
    ] {
        let file = folder.write("values.yaml", values);
        let ran = check(&["-f", &sample("20-model.yaml"), "--values", &file]);
        assert_eq!(ran.code, 0, "{values}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn values_of_the_earlier_release_can_be_reused_although_the_chart_refuses_them_in_a_file() {
    let values = sample("values/kaos-0.8.2.yaml");
    let with = |more: &[&str]| {
        let at = ["-f", &sample("20-model.yaml"), "--values", &values, "-o", "json"].map(str::to_owned);
        let all: Vec<&str> = at.iter().map(String::as_str).chain(more.iter().copied()).collect();
        check(&all)
    };
    let stops = of(&with(&[]), "stops");
    assert!(stops.len() == 1 && stops[0].0.ends_with("image.repository"), "{stops:?}");
    let reused = with(&["--reuse-values"]);
    assert_eq!(of(&reused, "stops"), [], "{}", reused.stdout);
    assert_eq!(reused.json()["preset"], "kaos-0.8");
    let january = sample("values/kaos-0.1.yaml");
    let ran = check(&["-f", &sample("20-model.yaml"), "--values", &january, "--reuse-values", "-o", "json"]);
    assert_eq!(ran.json()["preset"], "kaos-0.1", "{}", ran.stderr);
}

#[test]
fn a_preset_in_a_file_is_named_and_a_wrong_one_is_an_error_with_the_path() {
    let folder = Folder::new("upgrade-preset");
    let values = folder.write(
        "values.yaml",
        "{security: {agentAuth: {gatewayJwtOptional: false, identity: {provider: serviceaccount}}}}",
    );
    let with = |preset: &str| {
        let preset = folder.write("mine.yaml", preset);
        check(&["-f", &sample("20-model.yaml"), "--values", &values, "--compatibility", &preset])
    };
    let ran = with("agent: {image: 'mine:1'}");
    assert!(
        ran.stdout.starts_with("The upgrade to this operator with the preset mine:\n"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    for (preset, path) in [
        ("agent: {serviceAccount: x}", "agent.serviceAccount"),
        ("agent: {security: 3}", "agent.security"),
        ("agent: {serviceAccount: [1]}", "agent.serviceAccount"),
    ] {
        let ran = with(preset);
        assert_eq!(ran.code, 1, "{preset}: {}", ran.stdout);
        assert!(ran.stderr.contains(&format!("must have an object at {path}: ")), "{preset}: {}", ran.stderr);
    }
    for preset in ["mcpserver: {runtimes: y}", "mcpserver: {runtimes: {slack: y}}", "mcpserver: {runtimes: [1]}"] {
        let ran = with(preset);
        assert!(ran.code <= 2 && !ran.stderr.contains("panicked"), "{preset}: {}", ran.stderr);
    }
}

#[test]
fn a_broker_that_the_earlier_release_uses_without_naming_it_is_named() {
    let folder = Folder::new("upgrade-broker");
    let named = |data: Value| {
        let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"name": "kaos-operator-config", "namespace": "kaos-system"}});
        let config = folder.write("config.yaml", config.to_string());
        let values = folder.write("values.yaml", "{}");
        let breaks = of(&check(&["-f", &config, "--values", &values, "-o", "json"]), "breaks");
        breaks.into_iter().any(|(about, message)| {
            about.starts_with("SECURITY_AGENT_AUTH_IDENTITY_PROVIDER") && message.contains("is aib, but Agents lose")
        })
    };
    let provider = "SECURITY_AGENT_AUTH_IDENTITY_PROVIDER";
    assert!(named(json!({"AIB_ADMIN_URL": "http://broker"})));
    assert!(named(json!({"SECURITY_AGENT_AUTH_CREDENTIAL_SECRET_PREFIX": "kaos"})));
    assert!(!named(json!({"AIB_ADMIN_URL": "http://broker", provider: "serviceaccount"})) && !named(json!({"A": "b"})));
}
