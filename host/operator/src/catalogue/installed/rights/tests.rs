//! Tests the questions about rights that the operator sends to the API server: their number, their content, and the
//! results.

use kaos_cluster::{Cluster, TokioClock, faults::Attempt};
use kube::{
    api::DynamicObject,
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

use super::*;

const ACCOUNT: &str = "system:serviceaccount:home:op";

fn rule(group: &str, resources: &[&str], verbs: &[&'static str], names: &[&str]) -> Rule {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    Rule {
        group: group.to_owned(),
        resources: texts(resources),
        names: texts(names),
        verbs: verbs.iter().copied().collect(),
    }
}

/// Returns the rights for a policy that claims two new kinds.
fn new_kinds() -> Vec<Rule> {
    vec![
        rule("test.io", &["gadgets", "widgets"], &["get", "list", "patch", "watch"], &[]),
        rule("test.io", &["gadgets/status", "widgets/status"], &["patch"], &[]),
    ]
}

fn in_namespaces(count: usize, rules: &[Rule]) -> Vec<WantedRights> {
    let wanted = |number| WantedRights { namespace: Some(format!("n{number:03}")), rules: rules.to_vec() };
    (0..count).map(wanted).collect()
}

/// Returns a cluster, a client with the operator's rights, and a client with all rights.
fn cluster() -> (Cluster, Client, Client) {
    let clock = TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap());
    let cluster = Cluster::builder().clock(clock).start();
    let operator = Client::new(cluster.service().as_user(ACCOUNT), "home");
    let admin = Client::new(cluster.service(), "home");
    (cluster, operator, admin)
}

async fn put(client: &Client, object: Value) {
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let types = object.types.clone().unwrap();
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &types.kind));
    let api: Api<DynamicObject> = match object.metadata.namespace.clone() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Binds the operator to a Role or `ClusterRole` with these RBAC rules, in a namespace or in all namespaces.
async fn grant(client: &Client, namespace: Option<&str>, rules: Value) {
    let (api, prefix) = ("rbac.authorization.k8s.io", if namespace.is_some() { "" } else { "Cluster" });
    let metadata = json!({"name": "r", "namespace": namespace});
    let (role, binding) = (format!("{prefix}Role"), format!("{prefix}RoleBinding"));
    let of = |kind: &str| json!({"apiVersion": format!("{api}/v1"), "kind": kind, "metadata": metadata});
    let (mut granted, mut bound) = (of(&role), of(&binding));
    granted["rules"] = rules;
    bound["roleRef"] = json!({"apiGroup": api, "kind": role, "name": "r"});
    bound["subjects"] = json!([{"kind": "ServiceAccount", "namespace": "home", "name": "op"}]);
    put(client, granted).await;
    put(client, bound).await;
}

async fn missing_of(client: &Client, wanted: &[WantedRights]) -> Vec<String> {
    missing(client, wanted, &Semaphore::new(4)).await.unwrap()
}

/// Returns two numbers: the `SelfSubjectRulesReviews` and the `SelfSubjectAccessReviews` that the operator sent.
fn asked(cluster: &Cluster) -> [usize; 2] {
    let entries = cluster.journal().entries();
    ["selfsubjectrulesreviews", "selfsubjectaccessreviews"]
        .map(|plural| entries.iter().filter(|entry| entry.attempt.resource == plural).count())
}

#[tokio::test(start_paused = true)]
async fn two_hundred_namespaces_are_asked_about_once_each() {
    let (cluster, operator, _) = cluster();
    assert_eq!(missing_of(&operator, &in_namespaces(200, &new_kinds())).await, [""; 0]);
    assert_eq!(asked(&cluster), [200, 0]);
}

#[tokio::test(start_paused = true)]
async fn no_more_is_asked_than_it_takes_to_name_some() {
    let (cluster, operator, _) = cluster();
    cluster.authorise_by_rbac();
    let missing = missing_of(&operator, &in_namespaces(200, &new_kinds())).await;
    assert!((NAMED..2 * NAMED).contains(&missing.len()), "{missing:?}");
    assert_eq!(missing[0], "get, list, patch, watch gadgets.test.io in n000");
    assert!(asked(&cluster)[0] <= 2 * AT_ONCE, "{:?}", asked(&cluster));
}

