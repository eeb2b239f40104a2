//! Builds the status of a ModelAPI for its user: phase, endpoint and conditions.

use alloc::vec::Vec;
use kaos_crds::ModelAPISpec;
use kaos_crds::modelapi::Mode;
use kaos_policy_sdk::types::{Condition, Note, Observation, Outcome, Refusal, Report, Subject, Truth};
use kaos_policy_sdk::{SubjectExt, condition};
use kaos_workload::{assess, notes};

use crate::providers::Config;
use crate::proxy::{NO_CALLBACK, NO_MODELS};
use crate::request::{Request, server, workload};
use crate::settings::Settings;
use crate::translate::TELEMETRY_UNSUPPORTED;
use crate::wanted::Wanted;

/// Builds the report on `subject` from the observation `seen`.
pub(crate) fn assess(subject: &Subject, seen: &Observation) -> Report {
    let object = subject.object();
    let settings: Settings = subject.settings().unwrap_or_default();
    let spec: Option<ModelAPISpec> = object.get("spec").ok();
    let mode = spec.as_ref().map_or(Mode::Proxy, |spec| spec.mode);
    let replicas = spec.as_ref().and_then(|spec| spec.replicas).map(i64::from);
    let workload = workload(&object, subject);
    let mut said = assess::assess(&workload, Some(server(&settings, mode).service_port), replicas, seen);
    let request = Request::of(subject).ok();
    let of_note = |reason: &str| seen.notes.iter().find(|note| note.reason == reason);
    if let Some(request) = request
        && let Wanted::Proxy(proxy) = &request.wanted
    {
        let configured = request.telemetry().condition();
        said.conditions.extend(configured.map(|configured| exported(configured, &proxy.config, of_note(NO_CALLBACK))));
    }
    if let Some(note) = of_note(TELEMETRY_UNSUPPORTED) {
        said.conditions.push(condition::yes(TELEMETRY_UNSUPPORTED, "Hosted", note.message.clone()));
    }
    if let Some(note) = of_note(NO_MODELS) {
        said.conditions.push(condition::no("ConfigValid", NO_MODELS, note.message.clone()));
    }
    said.conditions.extend(config_refused(&seen.outcome));
    said.conditions.extend(older_fields(request, spec.as_ref()));
    said.into_report()
}

/// Builds the condition `TelemetryConfigured` of a proxy. The condition is false if the user's own configuration lacks
/// the callback that exports telemetry. The condition is unknown if the configuration is in a Secret, because the
/// policy cannot read Secrets.
fn exported(configured: Condition, config: &Config, no_callback: Option<&Note>) -> Condition {
    match (configured.status, config, no_callback) {
        (Truth::Yes, Config::Text { .. }, Some(note)) => {
            condition::no(&configured.type_, "NoCallback", note.message.clone())
        }
        (Truth::Yes, Config::Secret(key), _) => {
            let message = format!(
                "{message} if the configuration in Secret {name} has a callback for telemetry, which the policy cannot read",
                message = configured.message,
                name = key.name
            );
            condition::unknown(&configured.type_, "ConfigInSecret", message)
        }
        _ => configured,
    }
}

/// Builds the condition `Deprecated`, also for an object that the policy refuses.
fn older_fields(request: Option<&Request>, spec: Option<&ModelAPISpec>) -> Option<Condition> {
    if let Some(request) = request {
        return notes::deprecated_condition(&request.notes);
    }
    let mut said = Vec::new();
    drop(Wanted::of(spec?, &mut said));
    notes::deprecated_condition(&said)
}

/// Builds the condition `ConfigValid`, if the policy refused the user's configuration.
fn config_refused(outcome: &Outcome) -> Option<Condition> {
    let Outcome::Refused(Refusal::Invalid(violations)) = outcome else { return None };
    let found = violations.iter().find(|violation| violation.path.starts_with("spec.proxyConfig.configYaml"))?;
    Some(condition::no("ConfigValid", "Refused", found.message.clone()))
}

#[cfg(test)]
mod tests {
    use kaos_policy_sdk::testing;
    use serde_json::{Value, json};

    use super::*;
    use crate::ModelApi;

    #[test]
    fn a_refused_object_keeps_its_address_and_reports_its_older_fields() {
        let object = json!({
            "metadata": {"name": "llm", "namespace": "ns"},
            "spec": {"mode": "Hosted", "hostedConfig": {"env": [{"name": "A", "value": "1"}]}},
        });
        let subject = testing::subject(&object).build();
        let Err(refusal) = testing::plan::<ModelApi>(&subject) else { panic!("must be refused") };
        let service = json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "modelapi-llm", "namespace": "ns"},
            "spec": {"ports": [{"name": "http", "port": 8000}]},
        });
        let report = assess(&subject, &testing::observation(Outcome::Refused(refusal)).child(&service).build());
        let fields: Value = serde_json::from_str(&report.fields).unwrap();
        assert_eq!(fields["endpoint"], "http://modelapi-llm.ns.svc.cluster.local:8000");
        assert!(report.conditions.iter().any(|condition| condition.type_ == notes::DEPRECATED), "{report:?}");
    }

    /// Returns the condition `TelemetryConfigured` of a proxy with telemetry and this `configYaml`.
    fn telemetry(config_yaml: &Value) -> Condition {
        let telemetry = json!({"enabled": true, "endpoint": "http://otel:4317"});
        let proxy = json!({"models": ["*"], "configYaml": config_yaml});
        let object = json!({
            "metadata": {"name": "llm", "namespace": "ns"},
            "spec": {"mode": "Proxy", "proxyConfig": proxy, "telemetry": telemetry},
        });
        let subject =
            testing::subject(&object).settings(&testing::defaults(include_str!("../settings.schema.json"))).build();
        let plan = testing::plan::<ModelApi>(&subject).unwrap();
        let report = assess(&subject, &testing::observation(Outcome::Applied).plan(&plan).build());
        report.conditions.into_iter().find(|condition| condition.type_ == "TelemetryConfigured").unwrap()
    }

    #[test]
    fn telemetry_counts_as_configured_only_where_the_configuration_exports_it() {
        let own = |settings: &str| json!({"fromString": format!("model_list: [{{model_name: a}}]\n{settings}")});
        let generated = telemetry(&json!({}));
        assert_eq!((generated.status, generated.reason.as_str()), (Truth::Yes, "Configured"));
        let with = telemetry(&own("litellm_settings: {callbacks: [otel]}"));
        assert_eq!((with.status, with.message.as_str()), (Truth::Yes, "exported to http://otel:4317"));
        let without = telemetry(&own(""));
        assert_eq!((without.status, without.reason.as_str()), (Truth::No, "NoCallback"));
        assert!(without.message.contains("callbacks: [\"otel\"]"), "{}", without.message);
        let secret = telemetry(&json!({"fromSecretKeyRef": {"name": "cfg", "key": "k"}}));
        assert_eq!((secret.status, secret.reason.as_str()), (Truth::Unknown, "ConfigInSecret"));
        assert!(secret.message.contains("Secret cfg"), "{}", secret.message);
    }
}
