//! Helpers of this suite.

use kaos_cluster::faults::{Attempt, Entry};
use kaos_tests::gadget::gadget;
use kaos_tests::harness::World;
use kaos_tests::harness::faults::is_operator;
use kaos_tests::harness::samples::memory_store;
use serde_json::{Value, json};

/// The children of the Gadget [`web`].
pub(crate) const CHILDREN: [&str; 5] =
    ["Secret/web", "ServiceAccount/web", "ConfigMap/web", "Deployment/web", "Service/web"];
/// The MemoryStore `notes`.
pub(crate) const STORE: &str = "MemoryStore/notes";

/// Returns a Gadget with children of every type.
pub(crate) fn web() -> Value {
    web_with(&json!({}))
}

/// Like [`web`], but adds `more` to the spec.
pub(crate) fn web_with(more: &Value) -> Value {
    let mut spec = json!({"config": {"a": "1"}, "secret": {"k": "v"}});
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    gadget("web", &spec)
}

/// Returns a MemoryStore with an external database. The store uses the ModelAPI `llm`.
pub(crate) fn external_store(name: &str) -> Value {
    let mut store = memory_store(name, "llm");
    let connection = json!({"name": "pg", "key": "dsn", "optional": true});
    store["spec"]["storage"] = json!({"type": "external", "external": {"connectionSecretRef": connection}});
    store
}

/// Returns the image of a Deployment's first container.
pub(crate) fn image(deployment: &Value) -> &str {
    deployment["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default()
}

/// Returns those requests in `entries` that concern the type `plural`. Leaves out requests for subresources.
pub(crate) fn of_type<'a>(entries: &'a [Entry], plural: &str) -> Vec<&'a Entry> {
    let fits = |entry: &&Entry| entry.attempt.resource == plural && entry.attempt.subresource.is_empty();
    entries.iter().filter(fits).collect()
}

/// Returns whether an access rule allows a request. The rule denies the operator all writes of Gadgets, except writes
/// of their status.
pub(crate) fn may_not_change_gadgets(attempt: &Attempt) -> bool {
    may_change_all_but("gadgets", attempt)
}

/// Returns whether an access rule allows a request. The rule denies the operator all writes of the type `resource`,
/// except writes of the status.
pub(crate) fn may_change_all_but(resource: &str, attempt: &Attempt) -> bool {
    !is_operator(&attempt.user)
        || !attempt.verb.is_write()
        || attempt.resource != resource
        || attempt.subresource == "status"
}

/// Returns the number of passes over Gadgets.
pub(crate) fn passes(world: &World) -> f64 {
    world.counted("kaos_operator_passes_total", &["kind=\"Gadget\""])
}

/// Returns how often the operator planned a retry after a pass over a Gadget.
pub(crate) fn retries(world: &World) -> f64 {
    world.counted("kaos_operator_retries_total", &["kind=\"Gadget\""])
}
