//! Checks the resources of a container or pod.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    found::{Findings, quoted, shown},
    manifest_value::ManifestValue,
    quantity,
};
use crate::names::is_key;

/// Checks the resources of a container. `claims` are the names of the pod's resource claims.
pub(super) fn of_container(at: &ManifestValue<'_>, claims: &BTreeSet<&str>, found: &mut Findings) {
    check(at, &["cpu", "memory", "ephemeral-storage"], found);
    found.differ(&at.field("claims"), &[("name", "")]);
    for claim in at.list("claims") {
        let name = claim.field("name");
        if found.needs(&name, "one of the pod's resourceClaims") && !claims.contains(name.text()) {
            found.add(&name, format!("the pod has no resource claim {}", shown(&name)));
        }
    }
}

/// Checks the resources that a pod declares for all its containers together.
pub(super) fn of_pod(at: &ManifestValue<'_>, found: &mut Findings) {
    check(at, &["cpu", "memory"], found);
    for list in ["limits", "requests"] {
        for (name, value) in at.field(list).entries().filter(|(name, _)| name.contains('/')) {
            found.add(
                &value,
                format!(
                    "the resources of a whole pod cannot contain {}: write the resource into a container",
                    quoted(name)
                ),
            );
        }
    }
    if at.field("claims").is_there() {
        found.add(&at.field("claims"), "is for containers only: remove it");
    }
}

/// Checks the resources that a pod uses in addition to those of its containers.
pub(super) fn overhead(at: &ManifestValue<'_>, found: &mut Findings) {
    at.entries().for_each(|(name, value)| resource(name, &value, &["cpu", "memory", "ephemeral-storage"], found));
    let has = |is_it: fn(&str) -> bool| at.entries().any(|(name, _)| is_it(name));
    if has(is_huge) && !has(|name| matches!(name, "cpu" | "memory")) {
        found.add(at, "has huge pages only: add cpu or memory");
    }
}

/// Checks limits and requests.
fn check(at: &ManifestValue<'_>, standard: &[&str], found: &mut Findings) {
    let (limits, requests) = (at.field("limits"), at.field("requests"));
    let mut has = (false, false);
    for (name, value) in limits.entries().chain(requests.entries()) {
        resource(name, &value, standard, found);
        has = (has.0 || matches!(name, "cpu" | "memory"), has.1 || is_huge(name));
    }
    if has.1 && !has.0 {
        found.add(at, "requests huge pages only: request cpu or memory too");
    }
    for (name, wanted) in requests.entries() {
        let limit = limits.field(name);
        if !limit.is_there() {
            if !may_exceed(name) {
                found.add(&wanted, "needs a limit of the same amount");
            }
            continue;
        }
        let (Some(amount), Some(most)) = (quantity::amount(wanted.value()), quantity::amount(limit.value())) else {
            continue;
        };
        if amount != most && !may_exceed(name) {
            found.add(&wanted, format!("{} must equal the limit, {}", shown(&wanted), shown(&limit)));
        } else if amount > most {
            found.add(&wanted, format!("{} is more than the limit, {}", shown(&wanted), shown(&limit)));
        }
    }
}

/// Checks one amount and the name of its resource.
fn resource(name: &str, at: &ManifestValue<'_>, standard: &[&str], found: &mut Findings) {
    let is_standard = standard.contains(&name) || is_huge(name);
    if !is_key(name) {
        found.key(at, name);
    } else if !name.contains('/') && !is_standard {
        let told = standard.join(", ");
        found.add(at, format!("there is no resource {}: use {told}, or a resource with a domain", quoted(name)));
    } else if name.contains('/') && !is_native(name) && !is_extended(name) {
        found.add(at, format!("{} is not the name of a resource: it must not begin with `requests.`", quoted(name)));
    }
    let amount = quantity::check(at, found);
    if is_extended(name) && amount.is_some_and(|amount| !quantity::is_whole(amount)) {
        found.add(at, format!("{} is not a whole number, but {name} cannot be divided", shown(at)));
    }
    if is_huge(name) {
        let size = quantity::amount(&Value::from(name.trim_start_matches("hugepages-")));
        let fits = |amount: i128, size: i128| size > 0 && quantity::is_whole(size) && amount % size == 0;
        if !amount.zip(size).is_some_and(|(amount, size)| fits(amount, size)) {
            found.add(at, format!("{} is not a multiple of this page size", shown(at)));
        }
    }
}

fn is_huge(name: &str) -> bool {
    name.starts_with("hugepages-")
}

/// Returns whether a resource is one of Kubernetes' own resources, such as `cpu`.
fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Returns whether a resource is an extended resource, such as a device.
fn is_extended(name: &str) -> bool {
    !is_native(name) && !name.starts_with("requests.") && is_key(&format!("requests.{name}"))
}

/// Returns whether Kubernetes accepts a limit of this resource that is higher than the request.
fn may_exceed(name: &str) -> bool {
    is_native(name) && !is_huge(name)
}
