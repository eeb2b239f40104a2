//! Tests that each setting changes exactly the paths in the plan and the report that the table lists.

#![allow(clippy::panic, clippy::unwrap_used)] // helpers of tests; a failure must end the test

use kaos_agent::{Agent, Settings};
use kaos_policy_sdk::types::Outcome;
use kaos_policy_sdk::{Policy, testing};
use kaos_workload::schema::{leaves, with};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const D: &str = "Deployment.spec.template.spec.containers.0";

/// Returns the rows of the table. Each row has a setting, a new value for the setting, and all paths in the answers
/// that the new value changes.
fn table() -> Vec<(&'static str, Value, Vec<String>)> {
    let main = |path: &str| format!("{D}.{path}");
    let probe = |probe: &str, path: &str| format!("{D}.{probe}.{path}");
    let text = |path: &str| path.to_owned();
    let env = |name: &str| format!("{D}.env.{name}");
    let clone = |path: &str| format!("Deployment.spec.template.spec.initContainers.0.{path}");
    let everywhere = |path: &str| -> Vec<String> {
        ["Deployment", "Deployment.spec.template", "HTTPRoute", "Service"]
            .map(|owner| format!("{owner}.metadata.{path}"))
            .into()
    };
    let mut table = vec![
        ("image", json!("other:1"), vec![main("image")]),
        ("logLevel", json!("DEBUG"), vec![env("LOG_LEVEL")]),
        ("debugMemoryEndpoints", json!(true), vec![env("AGENT_DEBUG_MEMORY_ENDPOINTS")]),
        ("imagePullPolicy", json!("Always"), vec![main("imagePullPolicy")]),
        (
            "containerPort",
            json!(9),
            vec![
                main("ports.0.containerPort"),
                probe("livenessProbe", "httpGet.port"),
                probe("readinessProbe", "httpGet.port"),
                text("Service.spec.ports.0.targetPort"),
            ],
        ),
        (
            "servicePort",
            json!(9),
            vec![
                text("HTTPRoute.spec.rules.0.backendRefs.0.port"),
                text("Service.spec.ports.0.port"),
                text("status.endpoint"),
            ],
        ),
        ("portName", json!("web"), vec![main("ports.0.name"), text("Service.spec.ports.0.name")]),
        ("serviceType", json!("NodePort"), vec![text("Service.spec.type")]),
        ("resources", json!({"limits": {"cpu": "1"}}), vec![main("resources.limits.cpu")]),
        ("securityContext", json!({"runAsNonRoot": true}), vec![main("securityContext.runAsNonRoot")]),
        (
            "podSecurityContext",
            json!({"runAsNonRoot": true}),
            vec![text("Deployment.spec.template.spec.securityContext.runAsNonRoot")],
        ),
        (
            "automountServiceAccountToken",
            json!(false),
            vec![text("Deployment.spec.template.spec.automountServiceAccountToken")],
        ),
        ("extraLabels", json!({"team": "t"}), everywhere("labels.team")),
        ("extraAnnotations", json!({"team": "t"}), everywhere("annotations.team")),
        ("finalizer", json!("kaos.tools/agent-finalizer"), vec![text("finalizer")]),
        ("gateway.name", json!("other"), vec![text("HTTPRoute.spec.parentRefs.0.name")]),
        ("gateway.namespace", json!("other"), vec![text("HTTPRoute.spec.parentRefs.0.namespace")]),
        ("gateway.timeout", json!("9s"), vec![text("HTTPRoute.spec.rules.0.timeouts.request")]),
        (
            "telemetry.endpoint",
            json!("http://p"),
            vec![env("OTEL_EXPORTER_OTLP_ENDPOINT"), text("status.TelemetryConfigured")],
        ),
        ("telemetry.excludedUrls", json!("/x"), vec![env("OTEL_PYTHON_FASTAPI_EXCLUDED_URLS")]),
        ("harness.registry", json!("other"), vec![text("needs.harness-registry")]),
        ("harness.gitImage", json!("git:1"), vec![clone("image")]),
        ("harness.branch", json!("dev"), vec![clone("env.REPO_BRANCH")]),
        (
            "harness.workspace",
            json!("/elsewhere"),
            vec![
                main("volumeMounts.0.mountPath"),
                env("HARNESS_WORKSPACE"),
                clone("volumeMounts.0.mountPath"),
                clone("env.WORKSPACE"),
            ],
        ),
        ("harness.state", json!("/elsewhere"), vec![main("volumeMounts.1.mountPath"), env("HARNESS_STATE_DIR")]),
    ];
    table.extend(accounts_and_memory());
    table.extend(security());
    for name in ["livenessProbe", "readinessProbe"] {
        let leaf = |field: &str| -> &'static str { Box::leak(format!("{name}.{field}").into_boxed_str()) };
        for field in ["initialDelaySeconds", "periodSeconds", "timeoutSeconds", "failureThreshold", "successThreshold"]
        {
            table.push((leaf(field), json!(77), vec![probe(name, field)]));
        }
        for (field, value) in [("path", json!("/other")), ("port", json!(77)), ("scheme", json!("HTTPS"))] {
            table.push((leaf(field), value, vec![probe(name, &format!("httpGet.{field}"))]));
        }
        let handlers = ["httpGet.path", "httpGet.port", "httpGet.scheme", "tcpSocket.port"];
        table.push((leaf("handler"), json!("tcpSocket"), handlers.map(|path| probe(name, path)).into()));
    }
    table
}

