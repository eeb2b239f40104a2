//! The users in the chaos suite: their actions during the run, and the objects that they want at the end.

use std::time::Duration;

use fastrand::Rng;
use kaos_tests::harness::World;
use kaos_tests::harness::read::controller;
use kaos_tests::harness::samples::{agent, config_map, deployment, mcp_server};
use kaos_tests::harness::whims::{model, pick, some};
use serde_json::{Value, json};
use tokio::time::sleep;

const MODELS: [&str; 2] = ["llm", "gpt"];
const TOOLS: [&str; 2] = ["echo", "calc"];
const AGENTS: [&str; 4] = ["boss", "worker", "helper", "clerk"];
const CHILDREN: [&str; 8] = [
    "Deployment/modelapi-llm",
    "ConfigMap/litellm-config-llm",
    "Service/modelapi-gpt",
    "Deployment/mcpserver-echo",
    "Service/mcpserver-calc",
    "Deployment/agent-boss",
    "Service/agent-worker",
    "Deployment/agent-helper",
];
/// The key of a child. Another client can create an object with this key before the operator creates the child.
const COVETED: &str = "Deployment/agent-clerk";

fn tool(rng: &mut Rng, name: &str) -> Value {
    let mut tool = mcp_server(name);
    tool["spec"]["params"] = json!(format!("def f() -> int:\n    return {}\n", rng.u8(..3)));
    tool
}

fn worker(rng: &mut Rng, name: &str, (models, tools, peers): (&[&str], &[&str], &[&str]), sane: bool) -> Value {
    let others: Vec<&str> = peers.iter().copied().filter(|peer| *peer != name).collect();
    let mut more = json!({"mcpServers": some(rng, tools), "agentNetwork": {"access": some(rng, &others)},
        "config": {"instructions": format!("be {}", rng.u8(..3))}});
    match rng.u8(..6) {
        0 => more["replicas"] = json!(rng.u8(1..4)),
        1 => more["agentNetwork"]["expose"] = json!(false),
        2 => more["waitForDependencies"] = json!(false),
        3 if !sane => more["model"] = json!("none-such"),
        4 if !sane => more["modelAPI"] = json!("nobody"),
        _ => {}
    }
    agent(name, pick(rng, models), &more)
}

/// Performs one random action. Returns a description of the action.
pub(crate) async fn act(w: &World, rng: &mut Rng) -> String {
    match rng.u8(..16) {
        0..5 => {
            let name = pick(rng, &AGENTS);
            let worker = worker(rng, name, (&MODELS, &TOOLS, &AGENTS), false);
            apply(w, &worker).await
        }
        5..7 => {
            let name = pick(rng, &MODELS);
            let model = model(rng, name, false);
            apply(w, &model).await
        }
        7 => {
            let name = pick(rng, &TOOLS);
            let tool = tool(rng, name);
            apply(w, &tool).await
        }
        8..10 => delete(w, &format!("Agent/{}", pick(rng, &AGENTS))).await,
        10 => delete(w, pick(rng, &["ModelAPI/llm", "ModelAPI/gpt", "MCPServer/echo", "MCPServer/calc"])).await,
        11..13 => delete(w, pick(rng, &CHILDREN)).await,
        13 => match w.try_look(COVETED).await {
            Ok(Value::Null) => apply(w, &deployment("agent-clerk", "registry.example/stranger:1")).await,
            _ => "nothing".to_owned(),
        },
        _ => meddle(w, rng).await,
    }
}

/// Changes a field of a child, as a client that is neither a user nor the operator.
async fn meddle(w: &World, rng: &mut Rng) -> String {
    let at = pick(rng, &CHILDREN);
    let patch = match at.split('/').next().unwrap_or_default() {
        _ if rng.u8(..4) == 0 => json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}}),
        "Deployment" => json!({"spec": {"template": {"metadata": {"annotations": {"kaos.tools/pod-spec-hash": "x"}}}}}),
        "ConfigMap" => json!({"data": {"config.yaml": "meddled"}}),
        _ => json!({"spec": {"selector": {"stranger": "meddled"}}}),
    };
    let said = w.try_patch(at, &patch).await.map_or_else(|error| format!(" ({error})"), |_| String::new());
    format!("somebody changes {at}: {patch}{said}")
}

