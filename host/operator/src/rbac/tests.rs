use std::{collections::BTreeSet, sync::LazyLock};

use kaos_policy::policy::Policy;
use serde_json::Value;

use super::*;
use crate::left_out::LeftOut;
use crate::policies::{Loaded, Loader, sample_cluster};

static POLICIES: LazyLock<Vec<Loaded>> =
    LazyLock::new(|| Loader::new(sample_cluster()).expect("an engine").load(&[]).expect("the embedded policies"));

fn rights(duties: &Duties) -> Rights {
    let policies: Vec<&Policy> = POLICIES.iter().map(|loaded| &*loaded.policy).collect();
    rules(&policies, duties)
}

fn duties(scope: Scope) -> Duties {
    Duties {
        scope,
        operator_namespace: "home".to_owned(),
        secrets: false,
        leader_election: true,
        namespace_policies: false,
        left_out: LeftOut::default(),
        decision_point: false,
    }
}

fn listed(namespaces: &[&str]) -> Scope {
    Scope::Listed(namespaces.iter().map(|&namespace| namespace.to_owned()).collect())
}

fn may(rules: &[Rule], group: &str, resource: &str, verb: &str) -> bool {
    let fits = |rule: &&Rule| rule.group == group && rule.resources.contains(resource) && rule.verbs.contains(verb);
    rules.iter().any(|rule| fits(&rule))
}

#[test]
fn the_rights_are_exactly_those_of_the_claims() {
    let Rights { working, operator } = rights(&duties(Scope::All));
    assert!(may(&working, "apps", "deployments", "patch"));
    assert!(may(&working, "gateway.networking.k8s.io", "httproutes", "create"));
    assert!(may(&working, "events.k8s.io", "events", "create"));
    assert!(may(&working, "apiextensions.k8s.io", "customresourcedefinitions", "watch"));
    for (_, claim) in POLICIES.iter().flat_map(|l| l.policy.descriptor().claims.iter().map(move |claim| (l, claim))) {
        let (group, plural) = super::rules::names(&claim.primary);
        let group = group.as_str();
        assert!(may(&working, group, &plural, "watch") && may(&working, group, &format!("{plural}/status"), "patch"));
        assert!(!may(&working, group, &plural, "create") && !may(&working, group, &plural, "delete"));
    }
    for rule in working.iter().chain(&operator) {
        let Rule { group, resources, verbs, .. } = rule;
        assert!(!group.contains('*') && resources.iter().all(|r| !r.contains('*')), "{rule:?}");
        assert!(!verbs.contains("*") && !verbs.contains("deletecollection"), "{rule:?}");
    }
    assert!(may(&operator, "coordination.k8s.io", "leases", "update"));
    assert!(!may(&working, "coordination.k8s.io", "leases", "get"));
}

#[test]
fn secrets_are_only_touched_when_asked_for() {
    let secrets = |rights: &Rights| rights.working.iter().any(|rule| rule.resources.contains("secrets"));
    assert!(!secrets(&rights(&duties(Scope::All))));
    let with = Duties { secrets: true, ..duties(Scope::All) };
    assert!(secrets(&rights(&with)), "pods restart when a referenced Secret changes");
}

#[test]
fn without_leader_election_there_is_no_lease() {
    let without = Duties { leader_election: false, ..duties(Scope::All) };
    assert!(!rights(&without).operator.iter().any(|rule| rule.resources.contains("leases")));
}

#[test]
fn with_listed_namespaces_nothing_holds_for_the_cluster() {
    let duties = duties(listed(&["a", "b"]));
    let objects = manifests(&rights(&duties), &duties, "kaos-operator");
    let kinds: Vec<String> = objects
        .iter()
        .map(|object| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            format!("{} {}", text(&object["kind"]), text(&object["metadata"]["namespace"]))
        })
        .collect();
    let expected =
        ["ServiceAccount home", "Role a", "RoleBinding a", "Role b", "RoleBinding b", "Role home", "RoleBinding home"];
    assert_eq!(kinds, expected);
}

#[test]
fn rights_of_a_further_policy_are_roles_if_no_cluster_role_aggregates_them() {
    let claims = Rights {
        working: vec![Rule {
            group: "sky.io".to_owned(),
            resources: ["kites".to_owned()].into(),
            names: BTreeSet::new(),
            verbs: ["watch"].into(),
        }],
        operator: rights(&duties(listed(&["home"]))).operator,
    };
    let places = |duties: &Duties, rights: &Rights| -> Vec<String> {
        let objects = further(rights, duties, "kites", "account");
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let place = |object: &Value| {
            let metadata = &object["metadata"];
            format!("{} {} {}", text(&object["kind"]), text(&metadata["namespace"]), text(&metadata["name"]))
        };
        let mut accounts = objects.iter().map(|object| &object["subjects"][0]["name"]).filter(|name| !name.is_null());
        assert!(accounts.all(|name| name == "account"));
        objects.iter().map(place).collect()
    };
    let at_home = ["Role home kites-home", "RoleBinding home kites-home"];
    let expected =
        [&["Role a kites", "RoleBinding a kites", "Role home kites", "RoleBinding home kites"][..], &at_home];
    assert_eq!(places(&duties(listed(&["a", "home"])), &claims), expected.concat(), "all names differ");
    let expected = [&["ClusterRole - kites"][..], &at_home].concat();
    assert_eq!(places(&duties(Scope::All), &claims), expected);
    assert_eq!(places(&duties(listed(&["a"])), &Rights::default()), [""; 0]);
    assert_eq!(places(&duties(Scope::All), &Rights::default()), [""; 0]);
}

