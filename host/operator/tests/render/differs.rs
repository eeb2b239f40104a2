//! Checks that `render` predicts the behaviour of a running operator. For each seed, the test generates random objects,
//! pins, namespaces, packages and settings of every layer. It compares the children and statuses that the operator
//! writes with the output of `render` for a dump of the cluster. It also compares the output of `policy plan` for the
//! dump with the output for the cluster.
//!
//! `KAOS_SEED` selects a single seed, and `KAOS_ROUNDS` sets the number of seeds.

use std::{collections::BTreeMap, process::Stdio, time::Duration};

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
    core::GroupVersionKind,
};
use serde_json::{Value, json};

use super::drawn::Drawn;
use crate::{
    stage::Stage,
    support::{Ran, binary, finish},
};

/// The default number of seeds.
const ROUNDS: u64 = 4;
/// The group and the plural of each dumped type.
const DUMPED: [(&str, &str); 7] = [
    ("kaos.tools", "modelapis"),
    ("kaos.tools", "mcpservers"),
    ("kaos.tools", "agents"),
    ("", "configmaps"),
    ("", "services"),
    ("apps", "deployments"),
    ("", "persistentvolumeclaims"),
];

/// An operator process that ends with the test.
struct Process(std::process::Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// A cluster with an operator that has random options of a seed.
struct Play<'a> {
    stage: &'a Stage,
    drawn: &'a Drawn,
    seed: u64,
}

#[tokio::test(flavor = "multi_thread")]
async fn render_predicts_children_and_statuses_of_a_running_operator() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let one = number("KAOS_SEED");
    let seeds = one.map_or(0..number("KAOS_ROUNDS").unwrap_or(ROUNDS), |seed| seed..seed + 1);
    let mut compared = [0_usize; 3];
    for seed in seeds {
        let mut drawn = Drawn::of(seed);
        let stage = Stage::start(&format!("differs-{seed}")).await;
        let blue = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "blue"}});
        stage.cluster.plant("", "namespaces", blue);
        Play { stage: &stage, drawn: &drawn, seed }.apply(&drawn.objects).await;
        let nowhere = ["--metrics-bind-address=0", "--health-probe-bind-address=0", "--debug-bind-address=0"];
        let mut operator = binary();
        operator.args(["run", "--kubeconfig", &stage.kubeconfig]).args(nowhere).args(drawn.arguments(&stage.folder));
        operator.envs(drawn.environment.iter().cloned()).stderr(Stdio::null());
        let _operator = Process(operator.spawn().unwrap());
        for round in 0..2 {
            let play = Play { stage: &stage, drawn: &drawn, seed };
            play.settled().await;
            for (of, count) in compared.iter_mut().zip(play.compare(round).await) {
                *of += count;
            }
            drawn.change();
            Play { stage: &stage, drawn: &drawn, seed }.apply(&drawn.objects).await;
        }
    }
    let [applied, refused, packages] = compared;
    println!("{applied} applied, {refused} not, {packages} packages");
    assert!(one.is_some() || applied > 10 && refused > 5 && packages > 2, "too little was compared: {compared:?}");
}

