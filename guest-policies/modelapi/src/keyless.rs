//! Decides whether a proxy gets the permission to start without a master key, which LiteLLM 1.104 and later need.
//!
//! The permission is a variable, so a pod restarts when it gets the variable. The upgrade from KAOS's operator must
//! restart no pod. So the setting `proxyConfig.withoutMasterKeySince` leaves out older ModelAPIs, and younger ModelAPIs
//! with a Deployment of KAOS's operator. The annotation [`WITHOUT`] marks such a Deployment after the upgrade. A proxy
//! with a master key of its own never gets the permission.

use kaos_policy_sdk::need::{key, named, optional, reference};
use kaos_policy_sdk::plan::Child;
use kaos_policy_sdk::types::{Need, Refusal, Subject};
use kaos_policy_sdk::{Lookup, NeedExt as _, Object, SubjectExt};
use serde_json::{Map, Value};

use crate::providers::{Config, Proxy};
use crate::request::{Request, workload};
use crate::wanted::Wanted;

/// The variable with the permission.
pub(crate) const VARIABLE: &str = "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY";
/// The variable with which a user sets a master key.
const OWN_KEY: &str = "LITELLM_MASTER_KEY";
/// The field of LiteLLM's configuration with a master key.
const OWN_FIELD: &str = "master_key";

/// The id of the need for the proxy's own Deployment.
const OWN: &str = "deployment";
const API: &str = "apps/v1";
const KIND: &str = "Deployment";
/// The label of all Deployments of this operator. KAOS's operator sets no such label.
const LABEL: &str = "app.kubernetes.io/managed-by";
/// The annotation of a Deployment whose pods run without the permission since KAOS's operator created them. The pods
/// get the permission when the annotation or the Deployment goes.
const WITHOUT: &str = "kaos.tools/pods-without";

/// Whether a proxy gets the permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permission {
    /// The proxy gets the permission.
    Given,
    /// The proxy keeps the pods that KAOS's operator created without the permission.
    LeftOut,
    /// The proxy does not need the permission, or the settings deny it.
    Denied,
}

/// Returns the need for the proxy's own Deployment if the permission depends on this Deployment.
pub(crate) fn need(subject: &Subject) -> Option<Need> {
    // Without this time, the object comes from a file. This check is cheap, and saves the fuel for decoding an object that
    // the policy refuses.
    subject.object().str_at(&["metadata", "creationTimestamp"])?;
    let request = Request::of(subject).ok()?;
    let workload = workload(&request.object, subject);
    let fields = [key("metadata.labels", LABEL), key("metadata.annotations", WITHOUT)];
    let is_asked = depends_on_deployment(request) && workload.check_name(true).is_empty();
    is_asked.then(|| optional(named(OWN, reference(API, KIND, &workload.child_name()))).fields(fields))
}

/// Finds out whether the proxy gets the permission. Returns a refusal that waits if the policy cannot read the proxy's
/// Deployment.
pub(crate) fn permission(subject: &Subject, request: &Request) -> Result<Permission, Refusal> {
    let settings = &request.settings.proxy_config;
    let is_wanted = may_get(request) && is_since(request, &settings.without_master_key_since);
    if !is_wanted {
        return Ok(Permission::Denied);
    }
    if !depends_on_deployment(request) {
        return Ok(Permission::Given);
    }
    let name = workload(&request.object, subject).child_name();
    let found = match subject.one(OWN) {
        Lookup::Absent | Lookup::Unasked => return Ok(Permission::Given),
        other => other.or_wait(reference(API, KIND, &name))?,
    };
    Ok(if is_left_by_kaos(&found) { Permission::LeftOut } else { Permission::Given })
}

/// Marks the Deployment of a proxy that keeps its pods.
pub(crate) fn mark(deployment: &mut Child) {
    let Some(metadata) = deployment.manifest.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    annotations[WITHOUT] = VARIABLE.into();
}

/// Returns whether the permission depends on the proxy's Deployment. A ModelAPI in a file counts as new.
fn depends_on_deployment(request: &Request) -> bool {
    let since = &request.settings.proxy_config.without_master_key_since;
    !since.is_empty() && may_get(request) && created(request).is_some_and(|created| created >= since.as_str())
}

/// Returns whether the settings allow the permission, and the proxy has no master key of its own.
fn may_get(request: &Request) -> bool {
    let Wanted::Proxy(proxy) = &request.wanted else { return false };
    request.settings.proxy_config.without_master_key && !brings_a_key(request, proxy)
}

/// Returns whether KAOS's operator created a Deployment. Either this operator has not changed the Deployment yet, or it
/// has marked the Deployment.
fn is_left_by_kaos(deployment: &Object) -> bool {
    deployment.str_at(&["metadata", "labels", LABEL]).is_none()
        || deployment.str_at(&["metadata", "annotations", WITHOUT]).is_some()
}

/// Returns whether the ModelAPI was created at this time or later. Kubernetes writes all times in the same form, so
/// their texts sort by time.
fn is_since(request: &Request, time: &str) -> bool {
    created(request).is_none_or(|created| created >= time)
}

fn created(request: &Request) -> Option<&str> {
    request.object.str_at(&["metadata", "creationTimestamp"])
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
