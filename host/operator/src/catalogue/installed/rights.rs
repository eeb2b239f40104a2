//! Asks the API server whether the operator has the rights for a policy's claims, with one question for each namespace.
//!
//! Some API servers cannot list all rights in a namespace, for example because a webhook also authorizes requests. If
//! the list is incomplete, the API server says so, and the operator asks about each right separately. Even a complete
//! list can be wrong, because the webhook may deny a right in the list.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, ResourceRule, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec,
};
use kaos_policy::{contract::HOME, policy::Policy};
use kube::{Api, Client, api::PostParams};
use tokio::sync::Semaphore;

use super::StepError;
use crate::rbac::{Duties, Rule, claimed, rules};

/// The maximum number of missing rights in a message. An operator that lacks so many rights probably lacks a whole
/// `ClusterRole`.
const NAMED: usize = 16;
/// The maximum number of concurrent questions for one policy: one question for each namespace.
const AT_ONCE: usize = 8;
/// The namespace for a question about all namespaces.
///
/// No namespace has this name, so the answer contains only RBAC rules that apply in every namespace.
const EVERYWHERE: &str = "*";

/// Rights that a policy needs in one namespace, or in all namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WantedRights {
    namespace: Option<String>,
    rules: Vec<Rule>,
}

/// One right: one verb on one resource.
#[derive(Debug, Clone, Copy)]
struct Right<'a> {
    group: &'a str,
    resource: &'a str,
    name: Option<&'a str>,
    verb: &'a str,
}

/// Returns the rights that a policy needs in addition to the rights for the operator's `own` policies. Skips the
/// namespaces in the parameter `barred`, in which the operator has no rights and handles no objects.
pub(super) fn wanted(
    policy: &Policy,
    own: &[&Policy],
    duties: &Duties,
    barred: &BTreeSet<String>,
) -> Vec<WantedRights> {
    let (had, wanted) = (rules(own, duties), claimed(policy, duties));
    let beyond = |wanted: Vec<Rule>, had: &[Rule]| -> Vec<Rule> {
        wanted.into_iter().filter(|rule| !had.contains(rule)).collect()
    };
    let working = beyond(wanted.working, &had.working);
    let operator = beyond(wanted.operator, &had.operator);
    let places: Vec<Option<String>> = match duties.namespaces() {
        None => vec![None],
        Some(namespaces) => namespaces.difference(barred).cloned().map(Some).collect(),
    };
    let mut by_place: BTreeMap<Option<String>, Vec<Rule>> =
        places.into_iter().map(|place| (place, working.clone())).collect();
    by_place.entry(Some(duties.operator_namespace.clone())).or_default().extend(operator);
    by_place.retain(|_, rules| !rules.is_empty());
    by_place.into_iter().map(|(namespace, rules)| WantedRights { namespace, rules }).collect()
}

/// Returns the rights that the operator does not have. `permits` limits the concurrent questions for all policies
/// together.
pub(super) async fn missing(
    client: &Client,
    wanted: &[WantedRights],
    permits: &Semaphore,
) -> Result<Vec<String>, StepError> {
    let refused = async |wanted: &WantedRights| {
        let _permit = permits.acquire().await;
        wanted.refused(client).await
    };
    let mut answers = std::pin::pin!(stream::iter(wanted).map(refused).buffered(AT_ONCE));
    let mut missing = Vec::new();
    while let Some(refused) = answers.next().await {
        missing.extend(refused?);
        if missing.len() >= NAMED {
            break;
        }
    }
    Ok(missing)
}

/// Returns the remedy for missing rights, as a part of a message.
pub(super) fn remedy(duties: &Duties) -> String {
    match duties.namespaces() {
        None => "grant these rights with the ClusterRole that `kaos-operator policy pack` prints".to_owned(),
        Some(namespaces) => {
            let listed = namespaces.iter().map(String::as_str).collect::<Vec<_>>().join(",");
            let home = match duties.operator_namespace.as_str() {
                HOME => String::new(),
                home => format!(" --operator-namespace {home}"),
            };
            format!(
                "grant these rights with the Roles that `kaos-operator policy pack --namespaces {listed} \
                 --service-account NAME{home}` prints; NAME is the operator's service account"
            )
        }
    }
}

/// Returns a hint for the case that the policy's `ClusterRole` exists but is not bound to the operator. Only the chart
/// creates the binding.
pub(super) fn unbound(duties: &Duties, policy: &Policy) -> String {
    if duties.namespaces().is_some() {
        return String::new();
    }
    let (role, home) = (format!("kaos-policy-{}", policy.id().name), &duties.operator_namespace);
    format!(
        "; if ClusterRole {role} exists, only its binding is missing: run `kubectl create clusterrolebinding {role} \
         --clusterrole={role} --serviceaccount={home}:NAME`, where NAME is the operator's service account"
    )
}

