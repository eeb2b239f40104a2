//! Maps the variables of a store, in the order in which KAOS sets them. The policy sets no variable for a field that
//! the object leaves out: the service has its own defaults.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use kaos_crds::memorystore::{LongTerm, MediumTerm, StorageType};
use kaos_policy_sdk::env::{ContainerEnv, Env, secret_key, with_optional};
use kaos_policy_sdk::types::{EnvVar, Refusal, Subject};
use serde_json::Value;

use crate::request::{KIND, Request, workload};

/// Returns the mapping of `subject`. `base` is the mapping of the layer below. For the lowest layer, `base` is empty.
pub(crate) fn map(subject: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
    let request = Request::of(subject)?;
    let workload = workload(&request.object, subject);
    let (spec, settings) = (&request.spec, &request.settings);
    let mut all = Env::over(base);
    let mut env = all.container(KIND.container);

    storage(&mut env, request);
    if let Some((endpoint, origin)) = &request.served.endpoint {
        env.set("KAOS_MEMORY_MODEL_BASE_URL", format!("{endpoint}/v1"), origin);
    }
    let models = &spec.models;
    env.set("KAOS_MEMORY_SUMMARIZATION_MODEL", &models.summarization.model, "spec.models.summarization.model").set(
        "KAOS_MEMORY_EMBEDDING_MODEL",
        &models.embedding.model,
        "spec.models.embedding.model",
    );
    if let Some(short) = &spec.short_term {
        number(&mut env, "KAOS_MEMORY_TOKEN_BUDGET", short.token_budget, "shortTerm.tokenBudget");
        number(&mut env, "KAOS_MEMORY_HARD_EVENT_CAP", short.hard_event_cap, "shortTerm.hardEventCap");
    }
    if let Some(medium) = &spec.medium_term {
        summing_up(&mut env, medium);
    }
    if let Some(long) = &spec.long_term {
        for_long(&mut env, long);
    }
    number(&mut env, "KAOS_MEMORY_REQUEST_CONCURRENCY", spec.request_concurrency, "requestConcurrency");
    env.set("KAOS_MEMORY_DEFAULT_FAILURE_MODE", spec.default_failure_mode.as_str(), "spec.defaultFailureMode");
    let security = &settings.security;
    let user = security.requires_user(settings.require_principal, "settings.requirePrincipal");
    let agent = security.requires_agent(settings.require_agent_identity, "settings.requireAgentIdentity");
    for (name, origin) in [("KAOS_MEMORY_REQUIRE_PRINCIPAL", user), ("KAOS_MEMORY_REQUIRE_AGENT_IDENTITY", agent)] {
        if let Some(origin) = origin {
            env.set(name, "true", origin);
        }
    }
    let telemetry = request.telemetry();
    telemetry.set_env(&mut env, &workload, &settings.telemetry.excluded_urls);
    if telemetry.enabled {
        env.set("OTEL_SERVICE_NAME", workload.child_name(), &telemetry.enabled_origin);
    }
    if let Some(list) = request.object.at(&["spec", "container", "env"]).and_then(Value::as_array) {
        env.user(list, "spec.container.env")?;
    }
    Ok(all.into_vars())
}

/// Sets the variables that tell the service where to store memories.
fn storage(env: &mut ContainerEnv<'_>, request: &Request) {
    let (storage, volume) = (&request.spec.storage, &request.settings.volume);
    let path = |field: &str| format!("spec.storage.{field}");
    match storage.type_ {
        StorageType::Local => {
            let collection = storage.local.as_ref().and_then(|local| local.collection.as_deref());
            env.set("KAOS_MEMORY_STORAGE_TYPE", "local", &path("type"))
                .set("KAOS_MEMORY_LOCAL_PATH", &volume.mount_path, "settings.volume.mountPath")
                .set_some("KAOS_MEMORY_LOCAL_COLLECTION", collection, &path("local.collection"));
        }
        StorageType::External => {
            env.set("KAOS_MEMORY_STORAGE_TYPE", "external", &path("type"));
            let Some(external) = &storage.external else { return };
            let secret = &external.connection_secret_ref;
            let key = with_optional(secret_key(&secret.name, &secret.key), secret.optional);
            env.bind("KAOS_MEMORY_EXTERNAL_DSN", key, &path("external.connectionSecretRef"));
            let dims = Some(external.embedding_dims);
            number(env, "KAOS_MEMORY_EXTERNAL_DIMS", dims, "storage.external.embeddingDims");
            let collection = external.collection.as_deref();
            env.set_some("KAOS_MEMORY_EXTERNAL_COLLECTION", collection, &path("external.collection"));
        }
    }
}

fn summing_up(env: &mut ContainerEnv<'_>, medium: &MediumTerm) {
    flag(env, "KAOS_MEMORY_ROLLING_SUMMARY", medium.enabled, "mediumTerm.enabled");
    let trigger = medium.compaction_trigger;
    number(env, "KAOS_MEMORY_COMPACTION_TRIGGER", trigger, "mediumTerm.compactionTrigger");
    number(env, "KAOS_MEMORY_COMPACTION_TARGET", medium.compaction_target, "mediumTerm.compactionTarget");
    number(env, "KAOS_MEMORY_DIGEST_RETENTION", medium.digest_retention, "mediumTerm.digestRetention");
    let prompt = medium.system_prompt.as_deref();
    env.set_some("KAOS_MEMORY_SUMMARIZATION_SYSTEM_PROMPT", prompt, "spec.mediumTerm.systemPrompt");
}

fn for_long(env: &mut ContainerEnv<'_>, long: &LongTerm) {
    flag(env, "KAOS_MEMORY_LONG_TERM_ENABLED", long.enabled, "longTerm.enabled");
    number(env, "KAOS_MEMORY_DEFAULT_TOP_K", long.default_top_k, "longTerm.defaultTopK");
    let threshold: Option<String> = long.score_threshold.as_ref().map(ToString::to_string);
    env.set_some("KAOS_MEMORY_SCORE_THRESHOLD", threshold.as_deref(), "spec.longTerm.scoreThreshold");
    flag(env, "KAOS_MEMORY_RERANK", long.rerank, "longTerm.rerank");
    let Some(extraction) = &long.extraction else { return };
    let concurrency = Some(extraction.concurrency);
    number(env, "KAOS_MEMORY_EXTRACTION_CONCURRENCY", concurrency, "longTerm.extraction.concurrency");
    number(env, "KAOS_MEMORY_EXTRACTION_MAX_RETRIES", extraction.max_retries, "longTerm.extraction.maxRetries");
    let prompt = extraction.system_prompt.as_deref();
    env.set_some("KAOS_MEMORY_EXTRACTION_SYSTEM_PROMPT", prompt, "spec.longTerm.extraction.systemPrompt");
}

fn flag(env: &mut ContainerEnv<'_>, name: &str, value: Option<bool>, field: &str) {
    env.set_some(name, value.map(|value| if value { "true" } else { "false" }), &format!("spec.{field}"));
}

fn number(env: &mut ContainerEnv<'_>, name: &str, value: Option<i32>, field: &str) {
    env.set_some(name, value.map(|value| i64::from(value).to_string()).as_deref(), &format!("spec.{field}"));
}
