//! Decides whether a proxy gets the permission to start without a master key. LiteLLM 1.104 and later versions need
//! this permission or a master key. The permission is a variable, so it restarts the pods that get it.
//!
//! A ModelAPI from before the time in `proxyConfig.withoutMasterKeySince` does not get the permission, because the
//! upgrade from KAOS's operator must restart no pod. The exception is a ModelAPI with LiteLLM 1.104 or later: it cannot
//! start without the permission. A proxy with its own master key never gets the permission.

use alloc::string::ToString as _;

use serde_json::Value;

use crate::litellm_version::{Version, version};
use crate::providers::{Config, Proxy};
use crate::request::Request;

/// The variable that permits LiteLLM to run without a master key.
pub(crate) const VARIABLE: &str = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY";
/// The variable with which a user sets a master key.
const OWN_KEY: &str = "LITELLM_MASTER_KEY";
/// The field of LiteLLM's configuration with a master key.
const OWN_FIELD: &str = "master_key";

/// Returns whether the proxy gets the permission.
pub(crate) fn is_permitted(request: &Request, proxy: &Proxy) -> bool {
    let settings = &request.settings.proxy_config;
    settings.without_master_key
        && !brings_a_key(request, proxy)
        && (is_since(request, &settings.without_master_key_since) || cannot_run(request, proxy))
}

/// Returns whether the proxy cannot start without the permission. Returns false if the user's Secret or `podSpec` can
/// set a master key: such a proxy can run without the permission, and its pods must not restart.
fn cannot_run(request: &Request, proxy: &Proxy) -> bool {
    let own = request.object.str_at(&["spec", "container", "image"]).filter(|image| !image.is_empty());
    let brings = |pod: &str| pod.contains(OWN_KEY) || pod.contains("envFrom");
    let is_hidden = matches!(proxy.config, Config::Secret(_))
        || request.object.at(&["spec", "podSpec"]).is_some_and(|pod| brings(&pod.to_string()));
    !is_hidden && version(own.unwrap_or(&request.settings.proxy.image)) == Version::Later
}

/// Returns whether the ModelAPI was created at `time` or later. A ModelAPI without a creation time, such as one in a
/// file, counts as new. Kubernetes writes all times in one form, so their texts sort by time.
fn is_since(request: &Request, time: &str) -> bool {
    request.object.str_at(&["metadata", "creationTimestamp"]).is_none_or(|created| created >= time)
}

/// Returns whether the user gives the proxy a master key. The policy does not see a configuration in a Secret.
fn brings_a_key(request: &Request, proxy: &Proxy) -> bool {
    let is_named = |line: &str| line.split('#').next().unwrap_or_default().contains(OWN_FIELD);
    let in_text = match &proxy.config {
        Config::Text { text, .. } => text.lines().any(is_named),
        Config::Generated | Config::Secret(_) => false,
    };
    let is_own_key = |variable: &Value| variable.get("name").and_then(Value::as_str) == Some(OWN_KEY);
    in_text || request.user_env().any(|(_, list)| list.iter().any(is_own_key))
}
