//! The SecurityPolicy of Envoy Gateway that protects a route. The SecurityPolicy names the decision point, and the
//! token issuers that the Gateway trusts.

use alloc::{borrow::Cow, string::String, vec::Vec};
use kaos_policy_sdk::types::{Refusal, Subject};
use kaos_policy_sdk::{Violations, object};
use serde_json::Value;

use super::address;
use super::settings::SecuritySettings;
use crate::kind::{Extra, ROUTE_KIND, Workload};

/// API version of [`GATEWAY_POLICY_KIND`].
pub const GATEWAY_POLICY_API: &str = "gateway.envoyproxy.io/v1alpha1";
/// The kind of the object that protects a route.
pub const GATEWAY_POLICY_KIND: &str = "SecurityPolicy";

/// The name of the decision point's Service. `PDP_PORT` is the port of this Service.
const PDP: &str = "kaos-pdp";
const PDP_PORT: u16 = 9191;
/// The header with the token of the calling Agent.
const AGENT_HEADER: &str = "x-agent-authorization";

/// Returns the address of the decision point.
pub(super) fn authorizer<'a>(settings: &'a SecuritySettings, subject: &Subject) -> Cow<'a, str> {
    if settings.authorizer.is_empty() {
        format!("{PDP}.{}.svc:{}", subject.cluster.operator_namespace, i64::from(PDP_PORT)).into()
    } else {
        settings.authorizer.as_str().into()
    }
}

/// Builds the SecurityPolicy. Refuses incomplete settings.
pub(super) fn policy(
    settings: &SecuritySettings,
    audience: &str,
    workload: &Workload<'_>,
    subject: &Subject,
    extra: &Extra<'_>,
) -> Result<Value, Refusal> {
    let mut wrong = Violations::new();
    let authorizer = authorizer(settings, subject);
    let service = address::service(&authorizer);
    wrong.require(
        service.is_some(),
        "settings.security.authorizer",
        "is not the address of a Service: write name.namespace.svc:port",
    );
    let unset = "is not set, so the Gateway cannot check the tokens of Agents: in the settings for the cluster, set it \
                 to the output of ";
    let agents = &settings.agents;
    let issuer = format!("{unset}`kubectl get --raw /.well-known/openid-configuration`, field issuer");
    wrong.require(!agents.issuer.is_empty(), "settings.security.agents.issuer", &issuer);
    let keys = format!("{unset}`kubectl get --raw /openid/v1/jwks`");
    wrong.require(!agents.jwks.is_empty(), "settings.security.agents.jwks", &keys);
    let audience_unset = "is not set, so the Gateway would accept every token of the cluster: in the settings for the \
                          cluster, set it to the audience of the Agents' tokens, for example kaos-gateway";
    wrong.require(!audience.is_empty(), "settings.security.agents.audience", audience_unset);
    wrong.into_result()?;
    let target = object! {
        "group": "gateway.networking.k8s.io",
        "kind": ROUTE_KIND,
        "name": workload.route_name(),
    };
    let backends: Vec<Value> = service
        .map(|service| object! { "name": service.name, "namespace": service.namespace, "port": service.port })
        .into_iter()
        .collect();
    let authorization = object! {
        "failOpen": false,
        "headersToExtAuth": ["authorization", AGENT_HEADER],
        "grpc": object! { "backendRefs": backends },
    };
    let mut providers = vec![agent_provider(settings, audience)];
    providers.extend(user_provider(settings));
    let mut tokens = object! { "providers": providers };
    if settings.jwt_optional {
        tokens["optional"] = true.into();
    }
    let spec = object! { "targetRefs": vec![target], "extAuth": authorization, "jwt": tokens };
    Ok(object! {
        "apiVersion": GATEWAY_POLICY_API,
        "kind": GATEWAY_POLICY_KIND,
        "metadata": workload.metadata(&workload.route_name(), extra),
        "spec": spec,
    })
}

/// Builds the provider of Agents' tokens. The SecurityPolicy contains the provider's keys, because a Gateway cannot
/// read keys from the API server.
fn agent_provider(settings: &SecuritySettings, audience: &str) -> Value {
    let header = object! { "name": AGENT_HEADER, "valuePrefix": "Bearer " };
    object! {
        "name": "agent",
        "issuer": settings.agents.issuer.as_str(),
        "audiences": [audience],
        "localJWKS": object! { "type": "Inline", "inline": settings.agents.jwks.as_str() },
        "extractFrom": object! { "headers": vec![header] },
        "claimToHeaders": vec![claim("sub", "x-agent-claim-sub")],
    }
}

/// Builds the provider of users' tokens, if the settings name an issuer.
fn user_provider(settings: &SecuritySettings) -> Option<Value> {
    let users = &settings.users;
    if users.issuer.is_empty() {
        return None;
    }
    let keys: String = if users.jwks_uri.is_empty() {
        format!("{}/protocol/openid-connect/certs", users.issuer.trim_end_matches('/'))
    } else {
        users.jwks_uri.clone()
    };
    let mut provider = object! {
        "name": "user",
        "issuer": users.issuer.as_str(),
        "remoteJWKS": object! { "uri": keys },
        "claimToHeaders": vec![claim("sub", "x-user-claim-sub"), claim("preferred_username", "x-user-claim-username")],
    };
    if !users.audience.is_empty() {
        provider["audiences"] = [users.audience.as_str()].into();
    }
    Some(provider)
}

fn claim(claim: &str, header: &str) -> Value {
    object! { "claim": claim, "header": header }
}
