//! Runs `kaos-operator console` on an embedded cluster with an operator, and requests its pages as a browser does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod browser;

use std::process::Command;

use serde_json::{Value, json};

use self::browser::{Answer, Console};
use crate::{
    stage::{Process, Stage},
    support::{binary, ignores},
};

/// Headers that every answer has.
const PROTECTION: [&str; 5] = [
    "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src \
     'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options: nosniff",
    "x-frame-options: deny",
    "referrer-policy: same-origin",
    "cache-control: no-store",
];

/// A cluster with an operator and a console.
struct World {
    stage: Stage,
    /// The operator's process, which runs until the test drops this value.
    operator: Process,
    console: Console,
}

impl World {
    async fn start(name: &str) -> Self {
        let stage = Stage::start(name).await;
        let operator = Process::operator(&stage);
        add(
            &stage,
            "modelapis",
            "ModelAPI",
            "team",
            "llm",
            &json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}),
        );
        add(&stage, "agents", "Agent", "team", "writer", &writer());
        let console = Console::start(&stage.kubeconfig, &[]);
        Self { stage, operator, console }
    }
}

fn writer() -> Value {
    // Set `replicas`, because `plant` does not set the default that the API server sets.
    json!({"modelAPI": "llm", "model": "gpt", "replicas": 1, "container": {"env": [
        {"name": "PLAIN", "value": "visible"}, {"name": "API_KEY", "value": "s3cret-value"},
        {"name": "X_URL", "value": "postgres://user:s3cret-word@db/x"},
        {"name": "X_ARGS", "value": "--api_key=s3cret-flag --quiet"}]}})
}

fn add(stage: &Stage, plural: &str, kind: &str, namespace: &str, name: &str, spec: &Value) {
    let object = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "generation": 1}, "spec": spec});
    stage.cluster.plant("kaos.tools", plural, object);
}

const WRITER: &str = "kaos.tools/Agent/team/writer";

#[tokio::test(flavor = "multi_thread")]
async fn every_page_answers_and_changes_while_it_is_open() {
    let World { stage, console, .. } = &World::start("console-pages").await;
    console.until("/", "2 of 2 objects are ready.");
    console.until(&format!("/object/{WRITER}"), "Connections");
    // Expect data, because a browser ignores an event without data.
    console.until("/policies", "data: the page shows the newest state");
    for (path, texts) in [
        ("/", &["2 of 2 objects are ready.", "/objects?namespace=team\">team</a>"][..]),
        ("/objects?kind=Agent", &["Agent team/writer", "1 object is ready."]),
        ("/objects?name=nothing", &["There are no objects that you can see."]),
        (
            &format!("/object/{WRITER}"),
            &["ModelAPI team/llm", "Deployment agent-writer", "PLAIN", "visible", "spec.container.env[0]", "<svg"],
        ),
        (&format!("/effect/{WRITER}"), &["name: writer", "********", "Show the effect"]),
        ("/candidate", &["name: agent", "Show the effect"]),
        ("/policies", &["Which policy answers", "agent ", "default:agent.kaos.tools"]),
    ] {
        let Answer { status, head, body } = console.get(path);
        assert_eq!(status, 200, "{path}: {body}");
        for text in texts {
            assert!(body.contains(text), "{path}: {text:?} in {body}");
        }
        assert!(!body.contains("s3cret"), "{path}: {body}");
        assert_eq!(body.matches("<script").count(), 1, "{path}: {body}");
        assert!(!body.contains(" style=") && !body.contains(" onclick"), "{path}: {body}");
        for header in PROTECTION {
            assert!(head.contains(&header.to_lowercase()), "{path}: {header} in {head}");
        }
    }
    for path in ["/x", "/object/kaos.tools/Agent/team/other", "/object/v1/Pod/team/x", "/policies/other"] {
        let Answer { status, body, .. } = console.get(path);
        assert_eq!((status, body.contains("Not found")), (404, true), "{path}: {body}");
    }
    add(stage, "agents", "Agent", "team", "reader", &json!({"modelAPI": "other", "model": "gpt"}));
    console.until("/", "ModelAPI team/other does not exist");
}

