//! Runs `kaos-operator status`, `tree`, `why`, `events` and `logs` on an embedded cluster with an operator, as a user
//! does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use crate::{
    overlay::example,
    panicking::fuse,
    stage::{Process, Stage},
    support::{Ran, binary, fits},
};
use k8s_openapi::api::core::v1::Pod;
use kaos_cluster::PodFate;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::wait::await_condition,
};
use serde_json::{Value, json};

/// A cluster with an operator.
struct World {
    stage: Stage,
    _operator: Process,
}

impl World {
    async fn start(name: &str) -> Self {
        let stage = Stage::start(name).await;
        let operator = Process::operator(&stage);
        Self { stage, _operator: operator }
    }

    /// Adds an object of the team.
    fn add(&self, plural: &str, kind: &str, name: &str, spec: &Value) {
        add(&self.stage, plural, kind, name, spec);
    }

    fn client(&self) -> Client {
        Client::new(self.stage.cluster.service(), "team")
    }

    /// Waits until an object's condition has this reason.
    async fn until(&self, kind: &str, name: &str, of: &str, reason: &str) {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("kaos.tools", "v1alpha1", kind));
        let api: Api<DynamicObject> = Api::namespaced_with(self.client(), "team", &resource);
        let has = |object: Option<&DynamicObject>| {
            let conditions = object.and_then(|it| it.data["status"]["conditions"].as_array());
            conditions.into_iter().flatten().any(|it| it["type"] == of && it["reason"] == reason)
        };
        await_condition(api, name, has).await.unwrap();
    }

    /// Returns the name of the only pod of a Deployment.
    async fn pod(&self, deployment: &str) -> String {
        self.stage.cluster.settled().await;
        let pods = Api::<Pod>::namespaced(self.client(), "team").list(&kube::api::ListParams::default()).await.unwrap();
        let mut names = pods.items.into_iter().filter_map(|pod| pod.metadata.name);
        names.find(|name| name.starts_with(&format!("{deployment}-"))).expect("a pod")
    }

    async fn ask(&self, arguments: &[&str]) -> Ran {
        self.stage.ask(arguments).await
    }
}

fn add(stage: &Stage, plural: &str, kind: &str, name: &str, spec: &Value) {
    let object = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": "team", "generation": 1}, "spec": spec});
    stage.cluster.plant("kaos.tools", plural, object);
}

fn proxy() -> Value {
    json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}})
}

fn writer() -> Value {
    json!({"modelAPI": "llm", "model": "gpt"})
}

/// Starts a cluster with one Agent and one ModelAPI, whose image cannot be pulled.
async fn without_image(name: &str) -> World {
    let world = World::start(name).await;
    world.stage.cluster.set_pods_of("team", "modelapi-llm", Some(PodFate::ImagePullBackOff));
    world.add("modelapis", "ModelAPI", "llm", &proxy());
    world.add("agents", "Agent", "writer", &writer());
    world.until("Agent", "writer", "Applied", "Gated").await;
    world.until("ModelAPI", "llm", "Ready", "Progressing").await;
    world.pod("modelapi-llm").await;
    world
}

