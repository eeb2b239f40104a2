//! Runs `kaos-operator demo`, and then the kubectl commands that the demo suggests in its last lines. Without kubectl
//! on the machine, the tests only print that they are skipped.
#![cfg(feature = "demo")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{
    io::{BufRead as _, BufReader, Read as _},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::Duration,
};

use crate::support::{Folder, binary, finish, ignores, run};
use serde_json::Value;

/// The time limit for a change that a test waits for.
const PATIENCE: Duration = Duration::from_mins(2);

/// A running demo, with the kubeconfig for its cluster.
struct Demo {
    process: Child,
    lines: Option<std::process::ChildStdout>,
    kubeconfig: PathBuf,
    folder: Folder,
}

impl Demo {
    /// Starts the demo and waits for its last message. Returns `None` without kubectl.
    fn start(name: &str) -> Option<Self> {
        let found = Command::new("kubectl").args(["version", "--client"]).output();
        if !found.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: this machine has no kubectl");
            return None;
        }
        let folder = Folder::new(name);
        let mut process = binary().args(["demo", "--plain", "--watch-secrets"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap());
        let (mut told, mut kubeconfig) = (String::new(), None);
        while kubeconfig.is_none() {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the demo ended\n{told}");
            kubeconfig = line.trim().strip_prefix("export KUBECONFIG=").map(PathBuf::from);
            told.push_str(&line);
        }
        let active = "PolicyRevision policy-agent-settings-";
        let (held, returned) = ("is Held (TooManyPods)", "is Quarantined (Returned)");
        for said in
            ["Agent/coordinator: Ready", "kaos-agent", "Changing the policies' settings, live", active, held, returned]
        {
            assert!(told.contains(said), "{said} is not in\n{told}");
        }
        let lines = Some(lines.into_inner());
        Some(Self { process, lines, kubeconfig: kubeconfig.unwrap(), folder })
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("kubectl");
        command.env("KUBECONFIG", &self.kubeconfig).env("HOME", self.folder.path());
        command.args(["--namespace", "team"]).args(line.split(' ').map(|word| word.replace('~', " ")));
        command
    }