/// Returns the rows for accounts and memory.
fn accounts_and_memory() -> Vec<(&'static str, Value, Vec<String>)> {
    let main = |path: &str| format!("{D}.{path}");
    let env = |name: &str| format!("{D}.env.{name}");
    let token =
        |path: &str| format!("Deployment.spec.template.spec.volumes.0.projected.sources.0.serviceAccountToken.{path}");
    vec![
        ("serviceAccount.audience", json!("others"), vec![token("audience")]),
        ("serviceAccount.expirationSeconds", json!(700), vec![token("expirationSeconds")]),
        (
            "serviceAccount.tokenPath",
            json!("/run/other"),
            vec![token("path"), main("volumeMounts.0.mountPath"), env("AGENT_AUTH_TOKEN_FILE")],
        ),
        // `told.rs` tests the effect of this setting.
        ("imageVariables", json!({"axsauze/kaos-agent": "MODEL_NAME 9.9"}), Vec::new()),
        // The tests in `src/mapping.rs` check the order of the variables. This test finds variables by name.
        ("userVariables", json!("merged"), Vec::new()),
        // `memory.rs` tests the effect of this setting.
        ("memory.userIdentity", json!(true), Vec::new()),
        ("memory.requirePrincipal", json!(true), vec![env("MEMORY_REQUIRE_PRINCIPAL")]),
        ("memory.requireAgentIdentity", json!(true), vec![env("MEMORY_REQUIRE_AGENT_IDENTITY")]),
        (
            "memory.local.limits",
            json!(false),
            vec![env("MEMORY_CONTEXT_LIMIT"), env("MEMORY_MAX_SESSIONS"), env("MEMORY_MAX_SESSION_EVENTS")],
        ),
        ("memory.local.scope", json!(true), vec![env("MEMORY_MAX_READ_SCOPE")]),
        ("agentIdentity", json!("always"), vec![env("AGENT_IDENTITY")]),
    ]
}