#[tokio::test(start_paused = true)]
async fn where_not_all_rules_can_be_listed_those_that_are_in_doubt_are_asked_for_one_at_a_time() {
    let (cluster, operator, _) = cluster();
    cluster.authorise(|attempt: &Attempt| {
        (&*attempt.resource, &*attempt.subresource, attempt.verb.name()) != ("gadgets", "", "patch")
    });
    let missing = missing_of(&operator, &in_namespaces(2, &new_kinds())).await;
    assert_eq!(missing, ["patch gadgets.test.io in n000", "patch gadgets.test.io in n001"]);
    assert_eq!(asked(&cluster), [2, 20]);
}

#[tokio::test(start_paused = true)]
async fn a_role_of_one_namespace_gives_nothing_everywhere() {
    let (cluster, operator, admin) = cluster();
    put(&admin, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "home"}})).await;
    cluster.authorise_by_rbac();
    let every = json!([{"apiGroups": ["test.io"], "resources": ["widgets"], "verbs": ["*"]}]);
    grant(&admin, Some("home"), every.clone()).await;
    let rules = vec![rule("test.io", &["widgets"], &["list"], &[])];
    let here = WantedRights { namespace: Some("home".to_owned()), rules: rules.clone() };
    let everywhere = WantedRights { namespace: None, rules };
    let both = [everywhere, here];
    assert_eq!(missing_of(&operator, &both).await, ["list widgets.test.io"]);
    grant(&admin, None, every).await;
    assert_eq!(missing_of(&operator, &both).await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_listed_right_that_a_webhook_denies_is_missing() {
    let (cluster, operator, admin) = cluster();
    grant(&admin, None, json!([{"apiGroups": ["test.io"], "resources": ["*"], "verbs": ["*"]}])).await;
    cluster
        .authorise_by_rbac_behind(|attempt: &Attempt| (&*attempt.resource, attempt.verb.name()) != ("gadgets", "list"));
    let missing = missing_of(&operator, &in_namespaces(1, &new_kinds())).await;
    assert_eq!(missing, ["list gadgets.test.io in n000"]);
    assert_eq!(asked(&cluster), [1, 10], "the operator asks about each right, because the list is incomplete");
}

#[test]
fn a_rule_gives_the_rights_that_rbac_defines() {
    let given = |rule: Value| -> ResourceRule { serde_json::from_value(rule).unwrap() };
    let status = Right { group: "g", resource: "widgets/status", name: None, verb: "patch" };
    let named = Right { group: "", resource: "secrets", name: Some("s"), verb: "get" };
    let all = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
    for (right, rule, gives) in [
        (status, all.clone(), true),
        (status, json!({"apiGroups": ["g"], "resources": ["widgets"], "verbs": ["patch"]}), false),
        (status, json!({"apiGroups": ["g"], "resources": ["*/status"], "verbs": ["patch"]}), true),
        (status, json!({"apiGroups": ["h"], "resources": ["widgets/status"], "verbs": ["patch"]}), false),
        (status, json!({"apiGroups": ["g"], "resources": ["widgets/status"], "verbs": ["get"]}), false),
        (status, json!({"verbs": ["patch"]}), false),
        (named, json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"], "verbs": ["get"]}), true),
        (named, json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["t"], "verbs": ["get"]}), false),
        (named, json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": [], "verbs": ["get"]}), true),
        (
            Right { name: None, ..named },
            json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"],
            "verbs": ["get"]}),
            false,
        ),
    ] {
        assert_eq!(right.is_given_by(&given(rule.clone())), gives, "{right:?} by {rule}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_name_of_a_rule_is_asked_for() {
    let (cluster, operator, _) = cluster();
    cluster.authorise(|attempt: &Attempt| attempt.name != "b");
    let rules = vec![rule("", &["secrets"], &["get"], &["a", "b"])];
    let wanted = [WantedRights { namespace: Some("home".to_owned()), rules }];
    assert_eq!(missing_of(&operator, &wanted).await, ["get secrets in home"]);
}
