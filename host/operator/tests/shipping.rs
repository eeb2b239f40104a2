//! `kaos-operator policy push`, `list` and `rollback`, as a user runs them, on an embedded cluster. What an operator would
//! say is written down beforehand.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use k8s_openapi::api::core::v1::ConfigMap;
use kaos_cluster::{Cluster, Server};
use kaos_operator::package::{Package, pack, unpack};
use kaos_policy::{digest::Digest, manifest::PolicyFile};
use serde_json::{Value, json};
use support::{Folder, Ran, binary, run};

const HOME: &str = "kaos-system";

struct Stage {
    cluster: Cluster,
    _server: Server,
    folder: Folder,
    kubeconfig: String,
}

impl Stage {
    async fn start(name: &str) -> Self {
        let cluster = Cluster::start();
        let server = cluster.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        cluster.add_user("admin", "admin");
        let folder = Folder::new(name);
        let kubeconfig = folder.write("kubeconfig", server.kubeconfig("admin"));
        cluster.plant("", "namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}));
        for definition in kaos_crds::manifests::ALL {
            let budget = serde_saphyr::options! { budget: serde_saphyr::budget! { max_depth: 256 } };
            let definition: Value = serde_saphyr::from_str_with_options(definition, budget).unwrap();
            cluster.plant("apiextensions.k8s.io", "customresourcedefinitions", definition);
        }
        cluster.settled().await;
        Self { cluster, _server: server, folder, kubeconfig }
    }

    /// Runs a verb while the cluster goes on.
    async fn policy(&self, arguments: &[&str]) -> Ran {
        let connection = ["--kubeconfig", self.kubeconfig.as_str()];
        let arguments: Vec<String> =
            ["policy"].iter().chain(arguments).chain(&connection).map(|argument| (*argument).to_owned()).collect();
        tokio::task::spawn_blocking(move || run(arguments, "")).await.unwrap()
    }

    fn settings(&self, image: &str) -> String {
        self.folder.write("settings.yaml", format!("image: {image}\n"))
    }

    /// What an operator says of a package, and the bytes that it keeps.
    fn revision(&self, name: &str, package: &Package, age: u32, status: &Value) {
        self.cluster.plant(
            "kaos.tools",
            "policyrevisions",
            json!({
                "apiVersion": "kaos.tools/v1alpha1", "kind": "PolicyRevision",
                "metadata": {"name": name, "namespace": HOME, "creationTimestamp": format!("2026-01-01T00:00:{age:02}Z")},
                "spec": {
                    "source": {"namespace": package.namespace, "configMap": package.name},
                    "packageDigest": package.digest().to_string(), "scope": {},
                },
                "status": status,
            }),
        );
        let mut kept = pack(name, HOME, &package.file, package.component.as_deref()).unwrap().index;
        kept.metadata.labels = None;
        self.cluster.plant("", "configmaps", serde_json::to_value(kept).unwrap());
    }

    fn stored(&self, name: &str) -> Package {
        let stored = self.cluster.object("", "configmaps", HOME, name).expect("the ConfigMap");
        let index: ConfigMap = serde_json::from_value((*stored).clone()).unwrap();
        unpack(&index, |_| None::<&ConfigMap>).unwrap()
    }
}

/// Settings for the policy `agent`.
fn package(image: &str) -> Package {
    let file = PolicyFile { name: Some("agent".into()), settings: json!({"image": image}), ..PolicyFile::default() };
    Package { name: "policy-agent-settings".into(), namespace: HOME.into(), file, component: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_pushed_is_applied_and_its_revision_awaited() {
    let stage = Stage::start("push").await;
    let active = json!({"state": "Active", "policy": "agent", "kinds": ["kaos.tools/v1alpha1 Agent"], "objects": 2});
    stage.revision("agent-1", &package("x:1"), 1, &active);
    let ran = stage.policy(&["push", "--settings", &stage.settings("x:1"), "--for", "agent"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("PolicyRevision agent-1 is Active: agent"), "{}", ran.stdout);
    assert_eq!(stage.stored("policy-agent-settings").digest(), package("x:1").digest());
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_that_the_index_lists_no_more_go_once_it_serves() {
    let stage = Stage::start("push-chunks").await;
    for (name, index) in [("old-1", "policy-agent-settings"), ("other-1", "other")] {
        let chunk = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"part": "AAAA"},
            "metadata": {
                "name": name, "namespace": HOME, "labels": {"kaos.tools/policy": "chunk"},
                "annotations": {"kaos.tools/policy-index": index},
            },
        });
        stage.cluster.plant("", "configmaps", chunk);
    }
    let settings = stage.settings("x:1");
    let push = ["push", "--settings", settings.as_str(), "--for", "agent"];
    let there = |name: &str| stage.cluster.object("", "configmaps", HOME, name).is_some();
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Refused", "message": "not this one"}));
    assert_eq!(stage.policy(&push).await.code, 1);
    assert!(there("old-1"), "what serves may still need it");
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent"}));
    assert_eq!(stage.policy(&push).await.code, 0);
    assert!(!there("old-1") && there("other-1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_ends_with_1_and_says_why() {
    let stage = Stage::start("push-refused").await;
    let refused =
        json!({"state": "NotPermitted", "reason": "NotPermitted", "message": "the operator may not watch kites"});
    stage.revision("agent-1", &package("x:1"), 1, &refused);
    let ran = stage.policy(&["push", "--settings", &stage.settings("x:1"), "--for", "agent"]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""));
    assert!(ran.stderr.contains("agent-1 is NotPermitted: the operator may not watch kites"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_operator_is_that_is_said() {
    let stage = Stage::start("push-nobody").await;
    let ran = stage.policy(&["push", "--settings", &stage.settings("x:1"), "--for", "agent", "--timeout", "1"]).await;
    assert!(ran.code == 1 && ran.stderr.contains("no operator took notice"), "{}", ran.stderr);
    let ran = stage.policy(&["push", "--settings", &stage.settings("x:1"), "--for", "agent", "--timeout", "0"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_wrote_is_taken_over_only_when_asked() {
    let stage = Stage::start("push-conflict").await;
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent"}));
    let theirs = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "policy-agent-settings", "namespace": HOME, "labels": {"kaos.tools/policy": "package", "mine": "too"}},
        "data": {"policy.yaml": "name: agent"}, "binaryData": {"policy.wasm": "AGFzbQ=="},
    });
    stage.cluster.plant("", "configmaps", theirs);
    let settings = stage.settings("x:1");
    let push = ["push", "--settings", settings.as_str(), "--for", "agent", "--timeout", "30"];
    let ran = stage.policy(&push).await;
    assert!(ran.code == 2 && ran.stderr.contains("--force-conflicts"), "{}", ran.stderr);
    let ran = stage.policy(&[&push[..], &["--force-conflicts"]].concat()).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stage.stored("policy-agent-settings").digest(), package("x:1").digest());
    let stored = stage.cluster.object("", "configmaps", HOME, "policy-agent-settings").unwrap();
    assert_eq!(stored["metadata"]["labels"]["mine"], "too");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_is_an_edit_of_the_source() {
    let stage = Stage::start("rollback").await;
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Superseded", "policy": "agent"}));
    stage.revision(
        "agent-2",
        &package("x:2"),
        2,
        &json!({"state": "Active", "policy": "agent", "predecessor": "agent-1"}),
    );
    stage.cluster.plant("", "configmaps", {
        let mut index = pack("policy-agent-settings", HOME, &package("x:2").file, None).unwrap().index;
        index.metadata.uid = None;
        serde_json::to_value(index).unwrap()
    });
    let ran = stage.policy(&["rollback", "agent", "--timeout", "0"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stage.stored("policy-agent-settings").digest(), package("x:1").digest());
    // And forward again, by the name of the ConfigMap and of the revision.
    let ran = stage.policy(&["rollback", "policy-agent-settings", "--to", "agent-2"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stage.stored("policy-agent-settings").digest(), package("x:2").digest());
}

#[tokio::test(flavor = "multi_thread")]
async fn there_is_no_rollback_to_what_is_not_kept_or_was_changed() {
    let stage = Stage::start("rollback-none").await;
    let ran = stage.policy(&["rollback", "agent"]).await;
    assert!(ran.code == 2 && ran.stderr.contains("policy list"), "{}", ran.stderr);
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent"}));
    let ran = stage.policy(&["rollback", "agent"]).await;
    assert!(ran.code == 2 && ran.stderr.contains("the first that served"), "{}", ran.stderr);
    let forged = pack("agent-1", HOME, &package("evil").file, None).unwrap().index;
    stage.cluster.plant("", "configmaps", serde_json::to_value(forged).unwrap());
    let ran = stage.policy(&["rollback", "agent", "--to", "agent-1"]).await;
    assert!(ran.code == 2 && ran.stderr.contains("was changed since"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_tells_what_became_of_everything() {
    let stage = Stage::start("list").await;
    let ran = stage.policy(&["list"]).await;
    assert!(ran.code == 0 && ran.stdout.contains("No policies were shipped"), "{}{}", ran.stdout, ran.stderr);
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Superseded", "policy": "agent"}));
    let active =
        json!({"state": "Active", "policy": "agent", "objects": 9, "outstanding": 4, "since": "2026-01-01T00:00:03Z"});
    stage.revision("agent-2", &package("x:2"), 2, &active);
    let ran = stage.policy(&["list"]).await;
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("REVISION") && lines[1].starts_with("agent-1"), "{}", ran.stdout);
    assert!(lines[2].contains("Active") && lines[2].contains("9 of 13"), "{}", ran.stdout);
    let told = stage.policy(&["list", "-o", "json"]).await.json();
    assert_eq!(told[1]["packageDigest"], package("x:2").digest().to_string());
    assert!(told[1]["packageDigest"].as_str().unwrap().parse::<Digest>().is_ok());
}

/// A team of three agents that is there already.
fn team(stage: &Stage) {
    let object = |kind: &str, name: &str, spec: Value, status: Value| {
        json!({
            "apiVersion": "kaos.tools/v1alpha1", "kind": kind,
            "metadata": {"name": name, "namespace": "team", "generation": 1}, "spec": spec, "status": status,
        })
    };
    let ready = json!({"phase": "Ready", "ready": true, "endpoint": "http://llm.team:8000"});
    let proxy = json!({"mode": "Proxy", "proxyConfig": {"models": ["*"], "apiKey": {"value": "topsecret"}}});
    stage.cluster.plant("kaos.tools", "modelapis", object("ModelAPI", "llm", proxy, ready));
    for name in ["a", "b", "c"] {
        let spec =
            json!({"modelAPI": "llm", "model": "gpt", "config": {"env": [{"name": "MY_TOKEN", "value": "topsecret"}]}});
        let status =
            json!({"conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": ""}]});
        stage.cluster.plant("kaos.tools", "agents", object("Agent", name, spec, status));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_asks_a_running_cluster_what_it_holds_and_what_is_in_force() {
    let stage = Stage::start("plan-live").await;
    team(&stage);
    let settings = stage.settings("x:1");
    let plan = ["plan", "--settings", settings.as_str(), "--for", "agent", "-o", "json"];
    let ran = stage.policy(&plan).await;
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    assert_eq!((&ran.json()["objects"], &ran.json()["changed"]), (&3.into(), &3.into()), "{}", ran.stdout);
    assert!(ran.stdout.contains("x:1") && !ran.stdout.contains("topsecret"), "{}", ran.stdout);
    assert_eq!(stage.policy(&[&plan[..], &["-n", "elsewhere"]].concat()).await.code, 0);
    // Once it is in force, it changes nothing any more.
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent"}));
    let ran = stage.policy(&plan).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_tells_what_answers_and_why_and_what_went_into_it() {
    let stage = Stage::start("explain").await;
    team(&stage);
    let ran = stage.policy(&["explain", "agent/a", "-n", "team"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for told in ["Agent team/a", "the operator brought it along", "ModelAPI team/llm", "found", "MODEL_API_URL"] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("topsecret"), "{}", ran.stdout);
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent"}));
    let told = stage.policy(&["explain", "Agents/b", "-n", "team", "-o", "json"]).await.json();
    assert!(
        told["because"]
            .to_string()
            .contains("PolicyRevision agent-1, from ConfigMap kaos-system/policy-agent-settings")
    );
    assert_eq!((&told["settings"][0]["path"], &told["policy"]["name"]), (&"image".into(), &"agent".into()), "{told}");
    for (object, told) in [("agent/nobody", "is not there"), ("kite/a", "only for"), ("agent", "KIND/NAME")] {
        let ran = stage.policy(&["explain", object, "-n", "team"]).await;
        assert!(ran.code == 2 && ran.stderr.contains(told), "{object}: {}", ran.stderr);
    }
}

/// The embedded policy of Agents, with bytes of its own; `limits` as in `policy.yaml`.
fn edition(number: u8, limits: &str) -> Package {
    let own = kaos_operator::embedded::DEFAULTS.iter().find(|it| it.manifest.contains("name: agent\n")).unwrap();
    let file = PolicyFile::parse(&format!("{}\nlimits: {limits}\n", own.manifest)).unwrap();
    // A custom section with a name of one letter and nothing in it.
    let component = [own.component, &[0, 2, 1, b'a' + number]].concat();
    Package { name: "agents".into(), namespace: HOME.into(), file, component: Some(component) }
}

#[tokio::test(flavor = "multi_thread")]
async fn explain_follows_an_object_to_what_served_before_where_the_policy_fails_on_it() {
    let stage = Stage::start("fallback").await;
    team(&stage);
    let mut beside = stage.cluster.object("kaos.tools", "agents", "team", "a").unwrap().as_ref().clone();
    beside["metadata"] = json!({"name": "beside", "namespace": "team"});
    let sides = (0..6).map(|side| json!({"name": format!("side{side}"), "image": "side:1"}));
    beside["spec"]["podSpec"] = json!({"containers": sides.collect::<Vec<_>>()});
    stage.cluster.plant("kaos.tools", "agents", beside);
    stage.revision("agents-1", &edition(1, "{}"), 1, &json!({"state": "Superseded", "policy": "agent"}));
    let active = json!({"state": "Active", "policy": "agent", "predecessor": "agents-1"});
    stage.revision("agents-2", &edition(2, "{containers: 6}"), 2, &active);
    let told = stage.policy(&["explain", "agent/a", "-n", "team"]).await;
    assert!(
        told.stdout.contains("PolicyRevision agents-2, from") && !told.stdout.contains("agents-1"),
        "{}{}",
        told.stdout,
        told.stderr
    );
    let told = stage.policy(&["explain", "agent/beside", "-n", "team"]).await;
    for line in ["PolicyRevision agents-2 serves, but does not answer for this object", "PolicyRevision agents-1, from"]
    {
        assert!(told.stdout.contains(line), "{line}: {}{}", told.stdout, told.stderr);
    }
}

/// An operator as a process, ended with the test.
struct Process(std::process::Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_operator_settings_are_pushed_planned_explained_and_taken_back() {
    let stage = Stage::start("story").await;
    team(&stage);
    let nowhere = ["--metrics-bind-address", "0", "--health-probe-bind-address", "0"];
    let mut operator = binary();
    operator.args(["run", "--kubeconfig", &stage.kubeconfig]).args(nowhere).stderr(std::process::Stdio::null());
    let _operator = Process(operator.spawn().unwrap());
    let image = |image: &str| stage.settings(image);
    for version in ["x:1", "x:2"] {
        let ran = stage.policy(&["push", "--settings", &image(version), "--for", "agent"]).await;
        assert_eq!(ran.code, 0, "{version}: {}", ran.stderr);
        assert!(ran.stdout.contains("is Active: agent"), "{}", ran.stdout);
    }
    let ran = stage.policy(&["plan", "--settings", &image("x:2"), "--for", "agent"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let told = stage.policy(&["explain", "agent/a", "-n", "team"]).await;
    assert!(
        told.stdout.contains("policy-agent-settings") && told.stdout.contains("x:2"),
        "{}{}",
        told.stdout,
        told.stderr
    );
    let ran = stage.policy(&["rollback", "agent"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(stage.stored("policy-agent-settings").digest(), package("x:1").digest());
    let told = stage.policy(&["explain", "agent/a", "-n", "team"]).await;
    assert!(told.stdout.contains("x:1") && !told.stdout.contains("x:2"), "{}{}", told.stdout, told.stderr);
    let listed = stage.policy(&["list"]).await.stdout;
    assert!(listed.contains("Active") && listed.contains("Superseded"), "{listed}");
}
