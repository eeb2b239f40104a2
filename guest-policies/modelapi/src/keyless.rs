//! Decides whether a proxy gets the permission to start without a master key, which LiteLLM 1.104 and later need.
//!
//! The permission is a variable, so a pod restarts when it gets the variable. With the setting
//! `proxyConfig.withoutMasterKeyOnlyNew`, a Deployment that already runs without the variable keeps its pods until its
//! image changes. The upgrade from KAOS's operator therefore restarts no pod. A proxy with a master key of its own never
//! gets the permission.

use alloc::vec::Vec;
use kaos_policy_sdk::need::{named, optional, reference};
use kaos_policy_sdk::types::{Need, Subject};
use kaos_policy_sdk::{Lookup, NeedExt as _, Object, SubjectExt};
use serde_json::Value;

use crate::providers::{Config, Proxy};
use crate::request::{self, KIND, Request};
use crate::wanted::Wanted;

/// The variable with the permission.
pub(crate) const VARIABLE: &str = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY";
/// The variable with which a user sets a master key.
const OWN_KEY: &str = "LITELLM_MASTER_KEY";
/// The field of LiteLLM's configuration with a master key.
const OWN_FIELD: &str = "master_key";
/// The id of the need for the object's own Deployment.
const NEED: &str = "deployment";

/// Returns the need for the object's own Deployment, if the permission depends on the Deployment.
pub(crate) fn needs(subject: &Subject) -> Vec<Need> {
    let Ok(request) = Request::of(subject) else { return Vec::new() };
    let Wanted::Proxy(proxy) = &request.wanted else { return Vec::new() };
    if !is_wanted(request, proxy) || !request.settings.proxy_config.without_master_key_only_new {
        return Vec::new();
    }
    let name = request::workload(&request.object, subject).child_name();
    vec![optional(named(NEED, reference("apps/v1", "Deployment", &name))).fields(["spec.template.spec.containers"])]
}

/// Returns whether the proxy gets the permission.
pub(crate) fn is_permitted(subject: &Subject, request: &Request, proxy: &Proxy) -> bool {
    if !is_wanted(request, proxy) || !request.settings.proxy_config.without_master_key_only_new {
        return is_wanted(request, proxy);
    }
    match subject.one(NEED) {
        Lookup::There(deployment) => !keeps_its_pods(request, &deployment),
        Lookup::Absent | Lookup::Unserved => true,
        // A Deployment that the policy does not see possibly has running pods.
        Lookup::Forbidden(_) | Lookup::Unasked => false,
    }
}

fn is_wanted(request: &Request, proxy: &Proxy) -> bool {
    request.settings.proxy_config.without_master_key && !brings_a_key(request, proxy)
}

/// Returns whether the user gives the proxy a master key. The policy does not see a configuration in a Secret.
fn brings_a_key(request: &Request, proxy: &Proxy) -> bool {
    let is_named = |line: &str| line.split('#').next().unwrap_or_default().contains(OWN_FIELD);
    let in_text = match &proxy.config {
        Config::Text { text, .. } => text.lines().any(is_named),
        Config::Generated | Config::Secret(_) => false,
    };
    in_text || request.user_env().any(|(_, list)| has_variable(list, OWN_KEY))
}

/// Returns whether the Deployment runs the planned image without the permission.
fn keeps_its_pods(request: &Request, deployment: &Object) -> bool {
    let container = container(deployment, &["spec", "template", "spec", "containers"]);
    let variables = container.and_then(|it| it.get("env")).and_then(Value::as_array);
    let has = variables.is_some_and(|variables| has_variable(variables, VARIABLE));
    let image = container.and_then(|it| it.get("image")).and_then(Value::as_str);
    !has && image == Some(planned_image(request))
}

fn planned_image(request: &Request) -> &str {
    let in_pod = container(&request.object, &["spec", "podSpec", "containers"]);
    let in_pod = in_pod.and_then(|it| it.get("image")).and_then(Value::as_str);
    let own = in_pod.or_else(|| request.object.str_at(&["spec", "container", "image"]));
    own.filter(|image| !image.is_empty()).unwrap_or(&request.server().0.image)
}

/// Returns the proxy's container in a list of containers.
fn container<'a>(object: &'a Object, path: &[&str]) -> Option<&'a Value> {
    let containers = object.at(path)?.as_array()?;
    containers.iter().find(|it| it.get("name").and_then(Value::as_str) == Some(KIND.container))
}

fn has_variable(list: &[Value], name: &str) -> bool {
    list.iter().any(|variable| variable.get("name").and_then(Value::as_str) == Some(name))
}
