//! The content of the objects that the operator writes for the decision point.

use std::collections::BTreeSet;

use kaos_crds::{
    API_VERSION,
    access::{AuthorizationPolicySpec, MAX_NAMESPACES, PROJECTION_NAME},
};
use serde_json::{Value, json};

/// The kind of the AuthorizationPolicy.
pub(crate) const KIND: &str = "AuthorizationPolicy";
/// The name of the Service of the decision point that the chart installs.
pub(super) const SERVICE: &str = "kaos-pdp";
/// The API version and the kind of the `ReferenceGrants`.
pub(super) const REFERENCE_GRANT: (&str, &str) = ("gateway.networking.k8s.io/v1beta1", "ReferenceGrant");
/// The label of the `ReferenceGrants`.
pub(super) const LABEL: (&str, &str) = ("kaos.tools/decision-point", SERVICE);

/// The namespaces that contain objects, divided by whether the AuthorizationPolicy lists them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChosenNamespaces {
    /// The namespaces that the AuthorizationPolicy lists.
    pub(crate) listed: BTreeSet<String>,
    /// The namespaces that exceed the maximum length of the list.
    pub(crate) left_out: BTreeSet<String>,
}

impl ChosenNamespaces {
    /// Chooses the namespaces that the AuthorizationPolicy lists, from the namespaces in `found`. A namespace that is
    /// already listed stays listed, because its objects must not lose access when another namespace appears.
    pub(crate) fn choose(found: &BTreeSet<String>, before: &BTreeSet<String>) -> Self {
        let (old, new): (Vec<&String>, Vec<&String>) = found.iter().partition(|namespace| before.contains(*namespace));
        let mut in_order = old.into_iter().chain(new).cloned();
        let listed = in_order.by_ref().take(MAX_NAMESPACES).collect();
        Self { listed, left_out: in_order.collect() }
    }
}

/// Returns the AuthorizationPolicy. If `namespaces` is empty, the AuthorizationPolicy lists its own namespace, because
/// the list must not be empty.
pub(super) fn policy(spec: &AuthorizationPolicySpec, namespaces: &BTreeSet<String>, home: &str) -> Value {
    let namespaces = if namespaces.is_empty() { vec![home.to_owned()] } else { namespaces.iter().cloned().collect() };
    json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": PROJECTION_NAME, "namespace": home},
        "spec": AuthorizationPolicySpec { namespaces, ..spec.clone() },
    })
}

/// Returns the name of the `ReferenceGrant` for a namespace.
pub(super) fn grant_name(namespace: &str) -> String {
    format!("{SERVICE}-{namespace}")
}

/// Returns the `ReferenceGrant` for a namespace. The AuthorizationPolicy with this UID owns it.
pub(super) fn grant(namespace: &str, home: &str, uid: &str) -> Value {
    let (api_version, kind) = REFERENCE_GRANT;
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": grant_name(namespace),
            "namespace": home,
            "labels": {LABEL.0: LABEL.1},
            "ownerReferences": [
                {"apiVersion": API_VERSION, "kind": KIND, "name": PROJECTION_NAME, "uid": uid},
            ],
        },
        "spec": {
            "from": [{"group": "gateway.envoyproxy.io", "kind": "SecurityPolicy", "namespace": namespace}],
            "to": [{"group": "", "kind": "Service", "name": SERVICE}],
        },
    })
}

#[cfg(test)]
mod tests {
    use kaos_crds::access::DataSource;

    use super::*;

    fn numbered(range: std::ops::Range<usize>) -> BTreeSet<String> {
        range.map(|number| format!("n{number:03}")).collect()
    }

    #[test]
    fn a_namespace_in_a_full_list_stays_if_another_one_appears() {
        let before = numbered(10..10 + MAX_NAMESPACES);
        let found = numbered(5..10 + MAX_NAMESPACES);
        let ChosenNamespaces { listed, left_out } = ChosenNamespaces::choose(&found, &before);
        assert_eq!((listed, left_out), (before, numbered(5..10)));
    }

    #[test]
    fn a_namespace_without_objects_leaves_the_list() {
        let ChosenNamespaces { listed, left_out } = ChosenNamespaces::choose(&numbered(2..4), &numbered(0..3));
        assert_eq!((listed, left_out), (numbered(2..4), BTreeSet::new()));
    }

    #[test]
    fn an_authorization_policy_lists_at_least_its_own_namespace() {
        let spec = AuthorizationPolicySpec {
            namespaces: Vec::new(),
            config_map: "rules".to_owned(),
            data_source: DataSource::Manual,
            rego_override: true,
        };
        let own = policy(&spec, &BTreeSet::new(), "home");
        let expected =
            json!({"namespaces": ["home"], "configMap": "rules", "dataSource": "manual", "regoOverride": true});
        assert_eq!(own["spec"], expected);
        assert_eq!(policy(&spec, &numbered(0..2), "home")["spec"]["namespaces"], json!(["n000", "n001"]));
    }
}
