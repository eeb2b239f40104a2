//! The actions of users during the simulation, and the objects that these users want at the end.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use kaos_cluster::{Controller, PodFate};
use kaos_tests::gadget::{Edition, gadget};
use kaos_tests::harness::World;
use kaos_tests::harness::definitions::definitions;
use kaos_tests::harness::samples::{agent, config_map, deployment, mcp_server, namespace};
use kaos_tests::harness::whims::{model, pick, some};
use serde_json::{Value, json};

const MODELS: [&str; 2] = ["llm", "gpt"];
const TOOLS: [&str; 2] = ["echo", "calc"];
const AGENTS: [&str; 3] = ["boss", "worker", "helper"];
const GADGETS: [&str; 3] = ["web", "net", "box"];
const CHILDREN: [&str; 12] = [
    "Deployment/modelapi-llm",
    "Service/modelapi-llm",
    "Deployment/mcpserver-echo",
    "Service/mcpserver-calc",
    "Deployment/agent-boss",
    "Service/agent-worker",
    "Deployment/agent-helper",
    "Deployment/web",
    "Service/web",
    "ConfigMap/web",
    "Secret/net",
    "ServiceAccount/box",
];
/// The CustomResourceDefinitions that the simulated users delete and create again.
const DEFINITIONS: [&str; 4] =
    ["agents.kaos.tools", "modelapis.kaos.tools", "mcpservers.kaos.tools", "gadgets.test.example.com"];
/// The controllers that the simulation makes slow at times.
const LATE: [Controller; 2] = [Controller::Garbage, Controller::Deployments];
/// Names of children. Other clients can create objects with these names before the operator creates the children.
const COVETED: [&str; 3] = ["agent-helper", "modelapi-gpt", "net"];

fn tool(rng: &mut Rng, name: &str, sane: bool) -> Value {
    let mut tool = mcp_server(name);
    tool["spec"]["params"] = json!(format!("def f() -> int:\n    return {}\n", rng.u8(..3)));
    if !sane && rng.u8(..4) == 0 {
        tool["spec"]["runtime"] = json!("unheard-of");
    }
    tool
}

fn worker(rng: &mut Rng, name: &str, (models, tools, peers): (&[&str], &[&str], &[&str]), sane: bool) -> Value {
    let others: Vec<&str> = peers.iter().copied().filter(|peer| *peer != name).collect();
    let mut more = json!({"mcpServers": some(rng, tools), "agentNetwork": {"access": some(rng, &others)}});
    match rng.u8(..6) {
        0 => more["replicas"] = json!(rng.u8(1..4)),
        1 => more["config"] = json!({"instructions": format!("be {}", rng.u8(..3))}),
        2 => more["agentNetwork"]["expose"] = json!(false),
        3 => more["waitForDependencies"] = json!(false),
        4 if !sane => more["model"] = json!("none-such"),
        5 if !sane => more["modelAPI"] = json!("nobody"),
        _ => {}
    }
    agent(name, pick(rng, models), &more)
}

fn widget(rng: &mut Rng, name: &str, sane: bool) -> Value {
    let mut spec = json!({"image": format!("registry.example/gadget:{}", rng.u8(..3)), "config": {"a": rng.u8(..3).to_string()},
        "secret": {"k": rng.u8(..3).to_string()}, "labels": {"team": rng.u8(..3).to_string()}});
    match rng.u8(..7) {
        0 => spec["leaveOut"] = json!(some(rng, &["Service", "Secret", "ConfigMap", "Deployment"])),
        1 => spec["chain"] = json!("first"),
        2 if name != "web" => spec["after"] = json!("web"),
        3 => spec["follows"] = json!(true),
        4 if !sane => spec["does"] = json!(pick(rng, &["refuse", "give-up", "trap", "stray"])),
        5 if !sane => spec["port"] = json!(70_000),
        _ => {}
    }
    gadget(name, &spec)
}

