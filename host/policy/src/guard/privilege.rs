//! Checks fields that give more power than a pod has by default. Three sources can allow such a field: the operator's
//! settings, a grant, and the user's own spec. The user's spec can allow a field only if the operator lets users raise
//! privileges.

use serde_json::Value;

use super::{
    GuardedManifest, Rule,
    allowed::{self, Decision},
    breaches::{Breaches, TOLD},
    power::Raised,
    raised,
    rules::Rules,
};
use crate::{
    contract::{ResourceType, Violation},
    manifest::Privilege,
    origins::written,
    settings::Source,
};

/// Adds a breach for every raised privilege that no source allows. Returns a violation instead if the value comes from
/// a source that must not raise privileges: a user's spec or a namespace's settings. In this case, the author of the
/// value must correct it, and not the author of the policy.
pub(super) fn check<'a>(
    plan: &[GuardedManifest<'a, '_>],
    rules: &Rules<'a>,
    breaches: &mut Breaches,
) -> Vec<Violation> {
    let mut violations = Vec::new();
    let granted = |raised: &Raised<'_>| {
        rules.grants.privileges.contains(&raised.privilege)
            || (["serviceAccountName", "serviceAccount"].contains(&raised.field.0) && is_planned(plan, raised.value))
    };
    for stage in plan {
        let kept = stage.kept.as_ref();
        tokens(&stage.path, stage.manifest, kept.map(|(kept, _)| *kept), rules, breaches);
        let before = kept.map(|(kept, specs)| raised::of_manifest(kept, specs)).unwrap_or_default();
        let is_new = |raised: &&Raised<'_>| !granted(raised) && !before.iter().any(|before| before.is(raised));
        for raised in raised::of_manifest(stage.manifest, &stage.specs).iter().filter(is_new) {
            match allowed::decide(raised, stage, rules) {
                Decision::Allowed => {}
                Decision::OfUser(path) => violations.push(of_the_user(path, raised.privilege)),
                Decision::OfNamespace(policy, setting, source) => {
                    let path = format!("settings.{policy}.{setting}");
                    violations.push(of_a_namespace(path, source, raised.privilege));
                }
                Decision::Unknown(reason) => breach(stage, raised, &reason, rules, breaches),
            }
            if breaches.is_full() || violations.len() >= TOLD {
                violations.dedup();
                return violations;
            }
        }
    }
    violations.dedup();
    violations
}

fn breach(
    stage: &GuardedManifest<'_, '_>,
    raised: &Raised<'_>,
    reason: &str,
    rules: &Rules<'_>,
    breaches: &mut Breaches,
) {
    let at = written(&raised.path);
    let (path, name) = (format_args!("{} {at}", stage.path), raised.privilege);
    if rules.is_beyond(name) {
        let message = format_args!(
            "does not come from the object's own spec, and the operator's --grantable-privileges does not allow \
             installed policies and settings to raise privilege {name}; {reason}"
        );
        breaches.add(Rule::NoPrivilege, path, message);
    } else {
        let message = format_args!(
            "neither the object's own spec nor a grant allows this value: {reason}, or grant privilege {name}"
        );
        breaches.add(Rule::NoPrivilege, path, message);
    }
}

/// Returns the violation for a privileged value of a user, for operators that do not let users raise privileges.
fn of_the_user(path: String, privilege: Privilege) -> Violation {
    let message = format!(
        "asks for privilege {privilege}, but the operator's --user-privileges=refused forbids this in objects: remove \
         the field, or ask the operator's owner for a setting or a grant; pods that have the privilege keep running"
    );
    Violation { path, message }
}

/// Returns the violation for a privileged value from a namespace's settings, with the path of the setting.
fn of_a_namespace(path: String, source: &Source, privilege: Privilege) -> Violation {
    let message = format!(
        "comes from {source}, but settings of a namespace must not raise a privilege: remove the setting, or ask the \
         operator's owner to write this setting for the cluster or to grant privilege {privilege} to the policy"
    );
    Violation { path, message }
}

/// Returns whether the plan contains a ServiceAccount with this name.
fn is_planned(plan: &[GuardedManifest<'_, '_>], name: &Value) -> bool {
    plan.iter().any(|GuardedManifest { manifest, .. }| {
        let of = ResourceType::of_object(manifest);
        of.group().is_empty() && of.kind == "ServiceAccount" && manifest["metadata"]["name"] == *name
    })
}

/// Rejects a Secret that Kubernetes would fill with a ServiceAccount's token. A pod that mounts such a token acts as
/// that ServiceAccount. The guard still accepts such a Secret if the layer below has it for the same ServiceAccount.
fn tokens(path: &str, manifest: &Value, kept: Option<&Value>, rules: &Rules<'_>, breaches: &mut Breaches) {
    const TYPES: [&str; 2] = ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"];
    const ACCOUNT: &str = "kubernetes.io/service-account.name";
    let account = |manifest: &Value| manifest["metadata"]["annotations"][ACCOUNT].clone();
    let is_token = manifest["type"].as_str().is_some_and(|of| TYPES.contains(&of)) || !account(manifest).is_null();
    if is_token
        && kept.map(account) != Some(account(manifest))
        && ResourceType::of_object(manifest).is_secret()
        && !rules.grants.privileges.contains(&Privilege::ServiceAccounts)
    {
        let message = "is a Secret with the token of a ServiceAccount: grant privilege serviceAccounts";
        breaches.add(Rule::NoPrivilege, path, message);
    }
}
