//! Finds the `ReferenceGrants` that KAOS's operator created for its decision point, and prints the command that deletes
//! them. These `ReferenceGrants` have no owner, so they stay even if a user deletes all KAOS objects.

use std::collections::{BTreeMap, BTreeSet};

use kaos_crds::{GROUP, access::PROJECTION_NAME, manifests};
use kaos_policy::stamp::owners;
use serde_json::Value;

use super::{
    report::{Sort, UpgradeFinding},
    service_address,
    table::{EXTERNAL, Environment, SERVED, SERVICE, is_on, text},
    values::Values,
};
use crate::input::Document;

/// The beginning of the names of KAOS's `ReferenceGrants`. These `ReferenceGrants` have no label by which the check
/// could recognize them.
const PREFIX: &str = "kaos-ext-auth-";

/// A Service, with its namespace.
pub(super) type Service<'a> = (&'a str, &'a str);

/// Whether a user can delete a `ReferenceGrant`, with the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// This operator creates a `ReferenceGrant` that allows the same.
    Replaced,
    /// A SecurityPolicy still refers to the Service.
    Needed,
    /// Nothing refers to the Service after the upgrade.
    Unneeded,
}

/// Returns the findings. All `ReferenceGrants` of a namespace with the same `Fate` share one finding.
pub(super) fn findings(documents: &[Document], values: &Values, home: &str) -> Vec<UpgradeFinding> {
    let now = values.environment(home);
    let mut by_fate: BTreeMap<(&str, Fate), Vec<&str>> = BTreeMap::new();
    for Document { identity, object, .. } in documents.iter().filter(|it| is_of_kaos(it)) {
        let namespace = identity.namespace.as_deref().unwrap_or_default();
        let fate = fate(&Reference::of(object, namespace), documents, values, &now, home);
        by_fate.entry((namespace, fate)).or_default().push(&identity.name);
    }
    by_fate.into_iter().map(|((namespace, fate), names)| finding(namespace, fate, &names)).collect()
}

/// Returns whether KAOS's operator created a `ReferenceGrant`. Such a `ReferenceGrant` lets only SecurityPolicies refer
/// to Services.
fn is_of_kaos(document: &Document) -> bool {
    let Document { identity, object, .. } = document;
    let all_are = |field: &str, group: &str, kind: &str| {
        let entries = object["spec"][field].as_array().map(Vec::as_slice).unwrap_or_default();
        let is_it = |entry: &Value| entry["kind"] == kind && entry["group"].as_str().unwrap_or_default() == group;
        !entries.is_empty() && entries.iter().all(is_it)
    };
    (&*identity.group, &*identity.kind) == ("gateway.networking.k8s.io", "ReferenceGrant")
        && identity.name.starts_with(PREFIX)
        && all_are("from", "gateway.envoyproxy.io", "SecurityPolicy")
        && all_are("to", "", "Service")
}

fn finding(namespace: &str, fate: Fate, names: &[&str]) -> UpgradeFinding {
    let count = names.len();
    let about = format!("ReferenceGrant: {count} of KAOS in {namespace}, such as {}", names.first().unwrap_or(&""));
    let command =
        format!("kubectl -n {namespace} delete referencegrants.gateway.networking.k8s.io {}", names.join(" "));
    let (sort, message, remedy) = match fate {
        Fate::Replaced => (
            Sort::Note,
            "stay, but nothing needs them after the upgrade: this operator creates ReferenceGrants of its own",
            format!(
                "after the upgrade, when kubectl -n {namespace} wait --for=condition=Ready \
                 authorizationpolicy/{PROJECTION_NAME} has ended, delete them: {command}"
            ),
        ),
        Fate::Needed => (
            Sort::Lost,
            "stay, and SecurityPolicies still need them, but no operator updates them or creates them for new namespaces",
            format!("keep them; when no SecurityPolicy refers to the Service any more, delete them: {command}"),
        ),
        Fate::Unneeded => (
            Sort::Lost,
            "stay, but no SecurityPolicy needs them after the upgrade",
            format!("after the upgrade, delete them: {command}"),
        ),
    };
    UpgradeFinding::new(sort, about, message, remedy)
}

/// The content of a `ReferenceGrant`.
struct Reference<'a> {
    /// The namespaces whose SecurityPolicies may refer to the Services.
    from: BTreeSet<&'a str>,
    /// The namespace of the `ReferenceGrant` and of the Services.
    namespace: &'a str,
    /// The names of the Services. Without names, the `ReferenceGrant` allows all Services.
    to: BTreeSet<&'a str>,
}

