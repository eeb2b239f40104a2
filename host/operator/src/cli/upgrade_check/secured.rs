//! Finds the security features of KAOS's operator that are in use, and reports the effect of the upgrade on these
//! features.

use std::collections::BTreeMap;

use kaos_policy::stamp::owners;
use serde_json::Value;

use super::{
    report::{Sort, UpgradeFinding},
    values::Values,
};
use crate::{config_maps::OPERATOR_CONFIG, input::Document};

const NEVER_OPEN: &str = "replace it first, as docs/guide/upgrade-from-kaos.md says; the chart stops unless \
                          security.acceptUnserved is true";

/// A security feature that KAOS's operator has and this operator lacks.
struct Part {
    /// The name of the feature's value in the chart.
    value: &'static str,
    /// The name of the feature's variable in `kaos-operator-config`.
    variable: &'static str,
    /// The values that turn the feature on; empty if every text turns it on.
    on: &'static [&'static str],
    /// The effect of the upgrade on the feature.
    message: &'static str,
}

const PARTS: [Part; 4] = [
    Part {
        value: "security.agentAuth.identity.provider",
        variable: "SECURITY_AGENT_AUTH_IDENTITY_PROVIDER",
        on: &["oidc", "aib"],
        message: "Agents lose the credentials of this provider, and their clients stay at the provider",
    },
    Part {
        value: "security.tls.mode",
        variable: "",
        on: &[],
        message: "the Gateway of this chart has no HTTPS listener, and the upgrade removes the HTTPS listener of \
            KAOS's chart",
    },
    Part {
        value: "security.tokenExchange.enabled",
        variable: "TOKEN_EXCHANGE_ENABLED",
        on: &["true"],
        message: "no operator exchanges tokens for Agents, and no operator updates the objects of the token exchange",
    },
    Part {
        value: "security.agentAuth.projection.prune",
        variable: "AUTHZ_PROJECTION_PRUNE_ENABLED",
        on: &["false"],
        message: "the operator always writes all data of the decision point again, so AccessGrants and Agents that are \
                  gone lose their entries",
    },
];

/// The security features that both operators have. Each entry has the name of the chart's value, the name of the
/// variable, and the effect if the cluster uses the feature and the release's values turn it off.
const SERVED: [(&str, &str, &str); 7] = [
    (
        "security.pdp.enabled",
        "SECURITY_PDP_ENABLED",
        "the decision point kaos-pdp goes with the release, and the SecurityPolicies that ask it fail closed: every \
         request through the gateway is denied",
    ),
    (
        "security.agentAuth.extAuthzUrl",
        "SECURITY_AGENT_AUTH_EXT_AUTHZ_URL",
        "objects that are created later get no SecurityPolicy and no NetworkPolicy, so every client can call them",
    ),
    (
        "security.userAuth.issuer",
        "SECURITY_USER_AUTH_ISSUER",
        "nothing checks the tokens of users at routes that are created later",
    ),
    (
        "security.userAuth.audience",
        "SECURITY_USER_AUTH_AUDIENCE",
        "the gateway also accepts tokens of users that the issuer gave to other applications",
    ),
    (
        "security.networkPolicy.egress.enabled",
        "SECURITY_NETWORK_POLICY_EGRESS_ENABLED",
        "NetworkPolicies no longer limit the connections that pods open",
    ),
    (
        "security.gatewayRouting.enabled",
        "SECURITY_GATEWAY_ROUTING_ENABLED",
        "Agents call each other directly, without the gateway, and the upgrade replaces their pods",
    ),
    (
        "security.strictGatewayApi.enabled",
        "SECURITY_STRICT_GATEWAY_API_ENABLED",
        "Agents call each other directly, without the gateway, and the upgrade replaces their pods",
    ),
];

/// Types of children that KAOS's operator creates and this operator does not create, with the effect of the upgrade on
/// each type.
const CHILDREN: [(&str, &str); 5] = [
    (
        "SecurityPolicy",
        "these SecurityPolicies stay, but the upgrade removes the decision point that they ask: they deny every \
         request through the gateway",
    ),
    (
        "NetworkPolicy",
        "these NetworkPolicies stay, and allow only calls from the gateway and the operator: if the network enforces \
         them, they block direct calls of Agents to ModelAPIs, MCPServers and other Agents",
    ),
    ("ReferenceGrant", "these ReferenceGrants stay, but the upgrade removes the decision point that they are for"),
    ("EnvoyExtensionPolicy", "these EnvoyExtensionPolicies stay, but no operator updates them"),
    ("Backend", "these Backends stay, but no operator updates them"),
];

