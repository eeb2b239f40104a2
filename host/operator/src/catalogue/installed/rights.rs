//! Whether the operator may do what a policy claims, asked of the API server.

use std::collections::BTreeSet;

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kaos_policy::{contract::HOME, policy::Policy};
use kube::{Api, Client, api::PostParams};

use super::StepError;
use crate::rbac::{Duties, Rule, claimed, rules};

/// Rights that are named, at most: whoever lacks so many lacks a `ClusterRole`, and each is asked for by itself.
const NAMED: usize = 16;

/// The rights that a policy takes beyond those that `own` policies take, and that the operator does not have. In `barred`
/// namespaces it has none, and nothing is done.
pub(super) async fn missing(
    client: &Client,
    policy: &Policy,
    own: &[&Policy],
    duties: &Duties,
    barred: &BTreeSet<String>,
) -> Result<Vec<String>, StepError> {
    let (had, wanted) = (rules(own, duties), claimed(policy, duties));
    let places: Vec<Option<String>> = match duties.namespaces() {
        None => vec![None],
        Some(namespaces) => namespaces.difference(barred).cloned().map(Some).collect(),
    };
    let mut missing = Vec::new();
    let enough = |missing: &[String]| missing.len() >= NAMED;
    for rule in wanted.working.iter().filter(|rule| !had.working.contains(rule)) {
        for place in &places {
            if enough(&missing) {
                return Ok(missing);
            }
            missing.extend(refused(client, rule, place.as_deref()).await?);
        }
    }
    for rule in wanted.operator.iter().filter(|rule| !had.operator.contains(rule)) {
        if enough(&missing) {
            return Ok(missing);
        }
        missing.extend(refused(client, rule, Some(&duties.operator_namespace)).await?);
    }
    Ok(missing)
}

/// How the operator gets them.
pub(super) fn remedy(duties: &Duties) -> String {
    match duties.namespaces() {
        None => "grant that with the ClusterRole that `kaos-operator policy pack` prints".to_owned(),
        Some(namespaces) => {
            let listed = namespaces.iter().map(String::as_str).collect::<Vec<_>>().join(",");
            let home = match duties.operator_namespace.as_str() {
                HOME => String::new(),
                home => format!(" --operator-namespace {home}"),
            };
            format!(
                "grant that with the Roles that `kaos-operator policy pack --namespaces {listed} --service-account \
                 NAME{home}` prints, with the name of its account"
            )
        }
    }
}

/// What of a rule the operator may not do in a namespace, or in all.
async fn refused(client: &Client, rule: &Rule, namespace: Option<&str>) -> Result<Vec<String>, StepError> {
    let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let mut refused = Vec::new();
    for resource in &rule.resources {
        let mut verbs = BTreeSet::new();
        for verb in &rule.verbs {
            let (plural, subresource) =
                resource.split_once('/').map_or((resource.as_str(), None), |(plural, sub)| (plural, Some(sub)));
            let attributes = ResourceAttributes {
                group: Some(rule.group.clone()),
                resource: Some(plural.to_owned()),
                subresource: subresource.map(str::to_owned),
                verb: Some((*verb).to_owned()),
                namespace: namespace.map(str::to_owned),
                name: rule.names.iter().next().cloned(),
                ..ResourceAttributes::default()
            };
            let review = SelfSubjectAccessReview {
                spec: SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() },
                ..SelfSubjectAccessReview::default()
            };
            let what = || format!("ask whether the operator may {verb} {resource}");
            let answer =
                api.create(&PostParams::default(), &review).await.map_err(|error| StepError::new(what(), &error))?;
            if !answer.status.is_some_and(|status| status.allowed) {
                verbs.insert(*verb);
            }
        }
        if !verbs.is_empty() {
            let verbs: Vec<&str> = verbs.into_iter().collect();
            let group = if rule.group.is_empty() { String::new() } else { format!(".{}", rule.group) };
            let place = namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
            refused.push(format!("{} {resource}{group}{place}", verbs.join(", ")));
        }
    }
    Ok(refused)
}

/// What is missing where that `ClusterRole` is there and the operator has its rights all the same not: the chart binds the
/// operator to all of them, and nothing else does.
pub(super) fn unbound(duties: &Duties, policy: &Policy) -> String {
    if duties.namespaces().is_some() {
        return String::new();
    }
    let (role, home) = (format!("kaos-policy-{}", policy.id().name), &duties.operator_namespace);
    format!(
        "; if ClusterRole {role} is there, its binding is missing, which the chart makes: kubectl create \
         clusterrolebinding {role} --clusterrole={role} --serviceaccount={home}:NAME, with the name of the operator's \
         account"
    )
}
