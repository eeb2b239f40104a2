//! Builds the status of an Agent for its user: phase, endpoint, linked objects and conditions.

use alloc::vec::Vec;
use kaos_policy_sdk::types::{Condition, Note, Observation, Outcome, Report, Subject};
use kaos_policy_sdk::{SubjectExt, Violations, condition};
use kaos_workload::{assess, notes};
use serde_json::{Map, Value};

use crate::ignored;
use crate::linked::Linked;
use crate::memory::Remembering;
use crate::request::{self, workload};
use crate::settings::Settings;
use crate::wanted::Links;

/// Builds the report on `subject` from the observation `seen`.
pub(crate) fn assess(subject: &Subject, seen: &Observation) -> Report {
    let object = subject.object();
    let (read, default) = (request::settings(subject), Settings::default());
    let settings: &Settings = read.as_deref().unwrap_or(&default);
    let exposed = object.at(&["spec", "agentNetwork", "expose"]) != Some(&Value::Bool(false));
    let replicas = object.at(&["spec", "replicas"]).and_then(Value::as_i64);
    let workload = workload(&object, subject);
    let mut said = assess::assess(&workload, exposed.then_some(settings.service_port), replicas, seen);
    if let Ok(spec) = request::spec(subject) {
        let links = Links::of(&spec, object.name());
        let mut linked = Linked::of(subject, &spec.model_api, spec.model(), &links, &mut Violations::new());
        let memory = Remembering::of(subject, &spec, &settings.memory, &mut Violations::new());
        linked.depends.missing.extend(memory.unreadable.clone());
        if matches!(seen.outcome, Outcome::Applied | Outcome::Gated) {
            said.fields.insert("linkedResources".into(), resources(&linked, &memory));
        }
        said.conditions.push(assess::dependencies_ready(&linked.depends.wanting(&seen.outcome)));
        said.conditions.extend(memory.conditions(&spec));
        said.conditions.extend(peers_resolved(&links, &linked.absent_peers));
        said.conditions.extend(request::telemetry(&spec, settings).condition());
        said.conditions.extend(ignored::condition(&seen.notes));
        let notes = request::notes(&object, &spec, settings);
        said.conditions.extend(notes::deprecated_condition(&notes));
    }
    said.into_report()
}

/// Builds `status.linkedResources`. As in KAOS, the ModelAPI has the key `modelapi` and the MemoryStore has the key
/// `memorystore`. The key of an MCP server or a peer consists of its kind and its name, such as `agent/NAME`.
fn resources(linked: &Linked, memory: &Remembering) -> Value {
    let mut all = Map::new();
    if let Some(api) = &linked.model_api {
        all.insert("modelapi".into(), api.name.as_str().into());
    }
    if let Some(store) = &memory.store {
        all.insert("memorystore".into(), store.as_str().into());
    }
    for server in &linked.servers {
        all.insert(format!("mcpserver/{}", server.name), server.name.as_str().into());
    }
    for peer in &linked.peers {
        all.insert(format!("agent/{}", peer.name), peer.name.as_str().into());
    }
    Value::Object(all)
}

/// Builds the condition `PeersResolved` of an Agent with peers.
fn peers_resolved(links: &Links<'_>, absent: &[Note]) -> Option<Condition> {
    const RESOLVED: &str = "PeersResolved";
    let first = absent.first();
    match (links.peers.is_empty(), first) {
        (true, _) => None,
        (false, None) => Some(condition::yes(RESOLVED, "Resolved", "every peer has an endpoint")),
        (false, Some(first)) => {
            let messages: Vec<&str> = absent.iter().map(|note| note.message.as_str()).collect();
            Some(condition::no(RESOLVED, &first.reason, messages.join("; ")))
        }
    }
}
