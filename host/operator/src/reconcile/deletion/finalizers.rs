//! Adds and removes finalizers. The operator adds its own finalizer before it creates children, and removes finalizers
//! of earlier operators when it finds them. One finalizer of earlier operators shows that the object has a client at an
//! identity provider. The operator removes this finalizer only while the object is being deleted.
//!
//! After a change of settings or policies, an object may have a finalizer of this operator that no setting or policy
//! names any more. The managed fields of the object show which finalizers this operator added, but the watch does not
//! keep managed fields. So for an unknown finalizer, each process reads the object once.

use std::{collections::BTreeSet, sync::Arc};

use kaos_policy::contract::Claim;
use serde_json::Value;

use crate::reconcile::{
    access::Access,
    api::{with_finalizer, without_finalizer},
    children::decide::is_going,
    children::managed_fields::{entries_of, put_on},
    error::CallError,
    memory::Memory,
    subject::Subject,
};
use crate::watch::Served;

/// Those finalizers of an object that this operator removes at some time.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Finalizers {
    /// The operator's own finalizer, which the operator removes after it has deleted the object's children.
    pub(crate) ours: Option<String>,
    /// The finalizers that the operator removes immediately.
    pub(crate) retired: Vec<String>,
    /// The finalizer of an earlier operator for the object's client at an identity provider. This field is set only
    /// while the object is being deleted. The operator does not delete the client.
    pub(crate) client: Option<String>,
}

impl Finalizers {
    /// Returns the finalizers of the object of a pass.
    pub(crate) fn on(subject: &Subject<'_>, memory: &Memory) -> Self {
        Self::of(&subject.object, subject.selected.descent.kind.claims(), memory.finalizers.asked.as_deref())
    }

    /// Assigns an object's finalizers to the fields of this type. `asked` is the finalizer that the plan requests.
    pub(crate) fn of<'a>(object: &Value, claims: impl Iterator<Item = &'a Claim>, asked: Option<&str>) -> Self {
        let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        let present: BTreeSet<&str> = finalizers.filter_map(Value::as_str).collect();
        let mut held = Self::default();
        let mut retired = BTreeSet::new();
        for claim in claims {
            let ours = asked.or(claim.finalizer.as_deref());
            if let Some(ours) = ours.filter(|ours| present.contains(ours)) {
                held.ours = Some(ours.to_owned());
            }
            retired.extend(claim.earlier_finalizer());
            let client = claim.client_finalizer().filter(|client| is_going(object) && present.contains(client));
            held.client = held.client.or_else(|| client.map(str::to_owned));
        }
        held.client = held.client.filter(|client| held.ours.as_ref() != Some(client));
        let comes_off = |finalizer: &&&str| retired.contains(**finalizer) && held.ours.as_deref() != Some(**finalizer);
        held.retired = present.iter().filter(comes_off).map(|finalizer| (*finalizer).to_owned()).collect();
        held
    }

    /// Adds the finalizers in `left`: this operator once added them to the object, and no setting or policy names them
    /// now. If the object does not have the current finalizer, the first finalizer in `left` takes its place. The
    /// operator removes the others immediately.
    pub(crate) fn with_left(mut self, left: Vec<String>) -> Self {
        let mut left = left.into_iter();
        self.ours = self.ours.or_else(|| left.next());
        self.retired.extend(left);
        self
    }

    fn names(&self, finalizer: &str) -> bool {
        self.ours.iter().chain(&self.retired).chain(&self.client).any(|named| named == finalizer)
    }
}

/// Removes finalizers from an object. Returns whether the object had at least one of these finalizers.
pub(crate) async fn retire(
    access: &Access,
    served: &Served,
    object: &mut Arc<Value>,
    held: &[String],
) -> Result<bool, CallError> {
    let mut wrote = false;
    for finalizer in held {
        wrote |= take_off(access, served, object, finalizer).await?;
    }
    Ok(wrote)
}

/// Adds a finalizer to an object, if the object does not have it. Returns whether the operator wrote the object.
pub(crate) async fn hold(
    access: &Access,
    served: &Served,
    object: &mut Arc<Value>,
    finalizer: &str,
) -> Result<bool, CallError> {
    let held = object["metadata"]["finalizers"].as_array();
    if held.is_some_and(|held| held.iter().any(|other| other == finalizer)) {
        return Ok(false);
    }
    access.patch(served, object, &with_finalizer(object, finalizer)).await?;
    Ok(true)
}

