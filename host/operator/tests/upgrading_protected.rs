//! Tests that `kaos-operator upgrade-check` names all protection that an upgrade would weaken.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::{
    support::{Folder, Ran, run},
    today::sample,
    upgrading::{check, of},
};
use serde_json::{Value, json};

#[test]
fn a_secured_cluster_whose_values_are_dropped_breaks_in_three_ways_and_the_check_names_them() {
    let (cluster, config) = (sample("20-as-found.yaml"), sample("19-operator-config.yaml"));
    let ran = check(&["-f", &cluster, "-f", &config, "-o", "json"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let breaks = of(&ran, "breaks");
    let named = |about: &str, message: &str| breaks.iter().any(|(a, m)| a.contains(about) && m.contains(message));
    assert!(named("SECURITY_PDP_ENABLED", "every request through the gateway is denied"), "{breaks:?}");
    assert!(named("NetworkPolicies", "they block direct calls"), "{breaks:?}");
    assert!(named("created later", "every client can call them"), "{breaks:?}");
    assert!(named("security.strictGatewayApi.enabled", "without the gateway"), "{breaks:?}");
}

#[test]
fn the_values_of_a_secured_cluster_need_its_issuer_and_keep_it_protected() {
    let (cluster, values) = (sample("20-as-found.yaml"), sample("values/secured.yaml"));
    let ran = check(&["-f", &cluster, "--values", &values, "-o", "json"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let breaks = [of(&ran, "breaks"), of(&ran, "stops")].concat();
    let named = |about: &str, message: &str| breaks.iter().any(|(a, m)| a.contains(about) && m.contains(message));
    assert!(!named("", "every request through the gateway is denied"), "{breaks:?}");
    assert!(named("security.userAuth.jwks", "cannot check the tokens of users"), "{breaks:?}");
    for field in ["issuer", "jwks"] {
        assert!(named(&format!("serviceAccount.{field}"), "is empty, but SecurityPolicies must"), "{breaks:?}");
    }
    assert!(!named("NetworkPolicies", "") && !named("created later", ""), "{breaks:?}");
    assert!(!named("security.strictGatewayApi", ""), "{breaks:?}");
    assert!(of(&ran, "open").iter().any(|(about, _)| about == "security.gatewayHost"), "{}", ran.stdout);
    assert!(
        of(&ran, "lost").iter().any(|(about, message)| about == "Agent today/plain"
            && message.contains(
                "kaos.tools/oidc-client-finalizer: when a user deletes the object, this operator removes the finalizer"
            )),
        "{}",
        ran.stdout
    );
    let text = check(&["-f", &cluster, "--values", &values]).stdout;
    let head =
        "The upgrade to this operator with the preset kaos-0.8:\n\nRefused by the chart: the upgrade does not start:\n";
    assert!(text.starts_with(head), "{text}");
}

#[test]
fn a_decision_point_with_complete_values_goes_on_and_the_check_names_no_break() {
    let complete = "\
security:
  userAuth: {jwks: '{\"keys\": []}'}
  gatewayHost: gw.example
  agentAuth: {identity: {serviceAccount: {issuer: 'https://cluster', jwks: '{\"keys\": []}'}}}
";
    let folder = Folder::new("upgrade-decision-point");
    let more = folder.write("complete.yaml", complete);
    let files = ["19-operator-config.yaml", "20-model.yaml", "values/secured.yaml"].map(sample);
    let check = |further: &str| {
        let further = folder.write("further.yaml", further);
        let values = ["--values", &files[2], "--values", &more, "--values", &further, "-o", "json"];
        check(&[&["-f", &files[0], "-f", &files[1]], &values[..]].concat())
    };
    let ran = check("{}");
    assert_eq!([of(&ran, "breaks"), of(&ran, "stops")].concat(), [], "{}", ran.stdout);
    // The preset contains the audience of Agents' tokens, so this value is not missing.
    assert_eq!(of(&ran, "refused"), [], "{}", ran.stdout);
    for (further, about, message) in [
        ("{security: {agentAuth: {projection: {prune: false}}}}", "projection.prune", "lose their entries"),
        (
            "{security: {agentAuth: {projection: {policyConfigMap: {namespace: x}}}}}",
            "policyConfigMap.namespace",
            "in its own namespace kaos-system",
        ),
        ("{watchNamespaces: [team]}", "watchNamespaces", "lacks kaos-system"),
        ("{security: {userAuth: {audience: ''}}}", "security.userAuth.audience", "denies every request of a user"),
        ("{security: {pdp: {enabled: false}}}", "security.pdp.enabled", "every request through the gateway is denied"),
        ("{security: {agentAuth: {identity: {provider: oidc}}}}", "identity.provider", "lose the credentials"),
    ] {
        let ran = check(further);
        let breaks = [of(&ran, "breaks"), of(&ran, "stops")].concat();
        assert!(breaks.iter().any(|(a, m)| a.contains(about) && m.contains(message)), "{further}: {breaks:?}");
    }
}

#[test]
fn a_limit_of_the_earlier_release_that_the_values_lack_is_named() {
    let folder = Folder::new("upgrade-limits");
    let config = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kaos-operator-config", "namespace": "kaos-system"},
        "data": {
            "SECURITY_PDP_ENABLED": "true", "SECURITY_USER_AUTH_AUDIENCE": "kaos",
            "SECURITY_NETWORK_POLICY_EGRESS_ENABLED": "true",
        },
    });
    let config = folder.write("config.yaml", config.to_string());
    let check = |values: &str| {
        let values = folder.write("values.yaml", values);
        of(&check(&["-f", &config, "--values", &values, "-o", "json"]), "breaks")
    };
    let rows = [
        ("security.userAuth.audience", "other applications"),
        ("security.networkPolicy.egress.enabled", "no longer limit the connections"),
    ];
    let dropped = check("{security: {pdp: {enabled: true}}}");
    let kept = check(
        "{security: {pdp: {enabled: true}, userAuth: {audience: kaos}, networkPolicy: {egress: {enabled: true}}}}",
    );
    for (about, message) in rows {
        let is_named =
            |breaks: &[(String, String)]| breaks.iter().any(|(a, m)| a.contains(about) && m.contains(message));
        assert!(is_named(&dropped) && !is_named(&kept), "{about}: {dropped:?} {kept:?}");
    }
}

/// Runs the check for an upgrade to a secured cluster. The ConfigMap of the KAOS release turns on a decision point, and
/// also has `data`. The values are complete for a secured cluster; `further` overrides them.
fn secured(name: &str, data: &Value, further: &str) -> Ran {
    let folder = Folder::new(name);
    let mut config = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kaos-operator-config", "namespace": "kaos-system"},
        "data": {"SECURITY_PDP_ENABLED": "true", "SECURITY_STRICT_GATEWAY_API_ENABLED": "true"},
    });
    config["data"].as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
    let config = folder.write("config.yaml", config.to_string());
    let complete = folder.write(
        "complete.yaml",
        "security: {userAuth: {jwks: '{\"keys\": []}'}, gatewayHost: gw, \
         agentAuth: {identity: {serviceAccount: {issuer: i, jwks: '{\"keys\": []}'}}}}",
    );
    let further = folder.write("further.yaml", further);
    let values = sample("values/secured.yaml");
    check(&["-f", &config, "--values", &values, "--values", &complete, "--values", &further, "-o", "json"])
}

