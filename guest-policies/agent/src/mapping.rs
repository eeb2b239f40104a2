//! Maps the variables of an Agent, in the order in which KAOS sets them.
//!
//! By default, the user's variables come after the variables with the instructions and the system prompt. With the
//! setting `userVariables: merged`, all variables have the order that a strategic merge patch would give them. If the
//! policy and the user set a variable of the same name, the user's value wins.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use kaos_crds::agent::{Config, Memory, MemoryType, ReadScope, ToolCallMode};
use kaos_policy_sdk::env::{ContainerEnv, Env};
use kaos_policy_sdk::types::{EnvVar, Refusal, Subject};
use kaos_policy_sdk::{Object, Violations};
use kaos_workload::Workload;
use serde_json::Value;

use crate::account;
use crate::linked::Link;
use crate::memory::{ENDPOINT, named_store, word};
use crate::request::{KIND, Request, workload};
use crate::settings::{AgentIdentity, UserVariables};

/// Returns the mapping of `subject`. `base` is the mapping of the layer below. For the lowest layer, `base` is empty.
pub(crate) fn map(subject: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
    let request = Request::of(subject)?;
    let workload = workload(&request.object, subject);
    let settings = &request.settings;
    let spec = &request.spec;
    let config = spec.config.as_ref();
    let mut all = Env::over(base);
    let mut env = all.container(KIND.container);

    env.set("AGENT_NAME", workload.name, "metadata.name");
    if let Some(config) = config {
        env.set_some("AGENT_DESCRIPTION", config.description.as_deref(), "spec.config.description")
            .set_some("AGENT_INSTRUCTIONS", config.instructions.as_deref(), "spec.config.instructions")
            .set_some("AGENT_SYSTEM_PROMPT", config.system_prompt.as_deref(), "spec.config.systemPrompt");
    }
    if settings.user_variables == UserVariables::Instructions {
        users(&mut env, &request.object)?;
    }
    if let Some(api) = &request.linked.model_api {
        env.set("MODEL_API_URL", &api.endpoint, &api.origin);
    }
    env.set_some("MODEL_NAME", spec.model(), "spec.model");
    if let Some(config) = config {
        reasoning(&mut env, config);
        if let Some(memory) = &config.memory {
            remembering(&mut env, memory, request);
        }
    }
    identity(&mut env, request, &workload);
    if settings.debug_memory_endpoints {
        env.set("AGENT_DEBUG_MEMORY_ENDPOINTS", "true", "settings.debugMemoryEndpoints");
    }
    if let Some(config) = config {
        working_alone(&mut env, config);
    }
    tools(&mut env, &request.linked.servers);
    peers(&mut env, &request.linked.peers);
    request.telemetry().set_env(&mut env, &workload, &settings.telemetry.excluded_urls);
    env.set_some("LOG_LEVEL", Some(&settings.log_level), "settings.logLevel");
    if let (Some(harness), Some(runtime)) = (&spec.harness, &request.harness) {
        runtime.set_env(&mut all, KIND.container, harness, &settings.harness);
    }
    if settings.service_account.enabled {
        let mut env = all.container(KIND.container);
        account::set_env(&mut env, &identity_of(&workload), &settings.service_account);
    }
    if settings.user_variables == UserVariables::Instructions {
        return Ok(all.into_vars());
    }
    let mut own = Env::over(Vec::new());
    users(&mut own.container(KIND.container), &request.object)?;
    Ok(merged(all.into_vars(), own.into_vars()))
}

/// Merges the user's variables in the order of a strategic merge patch. The user's variables keep their relative order,
/// and so do the variables that only the policy sets. A variable that the policy also sets comes after the variables
/// that precede it in the policy's order. A variable that only the user sets gets the earliest possible position.
fn merged(ours: Vec<EnvVar>, users: Vec<EnvVar>) -> Vec<EnvVar> {
    let (here, elsewhere): (Vec<EnvVar>, Vec<EnvVar>) =
        ours.into_iter().partition(|variable| variable.container == KIND.container);
    let order: Vec<String> = here.iter().map(|variable| variable.name.clone()).collect();
    let place = |variable: &EnvVar| order.iter().position(|name| *name == variable.name);
    let is_kept = |variable: &EnvVar| users.iter().all(|own| own.name != variable.name);
    let mut kept = here.into_iter().filter(is_kept).collect::<Vec<_>>().into_iter().peekable();
    let mut all = Vec::with_capacity(order.len() + users.len() + elsewhere.len());
    for own in users {
        if let Some(at) = place(&own) {
            while let Some(earlier) = kept.next_if(|variable| place(variable).is_some_and(|it| it < at)) {
                all.push(earlier);
            }
        }
        all.push(own);
    }
    all.extend(kept);
    all.extend(elsewhere);
    all
}