/// Returns the finalizers that this operator added to an object, without those in `known`.
pub(crate) async fn left_on(
    access: &Access,
    served: &Served,
    object: &Value,
    known: &Finalizers,
    memory: &mut Memory,
) -> Result<Vec<String>, CallError> {
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str);
    // Ignore finalizers without a domain, because they belong to Kubernetes.
    let unnamed: Vec<&str> = finalizers.filter(|name| name.contains('/') && !known.names(name)).collect();
    if unnamed.iter().any(|name| !memory.finalizers.put_on.contains_key(*name)) {
        let Some(live) = access.read_again(served, object).await? else { return Ok(Vec::new()) };
        let ours = put_on(entries_of(&live));
        memory.finalizers.put_on.extend(unnamed.iter().map(|name| ((*name).to_owned(), ours.contains(*name))));
    }
    let is_ours = |name: &&str| memory.finalizers.put_on.get(*name) == Some(&true);
    Ok(unnamed.into_iter().filter(is_ours).map(str::to_owned).collect())
}

/// Removes a finalizer from an object. Returns whether the object had this finalizer.
pub(crate) async fn take_off(
    access: &Access,
    served: &Served,
    object: &mut Arc<Value>,
    finalizer: &str,
) -> Result<bool, CallError> {
    let Some(operations) = without_finalizer(object, finalizer) else { return Ok(false) };
    access.patch(served, object, &operations).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use kaos_policy::contract::ResourceType;
    use serde_json::json;

    use super::*;

    /// Returns a claim on a kind of KAOS. Earlier operators used the finalizer `kaos.tools/widget-finalizer` for this
    /// kind.
    fn claim(finalizer: Option<&str>) -> Claim {
        Claim {
            primary: ResourceType::new("kaos.tools/v1", "Widget"),
            emits: Vec::new(),
            reads: Vec::new(),
            wishes: Vec::new(),
            finalizer: finalizer.map(str::to_owned),
            samples: Vec::new(),
            extra: "{}".to_owned(),
        }
    }

    const EARLIER: &str = "kaos.tools/widget-finalizer";

    fn held(finalizers: &[&str], claim: &Claim, asked: Option<&str>) -> (Option<String>, Vec<String>) {
        let object = json!({"metadata": {"finalizers": finalizers}});
        let Finalizers { ours, retired, .. } = Finalizers::of(&object, std::iter::once(claim), asked);
        (ours, retired)
    }

    #[test]
    fn finalizers_of_earlier_operators_come_off_and_foreign_ones_stay() {
        let claim = claim(None);
        assert_eq!(held(&["kaos.tools/theirs", EARLIER], &claim, None), (None, vec![EARLIER.to_owned()]));
        assert_eq!(held(&[], &claim, None), (None, vec![]));
        let other = Claim { primary: ResourceType::new("x.io/v1", "Widget"), ..claim };
        assert_eq!(held(&["x.io/widget-finalizer", EARLIER], &other, None), (None, vec![]));
    }

    #[test]
    fn the_finalizer_of_a_client_concerns_only_an_object_that_is_being_deleted() {
        const CLIENT: &str = "kaos.tools/oidc-client-finalizer";
        let client = |metadata: Value, claim: &Claim, asked: Option<&str>| {
            let mut object = json!({"metadata": metadata});
            object["metadata"]["finalizers"] = json!([CLIENT, EARLIER]);
            Finalizers::of(&object, std::iter::once(claim), asked).client
        };
        let (claim, going) = (claim(None), json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}));
        assert_eq!(client(json!({}), &claim, None), None);
        assert_eq!(client(going.clone(), &claim, None).as_deref(), Some(CLIENT));
        assert_eq!(client(going.clone(), &claim, Some(CLIENT)), None, "the plan asks for it");
        let other = Claim { primary: ResourceType::new("x.io/v1", "Widget"), ..claim };
        assert_eq!(client(going, &other, None), None);
    }

    #[test]
    fn a_finalizer_in_the_plan_is_the_operators_even_if_an_earlier_operator_set_it() {
        let claim = claim(None);
        assert_eq!(held(&[EARLIER], &claim, Some(EARLIER)), (Some(EARLIER.to_owned()), vec![]));
    }

    #[test]
    fn an_unnamed_finalizer_holds_the_object_only_without_a_current_one() {
        let left = || vec!["x.io/one".to_owned(), "x.io/two".to_owned()];
        let Finalizers { ours, retired, .. } = Finalizers::default().with_left(left());
        assert_eq!((ours.as_deref(), retired), (Some("x.io/one"), vec!["x.io/two".to_owned()]));
        let held = Finalizers { ours: Some("x.io/hold".to_owned()), ..Finalizers::default() }.with_left(left());
        assert_eq!((held.ours.as_deref(), held.retired), (Some("x.io/hold"), left()));
    }

    #[test]
    fn the_claims_own_holds_where_the_object_has_it() {
        let claim = claim(Some("x.io/hold"));
        assert_eq!(held(&["x.io/hold"], &claim, None).0.as_deref(), Some("x.io/hold"));
        assert_eq!(held(&[], &claim, None).0, None);
    }
}
