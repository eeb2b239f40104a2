//! Tests `MemoryStores`: the PersistentVolumeClaim for the data, and the ModelAPI for which a store waits. The module
//! `dependencies` tests the Agents that use a store.

use std::time::Duration;

use kaos_tests::case;
use kaos_tests::harness::faults::OPERATOR;
use kaos_tests::harness::read::{controller, name, uid, variable};
use kaos_tests::harness::samples::{memory_store, model_api};
use kaos_tests::harness::{Scenario, World, condition, is_ready, is_true, play, reason};
use serde_json::{Value, json};

use crate::support::{STORE, external_store};

const DATA: &str = "PersistentVolumeClaim/memorystore-notes-data";
const DEPLOYMENT: &str = "Deployment/memorystore-m";
const KEEP: &str = "settings.kaos.tools/volume.keep";

fn sized(size: &str) -> Value {
    let mut store = memory_store("notes", "llm");
    store["spec"]["storage"]["local"] = json!({"persistentVolume": {"size": size}});
    store
}

/// Applies a `MemoryStore`. Waits until the store's status reports the PersistentVolumeClaim. Returns the
/// PersistentVolumeClaim.
async fn settled(w: &World, store: &Value) -> Value {
    w.apply_all(&[model_api("llm"), store.clone()]).await;
    w.until("the status of the store reports the claim", STORE, |it| {
        condition(it, "DataKept")["status"].is_string() && is_true(it, "Applied")
    })
    .await;
    let claim = w.until("the store has a claim", DATA, Value::is_object).await;
    w.quiet().await;
    claim
}

#[test]
fn a_store_waits_for_its_model_api() {
    play(Scenario::default(), async |w| {
        w.apply(&external_store("facts")).await;
        let waits = |it: &Value| it["status"]["message"] == "summarization ModelAPI \"llm\" not found";
        let waiting = w.until("the store names the ModelAPI for which it waits", "MemoryStore/facts", waits).await;
        assert_eq!(
            (&waiting["status"]["phase"], reason(&waiting, "Accepted")),
            (&json!("Pending"), "Waiting".to_owned())
        );
        assert!(w.look("Deployment/memorystore-facts").await.is_null());
        w.apply(&model_api("llm")).await;
        let ready = w.until_ready("MemoryStore/facts").await;
        let endpoint = format!("http://memorystore-facts.{}.svc.cluster.local:8080", w.namespace);
        assert_eq!((&ready["status"]["endpoint"], &ready["status"]["phase"]), (&json!(endpoint), &json!("Ready")));
        let deployment = w.look("Deployment/memorystore-facts").await;
        assert_eq!(deployment["spec"]["replicas"], 2);
        assert_eq!(variable(&deployment, "KAOS_MEMORY_STORAGE_TYPE"), "external");
        let budget = w.look("PodDisruptionBudget/memorystore-facts").await;
        assert_eq!(budget["spec"]["minAvailable"], 1);
        w.patch("MemoryStore/facts", &json!({"spec": {"replicas": 1}})).await;
        w.until_gone("PodDisruptionBudget/memorystore-facts").await;
    });
}

#[test]
fn a_store_with_a_volume_costs_one_write_for_each_child_and_no_read() {
    play(Scenario::embedded("the test counts requests"), async |w| {
        w.apply(&model_api("llm")).await;
        w.until_ready("ModelAPI/llm").await;
        w.quiet().await;
        w.forget_requests();
        w.apply(&memory_store("notes", "llm")).await;
        w.until_ready(STORE).await;
        w.quiet().await;
        let mut writes = w.writes_by_type();
        let statuses = writes.remove("memorystores/status").unwrap_or_default();
        assert!((1..=2).contains(&statuses), "{statuses} writes of the status: {:#?}", w.writes());
        let wanted = [("deployments", 1), ("persistentvolumeclaims", 1), ("services", 1)];
        assert_eq!(writes, wanted.map(|(of, count)| (of.to_owned(), count)).into(), "{:#?}", w.writes());
        assert!(w.reads().is_empty(), "{:#?}", w.reads());
    });
}