impl<'a> Reference<'a> {
    fn of(object: &'a Value, namespace: &'a str) -> Self {
        let list = |field: &str| object["spec"][field].as_array().into_iter().flatten();
        Self {
            from: list("from").filter_map(|from| from["namespace"].as_str()).collect(),
            namespace,
            to: list("to").filter_map(|to| to["name"].as_str()).collect(),
        }
    }

    fn allows(&self, (name, namespace): Service<'_>) -> bool {
        namespace == self.namespace && (self.to.is_empty() || self.to.contains(name))
    }
}

fn fate(grant: &Reference<'_>, documents: &[Document], values: &Values, now: &Environment, home: &str) -> Fate {
    let listed = text(now, "AUTHZ_PROJECTION_NAMESPACES");
    let is_listed = |namespace: &str| listed.split(',').any(|it| it == namespace);
    let counts = |namespace: &&str| (listed.is_empty() || is_listed(namespace)) && values.works_in(namespace);
    let is_served = is_on(text(now, SERVED));
    // If the values list no namespaces, the operator creates ReferenceGrants only for namespaces with objects.
    let gets_its_own = |namespace: &str| is_listed(namespace) || has_objects(documents, namespace);
    let refers = |policy: &&Document| {
        let Document { identity, object, .. } = policy;
        let namespace = identity.namespace.as_deref().unwrap_or_default();
        let is_own = is_of_object(object);
        // Ignore references from the SecurityPolicies of objects to the release's decision point: after the upgrade,
        // these SecurityPolicies refer to the decision point in the values. But if the new operator protects no
        // objects, these SecurityPolicies do not change.
        let counts = |service: &Service<'_>| grant.allows(*service) && !(is_own && *service == (SERVICE, home));
        identity.kind == "SecurityPolicy"
            && grant.from.contains(namespace)
            && services(&object["spec"], namespace).iter().any(counts)
    };
    let mut referring = documents.iter().filter(refers);
    let is_same = grant.namespace == home && grant.to.iter().all(|name| *name == SERVICE) && !grant.to.is_empty();
    if is_served && is_same && grant.from.iter().all(counts) {
        let stays_without = |policy: &Document| !gets_its_own(policy.identity.namespace.as_deref().unwrap_or_default());
        return if referring.any(stays_without) { Fate::Needed } else { Fate::Replaced };
    }
    let external = text(now, EXTERNAL);
    let is_asked_by_objects = match service_address::service(external) {
        Some(service) => grant.allows(service),
        // The check cannot read the address, so it must not call the ReferenceGrant unneeded.
        None if !external.is_empty() => true,
        None => is_served && grant.allows((SERVICE, home)),
    };
    if is_asked_by_objects || referring.next().is_some() { Fate::Needed } else { Fate::Unneeded }
}

/// Returns whether a namespace has an object for which the operator creates a `ReferenceGrant`.
fn has_objects(documents: &[Document], namespace: &str) -> bool {
    let is_it = |document: &Document| {
        let identity = &document.identity;
        identity.group == GROUP && identity.namespace.as_deref() == Some(namespace) && {
            identity.kind != "AuthorizationPolicy" && manifests::claimed().any(|kind| kind == identity.kind)
        }
    };
    documents.iter().any(is_it)
}

/// Returns whether an object of KAOS owns a SecurityPolicy.
pub(super) fn is_of_object(policy: &Value) -> bool {
    owners(policy).iter().any(|owner| owner["apiVersion"].as_str().is_some_and(|it| it.starts_with("kaos.tools/")))
}

/// Returns the Services to which a SecurityPolicy of this namespace refers.
pub(super) fn services<'a>(spec: &'a Value, namespace: &'a str) -> Vec<Service<'a>> {
    match spec {
        Value::Object(fields) => {
            let references =
                [&spec["backendRef"]].into_iter().chain(spec["backendRefs"].as_array().into_iter().flatten());
            let named =
                references.filter_map(|it| Some((it["name"].as_str()?, it["namespace"].as_str().unwrap_or(namespace))));
            named.chain(fields.values().flat_map(|field| services(field, namespace))).collect()
        }
        Value::Array(items) => items.iter().flat_map(|item| services(item, namespace)).collect(),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_services_of_a_policy_are_found_at_any_depth() {
        let spec = json!({"extAuth": {"grpc": {"backendRefs": [{"name": "pdp", "namespace": "kaos-system"}]}},
            "jwt": {"providers": [{"remoteJWKS": {"backendRefs": [{"name": "login"}]}}]}});
        assert_eq!(services(&spec, "team"), [("pdp", "kaos-system"), ("login", "team")]);
    }
}
