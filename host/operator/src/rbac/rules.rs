//! Computes the rights that the host and the policies need.

use std::{collections::BTreeMap, sync::LazyLock};

use kaos_policy::{contract::ResourceType, manifest::OPERATOR_NAMESPACE, policy::Policy};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::{
    Duties,
    rule::{Collected, Rule},
};
use crate::{
    config_maps::FITTED_CONFIG,
    definitions::embedded,
    leader_election,
    proofs::{MAX_CONFIG_MAPS, config_map_name},
};

/// The verbs for watching objects.
const FOLLOW: &[&str] = &["get", "list", "watch"];
/// The verbs for managing children. The API server requires `create` for an apply of an object that does not exist.
const KEEP: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];

/// All rights that the operator needs, divided by the namespaces in which it needs them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights {
    /// The rights in each namespace in which the operator reconciles objects, or in all namespaces.
    pub working: Vec<Rule>,
    /// The rights in the namespace in which the operator runs.
    pub operator: Vec<Rule>,
}

impl Rights {
    /// Returns the RBAC rules in the form that Roles contain.
    pub fn rules(&self) -> Value {
        let of = |rules: &[Rule]| rules.iter().map(Rule::manifest).collect::<Vec<Value>>();
        json!({"working": of(&self.working), "operator": of(&self.operator)})
    }
}

/// Returns the rights that these policies and the host need.
pub fn rules(policies: &[&Policy], duties: &Duties) -> Rights {
    let (mut working, mut operator) = (Collected::default(), Collected::default());
    let everywhere = duties.namespaces().is_none();
    // This right is for Events about objects. Events about policies are in the operator's namespace, and also require
    // the verb `patch`, because a repeated Event increases a counter.
    working.add("events.k8s.io", "events", &["create"]);
    if everywhere {
        // The watch on CRDs shows new and deleted types, and the schema of their status. An operator with Roles only
        // may not watch CRDs: it polls discovery, and uses its embedded CRDs.
        working.add("apiextensions.k8s.io", "customresourcedefinitions", FOLLOW);
    }
    if duties.secrets {
        // The operator watches ConfigMaps and Secrets, so that it can restart pods after a change of a ConfigMap or
        // Secret that the pods use.
        working.add("", "configmaps", FOLLOW);
        working.add("", "secrets", FOLLOW);
    }
    if duties.leader_election {
        // Kubernetes cannot limit the verb `create` to one Lease, because it authorizes a request before it reads the
        // name in the body.
        operator.add("coordination.k8s.io", "leases", &["create"]);
        let name = [leader_election::LEASE.to_owned()].into();
        // A waiting replica watches the Lease, so that it takes over at once when the Lease expires or is released.
        operator.add_named("coordination.k8s.io", "leases", name, &["get", "update", "watch"]);
    }
    operator.add("events.k8s.io", "events", &["create", "patch"]);
    // The operator needs these rights for installed packages: it reads their ConfigMaps, and stores their bytes in
    // other ConfigMaps.
    operator.add("", "configmaps", &["create", "get", "list", "watch"]);
    // The operator stores the last good settings for the next process, and `kaos-operator release` deletes these
    // settings.
    operator.add_named("", "configmaps", [FITTED_CONFIG.to_owned()].into(), &["delete", "patch"]);
    if everywhere {
        // The operator stores proofs that objects are settled, for the next process. An operator with Roles only stores
        // no proofs.
        let proofs = (0..MAX_CONFIG_MAPS).map(config_map_name).collect();
        operator.add_named("", "configmaps", proofs, &["delete", "patch"]);
    }
    operator.add(kaos_crds::GROUP, "policyrevisions", &["create", "delete", "get", "list", "watch"]);
    operator.add(kaos_crds::GROUP, "policyrevisions/status", &["patch"]);
    if duties.decision_point {
        operator.add(kaos_crds::GROUP, "authorizationpolicies", &["create", "patch"]);
        operator.add("gateway.networking.k8s.io", "referencegrants", &["create", "delete", "list", "patch"]);
    }
    if duties.namespace_policies {
        working.add("", "configmaps", FOLLOW);
    }
    for policy in policies {
        claim(policy, duties, &mut working, &mut operator);
    }
    if everywhere {
        operator.leave_out(&working);
    }
    Rights { working: working.rules(), operator: operator.rules() }
}

/// Returns the rights for the claims of one policy, without the host's rights.
pub fn claimed(policy: &Policy, duties: &Duties) -> Rights {
    let (mut working, mut operator) = (Collected::default(), Collected::default());
    claim(policy, duties, &mut working, &mut operator);
    Rights { working: working.rules(), operator: operator.rules() }
}

fn claim(policy: &Policy, duties: &Duties, working: &mut Collected, operator: &mut Collected) {
    for claim in &policy.descriptor().claims {
        let (group, plural) = names(&claim.primary);
        working.add(&group, &plural, &["get", "list", "patch", "watch"]);
        working.add(&group, format!("{plural}/status"), &["patch"]);
        if !claim.emits.is_empty() {
            // To set an owner reference with `blockOwnerDeletion`, the operator needs this right if the API server runs
            // the admission plugin `OwnerReferencesPermissionEnforcement`.
            working.add(&group, format!("{plural}/finalizers"), &["update"]);
        }
        for of in claim.emits.iter().filter(|of| !duties.left_out.has(claim, of)) {
            let (group, plural) = names(of);
            working.add(&group, plural, KEEP);
        }
        let reads = claim.reads.iter().filter(|of| !duties.left_out.has(claim, of));
        for of in reads.filter(|of| duties.secrets || !of.is_secret()) {
            let (group, plural) = names(of);
            working.add(&group, plural, FOLLOW);
        }
    }
    let own = policy.grants().reads.iter().filter(|grant| {
        let here = [OPERATOR_NAMESPACE, &duties.operator_namespace];
        grant.namespace.as_deref().is_some_and(|namespace| here.contains(&namespace))
    });
    // Skip claimed types: the operator reads them only in the namespaces in which it reconciles objects, and has these
    // rights there.
    let is_claimed = |of: &ResourceType| policy.descriptor().claims.iter().any(|claim| claim.primary == *of);
    let own = own.filter(|grant| !is_claimed(&grant.of()));
    for grant in own.filter(|grant| duties.secrets || !grant.of().is_secret()) {
        let (group, plural) = names(&grant.of());
        operator.add_named(&group, plural, grant.names.iter().cloned().collect(), FOLLOW);
    }
}

/// The plurals of the embedded CRDs, by group and kind.
static DEFINED: LazyLock<BTreeMap<(String, String), String>> = LazyLock::new(|| {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let named = |definition: Value| {
        let spec = &definition["spec"];
        ((text(&spec["group"]), text(&spec["names"]["kind"])), text(&spec["names"]["plural"]))
    };
    embedded().map(named).collect()
});

/// Returns the API group and the plural of a type.
pub(super) fn names(of: &ResourceType) -> (String, String) {
    let usual = || ApiResource::from_gvk(&GroupVersionKind::gvk(of.group(), "", &of.kind)).plural;
    let defined = DEFINED.get(&(of.group().to_owned(), of.kind.clone())).cloned();
    (of.group().to_owned(), defined.unwrap_or_else(usual))
}
