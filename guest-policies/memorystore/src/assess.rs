//! Builds the status of a MemoryStore for its user: phase, endpoint and conditions.

use kaos_policy_sdk::types::{Observation, Refusal, Report, Subject};
use kaos_policy_sdk::{SubjectExt, Violations};
use kaos_workload::{Phase, assess};

use crate::claim::Claims;
use crate::models::Served;
use crate::request::{self, workload};
use crate::settings::Settings;

/// Builds the report on `subject` from the observation `seen`.
pub(crate) fn assess(subject: &Subject, seen: &Observation) -> Report {
    let object = subject.object();
    let settings: Settings = subject.settings().unwrap_or_default();
    let spec = request::spec(&object).ok();
    let replicas = spec.as_ref().map(|spec| i64::from(spec.pods()));
    let workload = workload(&object, subject);
    let mut said = assess::assess(&workload, Some(settings.service_port), replicas, seen);
    // A waiting MemoryStore has the phase `Pending`, as in KAOS.
    if said.phase == Phase::Waiting {
        said.phase = Phase::Pending;
    }
    if let Some(spec) = &spec {
        let served = Served::of(subject, &spec.models, &mut Violations::new());
        let claims = Claims::of(subject, &workload, spec, &settings.volume, &mut Violations::new());
        let mut wanting = served.depends.wanting(&seen.outcome);
        match claims {
            Ok(claims) => said.conditions.extend(claims.conditions()),
            // If the object's name is invalid, the policy does not request the volume claim. So ignore the blocker
            // about the missing answer.
            Err(Refusal::Waiting(blockers)) if workload.check_name(true).is_empty() => wanting.extend(blockers),
            Err(_) => {}
        }
        said.conditions.push(assess::dependencies_ready(&wanting));
        said.conditions.extend(request::telemetry(spec, &settings).condition());
    }
    said.into_report()
}