    /// Runs kubectl in the namespace of the demo's objects. In `line`, `~` stands for a space inside an argument.
    fn kubectl(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "kubectl {line}\n{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// Waits until a field of an object has a value.
    fn wait(&self, at: &str, path: &str, value: &str) {
        self.kubectl(&format!("wait {at} --for=jsonpath={{{path}}}={value} --timeout={}s", PATIENCE.as_secs()));
    }

    fn get(&self, at: &str, path: &str) -> String {
        self.kubectl(&format!("get {at} -o jsonpath={{{path}}}"))
    }

    /// Writes a text to a file and applies it.
    fn apply(&self, flags: &str, text: &str) -> String {
        let file = self.folder.write("applied.yaml", text);
        self.kubectl(&format!("apply{flags} -f {file}"))
    }

    /// Waits until a condition is true.
    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        for _ in 0..PATIENCE.as_secs() * 10 {
            if is_so() {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("{what}: this did not happen in time\n{}", self.kubectl("get kaos -o yaml"));
    }

    /// Waits until an object with another UID exists.
    fn until_replaced(&self, at: &str, uid: &str) {
        for _ in 0..PATIENCE.as_secs() * 10 {
            let now = self.kubectl(&format!("get {at} --ignore-not-found -o jsonpath={{.metadata.uid}}"));
            if !now.is_empty() && now != uid {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        panic!("no new {at} appeared in time");
    }

    /// Sends Ctrl-C. Returns the exit code and the rest of the output.
    fn interrupt(mut self) -> (Option<i32>, String) {
        let sent = Command::new("kill").args(["-INT", &self.process.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let mut rest = String::new();
        self.lines.take().unwrap().read_to_string(&mut rest).unwrap();
        let code = self.process.wait().unwrap().code();
        let left = self.kubeconfig.parent().unwrap();
        assert!(!left.exists(), "{} is left behind", left.display());
        (code, rest)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Ignore an error, because the process may have ended already.
        let _ended = self.process.kill().and_then(|()| self.process.wait());
    }
}

#[test]
fn demo_deletes_its_folder_on_sigterm() {
    let mut process = binary().args(["demo", "--plain"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap());
    let mut told = String::new();
    while !told.contains(" serves ") {
        assert!(lines.read_line(&mut told).unwrap() > 0, "the demo ended\n{told}");
    }
    let folder = std::env::temp_dir().join(format!("kaos-demo-{}", process.id()));
    assert!(folder.join("kubeconfig").exists());
    let sent = Command::new("kill").args(["-TERM", &process.id().to_string()]).status().unwrap();
    assert!(sent.success());
    lines.read_to_string(&mut told).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0), "{told}");
    assert!(!folder.exists(), "{} is left behind", folder.display());
}

#[test]
fn demo_ends_quietly_when_its_reader_and_its_terminal_go_away() {
    let mut demo = binary();
    let mut process = demo.args(["demo", "--plain"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap());
    let mut told = String::new();
    // After the last message and an empty line, the demo prints nothing until something changes.
    while !(told.contains("# they come back") && told.ends_with("\n\n")) {
        assert!(lines.read_line(&mut told).unwrap() > 0, "the demo ended\n{told}");
    }
    let folder = std::env::temp_dir().join(format!("kaos-demo-{}", process.id()));
    assert!(folder.join("kubeconfig").exists());
    drop(lines);
    let signal = if ignores(1) { "-TERM" } else { "-HUP" };
    let sent = Command::new("kill").args([signal, &process.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let output = process.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert!(!folder.exists(), "{} is left behind", folder.display());
}

#[test]
fn demo_names_files_without_a_crd_and_objects_of_unknown_kinds() {
    let folder = Folder::new("demo-wrong");
    let object = folder.write("agent.yaml", agent("a", "be brief"));
    let misspelt = folder.write("misspelt.yaml", agent("a", "be brief").replace("kind: Agent", "kind: Agnet"));
    let elsewhere = folder.write("kite.yaml", "apiVersion: example.org/v1\nkind: Kite\nmetadata: {name: red}\n");
    for (flag, file, told) in [
        ("--crds", &object, "agent.yaml: document 1: not a CustomResourceDefinition"),
        (
            "-f",
            &misspelt,
            "misspelt.yaml: document 1: the demo's cluster serves no kind Agnet of kaos.tools/v1alpha1: did you mean \
             Agent?",
        ),
        ("-f", &elsewhere, "kite.yaml: document 1: the demo's cluster serves no kind Kite of example.org/v1"),
    ] {
        let ran = finish(binary().args(["demo", "--plain", "--once", flag, file]), "");
        assert_eq!(ran.code, 2, "{file}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains(told), "{file}: {}", ran.stderr);
    }
}

fn agent(name: &str, instructions: &str) -> String {
    format!(
        "apiVersion: kaos.tools/v1alpha1\nkind: Agent\nmetadata: {{name: {name}, namespace: team}}\n\
         spec: {{modelAPI: models, model: 'smollm2:135m', config: {{instructions: {instructions}}}}}\n"
    )
}

#[test]
fn kubectl_works_with_the_demo_until_ctrl_c() {
    let Some(demo) = Demo::start("kubectl") else { return };
    looks(&demo);
    applies_and_changes(&demo);
    breaks_and_is_healed(&demo);
    goes_its_own_way(&demo);
    watches_secrets(&demo);
    says_what_it_does_not_do(&demo);
    let (code, rest) = demo.interrupt();
    assert_eq!(code, Some(0), "{rest}");
}

fn looks(demo: &Demo) {
    let resources = demo.kubectl("api-resources --api-group=kaos.tools");
    for kind in ["Agent", "ModelAPI", "MCPServer", "MemoryStore", "PolicyRevision"] {
        assert!(resources.contains(kind), "{resources}");
    }
    let explained = demo.kubectl("explain agents.spec.waitForDependencies");
    assert!(explained.contains("FIELD: waitForDependencies <boolean>"), "{explained}");
    let table = demo.kubectl("get kaos");
    assert!(table.contains("agent.kaos.tools/coordinator") && table.contains("modelapi.kaos.tools/models"), "{table}");
    let table = demo.kubectl("get agents");
    let row = table.lines().find(|line| line.starts_with("coordinator")).unwrap();
    assert!(table.starts_with("NAME") && row.contains("Ready"), "{table}");
    let list: Value = serde_json::from_str(&demo.kubectl("get agents -o json")).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 3);
    assert_eq!(demo.get("agent/analyst", ".status.endpoint"), "http://agent-analyst.team.svc.cluster.local:8000");
    let described = demo.kubectl("describe agent coordinator");
    for told in ["Observed Generation:", "Type:", "Accepted", "Resolved", "Applied", "Ready", "Events:"] {
        assert!(described.contains(told), "{told} is not in\n{described}");
    }
}

fn applies_and_changes(demo: &Demo) {
    let mut watch = demo.command("get agents -w").stdout(Stdio::piped()).spawn().unwrap();
    let seen = BufReader::new(watch.stdout.take().unwrap());
    assert!(demo.apply("", &agent("writer", "be brief")).contains("created"));
    assert!(demo.apply("", &agent("writer", "be brief")).contains("unchanged"));
    demo.kubectl(&format!("wait agent/writer --for=condition=Ready --timeout={}s", PATIENCE.as_secs()));
    let ready = |line: &String| line.starts_with("writer") && line.contains("Ready");
    assert!(seen.lines().map_while(Result::ok).any(|line| ready(&line)), "the watch ended early");
    watch.kill().unwrap();
    watch.wait().unwrap();

    let before = demo.get("deployment/agent-writer", ".metadata.generation");
    let applied = demo.apply(" --server-side --force-conflicts", &agent("writer", "be exact"));
    assert!(applied.contains("serverside-applied"), "{applied}");
    demo.wait("agent/writer", ".status.observedGeneration", "2");
    assert_ne!(demo.get("deployment/agent-writer", ".metadata.generation"), before);
    demo.kubectl(r#"patch agent writer --type=merge -p {"spec":{"config":{"instructions":"be~kind"}}}"#);
    demo.wait("agent/writer", ".status.observedGeneration", "3");
    let rolled = demo.kubectl(&format!("rollout status deployment/agent-writer --timeout={}s", PATIENCE.as_secs()));
    assert!(rolled.contains("successfully rolled out"), "{rolled}");
    assert!(demo.get("deployment/agent-writer", "..env[*].value").contains("be kind"));
    demo.kubectl("label agent/writer tier=gold");
    assert!(demo.kubectl("get agents -l tier=gold -o name").contains("agent.kaos.tools/writer"));
    demo.kubectl("scale agent/writer --replicas=3");
    demo.wait("deployment/agent-writer", ".status.readyReplicas", "3");
    assert_eq!(demo.get("agent/writer", ".spec.replicas"), "3");
}

fn breaks_and_is_healed(demo: &Demo) {
    for at in ["deployment/agent-writer", "service/agent-writer"] {
        let uid = demo.get(at, ".metadata.uid");
        demo.kubectl(&format!("delete {at}"));
        demo.until_replaced(at, &uid);
    }
    demo.kubectl("label deployment/agent-writer app.kubernetes.io/managed-by-");
    demo.wait("deployment/agent-writer", r".metadata.labels.app\.kubernetes\.io/managed-by", "kaos-operator");
    let pods = demo.kubectl("get pods -o name");
    let pod = pods.lines().find(|pod| pod.contains("agent-analyst")).unwrap();
    demo.kubectl(&format!("delete {pod}"));
    demo.kubectl(&format!("rollout status deployment/agent-analyst --timeout={}s", PATIENCE.as_secs()));
    demo.kubectl(&format!("wait agents --all --for=condition=Ready --timeout={}s", PATIENCE.as_secs()));
    demo.kubectl("delete agent writer");
    demo.kubectl(&format!("wait deployment/agent-writer --for=delete --timeout={}s", PATIENCE.as_secs()));
}

/// Checks that the operator does not change a Deployment that the user creates.
fn goes_its_own_way(demo: &Demo) {
    demo.kubectl("create deployment web --image=registry.example/web:1");
    demo.kubectl(&format!("rollout status deployment/web --timeout={}s", PATIENCE.as_secs()));
    let table = demo.kubectl("get deployments");
    assert!(table.lines().any(|line| line.starts_with("web") && line.contains("1/1")), "{table}");
    assert_eq!(demo.get("deployment/web", ".metadata.ownerReferences"), "");
    demo.kubectl("delete deployment web");
}

fn watches_secrets(demo: &Demo) {
    let key = "apiKey: {valueFrom: {secretKeyRef: {name: keys, key: token}}}";
    let keyed = format!(
        "apiVersion: kaos.tools/v1alpha1\nkind: ModelAPI\nmetadata: {{name: keyed, namespace: team}}\n\
         spec: {{mode: Proxy, proxyConfig: {{models: ['*'], {key}}}}}\n"
    );
    demo.kubectl("create secret generic keys --from-literal=token=x");
    demo.apply("", &keyed);
    demo.kubectl(&format!("wait modelapi/keyed --for=condition=Ready --timeout={}s", PATIENCE.as_secs()));
    let hash =
        || demo.get("deployment/modelapi-keyed", r".spec.template.metadata.annotations.kaos\.tools/pod-spec-hash");
    let before = hash();
    demo.kubectl(r#"patch secret keys --type=merge -p {"data":{"token":"eQ=="}}"#);
    demo.until("pods roll with their Secret", || hash() != before);
}

fn says_what_it_does_not_do(demo: &Demo) {
    demo.kubectl("create job once --image=registry.example/once:1");
    demo.kubectl(&format!("wait job/once --for=condition=Complete --timeout={}s", PATIENCE.as_secs()));
    let table = demo.kubectl("get statefulsets,jobs,poddisruptionbudgets");
    assert!(table.lines().any(|line| line.starts_with("job.batch/once") && line.contains("1/1")), "{table}");
    let pods = demo.kubectl("get pods -o name");
    let pod = pods.lines().find(|pod| pod.contains("agent-analyst")).unwrap();
    let refused = |line: &str| {
        let output = demo.command(line).output().unwrap();
        assert!(!output.status.success(), "kubectl {line}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let told = refused(&format!("logs {pod}"));
    assert!(told.contains("this cluster runs no containers") && told.contains("kubectl describe pod"), "{told}");
    let told = refused("create quota most --hard=pods=1");
    assert!(told.contains("the demo's cluster serves Namespace, ConfigMap, ") && told.contains("Job.batch"), "{told}");
    let help = finish(binary().args(["demo", "--help"]), "");
    assert!(help.stdout.contains("StatefulSet.apps") && help.stdout.contains("`kubectl logs`"), "{}", help.stdout);
}

#[test]
fn a_demo_without_an_object_for_its_settings_changes_no_settings() {
    let folder = Folder::new("demo-own-kind");
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/../../guest-policies/template");
    let (script, crd) = (format!("{template}/javascript/policy.js"), format!("{template}/crd.yaml"));
    let site = "apiVersion: example.com/v1\nkind: Website\nmetadata: {name: a, namespace: team}\nspec: {title: T}\n";
    let site = folder.write("site.yaml", site);
    let demo = ["demo", "--plain", "--once", "--policy", &script, "--crds", &crd, "-f", &site];
    let ran = finish(binary().args(demo), "");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("Website/a: Ready") && !ran.stdout.contains("settings, live"), "{}", ran.stdout);
}

#[test]
fn a_demo_without_an_object_for_a_policy_waits_for_nothing() {
    let folder = Folder::new("demo-nothing");
    let file = folder.write("namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n");
    let ran = run(["demo", "--once", "--plain", "-f", &file], "");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for told in ["Applying 1 object\n", "no object of a kind for which a policy answers: nothing to wait for"] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("Changing the policies' settings"), "{}", ran.stdout);
}
