//! The `ServiceAccount` of an Agent, and the token that identifies the Agent to other services.
//!
//! The token has a single audience, and the kubelet renews it. The token gives no access to the cluster. Pods mount no
//! other token of the ServiceAccount.

use alloc::{borrow::ToOwned, string::String};
use kaos_policy_sdk::env::ContainerEnv;
use kaos_policy_sdk::{Violations, object};
use kaos_workload::{Extra, PodParts, Workload};
use serde_json::Value;

use crate::settings::AccountSettings;

/// The name of the pod's volume that contains the token.
const VOLUME: &str = "agent-auth-token";
/// The label on a ServiceAccount that contains the name of the Agent.
const LABEL: &str = "kaos.tools/agent";

/// Returns the name of the Agent's `ServiceAccount`.
pub(crate) fn name(workload: &Workload<'_>) -> String {
    format!("kaos-agent-{}", workload.name)
}

/// Builds the manifest of the Agent's `ServiceAccount`.
pub(crate) fn manifest(workload: &Workload<'_>, extra: &Extra<'_>) -> Value {
    let mut metadata = workload.metadata(&name(workload), extra);
    metadata["labels"][LABEL] = workload.name.into();
    object! {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata,
        "automountServiceAccountToken": false,
    }
}

/// Collects a violation if the settings enable accounts and set no audience. A token without an audience would give
/// access to the cluster. Only the operator's owner is allowed to set the audience of a token.
pub(crate) fn check(settings: &AccountSettings, wrong: &mut Violations) {
    if settings.enabled && settings.audience.is_empty() {
        let message = "is not set, but serviceAccount.enabled gives the agent a token. In the settings for the \
            cluster, either set serviceAccount.audience to the service that accepts the token, such as kaos-gateway, \
            or set serviceAccount.enabled to false";
        wrong.add("settings.serviceAccount.audience", message);
    }
}

/// Splits the path of the token's file into the directory and the file name.
fn directory(settings: &AccountSettings) -> (&str, &str) {
    settings.token_path.rsplit_once('/').unwrap_or(("", &settings.token_path))
}

/// Adds a volume with the token to the pod, and mounts the volume in the main container.
pub(crate) fn mount(parts: &mut PodParts<'_>, settings: &AccountSettings) {
    let (directory, file) = directory(settings);
    let token = object! {
        "audience": settings.audience.as_str(),
        "expirationSeconds": i64::from(settings.expiration_seconds),
        "path": file,
    };
    let sources = vec![object! { "serviceAccountToken": token }];
    parts.volumes.push(object! { "name": VOLUME, "projected": object! { "sources": sources } });
    let audience = "projected.sources[0].serviceAccountToken.audience";
    parts.volume_origins.push((VOLUME, audience, "settings.serviceAccount.audience"));
    parts.volume_mounts.push(object! { "name": VOLUME, "mountPath": directory, "readOnly": true });
}

/// Sets the variables with the Agent's identity and the path of its token.
pub(crate) fn set_env(env: &mut ContainerEnv<'_>, identity: &str, settings: &AccountSettings) {
    env.set("AGENT_AUTH_IDENTITY", identity.to_owned(), "metadata").set(
        "AGENT_AUTH_TOKEN_FILE",
        &settings.token_path,
        "settings.serviceAccount.tokenPath",
    );
}
