//! A cluster for tests of those commands that need a cluster. The tests write the operator's records themselves.
// Each test executable uses only a part of this file.
#![allow(dead_code)]

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kaos_cluster::{Cluster, Server};
use kaos_operator::embedded::DEFAULTS;
use kaos_operator::package::{Package, PolicyCode, pack, unpack};
use kaos_policy::manifest::PolicyFile;
use serde_json::{Value, json};

use crate::support::{Folder, PROGRAM, Ran, binary, isolated, run};

/// The operator's namespace.
pub(crate) const HOME: &str = "kaos-system";

/// A cluster without an operator, with the kubeconfig and the client for it.
pub(crate) struct Stage {
    pub(crate) cluster: Cluster,
    server: Server,
    pub(crate) folder: Folder,
    pub(crate) kubeconfig: String,
}

impl Stage {
    pub(crate) async fn start(name: &str) -> Self {
        let stage = Self::bare(name).await;
        for definition in kaos_crds::manifests::ALL {
            let budget = serde_saphyr::options! { budget: serde_saphyr::budget! { max_depth: 256 } };
            let definition: Value = serde_saphyr::from_str_with_options(definition, budget).unwrap();
            stage.cluster.plant("apiextensions.k8s.io", "customresourcedefinitions", definition);
        }
        stage.cluster.settled().await;
        stage
    }

    /// Starts a cluster that serves none of the operator's kinds.
    pub(crate) async fn bare(name: &str) -> Self {
        let cluster = Cluster::start();
        let server = cluster.listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
        cluster.add_user("admin", "admin");
        let folder = Folder::new(name);
        let kubeconfig = folder.write("kubeconfig", server.kubeconfig("admin"));
        for name in [HOME, "team"] {
            let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            cluster.plant("", "namespaces", namespace);
        }
        cluster.settled().await;
        Self { cluster, server, folder, kubeconfig }
    }

    /// Runs a `policy` command in another thread, so that the embedded cluster can answer its requests.
    pub(crate) async fn policy(&self, arguments: &[&str]) -> Ran {
        self.ask(&[&["policy"], arguments].concat()).await
    }

    /// Runs a command in another thread, so that the embedded cluster can answer its requests.
    pub(crate) async fn ask(&self, arguments: &[&str]) -> Ran {
        self.ask_with(&self.kubeconfig, arguments).await
    }

    /// Runs a command as this user.
    pub(crate) async fn ask_as(&self, user: &str, arguments: &[&str]) -> Ran {
        self.ask_with(&self.kubeconfig_of(user), arguments).await
    }

    /// Writes a kubeconfig for this user, and returns the path of the kubeconfig.
    pub(crate) fn kubeconfig_of(&self, user: &str) -> String {
        self.folder.write(&format!("kubeconfig-{user}"), self.server.kubeconfig(user))
    }

    async fn ask_with(&self, kubeconfig: &str, arguments: &[&str]) -> Ran {
        let connection = ["--kubeconfig", kubeconfig];
        let arguments: Vec<String> =
            arguments.iter().chain(&connection).map(|argument| (*argument).to_owned()).collect();
        tokio::task::spawn_blocking(move || run(arguments, "")).await.unwrap()
    }

    pub(crate) fn settings(&self, image: &str) -> String {
        self.folder.write("settings.yaml", format!("image: {image}\n"))
    }