impl Play<'_> {
    /// Applies objects as a user.
    async fn apply(&self, objects: &[Value]) {
        let client = Client::new(self.stage.cluster.service(), "default");
        for object in objects {
            let text = |field: &Value| field.as_str().unwrap().to_owned();
            let version = text(&object["apiVersion"]);
            let (group, version) = version.split_once('/').unwrap_or(("", &version));
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &text(&object["kind"])));
            let namespace = text(&object["metadata"]["namespace"]);
            let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &namespace, &resource);
            let name = text(&object["metadata"]["name"]);
            let applied = api.patch(&name, &PatchParams::apply("user").force(), &Patch::Apply(object)).await;
            applied.unwrap_or_else(|error| panic!("seed {}: {object}: {error}", self.seed));
        }
    }

    /// Returns all objects of the dumped types.
    fn dump(&self) -> Vec<Value> {
        let all = DUMPED.iter().flat_map(|(group, plural)| self.stage.cluster.objects(group, plural));
        all.map(|object| (*object).clone()).collect()
    }

    fn objects(&self) -> Vec<Value> {
        let mut objects = self.dump();
        objects.retain(|object| object["apiVersion"].as_str().unwrap().starts_with("kaos.tools/"));
        objects
    }

    /// Waits until every object has a current status and the cluster no longer changes.
    async fn settled(&self) {
        let is_told = |object: &Value| object["status"]["observedGeneration"] == object["metadata"]["generation"];
        let is_decided = |revision: &Value| {
            let state = revision["status"]["state"].as_str();
            state.is_some_and(|state| !["Pending", "Checking"].contains(&state))
        };
        let mut before = String::new();
        let mut quiet = 0;
        for _ in 0..600 {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let revisions = self.stage.cluster.objects("kaos.tools", "policyrevisions");
            let versions = |of: &[Value]| of.iter().map(|it| it["metadata"]["resourceVersion"].to_string()).collect();
            let now: Vec<String> = versions(&self.dump());
            let now = format!("{now:?}{}", revisions.iter().map(ToString::to_string).collect::<String>());
            let is_quiet = now == before
                && self.objects().iter().all(is_told)
                && self.drawn.packages().count() <= revisions.len()
                && revisions.iter().all(|revision| is_decided(revision));
            quiet = if is_quiet { quiet + 1 } else { 0 };
            if quiet == 8 {
                return;
            }
            before = now;
        }
        let revisions = self.stage.cluster.objects("kaos.tools", "policyrevisions");
        panic!("seed {}: the cluster does not settle: {:#?}\n{revisions:#?}", self.seed, self.objects());
    }

    fn run(&self, arguments: &[&str], with_settings: bool) -> Ran {
        let mut command = binary();
        command.args(arguments).envs(self.drawn.environment.iter().cloned());
        if with_settings {
            command.args(self.drawn.arguments(&self.stage.folder));
        }
        finish(&mut command, "")
    }

    /// Compares the output of `render` with the cluster. Returns three numbers: of applied objects, of objects that are
    /// not applied, and of packages that serve.
    async fn compare(&self, round: u32) -> [usize; 3] {
        let dump = self.dump();
        let text: Vec<String> = dump.iter().map(Value::to_string).collect();
        let file = self.stage.folder.write("dump.yaml", text.join("\n---\n"));
        let ran = self.run(&["render", "-f", &file, "-o", "json", "--unserved", "HTTPRoute"], true);
        let play = format!("KAOS_SEED={}, round {round}", self.seed);
        assert!([0, 1].contains(&ran.code), "{play}: {}", ran.stderr);
        let entries = ran.json();
        let (mut counts, mut wrong) = ([0, 0, 0], Vec::new());
        let mut is_held_back = false;
        for object in self.objects() {
            let (kind, metadata) = (&object["kind"], &object["metadata"]);
            let name = &metadata["name"];
            let is_it = |entry: &&Value| {
                let of = &entry["object"];
                of["kind"] == *kind && of["name"] == metadata["name"] && of["namespace"] == metadata["namespace"]
            };
            let entry = entries.as_array().unwrap().iter().find(is_it).unwrap();
            let applied = condition(&object["status"], "Applied");
            let is_applied =
                applied["status"] == "True" && condition(&object["status"], "Accepted")["status"] == "True";
            is_held_back |= !is_applied;
            counts[usize::from(!is_applied)] += 1;
            let (live, said) = (told(&object["status"]), told(&entry["status"]));
            if live != said {
                wrong.push(format!("{play}: {kind} {name}\noperator: {live:#}\nrender: {said:#}"));
            }
            let (live, said) = (children(&dump, &metadata["uid"]), digests(entry["manifests"].as_array().unwrap()));
            // Skip the children of an object that is not applied, because the operator leaves them unchanged.
            if is_applied && live != said {
                wrong.push(format!("{play}: {kind} {name}\noperator: {live:#?}\nrender: {said:#?}"));
            }
            if !entry["refused"].is_null() && is_applied {
                wrong.push(format!(
                    "{play}: the operator applied {kind} {name}, and render refuses the object: {}",
                    entry["refused"]
                ));
            }
        }
        assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n\n"), ran.stderr);
        assert_eq!(ran.code, i32::from(is_held_back), "{play}: {}", ran.stderr);
        counts[2] = self.packages(&play, &ran.stderr);
        self.plans_alike(&play, &file).await;
        counts
    }

    /// Checks that `render` prints a warning for exactly those packages that do not serve. Returns the number of
    /// packages that serve.
    fn packages(&self, play: &str, stderr: &str) -> usize {
        let revisions = self.stage.cluster.objects("kaos.tools", "policyrevisions");
        let mut serving = 0;
        for package in self.drawn.packages() {
            let metadata = &package["metadata"];
            let is_it = |revision: &&std::sync::Arc<Value>| {
                let source = &revision["spec"]["source"];
                source["namespace"] == metadata["namespace"] && source["configMap"] == metadata["name"]
            };
            let of_package = revisions.iter().filter(is_it);
            let serves = of_package.into_iter().any(|revision| revision["status"]["state"] == "Active");
            let named = format!("{}/{}", metadata["namespace"].as_str().unwrap(), metadata["name"].as_str().unwrap());
            let told = [": left out, since an operator would not activate this package", " does not serve:"]
                .map(|why| format!("ConfigMap {named}{why}"));
            let warned = told.iter().any(|told| stderr.contains(told));
            assert_eq!(serves, !warned, "{play}: {named} serves: {serves}\n{stderr}\n{revisions:#?}");
            serving += usize::from(serves);
        }
        serving
    }

    /// Checks that `policy plan` prints the same for the dump as for the cluster.
    async fn plans_alike(&self, play: &str, file: &str) {
        // Skip an operator that started with settings, because `policy plan` sees neither the operator's flags nor its
        // environment.
        if !self.drawn.is_plain() {
            return;
        }
        let settings = self.stage.folder.write("planned.yaml", "image: planned/agent:1\n");
        let plan = ["policy", "plan", "--settings", &settings, "--for", "agent", "-o", "json"];
        let live = self.stage.ask(&plan).await;
        let (own, offline) = (self.drawn.packages_flag(), ["-f", file]);
        let dumped = self.run(&[&plan[..], &offline, &own].concat(), false);
        assert_eq!(live.code, dumped.code, "{play}: {}\n{}", live.stderr, dumped.stderr);
        let changes = |ran: &Ran| if ran.stdout.is_empty() { Value::Null } else { without_fuel(ran.json()) };
        assert_eq!(changes(&live), changes(&dumped), "{play}: {}\n{}", live.stderr, dumped.stderr);
    }
}

