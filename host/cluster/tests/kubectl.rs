//! Tests an unmodified kubectl over TCP. If the machine has no kubectl, each test reports that it was skipped.
#![allow(clippy::unwrap_used, clippy::panic, reason = "what tests share fails by panicking")]

use std::{fs, path::PathBuf, time::Duration};

use kaos_cluster::{Cluster, PodFate, Server};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
};

struct Shell {
    cluster: Cluster,
    folder: PathBuf,
    _server: Server,
}

impl Shell {
    /// Starts a cluster that listens on a port and has a namespace `t`. Returns `None` if the machine has no kubectl.
    async fn open(name: &str) -> Option<Self> {
        let found = Command::new("kubectl").args(["version", "--client"]).output().await;
        if !found.is_ok_and(|output| output.status.success()) {
            eprintln!("skipped: this machine has no kubectl");
            return None;
        }
        let cluster = Cluster::start();
        let server = cluster.listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let folder = std::env::temp_dir().join(format!("kaos-cluster-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("kubeconfig"), server.kubeconfig("admin")).unwrap();
        let shell = Self { cluster, folder, _server: server };
        shell.run("create namespace t").await;
        Some(shell)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("kubectl");
        command.env("KUBECONFIG", self.folder.join("kubeconfig")).env("HOME", &self.folder).kill_on_drop(true);
        command.args(line.split(' ').map(|word| word.replace('~', " ")));
        command
    }

    /// Runs kubectl. In `line`, spaces separate the arguments, and `~` stands for a space inside of an argument.
    async fn run(&self, line: &str) -> String {
        let output = self.command(line).output().await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "kubectl {line}\n{text}{errors}");
        text
    }

    /// Runs kubectl and checks that it fails. Returns its error output.
    async fn refuse(&self, line: &str) -> String {
        let output = self.command(line).output().await.unwrap();
        assert!(!output.status.success(), "kubectl {line} succeeded, but must fail");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn write(&self, name: &str, value: &Value) -> String {
        let path = self.folder.join(name);
        fs::write(&path, value.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }

    async fn settled(&self) {
        self.cluster.settled().await;
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Ignore the error: a folder that remains in the temporary directory has no effect.
        let _gone = fs::remove_dir_all(&self.folder);
    }
}

fn web(image: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "t", "labels": {"app": "web"}},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": image, "env": [{"name": "A", "value": "1"}]}]}}}})
}

fn widgets() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.test.io"},
        "spec": {"group": "test.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "description": "A widget.", "properties": {
                    "spec": {"type": "object", "properties": {"mode": {"type": "string", "description": "How it works."}}},
                    "status": {"type": "object", "properties": {"conditions": {"type": "array", "items": {"type": "object",
                        "properties": {"type": {"type": "string"}, "status": {"type": "string"}}}}}}}}},
                "additionalPrinterColumns": [{"name": "Mode", "type": "string", "jsonPath": ".spec.mode"},
                    {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"}]}]}})
}

#[tokio::test]
async fn deployments_are_created_shown_scaled_and_rolled_out() {
    let Some(shell) = Shell::open("deployments").await else { return };
    shell.run("create deployment web --image=image:1 -n t").await;
    shell.run("wait deployment/web -n t --for=condition=Available --timeout=120s").await;
    let table = shell.run("get deployments -n t").await;
    assert!(table.starts_with("NAME") && table.contains("1/1"), "{table}");
    let object: Value = serde_json::from_str(&shell.run("get deployment web -n t -o json").await).unwrap();
    assert_eq!(object["spec"]["template"]["spec"]["containers"][0]["image"], "image:1");
    assert_eq!(shell.run("get deployment web -n t -o jsonpath={.status.readyReplicas}").await, "1");
    shell.run("scale deployment/web -n t --replicas=3").await;
    shell.run("set image deployment/web -n t *=image:2").await;
    assert!(shell.run("rollout status deployment/web -n t --timeout=120s").await.contains("successfully rolled out"));
    assert!(shell.run("rollout history deployment/web -n t").await.contains('2'));
    let described = shell.run("describe deployment web -n t").await;
    assert!(described.contains("image:2") && described.contains("ScalingReplicaSet"), "{described}");
    let everything = shell.run("get all -n t").await;
    assert!(everything.contains("replicaset.apps/web-") && everything.contains("pod/web-"), "{everything}");
    let pod = shell.run("get pods -n t -o name").await.lines().next().unwrap().to_owned();
    shell.run(&format!("delete -n t {pod}")).await;
    shell.run("rollout status deployment/web -n t --timeout=120s").await;
    shell.run("rollout undo deployment/web -n t").await;
    shell.settled().await;
    assert_eq!(shell.run("get deployment web -n t -o jsonpath={..image}").await, "image:1");
    shell.run("delete deployment web -n t --cascade=foreground").await;
    assert!(shell.cluster.objects("", "pods").is_empty());
}

#[tokio::test]
async fn objects_are_applied_from_either_side_patched_labelled_and_deleted() {
    let Some(shell) = Shell::open("apply").await else { return };
    let file = shell.write("web.json", &web("image:1"));
    assert!(shell.run(&format!("apply -f {file}")).await.contains("created"));
    assert!(shell.run(&format!("apply -f {file}")).await.contains("unchanged"));
    let changed = shell.write("changed.json", &web("image:2"));
    assert!(shell.run(&format!("diff -f {file}")).await.is_empty());
    assert!(shell.run(&format!("apply -f {changed}")).await.contains("configured"));
    let conflict = shell.refuse(&format!("apply --server-side -f {file}")).await;
    assert!(conflict.contains("conflict with \"kubectl-client-side-apply\""), "{conflict}");
    shell.run(&format!("apply --server-side --force-conflicts -f {file}")).await;
    shell.run(r#"patch deployment web -n t -p {"spec":{"template":{"spec":{"containers":[{"name":"main","env":[{"name":"B","value":"2"}]}]}}}}"#).await;
    let env = shell.run("get deployment web -n t -o jsonpath={..env[*].name}").await;
    assert_eq!(env.split(' ').count(), 2);
    shell.run("label deployment/web -n t tier=x").await;
    shell.run("annotate deployment/web -n t note=y").await;
    assert!(shell.run("get deployments -n t -l tier=x -o name").await.contains("deployment.apps/web"));
    shell.run("create configmap cm -n t --from-literal=k=v").await;
    shell.run("create secret generic s -n t --from-literal=k=v").await;
    shell.run("create service clusterip web -n t --tcp=80:8080").await;
    let services = shell.run("get services -n t").await;
    assert!(services.contains("10.96.") && services.contains("80/TCP"), "{services}");
    let unknown = shell.write(
        "unknown.json",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "u", "namespace": "t"}, "nonsense": 1}),
    );
    assert!(shell.refuse(&format!("apply -f {unknown}")).await.contains("unknown field \"nonsense\""));
    shell.run(&format!("apply --dry-run=server -f {changed}")).await;
    shell.run(&format!("delete -f {file}")).await;
    assert!(shell.refuse("get deployment web -n t").await.contains("not found"));
    shell.run("delete namespace t --timeout=120s").await;
}