#[test]
fn every_change_that_weakens_protection_is_named_with_its_value() {
    let data = |name: &str, text: &str| json!({name: text});
    for (name, text, further, about) in [
        (
            "SECURITY_NETWORK_POLICY_DISABLED",
            "",
            "{security: {networkPolicy: {enabled: false}}}",
            "networkPolicy.enabled",
        ),
        ("SECURITY_NETWORK_POLICY_EGRESS_ENABLED", "true", "{}", "networkPolicy.egress.enabled"),
        ("SECURITY_GATEWAY_NAMESPACE", "gateways", "{}", "security.gatewayNamespace"),
        ("AUTHZ_POLICY_CONFIGMAP_NAME", "mine", "{}", "policyConfigMap.name"),
        ("AUTHZ_PROJECTION_NAMESPACES", "team-a", "{}", "projection.namespaces"),
        (
            "AUTHZ_PROJECTION_NAMESPACES",
            "team-a",
            "{security: {agentAuth: {projection: {namespaces: [team-a, team-b]}}}}",
            "projection.namespaces",
        ),
        (
            "AUTHZ_PROJECTION_NAMESPACES",
            "team-a,team-b",
            "{security: {agentAuth: {projection: {namespaces: [team-b]}}}}",
            "projection.namespaces",
        ),
        // In KAOS, an empty list means all namespaces.
        (
            "AUTHZ_PROJECTION_NAMESPACES",
            "",
            "{security: {agentAuth: {projection: {namespaces: [team-a]}}}}",
            "projection.namespaces",
        ),
        ("AUTHZ_PROJECTION_NAMESPACES", "", "{watchNamespaces: [kaos-system, team-a]}", "projection.namespaces"),
        ("AUTHZ_POLICY_CONFIGMAP_NAMESPACE", "authz", "{}", "policyConfigMap.namespace"),
        // This URL is another spelling of the address at which the release already asks its decision point.
        (
            "AUTHZ_PROJECTION_NAMESPACES",
            "team-a",
            "{security: {agentAuth: {extAuthzUrl: 'grpc://kaos-pdp.kaos-system.svc.cluster.local:9191'}}}",
            "projection.namespaces",
        ),
        ("SECURITY_USER_AUTH_ISSUER", "https://other", "{}", "userAuth.issuer"),
        ("SECURITY_USER_AUTH_AUDIENCE", "other", "{}", "userAuth.audience"),
        ("SECURITY_AUTHORIZATION_POLICY_DATA_SOURCE", "manual", "{}", "policyDataSource"),
        (
            "SECURITY_AUTHORIZATION_POLICY_DATA_SOURCE",
            "automated",
            "{security: {agentAuth: {authorization: {policyDataSource: manual}}}}",
            "policyDataSource",
        ),
        ("SECURITY_AUTHORIZATION_POLICY_REGO_OVERRIDE", "true", "{}", "policyRegoOverride"),
        ("SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE", "mine", "{}", "serviceAccount.audience"),
        ("SECURITY_AGENT_AUTH_IDENTITY_PROVIDER", "oidc", "{}", "SECURITY_AGENT_AUTH_IDENTITY_PROVIDER"),
        ("SECURITY_AGENT_AUTH_IDENTITY_PROVIDER", "aib", "{}", "SECURITY_AGENT_AUTH_IDENTITY_PROVIDER"),
        ("AUTHZ_PROJECTION_PRUNE_ENABLED", "false", "{}", "AUTHZ_PROJECTION_PRUNE_ENABLED"),
        ("TOKEN_EXCHANGE_ENABLED", "true", "{}", "TOKEN_EXCHANGE_ENABLED"),
    ] {
        let ran = secured("upgrade-weaker", &data(name, text), further);
        let breaks = of(&ran, "breaks");
        assert!(ran.code == 2 && breaks.len() == 1 && breaks[0].0.contains(about), "{name}: {breaks:?}");
    }
}

