//! What rolls pods beside their template: where the operator looks at Secrets, the content of every Secret and ConfigMap
//! that a pod template refers to by name. ConfigMaps that the plan itself emits are in the hash already.
//!
//! Of a Secret only a digest is known, keyed with the operator's own key, and only a digest of that gets into the hash.

use std::collections::BTreeSet;

use kaos_policy::{
    contract::{Need, Reference, Target},
    digest::{Digest, canonical},
    lookup::{Lookup, Sighting},
    stamp::{carried_hash, pod_template, seal, set_hash},
};
use serde_json::{Value, json};

/// Fields of a pod that refer to a ConfigMap, and to a Secret, by `name`; a volume's Secret is called `secretName`.
const CONFIG_MAPS: [&str; 3] = ["configMap", "configMapRef", "configMapKeyRef"];
const SECRETS: [&str; 3] = ["secret", "secretRef", "secretKeyRef"];

/// What the pods of a plan refer to and the plan does not emit.
pub(crate) fn needs(plan: &[Value]) -> Vec<Need> {
    let mut all = BTreeSet::new();
    for manifest in plan {
        all.extend(references(manifest));
    }
    let beside = all.into_iter().filter(|reference| emitted(plan, reference).is_none());
    beside
        .map(|reference| Need {
            id: format!("rolls/{}/{}", reference.kind, reference.name),
            target: Target::Named(reference),
        })
        .collect()
}

/// The plan with hashes that stand for the content of what its pods refer to; none while some of that is not known yet.
pub(crate) fn stamped(
    plan: &[Value],
    lookup: &dyn Lookup,
    secret_digest: &dyn Fn(&Value) -> String,
    is_pending: &dyn Fn() -> bool,
) -> Option<Vec<Value>> {
    let content = |reference: &Reference| -> Option<String> {
        if let Some(own) = emitted(plan, reference) {
            // The server stores both fields as one.
            let whole = json!({"data": [own["data"], own["stringData"]]});
            return (reference.kind == "Secret").then(|| secret_digest(&whole));
        }
        match lookup.look_up(&Target::Named(reference.clone())) {
            Sighting::Secret(facts) => facts.present.then_some(facts.digest),
            Sighting::Objects(objects) => {
                let config = objects.first()?;
                Some(Digest::of(canonical(&json!([config["data"], config["binaryData"]])).as_bytes()).hex())
            }
            Sighting::Unserved | Sighting::Forbidden(_) => None,
        }
    };
    let stamp = |manifest: &Value| {
        let mut manifest = manifest.clone();
        let contents: Vec<Value> = references(&manifest)
            .iter()
            .filter_map(|reference| Some(json!([reference.kind, reference.name, content(reference)?])))
            .collect();
        let carried = carried_hash(&manifest).map(str::to_owned);
        if let (Some(carried), false) = (carried, contents.is_empty()) {
            let hash = Digest::of(canonical(&json!([carried, contents])).as_bytes()).short();
            set_hash(&mut manifest, &hash);
            seal(&mut manifest);
        }
        manifest
    };
    let stamped = plan.iter().map(stamp).collect();
    (!is_pending()).then_some(stamped)
}

/// Everything that a workload's pods take from ConfigMaps and Secrets.
fn references(manifest: &Value) -> BTreeSet<Reference> {
    let mut found = BTreeSet::new();
    if let Some(template) = pod_template(manifest) {
        let namespace = manifest["metadata"]["namespace"].as_str();
        collect(&template["spec"], namespace, &mut found);
    }
    found
}

fn collect(value: &Value, namespace: Option<&str>, found: &mut BTreeSet<Reference>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let kind = match field.as_str() {
                    field if CONFIG_MAPS.contains(&field) => "ConfigMap",
                    field if SECRETS.contains(&field) => "Secret",
                    _ => "",
                };
                let name = value["name"].as_str().or_else(|| value["secretName"].as_str());
                if let Some(name) = name.filter(|name| !kind.is_empty() && !name.is_empty()) {
                    found.insert(Reference {
                        api_version: "v1".to_owned(),
                        kind: kind.to_owned(),
                        namespace: namespace.map(str::to_owned),
                        name: name.to_owned(),
                    });
                }
                collect(value, namespace, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, namespace, found)),
        _ => {}
    }
}

/// The manifest of a plan that a reference means.
fn emitted<'a>(plan: &'a [Value], reference: &Reference) -> Option<&'a Value> {
    plan.iter().find(|manifest| Reference::of_object(manifest) == *reference)
}

#[cfg(test)]
mod tests {
    use kaos_policy::lookup::Fixed;

    use super::*;

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

    fn hash(plan: &[Value], objects: &[Value]) -> String {
        let lookup = Fixed::new(objects.iter().cloned());
        let stamped = stamped(plan, &lookup, &|secret| secret.to_string(), &|| false).unwrap();
        carried_hash(&stamped[2]).unwrap().to_owned()
    }

    #[test]
    fn what_pods_take_from_outside_of_the_plan_is_needed() {
        let ids: Vec<_> = needs(&plan()).into_iter().map(|need| need.id).collect();
        assert_eq!(
            ids,
            ["rolls/ConfigMap/beside", "rolls/Secret/keyed", "rolls/Secret/mounted", "rolls/Secret/projected"]
        );
    }

    #[test]
    fn a_hash_moves_with_what_is_referred_to_and_with_nothing_else() {
        let config = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "t", "name": "beside"}, "data": {"k": value}});
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
    fn nothing_is_stamped_on_what_is_not_known_yet() {
        assert!(stamped(&plan(), &Fixed::new([]), &|_| String::new(), &|| true).is_none());
    }

    #[test]
    fn a_plan_that_refers_to_nothing_stays_as_it_is() {
        let plain = [json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}})];
        let lookup = Fixed::new([]);
        assert_eq!(stamped(&plain, &lookup, &|_| String::new(), &|| false).unwrap(), plain);
    }
}
