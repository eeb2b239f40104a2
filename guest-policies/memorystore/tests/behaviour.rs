//! Tests the manifests and the status of a store.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../mcpserver/tests/support/mod.rs"]
mod support;

use kaos_memorystore::MemoryStore;
use kaos_policy_sdk::types::{Answer, Condition, Outcome, Plan, Refusal, Report, Subject, Truth};
use kaos_policy_sdk::{Policy, testing};
use serde_json::{Value, json};

const DATA: &str = "memorystore-notes-data";

fn api(name: &str, models: &[&str]) -> Value {
    json!({
        "apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI", "metadata": {"name": name, "namespace": "n"},
        "spec": {"mode": "Proxy", "proxyConfig": {"models": models}},
        "status": {"phase": "Ready", "ready": true, "endpoint": format!("http://modelapi-{name}.n.svc.cluster.local:8000")},
    })
}

fn store(more: &Value) -> Value {
    let model = |model: &str| json!({"modelAPI": "llm", "model": model});
    let mut spec = json!({
        "storage": {"type": "local"}, "models": {"summarization": model("small"), "embedding": model("vectors")},
    });
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({"metadata": {"name": "notes", "namespace": "n", "uid": "u1"}, "spec": spec})
}

/// Returns the PersistentVolumeClaim of [`store`] with this size.
fn claim(size: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": DATA, "namespace": "n", "ownerReferences": [{"uid": "u1", "controller": true}]},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "standard",
                 "resources": {"requests": {"storage": size}}},
        "status": {"phase": "Bound", "capacity": {"storage": size}},
    })
}

fn external() -> Value {
    json!({"storage": {"type": "external", "external": {"connectionSecretRef": {"name": "pg", "key": "dsn"}}}})
}

fn set(settings: &Value) -> Value {
    let mut all = support::default_settings::<MemoryStore>();
    for (path, value) in settings.as_object().unwrap() {
        *all.pointer_mut(path).unwrap() = value.clone();
    }
    all
}

fn subject_with(object: &Value, beside: &[Value], settings: &Value) -> Subject {
    testing::subject(object).settings(&set(settings)).beside::<MemoryStore>(beside).build()
}

fn subject(object: &Value, beside: &[Value]) -> Subject {
    subject_with(object, beside, &json!({}))
}

fn plan(subject: &Subject) -> Plan {
    testing::plan::<MemoryStore>(subject).unwrap_or_else(|refused| panic!("refused: {refused:?}"))
}

fn refused(subject: &Subject) -> Refusal {
    testing::plan::<MemoryStore>(subject).err().unwrap_or_else(|| panic!("not refused"))
}

fn told(subject: &Subject, outcome: Outcome) -> Report {
    MemoryStore::assess(subject, &testing::observation(outcome).build())
}

fn condition(report: &Report, kind: &str) -> Option<Condition> {
    report.conditions.iter().find(|condition| condition.type_ == kind).cloned()
}

fn kinds(plan: &Plan) -> Vec<String> {
    testing::manifests(plan).iter().map(|manifest| manifest.kind().to_owned()).collect()
}

#[test]
fn a_local_store_has_one_pod_and_one_volume_claim() {
    let plan = plan(&subject(&store(&json!({})), &[api("llm", &["*"])]));
    assert_eq!(kinds(&plan), ["PersistentVolumeClaim", "Deployment", "Service"]);
    let deployment = testing::manifest(&plan, "Deployment").value().clone();
    assert_eq!(
        (&deployment["spec"]["replicas"], &deployment["spec"]["strategy"]),
        (&json!(1), &json!({"type": "Recreate"}))
    );
    let volume = json!({"name": "data", "persistentVolumeClaim": {"claimName": DATA}});
    assert_eq!(deployment["spec"]["template"]["spec"]["volumes"], json!([volume]));
    let claim = testing::manifest(&plan, "PersistentVolumeClaim").value().clone();
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}});
    assert_eq!(claim["spec"], spec);
}