/// Adds the user's variables. The deprecated `spec.config.env` comes first, so that `spec.container.env` wins.
fn users(env: &mut ContainerEnv<'_>, object: &Object) -> Result<(), Refusal> {
    let mut wrong = Violations::new();
    for path in [["spec", "config", "env"], ["spec", "container", "env"]] {
        if let Some(list) = object.at(&path).and_then(Value::as_array) {
            wrong.collect(env.user(list, &path.join(".")).map(|_| ()))?;
        }
    }
    wrong.into_result()
}

/// Sets the variables for reasoning and for tool calls.
fn reasoning(env: &mut ContainerEnv<'_>, config: &Config) {
    let older = config.agentic_loop.as_ref();
    let origin = if config.reasoning_loop_max_steps.is_none() && older.is_some_and(|older| older.max_steps.is_some()) {
        "spec.config.agenticLoop.maxSteps"
    } else {
        "spec.config.reasoningLoopMaxSteps"
    };
    number(env, "AGENTIC_LOOP_MAX_STEPS", Some(config.max_steps()), origin);
    if let Some(older) = older {
        flag(env, "AGENTIC_LOOP_ENABLE_TOOLS", older.enable_tools, "spec.config.agenticLoop.enableTools");
        flag(
            env,
            "AGENTIC_LOOP_ENABLE_DELEGATION",
            older.enable_delegation,
            "spec.config.agenticLoop.enableDelegation",
        );
    }
    env.set_some("TOOL_CALL_MODE", config.tool_call_mode.map(ToolCallMode::as_str), "spec.config.toolCallMode");
}

fn remembering(env: &mut ContainerEnv<'_>, memory: &Memory, request: &Request) {
    let path = |field: &str| format!("spec.config.memory.{field}");
    let (settings, object) = (&request.settings.memory, &request.object);
    let kind = memory.effective_type();
    let security = &request.settings.security;
    let user = security.requires_user(settings.require_principal, "settings.memory.requirePrincipal");
    let agent = security.requires_agent(settings.require_agent_identity, "settings.memory.requireAgentIdentity");
    for (name, origin) in [("MEMORY_REQUIRE_PRINCIPAL", user), ("MEMORY_REQUIRE_AGENT_IDENTITY", agent)] {
        if let Some(origin) = origin {
            env.set(name, "true", origin);
        }
    }
    flag(env, "MEMORY_ENABLED", Some(memory.enabled), &path("enabled"));
    env.set("MEMORY_TYPE", if kind == MemoryType::Local { "local" } else { "remote" }, &path("type"));
    if let Some((endpoint, origin)) = &request.memory.endpoint {
        env.set(ENDPOINT, endpoint, origin);
    }
    if kind == MemoryType::Local && settings.local.limits {
        number(env, "MEMORY_CONTEXT_LIMIT", Some(memory.context_limit), &path("contextLimit"));
        number(env, "MEMORY_MAX_SESSIONS", Some(memory.max_sessions), &path("maxSessions"));
        number(env, "MEMORY_MAX_SESSION_EVENTS", Some(memory.max_session_events), &path("maxSessionEvents"));
    }
    // If neither the Agent nor its MemoryStore sets a scope, the runtime reads only the memories of the session.
    let (scope, origin) =
        request.memory.scope.as_ref().map_or((ReadScope::Session, path("maxReadScope")), Clone::clone);
    if settings.local.scope || request.memory.scope.is_some() || named_store(&request.spec).is_some() {
        env.set("MEMORY_MAX_READ_SCOPE", word(scope), &origin);
    }
    let words = [("MEMORY_TOOLS", "tools"), ("MEMORY_FAILURE_MODE", "failureMode")];
    for (name, field) in words {
        env.set_some(name, object.str_at(&["spec", "config", "memory", field]), &path(field));
    }
    if let Some(params) = &memory.client_params {
        number(env, "MEMORY_SHORT_TERM_TOKEN_BUDGET", params.token_budget, &path("clientParams.tokenBudget"));
        flag(env, "MEMORY_ROLLING_SUMMARY", params.rolling_summary, &path("clientParams.rollingSummary"));
    }
}

