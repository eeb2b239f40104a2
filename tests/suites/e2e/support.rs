//! Installs the chart on a cluster, and starts operators like the pods of the chart.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::{Duration, Instant};

use http::Request;
use kaos_tests::case::{self, Case};
use kaos_tests::control_plane::{ControlPlane, Pod, Process, Ran};
use kaos_tests::harness::World;
use kaos_tests::harness::samples;
use kaos_tests::widgets;
use kube::Client;
use serde_json::{Value, json};

/// The operator's namespace.
pub(crate) use kaos_tests::harness::scenario::SYSTEM;

use crate::lane::Lane;

pub(crate) const RELEASE: &str = "kaos";
pub(crate) const CHART: &str = "../deploy/helm/kaos-operator";
pub(crate) const LEASE: &str = "kaos-system:Lease/kaos-operator.kaos.tools";
/// The operator's user name on the API server.
pub(crate) const USER: &str = "system:serviceaccount:kaos-system:kaos-kaos-operator";

/// The time limit of a wait. The limit is long, because a machine that also compiles is slow.
const PATIENCE: Duration = Duration::from_mins(10);

/// The installed chart. Dropping this value removes the objects that the test created. The release itself stays for the
/// next test with equal flags, if the test did not change the release.
pub(crate) struct Release {
    pub(crate) cluster: &'static ControlPlane,
    client: Client,
    namespaces: RefCell<Vec<String>>,
    started: Cell<usize>,
    /// The Helm flags of the release. `None` if a test changed the release since the install.
    installed: RefCell<Option<Vec<String>>>,
    lane: Lane,
}

impl Release {
    /// Waits for a cluster, and installs the chart with these Helm flags.
    pub(crate) async fn install(flags: &[&str]) -> Self {
        let wanted: Vec<String> = flags.iter().map(|&flag| flag.to_owned()).collect();
        let release = Self::begin(Some(&wanted)).await;
        if release.installed.borrow().as_ref() != Some(&wanted) {
            release.uninstall().expect();
            release.helm("install", flags).expect();
            release.until_owners_are_known().await;
        }
        release.installed.replace(Some(wanted));
        release
    }