/// Returns the findings from the values and from the cluster.
pub(super) fn findings(documents: &[Document], values: &Values, home: &str) -> Vec<UpgradeFinding> {
    let mut found = Vec::new();
    let config = documents.iter().find(|document| {
        let identity = &document.identity;
        identity.kind == "ConfigMap" && identity.name == OPERATOR_CONFIG && identity.namespace.as_deref() == Some(home)
    });
    let variable = |name: &str| config.and_then(|config| config.object["data"][name].as_str()).unwrap_or_default();
    let is_in_use = |part: &Part, text: &str| !text.is_empty() && (part.on.is_empty() || part.on.contains(&text));
    for part in &PARTS {
        if values.text(part.value).is_some_and(|text| is_in_use(part, &text)) {
            found.push(UpgradeFinding::new(Sort::Breaks, part.value, part.message, NEVER_OPEN));
        } else if is_in_use(part, variable(part.variable)) {
            let about = format!("{} in ConfigMap {home}/{OPERATOR_CONFIG}", part.variable);
            found.push(UpgradeFinding::new(Sort::Breaks, about, part.message, NEVER_OPEN));
        }
    }
    let is_on = |text: &str| !matches!(text, "" | "false");
    for (value, name, message) in SERVED {
        if is_on(variable(name)) && !values.given(value, name).is_some_and(|text| is_on(&text)) {
            let about =
                format!("{value}: {name} is set in ConfigMap {home}/{OPERATOR_CONFIG}, and the values turn it off");
            found.push(UpgradeFinding::new(Sort::Breaks, about, message, "set the value, or accept this"));
        }
    }
    let had = |name: &str| is_on(variable(name));
    let was_secured = had("SECURITY_PDP_ENABLED") || had("SECURITY_AGENT_AUTH_EXT_AUTHZ_URL");
    let is_protected = values.decide() || values.are_strict();
    if (was_secured || had("SECURITY_STRICT_GATEWAY_API_ENABLED")) && !is_protected {
        found.extend(posture(was_secured, values, variable("SECURITY_NETWORK_POLICY_DISABLED")));
    }
    found.extend(incomplete(values));
    found.extend(projection(values, variable("AUTHZ_POLICY_CONFIGMAP_NAME"), home));
    found.extend(left(documents, is_protected));
    found
}

/// Returns a finding for each value that is missing although other values need it.
fn incomplete(values: &Values) -> Vec<UpgradeFinding> {
    const ACCOUNT: &str = "security.agentAuth.identity.serviceAccount";
    const VARIABLE: &str = "SECURITY_AGENT_AUTH_SERVICE_ACCOUNT";
    let mut found = Vec::new();
    let mut missing = |sort: Sort, about: String, message: &str, remedy: &str| {
        found.push(UpgradeFinding::new(sort, about, message, remedy));
    };
    if values.decide() {
        for (field, variable, remedy) in [
            ("issuer", "ISSUER", "set it to `issuer` of `kubectl get --raw /.well-known/openid-configuration`"),
            ("jwks", "JWKS", "set it to the output of `kubectl get --raw /openid/v1/jwks`"),
        ] {
            let value = format!("{ACCOUNT}.{field}");
            if values.given(&value, &format!("{VARIABLE}_{variable}")).is_none() {
                let message =
                    "is not set, so SecurityPolicies could not name the issuer of Agents' tokens: the chart stops";
                missing(Sort::Breaks, value, message, remedy);
            }
        }
    }
    if values.text("security.userAuth.issuer").is_some() && !values.are_strict() {
        let message = "needs security.strictGatewayApi.enabled, because calls that bypass the Gateway carry no user: \
                       the chart stops";
        missing(
            Sort::Breaks,
            "security.userAuth.issuer".to_owned(),
            message,
            "set security.strictGatewayApi.enabled=true",
        );
    }
    if values.route() && values.given("security.gatewayHost", "SECURITY_GATEWAY_HOST").is_none() {
        let message = "is not set: the chart takes the first address of the Gateway, which this check does not know";
        let remedy = "set it to the host in the addresses of the pods that run now, so that no pod is replaced";
        missing(Sort::Open, "security.gatewayHost".to_owned(), message, remedy);
    }
    found
}

