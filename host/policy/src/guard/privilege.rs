//! Fields that give more power than a pod has by itself: the user's own words, the owner's settings, or granted.

use serde_json::Value;

use super::{
    Rule, UserPrivileges,
    breaches::Breaches,
    plan::Rules,
    raised::{self, Raised},
    said::Said,
};
use crate::{
    contract::{ResourceType, Violation},
    manifest::Privilege,
    settings::Source,
};

/// One manifest with its path and its pods.
pub(super) struct Seen<'a> {
    pub(super) path: String,
    pub(super) manifest: &'a Value,
    pub(super) specs: Vec<(String, &'a Value)>,
}

/// Notes what nobody who may had said; what a namespace's settings said without the right to is handed back, since
/// whoever wrote them has to mend it and not the policy.
pub(super) fn check<'a>(plan: &[Seen<'a>], rules: &Rules<'a>, breaches: &mut Breaches) -> Vec<Violation> {
    let mut violations = Vec::new();
    let granted = |raised: &Raised<'_>| {
        rules.grants.privileges.contains(&raised.privilege)
            || (["serviceAccountName", "serviceAccount"].contains(&raised.field.0) && is_planned(plan, raised.value))
    };
    let (mut at, mut asked) = (Vec::new(), Vec::new());
    for Seen { path, manifest, specs } in plan {
        tokens(path, manifest, rules, breaches);
        for raised in raised::of_manifest(manifest, specs) {
            if !granted(&raised) {
                at.push(path);
                asked.push(raised);
            }
        }
    }
    if asked.is_empty() {
        return violations;
    }
    let user: Vec<&Value> = match rules.user_privileges {
        UserPrivileges::Allowed => vec![&rules.object["spec"], rules.annotated],
        UserPrivileges::Forbidden => Vec::new(),
    };
    let said = Said::about(&asked, &user, rules.settings);
    let said_by_flags = rules.cap.map(|cap| Said::about(&asked, &user, &cap.flags));
    for (path, raised) in at.into_iter().zip(&asked) {
        let name = raised.privilege;
        let is_beyond = rules.cap.is_some_and(|cap| cap.is_beyond(name));
        if said_by_flags.as_ref().filter(|_| is_beyond).unwrap_or(&said).have(raised) {
            continue;
        }
        if let Some((setting, source)) = of_a_namespace(raised, rules) {
            let message = format!(
                "comes from {source}, and settings of a namespace raise no privilege: take it out, have it set for the \
                 cluster, or have privilege {name} granted to the policy"
            );
            violations.push(Violation { path: setting, message });
            continue;
        }
        let path = format_args!("{path} {}", raised.path);
        if is_beyond {
            let message = format_args!(
                "is not in the object's own spec, and no policy and no settings that somebody installs raise privilege \
                 {name}: the operator's --grantable-privileges leaves it out"
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

/// The setting of a namespace that has the value, and where it was set.
fn of_a_namespace<'a>(raised: &Raised<'_>, rules: &Rules<'a>) -> Option<(String, &'a Source)> {
    rules.layers.iter().find_map(|(policy, settings)| {
        settings.of_namespaces().find_map(|(path, source, value)| {
            let said = Said::about(std::slice::from_ref(raised), &[], &value);
            said.have(raised).then(|| (format!("settings.{policy}.{path}"), source))
        })
    })
}

/// Whether a ServiceAccount of this name is part of the plan.
fn is_planned(plan: &[Seen<'_>], name: &Value) -> bool {
    plan.iter().any(|Seen { manifest, .. }| {
        let of = ResourceType::of_object(manifest);
        of.group().is_empty() && of.kind == "ServiceAccount" && manifest["metadata"]["name"] == *name
    })
}

/// A Secret that the cluster would fill with a token: whoever mounts it is that ServiceAccount.
fn tokens(path: &str, manifest: &Value, rules: &Rules<'_>, breaches: &mut Breaches) {
    const TYPES: [&str; 2] = ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token"];
    const ACCOUNT: &str = "kubernetes.io/service-account.name";
    let is_token = manifest["type"].as_str().is_some_and(|of| TYPES.contains(&of))
        || !manifest["metadata"]["annotations"][ACCOUNT].is_null();
    if is_token
        && ResourceType::of_object(manifest).is_secret()
        && !rules.grants.privileges.contains(&Privilege::ServiceAccounts)
    {
        let message = "is a Secret that holds the token of a ServiceAccount: grant privilege serviceAccounts";
        breaches.add(Rule::NoPrivilege, path, message);
    }
}