#[test]
fn a_volume_claim_grows_with_the_size_and_never_shrinks() {
    play(Scenario::embedded("a real control plane binds no volumes"), async |w| {
        let claim = settled(w, &sized("5Gi")).await;
        assert_eq!(claim["spec"]["resources"]["requests"]["storage"], "5Gi");
        let holds = |size: &str| json!({"phase": "Bound", "capacity": {"storage": size}});
        w.patch_status(DATA, &holds("5Gi")).await;
        w.until("the status shows the size", STORE, |it| reason(it, "VolumeSized") == "Sized").await;
        w.apply(&sized("6Gi")).await;
        w.until("the claim grows", DATA, |it| it["spec"]["resources"]["requests"]["storage"] == "6Gi").await;
        w.until("the status shows the growth", STORE, |it| reason(it, "VolumeSized") == "Growing").await;
        w.patch_status(DATA, &holds("6Gi")).await;
        w.until("the volume has grown", STORE, |it| reason(it, "VolumeSized") == "Sized").await;
        w.apply(&sized("4Gi")).await;
        let refused = w.until("the store is refused", STORE, |it| reason(it, "Accepted") == "InvalidSpec").await;
        assert!(refused["status"]["message"].to_string().contains("a volume never shrinks"), "{refused:#}");
        w.quiet().await;
        let kept = w.look(DATA).await;
        assert_eq!((&kept["spec"]["resources"]["requests"]["storage"], uid(&kept)), (&json!("6Gi"), uid(&claim)));
        assert_eq!(w.rollouts("memorystore-notes").await, 1);
    });
}

#[test]
fn a_rejected_growth_is_reported_with_the_current_size() {
    play(Scenario::default(), async |w| {
        let claim = settled(w, &sized("5Gi")).await;
        w.apply(&sized("6Gi")).await;
        let told = w
            .until("the status reports the rejected growth", STORE, |it| condition(it, "Applied")["status"] == "False")
            .await;
        assert_eq!(reason(&told, "VolumeSized"), "NotGrown", "{told:#}");
        let message = condition(&told, "Applied")["message"].to_string();
        assert!(message.contains("all data in the volume claim is lost"), "{message}");
        w.apply(&sized("5Gi")).await;
        w.until("the growth is applied", STORE, |it| is_true(it, "Applied")).await;
        assert_eq!(uid(&w.look(DATA).await), uid(&claim));
    });
}

#[test]
fn a_volume_claim_is_deleted_with_its_store_or_kept_and_reused() {
    play(Scenario::default(), async |w| {
        let claim = settled(w, &memory_store("notes", "llm")).await;
        assert_eq!(controller(&claim)["kind"], "MemoryStore");
        w.patch(STORE, &json!({"metadata": {"annotations": {KEEP: "true"}}})).await;
        w.until("the claim has no owner", DATA, |it| it["metadata"]["ownerReferences"].is_null()).await;
        w.until("the status reports the kept claim", STORE, |it| is_true(it, "DataKept")).await;
        w.quiet().await;
        w.delete(STORE).await;
        w.until_gone("Deployment/memorystore-notes").await;
        w.until_gone(STORE).await;
        w.quiet().await;
        assert_eq!(uid(&w.look(DATA).await), uid(&claim));
        let mut again = memory_store("notes", "llm");
        again["metadata"]["annotations"] = json!({KEEP: "true"});
        assert_eq!(uid(&settled(w, &again).await), uid(&claim));
        w.patch(STORE, &json!({"metadata": {"annotations": {KEEP: null}}})).await;
        let owned = w.until("the store owns the claim", DATA, |it| controller(it)["kind"] == "MemoryStore").await;
        assert_eq!(uid(&owned), uid(&claim));
    });
}

#[test]
fn a_kept_volume_claim_causes_no_writes() {
    play(Scenario::embedded("the test counts requests"), async |w| {
        let mut store = memory_store("notes", "llm");
        store["metadata"]["annotations"] = json!({KEEP: "true"});
        settled(w, &store).await;
        w.until_ready(STORE).await;
        w.quiet().await;
        w.forget_requests();
        // Cause a pass. The pass must read nothing, and write no child.
        w.patch(STORE, &json!({"metadata": {"labels": {"team": "x"}}})).await;
        w.pass_time(Duration::from_secs(5)).await;
        assert!(w.reads().is_empty() && w.writes_by_type().keys().all(|of| of == "memorystores"), "{:#?}", w.writes());
    });
}