/// The method, the path and the headers of a request, and the status of its answer.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], u16);

#[tokio::test(flavor = "multi_thread")]
async fn only_the_browser_that_has_the_address_gets_an_answer() {
    let stage = Stage::start("console-guard").await;
    let console = Console::start(&stage.kubeconfig, &[]);
    let (host, cookie, own) = (console.host(), console.cookie(), format!("http://{}", console.host()));
    let host = ("Host", &*host);
    let entered = console.send("GET", &format!("/?token={}", console.token), &[host], "");
    assert_eq!(entered.status, 200, "{entered:?}");
    let set = format!("set-cookie: {cookie}; path={}/; httponly; samesite=strict", console.base);
    assert!(entered.head.contains(&set), "the cookie is only for the secret path: {entered:?}");
    assert!(entered.body.contains(&format!("0; url={}/", console.base)), "{entered:?}");
    assert!(!cookie.contains(&console.token) && !console.base.contains(&console.token), "each secret has one use");
    let cookie = ("Cookie", &*cookie);
    let wrong = format!("/?token={}", "0".repeat(console.token.len()));
    let below = console.path(&format!("/?token={}", console.token));
    let foreign = ("Host", "kaos.example:80");
    let [home, events, script, edit, objects] =
        ["/", "/events?page=/", "/static/console.js", "/effect/kaos.tools/Agent/team/a", "/objects"]
            .map(|page| console.path(page));
    let other_port = ("Sec-Fetch-Site", "same-site");
    let refused: &[Case<'_>] = &[
        ("GET", &home, &[host], 403),
        ("GET", &events, &[host], 403),
        ("GET", &script, &[host], 403),
        ("GET", &wrong, &[host], 403),
        ("GET", &below, &[host], 403),
        ("GET", "/", &[host, cookie], 404),
        ("GET", "/static/console.js", &[host, cookie], 404),
        ("GET", &home, &[host, ("Cookie", "kaos-console=1")], 403),
        ("GET", &home, &[foreign, cookie], 421),
        ("GET", &home, &[host, cookie, other_port], 403),
        ("GET", &script, &[host, cookie, ("Sec-Fetch-Site", "cross-site")], 403),
        ("POST", &edit, &[host, cookie, ("Origin", "http://kaos.example")], 403),
        ("POST", &edit, &[host, cookie, ("Sec-Fetch-Site", "cross-site")], 403),
        ("POST", &home, &[host, cookie, ("Origin", &own)], 405),
        ("DELETE", &objects, &[host, cookie, ("Origin", &own)], 405),
    ];
    for (method, path, headers, status) in refused {
        let answer = console.send(method, path, headers, "");
        assert_eq!(answer.status, *status, "{method} {path} {headers:?}: {answer:?}");
        assert!(answer.head.contains("content-security-policy"), "{answer:?}");
    }
    let foreign_entry = console.send("GET", &format!("/?token={}", console.token), &[foreign], "");
    assert_eq!(foreign_entry.status, 421, "{foreign_entry:?}");
    assert_eq!(console.send("GET", &script, &[host, cookie], "").status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn markup_in_objects_and_policies_is_text() {
    const MARKUP: &str = "<script>alert(1)</script><img src=x onerror=alert(2)>\" autofocus onfocus=\"alert(3)";
    let stage = Stage::start("console-markup").await;
    let status = json!({"observedGeneration": 1, "phase": MARKUP, "message": MARKUP, "conditions": [
        {"type": "Accepted", "status": "False", "reason": MARKUP, "message": MARKUP},
        {"type": "Ready", "status": "False", "reason": "Refused", "message": MARKUP}]});
    let agent = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "Agent",
        "metadata": {"name": "writer", "namespace": "team", "generation": 1, "annotations": {"note": MARKUP}},
        "spec": {"modelAPI": "llm", "model": MARKUP, "config": {"description": MARKUP}}, "status": status});
    stage.cluster.plant("kaos.tools", "agents", agent);
    let revision = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "PolicyRevision",
        "metadata": {"name": "evil", "namespace": "kaos-system"},
        "spec": {"source": {"namespace": "kaos-system", "configMap": "evil"}, "packageDigest": "sha256:0", "scope": {}},
        "status": {"state": "Held", "message": MARKUP, "policy": MARKUP, "reason": MARKUP, "preview": {
            "summary": MARKUP, "paths": [{"kind": MARKUP, "change": MARKUP, "path": MARKUP, "count": 1,
                "examples": [{"object": MARKUP, "before": MARKUP, "after": MARKUP}]}],
            "problems": [{"object": MARKUP, "problem": MARKUP, "message": MARKUP}]}}});
    stage.cluster.plant("kaos.tools", "policyrevisions", revision);
    let console = Console::start(&stage.kubeconfig, &[]);
    console.until("/objects", "team/writer");
    console.until("/policies", "evil");
    let edit = format!("/effect/{WRITER}");
    let text = format!("apiVersion: {MARKUP}");
    for answer in [
        console.get("/"),
        console.get("/objects"),
        console.get("/objects?name=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&namespace=%3Cimg%20src=x%3E"),
        console.get(&format!("/object/{WRITER}")),
        console.get(&edit),
        console.get("/policies"),
        console.get("/policies/evil"),
        console.get("/%3Cscript%3Ealert(1)%3C/script%3E"),
        console.post(&edit, &text),
    ] {
        let body = answer.body;
        assert_eq!(body.matches("<script").count(), 1, "{body}");
        for markup in ["<script>alert", "<img", "\" autofocus onfocus", "\" onfocus"] {
            assert!(!body.contains(markup), "{markup}: {body}");
        }
    }
    assert!(console.get("/policies/evil").body.contains("&lt;script&gt;alert(1)"));
    assert!(console.get(&format!("/object/{WRITER}")).body.contains("&lt;script&gt;alert(1)"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_sees_nothing_of_namespaces_without_rights_and_the_page_says_so_once() {
    let stage = Stage::start("console-rights").await;
    for namespace in ["closed", "open"] {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        stage.cluster.plant("", "namespaces", object);
        add(&stage, "agents", "Agent", namespace, &format!("of-{namespace}"), &json!({"modelAPI": "m", "model": "g"}));
    }
    stage.cluster.authorise(|attempt| {
        let is_kaos = attempt.group == "kaos.tools" && attempt.resource != "policyrevisions";
        attempt.user != "bob" || (is_kaos && attempt.namespace == "open") || attempt.resource == "namespaces"
    });
    let kubeconfig = stage.kubeconfig_of("bob");
    let console = Console::start(&kubeconfig, &[]);
    console.until("/", "of-open");
    console.until("/", "list deployments.apps in namespace open");
    let body = console.get("/").body;
    assert!(body.contains("You have no right to list objects in: ") && body.contains("closed"), "{body}");
    assert_eq!(body.matches("list deployments.apps in namespace open:").count(), 1, "{body}");
    assert_eq!(body.matches("only a part of the cluster").count(), 1, "{body}");
    for path in ["/", "/objects", "/objects?namespace=closed", "/policies"] {
        let answer = console.get(path);
        assert_eq!((answer.status, answer.body.contains("of-closed")), (200, false), "{path}");
    }
    let hidden = console.get("/object/kaos.tools/Agent/closed/of-closed");
    assert_eq!((hidden.status, hidden.body.contains("you have no right to see it")), (404, true), "{hidden:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_effect_of_an_edit_is_known_before_the_edit_and_nothing_is_written() {
    let World { stage, console, operator } = World::start("console-effect").await;
    console.until("/", "2 of 2 objects are ready.");
    stage.until_defaults_are_recorded().await;
    // Stop the operator, because it writes its proofs when nothing changes for a minute, and the test expects no
    // writes. The console only needs the objects in the cluster.
    drop(operator);
    let path = format!("/effect/{WRITER}");
    let page = console.get(&path).body;
    let yaml = page.split_once("<textarea").and_then(|(_, rest)| rest.split_once('>')).unwrap().1;
    let yaml = yaml.split_once("</textarea>").unwrap().0.replace("&quot;", "\"").replace("&amp;", "&");
    let before = stage.cluster.revision();
    let same = console.post(&path, &yaml);
    assert!(same.body.contains("No child would change."), "{}", same.body);
    let changed = console.post(&path, &yaml.replace("visible", "other"));
    assert!(changed.body.contains("Kubernetes would replace the pods of 1 workload."), "{}", changed.body);
    for text in ["Deployment/agent-writer", "visible", "other"] {
        assert!(changed.body.contains(text), "{text}: {}", changed.body);
    }
    assert!(!changed.body.contains("s3cret"), "{}", changed.body);
    let refused = console.post(&path, &yaml.replace("model: gpt", "model: [1]"));
    assert!(
        refused.body.contains("The edit cannot be used") && refused.body.contains("spec.model"),
        "{}",
        refused.body
    );
    let waits = console.post(&path, &yaml.replace("modelAPI: llm", "modelAPI: other"));
    assert!(waits.body.contains("ModelAPI other"), "{}", waits.body);
    let settings = console.post("/candidate", "name: agent\nsettings: {image: example.org/agent:2}\n");
    for text in ["Effect of the settings", "Objects that change: 1 of 1.", "example.org/agent:2"] {
        assert!(settings.body.contains(text), "{text}: {}", settings.body);
    }
    let wrong = console.post("/candidate", "name: agent\nsettings: {image: 1}\n");
    assert!(wrong.body.contains("The settings cannot be used"), "{}", wrong.body);
    let writes = stage.cluster.revision() - before;
    assert_eq!(writes, 0, "the console writes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_objects_than_a_picture_can_show_are_groups_in_it() {
    let stage = Stage::start("console-groups").await;
    for number in 0..70 {
        let name = format!("agent-{number}");
        add(&stage, "agents", "Agent", "team", &name, &json!({"modelAPI": "llm", "model": "gpt"}));
    }
    let spec = json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}});
    add(&stage, "modelapis", "ModelAPI", "team", "llm", &spec);
    let console = Console::start(&stage.kubeconfig, &[]);
    console.until("/objects", "70 connections to 1 ModelAPI in team");
    let body = console.get("/objects").body;
    for text in ["70 Agent in team", "70 not ready", "/objects?namespace=team&amp;kind=Agent\"", "<svg"] {
        assert!(body.contains(text), "{text}: {body}");
    }
    assert_eq!(body.matches("class=\"node").count(), 2, "{body}");
}

#[test]
fn the_demo_opens_the_console_on_its_own_cluster() {
    let console = Console::of(binary().args(["demo", "--plain", "--console", "--no-browser"]));
    console.until("/", "objects are ready.");
    console.until("/objects", "Agent team/coordinator");
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_the_console_while_a_page_is_open() {
    let stage = Stage::start("console-stop").await;
    let mut console = Console::start(&stage.kubeconfig, &[]);
    console.until("/", "There are no objects that you can see.");
    let _open = console.connect();
    let (id, signal) = (console.process.id().to_string(), if ignores(2) { "-TERM" } else { "-INT" });
    let interrupted = Command::new("kill").args([signal, &id]).status().unwrap();
    assert!(interrupted.success());
    let ended = console.process.wait().unwrap();
    assert!(ended.success(), "{ended:?}");
}
