//! Checks that the chart grants every right that the operator needs, and no other right.
//!
//! The audit log shows the rights that the operator uses directly. The test makes the operator use all its rights. Then
//! the log must contain a request for each right that the operator uses directly. When the operator creates a child,
//! the API server also checks further rights of the operator, and no log shows these checks. To prove that the operator
//! needs these further rights, the test removes one of them at a time. The API server must then reject a request. The
//! unit tests of the RBAC rules check that no rule grants a right twice.

mod missing;

use std::time::{Duration, Instant};

use kaos_tests::control_plane::audit::Request;
use kaos_tests::harness::World;
use kaos_tests::harness::definitions::routes;
use kaos_tests::harness::read::{reason, text, uid};
use kaos_tests::harness::samples::{agent, config_map, deployment, mcp_server, memory_store, model_api};
use kaos_tests::shipped;
use serde_json::{Value, json};

use crate::support::{CHART, LEASE, Release, SYSTEM, USER, at, ending, until, until_active, until_ready, until_state};

/// Helm flags for a Gateway that routes requests to Agents, and to the objects that Agents use. The Gateway accepts the
/// tokens of Agents.
const GATEWAY: [&str; 4] = [
    "--set",
    "gatewayAPI.enabled=true",
    "--set",
    "extraConfig.SECURITY_AGENT_AUTH_SERVICE_ACCOUNT_AUDIENCE=kaos-gateway",
];
const HOME: Role = Role { name: "kaos-kaos-operator-home", namespace: Some(SYSTEM) };
const EVERYWHERE: Role = Role { name: "kaos-kaos-operator-kaos-operator", namespace: None };

/// A role of the operator. A role without a namespace is a `ClusterRole`.
struct Role {
    name: &'static str,
    namespace: Option<&'static str>,
}

impl Role {
    fn kubectl(&self, release: &Release, verb: &str, flags: &[&str]) -> String {
        let which = match self.namespace {
            Some(namespace) => vec!["role", self.name, "-n", namespace],
            None => vec!["clusterrole", self.name],
        };
        release.cluster.kubectl(&[&[verb], &which[..], flags].concat()).expect()
    }

    fn rules(&self, release: &Release) -> Vec<Value> {
        let role: Value = serde_json::from_str(&self.kubectl(release, "get", &["-o", "json"])).unwrap();
        role["rules"].as_array().unwrap().clone()
    }

    fn set_rules(&self, release: &Release, rules: &[Value]) {
        let patch = json!({"rules": rules}).to_string();
        self.kubectl(release, "patch", &["--type=merge", "-p", &patch]);
    }

    /// Returns the rights of this role that none of the requests `asked` has used.
    fn idle(&self, release: &Release, asked: &[Request]) -> Vec<String> {
        let mut idle = Vec::new();
        for rule in self.rules(release) {
            let names = words(&rule["resourceNames"]);
            let is_here = |request: &&Request| {
                self.namespace.is_none_or(|namespace| request.namespace == namespace)
                    && (names.is_empty() || names.contains(&request.name.as_str()))
            };
            let taken: Vec<(&str, String)> = asked.iter().filter(is_here).flat_map(taken_by).collect();
            for (resource, verb) in pairs(&rule) {
                if !taken.iter().any(|(of, what)| *of == verb && *what == resource) {
                    idle.push(format!("{verb} {resource} {names:?}"));
                }
            }
        }
        idle
    }
}

fn words(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().map(text).collect()
}

/// Returns each pair of a resource and a verb that an RBAC rule grants.
fn pairs(rule: &Value) -> Vec<(&str, &str)> {
    let verbs = words(&rule["verbs"]);
    words(&rule["resources"]).into_iter().flat_map(|it| verbs.iter().map(move |verb| (it, *verb))).collect()
}

