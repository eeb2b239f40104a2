//! Checks fields that give more power than a pod has by default. Three sources can allow such a field: the operator's
//! settings, a grant, and the user's own spec. The user's spec can allow a field only if the operator lets users raise
//! privileges.

use serde_json::Value;

use super::{
    Rule, UserPrivileges, asked,
    breaches::{Breaches, TOLD},
    power::Raised,
    raised,
    rules::Rules,
    said::Said,
};
use crate::{
    contract::{ResourceType, Violation},
    manifest::Privilege,
};

/// One manifest with its path and its pod specs.
pub(super) struct Seen<'a> {
    pub(super) path: String,
    pub(super) manifest: &'a Value,
    pub(super) specs: Vec<(String, &'a Value)>,
    /// The manifest of the layer below whose privileges this manifest keeps, with its pod specs.
    pub(super) kept: Option<(&'a Value, Vec<(String, &'a Value)>)>,
}

/// Adds a breach for every raised privilege that no source allows. If a user's spec or a namespace's settings contain
/// the value without permission, returns a violation instead. In this case, the author of the value must correct it,
/// not the author of the policy.
pub(super) fn check<'a>(plan: &[Seen<'a>], rules: &Rules<'a>, breaches: &mut Breaches) -> Vec<Violation> {
    let mut violations = Vec::new();
    let granted = |raised: &Raised<'_>| {
        rules.grants.privileges.contains(&raised.privilege)
            || (["serviceAccountName", "serviceAccount"].contains(&raised.field.0) && is_planned(plan, raised.value))
    };
    let (mut at, mut asked) = (Vec::new(), Vec::new());
    for Seen { path, manifest, specs, kept } in plan {
        tokens(path, manifest, kept.as_ref().map(|(kept, _)| *kept), rules, breaches);
        let before = kept.as_ref().map(|(kept, specs)| raised::of_manifest(kept, specs)).unwrap_or_default();
        for raised in raised::of_manifest(manifest, specs) {
            if !granted(&raised) && !before.iter().any(|before| before.is(&raised)) {
                at.push(path);
                asked.push(raised);
            }
        }
    }
    if asked.is_empty() {
        return violations;
    }
    let own = [&rules.object["spec"], rules.annotated];
    let is_forbidden = rules.user_privileges == UserPrivileges::Forbidden;
    let user: &[&Value] = if is_forbidden { &[] } else { &own };
    let said = Said::about(&asked, user, rules.settings);
    let said_by_flags = rules.cap.map(|cap| Said::about(&asked, user, &cap.flags));
    // Two sets of values that the guard would allow if users could raise privileges. The first set contains values from
    // all settings. The second set contains only values from settings that the cap does not limit.
    let settings = rules.cap.map_or(rules.settings, |cap| &cap.flags);
    let with_user =
        is_forbidden.then(|| [rules.settings, settings].map(|settings| Said::about(&asked, &own, settings)));
    for (path, raised) in at.into_iter().zip(&asked) {
        let name = raised.privilege;
        let is_beyond = rules.cap.is_some_and(|cap| cap.is_beyond(name));
        if said_by_flags.as_ref().filter(|_| is_beyond).unwrap_or(&said).have(raised) {
            continue;
        }
        let is_users = with_user.as_ref().is_some_and(|said| said[usize::from(is_beyond)].have(raised));
        let to_mend = is_users.then(|| of_the_user(raised, rules)).or_else(|| of_a_namespace(raised, rules));
        if let Some(violation) = to_mend {
            violations.push(violation);
            if violations.len() >= TOLD {
                break;
            }
            continue;
        }
        let path = format_args!("{path} {}", raised.path);
        if is_beyond {
            let message = format_args!(
                "is not in the object's own spec, and the operator's --grantable-privileges does not allow installed \
                 policies and settings to raise privilege {name}"
            );
            breaches.add(Rule::NoPrivilege, path, message);
        } else {
            let message = format_args!("is neither in the object's own spec nor granted: grant privilege {name}");
            breaches.add(Rule::NoPrivilege, path, message);
        }
        if breaches.is_full() {
            break;
        }
    }
    violations.dedup();
    violations
}

/// Returns the violation for a privileged value of a user, for operators that do not let users raise privileges.
fn of_the_user(raised: &Raised<'_>, rules: &Rules<'_>) -> Violation {
    let message = format!(
        "asks for privilege {}, but the operator's --user-privileges=refused forbids this: remove the field, or ask \
         the operator's owner to write the value in the settings or to grant the privilege to the policy; pods that \
         have the privilege keep running until then",
        raised.privilege
    );
    Violation { path: asked::place(raised, rules), message }
}

/// Returns the violation for a privileged value from a namespace's settings, with the path of the setting. `None` if no
/// settings of a namespace contain the value.
fn of_a_namespace(raised: &Raised<'_>, rules: &Rules<'_>) -> Option<Violation> {
    rules.layers.iter().find_map(|(policy, settings)| {
        settings.of_namespaces().find_map(|(path, source, value)| {
            let message = format!(
                "comes from {source}, but settings of a namespace must not raise a privilege: remove the setting, or \
                 ask the operator's owner to write this setting for the cluster or to grant privilege {} to the policy",
                raised.privilege
            );
            let said = Said::about(std::slice::from_ref(raised), &[], &value);
            said.have(raised).then(|| Violation { path: format!("settings.{policy}.{path}"), message })
        })
    })
}

/// Returns whether the plan contains a ServiceAccount with this name.
fn is_planned(plan: &[Seen<'_>], name: &Value) -> bool {
    plan.iter().any(|Seen { manifest, .. }| {
        let of = ResourceType::of_object(manifest);
        of.group().is_empty() && of.kind == "ServiceAccount" && manifest["metadata"]["name"] == *name
    })
}

/// Rejects a Secret that Kubernetes would fill with a ServiceAccount's token. A pod that mounts such a token acts as
/// that ServiceAccount. A Secret of the layer below for the same account stays allowed.
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