#[test]
fn a_cluster_wide_right_is_not_repeated_in_the_home_namespace() {
    let reads_config = |rights: &Rights| may(&rights.operator, "", "configmaps", "watch");
    assert!(!reads_config(&rights(&duties(Scope::All))));
    assert!(reads_config(&rights(&duties(listed(&["a"])))));
}

/// Returns whether `rule` also gives a right that `other` gives, for at least the same objects.
fn repeats(rule: &Rule, other: &Rule) -> bool {
    let covers = rule.names.is_empty() || (!other.names.is_empty() && other.names.is_subset(&rule.names));
    let shares = !rule.resources.is_disjoint(&other.resources) && !rule.verbs.is_disjoint(&other.verbs);
    covers && shares && rule.group == other.group
}

#[test]
fn no_rule_repeats_a_right_of_another_rule() {
    for (scope, secrets) in [(Scope::All, false), (Scope::All, true), (listed(&["a"]), false), (listed(&["a"]), true)] {
        for both in [false, true] {
            let duties = Duties { secrets, namespace_policies: both, decision_point: both, ..duties(scope.clone()) };
            let Rights { working, operator } = rights(&duties);
            let everywhere = if scope == Scope::All { working.clone() } else { Vec::new() };
            for (rules, beside) in [(working, Vec::new()), (operator, everywhere)] {
                for (number, rule) in rules.iter().enumerate() {
                    let others = rules[..number].iter().chain(&rules[number + 1..]).chain(&beside);
                    let twice: Vec<&Rule> = others.filter(|other| repeats(other, rule)).collect();
                    assert!(twice.is_empty(), "a part of {rule:?} is in {twice:?}");
                }
            }
        }
    }
}

#[test]
fn events_about_objects_are_created_and_those_about_policies_also_patched() {
    for scope in [Scope::All, listed(&["a"])] {
        let Rights { working, operator } = rights(&duties(scope));
        let counts_up = |rules: &[Rule]| may(rules, "events.k8s.io", "events", "patch");
        assert!(!counts_up(&working) && counts_up(&operator));
        assert!(may(&working, "events.k8s.io", "events", "create"));
    }
}

#[test]
fn policies_of_namespaces_can_be_listed_watched_and_read() {
    let reads = |duties: &Duties, verb| may(&rules(&[], duties).working, "", "configmaps", verb);
    let without = duties(Scope::All);
    let with = Duties { namespace_policies: true, ..without.clone() };
    for verb in ["get", "list", "watch"] {
        assert!(reads(&with, verb) && !reads(&without, verb), "{verb}");
    }
    assert!(!reads(&with, "create"), "the operator stores packages only in its own namespace");
}

#[test]
fn types_that_are_left_out_need_no_rights() {
    let kinds = ["NetworkPolicy.networking.k8s.io", "Deployment.apps"].map(|kind| kind.parse().unwrap());
    let with = duties(Scope::All);
    let without = Duties { left_out: LeftOut::new(kinds), ..with.clone() };
    let may = |duties: &Duties, group, resource| may(&rights(duties).working, group, resource, "create");
    assert!(may(&with, "networking.k8s.io", "networkpolicies"));
    assert!(!may(&without, "networking.k8s.io", "networkpolicies"));
    for duties in [&with, &without] {
        assert!(may(duties, "gateway.envoyproxy.io", "securitypolicies"));
        assert!(may(duties, "apps", "deployments"), "every policy needs this right");
    }
}

#[test]
fn objects_of_the_decision_point_are_written_only_in_its_namespace() {
    for scope in [Scope::All, listed(&["a"])] {
        let without = duties(scope);
        let with = Duties { decision_point: true, ..without.clone() };
        for (group, resource) in
            [("kaos.tools", "authorizationpolicies"), ("gateway.networking.k8s.io", "referencegrants")]
        {
            let creates = |rules: &[Rule]| may(rules, group, resource, "create");
            let Rights { working, operator } = rights(&with);
            assert!(creates(&operator) && !creates(&working), "{resource}");
            assert!(!creates(&rights(&without).operator), "{resource}");
        }
    }
}

#[test]
fn in_its_namespace_it_updates_only_the_configmap_of_kept_settings() {
    let Rights { operator, .. } = rights(&duties(listed(&["a"])));
    let changes = |rule: &&Rule| {
        rule.resources.contains("configmaps") && ["delete", "patch", "update"].iter().any(|it| rule.verbs.contains(it))
    };
    let names: Vec<_> = operator.iter().filter(changes).map(|rule| rule.names.clone()).collect();
    assert_eq!(names, [BTreeSet::from(["kaos-operator-config-fitted".to_owned()])]);
}

#[test]
fn the_rules_alone_are_those_of_the_roles() {
    let duties = duties(Scope::All);
    let rights = rights(&duties);
    let roles = manifests(&rights, &duties, "x");
    let rules = |kind: &str| roles.iter().find(|object| object["kind"] == kind).map(|role| role["rules"].clone());
    let alone = rights.rules();
    assert_eq!(rules("ClusterRole").as_ref(), Some(&alone["working"]));
    assert_eq!(rules("Role").as_ref(), Some(&alone["operator"]));
}

#[test]
fn the_same_question_has_the_same_answer() {
    let duties = duties(Scope::All);
    assert_eq!(manifests(&rights(&duties), &duties, "x"), manifests(&rights(&duties), &duties, "x"));
}