/// Returns the rows for the settings about security. Before a row changes its setting, the settings already name a
/// decision point and the Gateway's host.
fn security() -> Vec<(&'static str, Value, Vec<String>)> {
    let env = |name: &str| format!("{D}.env.{name}");
    let guard = |path: &str| format!("SecurityPolicy.spec.{path}");
    let network = |path: &str| format!("NetworkPolicy.spec.{path}");
    let backend = |field: &str| guard(&format!("extAuth.grpc.backendRefs.0.{field}"));
    let agent = |field: &str| guard(&format!("jwt.providers.0.{field}"));
    let user = |field: &str| guard(&format!("jwt.providers.1.{field}"));
    let peer = |rule: &str, index: u8| {
        network(&format!("{rule}.{index}.namespaceSelector.matchLabels.kubernetes.io/metadata.name"))
    };
    let header = |filter: u8, path: &str| format!("HTTPRoute.spec.rules.0.filters.{filter}.{path}");
    let set = "requestHeaderModifier.set.0";
    let rewrite = ["path.replacePrefixMatch", "path.type"].map(|field| format!("urlRewrite.{field}"));
    let mut filters = vec![
        header(0, "type"),
        header(1, "type"),
        header(0, &format!("{set}.name")),
        header(0, &format!("{set}.value")),
    ];
    filters.extend(rewrite.iter().flat_map(|path| [header(0, path), header(1, path)]));
    let dns = ["0.port", "0.protocol", "1.port", "1.protocol"].map(|path| network(&format!("egress.0.ports.{path}")));
    let mut egress = vec![network("policyTypes.1"), peer("egress.0.to", 0)];
    egress.extend(dns);
    egress.extend([0, 1, 2].map(|index| peer("egress.1.to", index)));
    let everything = ["ingress.0.from.0", "ingress.0.from.1"]
        .map(|peer| network(&format!("{peer}.namespaceSelector.matchLabels.kubernetes.io/metadata.name")));
    let names =
        ["labels.agent", "labels.app", "name", "namespace"].map(|field| format!("NetworkPolicy.metadata.{field}"));
    let mut nothing = vec![
        "NetworkPolicy.apiVersion".to_owned(),
        "NetworkPolicy.kind".to_owned(),
        network("policyTypes.0"),
        network("podSelector.matchLabels.agent"),
        network("podSelector.matchLabels.app"),
    ];
    nothing.extend(everything);
    nothing.extend(names);
    vec![
        ("security.targetHeader", json!(true), filters),
        // The settings already name an authorizer, which wins over `pdp`.
        ("security.pdp", json!(true), Vec::new()),
        ("security.authorizer", json!("a.b.svc:1"), ["name", "namespace", "port"].map(backend).into()),
        ("security.jwtOptional", json!(false), vec![guard("jwt.optional")]),
        ("security.agents.issuer", json!("https://other"), vec![agent("issuer")]),
        ("security.agents.jwks", json!("{\"keys\":[{}]}"), vec![agent("localJWKS.inline")]),
        ("security.agents.audience", json!("other"), vec![agent("audiences.0")]),
        ("security.users.issuer", json!("https://other"), vec![user("issuer"), user("remoteJWKS.uri")]),
        ("security.users.audience", json!("other"), vec![user("audiences.0")]),
        ("security.users.jwksUri", json!("https://keys"), vec![user("remoteJWKS.uri")]),
        ("security.strict", json!(true), vec![env("MODEL_API_URL")]),
        ("security.networkPolicy.disabled", json!(true), nothing),
        ("security.networkPolicy.egress", json!(true), egress),
        ("security.gatewayNamespace", json!("other"), vec![peer("ingress.0.from", 0)]),
        ("security.operatorNamespace", json!("other"), vec![peer("ingress.0.from", 1)]),
        ("gatewayRouting.enabled", json!(true), vec![env("MODEL_API_URL")]),
        // `security.rs` tests the effect of this setting.
        ("gatewayRouting.host", json!("other"), Vec::new()),
    ]
}