/// Sets the variable with the Agent's identity, if the settings require it. The identity contains the namespace,
/// because Agents of other namespaces can have the same name.
fn identity(env: &mut ContainerEnv<'_>, request: &Request, workload: &Workload<'_>) {
    let memory = request.spec.config.as_ref().and_then(|config| config.memory.as_ref());
    let is_told = match request.settings.agent_identity {
        AgentIdentity::Store => named_store(&request.spec).is_some(),
        AgentIdentity::Memory => memory.is_some(),
        AgentIdentity::Always => true,
    };
    if is_told {
        env.set("AGENT_IDENTITY", identity_of(workload), "metadata");
    }
}

fn identity_of(workload: &Workload<'_>) -> String {
    format!("kaos://agent/{}/{}", workload.namespace, workload.name)
}

fn working_alone(env: &mut ContainerEnv<'_>, config: &Config) {
    if let Some(own) = &config.autonomous {
        let goal = own.goal.as_deref().filter(|goal| !goal.trim_ascii().is_empty());
        env.set_some("AUTONOMOUS_GOAL", goal, "spec.config.autonomous.goal");
        number(env, "AUTONOMOUS_INTERVAL_SECONDS", own.interval_seconds, "spec.config.autonomous.intervalSeconds");
        let most = own.max_iter_runtime_seconds;
        number(env, "AUTONOMOUS_MAX_ITER_RUNTIME_SECONDS", most, "spec.config.autonomous.maxIterRuntimeSeconds");
    }
    if let Some(task) = &config.task_config {
        number(env, "TASK_MAX_ITERATIONS", task.max_iterations, "spec.config.taskConfig.maxIterations");
        number(env, "TASK_MAX_RUNTIME_SECONDS", task.max_runtime_seconds, "spec.config.taskConfig.maxRuntimeSeconds");
        number(env, "TASK_MAX_TOOL_CALLS", task.max_tool_calls, "spec.config.taskConfig.maxToolCalls");
    }
}

fn flag(env: &mut ContainerEnv<'_>, name: &str, value: Option<bool>, origin: &str) {
    env.set_some(name, value.map(|value| if value { "true" } else { "false" }), origin);
}

fn number(env: &mut ContainerEnv<'_>, name: &str, value: Option<i32>, origin: &str) {
    env.set_some(name, value.map(|value| i64::from(value).to_string()).as_deref(), origin);
}

/// Sets the names of the MCP servers, and the address of each server. The name of an address variable contains the
/// server's name without any change, as the runtime expects.
fn tools(env: &mut ContainerEnv<'_>, servers: &[Link]) {
    env.set_some("MCP_SERVERS", Some(&names(servers)), "spec.mcpServers");
    for server in servers {
        env.set(&format!("MCP_SERVER_{}_URL", server.name), &server.endpoint, &server.origin);
    }
}

fn peers(env: &mut ContainerEnv<'_>, peers: &[Link]) {
    env.set_some("PEER_AGENTS", Some(&names(peers)), "spec.agentNetwork.access");
    for peer in peers {
        let letter = |c: char| if c == '-' { '_' } else { c.to_ascii_uppercase() };
        let name: String = peer.name.chars().map(letter).collect();
        env.set(&format!("PEER_AGENT_{name}_CARD_URL"), &peer.endpoint, &peer.origin);
    }
}

fn names(links: &[Link]) -> String {
    links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::ToOwned;
    use kaos_policy_sdk::env::literal;

    fn variables(container: &str, names: &str, value: &str) -> Vec<EnvVar> {
        let variable = |name: &str| EnvVar {
            container: container.to_owned(),
            name: name.to_owned(),
            source: literal(value),
            origin: String::new(),
        };
        names.split_whitespace().map(variable).collect()
    }

    #[test]
    fn merged_variables_stand_where_a_strategic_merge_patch_puts_them() {
        let order = |ours: &str, users: &str| -> String {
            let own = variables(KIND.container, users, "theirs");
            let mut policy = variables(KIND.container, ours, "ours");
            policy.extend(variables("clone", "B", "ours"));
            let all = merged(policy, own);
            assert_eq!(
                all.iter().filter(|it| it.source == literal("theirs")).count(),
                users.split_whitespace().count()
            );
            all.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(order("A B C", ""), "A B C B", "the variables of other containers stay");
        assert_eq!(order("A B C", "X Y"), "X Y A B C B");
        assert_eq!(order("A B C", "B X"), "A B X C B");
        assert_eq!(order("A B C", "X B"), "X A B C B");
        assert_eq!(order("A B C", "C A"), "B C A B");
    }
}