#[test]
fn a_change_that_keeps_protection_is_no_break() {
    let other = "{security: {pdp: {enabled: false}, agentAuth: {extAuthzUrl: 'pdp.authz.svc:9191', \
                 projection: {policyConfigMap: {name: ''}}}}}";
    let data = json!({"AUTHZ_POLICY_CONFIGMAP_NAME": "kaos-authz-policy", "SECURITY_GATEWAY_ROUTING_ENABLED": "true"});
    let ran = secured("upgrade-replaced", &data, other);
    assert_eq!(of(&ran, "breaks"), [], "{}", ran.stdout);
    let notes = of(&ran, "note");
    assert!(notes.iter().any(|(_, message)| message.contains("SecurityPolicies ask pdp.authz.svc:9191")), "{notes:?}");
    let listed = "{security: {agentAuth: {projection: {namespaces: [team-b, team-a]}}}}";
    let ran = secured("upgrade-listed", &json!({"AUTHZ_PROJECTION_NAMESPACES": "team-a,team-b"}), listed);
    assert_eq!(of(&ran, "breaks"), [], "{}", ran.stdout);
    let watched = "{watchNamespaces: [kaos-system, team-a]}";
    let ran = secured("upgrade-watched", &json!({"AUTHZ_PROJECTION_NAMESPACES": "team-a,kaos-system"}), watched);
    assert_eq!(of(&ran, "breaks"), [], "{}", ran.stdout);
    let ran = secured("upgrade-kept", &data, "{}");
    assert_eq!((ran.code, of(&ran, "breaks")), (0, vec![]), "{}", ran.stdout);
}

#[test]
fn a_switch_that_is_off_replaces_no_decision_point() {
    let folder = Folder::new("upgrade-switch");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kaos-operator-config", "namespace": "kaos-system"},
        "data": {"SECURITY_AGENT_AUTH_EXT_AUTHZ_URL": "pdp.authz.svc:9191"}});
    let config = folder.write("config.yaml", config.to_string());
    for (text, is_named) in [("False", true), ("0", true), ("true", false)] {
        let values = folder.write("values.yaml", format!("{{extraConfig: {{SECURITY_PDP_ENABLED: '{text}'}}}}"));
        let breaks = of(&check(&["-f", &config, "--values", &values, "-o", "json"]), "breaks");
        let is_it = |(about, _): &(String, String)| about.starts_with("security.agentAuth.extAuthzUrl");
        assert_eq!(breaks.iter().any(is_it), is_named, "{text}: {breaks:?}");
    }
}

