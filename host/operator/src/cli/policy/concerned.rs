//! Finds the objects for which a revision answers. The status of each object shows whether the children match the plan.

use std::collections::{BTreeMap, BTreeSet};

use kaos_crds::API_VERSION;
use kaos_policy::contract::ResourceType;
use kube::{Api, Client, api::DynamicObject, api::ListParams};
use serde_json::Value;

use super::{
    in_force::kinds,
    output::complain,
    revisions::{Revision, name, status},
};
use crate::{
    discovery,
    package::Package,
    status::conditions::{APPLIED, POLICY_FALLBACK, condition, reason},
    watch::Served,
};

/// The number of objects in one page of a list request.
const PAGE: u32 = 500;
/// If the condition `Applied` is false with one of these reasons, a policy can be the cause.
const UNPLANNED: [&str; 5] = ["ApplyFailed", "GuardRefused", "NotPermitted", "OwnershipConflict", "PolicyFailed"];

/// Objects with children that differ from the plan, each with the reason.
pub(super) type Unplanned = BTreeMap<String, String>;

/// The objects for which a package's policy answers.
pub(super) struct Concerned {
    client: Client,
    /// The namespaces in which the package applies; empty for the whole cluster.
    namespaces: Vec<String>,
    /// The policy of the package.
    policy: Option<String>,
    /// The objects whose children already differed from the plan before the installation. The package is not the cause
    /// of these differences.
    before: Unplanned,
}

impl Concerned {
    /// Records the objects whose children already differ from the plan. Call this before the command installs the
    /// package. `home` is the operator's namespace, and `all` contains the revisions of this operator.
    pub(super) async fn of(client: Client, package: &Package, home: &str, all: &[Revision]) -> anyhow::Result<Self> {
        let namespaces = match package.namespace.as_str() {
            namespace if namespace == home => package.file.scope.namespaces.clone(),
            own => vec![own.to_owned()],
        };
        let mut concerned = Self { client, namespaces, policy: package.file.name.clone(), before: BTreeMap::new() };
        concerned.before = concerned.unplanned(unapplied, all).await?;
        Ok(concerned)
    }

    /// Returns the objects for which another policy answers instead of this revision. Also returns the objects whose
    /// children differ from the plan now, but did not differ before the installation.
    pub(super) async fn left(&self, revision: &Revision, all: &[Revision]) -> anyhow::Result<Unplanned> {
        let without = self.unplanned(|object| goes_without(object, name(revision)), all).await?;
        let mut left = self.unplanned(unapplied, all).await?;
        left.retain(|object, _| !self.before.contains_key(object));
        left.extend(without);
        Ok(left)
    }

    /// Returns the objects whose plans the plan gates hold back. The children of these objects change only when the
    /// gates open.
    pub(super) async fn held(&self, all: &[Revision]) -> anyhow::Result<Unplanned> {
        self.unplanned(held, all).await
    }

    /// Returns the objects for which `why` returns a reason, each with this reason.
    async fn unplanned(&self, why: impl Fn(&Value) -> Option<String>, all: &[Revision]) -> anyhow::Result<Unplanned> {
        let mut unplanned = Unplanned::new();
        for of in self.kinds(all) {
            let Some(Served { resource, .. }) = discovery::served(&self.client, &of).await? else { continue };
            let places = match &*self.namespaces {
                [] => vec![Api::all_with(self.client.clone(), &resource)],
                some => some.iter().map(|it| Api::namespaced_with(self.client.clone(), it, &resource)).collect(),
            };
            for api in places {
                for object in objects(&api).await? {
                    let why = serde_json::to_value(&object).ok().and_then(|object| why(&object));
                    let place = object.metadata.namespace.unwrap_or_default();
                    let object = format!("{} {place}/{}", of.kind, object.metadata.name.unwrap_or_default());
                    unplanned.extend(why.map(|why| (object, why)));
                }
            }
        }
        Ok(unplanned)
    }

    /// Returns the kinds that revisions of the policy answer for. If the policy has no revision, returns the kinds of
    /// the default policies.
    fn kinds(&self, all: &[Revision]) -> BTreeSet<ResourceType> {
        let of_policy = all.iter().filter(|it| status(it).policy == self.policy && self.policy.is_some());
        let kinds: BTreeSet<ResourceType> = kinds(of_policy).collect();
        if !kinds.is_empty() {
            return kinds;
        }
        kaos_crds::manifests::KINDS.map(|kind| ResourceType::new(API_VERSION, kind)).into()
    }
}

/// Lists all objects. If the user has no right to list the objects, prints a note and returns the objects listed so
/// far.
async fn objects(api: &Api<DynamicObject>) -> anyhow::Result<Vec<DynamicObject>> {
    let (mut all, mut parameters) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let page = match api.list(&parameters).await {
            Ok(page) => page,
            Err(kube::Error::Api(answer)) if answer.code == 403 => {
                complain("note", format_args!("cannot check whether children match the plan: {}", answer.message));
                return Ok(all);
            }
            Err(error) => return Err(error.into()),
        };
        all.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters.continue_token = Some(token),
            None => return Ok(all),
        }
    }
}

/// Returns the reason and the message of a condition if the condition has the given status.
fn reported<'a>(object: &'a Value, of: &str, status: &str) -> Option<(&'a str, &'a str)> {
    let condition = condition(object, of).filter(|it| it["status"] == status)?;
    Some((condition["reason"].as_str()?, condition["message"].as_str()?))
}

/// Returns why another policy answers for the object instead of this revision; `None` if the revision answers.
fn goes_without(object: &Value, revision: &str) -> Option<String> {
    let (_, message) = reported(object, POLICY_FALLBACK, "True")?;
    message.contains(&format!("policy revision {revision} ")).then(|| message.to_owned())
}

/// Returns why the children of an object differ from the plan; `None` if the children match the plan.
fn unapplied(object: &Value) -> Option<String> {
    let (reason, message) = reported(object, APPLIED, "False")?;
    UNPLANNED.contains(&reason).then(|| format!("{reason}: {message}"))
}

/// Returns the message of the plan gates that hold back the plan of an object; `None` if the gates hold back no plan.
fn held(object: &Value) -> Option<String> {
    let (why, message) = reported(object, APPLIED, "False")?;
    (why == reason::GATED).then(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_differs_from_the_plan_if_its_children_do_or_a_fallback_answers() {
        let object = |conditions: &Value| json!({"status": {"conditions": conditions}});
        let applied = |status: &str, reason: &str| json!([{"type": "Applied", "status": status, "reason": reason, "message": "x"}]);
        assert_eq!(unapplied(&object(&applied("True", "Applied"))), None);
        // With these reasons, the object waits for another object, is invalid, or pins a policy that does not exist.
        for reason in ["Gated", "Refused", "PolicyNotFound"] {
            assert_eq!(unapplied(&object(&applied("False", reason))), None, "{reason}");
        }
        assert_eq!(unapplied(&object(&applied("False", "ApplyFailed"))).as_deref(), Some("ApplyFailed: x"));
        let gated = object(&applied("False", "Gated"));
        assert_eq!((held(&gated).as_deref(), held(&object(&applied("True", "Applied")))), (Some("x"), None));
        let message = "policy revision a-1 does not answer: it traps";
        let fallback =
            object(&json!([{"type": "PolicyFallback", "status": "True", "reason": "FellBack", "message": message}]));
        assert_eq!(goes_without(&fallback, "a-1").as_deref(), Some(message));
        assert_eq!(goes_without(&fallback, "a-12"), None);
        assert_eq!((unapplied(&json!({})), goes_without(&json!({}), "a-1")), (None, None));
    }
}
