//! What the user is told: phase, endpoint, and the conditions that are this kind's own.

use kaos_crds::ModelAPISpec;
use kaos_crds::modelapi::Mode;
use kaos_policy_sdk::types::{Condition, Observation, Outcome, Refusal, Report, Subject};
use kaos_policy_sdk::{SubjectExt, condition};
use kaos_workload::{assess, notes};

use crate::proxy::NO_MODELS;
use crate::request::{Request, server, workload};
use crate::settings::Settings;
use crate::translate::TELEMETRY_UNSUPPORTED;
use crate::wanted::Wanted;

/// The report on `subject` from what was seen.
pub(crate) fn assess(subject: &Subject, seen: &Observation) -> Report {
    let object = subject.object();
    let settings: Settings = subject.settings().unwrap_or_default();
    let spec: Option<ModelAPISpec> = object.get("spec").ok();
    let mode = spec.as_ref().map_or(Mode::Proxy, |spec| spec.mode);
    let replicas = spec.as_ref().and_then(|spec| spec.replicas).map(i64::from);
    let workload = workload(&object, subject);
    let mut said = assess::assess(&workload, Some(server(&settings, mode).service_port), replicas, seen);
    if let Ok(request) = Request::of(subject)
        && matches!(request.wanted, Wanted::Proxy(_))
    {
        said.conditions.extend(request.telemetry().condition());
    }
    let of_note = |reason: &str| seen.notes.iter().find(|note| note.reason == reason);
    if let Some(note) = of_note(TELEMETRY_UNSUPPORTED) {
        said.conditions.push(condition::yes(TELEMETRY_UNSUPPORTED, "Hosted", note.message.clone()));
    }
    if let Some(note) = of_note(NO_MODELS) {
        said.conditions.push(condition::no("ConfigValid", NO_MODELS, note.message.clone()));
    }
    said.conditions.extend(config_refused(&seen.outcome));
    said.conditions.extend(notes::deprecated_condition(&seen.notes));
    said.into_report()
}

/// Condition `ConfigValid` of a configuration file that was refused.
fn config_refused(outcome: &Outcome) -> Option<Condition> {
    let Outcome::Refused(Refusal::Invalid(violations)) = outcome else { return None };
    let found = violations.iter().find(|violation| violation.path.starts_with("spec.proxyConfig.configYaml"))?;
    Some(condition::no("ConfigValid", "Refused", found.message.clone()))
}