#[test]
fn a_release_that_only_routed_through_the_gateway_is_compared_too() {
    let folder = Folder::new("upgrade-routed");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kaos-operator-config", "namespace": "kaos-system"},
        "data": {"SECURITY_GATEWAY_ROUTING_ENABLED": "true", "AUTHZ_POLICY_CONFIGMAP_NAME": "rules",
            "AUTHZ_PROJECTION_NAMESPACES": "team-a"}});
    let config = folder.write("config.yaml", config.to_string());
    for (list, is_named) in [("", true), ("namespaces: [team-a], ", false)] {
        let values = format!(
            "{{gatewayAPI: {{enabled: true}}, security: {{gatewayRouting: {{enabled: true}}, gatewayHost: gw, \
             networkPolicy: {{enabled: false}}, \
             agentAuth: {{projection: {{{list}policyConfigMap: {{name: rules}}}}}}}}}}"
        );
        let values = folder.write("values.yaml", values);
        let breaks = of(&check(&["-f", &config, "--values", &values, "-o", "json"]), "breaks");
        // The objects had no NetworkPolicies, so disabling NetworkPolicies breaks nothing.
        assert_eq!(breaks.len(), usize::from(is_named), "{list}: {breaks:?}");
        assert!(breaks.iter().all(|(about, _)| about.contains("projection.namespaces")), "{breaks:?}");
    }
}

#[test]
fn settings_that_change_the_protection_of_an_object_are_named_with_their_fields() {
    let folder = Folder::new("upgrade-settings");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "kaos-operator-config", "namespace": "kaos-system"},
        "data": {"GATEWAY_API_ENABLED": "true", "GATEWAY_NAME": "kaos-gateway", "GATEWAY_NAMESPACE": "kaos-system",
            "SECURITY_PDP_ENABLED": "true", "SECURITY_STRICT_GATEWAY_API_ENABLED": "true",
            "SECURITY_USER_AUTH_ISSUER": "http://keycloak.kaos-system.svc.cluster.local:8080/realms/kaos",
            "SECURITY_USER_AUTH_AUDIENCE": "kaos"}});
    let (config, model) = (folder.write("config.json", config.to_string()), sample("20-model.yaml"));
    let settings = ["--set", "security.agents.issuer=i", "--set", "security.agents.jwks={\"keys\": []}"];
    let live = |jwt: &str| {
        let files = ["-f", &model, "-f", &config, "--set", jwt];
        let base = ["render", "--compatibility", "kaos-0.8", "-o", "json"];
        let rendered = run(base.iter().chain(&settings).chain(&files).copied(), "").json();
        let all = rendered[0]["manifests"].as_array().unwrap().iter();
        let own: Vec<String> =
            all.filter(|it| it["kind"].as_str().unwrap().ends_with("Policy")).map(Value::to_string).collect();
        assert_eq!(own.len(), 2, "{rendered:#}");
        folder.write("live.yaml", own.join("\n---\n"))
    };
    let complete = folder.write(
        "complete.yaml",
        "security: {userAuth: {jwks: '{\"keys\": []}'}, gatewayHost: gw, \
         agentAuth: {identity: {serviceAccount: {issuer: i, jwks: '{\"keys\": []}'}}}}",
    );
    let changed = |live: &str, further: &str| {
        let (further, values) = (folder.write("further.yaml", further), sample("values/secured.yaml"));
        let files = ["-f", live, "-f", &model, "-f", &config, "-o", "json"];
        let values = ["--values", &values, "--values", &complete, "--values", &further];
        let told = check(&[&files[..], &values].concat()).json();
        let all = told["findings"].as_array().unwrap().iter();
        let own =
            all.filter(|it| it["sort"] == "breaks" && it["message"].as_str().unwrap().contains("Policy modelapi-llm"));
        own.map(|it| it["fields"].to_string()).collect::<Vec<_>>()
    };
    let optional = live("security.jwtOptional=true");
    assert_eq!(changed(&optional, "{}"), [""; 0]);
    let named =
        changed(&optional, "{policies: {mine: {policy: modelapi, settings: {security: {gatewayNamespace: x}}}}}");
    assert!(named.len() == 1 && named[0].contains("spec.ingress"), "{named:?}");
    let required = live("security.jwtOptional=false");
    let named = changed(&required, "{}");
    assert!(named.len() == 1 && named[0].contains("spec.jwt.optional"), "{named:?}");
    assert_eq!(changed(&required, "{security: {agentAuth: {gatewayJwtOptional: false}}}"), [""; 0]);
}