    /// Waits until the API server's admission accepts KAOS objects as owners. Admission learns about new
    /// CustomResourceDefinitions some seconds later than the rest of the API server. Until then, admission rejects
    /// owners of the new kinds.
    pub(crate) async fn until_owners_are_known(&self) {
        let world = self.over("prober");
        world.apply(&samples::namespace("prober")).await;
        // Send the requests as a user with few rights, because admission does not check an administrator.
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "prober", "namespace": "prober"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "prober"}]});
        world.apply(&binding).await;
        // Check each kind, because the API server can apply the admission policies of one kind earlier than the
        // admission policies of another kind.
        let kinds = ["Agent", "AuthorizationPolicy", "MCPServer", "MemoryStore", "ModelAPI"];
        let are_known = async || {
            for kind in kinds {
                if !self.is_known_as_owner(kind).await {
                    return false;
                }
            }
            true
        };
        world.until_true("admission accepts the kinds as owners", are_known).await;
    }

    /// Asks the API server in a dry run to create a child of an object of this kind. Returns whether admission accepts
    /// owners of this kind.
    async fn is_known_as_owner(&self, kind: &str) -> bool {
        let owner = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "name": "a", "uid": "0",
            "blockOwnerDeletion": true});
        let child = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "owned", "namespace": "prober", "ownerReferences": [owner]}});
        let request = Request::post("/api/v1/namespaces/prober/configmaps?dryRun=All")
            .header("Content-Type", "application/json")
            .header("Impersonate-User", "prober")
            .body(child.to_string().into_bytes())
            .unwrap();
        let Err(kube::Error::Api(refusal)) = self.client.request::<Value>(request).await else { return false };
        refusal.message.contains("cannot set blockOwnerDeletion") && !refusal.message.contains("RESTMapping")
    }

    /// Waits for a cluster, and installs nothing.
    pub(crate) async fn prepare() -> Self {
        let release = Self::begin(None).await;
        release.uninstall().expect();
        release
    }

    async fn begin(wanted: Option<&[String]>) -> Self {
        let mut lane = Lane::take(wanted);
        let cluster = lane.cluster;
        let client = cluster.client().await.unwrap();
        let installed = RefCell::new(lane.installed.take());
        let release = Self { cluster, client, namespaces: RefCell::default(), started: Cell::new(0), installed, lane };
        let strict = json!({"pod-security.kubernetes.io/enforce": "restricted"});
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM, "labels": strict}});
        release.over(SYSTEM).apply(&namespace).await;
        release
    }

    /// Uninstalls the release, if it exists.
    fn uninstall(&self) -> Ran {
        self.is_changed();
        let flags = ["--namespace", SYSTEM, "--wait", "--timeout", "5m", "--ignore-not-found"];
        self.cluster.helm(&[&["uninstall", RELEASE], &flags[..]].concat())
    }

    /// Deletes the CustomResourceDefinitions of KAOS's kinds, like a user who wants to keep nothing. Waits until the
    /// cluster no longer serves the kinds.
    pub(crate) async fn delete_definitions(&self) {
        let all = self.cluster.kubectl(&["get", "crd", "-o", "name"]).expect();
        let own: Vec<&str> = all.lines().filter(|name| name.ends_with(".kaos.tools")).collect();
        if !own.is_empty() {
            self.cluster.kubectl(&[&["delete"], &own[..]].concat()).expect();
        }
        let is_unserved = async || !self.cluster.kubectl(&["get", "--raw", "/apis/kaos.tools"]).ok;
        self.over(SYSTEM).until_true("the cluster no longer serves the kinds", is_unserved).await;
    }

    /// Removes objects that a failed test left.
    fn clear_up(&self) {
        // Remove the finalizers, because no operator runs that would remove them.
        let names = r#"jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{"\n"}{end}"#;
        let nothing = r#"{"metadata": {"finalizers": null}}"#;
        for kind in
            ["accessgrants", "agents", "authorizationpolicies", "modelapis", "mcpservers", "memorystores", "widgets"]
        {
            let listed = self.cluster.kubectl(&["get", kind, "--all-namespaces", "-o", names]).out;
            for (namespace, name) in listed.lines().filter_map(|line| line.split_once(' ')) {
                self.cluster.kubectl(&["patch", kind, name, "-n", namespace, "--type=merge", "-p", nothing]);
            }
        }
        // Remove the ClusterRoles that gave the operator rights for installed policies.
        let further = ["--selector", "rbac.kaos.tools/aggregate-to-operator=true", "--ignore-not-found"];
        self.cluster.kubectl(&[&["delete", "clusterroles"], &further[..]].concat());
        // Remove the developer's bindings.
        let names = r#"jsonpath={.items[?(@.subjects[0].name=="developer")].metadata.name}"#;
        let bindings = self.cluster.kubectl(&["get", "rolebindings", "-n", SYSTEM, "-o", names]).out;
        let bindings: Vec<&str> = bindings.split_whitespace().collect();
        self.cluster.kubectl(&[&["delete", "rolebindings", "-n", SYSTEM], &bindings[..]].concat());
    }

    /// Marks the release as changed, so that the next test does not reuse this release.
    pub(crate) fn is_changed(&self) {
        self.installed.replace(None);
    }

    pub(crate) fn helm(&self, verb: &str, flags: &[&str]) -> Ran {
        self.is_changed();
        let command = [verb, RELEASE, CHART, "--namespace", SYSTEM, "--wait", "--timeout", "2m"];
        // Always add this flag: `helm upgrade` without values would reuse the values of the previous release.
        let fresh: &[&str] = if verb == "upgrade" { &["--reset-values"] } else { &[] };
        self.cluster.helm(&[&command, fresh, flags].concat())
    }

    /// Returns a world on this cluster, with `namespace` as the namespace of the test.
    pub(crate) fn over(&self, namespace: &str) -> World {
        World::over(self.client.clone(), namespace)
    }

    /// Creates a namespace for this test.
    pub(crate) async fn world(&self, namespace: &str) -> World {
        let world = self.over(namespace);
        // An earlier namespace with this name may still be terminating. Wait until it is gone: deleting a namespace
        // also deletes new objects in the namespace.
        let stays = |object: &Value| object["metadata"]["deletionTimestamp"].is_null();
        world.until("the earlier namespace with this name is gone", &format!("Namespace/{namespace}"), stays).await;
        world.apply(&samples::namespace(namespace)).await;
        self.namespaces.borrow_mut().push(namespace.to_owned());
        world
    }

    /// Packs a component with `policy pack`. Writes the output into a file in the same folder, and returns the file's
    /// path.
    pub(crate) fn packed(&self, component: &Path, flags: &[&str]) -> String {
        let path = component.display().to_string();
        let printed =
            self.cluster.operator(&self.cluster.kubeconfig(), &[&["policy", "pack", &path], flags].concat()).expect();
        let file = component.with_extension("yaml");
        std::fs::write(&file, printed).unwrap();
        file.display().to_string()
    }

    /// Packs an edition of the Widgets' policy with `policy pack`. Returns the path of the output.
    pub(crate) fn packed_widgets(&self, edition: &str, flags: &[&str]) -> String {
        let component = self.cluster.folder().join("widgets.wasm");
        std::fs::write(&component, widgets::component(edition).unwrap()).unwrap();
        self.packed(&component, flags)
    }

    /// Applies a file with kubectl.
    pub(crate) fn apply(&self, file: &str) {
        self.cluster.kubectl(&["apply", "--server-side", "-f", file]).expect();
    }

    /// Reads the pod of the operator's Deployment.
    pub(crate) async fn pod(&self) -> Pod {
        let world = self.over(SYSTEM);
        let deployment = world.look("Deployment/kaos-kaos-operator-controller-manager").await;
        let config = world.look("ConfigMap/kaos-operator-config").await;
        let preset = world.look("ConfigMap/kaos-operator-compatibility").await;
        Pod::of(&deployment, |name| match name {
            "kaos-operator-config" => config["data"].clone(),
            "kaos-operator-compatibility" => preset["data"].clone(),
            _ => Value::Null,
        })
    }

    /// Starts an operator with the arguments and the environment of the chart's pod, and with a new token of the pod's
    /// ServiceAccount.
    pub(crate) async fn operator(&self, flags: &[&str]) -> Process {
        let pod = self.pod().await;
        self.started.set(self.started.get() + 1);
        let name = format!("operator-{}-{}", self.started.get(), self.cluster.audit().mark().unwrap());
        let token = self.cluster.kubectl(&["create", "token", "--namespace", &pod.namespace, &pod.account]).expect();
        let kubeconfig = self.cluster.kubeconfig_for(&name, token.trim()).unwrap();
        let arguments = pod.arguments_in(self.cluster.folder()).unwrap();
        let arguments = arguments.into_iter().chain(flags.iter().map(|&flag| flag.to_owned()));
        let arguments: Vec<String> = arguments.collect();
        Process::start(self.cluster, &name, &kubeconfig, &arguments, &pod.environment).unwrap()
    }

    /// Starts an operator, and waits until the operator is ready and leads.
    pub(crate) async fn working_operator(&self) -> Process {
        self.working_operator_with(&[]).await
    }

    /// Starts an operator with additional flags, and waits until the operator is ready and leads.
    pub(crate) async fn working_operator_with(&self, flags: &[&str]) -> Process {
        let operator = self.operator(flags).await;
        until("the operator works", &operator, || operator.is_ready() && operator.leads()).await;
        operator
    }

    /// Runs the command of the uninstall hook on this machine, because pods on simulated nodes run no processes.
    pub(crate) fn hook(&self) -> Ran {
        let hooks = self.cluster.helm(&["get", "hooks", RELEASE, "-n", SYSTEM]).expect();
        let job: Value = serde_saphyr::from_multiple(&hooks).unwrap().remove(0);
        let hook = &job["metadata"]["annotations"]["helm.sh/hook"];
        assert_eq!((&job["kind"], hook), (&json!("Job"), &json!("pre-delete")));
        let pod = Pod::of(&job, |_| Value::Null);
        let token = self.cluster.kubectl(&["create", "token", "-n", SYSTEM, &pod.account]).expect();
        let kubeconfig = self.cluster.kubeconfig_for("hook", token.trim()).unwrap();
        let arguments: Vec<&str> = pod.arguments.iter().map(String::as_str).collect();
        self.cluster.operator(&kubeconfig, &arguments)
    }

    /// Returns the operator's requests that the API server rejected for lack of a right. Reads only the part of the
    /// audit log after the position `mark`.
    pub(crate) fn refused_since(&self, mark: usize) -> Vec<String> {
        let requests =
            self.cluster.audit().since(mark, USER).unwrap().into_iter().filter(|request| request.code == 403);
        requests.map(|request| format!("{} {}", request.verb, request.resource)).collect()
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.clear_up();
        }
        // Wait until the objects are gone, because the next test counts objects. Do not wait until the namespaces are
        // gone, because the next test has its own namespace.
        let kinds = "accessgrants,agents,authorizationpolicies,modelapis,mcpservers,memorystores";
        let objects = ["delete", kinds, "--all", "--all-namespaces", "--timeout=90s"];
        self.cluster.kubectl(&objects);
        let namespaces = self.namespaces.borrow();
        let names: Vec<&str> = namespaces.iter().map(String::as_str).collect();
        if !names.is_empty() {
            self.cluster
                .kubectl(&[&["delete", "namespace", "--ignore-not-found", "--wait=false"], &names[..]].concat());
        }
        if std::thread::panicking() || self.installed.borrow().is_none() {
            // Ignore an error: if the uninstall fails, the next test on this cluster tries again and reports the
            // reason.
            self.uninstall();
        }
        let here = ["--namespace", SYSTEM, "--ignore-not-found"];
        for label in ["kaos.tools/policy", "kaos.tools/settled"] {
            self.cluster.kubectl(&[&["delete", "configmaps", "--selector", label], &here[..]].concat());
        }
        self.cluster.kubectl(&[&["delete", "configmap", "kaos-operator-config-fitted"], &here[..]].concat());
        for kind in ["leases", "policyrevisions"] {
            self.cluster.kubectl(&[&["delete", kind, "--all"], &here[..]].concat());
        }
        self.lane.installed = self.installed.take();
    }
}

