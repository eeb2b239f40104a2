//! Decides access by the stored Roles and bindings, as a server with RBAC does.

use serde_json::{Value, json};

use crate::{
    faults::Attempt,
    storage::{GroupResource, Key, Store, meta},
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Returns whether a binding gives the user an RBAC rule that allows the request. The user `admin` is in the group
/// `system:masters`, which has all rights.
pub(super) fn allows(store: &Store, attempt: &Attempt) -> bool {
    attempt.user == "admin"
        || given(store, &attempt.user, &attempt.namespace)
            .any(|rules| rules.as_array().is_some_and(|rules| rules.iter().any(|rule| covers(rule, attempt))))
}

/// Returns the RBAC rules that a user has in a namespace, by bindings of this namespace and by cluster-wide bindings.
pub(super) fn rules(store: &Store, user: &str, namespace: &str) -> Vec<Value> {
    if user == "admin" {
        return vec![everything()];
    }
    let given = given(store, user, namespace).filter_map(|rules| rules.as_array().cloned());
    given.flatten().filter(|rule| rule["resources"].is_array()).collect()
}

/// Returns the RBAC rules of each role that a user has in a namespace, by a binding of the namespace or of the whole
/// cluster.
fn given<'a>(store: &'a Store, user: &'a str, namespace: &'a str) -> impl Iterator<Item = &'a Value> {
    let of = |plural: &str, namespace: &str, name: &str| {
        store.get(&GroupResource::new(GROUP, plural), &Key::new(namespace, name)).map(|role| &role["rules"])
    };
    let everywhere = store.list(&GroupResource::new(GROUP, "clusterrolebindings"), "");
    let is_somewhere = !namespace.is_empty();
    let here = is_somewhere.then(|| store.list(&GroupResource::new(GROUP, "rolebindings"), namespace));
    let bindings = everywhere.chain(here.into_iter().flatten()).map(|(_, binding)| binding);
    bindings.filter(|binding| names(binding, user)).filter_map(move |binding| {
        let role = binding["roleRef"]["name"].as_str().unwrap_or_default();
        match binding["roleRef"]["kind"].as_str() {
            Some("Role") => of("roles", meta(binding, "namespace"), role),
            _ => of("clusterroles", "", role),
        }
    })
}

/// Returns whether a binding names a user directly, as a service account, or by a group.
fn names(binding: &Value, user: &str) -> bool {
    let account = user.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    binding["subjects"].as_array().into_iter().flatten().any(|subject| {
        let name = subject["name"].as_str().unwrap_or_default();
        match subject["kind"].as_str() {
            Some("User") => name == user,
            Some("ServiceAccount") => account == Some((subject["namespace"].as_str().unwrap_or_default(), name)),
            Some("Group") => match (name, account) {
                ("system:authenticated", _) | ("system:serviceaccounts", Some(_)) => true,
                (group, Some((namespace, _))) => group.strip_prefix("system:serviceaccounts:") == Some(namespace),
                _ => false,
            },
            _ => false,
        }
    })
}

fn covers(rule: &Value, attempt: &Attempt) -> bool {
    let has = |field: &str, wanted: &[&str]| {
        rule[field].as_array().is_some_and(|list| list.iter().any(|item| wanted.iter().any(|wanted| item == wanted)))
    };
    let subresource = &attempt.subresource;
    let resource =
        if subresource.is_empty() { attempt.resource.clone() } else { format!("{}/{subresource}", attempt.resource) };
    let any = format!("*/{subresource}");
    let limited = rule["resourceNames"].as_array().is_some_and(|names| !names.is_empty());
    has("verbs", &["*", attempt.verb.name()])
        && has("apiGroups", &["*", &attempt.group])
        && has("resources", &["*", &resource, &any])
        && (!limited || (!attempt.name.is_empty() && has("resourceNames", &[&attempt.name])))
}

/// Returns the RBAC rule that allows every request.
pub(super) fn everything() -> Value {
    json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
}