/// Removes the fuel from a plan. The fuel differs, because policies see the list of served types, which a dump does not
/// contain.
fn without_fuel(mut plan: Value) -> Value {
    match &mut plan {
        Value::Object(fields) => {
            fields.remove("fuel");
            fields.values_mut().for_each(|value| *value = without_fuel(value.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| *value = without_fuel(value.take())),
        _ => {}
    }
    plan
}

fn condition<'a>(status: &'a Value, of: &str) -> &'a Value {
    let all = status["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().find(|condition| condition["type"] == of).unwrap_or(&Value::Null)
}

/// Returns the content of a status, without times.
fn told(status: &Value) -> Value {
    let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let told = |condition: Value| {
        let fields = ["status", "reason", "message"].map(|field| condition[field].clone());
        (condition["type"].as_str().unwrap_or_default().to_owned(), json!(fields))
    };
    let conditions: serde_json::Map<String, Value> = conditions.into_iter().map(told).collect();
    json!({"phase": status["phase"], "ready": status["ready"], "message": status["message"], "conditions": conditions,
        "policy": status["policy"]["digest"]})
}

/// Returns the applied digests of an object's children, by kind and name.
fn children(dump: &[Value], owner: &Value) -> BTreeMap<String, Value> {
    let is_child = |object: &&Value| {
        let owners = object["metadata"]["ownerReferences"].as_array();
        owners.is_some_and(|owners| owners.iter().any(|it| it["uid"] == *owner))
    };
    let children: Vec<Value> = dump.iter().filter(is_child).cloned().collect();
    digests(&children)
}

fn digests(manifests: &[Value]) -> BTreeMap<String, Value> {
    let digest = |manifest: &Value| {
        let name = format!("{}/{}", manifest["kind"], manifest["metadata"]["name"]);
        (name, manifest["metadata"]["annotations"]["kaos.tools/applied-digest"].clone())
    };
    manifests.iter().map(digest).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn render_and_run_refuse_invalid_settings_with_the_same_error() {
    let stage = Stage::start("differs-flags").await;
    for set in ["agent.resources.limit.memory=1Gi", "agent.resources.limits.memory=lots", "agent.nothing=1"] {
        let rendered = finish(binary().args(["render", "-f", "-", "--set", set]), super::LLM);
        let ran = stage.ask(&["run", "--set", set]).await;
        assert_eq!((rendered.code, ran.code), (2, 2), "{set}: {}\n{}", rendered.stderr, ran.stderr);
        let told = |text: &str| text.lines().filter(|line| line.starts_with("error:")).collect::<Vec<_>>().join("\n");
        assert_eq!(told(&rendered.stderr), told(&ran.stderr), "{set}");
        assert!(rendered.stdout.is_empty() && told(&ran.stderr).contains("agent"), "{set}: {}", ran.stderr);
    }
}
