//! Checks the fields of a `MemoryStore`. The checks do not assume that an API server has validated the object.

use alloc::{borrow::ToOwned, string::String};
use kaos_crds::memorystore::{Model, Storage, StorageType};
use kaos_crds::{MemoryStoreSpec, defaults};
use kaos_policy_sdk::Violations;
use kaos_policy_sdk::names::is_dns1123_subdomain;
use kaos_policy_sdk::quantity::Quantity;
use kaos_policy_sdk::quote::shown;
use kaos_workload::models::is_blank;

/// The field for the size of the volume.
pub(crate) const SIZE: &str = "spec.storage.local.persistentVolume.size";

/// Collects all violations that are visible in the object itself.
pub(crate) fn check(spec: &MemoryStoreSpec, wrong: &mut Violations) {
    model("summarization", &spec.models.summarization, wrong);
    model("embedding", &spec.models.embedding, wrong);
    storage(&spec.storage, wrong);
    numbers(spec, wrong);
    marks(spec, wrong);
    if spec.storage.type_ == StorageType::Local && spec.replicas.is_some_and(|replicas| replicas > 1) {
        let message = "replicas must be 1 in local storage mode: remove replicas, or use external storage";
        wrong.add("spec.replicas", message);
    }
}

/// Returns the wanted size of the volume.
pub(crate) fn size(spec: &MemoryStoreSpec) -> &str {
    let volume = spec.storage.local.as_ref().and_then(|local| local.persistent_volume.as_ref());
    volume.map_or(defaults::STORE_SIZE, |volume| &volume.size)
}

fn model(role: &str, model: &Model, wrong: &mut Violations) {
    if !is_dns1123_subdomain(&model.model_api) {
        let name = shown(&model.model_api, 40);
        let message = format!("`{name}` is not a valid object name: use lower-case letters, digits, `-` and `.`");
        wrong.add(format!("spec.models.{role}.modelAPI"), message);
    }
    if is_blank(&model.model) {
        wrong.add(format!("spec.models.{role}.model"), "is required: name a model that the ModelAPI offers");
    }
}

fn storage(storage: &Storage, wrong: &mut Violations) {
    match (storage.type_, &storage.external) {
        (StorageType::Local, _) => {
            let volume = storage.local.as_ref().and_then(|local| local.persistent_volume.as_ref());
            let nothing = Quantity::parse("0").ok();
            if volume.is_some_and(|volume| Quantity::parse(&volume.size).ok() <= nothing) {
                wrong.add(SIZE, "must be greater than 0, for example 5Gi");
            }
        }
        (StorageType::External, None) => wrong.add(
            "spec.storage.external",
            "storage.external is required when storage.type is external: name the Secret with the connection string",
        ),
        (StorageType::External, Some(external)) => {
            let secret = &external.connection_secret_ref;
            if secret.name.is_empty() || secret.key.is_empty() {
                let message = "needs the name of a Secret and a key in it";
                wrong.add("spec.storage.external.connectionSecretRef", message);
            }
        }
    }
}

fn numbers(spec: &MemoryStoreSpec, wrong: &mut Violations) {
    let mut least = |path: &str, value: Option<i32>, min: i32| {
        if value.is_some_and(|value| value < min) {
            wrong.add(format!("spec.{path}"), format!("must be {} or more", i64::from(min)));
        }
    };
    least("replicas", spec.replicas, 1);
    least("requestConcurrency", spec.request_concurrency, 1);
    least("storage.external.embeddingDims", spec.storage.external.as_ref().map(|it| it.embedding_dims), 1);
    if let Some(short) = &spec.short_term {
        least("shortTerm.tokenBudget", short.token_budget, 1);
        least("shortTerm.hardEventCap", short.hard_event_cap, 1);
    }
    if let Some(medium) = &spec.medium_term {
        least("mediumTerm.compactionTrigger", medium.compaction_trigger, 0);
        least("mediumTerm.compactionTarget", medium.compaction_target, 0);
        least("mediumTerm.digestRetention", medium.digest_retention, 1);
    }
    let Some(long) = &spec.long_term else { return };
    least("longTerm.defaultTopK", long.default_top_k, 1);
    if let Some(extraction) = &long.extraction {
        least("longTerm.extraction.concurrency", Some(extraction.concurrency), 1);
        least("longTerm.extraction.maxRetries", extraction.max_retries, 0);
    }
    let is_share = |share: f64| (0.0..=1.0).contains(&share);
    if long.score_threshold.as_ref().is_some_and(|share| !share.as_f64().is_some_and(is_share)) {
        wrong.add("spec.longTerm.scoreThreshold", "must be a number between 0 and 1");
    }
}

/// Checks `compactionTarget` and `compactionTrigger`, if the object sets at least one of these fields. If a field is
/// absent or 0, the service computes its value.
fn marks(spec: &MemoryStoreSpec, wrong: &mut Violations) {
    let Some(medium) = &spec.medium_term else { return };
    let is_set = |mark: Option<i32>| mark.filter(|mark| *mark > 0);
    let (trigger, target) = (is_set(medium.compaction_trigger), is_set(medium.compaction_target));
    if trigger.is_none() && target.is_none() {
        return;
    }
    let budget = spec.short_term.as_ref().and_then(|short| short.token_budget).unwrap_or(defaults::TOKEN_BUDGET);
    let (trigger, target) = (trigger.unwrap_or(budget), target.unwrap_or((budget / 2).max(1)));
    if target < trigger && trigger <= budget {
        return;
    }
    let number = |number: i32| i64::from(number);
    let message: String = format!(
        "short-term compaction marks must satisfy 0 < compactionTarget < compactionTrigger <= tokenBudget (0 or absent marks \
         derive from the token budget); the values are {target}, {trigger} and {budget}",
        target = number(target),
        trigger = number(trigger),
        budget = number(budget)
    );
    wrong.add("spec.mediumTerm".to_owned(), message);
}