#[tokio::test(flavor = "multi_thread")]
async fn why_follows_an_agent_through_its_model_api_to_the_image_of_a_pod() {
    let world = without_image("why-image").await;
    let ran = world.ask(&["why", "agent/writer", "-n", "team"]).await;
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    let steps = [
        "Agent team/writer is not ready.",
        "\nAgent team/writer: Gated",
        "\n  uses ModelAPI team/llm: ",
        "\n    Deployment team/modelapi-llm: 0 of 1 pods ready",
        "\n      ReplicaSet team/",
        "\n        Pod team/",
        "\ncause: the node cannot pull image ",
        "\nremedy: check the name and the tag of the image",
    ];
    let mut rest = ran.stdout.as_str();
    for step in steps {
        let (_, after) = rest.split_once(step.trim_end()).unwrap_or_else(|| panic!("{step:?} in {}", ran.stdout));
        rest = after;
    }
    let told = world.ask(&["why", "agents.kaos.tools/writer", "-n", "team", "-o", "json"]).await.json();
    assert_eq!(told["state"], "NotReady", "{told:#}");
    fits("why", &told);
    let [cause] = told["causes"].as_array().unwrap().as_slice() else { panic!("{told:#}") };
    assert_eq!(cause["reason"], "ImageNotPulled", "{told:#}");
    let kinds: Vec<&str> =
        cause["steps"].as_array().unwrap().iter().map(|step| step["object"]["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Agent", "ModelAPI", "Deployment", "ReplicaSet", "Pod"]);
    assert_eq!(cause["steps"][1]["relation"], "uses");
    let ran = world.ask(&["why", "agent/writer", "-n", "team", "-o", "jsonpath={.causes[*].reason}"]).await;
    assert_eq!(ran.stdout, "ImageNotPulled");

    world.stage.cluster.set_pods_of("team", "modelapi-llm", None);
    world.until("Agent", "writer", "Ready", "Ready").await;
    let ran = world.ask(&["why", "agent/writer", "-n", "team"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Agent team/writer is ready.\n"), "{}", ran.stderr);
    // The Agent stays ready although its ModelAPI is not, and the command reports the problem of the ModelAPI.
    world.stage.cluster.set_pods_of("team", "modelapi-llm", Some(PodFate::NotReady));
    world.until("ModelAPI", "llm", "Ready", "Progressing").await;
    let ran = world.ask(&["why", "agent/writer", "-n", "team"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("is ready, but uses objects that are not ready"), "{}", ran.stdout);
    assert!(ran.stdout.contains("runs, but is not ready"), "{}", ran.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn status_lists_what_is_not_ready_with_the_root_cause_and_an_exit_code() {
    let world = without_image("status").await;
    world.add("mcpservers", "MCPServer", "calc", &json!({"runtime": "python-string", "params": "def f(): pass"}));
    world.until("MCPServer", "calc", "Ready", "Ready").await;
    for place in [&["-n", "team"][..], &["-A"]] {
        let ran = world.ask(&[&["status"], place].concat()).await;
        assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
        let line = |of: &str| ran.stdout.lines().find(|line| line.starts_with(of)).unwrap_or_default().to_owned();
        for object in ["Agent team/writer ", "ModelAPI team/llm "] {
            assert!(line(object).contains("the node cannot pull image "), "{}", ran.stdout);
        }
        assert!(ran.stdout.ends_with("1 of 3 objects are ready.\n"), "{}", ran.stdout);
        assert!(!ran.stdout.contains("calc"), "{}", ran.stdout);
    }
    let wide = world.ask(&["status", "-n", "team", "-o", "wide"]).await.stdout;
    assert!(wide.contains("MCPServer team/calc") && wide.contains("REMEDY"), "{wide}");
    let names = world.ask(&["status", "-n", "team", "-o", "name"]).await.stdout;
    assert_eq!(names, "agent.kaos.tools/writer\nmodelapi.kaos.tools/llm\n");
    let told = world.ask(&["status", "-n", "team", "-o", "json"]).await.json();
    assert_eq!((&told["ready"], &told["total"]), (&json!(1), &json!(3)), "{told:#}");
    fits("status", &told);
    let yaml = world.ask(&["status", "-n", "team", "-o", "yaml"]).await.stdout;
    assert_eq!(serde_saphyr::from_str::<Value>(&yaml).unwrap(), told);
    // An argument limits the output to a kind or to an object.
    for (meant, code) in [("mcpservers", 0), ("mcpserver/calc", 0), ("modelapi/llm", 1), ("agents", 1)] {
        assert_eq!(world.ask(&["status", meant, "-n", "team"]).await.code, code, "{meant}");
    }
    let ran = world.ask(&["status", "agent/nobody", "-n", "team"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains("Agent nobody does not exist in namespace team"), "{}", ran.stderr);
    let ran = world.ask(&["status", "-n", "elsewhere"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("no objects in this namespace"), "{}", ran.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn status_with_watch_prints_each_change_of_an_object() {
    let world = without_image("status-watch").await;
    let mut command = binary();
    command.args(["status", "-w", "-n", "team", "--kubeconfig", &world.stage.kubeconfig]);
    let mut watching = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines().map_while(Result::ok);
    let lines = tokio::task::spawn_blocking(move || {
        let counted = lines.by_ref().any(|line| line == "0 of 2 objects are ready.");
        (counted, lines)
    });
    let (counted, mut lines) = lines.await.unwrap();
    assert!(counted);
    world.stage.cluster.set_pods_of("team", "modelapi-llm", None);
    let ready = tokio::task::spawn_blocking(move || lines.any(|line| line.starts_with("Agent team/writer   Ready")));
    assert!(ready.await.unwrap());
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tree_shows_used_objects_children_and_pods_with_their_states() {
    let world = without_image("tree").await;
    let ran = world.ask(&["tree", "agent/writer", "-n", "team"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for (object, state) in [
        ("Agent team/writer ", "NotReady"),
        ("uses ModelAPI llm ", "NotReady"),
        ("─ Deployment modelapi-llm ", "0 of 1 pods ready"),
        ("─ Service modelapi-llm ", "Exists"),
        ("─ Pod modelapi-llm-", "ImagePullBackOff, 0 of 1 containers ready"),
    ] {
        let line = ran.stdout.lines().find(|line| line.contains(object)).unwrap_or_else(|| panic!("{}", ran.stdout));
        assert!(line.contains(state), "{line}");
    }
    world.stage.cluster.set_pods_of("team", "modelapi-llm", None);
    world.until("Agent", "writer", "Ready", "Ready").await;
    // If the ModelAPI is ready, the tree of the Agent hides the children of the ModelAPI. `-o wide` shows these
    // children.
    let short = world.ask(&["tree", "agent/writer", "-n", "team"]).await.stdout;
    assert!(short.contains("─ Pod agent-writer-") && !short.contains("Pod modelapi-llm-"), "{short}");
    let wide = world.ask(&["tree", "agent/writer", "-n", "team", "-o", "wide"]).await.stdout;
    assert!(wide.contains("─ Pod modelapi-llm-"), "{wide}");
    let told = world.ask(&["tree", "agent/writer", "-n", "team", "-o", "json"]).await.json();
    fits("tree", &told);
    let below = told["below"].as_array().unwrap();
    let relations: Vec<_> = below.iter().map(|it| (&it["relation"], &it["object"]["kind"])).collect();
    assert!(relations.contains(&(&json!("uses"), &json!("ModelAPI"))), "{told:#}");
    assert!(relations.contains(&(&json!("owns"), &json!("Deployment"))), "{told:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn why_names_missing_objects_wrong_specs_and_a_missing_operator() {
    let world = World::start("why-spec").await;
    world.add("agents", "Agent", "alone", &writer());
    world.until("Agent", "alone", "Resolved", "NotFound").await;
    let told = world.ask(&["why", "agent/alone", "-n", "team", "-o", "json"]).await.json();
    assert_eq!(told["causes"][0]["reason"], "NotFound", "{told:#}");
    assert_eq!(told["causes"][0]["message"], "ModelAPI team/llm does not exist", "{told:#}");
    let models = json!({"mode": "Proxy", "proxyConfig": {"models": ["small"]}});
    world.add("modelapis", "ModelAPI", "llm", &models);
    world.until("Agent", "alone", "Accepted", "InvalidSpec").await;
    let ran = world.ask(&["why", "agent/alone", "-n", "team"]).await;
    assert!(ran.stdout.contains("cause: InvalidSpec: spec.model: "), "{}", ran.stdout);
    assert!(ran.stdout.contains("remedy: correct the field"), "{}", ran.stdout);
    // No operator runs on this cluster, so the Agent has no status.
    let stage = Stage::start("why-none").await;
    add(&stage, "agents", "Agent", "writer", &writer());
    let ran = stage.ask(&["why", "agent/writer", "-n", "team"]).await;
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("cause: no operator has worked on this object yet"), "{}", ran.stdout);
    assert!(ran.stdout.contains("kubectl -n kaos-system get pods,lease"), "{}", ran.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_rights_are_named_and_the_rest_is_shown() {
    let world = without_image("rights").await;
    world.stage.cluster.authorise(|attempt| {
        let is_kaos = attempt.group == "kaos.tools" && attempt.resource != "policyrevisions";
        attempt.user != "bob" || (is_kaos && attempt.namespace == "team")
    });
    let ran = world.stage.ask_as("bob", &["why", "agent/writer", "-n", "team"]).await;
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("uses ModelAPI team/llm"), "{}", ran.stdout);
    for told in [
        "note: this user has no right to list deployments.apps in namespace team: ask an administrator for the right; \
         `kubectl auth can-i list deployments.apps -n team` checks it",
        "only the default policies are known",
    ] {
        assert_eq!(ran.stderr.matches(told).count(), 1, "{told}: {}", ran.stderr);
    }
    let told = world.stage.ask_as("bob", &["why", "agent/writer", "-n", "team", "-o", "json"]).await.json();
    let missing = told["missingRights"].as_array().unwrap();
    assert!(missing.iter().any(|it| it["resource"] == "deployments.apps" && it["verb"] == "list"), "{told:#}");
    for (verb, right) in [
        (&["why", "agent/writer", "-n", "other"][..], "no right to get agents.kaos.tools in namespace other"),
        (&["status", "-A"], "in all namespaces: ask an administrator"),
    ] {
        let ran = world.stage.ask_as("bob", verb).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{verb:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(right), "{verb:?}: {}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_an_object_and_its_pods_come_in_order() {
    let world = without_image("events").await;
    let pod = world.pod("modelapi-llm").await;
    let uid = |plural: &str, group: &str, name: &str| {
        world.stage.cluster.object(group, plural, "team", name).unwrap()["metadata"]["uid"].clone()
    };
    let about = [
        ("c", "ModelAPI", "llm", uid("modelapis", "kaos.tools", "llm"), "2026-01-01T00:00:03Z"),
        ("a", "Pod", pod.as_str(), uid("pods", "", &pod), "2026-01-01T00:00:01Z"),
        ("b", "Agent", "writer", uid("agents", "kaos.tools", "writer"), "2026-01-01T00:00:02Z"),
    ];
    for (name, kind, object, uid, at) in about {
        world.stage.cluster.plant(
            "",
            "events",
            json!({"apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": "team"}, "type": "Warning", "reason": "Told", "message": name,
            "involvedObject": {"kind": kind, "namespace": "team", "name": object, "uid": uid},
            "lastTimestamp": at, "count": 3, "source": {"component": "test"}}),
        );
    }
    let told = world.ask(&["events", "modelapi/llm", "-n", "team", "-o", "json"]).await.json();
    fits("events", &told);
    let told: Vec<&Value> = told.as_array().unwrap().iter().filter(|event| event["reason"] == "Told").collect();
    let shown: Vec<_> =
        told.iter().map(|event| (&event["message"], &event["object"]["kind"], &event["count"])).collect();
    assert_eq!(shown, [(&json!("a"), &json!("Pod"), &json!(3)), (&json!("c"), &json!("ModelAPI"), &json!(3))]);
    let ran = world.ask(&["events", "modelapi/llm", "-n", "team"]).await;
    assert!(ran.stdout.starts_with("LAST SEEN   TYPE") && ran.stdout.contains(&format!("Pod {pod}")), "{}", ran.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_of_all_pods_are_printed_and_followed() {
    let world = World::start("logs").await;
    world.add("modelapis", "ModelAPI", "llm", &proxy());
    world.until("ModelAPI", "llm", "Ready", "Ready").await;
    let pod = world.pod("modelapi-llm").await;
    let object = world.stage.cluster.object("", "pods", "team", &pod).unwrap();
    let container = object["spec"]["containers"][0]["name"].as_str().unwrap().to_owned();
    for line in ["one", "two", "three"] {
        world.stage.cluster.write_log("team", &pod, &container, line);
    }
    let logs = ["logs", "modelapi/llm", "-n", "team"];
    let ran = world.ask(&logs).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "one\ntwo\nthree\n"), "{}", ran.stderr);
    let ran = world.ask(&[&logs[..], &["--tail", "1", "-c", &container]].concat()).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "three\n"), "{}", ran.stderr);
    let ran = world.ask(&[&logs[..], &["-c", "nobody"]].concat()).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""));
    assert!(ran.stderr.contains(&format!("no container nobody: name one of {container}")), "{}", ran.stderr);

    let mut command = binary();
    command.args(logs).args(["-f", "--tail", "1", "--kubeconfig", &world.stage.kubeconfig]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines().map_while(Result::ok);
    let first = tokio::task::spawn_blocking(move || (lines.next(), lines));
    let (first, mut lines) = first.await.unwrap();
    assert_eq!(first.as_deref(), Some("three"));
    world.stage.cluster.write_log("team", &pod, &container, "four");
    let next = tokio::task::spawn_blocking(move || lines.next()).await.unwrap();
    assert_eq!(next.as_deref(), Some("four"));
    world.stage.cluster.end_log("team", &pod, &container);
    assert!(tokio::task::spawn_blocking(move || following.wait()).await.unwrap().unwrap().success());

    world.add("agents", "Agent", "alone", &json!({"modelAPI": "none", "model": "gpt"}));
    let ran = world.ask(&["logs", "agent/alone", "-n", "team"]).await;
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("has no pods: `kaos-operator why agent/alone -n team` shows"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_kinds_objects_and_formats_are_refused_with_a_remedy() {
    let stage = Stage::start("health-words").await;
    for (arguments, told) in [
        (&["why", "agnt/a"][..], "agnt: no policy answers for this kind, only for "),
        (&["why", "agent"], "write it as KIND/NAME"),
        (&["tree", "agent/a", "-n", "team"], "Agent team/a does not exist: `kubectl get Agent -A` lists"),
        (&["status", "-o", "table"], "write one of text, wide, json, yaml, name or jsonpath=TEMPLATE"),
        (&["status", "-o", "jsonpath={.a"], "an opening brace without a closing brace"),
        (&["status", "-n", "a", "-A"], "cannot be used with"),
    ] {
        let ran = stage.ask(arguments).await;
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(told), "{arguments:?}: {}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_only_the_operator_has_is_visible_with_its_file() {
    let stage = Stage::start("health-own").await;
    fuse(&stage).await;
    let component = example(&stage.folder, "panics");
    let remedy = "a policy that the operator got with --policy is not visible in the cluster: pass --policy X.wasm";
    let none = stage.ask(&["status", "-n", "team"]).await;
    assert!(none.stdout.starts_with("There are no objects") && none.stderr.contains(remedy), "{}", none.stderr);
    for verb in [&["why"][..], &["tree"], &["policy", "explain"]] {
        let ran = stage.ask(&[verb, &["fuse/f", "-n", "team"]].concat()).await;
        assert!(ran.code == 2 && ran.stderr.contains(remedy), "{verb:?}: {}", ran.stderr);
    }
    let ask = async |words: &[&str]| stage.ask(&[words, &["-n", "team", "--policy", &component]].concat()).await;
    let ran = ask(&["status"]).await;
    assert!(ran.code == 1 && ran.stdout.contains("0 of 1 objects are ready."), "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stderr.contains(remedy), "{}", ran.stderr);
    let ran = ask(&["why", "fuse/f"]).await;
    assert!(ran.code == 1 && ran.stdout.contains("Fuse team/f is not ready."), "{}{}", ran.stdout, ran.stderr);
    let ran = ask(&["tree", "fuse/f"]).await;
    assert!(ran.code == 0 && ran.stdout.contains("Fuse team/f"), "{}{}", ran.stdout, ran.stderr);
    let ran = ask(&["policy", "explain", "fuse/f"]).await;
    assert!(ran.code == 0 && ran.stdout.contains("policy panics 0.1.0"), "{}{}", ran.stdout, ran.stderr);
}