/// Returns the findings about the ConfigMap that the operator writes for a decision point.
fn projection(values: &Values, variable: &str, home: &str) -> Vec<UpgradeFinding> {
    const PROJECTION: &str = "security.agentAuth.projection";
    let mut found = Vec::new();
    let mut breaks = |about: String, message: String, remedy: &str| {
        found.push(UpgradeFinding::new(Sort::Breaks, about, message, remedy));
    };
    let Some(config_map) = values.projection() else {
        if !variable.is_empty() {
            let message = "the operator no longer writes the data of the decision point, so withdrawn AccessGrants stay \
                           in force";
            let about = format!(
                "{PROJECTION}.policyConfigMap.name: AUTHZ_POLICY_CONFIGMAP_NAME is set in ConfigMap \
                 {home}/{OPERATOR_CONFIG}, and the values turn it off"
            );
            breaks(about, message.to_owned(), "set the value, or accept this");
        }
        return found;
    };
    if let Some(namespace) = values.text(&format!("{PROJECTION}.policyConfigMap.namespace")).filter(|it| it != home) {
        let message = format!(
            "is {namespace}, and the operator writes ConfigMap {config_map} in its own namespace {home}: the chart stops"
        );
        breaks(format!("{PROJECTION}.policyConfigMap.namespace"), message, "leave it empty");
    }
    if !values.works_in(home) {
        let message = format!("lacks {home}, where the AuthorizationPolicy lies: the chart stops");
        breaks("watchNamespaces".to_owned(), message, "add it");
    }
    let is_manual = values
        .given("security.agentAuth.authorization.policyDataSource", "SECURITY_AUTHORIZATION_POLICY_DATA_SOURCE")
        .is_some_and(|source| source == "manual");
    let keys = values.given("security.userAuth.jwks", "SECURITY_USER_AUTH_JWKS");
    if values.text("security.userAuth.issuer").is_some() && !is_manual && keys.is_none() {
        let message = "is not set, so the decision point could check no token of a user: the chart stops";
        let remedy = "set it to the keys of the issuer, which its jwks_uri serves";
        breaks("security.userAuth.jwks".to_owned(), message.to_owned(), remedy);
    }
    found
}

/// Returns the findings for a cluster whose protection ends with the upgrade. These findings do not depend on the
/// objects.
fn posture(is_secured: bool, values: &Values, disabled: &str) -> Vec<UpgradeFinding> {
    let is_off = |text: Option<String>| text.as_deref() == Some("false");
    let mut found = Vec::new();
    if !is_off(values.text("security.networkPolicy.enabled")) && disabled != "true" {
        found.push(UpgradeFinding::new(
            Sort::Breaks,
            "NetworkPolicies of objects",
            "these NetworkPolicies stay, and allow only calls from the gateway and the operator: if the network \
             enforces them, they block direct calls of Agents to ModelAPIs, MCPServers and other Agents",
            "delete or replace them before the upgrade: kubectl get networkpolicies -A",
        ));
    }
    if is_secured {
        found.push(UpgradeFinding::new(
            Sort::Breaks,
            "objects that are created later",
            "these objects get no SecurityPolicy and no NetworkPolicy, so every client can call them",
            "protect routes and namespaces with your own SecurityPolicies and NetworkPolicies before the upgrade",
        ));
    }
    found
}

/// Returns a finding for each type of children that KAOS's operator left and no operator updates. If the new operator
/// protects objects, it takes over the first two types in [`CHILDREN`], and its decision point still needs the third
/// type.
fn left(documents: &[Document], is_protected: bool) -> Vec<UpgradeFinding> {
    let is_of_kaos = |object: &Value| {
        let is_ours = object["metadata"]["annotations"]["kaos.tools/applied-digest"].is_string();
        let of_kaos = |owner: &Value| owner["apiVersion"].as_str().is_some_and(|it| it.starts_with("kaos.tools/"));
        let labels = object["metadata"]["labels"].as_object();
        let is_labelled = labels.is_some_and(|labels| labels.keys().any(|label| label.starts_with("kaos.tools/")));
        !is_ours && (owners(object).iter().any(of_kaos) || is_labelled)
    };
    let mut by_kind: BTreeMap<&str, Vec<&Document>> = BTreeMap::new();
    for document in documents.iter().filter(|document| is_of_kaos(&document.object)) {
        by_kind.entry(&document.identity.kind).or_default().push(document);
    }
    let finding = |(kind, message): &(&str, &str)| {
        let these = by_kind.get(kind)?;
        let about = format!("{kind}: {} of KAOS objects, such as {}", these.len(), these.first()?.identity);
        Some(UpgradeFinding::new(Sort::Breaks, about, *message, "delete or replace them before the upgrade"))
    };
    CHILDREN.iter().skip(if is_protected { 3 } else { 0 }).filter_map(finding).collect()
}
