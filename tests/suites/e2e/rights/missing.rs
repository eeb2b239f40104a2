//! Tests an operator that lacks some of its rights. The API server rejects the operator's requests, and the operator
//! reports the missing right.

use kaos_tests::control_plane::audit::Request;
use kaos_tests::harness::World;
use kaos_tests::harness::definitions::routes;
use serde_json::{Value, json};

use super::{EVERYWHERE, GATEWAY, HOME, end_routes, pairs, provide_volume, serving, settings, team, words};
use crate::support::{Release, SYSTEM, USER, at, until, until_active, until_ready};

/// Returns the RBAC rules without the right to use `verb` on `resource`.
fn without(rules: &[Value], (resource, verb): (&str, &str)) -> Vec<Value> {
    let mut rest = Vec::new();
    for rule in rules {
        let (resources, verbs) = (words(&rule["resources"]), words(&rule["verbs"]));
        if !(resources.contains(&resource) && verbs.contains(&verb)) {
            rest.push(rule.clone());
            continue;
        }
        let others: Vec<&str> = resources.into_iter().filter(|it| *it != resource).collect();
        let less: Vec<&str> = verbs.iter().copied().filter(|it| *it != verb).collect();
        for (resources, verbs) in [(others, verbs), (vec![resource], less)] {
            if !(resources.is_empty() || verbs.is_empty()) {
                let groups = &rule["apiGroups"];
                rest.push(json!({"apiGroups": groups, "resources": resources, "verbs": verbs}));
            }
        }
    }
    rest
}

/// Returns whether the API server rejected a request because the operator lacks this right. The request itself is
/// another one, such as a patch of a child, and the API server checks the right as a part of it.
fn misses((resource, verb): (&str, &str), request: &Request) -> bool {
    let refused = request.code == 403 && request.verb == "patch";
    let owner = resource.strip_suffix("s/finalizers").filter(|_| verb == "update");
    refused
        && match owner {
            // The operator applies this ConfigMap of a ModelAPI before the Deployment.
            Some("modelapi") => request.resource == "configmaps" && request.name.ends_with("-llm"),
            // The operator also applies the ServiceAccount of an Agent before the Deployment.
            Some("agent") => request.resource == "serviceaccounts",
            // This is `authorizationpolicies` without the last letter, which `strip_suffix` has removed.
            Some("authorizationpolicie") => request.resource == "configmaps" && request.name.starts_with("kaos-authz"),
            Some(kind) => request.resource == "deployments" && request.name.starts_with(kind),
            None => request.resource == resource,
        }
}

/// Runs an operator without one of its rights on the team's objects, until the API server rejects a request because
/// this right is missing.
async fn live_without(release: &Release, world: &World, all: &[Value], right: (&str, &str)) {
    EVERYWHERE.set_rules(release, &without(all, right));
    let mark = release.cluster.audit().mark().unwrap();
    let operator = release.operator(&[]).await;
    world.apply_all(&team(&world.namespace)).await;
    let is_missed = || {
        let asked = release.cluster.audit().since(mark, USER).unwrap();
        asked.iter().any(|request| misses(right, request))
    };
    until(&format!("a request is rejected for lack of {right:?}"), &operator, is_missed).await;
    drop(operator);
    EVERYWHERE.set_rules(release, all);
    for object in team(&world.namespace) {
        world.patch(&at(&object), &json!({"metadata": {"finalizers": null}})).await;
        world.delete(&at(&object)).await;
    }
    world.until_true("the children are gone", async || world.list("Deployment").await.is_empty()).await;
}

#[tokio::test]
async fn without_rights_that_the_api_server_checks_children_are_refused() {
    let release = Release::install(&GATEWAY).await;
    let world = release.world("rights").await;
    world.apply(&routes()).await;
    let all = EVERYWHERE.rules(&release);
    let gives = |resource: &str, verb: &str| all.iter().flat_map(pairs).any(|pair| pair == (resource, verb));
    for (resource, verb) in all.iter().flat_map(pairs) {
        let finalizes = resource.ends_with("/finalizers") && verb == "update";
        if finalizes || (verb == "create" && gives(resource, "patch")) {
            live_without(&release, &world, &all, (resource, verb)).await;
        }
    }
    let operator = release.working_operator().await;
    provide_volume(&world).await;
    world.apply_all(&team(&world.namespace)).await;
    until_ready(&world, &serving(&world.namespace)).await;
    drop(operator);
    end_routes(&world).await;
}

/// Returns the RBAC rules without the rights to list and watch a resource.
fn without_following(rules: &[Value], resource: &str) -> Vec<Value> {
    let mut left = Vec::new();
    for rule in rules {
        let (these, others): (Vec<&str>, Vec<&str>) =
            words(&rule["resources"]).into_iter().partition(|it| *it == resource);
        let verbs: Vec<&str> =
            words(&rule["verbs"]).into_iter().filter(|verb| !["list", "watch"].contains(verb)).collect();
        for (resources, verbs) in [(others, words(&rule["verbs"])), (these, verbs)] {
            if !resources.is_empty() && !verbs.is_empty() {
                let mut rule = rule.clone();
                (rule["resources"], rule["verbs"]) = (json!(resources), json!(verbs));
                left.push(rule);
            }
        }
    }
    left
}

#[tokio::test]
async fn a_lost_right_to_watch_policies_is_reported_and_missed_packages_are_found() {
    // Use long times for the Lease, because the operator would end if it lost its Lease. On a busy machine, the restart
    // of the API server can take longer than the default times allow.
    let patient = "controllerManager.manager.extraArgs={--leader-elect-lease-duration=10m,\
                   --leader-elect-renew-deadline=9m}";
    let release = Release::install(&["--set", patient]).await;
    let operator = release.working_operator().await;
    let system = release.over(SYSTEM);
    let before = [HOME, EVERYWHERE].map(|role| role.rules(&release));
    for (role, rules) in [HOME, EVERYWHERE].iter().zip(&before) {
        role.set_rules(&release, &without_following(rules, "configmaps"));
    }
    let may_not = async || !release.cluster.may(USER, "watch", "configmaps", SYSTEM);
    system.until_true("the operator has lost the right", may_not).await;
    // An open watch continues even without the right. Restart the API server to end the open watches.
    release.cluster.kill("kube-apiserver").unwrap();
    release.cluster.revive("kube-apiserver").unwrap();
    until("readiness tells", &operator, || {
        let page = operator.get("/readyz");
        page.starts_with("HTTP/1.1 503") && page.contains("is not allowed to list configmaps")
    })
    .await;
    let forbidden = r#"kaos_operator_watch_state{group="",kind="ConfigMap",state="forbidden"} 1"#;
    until("the metrics report the missing right", &operator, || operator.get("/metrics").contains(forbidden)).await;
    system.apply(&settings("meanwhile", "{logLevel: DEBUG}")).await;
    for (role, rules) in [HOME, EVERYWHERE].iter().zip(&before) {
        role.set_rules(&release, rules);
    }
    until_active(&release, "meanwhile").await;
    until("the operator is ready", &operator, || operator.is_ready()).await;
    assert!(!operator.get("/metrics").contains(forbidden));
}