#[tokio::test]
async fn custom_resources_are_explained_listed_and_shown_in_columns() {
    let Some(shell) = Shell::open("custom").await else { return };
    let file = shell.write("definition.json", &widgets());
    shell.run(&format!("apply --server-side -f {file}")).await;
    shell.run("wait crd/widgets.test.io --for=condition=Established --timeout=120s").await;
    assert!(shell.run("api-resources --api-group=test.io").await.contains("wd"));
    let explained = shell.run("explain widgets.spec.mode").await;
    assert!(explained.contains("How it works."), "{explained}");
    assert!(shell.run("explain deployment.spec.replicas").await.contains("FIELD: replicas"));
    let widget = shell.write("widget.json", &json!({"apiVersion": "test.io/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "t"}, "spec": {"mode": "fast"}}));
    shell.run(&format!("apply -f {widget}")).await;
    shell.run(r#"patch widget w -n t --subresource=status --type=merge -p {"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#).await;
    shell.run("wait widget/w -n t --for=condition=Ready --timeout=120s").await;
    let table = shell.run("get wd -n t").await;
    assert!(table.contains("MODE") && table.contains("fast") && table.contains("True"), "{table}");
    assert!(shell.run("describe widget w -n t").await.contains("Mode:  fast"));
    assert!(shell.run("get all -n t").await.contains("widget.test.io/w"));
    shell.run("delete crd widgets.test.io --timeout=120s").await;
    // kubectl's cache still contains the type, but the server no longer serves the type.
    let gone = shell.refuse("get widgets -n t").await;
    assert!(gone.contains("NotFound") || gone.contains("resource type"), "{gone}");
}

#[tokio::test]
async fn a_watch_prints_changes_as_they_come() {
    let Some(shell) = Shell::open("watch").await else { return };
    shell.cluster.set_pods(PodFate::NotReady);
    let mut watch = shell.command("get deployments -n t -w").stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    shell.run("create deployment web --image=image:1 -n t").await;
    shell.settled().await;
    shell.cluster.set_pods(PodFate::ReadyAfter(Duration::ZERO));
    let ready = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("1/1") {
                return true;
            }
        }
        false
    };
    assert!(tokio::time::timeout(Duration::from_mins(2), ready).await.unwrap());
    watch.kill().await.unwrap();
}

#[tokio::test]
async fn kubectl_can_i_and_requests_obey_the_access_rule() {
    let Some(shell) = Shell::open("access").await else { return };
    assert_eq!(shell.run("auth can-i delete pods -n t").await.trim(), "yes");
    shell.cluster.authorise(|attempt| !attempt.verb.is_write());
    let answer = shell.command("auth can-i delete pods -n t").output().await.unwrap();
    assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "no");
    let refused = shell.refuse("create configmap x -n t").await;
    assert!(
        refused
            .contains("User \"admin\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"t\""),
        "{refused}"
    );
}
