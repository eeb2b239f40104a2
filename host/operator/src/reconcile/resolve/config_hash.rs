//! Restarts pods when a Secret or ConfigMap that they use changes. If the operator watches Secrets, this module adds
//! the content of every Secret and ConfigMap that a pod template names to the hash on the template. Otherwise, the hash
//! covers only ConfigMaps of the plan itself.
//!
//! For a Secret, the operator stores only a digest, made with a secret key of the operator. The hash depends only on
//! this digest. The operator cannot detect changes of content that it cannot read. So pods that use unreadable content
//! restart only when another input of the hash changes.

use std::{cell::RefCell, collections::BTreeSet};

use kaos_policy::{
    contract::{Need, Reference, Target},
    digest::Digest,
    lookup::{Lookup, Sighting},
    stamp::{self, APPLIED_DIGEST, HASH_STANDS_FOR, carried_hash, pod_template, seal, set_hash},
};
use serde_json::{Value, json};

use crate::reconcile::{children::drift, memory::Read};

/// The fields with the content of a ConfigMap.
const CONTENT: [&str; 2] = ["data", "binaryData"];

/// Returns a need for each object that the plan's pods use and that is not in the plan.
pub(crate) fn needs(plan: &[Value]) -> Vec<Need> {
    let mut all = BTreeSet::new();
    for manifest in plan {
        all.extend(references(manifest));
    }
    let others = all.into_iter().filter(|reference| emitted(plan, reference).is_none());
    others
        .map(|reference| Need {
            id: format!("rolls/{}/{}", reference.kind, reference.name),
            fields: if reference.kind == "Secret" { Vec::new() } else { CONTENT.map(str::to_owned).to_vec() },
            target: Target::Named(reference),
            optional: false,
        })
        .collect()
}

/// The known content of a ConfigMap or Secret that pods use.
enum ReferencedContent {
    Is(String),
    Absent,
    Unreadable,
}

impl From<Option<String>> for ReferencedContent {
    fn from(digest: Option<String>) -> Self {
        digest.map_or(Self::Absent, Self::Is)
    }
}

/// Adds hashes of the content that pods use to the workloads of a plan. Returns `None` while some of the content is not
/// known yet. The function `live` returns a live child. The parameter `read` contains the digests from the last reads:
/// this function uses them for content that the operator cannot read now.
pub(crate) fn stamped(
    plan: &[Value],
    read: &mut Read,
    lookup: &dyn Lookup,
    secret_digest: &dyn Fn(&Value) -> String,
    is_pending: &dyn Fn() -> bool,
    live: &dyn Fn(&Reference) -> Option<Value>,
) -> Option<Vec<Value>> {
    let content = |reference: &Reference| -> ReferencedContent {
        if let Some(own) = emitted(plan, reference) {
            // The server merges `stringData` into `data`.
            let whole = json!({"data": [own["data"], own["stringData"]]});
            return (reference.kind == "Secret").then(|| secret_digest(&whole)).into();
        }
        match lookup.look_up(&Target::Named(reference.clone())) {
            Sighting::Secret(facts) => facts.present.then_some(facts.digest).into(),
            Sighting::Objects(objects) => {
                let digest =
                    objects.first().map(|config| Digest::of_json(&json!(CONTENT.map(|field| &config[field]))).hex());
                digest.into()
            }
            Sighting::Unserved => ReferencedContent::Absent,
            Sighting::Forbidden(_) => match read.get(reference) {
                Some(known) => known.clone().into(),
                None => ReferencedContent::Unreadable,
            },
        }
    };
    let now = RefCell::new(Read::new());
    let stamp = |manifest: &Value| {
        let mut manifest = manifest.clone();
        let (mut contents, mut unreadable, mut changed) = (Vec::new(), false, false);
        for reference in references(&manifest) {
            let digest = match content(&reference) {
                ReferencedContent::Is(digest) => Some(digest),
                ReferencedContent::Absent => None,
                ReferencedContent::Unreadable => {
                    unreadable = true;
                    continue;
                }
            };
            changed |= read.get(&reference).is_some_and(|before| *before != digest);
            contents.extend(digest.as_ref().map(|digest| json!([reference.kind, reference.name, digest])));
            now.borrow_mut().insert(reference, digest);
        }
        let kept = if unreadable && !changed { kept(&manifest, plan, live) } else { None };
        let hash = kept.or_else(|| {
            let carried = carried_hash(&manifest).filter(|_| !contents.is_empty())?;
            Some(Digest::of_json(&json!([carried, contents])).short())
        });
        if let Some(hash) = hash {
            set_hash(&mut manifest, &hash);
            seal(&mut manifest);
        }
        manifest
    };
    let stamped = plan.iter().map(stamp).collect();
    if is_pending() {
        return None;
    }
    *read = now.into_inner();
    Some(stamped)
}