    /// Waits until the operator has recorded its default policies: until each PolicyRevision has its Event, which the
    /// operator writes last.
    pub(crate) async fn until_defaults_are_recorded(&self) {
        let of_default = |event: &&Value| {
            let about = event["involvedObject"]["name"].as_str().or(event["regarding"]["name"].as_str());
            event["reason"] == "Active" && about.is_some_and(|name| name.starts_with("default-"))
        };
        let told = || self.cluster.objects("", "events").iter().map(|event| &**event).filter(of_default).count();
        let deadline = Instant::now() + Duration::from_mins(5);
        while told() < DEFAULTS.len() {
            assert!(Instant::now() < deadline, "the operator recorded {} of {} policies", told(), DEFAULTS.len());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Writes the PolicyRevision of a package, and the ConfigMap with the package's stored bytes, as an operator would.
    pub(crate) fn revision(&self, name: &str, package: &Package, age: u32, status: &Value) {
        self.record(name, package, age, status);
        let mut kept = pack(name, HOME, &package.file, package.component.as_ref()).unwrap().index;
        kept.metadata.labels = None;
        self.cluster.plant("", "configmaps", serde_json::to_value(kept).unwrap());
    }

    /// Writes the PolicyRevision of a package, as an operator would.
    pub(crate) fn record(&self, name: &str, package: &Package, age: u32, status: &Value) {
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
    }

    pub(crate) fn stored(&self, name: &str) -> Package {
        self.stored_in(HOME, name)
    }

    pub(crate) fn stored_in(&self, namespace: &str, name: &str) -> Package {
        let stored = self.cluster.object("", "configmaps", namespace, name).expect("the ConfigMap");
        let index: ConfigMap = serde_json::from_value((*stored).clone()).unwrap();
        unpack(&index, |_| None::<&ConfigMap>).unwrap()
    }
}

/// An operator process that ends when the test ends.
pub(crate) struct Process(std::process::Child);

impl Process {
    /// Starts an operator on the stage's cluster.
    pub(crate) fn operator(stage: &Stage) -> Self {
        Self::start(binary(), stage)
    }

    /// Starts an operator on the stage's cluster from a copy of the binary. Also returns the path of the copy.
    pub(crate) fn operator_from_copy(stage: &Stage) -> (Self, String) {
        let program = format!("{}/operator", stage.folder.path());
        std::fs::copy(PROGRAM, &program).unwrap();
        let mut command = isolated(&program);
        // Without a cache folder, the operator finds no compiled code, as in a container.
        command.env_remove("XDG_CACHE_HOME");
        (Self::start(command, stage), program)
    }

    /// Starts an operator with these arguments on the stage's cluster, and writes its log to a file.
    pub(crate) fn logging(arguments: &[&str], stage: &Stage, log: std::fs::File) -> Self {
        let mut operator = binary();
        operator.arg("run").args(arguments);
        Self::run(operator, stage, log.into())
    }

    /// Starts an operator with debug pages. Returns the process, the address of the debug pages, and the path of the
    /// log.
    pub(crate) async fn with_debug_pages(stage: &Stage) -> (Self, String, String) {
        let path = stage.folder.write("log", "");
        let mut operator = binary();
        operator
            .args(["run", "--kubeconfig", &stage.kubeconfig, "--log-format=json"])
            .args(["--metrics-bind-address=0", "--health-probe-bind-address=0", "--debug-bind-address=127.0.0.1:0"])
            .stderr(std::fs::File::options().append(true).open(&path).unwrap());
        let process = Self(operator.spawn().unwrap());
        for attempt in 0.. {
            let log = std::fs::read_to_string(&path).unwrap();
            let address = log.split("\"debug\":\"").nth(1).and_then(|rest| rest.split_once('"'));
            if let Some((address, _)) = address {
                return (process, address.to_owned(), path);
            }
            assert!(attempt < 1200, "the operator does not start: {log}");
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        unreachable!("the loop ends with an address or a panic")
    }

    fn start(mut operator: std::process::Command, stage: &Stage) -> Self {
        operator.arg("run");
        Self::run(operator, stage, std::process::Stdio::null())
    }

    fn run(mut operator: std::process::Command, stage: &Stage, log: std::process::Stdio) -> Self {
        let nowhere = ["--metrics-bind-address=0", "--health-probe-bind-address=0", "--debug-bind-address=0"];
        operator.args(["--kubeconfig", &stage.kubeconfig]).args(nowhere).stderr(log);
        Self(operator.spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Returns a package with settings for the policy `agent`.
pub(crate) fn package(image: &str) -> Package {
    let file = PolicyFile { name: Some("agent".into()), settings: json!({"image": image}), ..PolicyFile::default() };
    Package { name: "policy-agent-settings".into(), namespace: HOME.into(), file, component: None }
}

/// Adds three Agents and their ModelAPI to the namespace `team`.
pub(crate) fn team(stage: &Stage) {
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

/// Returns a package with the default policy of Agents. The component's bytes depend on `number`, but its code does
/// not. `limits` is as in `policy.yaml`.
pub(crate) fn edition(number: u8, limits: &str) -> Package {
    let own = kaos_operator::embedded::DEFAULTS.iter().find(|it| it.manifest.contains("name: agent\n")).unwrap();
    let file = PolicyFile::parse(&format!("{}\nlimits: {limits}\n", own.manifest)).unwrap();
    // Append an empty custom section with a name of one letter: it changes the component's bytes, but not its code.
    let component = [own.component, &[0, 2, 1, b'a' + number]].concat();
    Package { name: "agents".into(), namespace: HOME.into(), file, component: Some(PolicyCode::component(component)) }
}
