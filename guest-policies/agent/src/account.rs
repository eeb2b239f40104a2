//! A ServiceAccount of an Agent's own, and the token by which others know the Agent.
//!
//! The token is for one audience alone and is renewed by the kubelet. It reaches nothing in the cluster, so the account has no
//! other token mounted.

use alloc::{borrow::ToOwned, string::String};
use kaos_policy_sdk::env::ContainerEnv;
use kaos_policy_sdk::object;
use kaos_workload::{Extra, PodParts, Workload};
use serde_json::Value;

use crate::settings::AccountSettings;

/// The volume of the token.
const VOLUME: &str = "agent-auth-token";
/// The label that names the Agent of an account.
const LABEL: &str = "kaos.tools/agent";

/// The name of the account.
pub(crate) fn name(workload: &Workload<'_>) -> String {
    format!("kaos-agent-{}", workload.name)
}

/// The account.
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

/// The directory and the name of the file that the token is in.
fn directory(settings: &AccountSettings) -> (&str, &str) {
    settings.token_path.rsplit_once('/').unwrap_or(("", &settings.token_path))
}

/// Mounts the token.
pub(crate) fn mount(parts: &mut PodParts<'_>, settings: &AccountSettings) {
    let (directory, file) = directory(settings);
    let token = object! {
        "audience": settings.audience.as_str(),
        "expirationSeconds": i64::from(settings.expiration_seconds),
        "path": file,
    };
    let sources = vec![object! { "serviceAccountToken": token }];
    parts.volumes.push(object! { "name": VOLUME, "projected": object! { "sources": sources } });
    parts.volume_mounts.push(object! { "name": VOLUME, "mountPath": directory, "readOnly": true });
}

/// Who the Agent is for those whom it calls, and where its token is.
pub(crate) fn set_env(env: &mut ContainerEnv<'_>, identity: &str, settings: &AccountSettings) {
    env.set("AGENT_AUTH_IDENTITY", identity.to_owned(), "metadata").set(
        "AGENT_AUTH_TOKEN_FILE",
        &settings.token_path,
        "settings.serviceAccount.tokenPath",
    );
}