/// Returns the rights that a request used, each as verb and resource. If the request creates a child, these include the
/// further rights that the API server checks.
fn taken_by(request: &Request) -> Vec<(&str, String)> {
    if request.code == 403 {
        return Vec::new();
    }
    let mut taken = vec![(request.verb.as_str(), request.resource.clone())];
    if request.verb == "patch" && request.made() {
        taken.push(("create", request.resource.clone()));
        let owners = [
            ("agent", "agents"),
            ("kaos-authz", "authorizationpolicies"),
            ("mcpserver", "mcpservers"),
            ("memorystore", "memorystores"),
            ("modelapi", "modelapis"),
        ];
        let owner = owners.into_iter().find(|(name, _)| request.name.starts_with(name));
        taken.extend(owner.map(|(_, plural)| ("update", format!("{plural}/finalizers"))));
    }
    taken
}

/// The PersistentVolumeClaim of a store.
const CLAIM: &str = "PersistentVolumeClaim/memorystore-notes-data";

/// Returns a volume for the volume claim of a store.
fn volume() -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "of-a-store"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "5Gi"}, "hostPath": {"path": "/of-a-store"},
        "persistentVolumeReclaimPolicy": "Retain", "storageClassName": ""}})
}

/// Deletes the volume and creates it again, so that no earlier volume claim is bound to the volume.
async fn provide_volume(world: &World) {
    world.delete("PersistentVolume/of-a-store").await;
    world.until_gone("PersistentVolume/of-a-store").await;
    world.apply(&volume()).await;
}

fn team(namespace: &str) -> Vec<Value> {
    let mut facts = memory_store("facts", "llm");
    let dsn = json!({"name": "pg", "key": "dsn", "optional": true});
    facts["spec"]["storage"] = json!({"type": "external", "external": {"connectionSecretRef": dsn}});
    let mut team =
        vec![model_api("llm"), mcp_server("echo"), agent("a", "llm", &json!({"mcpServers": ["echo"]})), facts];
    team[2]["metadata"]["annotations"] = json!({"settings.kaos.tools/serviceAccount.enabled": "true"});
    let kaos = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let (staff, resource) = (json!([{"kind": "Group", "name": "staff"}]), json!([{"kind": "Agent", "name": "a"}]));
    team.push(kaos("AccessGrant", "readers", json!({"subjects": staff, "resources": resource})));
    team.push(kaos("AuthorizationPolicy", "kaos-authz", json!({"namespaces": [namespace]})));
    // Add the finalizers that the Go operator left.
    for object in &mut team {
        let kind = text(&object["kind"]).to_lowercase();
        object["metadata"]["finalizers"] = json!([format!("kaos.tools/{kind}-finalizer")]);
    }
    team.extend([model_api("other"), model_api("third"), memory_store("notes", "llm")]);
    team
}

/// Returns the team's objects that become ready. Without a decision point, an AccessGrant is never ready.
fn serving(namespace: &str) -> Vec<Value> {
    team(namespace).into_iter().filter(|object| object["kind"] != "AccessGrant").collect()
}

/// Returns objects without an owner that have the names of children of the team's objects.
fn strangers() -> Vec<Value> {
    let route = json!({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
        "metadata": {"name": "modelapi-third"}, "spec": {}});
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "modelapi-other"},
        "spec": {"ports": [{"port": 99}]}});
    let image = "registry.example/stranger";
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "memorystore-notes-data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none-such",
            "resources": {"requests": {"storage": "1Gi"}}}});
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "memorystore-facts"}, "spec": {"minAvailable": 1}});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "kaos-agent-a"}});
    vec![
        config_map("litellm-config-llm", &json!({})),
        deployment("mcpserver-echo", image),
        service,
        route,
        claim,
        budget,
        account,
    ]
}

/// Returns children of `owner` that the owner's plan does not contain.
fn strays(owner: &Value) -> Vec<Value> {
    let mut strays = strangers();
    for stray in &mut strays {
        stray["metadata"] = json!({"name": "stray", "labels": {"app.kubernetes.io/managed-by": "kaos-operator"},
            "ownerReferences": [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": true,
                "name": owner["metadata"]["name"], "uid": uid(owner)}]});
    }
    strays
}