/// Returns the hash on the live workload, so that its pods do not restart. If the workload keeps the hash of an earlier
/// operator, returns this operator's own hash from the workload's annotation. Returns `None` if the plan changes the
/// pods in any other way.
fn kept(manifest: &Value, plan: &[Value], live: &dyn Fn(&Reference) -> Option<Value>) -> Option<String> {
    let there = live(&Reference::of_object(manifest))?;
    let carried = carried_hash(&there)?;
    let mut wanted = manifest.clone();
    set_hash(&mut wanted, carried);
    let (wanted, template) = (pod_template(&wanted)?, pod_template(&there)?);
    let digest = |object: &Value| object["metadata"]["annotations"][APPLIED_DIGEST].clone();
    let takes_from = references(manifest);
    let is_as_applied = |reference: &Reference| {
        let own = emitted(plan, reference);
        own.is_none_or(|own| live(reference).is_some_and(|there| digest(&there) == digest(own)))
    };
    let stays = drift::missing(wanted, template).is_none() && takes_from.iter().all(is_as_applied);
    let stands_for = there["metadata"]["annotations"][HASH_STANDS_FOR].as_str();
    stays.then(|| stands_for.unwrap_or(carried).to_owned())
}

/// Returns all ConfigMaps and Secrets that a workload's pods refer to.
fn references(manifest: &Value) -> BTreeSet<Reference> {
    let namespace = manifest["metadata"]["namespace"].as_str();
    let named = pod_template(manifest).map(|template| stamp::references(&template["spec"])).unwrap_or_default();
    let reference = |(kind, name): (&str, &str)| Reference {
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    };
    named.into_iter().map(reference).collect()
}

/// Returns the manifest that `reference` names in the plan, or `None` if the plan does not contain it.
fn emitted<'a>(plan: &'a [Value], reference: &Reference) -> Option<&'a Value> {
    plan.iter().find(|manifest| Reference::of_object(manifest) == *reference)
}

#[cfg(test)]
mod tests {
    use kaos_policy::{contract::ResourceType, lookup::Fixed};

    use super::*;

    /// A cluster without any read rights.
    struct Closed;

    /// A cluster with read rights for ConfigMaps and not for Secrets.
    struct WithoutSecrets(Fixed);

    impl Lookup for WithoutSecrets {
        fn look_up(&self, target: &Target) -> Sighting {
            match target {
                Target::Named(reference) if reference.kind == "Secret" => Sighting::Forbidden("no".to_owned()),
                target => self.0.look_up(target),
            }
        }

        fn is_cluster_scoped(&self, of: &ResourceType) -> bool {
            self.0.is_cluster_scoped(of)
        }
    }

    impl Lookup for Closed {
        fn look_up(&self, _: &Target) -> Sighting {
            Sighting::Forbidden("no".to_owned())
        }

        fn is_cluster_scoped(&self, _: &ResourceType) -> bool {
            false
        }
    }

