//! Fields that give more power than a pod has by itself: the user's own words, the owner's settings, or granted.

use serde_json::Value;

use super::{
    Rule, UserPrivileges,
    breaches::Breaches,
    plan::Rules,
    raised::{self, Raised},
    said::Said,
};
use crate::{contract::ResourceType, manifest::Privilege};

/// One manifest with its path and its pods.
pub(super) struct Seen<'a> {
    pub(super) path: String,
    pub(super) manifest: &'a Value,
    pub(super) specs: Vec<(String, &'a Value)>,
}

pub(super) fn check<'a>(plan: &[Seen<'a>], rules: &Rules<'a>, breaches: &mut Breaches) {
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
        return;
    }
    let user: Vec<&Value> = match rules.user_privileges {
        UserPrivileges::Allowed => vec![&rules.object["spec"], rules.annotated],
        UserPrivileges::Forbidden => Vec::new(),
    };
    let said = Said::about(&asked, &user, rules.settings);
    for (path, raised) in at.into_iter().zip(&asked).filter(|(_, raised)| !said.have(raised)) {
        let name = serde_json::to_value(raised.privilege).ok();
        let name = name.as_ref().and_then(Value::as_str).unwrap_or_default();
        let message = format_args!("is neither in the object's own spec nor granted: grant privilege {name}");
        breaches.add(Rule::NoPrivilege, format_args!("{path} {}", raised.path), message);
        if breaches.is_full() {
            return;
        }
    }
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
