//! Runs `kaos-operator policy preview` and `approve` on an embedded cluster with a running operator, as a user does.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::time::Duration;

use kaos_cluster::PodFate;
use kaos_operator::package::{Package, pack};
use kaos_policy::rollout::{Approval, Rollout, RolloutGate};
use kube::{
    Api, Client,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::stage::{HOME, Process, Stage, package, team};

/// Returns a package that sets the image of Agents, and needs an approval.
fn candidate(image: &str) -> Package {
    let mut package = package(image);
    let gate = RolloutGate { approval: Some(Approval::Required), ..RolloutGate::default() };
    package.file.rollout = Rollout { gate, ..Rollout::default() };
    package
}

/// Writes a package into a file, as `policy pack` does.
fn packed(stage: &Stage, package: &Package) -> String {
    let index = pack(&package.name, &package.namespace, &package.file, None).unwrap().index;
    stage.folder.write("packed.json", serde_json::to_string(&index).unwrap())
}

/// Waits until the Deployments of these Agents exist.
async fn until_served(stage: &Stage, agents: &[&str]) {
    for agent in agents {
        for attempt in 0.. {
            if stage.cluster.object("apps", "deployments", "team", &format!("agent-{agent}")).is_some() {
                break;
            }
            assert!(attempt < 1200, "the operator does not serve Agent {agent}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Returns the paths of the changed fields in the output of `policy plan`, each with the number of children that change
/// there.
fn paths_of(plan: &Value) -> Vec<(String, usize)> {
    let mut paths: Vec<(String, usize)> = Vec::new();
    let children = plan["changes"].as_array().unwrap().iter().flat_map(|it| it["children"].as_array().unwrap());
    for field in children.flat_map(|child| child["fields"].as_array().unwrap()) {
        let path = field["path"].as_str().unwrap().to_owned();
        match paths.iter_mut().find(|(known, _)| *known == path) {
            Some((_, count)) => *count += 1,
            None => paths.push((path, 1)),
        }
    }
    paths.sort();
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn the_preview_of_a_held_package_is_the_plan_and_an_approval_lets_it_serve() {
    let stage = Stage::start("preview").await;
    team(&stage);
    let _operator = Process::operator(&stage);
    until_served(&stage, &["a", "b", "c"]).await;
    let packed = packed(&stage, &candidate("registry.example/agent:2"));
    let plan = stage.policy(&["plan", &packed, "-o", "json"]).await;
    assert_eq!(plan.code, 2, "{}", plan.stderr);
    let plan = plan.json();

    let ran = stage.policy(&["push", &packed]).await;
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    for told in ["is Held (AwaitsApproval): a person must approve the package", "kaos-operator policy approve"] {
        assert!(ran.stderr.contains(told), "{told}: {}", ran.stderr);
    }
    let ran = stage.policy(&["preview", "policy-agent-settings", "-o", "json"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let answer = ran.json();
    let preview = &answer["preview"];
    let fuel = &preview["fuel"];
    for (of_plan, of_preview) in [
        (&plan["objects"], &preview["objects"]),
        (&plan["changed"], &preview["changed"]),
        (&plan["rolls"], &preview["podsReplaced"]),
        (&plan["refused"], &preview["refused"]),
        (&plan["fuel"]["before"]["median"], &fuel["medianBefore"]),
        (&plan["fuel"]["before"]["most"], &fuel["maxBefore"]),
        (&plan["fuel"]["after"]["median"], &fuel["medianAfter"]),
        (&plan["fuel"]["after"]["most"], &fuel["maxAfter"]),
    ] {
        assert_eq!(of_plan, of_preview, "{plan:#}\n{preview:#}");
    }
    let mut paths: Vec<(String, usize)> = preview["paths"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["path"].as_str().unwrap().to_owned(), usize::try_from(it["count"].as_u64().unwrap()).unwrap()))
        .collect();
    paths.sort();
    assert_eq!(paths, paths_of(&plan), "{preview:#}");

    let ran = stage.policy(&["preview", "agent"]).await;
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for told in ["is Held", "].image", "registry.example/agent:2", "3 of 3 objects change, 3 pods replaced."] {
        assert!(ran.stdout.contains(told), "{told}: {}", ran.stdout);
    }
    assert!(ran.stderr.contains("held: a person must approve"), "{}", ran.stderr);

    let ran = stage.policy(&["approve", "agent"]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("by admin") && ran.stdout.contains("is Active"), "{}{}", ran.stdout, ran.stderr);
    let listed = stage.policy(&["list", "-o", "json"]).await.json();
    let is_approved = |revision: &Value| {
        revision["source"]["configMap"] == "policy-agent-settings" && revision["status"]["approved"]["by"] == "admin"
    };
    assert!(listed.as_array().unwrap().iter().any(is_approved), "{listed:#}");
    let ran = stage.policy(&["approve", "agent"]).await;
    assert!(ran.code == 2 && ran.stderr.contains("no package of this name is held"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_verbs_say_what_is_missing() {
    let stage = Stage::start("preview-none").await;
    stage.revision("agent-1", &package("x:1"), 1, &json!({"state": "Active", "policy": "agent"}));
    let ran = stage.policy(&["preview", "agent"]).await;
    assert!(ran.code == 2 && ran.stderr.contains("the operator computed no effect"), "{}", ran.stderr);
    let ran = stage.policy(&["preview", "nobody", "--operator-namespace", HOME]).await;
    assert!(ran.code == 2 && ran.stderr.contains("policy list --all"), "{}", ran.stderr);
    stage.revision(
        "agent-2",
        &package("x:2"),
        2,
        &json!({"state": "Held", "policy": "agent", "reason": "TooManyPods"}),
    );
    let ran = stage.policy(&["approve", "agent-2", "--timeout", "1"]).await;
    assert!(
        ran.code == 1 && ran.stderr.contains("is Held after 1 seconds: is the operator running?"),
        "{}",
        ran.stderr
    );
}

/// Waits until an Agent's condition `Applied` has the reason `Gated`.
async fn until_gated(stage: &Stage, agent: &str) {
    let is_gated = |agent: &Value| {
        let conditions = agent["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|it| it["type"] == "Applied" && it["reason"] == "Gated")
    };
    for attempt in 0.. {
        if stage.cluster.object("kaos.tools", "agents", "team", agent).is_some_and(|agent| is_gated(&agent)) {
            break;
        }
        assert!(attempt < 1200, "plan gates do not hold Agent {agent}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Adds two Agents whose plans the plan gates hold back. The ModelAPI of the Agent `starts` never becomes ready, so the
/// operator applies none of this Agent's children. The MemoryStore of the Agent `remembers` is deleted after the first
/// apply, so this Agent's children stay as they are.
async fn held_agents(stage: &Stage) {
    let add = |plural: &str, kind: &str, name: &str, spec: Value| {
        let metadata = json!({"name": name, "namespace": "team", "generation": 1});
        let object = json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec});
        stage.cluster.plant("kaos.tools", plural, object);
    };
    stage.cluster.set_pods_of("team", "modelapi-slow", Some(PodFate::NotReady));
    add("modelapis", "ModelAPI", "slow", json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}}));
    add("agents", "Agent", "starts", json!({"modelAPI": "slow", "model": "gpt"}));
    let connection = json!({"name": "pg", "key": "dsn", "optional": true});
    let storage = json!({"type": "external", "external": {"connectionSecretRef": connection}});
    let model = json!({"modelAPI": "llm", "model": "gpt"});
    let models = json!({"summarization": model, "embedding": model});
    add("memorystores", "MemoryStore", "notes", json!({"storage": storage, "models": models}));
    let memory = json!({"memory": {"memoryStore": "notes"}});
    add("agents", "Agent", "remembers", json!({"modelAPI": "llm", "model": "gpt", "config": memory}));
    until_gated(stage, "starts").await;
    until_served(stage, &["remembers"]).await;
    let of = ApiResource::from_gvk(&GroupVersionKind::gvk("kaos.tools", "v1alpha1", "MemoryStore"));
    let stores: Api<DynamicObject> = Api::namespaced_with(Client::new(stage.cluster.service(), "team"), "team", &of);
    stores.delete("notes", &DeleteParams::default()).await.unwrap();
    until_gated(stage, "remembers").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plan_preview_and_push_agree_that_gates_keep_objects_as_they_are() {
    let stage = Stage::start("preview-gates").await;
    team(&stage);
    let _operator = Process::operator(&stage);
    until_served(&stage, &["a", "b", "c"]).await;
    held_agents(&stage).await;
    let deployment = || stage.cluster.object("apps", "deployments", "team", "agent-remembers").unwrap();
    let before = deployment()["spec"].clone();

    let packed = packed(&stage, &candidate("registry.example/agent:2"));
    let text = stage.policy(&["plan", &packed]).await;
    for told in ["Objects that change: 3 of 5.", "pods are replaced: 3.", "when their plan gates open: 2."] {
        assert!(text.stdout.contains(told), "{told}: {}", text.stdout);
    }
    for told in ["Agent team/remembers waits for MemoryStore notes", "Agent team/starts waits for ModelAPI slow"] {
        assert!(text.stderr.contains(told), "{told}: {}", text.stderr);
    }
    let plan = stage.policy(&["plan", &packed, "-o", "json"]).await.json();
    assert_eq!(plan["waiting"], 2, "{plan:#}");
    stage.policy(&["push", &packed]).await;
    let preview = stage.policy(&["preview", "policy-agent-settings", "-o", "json"]).await.json()["preview"].clone();
    for (of_plan, of_preview) in [("objects", "objects"), ("changed", "changed"), ("rolls", "podsReplaced")] {
        assert_eq!(plan[of_plan], preview[of_preview], "{plan:#}\n{preview:#}");
    }
    assert_eq!(preview["summary"], "3 of 5 objects change, 3 pods replaced, 2 held by gates");

    assert_eq!(stage.policy(&["approve", "agent"]).await.code, 0);
    let ran = stage.policy(&["push", &packed]).await;
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stdout.contains("2 objects are held until their plan gates open: Agent team/remembers: "),
        "{}",
        ran.stdout
    );
    assert_eq!(deployment()["spec"], before, "the gates keep the children");
}
