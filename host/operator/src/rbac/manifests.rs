//! Builds the manifests that grant the rights to the operator's service account.

use serde_json::{Value, json};

use super::{Duties, Rights, Rule};

const API: &str = "rbac.authorization.k8s.io";
/// The label of a `ClusterRole`. Kubernetes adds the RBAC rules of a `ClusterRole` with this label to the operator's
/// own role.
pub const AGGREGATED: &str = "rbac.kaos.tools/aggregate-to-operator";

/// Returns all manifests, in the order in which to apply them. `name` is the name of the service account, and the
/// prefix of all other names.
pub fn manifests(rights: &Rights, duties: &Duties, name: &str) -> Vec<Value> {
    let home = duties.operator_namespace.as_str();
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(name, Some(home)),
    });
    let mut objects = vec![account];
    match duties.namespaces() {
        None => objects.extend(grant(name, None, &rights.working, (name, home))),
        Some(namespaces) => {
            for namespace in namespaces {
                objects.extend(grant(name, Some(namespace), &rights.working, (name, home)));
            }
        }
    }
    objects.extend(grant(&format!("{name}-home"), Some(home), &rights.operator, (name, home)));
    objects
}

/// Returns the manifests that give an existing operator the additional rights for one policy's claims. If the operator
/// has a `ClusterRole`, the manifest is a `ClusterRole` with the label [`AGGREGATED`], so that Kubernetes adds its
/// rules to the operator's role. If the operator has a Role in each namespace, the manifests bind new Roles to the
/// service account `account`.
pub fn further(rights: &Rights, duties: &Duties, name: &str, account: &str) -> Vec<Value> {
    let home = duties.operator_namespace.as_str();
    let mut objects = Vec::new();
    match duties.namespaces() {
        None if rights.working.is_empty() => {}
        None => {
            let rules: Vec<Value> = rights.working.iter().map(Rule::manifest).collect();
            let mut metadata = metadata(name, None);
            metadata["labels"][AGGREGATED] = "true".into();
            objects.push(
                json!({"apiVersion": format!("{API}/v1"), "kind": "ClusterRole", "metadata": metadata, "rules": rules}),
            );
        }
        Some(namespaces) => {
            for namespace in namespaces {
                objects.extend(grant(name, Some(namespace), &rights.working, (account, home)));
            }
        }
    }
    // This Role needs its own name, because the list of namespaces may include the operator's own namespace.
    objects.extend(grant(&format!("{name}-home"), Some(home), &rights.operator, (account, home)));
    objects
}

/// Returns a Role and its binding in a namespace, or a `ClusterRole` and its binding. Returns no manifests if there are
/// no rules.
fn grant(name: &str, namespace: Option<&str>, rules: &[Rule], (account, home): (&str, &str)) -> Vec<Value> {
    if rules.is_empty() {
        return Vec::new();
    }
    let scope = if namespace.is_some() { "" } else { "Cluster" };
    let rules: Vec<Value> = rules.iter().map(Rule::manifest).collect();
    vec![
        json!({
            "apiVersion": format!("{API}/v1"),
            "kind": format!("{scope}Role"),
            "metadata": metadata(name, namespace),
            "rules": rules,
        }),
        json!({
            "apiVersion": format!("{API}/v1"),
            "kind": format!("{scope}RoleBinding"),
            "metadata": metadata(name, namespace),
            "roleRef": {"apiGroup": API, "kind": format!("{scope}Role"), "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": home}],
        }),
    ]
}

fn metadata(name: &str, namespace: Option<&str>) -> Value {
    let mut metadata = json!({"name": name, "labels": {"app.kubernetes.io/name": "kaos-operator"}});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    metadata
}