/// Returns all answers of the policy, as paths and values.
fn answers(settings: &Value, harness: bool) -> BTreeSet<(String, String)> {
    let mut agent = json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": "Agent", "metadata": {"name": "a", "namespace": "ns"},
        "spec": {"modelAPI": "llm", "model": "m", "config": {"memory": {}}},
    });
    if harness {
        agent["spec"]["harness"] = json!({"runtime": "pi", "workspace": {"repoURL": "https://h/r.git"}});
    }
    let endpoint = json!({"ready": true, "endpoint": "http://llm"});
    let api =
        json!({"kind": "ModelAPI", "spec": {"mode": "Proxy", "proxyConfig": {"models": ["*"]}}, "status": endpoint});
    let registry =
        json!({"kind": "ConfigMap", "data": {"runtimes.yaml": "runtimes:\n  pi:\n    image: pi:1\n    driver: pi\n"}});
    let subject = testing::subject(&agent)
        .settings(settings)
        .serves("gateway.networking.k8s.io/v1", "HTTPRoute")
        .serves("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy")
        .serves("networking.k8s.io/v1", "NetworkPolicy")
        .found("ModelAPI/llm", &[api])
        .found("harness-registry", &[registry])
        .build();
    let plan = testing::plan::<Agent>(&subject).unwrap();
    let mut all = BTreeSet::new();
    for manifest in testing::manifests(&plan) {
        flatten(manifest.value(), manifest.kind(), &mut all);
    }
    all.extend(plan.finalizer.map(|finalizer| ("finalizer".to_owned(), finalizer)));
    for need in Agent::needs(&subject) {
        all.insert((format!("needs.{}", need.id), format!("{:?}", need.target)));
    }
    for note in plan.notes {
        all.insert((format!("notes.{}", note.reason), note.message));
    }
    let report = Agent::assess(&subject, &testing::observation(Outcome::Applied).build());
    flatten(&serde_json::from_str(&report.fields).unwrap(), "status", &mut all);
    for condition in report.conditions {
        all.insert((format!("status.{}", condition.type_), condition.message));
    }
    all
}

fn flatten(value: &Value, path: &str, into: &mut BTreeSet<(String, String)>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| flatten(value, &format!("{path}.{key}"), into));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let key = match item["name"].as_str().filter(|_| path.rsplit('.').next() == Some("env")) {
                    Some(name) => name.to_owned(),
                    None => index.to_string(),
                };
                flatten(item, &format!("{path}.{key}"), into);
            }
        }
        // The path already contains the variable's name, so compare only its value.
        _ if path.contains(".env.") && path.rsplit('.').next() == Some("name") => {}
        leaf => {
            let path = if path.contains(".env.") { path.trim_end_matches(".value") } else { path };
            into.insert((path.to_owned(), leaf.to_string()));
        }
    }
}

fn base() -> (Value, Value) {
    let schema: Value = serde_json::from_str(&Settings::schema_text()).unwrap();
    let mut settings = json!({});
    for (path, leaf) in leaves(&schema) {
        settings = with(&settings, &path, leaf["default"].clone());
    }
    for (path, value) in [
        ("gateway.enabled", json!(true)),
        ("gateway.name", json!("gw")),
        ("gateway.namespace", json!("gw")),
        ("telemetry.enabled", json!(true)),
        ("telemetry.endpoint", json!("http://o")),
        ("serviceAccount.audience", json!("kaos-gateway")),
        ("gatewayRouting.host", json!("gw")),
        ("security.agents.issuer", json!("https://cluster")),
        ("security.agents.jwks", json!("{\"keys\":[]}")),
        ("security.users.audience", json!("kaos")),
    ] {
        settings = with(&settings, path, value);
    }
    (schema, settings)
}

fn changed(before: &Value, after: &Value, harness: bool) -> BTreeSet<String> {
    let (before, after) = (answers(before, harness), answers(after, harness));
    before.symmetric_difference(&after).map(|(path, _)| path.clone()).collect()
}

#[test]
fn each_setting_changes_exactly_the_listed_places() {
    let (_, settings) = base();
    for (path, value, expected) in table() {
        let is_account = path.starts_with("serviceAccount.");
        let mut settings = with(&settings, "serviceAccount.enabled", json!(is_account));
        if path.starts_with("security.") {
            settings = with(&settings, "security.authorizer", json!("pdp.auth.svc:9191"));
            settings = with(&settings, "security.users.issuer", json!("http://idp.auth.svc:80/realms/kaos"));
        }
        let difference = changed(&settings, &with(&settings, path, value), path.starts_with("harness."));
        assert_eq!(difference, expected.into_iter().collect(), "{path}");
    }
}

