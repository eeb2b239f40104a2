//! Checks the fields of an `Agent`, and gives deprecated fields their current meaning.

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_crds::agent::{Memory, MemoryType, ReadScope};
use kaos_crds::{AgentSpec, defaults};
use kaos_policy_sdk::names::is_dns1123_subdomain;
use kaos_policy_sdk::quote::shown;
use kaos_policy_sdk::types::Note;
use kaos_policy_sdk::{Violations, note};
use kaos_workload::models;
use kaos_workload::notes::{deprecated, older, older_env};

use crate::memory::ENDPOINT;
use crate::settings::LocalMemorySettings;

/// Collects all violations that the policy finds without other objects.
pub(crate) fn check(spec: &AgentSpec, wrong: &mut Violations) {
    names(spec, wrong);
    numbers(spec, wrong);
    // Treat a variable with `valueFrom` as set, because the policy does not know its value.
    let is_given = spec.model().is_some_and(|model| !models::is_blank(model));
    if !is_given && spec.older_model().is_none_or(|variable| variable.value_from.is_none()) {
        wrong.add("spec.model", "is required: name a model that the ModelAPI offers");
    }
    if let Some(memory) = spec.config.as_ref().and_then(|config| config.memory.as_ref()) {
        remembering(spec, memory, wrong);
    }
}

/// Checks that the memory fields do not contradict each other.
fn remembering(spec: &AgentSpec, memory: &Memory, wrong: &mut Violations) {
    let mut wrong = |field: &str, message: &str| wrong.add(format!("spec.config.memory.{field}"), message);
    if memory.effective_type() == MemoryType::Remote {
        let mut own = spec.container.iter().flat_map(|container| &container.env);
        match memory.memory_store.as_deref() {
            Some(name) if !is_dns1123_subdomain(name) => {
                wrong("memoryStore", "is not a valid object name: use lower-case letters, digits, `-` and `.`");
            }
            None if !own.any(|variable| variable.name == ENDPOINT) => wrong(
                "type",
                "type 'remote' requires memoryStore to be set: name a MemoryStore, use type local, or set the variable \
                 MEMORY_STORE_ENDPOINT of spec.container.env to the address of another store",
            ),
            _ => {}
        }
        return;
    }
    if memory.memory_store.is_some() {
        wrong("memoryStore", "type 'local' must not set memoryStore: remove `memoryStore`, or use type remote");
    }
    if memory.tools.is_some() {
        wrong("tools", "tools requires memoryStore to be set: remove `tools`, or set `memoryStore` and type remote");
    }
    if memory.max_read_scope.is_some_and(|scope| scope != ReadScope::Session) {
        let message = "non-session maxReadScope requires memoryStore to be set: use `maxReadScope: session`, or set \
            `memoryStore` and type remote";
        wrong("maxReadScope", message);
    }
}

fn names(spec: &AgentSpec, wrong: &mut Violations) {
    let mut name = |path: String, name: &str| {
        if !is_dns1123_subdomain(name) {
            wrong.add(
                path,
                format!(
                    "`{name}` is not a valid object name: use lower-case letters, digits, `-` and `.`",
                    name = shown(name, 40)
                ),
            );
        }
    };
    name("spec.modelAPI".to_owned(), &spec.model_api);
    for (index, server) in spec.mcp_servers.iter().enumerate() {
        name(format!("spec.mcpServers[{index}]"), server);
    }
}

fn numbers(spec: &AgentSpec, wrong: &mut Violations) {
    let mut within = |path: &str, value: Option<i32>, min: i32, max: i32| {
        if value.is_some_and(|value| value < min || value > max) {
            wrong.add(path, format!("must be between {min} and {max}", min = i64::from(min), max = i64::from(max)));
        }
    };
    within("spec.replicas", spec.replicas, 0, i32::MAX);
    let Some(config) = &spec.config else { return };
    within("spec.config.reasoningLoopMaxSteps", config.reasoning_loop_max_steps, 1, 20);
    if let Some(older) = &config.agentic_loop {
        within("spec.config.agenticLoop.maxSteps", older.max_steps, 1, 20);
    }
    if let Some(memory) = &config.memory {
        within("spec.config.memory.contextLimit", Some(memory.context_limit), 1, 100);
        within("spec.config.memory.maxSessions", Some(memory.max_sessions), 1, 100_000);
        within("spec.config.memory.maxSessionEvents", Some(memory.max_session_events), 1, 10_000);
        let budget = memory.client_params.as_ref().and_then(|params| params.token_budget);
        within("spec.config.memory.clientParams.tokenBudget", budget, 0, i32::MAX);
    }
    if let Some(own) = &config.autonomous {
        within("spec.config.autonomous.intervalSeconds", own.interval_seconds, 0, 3600);
        within("spec.config.autonomous.maxIterRuntimeSeconds", own.max_iter_runtime_seconds, 0, 86_400);
    }
    if let Some(task) = &config.task_config {
        within("spec.config.taskConfig.maxIterations", task.max_iterations, 0, 1000);
        within("spec.config.taskConfig.maxRuntimeSeconds", task.max_runtime_seconds, 0, 86_400);
        within("spec.config.taskConfig.maxToolCalls", task.max_tool_calls, 0, 10_000);
    }
}