#[test]
fn a_store_that_moves_to_a_database_keeps_its_volume_claim() {
    play(Scenario::default(), async |w| {
        let claim = settled(w, &memory_store("notes", "llm")).await;
        w.apply(&external_store("notes")).await;
        let moved = |it: &Value| variable(it, "KAOS_MEMORY_STORAGE_TYPE") == "external";
        w.until("the store's pods use the database", "Deployment/memorystore-notes", moved).await;
        w.until_ready(STORE).await;
        w.quiet().await;
        assert_eq!(uid(&w.look(DATA).await), uid(&claim));
        w.delete(DATA).await;
        w.until_gone(DATA).await;
        w.quiet().await;
        let left: Vec<String> = w.list("PersistentVolumeClaim").await.iter().map(|it| name(it).to_owned()).collect();
        assert_eq!(left, [""; 0]);
        assert!(is_ready(&w.look(STORE).await));
    });
}

#[test]
fn an_unreadable_volume_claim_is_kept_through_edits_of_the_store() {
    play(Scenario::embedded("the test revokes rights"), async |w| {
        let claim = settled(w, &memory_store("notes", "llm")).await;
        w.embedded().authorise(|attempt| {
            attempt.user != OPERATOR || attempt.verb.is_write() || attempt.resource != "persistentvolumeclaims"
        });
        w.embedded().cut_watches();
        // Wait for more than a minute: for the first minute after the API server begins to reject reads, policies still
        // get the objects from the operator's cache.
        w.pass_time(Duration::from_mins(3)).await;
        w.apply(&external_store("notes")).await;
        let waits = |it: &Value| reason(it, "Accepted") == "Waiting";
        let waiting = w.until("the store waits", STORE, waits).await;
        let message = condition(&waiting, "DependenciesReady")["message"].to_string();
        assert!(message.contains("PersistentVolumeClaim memorystore-notes-data cannot be read"), "{message}");
        w.pass_time(Duration::from_mins(3)).await;
        assert_eq!(uid(&w.look(DATA).await), uid(&claim));
        w.embedded().allow_everything();
        let moved = |it: &Value| variable(it, "KAOS_MEMORY_STORAGE_TYPE") == "external";
        w.until("the store's pods use the database", "Deployment/memorystore-notes", moved).await;
        w.until_ready(STORE).await;
        w.quiet().await;
        assert_eq!(uid(&w.look(DATA).await), uid(&claim));
    });
}

#[test]
fn a_store_of_an_earlier_operator_is_taken_over_without_a_restart() {
    let case = case::all().unwrap().into_iter().find(|case| case.name == "memorystore-local").unwrap();
    let store = case.input.iter().find(|it| it["kind"] == "MemoryStore").unwrap();
    let children = case.wanted().unwrap()["children"].clone();
    let scenario = Scenario::default().environment(&case.environment).idle();
    play(scenario, async |w| {
        let mut store = store.clone();
        store["metadata"].as_object_mut().unwrap().remove("namespace");
        let made = w.apply(&store).await;
        let children = children.to_string().replace("parity", &w.namespace).replace("<hash>", "theirs");
        let children: Vec<Value> = serde_json::from_str(&children).unwrap();
        for mut child in children {
            child["metadata"]["ownerReferences"][0]["uid"] = made["metadata"]["uid"].clone();
            if child["kind"] == "Deployment" {
                // The earlier operator did not set the update strategy of pods.
                child["spec"].as_object_mut().unwrap().remove("strategy");
            }
            w.apply_as("manager", &child).await.unwrap();
        }
        let (claim, before) = (w.look("PersistentVolumeClaim/memorystore-m-data").await, w.look(DEPLOYMENT).await);
        w.apply(&model_api("llm")).await;
        w.start().await;
        w.until("the Deployment is taken over", DEPLOYMENT, |it| it["spec"]["strategy"]["type"] == "Recreate").await;
        w.until("the whole store is taken over", "MemoryStore/m", |it| is_true(it, "Applied")).await;
        w.quiet().await;
        let after = w.look(DEPLOYMENT).await;
        assert_eq!(after["spec"]["template"], before["spec"]["template"]);
        assert_eq!(w.rollouts("memorystore-m").await, 1);
        assert_eq!(uid(&w.look("PersistentVolumeClaim/memorystore-m-data").await), uid(&claim));
    });
}