#[test]
fn an_encrypted_listener_that_the_upgrade_removes_is_named() {
    let folder = Folder::new("upgrade-gateway");
    let with = |annotations: Value, values: &str| {
        let gateway = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "metadata": {"name": "kaos-gateway", "namespace": "kaos-system", "annotations": annotations},
            "spec": {"gatewayClassName": "x", "listeners": [{"name": "http", "protocol": "HTTP", "port": 80},
                {"name": "https", "protocol": "HTTPS", "port": 443, "tls": {"certificateRefs": [{"name": "c"}]}}]}});
        let (gateway, values) =
            (folder.write("gateway.json", gateway.to_string()), folder.write("values.yaml", values));
        of(&check(&["-f", &gateway, "-f", &sample("20-model.yaml"), "--values", &values, "-o", "json"]), "breaks")
    };
    let created = "{gatewayAPI: {enabled: true, createGateway: true, gatewayClassName: x}}";
    let of_release = json!({"meta.helm.sh/release-name": "kaos"});
    for (annotations, values) in [(json!({}), created), (of_release.clone(), "{gatewayAPI: {enabled: true}}")] {
        let breaks = with(annotations, values);
        assert!(breaks.len() == 1 && breaks[0].1.contains("removes the listener https (HTTPS)"), "{breaks:?}");
    }
    let mut kept = of_release;
    kept["helm.sh/resource-policy"] = json!("keep");
    for annotations in [json!({}), kept] {
        assert_eq!(with(annotations, "{gatewayAPI: {enabled: true}}"), []);
    }
}

#[test]
fn the_operators_configuration_tells_that_a_cluster_is_secured_where_the_values_do_not() {
    let ran = check(&["-f", &sample("19-operator-config.yaml"), "-o", "json"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let breaks = of(&ran, "breaks");
    assert!(
        breaks.iter().any(|(about, _)| about
            .contains("SECURITY_PDP_ENABLED is \"true\" in ConfigMap kaos-system/kaos-operator-config")),
        "{breaks:?}"
    );
}

#[test]
fn security_objects_of_kaos_are_named_and_those_of_others_are_not() {
    let folder = Folder::new("upgrade-security");
    let object = |version: &str, kind: &str, metadata: Value| {
        let mut metadata = metadata;
        (metadata["name"], metadata["namespace"]) = (json!("agent-plain"), json!("today"));
        json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {}}).to_string()
    };
    let owner = json!([{"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "name": "plain", "uid": "u", "controller": true}]);
    let check = |metadata: Value| {
        let objects = folder.write(
            "security.yaml",
            [
                object("networking.k8s.io/v1", "NetworkPolicy", metadata.clone()),
                object("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy", metadata),
            ]
            .join("\n---\n"),
        );
        check(&["-f", &objects, "-f", &sample("20-model.yaml"), "-o", "json"])
    };
    let ran = check(json!({"ownerReferences": owner}));
    let about: Vec<String> = of(&ran, "breaks").into_iter().map(|(about, _)| about).collect();
    assert_eq!((ran.code, about.len()), (2, 2), "{about:?}");
    assert!(about[0].contains("NetworkPolicy: 1 of KAOS objects") && about[1].contains("SecurityPolicy"), "{about:?}");
    assert_eq!(check(json!({})).code, 0);
    // A SecurityPolicy names the decision point that the gateway asks.
    for (service, message) in [("kaos-pdp", "removes the decision point"), ("opa", "the same decision point as before")]
    {
        let policy = json!({"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "SecurityPolicy",
            "metadata": {"name": "agent-plain", "namespace": "today", "ownerReferences": owner},
            "spec": {"extAuth": {"grpc": {"backendRefs": [{"name": service, "namespace": "kaos-system"}]}}}});
        let policy = folder.write("policy.json", policy.to_string());
        let breaks = of(&crate::upgrading::check(&["-f", &policy, "-o", "json"]), "breaks");
        assert!(breaks.len() == 1 && breaks[0].1.contains(message), "{breaks:?}");
    }
    let ours = json!({"ownerReferences": owner, "annotations": {"kaos.tools/applied-digest": "d"}});
    assert_eq!(check(ours).code, 0, "a policy of this operator created the object");
}