/// Waits until `holds` returns true.
pub(crate) async fn until(what: &str, operator: &Process, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        let log = operator.log();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines[lines.len().saturating_sub(40)..].join("\n");
        assert!(Instant::now() < deadline, "timed out waiting until {what}\n{}\n{last}", operator.get("/readyz"));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Waits until a process has ended. Returns its exit code and its log.
pub(crate) async fn ending(mut operator: Process) -> (Option<i32>, String) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = operator.ended() {
            return (status.code(), operator.log());
        }
        assert!(Instant::now() < deadline, "the operator does not end\n{}", operator.log());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Returns the recorded case with this name.
pub(crate) fn recorded(name: &str) -> Case {
    case::all().unwrap().into_iter().find(|case| case.name == name).unwrap()
}

/// Moves the objects of a case from the case's namespace to another namespace. Omits objects outside of the case's
/// namespace.
pub(crate) fn moved(objects: &[Value], namespace: &str) -> Vec<Value> {
    let own = objects.iter().filter(|object| object["metadata"]["namespace"] == "parity");
    let moved = own.map(|object| serde_json::from_str(&object.to_string().replace("parity", namespace)).unwrap());
    moved.collect()
}

/// Returns the key of an object, `Kind/name`.
pub(crate) fn at(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}/{}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Waits until all of these objects are ready.
pub(crate) async fn until_ready(world: &World, objects: &[Value]) {
    let names: Vec<String> = objects.iter().map(at).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    world.until_all("the objects are ready", &names, |all| all.iter().all(kaos_tests::harness::is_ready)).await;
}

/// Waits until a Deployment runs an image.
pub(crate) async fn until_image(world: &World, deployment: &str, image: &str) {
    let runs = |it: &Value| it["spec"]["template"]["spec"]["containers"][0]["image"] == image;
    world.until(&format!("{deployment} runs {image}"), deployment, runs).await;
}

/// Waits until the package in a ConfigMap is active. Returns the package's revision.
pub(crate) async fn until_active(release: &Release, config_map: &str) -> Value {
    until_state(release, config_map, "Active").await
}

/// Waits until the package in a ConfigMap has a revision in this state. Returns the revision.
pub(crate) async fn until_state(release: &Release, config_map: &str, state: &str) -> Value {
    let system = release.over(SYSTEM);
    let found = async || {
        let all = system.list("PolicyRevision").await;
        all.into_iter().find(|revision| {
            revision["spec"]["source"]["configMap"] == config_map && revision["status"]["state"] == state
        })
    };
    system.until_true(&format!("a revision of {config_map} is {state}"), async || found().await.is_some()).await;
    found().await.unwrap()
}