async fn apply(w: &World, object: &Value) -> String {
    let text = format!("apply {}/{} {}", object["kind"], object["metadata"]["name"], object["spec"]).replace('"', "");
    let said = w.try_apply(object).await.map_or_else(|error| format!(" ({error})"), |_| String::new());
    text + &said
}

async fn delete(w: &World, at: &str) -> String {
    let said = w.try_delete(at).await.map_or_else(|error| format!(" ({error})"), |()| String::new());
    format!("delete {at}{said}")
}

/// Creates objects that look like the operator's children, but belong to another client. Returns the key and the
/// resource version of each object.
pub(crate) async fn strangers(w: &World) -> Vec<(String, Value)> {
    let label = json!({"app.kubernetes.io/managed-by": "kaos-operator"});
    let mut strangers = Vec::new();
    for (name, more) in [
        ("plain", json!({})),
        ("labelled", json!({"labels": label})),
        ("alike", json!({"labels": label, "annotations": {"kaos.tools/applied-digest": "sha256:0"}})),
    ] {
        let mut map = config_map(&format!("stranger-{name}"), &json!({"a": "b"}));
        map["metadata"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let version = w.apply(&map).await["metadata"]["resourceVersion"].clone();
        strangers.push((format!("ConfigMap/stranger-{name}"), version));
    }
    strangers
}

/// The objects that users want at the end of the run. All of these objects are valid, so the final state does not
/// depend on earlier actions.
pub(crate) struct Ending(Vec<Value>);

impl Ending {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let models = if rng.bool() { &MODELS[..] } else { &MODELS[..1] };
        let mut objects: Vec<Value> = models.iter().map(|name| model(rng, name, true)).collect();
        let (tools, agents) = (some(rng, &TOOLS), some(rng, &AGENTS));
        objects.extend(tools.iter().map(|name| tool(rng, name)));
        objects.extend(agents.iter().map(|name| worker(rng, name, (models, &tools, &agents), true)));
        Self(objects)
    }

    /// Returns the keys of the wanted objects.
    pub(crate) fn names(&self) -> Vec<String> {
        self.0.iter().map(at).collect()
    }

    /// Applies the wanted objects, and deletes all other objects.
    pub(crate) async fn ask_for(&self, w: &World) {
        if controller(&w.look(COVETED).await).is_null() {
            w.delete(COVETED).await;
        }
        let wanted = self.names();
        let pools = [("Agent", &AGENTS[..]), ("ModelAPI", &MODELS), ("MCPServer", &TOOLS)];
        let pool = pools.iter().flat_map(|(kind, names)| names.iter().map(move |name| format!("{kind}/{name}")));
        for unwanted in pool.filter(|at| !wanted.contains(at)) {
            w.delete(&unwanted).await;
        }
        for object in &self.0 {
            // If an object is being deleted, wait until the object is gone.
            while !w.look(&at(object)).await["metadata"]["deletionTimestamp"].is_null() {
                sleep(Duration::from_millis(100)).await;
            }
            w.apply(object).await;
        }
    }

    /// Deletes the wanted objects.
    pub(crate) async fn take_away(&self, w: &World) {
        for name in self.names() {
            w.delete(&name).await;
        }
        for kind in ["Deployment", "Service", "ReplicaSet", "Pod"] {
            w.until_true("the children are gone", async || w.list(kind).await.is_empty()).await;
        }
    }
}

/// Returns the key of an object, `Kind/name`.
fn at(object: &Value) -> String {
    format!("{}/{}", object["kind"], object["metadata"]["name"]).replace('"', "")
}