/// Performs one random action of a user. Returns a description of the action.
pub(crate) async fn act(w: &World, rng: &mut Rng) -> String {
    if rng.u8(..24) == 0 {
        return upheaval(w, rng).await;
    }
    match rng.u8(..24) {
        0..4 => {
            let name = pick(rng, &AGENTS);
            apply(w, &worker(rng, name, (&MODELS, &TOOLS, &AGENTS), false)).await
        }
        4..6 => {
            let name = pick(rng, &MODELS);
            apply(w, &model(rng, name, false)).await
        }
        6..8 => {
            let name = pick(rng, &TOOLS);
            apply(w, &tool(rng, name, false)).await
        }
        8..11 => {
            let name = pick(rng, &GADGETS);
            apply(w, &widget(rng, name, false)).await
        }
        11 => apply(w, &config_map("first", &json!({"next": pick(rng, &["second", "third"])}))).await,
        12 => apply(w, &config_map("second", &json!({"value": rng.u8(..3).to_string()}))).await,
        13..15 => {
            let at = format!("Agent/{}", pick(rng, &AGENTS));
            delete(w, &at).await
        }
        15 => {
            let at = pick(rng, &["ModelAPI/llm", "ModelAPI/gpt", "MCPServer/echo", "ConfigMap/first"]);
            delete(w, at).await
        }
        16 => {
            let at = format!("Gadget/{}", pick(rng, &GADGETS));
            delete(w, &at).await
        }
        17 => delete(w, pick(rng, &CHILDREN)).await,
        18..20 => meddle(w, rng).await,
        20 => {
            let name = pick(rng, &COVETED);
            if w.look(&format!("Deployment/{name}")).await.is_null() {
                apply(w, &deployment(name, "stranger:1")).await
            } else {
                "nothing".to_owned()
            }
        }
        21 => {
            let (deployment, fate) = (pick(rng, &["modelapi-llm", "mcpserver-echo", "agent-boss", "web"]), fate(rng));
            w.pods_of(deployment, fate);
            format!("pods of {deployment}: {fate:?}")
        }
        22 => match rng.u8(..4) {
            0 => {
                w.embedded().cut_watches();
                "every watch is cut".to_owned()
            }
            1 => {
                w.embedded().compact();
                "old revisions are forgotten".to_owned()
            }
            _ => {
                let controller = pick(rng, &LATE);
                let away = rng.bool();
                if away {
                    w.embedded().send_away(controller);
                } else {
                    w.embedded().call_back(controller);
                }
                format!("the controller of {controller:?} {}", if away { "is away" } else { "is there" })
            }
        },
        _ => {
            let edition = if rng.bool() { Edition::First } else { Edition::Second };
            w.swap(edition);
            format!("the policy of Gadgets is the {edition:?}")
        }
    }
}

/// Deletes a CustomResourceDefinition or the namespace, or creates it again if it is missing.
async fn upheaval(w: &World, rng: &mut Rng) -> String {
    let name = pick(rng, &DEFINITIONS);
    let (at, object) = if rng.u8(..3) == 0 {
        (format!("Namespace/{}", w.namespace), namespace(&w.namespace))
    } else {
        (format!("CustomResourceDefinition/{name}"), definition(name))
    };
    if w.look(&at).await.is_null() { apply(w, &object).await } else { delete(w, &at).await }
}

/// Creates missing CustomResourceDefinitions and the missing namespace again. Skips objects that the cluster is still
/// deleting.
async fn restore_ground(w: &World) {
    for name in DEFINITIONS {
        if w.look(&format!("CustomResourceDefinition/{name}")).await.is_null() {
            apply(w, &definition(name)).await;
        }
    }
    if w.look(&format!("Namespace/{}", w.namespace)).await.is_null() {
        apply(w, &namespace(&w.namespace)).await;
    }
}

fn definition(name: &str) -> Value {
    let mut all = definitions().unwrap_or_default().into_iter();
    all.find(|definition| definition["metadata"]["name"] == *name).unwrap_or_default()
}

fn fate(rng: &mut Rng) -> PodFate {
    match rng.u8(..4) {
        0 => PodFate::NotReady,
        1 => PodFate::ImagePullBackOff,
        _ => PodFate::ReadyAfter(Duration::from_secs(rng.u64(..20))),
    }
}