#[test]
fn the_secret_of_an_external_store_is_optional_as_the_object_says() {
    for optional in [json!(null), json!(true), json!(false)] {
        let mut wanted = json!({"secretKeyRef": {"name": "pg", "key": "dsn"}});
        let mut external = external();
        if !optional.is_null() {
            wanted["secretKeyRef"]["optional"] = optional.clone();
            external["storage"]["external"]["connectionSecretRef"]["optional"] = optional;
        }
        let plan = plan(&subject(&store(&external), &[api("llm", &["*"])]));
        let deployment = testing::manifest(&plan, "Deployment").value().clone();
        let env = deployment["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap().clone();
        let dsn = env.iter().find(|variable| variable["name"] == "KAOS_MEMORY_EXTERNAL_DSN").unwrap();
        // KAOS's operator sets the field to the same value, so an upgrade restarts no pod.
        assert_eq!(dsn["valueFrom"], wanted);
    }
}

#[test]
fn an_external_store_has_two_pods_and_a_budget_for_disruptions() {
    let beside = [api("llm", &["*"])];
    let two = plan(&subject(&store(&external()), &beside));
    assert_eq!(kinds(&two), ["Deployment", "Service", "PodDisruptionBudget"]);
    assert_eq!(testing::manifest(&two, "Deployment").value()["spec"]["replicas"], 2);
    assert!(testing::manifest(&two, "Deployment").value()["spec"]["strategy"].is_null());
    let mut one = external();
    one["replicas"] = json!(1);
    assert_eq!(kinds(&plan(&subject(&store(&one), &beside))), ["Deployment", "Service"]);
}

#[test]
fn fields_that_the_api_server_would_refuse_are_refused_with_their_path() {
    let beside = [api("llm", &["*"])];
    for (more, path) in [
        (json!({"replicas": 2}), "spec.replicas"),
        (json!({"storage": {"type": "external"}}), "spec.storage.external"),
        (
            json!({"storage": {"type": "external", "external": {"connectionSecretRef": {"key": "dsn"}}}}),
            "spec.storage.external.connectionSecretRef",
        ),
        (
            json!({"storage": {"type": "local", "local": {"persistentVolume": {"size": "0"}}}}),
            "spec.storage.local.persistentVolume.size",
        ),
        (json!({"mediumTerm": {"compactionTrigger": 100, "compactionTarget": 100}}), "spec.mediumTerm"),
        (json!({"mediumTerm": {"compactionTrigger": 5000}}), "spec.mediumTerm"),
        (json!({"shortTerm": {"tokenBudget": 10}, "mediumTerm": {"compactionTarget": 10}}), "spec.mediumTerm"),
        (json!({"longTerm": {"scoreThreshold": 1.5}}), "spec.longTerm.scoreThreshold"),
        (json!({"longTerm": {"extraction": {"concurrency": 0}}}), "spec.longTerm.extraction.concurrency"),
    ] {
        let refused = refused(&subject(&store(&more), &beside));
        assert_eq!(support::violation(&refused).0, path, "{more}");
    }
    let marks =
        json!({"shortTerm": {"tokenBudget": 100}, "mediumTerm": {"compactionTrigger": 100, "compactionTarget": 50}});
    plan(&subject(&store(&marks), &beside));
    plan(&subject(&store(&json!({"mediumTerm": {"compactionTrigger": 0, "compactionTarget": 0}})), &beside));
}

#[test]
fn a_store_that_waits_for_a_model_api_names_the_role() {
    let mut two = store(&json!({}));
    two["spec"]["models"]["embedding"]["modelAPI"] = json!("absent");
    let subject_of = |beside: &[Value]| subject(&two, beside);
    for (beside, message) in [
        (vec![], "summarization ModelAPI \"llm\" not found"),
        (vec![api("llm", &["*"])], "embedding ModelAPI \"absent\" not found"),
    ] {
        let subject = subject_of(&beside);
        let report = told(&subject, Outcome::Refused(refused(&subject)));
        assert_eq!((report.phase.as_str(), report.message.as_str()), ("Pending", message));
    }
    let mut late = api("llm", &["*"]);
    late["status"]["ready"] = json!(false);
    let gated = subject(&store(&json!({})), &[late.clone()]);
    assert_eq!(plan(&gated).gates[0].message, "summarization ModelAPI \"llm\" is not ready");
    late["status"] = json!({"phase": "Pending"});
    let Refusal::Waiting(on) = refused(&subject(&store(&json!({})), &[late])) else {
        panic!("the store does not wait")
    };
    assert_eq!(on[0].message, "summarization ModelAPI \"llm\" is not ready");
}

#[test]
fn a_model_api_must_offer_both_models_of_its_store() {
    let mut two = store(&json!({}));
    two["spec"]["models"]["embedding"]["modelAPI"] = json!("other");
    let answer = subject(&two, &[api("llm", &["small"]), api("other", &["vectors"])]);
    let refusal = refused(&answer);
    let (path, message) = support::violation(&refusal);
    assert_eq!(path, "spec.models.embedding.modelAPI");
    assert!(message.contains("for both models to ModelAPI llm, which does not offer vectors"), "{message}");
    let offered = plan(&subject(&two, &[api("llm", &["small", "vectors"]), api("other", &["vectors"])]));
    assert_eq!(offered.notes[0].reason, "EmbeddingElsewhere");
    let url = testing::env_value(&offered.env, "memory", "KAOS_MEMORY_MODEL_BASE_URL");
    assert_eq!(url, Some("http://modelapi-llm.n.svc.cluster.local:8000/v1"));
    let missing = plan(&subject(&store(&json!({})), &[api("llm", &["small"])]));
    assert_eq!(missing.notes[0].reason, "ModelNotOffered");
}

#[test]
fn a_store_waits_while_its_volume_claim_cannot_be_read() {
    for spec in [json!({}), external()] {
        for (answer, reason) in
            [(Answer::Forbidden("no right".to_owned()), "Forbidden"), (Answer::Unserved, "Unserved")]
        {
            let mut subject = subject(&store(&spec), &[api("llm", &["*"]), claim("5Gi")]);
            subject.found.iter_mut().find(|found| found.id == "claim").unwrap().answer = answer;
            let refusal = refused(&subject);
            let Refusal::Waiting(on) = &refusal else { panic!("{refusal:?}") };
            assert_eq!((on[0].on.name.as_str(), on[0].reason.as_str()), (DATA, reason));
            let told = condition(&told(&subject, Outcome::Refused(refusal.clone())), "DependenciesReady").unwrap();
            assert_eq!(told.status, Truth::No);
        }
    }
}

fn sized(size: &str) -> Value {
    store(&json!({"storage": {"type": "local", "local": {"persistentVolume": {"size": size}}}}))
}

#[test]
fn a_volume_claim_grows_and_the_status_reports_it() {
    let beside = |claim: Value| [api("llm", &["*"]), claim];
    let grows = subject(&sized("6Gi"), &beside(claim("5Gi")));
    let wanted = testing::manifest(&plan(&grows), "PersistentVolumeClaim").value()["spec"].clone();
    assert_eq!(wanted["resources"]["requests"]["storage"], "6Gi");
    assert!(wanted["storageClassName"].is_null(), "the cluster chooses the class");
    let reason = |subject: &Subject| condition(&told(subject, Outcome::Applied), "VolumeSized").unwrap().reason;
    assert_eq!(reason(&grows), "NotGrown");
    let mut growing = claim("6Gi");
    growing["status"]["capacity"]["storage"] = json!("5Gi");
    assert_eq!(reason(&subject(&sized("6Gi"), &beside(growing))), "Growing");
    assert_eq!(reason(&subject(&sized("6144Mi"), &beside(claim("6Gi")))), "Sized");
    let none = subject(&sized("6Gi"), &[api("llm", &["*"])]);
    assert_eq!(condition(&told(&none, Outcome::Applied), "VolumeSized"), None);
}

#[test]
fn a_volume_claim_never_shrinks() {
    let refusal = refused(&subject(&sized("4Gi"), &[api("llm", &["*"]), claim("5Gi")]));
    let (path, message) = support::violation(&refusal);
    assert_eq!(path, "spec.storage.local.persistentVolume.size");
    assert!(message.starts_with("is 4Gi, but PersistentVolumeClaim memorystore-notes-data has 5Gi"), "{message}");
}

#[test]
fn an_existing_volume_claim_keeps_its_class_and_mode() {
    let settings = json!({"/volume/storageClass": "fast", "/volume/accessMode": "ReadWriteOncePod"});
    let plan = plan(&subject_with(&store(&json!({})), &[api("llm", &["*"]), claim("5Gi")], &settings));
    let spec = testing::manifest(&plan, "PersistentVolumeClaim").value()["spec"].clone();
    assert_eq!((&spec["storageClassName"], &spec["accessModes"]), (&json!("standard"), &json!(["ReadWriteOnce"])));
    assert_eq!(plan.notes[0].reason, "ClaimAsItWas");
}

#[test]
fn no_edit_deletes_a_volume_claim_that_holds_memories() {
    let beside = [api("llm", &["*"]), claim("5Gi")];
    let elsewhere = subject_with(&store(&json!({})), &beside, &json!({"/volume/claim": "mine"}));
    for subject in [subject(&store(&external()), &beside), elsewhere] {
        let plan = plan(&subject);
        let kept = testing::manifest(&plan, "PersistentVolumeClaim").value().clone();
        assert_eq!(kept["spec"]["resources"]["requests"]["storage"], "5Gi");
        assert_eq!(plan.notes[0].reason, "ClaimUnused");
    }
    let mut going = claim("5Gi");
    going["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut others = claim("5Gi");
    others["metadata"]["ownerReferences"][0]["uid"] = json!("u2");
    for claim in [going, others] {
        let plan = plan(&subject(&store(&external()), &[api("llm", &["*"]), claim]));
        assert!(!kinds(&plan).contains(&"PersistentVolumeClaim".to_owned()));
    }
}

#[test]
fn the_status_says_whether_data_is_kept_or_deleted() {
    let beside = [api("llm", &["*"])];
    let told_with = |settings: Value| {
        let subject = subject_with(&store(&json!({})), &beside, &settings);
        condition(&told(&subject, Outcome::Applied), "DataKept").unwrap()
    };
    let goes = told_with(json!({}));
    assert_eq!((goes.status, goes.reason.as_str()), (Truth::No, "GoesWithStore"));
    assert!(goes.message.contains("settings.kaos.tools/volume.keep: \"true\""), "{}", goes.message);
    assert_eq!(told_with(json!({"/volume/keep": true})).reason, "Kept");
    assert_eq!(told_with(json!({"/volume/claim": "mine"})).reason, "GivenClaim");
    let external = subject(&store(&external()), &beside);
    assert_eq!(condition(&told(&external, Outcome::Applied), "DataKept"), None);
}

#[test]
fn a_protected_store_requires_identities() {
    let beside = [api("llm", &["*"])];
    let required = |settings: Value| {
        let plan = plan(&subject_with(&store(&json!({})), &beside, &settings));
        ["KAOS_MEMORY_REQUIRE_PRINCIPAL", "KAOS_MEMORY_REQUIRE_AGENT_IDENTITY"]
            .map(|name| testing::env_value(&plan.env, "memory", name) == Some("true"))
    };
    let on = |issuer: &str| json!({"/security/pdp": true, "/security/networkPolicy/disabled": true, "/security/users/issuer": issuer});
    assert_eq!(required(json!({})), [false, false]);
    assert_eq!(required(on("")), [false, true]);
    assert_eq!(required(on("https://login")), [true, true]);
    assert_eq!(required(json!({"/security/users/issuer": "https://login"})), [false, false]);
}