#[test]
fn each_switch_adds_and_removes_exactly_its_own_places() {
    let (_, settings) = base();
    let routes = changed(&settings, &with(&settings, "gateway.enabled", json!(false)), false);
    assert!(routes.iter().all(|path| path.starts_with("HTTPRoute.")) && !routes.is_empty(), "{routes:?}");
    let telemetry = changed(&settings, &with(&settings, "telemetry.enabled", json!(false)), false);
    let its = |path: &String| path.contains(".env.OTEL_") || path == "status.TelemetryConfigured";
    assert!(telemetry.iter().all(its) && telemetry.len() == 6, "{telemetry:?}");
    let account = changed(&settings, &with(&settings, "serviceAccount.enabled", json!(true)), false);
    let places = [
        "ServiceAccount.",
        "Deployment.spec.template.spec.automountServiceAccountToken",
        "Deployment.spec.template.spec.serviceAccountName",
        "Deployment.spec.template.spec.volumes.0.",
        &format!("{D}.volumeMounts.0."),
        &format!("{D}.env.AGENT_AUTH_IDENTITY"),
        &format!("{D}.env.AGENT_AUTH_TOKEN_FILE"),
    ];
    assert!(account.iter().all(|path| places.iter().any(|place| path.starts_with(place))), "{account:?}");
    assert!(places.iter().all(|place| account.iter().any(|path| path.starts_with(place))), "{account:?}");
}

#[test]
fn every_setting_is_tested() {
    let tested: BTreeSet<String> = table().into_iter().map(|(path, ..)| path.to_owned()).collect();
    let switches = ["gateway.enabled", "telemetry.enabled", "serviceAccount.enabled"].map(str::to_owned);
    let tested: BTreeSet<String> = tested.into_iter().chain(switches).collect();
    let all: BTreeSet<String> = leaves(&base().0).into_iter().map(|(path, _)| path).collect();
    assert_eq!(all, tested);
}

#[test]
fn environment_variables_of_the_go_operator_set_the_same_settings() {
    let fed: BTreeSet<String> =
        leaves(&base().0).iter().filter_map(|(_, leaf)| leaf["x-env"].as_str().map(ToOwned::to_owned)).collect();
    let known = [
        "DEFAULT_AGENT_IMAGE",
        "DEFAULT_LOG_LEVEL",
        "DEFAULT_TELEMETRY_ENABLED",
        "DEFAULT_TELEMETRY_ENDPOINT",
        "GATEWAY_API_ENABLED",
        "GATEWAY_DEFAULT_AGENT_TIMEOUT",
        "GATEWAY_NAME",
        "GATEWAY_NAMESPACE",
        "SECURITY_AGENT_AUTH_EXT_AUTHZ_URL",
        "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_ISSUER",
        "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_JWKS",
        "SECURITY_GATEWAY_HOST",
        "SECURITY_GATEWAY_NAMESPACE",
        "SECURITY_GATEWAY_ROUTING_ENABLED",
        "SECURITY_NETWORK_POLICY_DISABLED",
        "SECURITY_NETWORK_POLICY_EGRESS_ENABLED",
        "SECURITY_OPERATOR_NAMESPACE",
        "SECURITY_PDP_ENABLED",
        "SECURITY_STRICT_GATEWAY_API_ENABLED",
        "SECURITY_USER_AUTH_AUDIENCE",
        "SECURITY_USER_AUTH_ISSUER",
        "SECURITY_USER_AUTH_JWKS_URI",
        "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE",
        "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_EXPIRATION_SECONDS",
        "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_TOKEN_PATH",
    ];
    assert_eq!(fed, known.map(ToOwned::to_owned).into());
}