impl WantedRights {
    /// Returns the rights that the operator does not have.
    async fn refused(&self, client: &Client) -> Result<Vec<String>, StepError> {
        let Self { namespace, rules } = self;
        let given = self.given(client).await?;
        let mut refused = Vec::new();
        for rule in rules {
            for resource in &rule.resources {
                let mut verbs = Vec::new();
                for verb in rule.verbs.iter().copied() {
                    if !self.allows(client, rule, (resource, verb), given.as_deref()).await? {
                        verbs.push(verb);
                    }
                }
                if !verbs.is_empty() {
                    let group = if rule.group.is_empty() { String::new() } else { format!(".{}", rule.group) };
                    let place = namespace.as_ref().map(|namespace| format!(" in {namespace}")).unwrap_or_default();
                    refused.push(format!("{} {resource}{group}{place}", verbs.join(", ")));
                }
            }
            if refused.len() >= NAMED {
                break;
            }
        }
        Ok(refused)
    }

    /// Returns whether the operator has the right to use a verb on a resource of `rule`. Searches the `given` RBAC
    /// rules for this right. If `given` is `None`, asks the API server about this right separately.
    async fn allows(
        &self,
        client: &Client,
        rule: &Rule,
        (resource, verb): (&str, &str),
        given: Option<&[ResourceRule]>,
    ) -> Result<bool, StepError> {
        let names = rule.names.iter().map(|name| Some(name.as_str()));
        let names: Vec<Option<&str>> = if rule.names.is_empty() { vec![None] } else { names.collect() };
        for name in names {
            let right = Right { group: &rule.group, resource, name, verb };
            let is_allowed = match given {
                Some(given) => given.iter().any(|given| right.is_given_by(given)),
                None => right.is_allowed(client, self.namespace.as_deref()).await?,
            };
            if !is_allowed {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Asks the API server for the RBAC rules of the operator in the namespace. Returns `None` if the list is
    /// incomplete.
    async fn given(&self, client: &Client) -> Result<Option<Vec<ResourceRule>>, StepError> {
        let namespace = self.namespace.clone().unwrap_or_else(|| EVERYWHERE.to_owned());
        let what = match &self.namespace {
            Some(namespace) => format!("ask what the operator is allowed to do in namespace {namespace}"),
            None => "ask what the operator is allowed to do in all namespaces".to_owned(),
        };
        let review = SelfSubjectRulesReview {
            spec: SelfSubjectRulesReviewSpec { namespace: Some(namespace) },
            ..SelfSubjectRulesReview::default()
        };
        let api: Api<SelfSubjectRulesReview> = Api::all(client.clone());
        let answer = api.create(&PostParams::default(), &review).await.map_err(|error| StepError::new(what, &error))?;
        let status = answer.status.unwrap_or_default();
        let is_whole = !status.incomplete && status.evaluation_error.is_none();
        Ok(is_whole.then_some(status.resource_rules))
    }
}

impl Right<'_> {
    /// Returns whether an RBAC rule grants this right.
    fn is_given_by(&self, rule: &ResourceRule) -> bool {
        let has = |list: Option<&Vec<String>>, wanted: &[&str]| {
            list.is_some_and(|list| list.iter().any(|item| wanted.contains(&item.as_str())))
        };
        let any = self.resource.split_once('/').map(|(_, subresource)| format!("*/{subresource}"));
        let resources = [Some("*"), Some(self.resource), any.as_deref()];
        let resources: Vec<&str> = resources.into_iter().flatten().collect();
        let names = rule.resource_names.as_ref().filter(|names| !names.is_empty());
        let is_named = names.is_none() || self.name.is_some_and(|name| has(names, &[name]));
        has(Some(&rule.verbs), &["*", self.verb])
            && has(rule.api_groups.as_ref(), &["*", self.group])
            && has(rule.resources.as_ref(), &resources)
            && is_named
    }

    /// Asks the API server whether the operator has this right in a namespace, or in all namespaces.
    async fn is_allowed(&self, client: &Client, namespace: Option<&str>) -> Result<bool, StepError> {
        let Self { group, resource, name, verb } = *self;
        let (plural, subresource) =
            resource.split_once('/').map_or((resource, None), |(plural, sub)| (plural, Some(sub)));
        let attributes = ResourceAttributes {
            group: Some(group.to_owned()),
            resource: Some(plural.to_owned()),
            subresource: subresource.map(str::to_owned),
            verb: Some(verb.to_owned()),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            ..ResourceAttributes::default()
        };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec { resource_attributes: Some(attributes), ..Default::default() },
            ..SelfSubjectAccessReview::default()
        };
        let what = || format!("ask whether the operator is allowed to {verb} {resource}");
        let api: Api<SelfSubjectAccessReview> = Api::all(client.clone());
        let answer =
            api.create(&PostParams::default(), &review).await.map_err(|error| StepError::new(what(), &error))?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }
}

#[cfg(test)]
mod tests;