/// Returns a note for each limit of local memory that has no effect because of a setting. The API server stores the
/// defaults of the limits in each object. So a limit with its default value gets no note, because the user probably did
/// not set it.
pub(crate) fn unused_limits(spec: &AgentSpec, settings: &LocalMemorySettings) -> Vec<Note> {
    let memory = spec.config.as_ref().and_then(|config| config.memory.as_ref());
    let Some(memory) = memory.filter(|memory| !settings.limits && memory.effective_type() == MemoryType::Local) else {
        return Vec::new();
    };
    let limits = [
        ("contextLimit", "MEMORY_CONTEXT_LIMIT", memory.context_limit, defaults::MEMORY_CONTEXT_LIMIT),
        ("maxSessions", "MEMORY_MAX_SESSIONS", memory.max_sessions, defaults::MEMORY_MAX_SESSIONS),
        (
            "maxSessionEvents",
            "MEMORY_MAX_SESSION_EVENTS",
            memory.max_session_events,
            defaults::MEMORY_MAX_SESSION_EVENTS,
        ),
    ];
    let set = limits.into_iter().filter(|(_, _, value, usual)| value != usual);
    set.map(|(field, variable, ..)| {
        let message = format!(
            "{field} has no effect, because the setting memory.local.limits is false: set {variable} in \
             spec.container.env, or set the setting to true"
        );
        note::at(format!("spec.config.memory.{field}"), note::warning("Unused", message))
    })
    .collect()
}

/// The MCP servers and the peers, sorted and without duplicates. The peers do not include the Agent itself.
pub(crate) struct Links<'a> {
    pub(crate) servers: Vec<&'a str>,
    pub(crate) peers: Vec<&'a str>,
    /// Whether the Agent's list of peers contains the Agent itself.
    pub(crate) itself: bool,
}

impl<'a> Links<'a> {
    pub(crate) fn of(spec: &'a AgentSpec, name: &str) -> Self {
        let access = spec.agent_network.as_ref().map(|network| network.access.as_slice()).unwrap_or_default();
        let mut peers = each_once(access.iter());
        let itself = peers.contains(&name);
        peers.retain(|peer| *peer != name);
        Self { servers: each_once(spec.mcp_servers.iter()), peers, itself }
    }
}

fn each_once<'a>(names: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut sorted: Vec<&str> = Vec::new();
    for name in names {
        if let Err(at) = sorted.binary_search(&name.as_str()) {
            sorted.insert(at, name);
        }
    }
    sorted
}

/// Returns the notes on deprecated fields.
pub(crate) fn older_fields(spec: &AgentSpec) -> Vec<Note> {
    let mut notes = Vec::new();
    let container = spec.container.as_ref();
    if spec.resources.is_some() {
        let is_newer = container.is_some_and(|own| own.resources.is_some());
        notes.push(older("spec.resources", "spec.container.resources", is_newer));
    }
    let Some(config) = &spec.config else { return notes };
    let newer = container.map_or(&[][..], |own| &own.env).iter().map(|variable| variable.name.as_str());
    let names = config.env.iter().map(|variable| variable.name.as_str());
    notes.extend(older_env("spec.config.env", names, "spec.container.env", newer));
    if spec.own_model().is_none() && spec.older_model().is_some() {
        notes.push(deprecated("spec.config.env[MODEL_NAME]", Some("spec.model")));
    }
    let Some(older_loop) = &config.agentic_loop else { return notes };
    if older_loop.max_steps.is_some() {
        let is_newer = config.reasoning_loop_max_steps.is_some();
        notes.push(older("spec.config.agenticLoop.maxSteps", "spec.config.reasoningLoopMaxSteps", is_newer));
    }
    if older_loop.enable_tools.is_some() {
        notes.push(deprecated("spec.config.agenticLoop.enableTools", None));
    }
    if older_loop.enable_delegation.is_some() {
        notes.push(deprecated("spec.config.agenticLoop.enableDelegation", None));
    }
    notes
}

/// Returns a note if the model is a pattern or a provider. An Agent asks its ModelAPI for one model, so a pattern is
/// probably a mistake.
pub(crate) fn unlikely(spec: &AgentSpec) -> Option<Note> {
    let model = spec.own_model().filter(|model| model.ends_with('*') || model.ends_with('/'))?;
    let message = format!(
        "`{model}` is a pattern or a provider, and probably not a model: name one model that the ModelAPI offers",
        model = shown(model, 100)
    );
    Some(note::at("spec.model", note::warning(models::UNLIKELY, message)))
}

/// Returns the note on an Agent that lists itself as a peer.
pub(crate) fn self_reference() -> Note {
    let message =
        "an Agent cannot be its own peer: the policy ignores the entry with the Agent's own name; remove this entry";
    note::at("spec.agentNetwork.access", note::info("SelfReference", message))
}
