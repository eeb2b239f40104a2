//! Collects the environment variables that the default policies give to pods, with the fields and settings from which
//! the variables' values come. For this, renders the recorded cases and the samples of KAOS 0.8: first as they are, and
//! then with settings that add variables.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use kaos_operator::presets::Preset;
use kaos_policy::contract::ResourceType;
use kaos_policy::policy::Policy;
use kaos_policy::render::Renderer;
use kaos_policy::settings::{Layer, Origin};
use kaos_tests::case;
use kaos_tests::play;
use kaos_tests::policies;
use kaos_tests::stage::{MappedVariable, Stage};
use serde_json::{Value, json};

use crate::page::ROOT;
use crate::sources;

/// A kind, and the name of a variable as the page writes it.
pub(crate) type Row = (String, String);

/// The folders with the code that sets variables.
const CODE: [&str; 5] = [
    "guest-policies/agent/src",
    "guest-policies/mcpserver/src",
    "guest-policies/memorystore/src",
    "guest-policies/modelapi/src",
    "guest-policies/workload/src",
];
/// Variables that the code mentions, but that no policy sets: users set some of them, and the others belong to the
/// compiler.
const OF_OTHERS: [&str; 4] = ["CARGO_PKG_VERSION", "LITELLM_MASTER_KEY", "SLACK_BOT_TOKEN", "SLACK_TEAM_ID"];
/// The variable that the runtime `python-string` reads. The registry names the variables of all other runtimes.
const OF_PYTHON: &str = "MCP_TOOLS_STRING";
/// Variables whose names contain the name of an object. Each entry has the variable's name as the page writes it, the
/// text before the object's name, and the text after the object's name.
const NAMED: [(&str, &str, &str); 2] =
    [("MCP_SERVER_<name>_URL", "MCP_SERVER_", "_URL"), ("PEER_AGENT_<NAME>_CARD_URL", "PEER_AGENT_", "_CARD_URL")];

/// Returns each variable, with the fields and settings from which its value comes.
pub(crate) fn all() -> BTreeMap<Row, BTreeSet<String>> {
    let native = policies::native().unwrap();
    let mut all = BTreeSet::new();
    for preset in ["kaos-0.1", "kaos-0.8"] {
        let layers = Preset::named(preset).unwrap().layers();
        let further = [&layers[..], &adding()].concat();
        let protected = [&layers[..], &protecting()].concat();
        for case in case::all().unwrap() {
            let wanted = case.wanted().unwrap();
            if wanted.get("rejected").is_some() {
                continue;
            }
            for layers in [&layers, &further, &protected] {
                let environment = Layer::env(Origin::Environment, case.environment.clone());
                let layers = [&layers[..], &[environment]].concat();
                let renderers = renderers(&native, &layers);
                all.append(&mut play::play(&case, &wanted, renderers).unwrap().variables);
            }
        }
        for layers in [&further, &protected] {
            all.append(&mut of_samples(layers, &native));
        }
    }
    let mut rows: BTreeMap<Row, BTreeSet<String>> = BTreeMap::new();
    for variable in all {
        if let Some(place) = place(&variable) {
            rows.entry((variable.kind, as_told(&variable.name))).or_default().insert(place);
        }
    }
    rows
}

/// Returns settings that add variables. No recorded case and no preset contains these settings.
fn adding() -> Vec<Layer> {
    let identities = json!({"requirePrincipal": true, "requireAgentIdentity": true});
    let of = [
        ("agent", json!({"serviceAccount": {"enabled": true}, "debugMemoryEndpoints": true, "memory": identities})),
        ("memorystore", identities),
        ("modelapi", json!({"proxyConfig": {"withoutMasterKey": true}})),
    ];
    layers_of("adding", of)
}

/// Returns the settings of a cluster with a decision point, whose Agents call through the Gateway. The setting
/// `security` adds variables to MemoryStores and Agents. With the setting `gatewayRouting`, other variables contain
/// addresses of the Gateway.
fn protecting() -> Vec<Layer> {
    let security = json!({"pdp": true, "strict": true, "users": {"issuer": "https://login.example", "audience": "kaos"},
        "agents": {"issuer": "https://cluster.example", "jwks": "{\"keys\": []}", "audience": "kaos-gateway"}});
    let gateway = json!({"enabled": true, "name": "kaos-gateway", "namespace": "kaos-system"});
    let account = json!({"enabled": true, "audience": "kaos-gateway"});
    let routing = json!({"enabled": true, "host": "gateway.example"});
    let of = [
        (
            "agent",
            json!({"security": security, "gateway": gateway, "serviceAccount": account, "gatewayRouting": routing}),
        ),
        ("mcpserver", json!({"security": security, "gateway": gateway})),
        ("memorystore", json!({"security": security, "gateway": gateway})),
        ("modelapi", json!({"security": security, "gateway": gateway})),
    ];
    layers_of("protecting", of)
}

