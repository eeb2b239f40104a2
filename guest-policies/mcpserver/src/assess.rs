//! Builds the status of an MCPServer for its user: phase, endpoint, tools and conditions.

use alloc::{string::String, vec::Vec};
use kaos_crds::MCPServerSpec;
use kaos_policy_sdk::types::{Condition, EnvSource, EnvVar, Observation, Outcome, Refusal, Report, Subject};
use kaos_policy_sdk::{SubjectExt, condition};
use kaos_workload::{assess, notes};

use crate::python;
use crate::request::{KIND, Request, workload};
use crate::settings::Settings;
use crate::translate::{PARAMS_UNUSED, REQUIRED_ENV_MISSING};
use crate::wanted::{Params, Wanted};

/// Builds the report on `subject` from the observation `seen`.
pub(crate) fn assess(subject: &Subject, seen: &Observation) -> Report {
    let object = subject.object();
    let settings: Settings = subject.settings().unwrap_or_default();
    let spec: MCPServerSpec = object.get("spec").unwrap_or_default();
    let workload = workload(&object, subject);
    let mut said = assess::assess(&workload, Some(settings.service_port), spec.replicas.map(i64::from), seen);
    let request = Request::of(subject).ok();
    if let Some(request) = request {
        let tools = available_tools(request, &seen.env);
        if !tools.is_empty() {
            said.fields.insert("availableTools".into(), tools.into());
        }
        said.conditions.extend(request.telemetry().condition());
    }
    said.conditions.extend(runtime_resolved(&seen.outcome, request.is_some()));
    let warned = [
        (PARAMS_UNUSED, "ParamsApplied", "NoVariable"),
        (REQUIRED_ENV_MISSING, "EnvironmentComplete", "Missing"),
        ("CommandIsFlags", "CommandUsable", "BeginsWithFlag"),
    ];
    for (note_reason, kind, reason) in warned {
        if let Some(note) = seen.notes.iter().find(|note| note.reason == note_reason) {
            said.conditions.push(condition::no(kind, reason, note.message.clone()));
        }
    }
    said.conditions.extend(older_fields(request, &spec));
    said.into_report()
}

/// Builds the condition `Deprecated`, also for an object that waits or that the policy refuses.
fn older_fields(request: Option<&Request>, spec: &MCPServerSpec) -> Option<Condition> {
    match request {
        Some(request) => notes::deprecated_condition(&request.wanted.notes),
        None => notes::deprecated_condition(&Wanted::of(spec).ok()?.notes),
    }
}

/// Returns the functions in the Python source that the parameters contain. If the parameters are not Python, or are not
/// readable, returns the registry's list of tools.
fn available_tools(request: &Request, env: &[EnvVar]) -> Vec<String> {
    let launch = &request.launch;
    let variable = launch.params_env_var.as_deref().filter(|_| launch.params_are_python);
    let Some(variable) = variable else { return launch.tools.clone() };
    let given = env.iter().find(|var| var.container == KIND.container && var.name == variable).map(|var| &var.source);
    match (given, &request.wanted.params) {
        (Some(EnvSource::Literal(source)), _) | (None, Some(Params::Text { text: source, .. })) => {
            python::top_level_functions(source)
        }
        _ => launch.tools.clone(),
    }
}

/// Builds the condition `RuntimeResolved`, which shows whether the registry has a valid entry for the runtime.
fn runtime_resolved(outcome: &Outcome, resolved: bool) -> Option<Condition> {
    const RESOLVED: &str = "RuntimeResolved";
    if resolved {
        return Some(condition::yes(RESOLVED, "Resolved", "the runtime is known"));
    }
    match outcome {
        Outcome::Refused(Refusal::Invalid(violations)) => violations
            .iter()
            .find(|violation| ["spec.runtime", "spec.container.image"].contains(&violation.path.as_str()))
            .map(|violation| condition::no(RESOLVED, "Unknown", violation.message.clone())),
        Outcome::Refused(Refusal::Waiting(on)) => {
            on.first().map(|blocker| condition::no(RESOLVED, &blocker.reason, blocker.message.clone()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use kaos_policy_sdk::testing;
    use serde_json::json;

    use super::*;
    use crate::McpServer;

    #[test]
    fn older_fields_are_reported_while_the_policy_waits_for_the_registry() {
        let object = json!({
            "metadata": {"name": "t", "namespace": "n"},
            "spec": {"type": "python-runtime", "config": {"toolsString": "def f(): pass"}},
        });
        let registry = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kaos-mcp-runtimes", "namespace": "kaos-system"},
            "data": {"runtimes.yaml": "runtimes: ["},
        });
        let subject = testing::subject(&object).beside::<McpServer>(&[registry]).build();
        let Err(refusal) = testing::plan::<McpServer>(&subject) else { panic!("must wait") };
        let report = assess(&subject, &testing::observation(Outcome::Refused(refusal)).build());
        assert!(report.conditions.iter().any(|condition| condition.type_ == notes::DEPRECATED), "{report:?}");
    }
}