    fn plan() -> Vec<Value> {
        vec![
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "t", "name": "own"}, "data": {}}),
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "t", "name": "mine"}, "stringData": {"k": "v"}}),
            json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"namespace": "t", "name": "a", "annotations": {}},
            "spec": {"template": {"metadata": {"annotations": {"kaos.tools/pod-spec-hash": "h"}}, "spec": {
                "imagePullSecrets": [{"name": "pull"}],
                "volumes": [{"name": "a", "secret": {"secretName": "mounted"}}, {"name": "b", "configMap": {"name": "own"}},
                    {"name": "c", "projected": {"sources": [{"secret": {"name": "projected"}}]}}],
                "containers": [{"name": "a", "envFrom": [{"configMapRef": {"name": "beside"}}, {"secretRef": {"name": "mine"}}],
                    "env": [{"name": "K", "valueFrom": {"secretKeyRef": {"name": "keyed", "key": "k"}}}]}],
            }}}}),
        ]
    }

    /// Returns the plan in the form that the function `stamped` gets: each manifest contains its digest.
    fn sealed() -> Vec<Value> {
        let mut plan = plan();
        plan.iter_mut().for_each(seal);
        plan
    }

    /// Returns a Secret that the plan's pods use and that is not in the plan.
    fn keyed() -> Value {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "t", "name": "keyed"}, "data": {"k": "dg=="}})
    }

    fn config(value: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "t", "name": "beside"}, "data": {"k": value}})
    }

    fn hash(plan: &[Value], objects: &[Value]) -> String {
        let lookup = Fixed::new(objects.iter().cloned());
        let stamped = stamp(plan, &lookup, &[]);
        carried_hash(&stamped[2]).unwrap().to_owned()
    }

    /// Calls `stamped` for the plan of an object whose live children are `live`.
    fn stamp(plan: &[Value], lookup: &dyn Lookup, live: &[Value]) -> Vec<Value> {
        stamp_after(plan, &mut Read::new(), lookup, live)
    }

    fn stamp_after(plan: &[Value], read: &mut Read, lookup: &dyn Lookup, live: &[Value]) -> Vec<Value> {
        let live = |child: &Reference| emitted(live, child).cloned();
        stamped(plan, read, lookup, &|secret| secret.to_string(), &|| false, &live).unwrap()
    }

    #[test]
    fn unreadable_references_change_no_hash() {
        let (plan, secret) = (sealed(), keyed());
        let live = stamp(&plan, &Fixed::new([secret]), &[]);
        let hash = |plan: &[Value], live: &[Value]| carried_hash(&stamp(plan, &Closed, live)[2]).unwrap().to_owned();
        let carried = carried_hash(&live[2]).unwrap();
        assert_eq!(hash(&plan, &live), carried);
        assert_ne!(hash(&plan, &[]), carried, "a workload that does not exist has no hash to keep");
        // A child that keeps the hash of an earlier operator continues to keep it: the result is the own hash from its
        // annotation.
        let mut taken_over = live.clone();
        taken_over[2]["metadata"]["annotations"][HASH_STANDS_FOR] = json!("computed");
        assert_eq!(hash(&plan, &taken_over), "computed");
        let mut changed = plan.clone();
        changed[2]["spec"]["template"]["spec"]["containers"][0]["image"] = json!("new");
        assert_ne!(hash(&changed, &live), carried, "the plan changes the template");
        for emitted in [0, 1] {
            let mut changed = plan.clone();
            changed[emitted]["stringData"] = json!({"k": "new"});
            seal(&mut changed[emitted]);
            assert_ne!(hash(&changed, &live), carried, "{emitted}: other content of the plan itself");
        }
    }

    #[test]
    fn readable_references_restart_pods_although_others_are_unreadable() {
        let (plan, secret) = (sealed(), keyed());
        let closed = |value: &str| WithoutSecrets(Fixed::new([config(value)]));
        let of = |plan: &[Value]| carried_hash(&plan[2]).unwrap().to_owned();
        let mut read = Read::new();
        let live = stamp_after(&plan, &mut read, &Fixed::new([secret.clone(), config("1")]), &[]);
        // If the content is unreadable now, the hash uses the digest of the last read.
        assert_eq!(of(&stamp_after(&plan, &mut read, &closed("1"), &live)), of(&live));
        let changed = stamp_after(&plan, &mut read, &closed("2"), &live);
        assert_eq!(of(&changed), of(&stamp(&plan, &Fixed::new([secret, config("2")]), &[])));
        // If this process has never read the content, the workload keeps its hash until another input changes.
        let mut read = Read::new();
        assert_eq!(of(&stamp_after(&plan, &mut read, &closed("1"), &live)), of(&live));
        let rolled = stamp_after(&plan, &mut read, &closed("2"), &live);
        assert_ne!(of(&rolled), of(&live));
        assert_eq!(of(&stamp_after(&plan, &mut read, &closed("2"), &rolled)), of(&rolled));
    }

    #[test]
    fn references_of_pods_to_objects_outside_the_plan_are_needs() {
        let ids: Vec<_> = needs(&plan()).into_iter().map(|need| need.id).collect();
        assert_eq!(
            ids,
            ["rolls/ConfigMap/beside", "rolls/Secret/keyed", "rolls/Secret/mounted", "rolls/Secret/projected"]
        );
    }

    #[test]
    fn a_hash_changes_with_referenced_content_only() {
        let without = hash(&plan(), &[]);
        assert_ne!(without, hash(&plan(), &[config("1")]));
        assert_ne!(hash(&plan(), &[config("2")]), hash(&plan(), &[config("1")]));
        let mut other = config("1");
        other["metadata"]["name"] = json!("other");
        assert_eq!(without, hash(&plan(), &[other]));
        let mut changed = plan();
        changed[1]["stringData"]["k"] = json!("w");
        assert_ne!(without, hash(&changed, &[]), "a Secret of the plan itself");
    }

    #[test]
    fn a_plan_with_unknown_references_gets_no_hash() {
        assert!(stamped(&plan(), &mut Read::new(), &Fixed::new([]), &|_| String::new(), &|| true, &|_| None).is_none());
    }

    #[test]
    fn a_plan_that_refers_to_nothing_stays_as_it_is() {
        let plain = [json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}})];
        assert_eq!(stamp(&plain, &Fixed::new([]), &[]), plain);
    }
}