/// Changes a field of a child, as a client that is neither a user nor the operator.
async fn meddle(w: &World, rng: &mut Rng) -> String {
    let at = pick(rng, &CHILDREN);
    let kind = at.split('/').next().unwrap_or_default();
    let label = json!({"metadata": {"labels": {"app.kubernetes.io/managed-by": null}}});
    let patch = match kind {
        _ if rng.u8(..4) == 0 => label,
        "Deployment" => json!({"spec": {"template": {"metadata": {"annotations": {"kaos.tools/pod-spec-hash": "x"}}}}}),
        "ConfigMap" => json!({"data": {"a": "meddled"}}),
        "Secret" => json!({"data": {"k": "bWVkZGxlZA=="}}),
        "Service" => json!({"spec": {"selector": {"gadget": "meddled"}}}),
        _ => json!({"metadata": {"ownerReferences": null}}),
    };
    let said = if w.try_patch(at, &patch).await.is_ok() { "" } else { " (refused)" };
    format!("somebody changes {at}: {patch}{said}")
}

async fn apply(w: &World, object: &Value) -> String {
    let mut text =
        format!("apply {}/{} {}", object["kind"], object["metadata"]["name"], object["spec"]).replace('"', "");
    text.truncate(text.floor_char_boundary(300));
    match w.try_apply(object).await {
        Ok(_) => text,
        Err(error) => format!("{text} (refused: {error})"),
    }
}

async fn delete(w: &World, at: &str) -> String {
    w.delete(at).await;
    format!("delete {at}")
}

/// The objects that users want at the end of the run. All of these objects are valid, so the final state does not
/// depend on earlier actions.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) objects: Vec<Value>,
    pub(crate) edition: Edition,
}

impl Ending {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let mut objects = vec![
            config_map("first", &json!({"next": "second"})),
            config_map("second", &json!({"value": rng.u8(..3).to_string()})),
        ];
        let models = if rng.bool() { &MODELS[..] } else { &MODELS[..1] };
        objects.extend(models.iter().map(|name| model(rng, name, true)));
        let tools = some(rng, &TOOLS);
        objects.extend(tools.iter().map(|name| tool(rng, name, true)));
        let agents = some(rng, &AGENTS);
        objects.extend(agents.iter().map(|name| worker(rng, name, (models, &tools, &agents), true)));
        objects.push(widget(rng, "web", true));
        objects.extend(some(rng, &GADGETS[1..]).iter().map(|name| widget(rng, name, true)));
        Self { objects, edition: if rng.bool() { Edition::First } else { Edition::Second } }
    }

    fn names(&self) -> BTreeSet<String> {
        let name = |object: &Value| format!("{}/{}", object["kind"], object["metadata"]["name"]).replace('"', "");
        self.objects.iter().map(name).collect()
    }

    /// Applies the wanted objects, and waits until the cluster has stored them.
    pub(crate) async fn bring_about(&self, w: &World) -> Result<(), String> {
        let wanted = self.names();
        let all = [("ModelAPI", &MODELS[..]), ("MCPServer", &TOOLS), ("Agent", &AGENTS), ("Gadget", &GADGETS)];
        let pool = all.iter().flat_map(|(kind, names)| names.iter().map(move |name| format!("{kind}/{name}")));
        let pool: Vec<String> = pool.collect();
        w.swap(self.edition);
        for controller in LATE {
            w.embedded().call_back(controller);
        }
        w.pods(PodFate::ReadyAfter(Duration::from_secs(2)));
        for at in CHILDREN.iter().filter_map(|at| at.strip_prefix("Deployment/")) {
            w.embedded().set_pods_of(&w.namespace, at, None);
        }
        for name in COVETED {
            let at = format!("Deployment/{name}");
            if w.look(&at).await["metadata"]["labels"]["app.kubernetes.io/managed-by"].is_null() {
                w.delete(&at).await;
            }
        }
        let mut missing = Vec::new();
        for _ in 0..30 {
            for at in pool.iter().filter(|at| !wanted.contains(*at)) {
                w.delete(at).await;
            }
            missing.clear();
            restore_ground(w).await;
            for object in &self.objects {
                // If an apply fails, try again later: a CustomResourceDefinition or the namespace may still be missing.
                if let Err(error) = w.try_apply(object).await {
                    missing.push(format!("{} is refused: {error}", object["metadata"]["name"]));
                }
            }
            w.pass_time(Duration::from_mins(1)).await;
            for at in &wanted {
                let now = w.look(at).await;
                if now.is_null() || !now["metadata"]["deletionTimestamp"].is_null() {
                    missing.push(at.clone());
                }
            }
            if missing.is_empty() {
                return Ok(());
            }
        }
        Err(format!("after many tries, these objects are missing or still being deleted: {missing:?}"))
    }
}