/// Returns a package with settings for Agents.
fn settings(name: &str, settings: &str) -> Value {
    shipped::package(name, None, &format!("{{name: agent, settings: {settings}}}")).unwrap()
}

/// Creates, changes and deletes objects in a namespace, so that the operator uses every right that it needs for
/// objects.
async fn objects_live(world: &World) {
    provide_volume(world).await;
    world.apply_all(&strangers()).await;
    world.apply_all(&team(&world.namespace)).await;
    // Wait first for the objects that need no other object: a MemoryStore gets its children only after its ModelAPI has
    // children.
    for taken in ["ModelAPI/llm", "MCPServer/echo", "ModelAPI/other", "ModelAPI/third"] {
        world
            .until("another object has the name of the child", taken, |it| reason(it, "Applied") == "OwnershipConflict")
            .await;
    }
    for stranger in &strangers()[..4] {
        world.delete(&at(stranger)).await;
    }
    for taken in ["MemoryStore/notes", "MemoryStore/facts", "Agent/a"] {
        world
            .until("another object has the name of the child", taken, |it| reason(it, "Applied") == "OwnershipConflict")
            .await;
    }
    for stranger in &strangers()[4..] {
        world.delete(&at(stranger)).await;
    }
    until_ready(world, &serving(&world.namespace)).await;
    // Make the operator use its right to read a volume claim. Usually, it only watches the volume claim, and it reads
    // the volume claim only before a takeover.
    let digest = "kaos.tools/applied-digest";
    world.patch(CLAIM, &json!({"metadata": {"annotations": {digest: null}}})).await;
    world.until("the claim is taken over", CLAIM, |it| it["metadata"]["annotations"][digest].is_string()).await;
    for (owner, theirs) in [("ModelAPI/llm", 0..4), ("MemoryStore/notes", 4..6), ("Agent/a", 6..7)] {
        for stray in &strays(&world.look(owner).await)[theirs] {
            world.apply(stray).await;
            world.until_gone(&at(stray)).await;
        }
    }
    // Add a condition of another controller. No policy mentions this condition, so only the managed fields show the
    // operator that another controller wrote it.
    let without_pods = ["AccessGrant/readers", "AuthorizationPolicy/kaos-authz"];
    for object in without_pods.into_iter().chain(["Agent/a", "ModelAPI/llm", "MCPServer/echo", "MemoryStore/facts"]) {
        let mut conditions = world.look(object).await["status"]["conditions"].clone();
        let theirs = json!({"type": "Theirs", "status": "True", "reason": "Theirs", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        conditions.as_array_mut().unwrap().push(theirs);
        world.patch_status(object, &json!({"conditions": conditions})).await;
        world.patch(object, &json!({"metadata": {"annotations": {"touch": "1"}}})).await;
    }
}

/// Installs, deletes and retries policies, so that the operator uses every right that it needs for policies.
async fn policies_live(release: &Release) {
    let system = release.over(SYSTEM);
    let (good, bad) = (settings("good", "{logLevel: DEBUG}"), settings("bad", "{nonsense: 1}"));
    let record = |revision: &Value| format!("PolicyRevision/{}", text(&revision["metadata"]["name"]));
    system.apply(&bad).await;
    let refused = record(&until_state(release, "bad", "Refused").await);
    system.apply(&good).await;
    let revision = until_active(release, "good").await;
    system.delete("ConfigMap/good").await;
    until_state(release, "good", "Superseded").await;
    // Activate the package a second time: the operator then updates the Event about the first activation, because it
    // increases the Event's count.
    system.apply(&good).await;
    until_active(release, "good").await;
    // Create the PolicyRevision like a user, before the operator creates it.
    system.delete("ConfigMap/good").await;
    until_state(release, "good", "Superseded").await;
    system.delete(&record(&revision)).await;
    system.until_gone(&record(&revision).replace("PolicyRevision", "ConfigMap")).await;
    system.patch(&refused, &json!({"metadata": {"annotations": {"kaos.tools/retry": "1"}}})).await;
    system.until("the deletion was seen", &refused, |it| it["status"]["retried"] == "1").await;
    let name = &revision["metadata"]["name"];
    let own = json!({"apiVersion": revision["apiVersion"], "kind": "PolicyRevision", "metadata": {"name": name},
        "spec": revision["spec"]});
    system.apply(&own).await;
    system.apply(&good).await;
    until_active(release, "good").await;
    // After a user deleted the ConfigMap of a refused package, the operator deletes the PolicyRevision.
    system.delete("ConfigMap/bad").await;
    system.until_gone(&refused).await;
    system.delete("ConfigMap/good").await;
}

/// Makes the operator do everything that needs rights, from its first start to the uninstall hook. Checks that its
/// requests used every right.
async fn live(release: &Release, world: &World, roles: &[Role]) {
    let system = release.over(SYSTEM);
    system.delete(LEASE).await;
    let mark = release.cluster.audit().mark().unwrap();
    // Make the operator behave as on an API server without streaming lists.
    let operator = release.working_operator_with(&["--streaming-lists=false"]).await;
    // Start a second replica, which watches the Lease while it does not lead.
    let standby = release.operator(&["--streaming-lists=false"]).await;
    until("the replica stands by", &standby, || standby.get("/readyz").contains("standing by for")).await;
    drop(standby);
    objects_live(world).await;
    policies_live(release).await;
    until_ready(world, &serving(&world.namespace)).await;
    let idle = || -> Vec<String> {
        let asked = release.cluster.audit().since(mark, USER).unwrap();
        roles.iter().flat_map(|role| role.idle(release, &asked)).collect()
    };
    // Do not wait here for those rights that appear only at the end. The audit log contains a watch only after the
    // watch has ended, only the hook deletes the last good settings, and the operator writes the proofs when it ends.
    let later = |it: &String| it.starts_with("watch ") || it.contains("-fitted") || it.contains("-settled-");
    until_used(|| idle().into_iter().filter(|it| !later(it)).collect()).await;
    operator.signal("TERM").unwrap();
    ending(operator).await;
    release.hook().expect();
    until_used(idle).await;
}

/// Waits until requests have used every right. `idle` returns the rights that no request has used.
async fn until_used(idle: impl Fn() -> Vec<String>) {
    let deadline = Instant::now() + Duration::from_mins(2);
    loop {
        let idle = idle();
        if idle.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "no request was for\n{}", idle.join("\n"));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Deletes the CustomResourceDefinition of routes. Waits until the API server has deleted this definition, because the
/// next test may create it again immediately.
async fn end_routes(world: &World) {
    let definition = at(&routes());
    world.delete(&definition).await;
    world.until_gone(&definition).await;
}

#[tokio::test]
async fn every_right_of_the_role_is_used() {
    let release = Release::install(&GATEWAY).await;
    let world = release.world("used").await;
    world.apply(&routes()).await;
    live(&release, &world, &[EVERYWHERE, HOME]).await;
    end_routes(&world).await;
}

#[tokio::test]
async fn with_listed_namespaces_every_right_is_used() {
    let release = Release::prepare().await;
    let world = release.world("team-a").await;
    release.world("team-b").await;
    world.apply(&routes()).await;
    let values = format!("{CHART}/ci/namespaced-values.yaml");
    release.helm("install", &[&["--values", &values], &GATEWAY[..]].concat()).expect();
    release.until_owners_are_known().await;
    let here = Role { name: "kaos-kaos-operator", namespace: Some("team-a") };
    live(&release, &world, &[here, HOME]).await;
    end_routes(&world).await;
}