/// Returns a renderer for each kind, for a cluster that serves SecurityPolicies and NetworkPolicies.
fn renderers(native: &[Arc<Policy>], layers: &[Layer]) -> BTreeMap<String, Renderer> {
    let protecting = [("gateway.envoyproxy.io/v1alpha1", "SecurityPolicy"), ("networking.k8s.io/v1", "NetworkPolicy")];
    let served = protecting.map(|(api_version, kind)| ResourceType::new(api_version, kind));
    policies::renderers_serving(native, layers, &served).unwrap()
}

fn layers_of<const N: usize>(name: &str, of: [(&str, Value); N]) -> Vec<Layer> {
    of.map(|(policy, settings)| Layer::tree(Origin::Preset(name.to_owned()), policy, settings)).into()
}

/// Returns the variables of the samples of KAOS 0.8.
fn of_samples(layers: &[Layer], native: &[Arc<Policy>]) -> BTreeSet<MappedVariable> {
    let folder = case::golden().join("today");
    let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all = BTreeSet::new();
    for file in files.filter(|file| file.extension().is_some_and(|extension| extension == "yaml")) {
        let mut stage = Stage::new(renderers(native, layers));
        let beside = [folder.join("harness-runtimes.yaml"), folder.join("20-model.yaml")];
        for object in beside.iter().chain([&file]).flat_map(|file| case::documents(file).unwrap()) {
            stage.apply(&object);
        }
        stage.settle().unwrap();
        all.append(&mut stage.variables);
    }
    all
}

/// Returns the field or setting from which a variable's value comes, as Markdown.
///
/// `None` for variables of users and of registries.
fn place(variable: &MappedVariable) -> Option<String> {
    let MappedVariable { kind, name, origin } = variable;
    let is_of_registry = kind == "MCPServer" && origin == "spec.params" && name != OF_PYTHON;
    let is_of_user = origin.contains(".env[") || origin.starts_with("spec.podSpec");
    if is_of_user || is_of_registry {
        return None;
    }
    if let Some(setting) = origin.strip_prefix("settings.") {
        return Some(format!("the setting `{setting}`"));
    }
    // Shorten a path: remove the positions in lists, and remove `.value…`, because the page names only the variable's
    // field.
    let path = |text: &str| {
        let text = text.split(".value").next().unwrap_or_default();
        text.split('[').map(|part| part.split_once(']').map_or(part, |(_, rest)| rest)).collect::<String>()
    };
    match origin.split_once(' ') {
        Some((object, rest)) => {
            let kind = object.split('/').next().unwrap_or_default();
            Some(format!("`{}` of the {kind}", path(rest)))
        }
        None => Some(format!("`{}`", path(origin))),
    }
}

/// Returns the variable's name as the page writes it.
pub(crate) fn as_told(name: &str) -> String {
    let is = |(_, before, after): &&(&str, &str, &str)| {
        name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)).is_some_and(|within| !within.is_empty())
    };
    NAMED.iter().find(is).map_or(name, |(told, ..)| told).to_owned()
}

/// Fails if the code of a policy contains the name of a variable that the table lacks.
pub(crate) fn check_sources(told: &BTreeSet<Row>) {
    let names: BTreeSet<&str> = told.iter().map(|(_, name)| name.as_str()).collect();
    let settings = of_settings();
    let mut missing = BTreeSet::new();
    for (file, text) in sources::of(&CODE) {
        for literal in text.split('"') {
            let is_name = |text: &str| {
                text.contains('_')
                    && text.starts_with(|first: char| first.is_ascii_uppercase())
                    && text.chars().all(|it| it.is_ascii_uppercase() || it.is_ascii_digit() || it == '_')
            };
            let name: String =
                literal.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest)).collect();
            let is_known = names.contains(name.as_str())
                || OF_OTHERS.contains(&name.as_str())
                || settings.contains(&name)
                || NAMED.iter().any(|(_, before, after)| format!("{before}{after}") == name);
            if is_name(&name) && !is_known {
                missing.insert((file.clone(), name));
            }
        }
    }
    assert!(missing.is_empty(), "docs/reference/variables.md lacks names that the policies use: {missing:#?}");
}

/// Returns the environment variables of the operator that set settings of policies.
fn of_settings() -> BTreeSet<String> {
    fn collect(schema: &Value, into: &mut BTreeSet<String>) {
        match schema {
            Value::Object(fields) => {
                into.extend(fields.get("x-env").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|field| collect(field, into));
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
            _ => {}
        }
    }
    let mut all = BTreeSet::new();
    for policy in ["agent", "mcpserver", "memorystore", "modelapi"] {
        let file = format!("{ROOT}/guest-policies/{policy}/settings.schema.json");
        collect(&serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap(), &mut all);
    }
    all
}
