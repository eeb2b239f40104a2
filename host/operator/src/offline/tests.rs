//! Tests with a policy for Kites. A Kite gets one ConfigMap with the endpoints of its peers, and has its own endpoint
//! in its status. A Kite with the name `mighty` gets privileged pods.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use kaos_policy::{
    code::Native,
    contract::{
        Answer, Claim, Cluster, Descriptor, EnvVar, Need, Observation, Plan, Reference, Refusal, Report, ResourceType,
        Sample, Scopes, Subject,
    },
    digest::Digest,
    kubernetes::Checks,
    limits::Limits,
    manifest::{PolicyFile, Privilege},
    policy::{Policy, Stack},
    settings::{Layer, Origin},
};
use serde_json::{Value, json};

use super::*;
use crate::input::parse;

thread_local! {
    /// The number of calls of `translate` for each Kite.
    static TRANSLATED: RefCell<BTreeMap<String, usize>> = const { RefCell::new(BTreeMap::new()) };
}

fn kite() -> ResourceType {
    ResourceType::new("example.org/v1", "Kite")
}

fn describe() -> Descriptor {
    let emits = vec![ResourceType::new("v1", "ConfigMap"), ResourceType::new("apps/v1", "Deployment")];
    let object =
        r#"{"apiVersion":"example.org/v1","kind":"Kite","metadata":{"name":"sample","namespace":"default"},"spec":{}}"#;
    let sample = Sample { name: "a kite without peers".into(), object: object.into(), beside: vec![] };
    let claim = Claim {
        primary: kite(),
        emits,
        reads: vec![kite()],
        wishes: vec![],
        finalizer: None,
        samples: vec![sample],
        extra: "{}".into(),
    };
    let (name, version) = ("kite".into(), "1.0.0".into());
    Descriptor {
        name,
        version,
        claims: vec![claim],
        settings_schema: r#"{"type":"object","properties":{"securityContext":{"type":"object","default":{}}}}"#.into(),
        extra: "{}".into(),
    }
}

fn object(subject: &Subject) -> Value {
    serde_json::from_str(&subject.object).unwrap()
}

fn needs(subject: &Subject) -> Vec<Need> {
    let peers = object(subject)["spec"]["peers"].as_array().cloned().unwrap_or_default();
    let reference = |name: &str| Reference {
        api_version: "example.org/v1".into(),
        kind: "Kite".into(),
        namespace: None,
        name: name.into(),
    };
    let need = |peer: &Value| {
        let name = peer.as_str().unwrap();
        Need { id: name.to_owned(), target: Target::Named(reference(name)), fields: Vec::new(), optional: false }
    };
    peers.iter().map(need).collect()
}

fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    let name = object(subject)["metadata"]["name"].as_str().unwrap().to_owned();
    TRANSLATED.with_borrow_mut(|translated| *translated.entry(name.clone()).or_default() += 1);
    if name == "refused" {
        return Err(Refusal::Unsupported("not this one".into()));
    }
    let endpoint = |found: &kaos_policy::contract::Found| match &found.answer {
        Answer::Objects(objects) => {
            let object: Option<Value> = objects.first().map(|text| serde_json::from_str(text).unwrap());
            object.map_or("none".into(), |object| object["status"]["endpoint"].as_str().unwrap_or("?").to_owned())
        }
        _ => "none".to_owned(),
    };
    let peers: Vec<String> = subject.found.iter().map(endpoint).collect();
    let metadata = json!({"name": name, "namespace": "default"});
    let manifest = if name == "mighty" {
        let pod = json!({"containers": [{"name": "main", "image": "i", "securityContext": {"privileged": true}}]});
        let labels = json!({"app": "mighty"});
        let template = json!({"metadata": {"labels": labels}, "spec": pod});
        let spec = json!({"selector": {"matchLabels": labels}, "template": template});
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    } else {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"peers": peers.join(",")}})
    };
    let path = "spec.template.spec.containers[0].securityContext".to_owned();
    let origin = kaos_policy::contract::Origin { manifest: 0, path, from: "settings.securityContext".into() };
    Ok(Plan {
        manifests: vec![manifest.to_string()],
        origins: vec![origin],
        gates: vec![],
        env,
        notes: vec![],
        finalizer: None,
        kept: vec![],
        gates_hold: false,
        extra: "{}".into(),
    })
}

fn assess(subject: &Subject, seen: &Observation) -> Report {
    let fields = match seen.outcome {
        // The host alone writes these fields, so a policy's status may have none of them.
        Outcome::Refused(_) => json!({"appliedGeneration": 7, "phase": "Mine", "policy": "mine"}),
        _ => json!({"endpoint": format!("kite://{}", object(subject)["metadata"]["name"].as_str().unwrap())}),
    };
    let live = seen.children.iter().filter(|child| child.live.is_some()).count();
    Report {
        ready: live > 0,
        phase: if live > 0 { "Ready" } else { "Pending" }.into(),
        message: format!("{live} live"),
        fields: fields.to_string(),
        conditions: vec![],
        extra: "{}".into(),
    }
}

fn stack() -> Stack {
    let code = Arc::new(Native { describe, needs, map_env: |_, base| Ok(base), translate, assess });
    let policy = Policy::admit(code, Digest::of(b"kite"), &PolicyFile::default(), Limits::default()).unwrap();
    Stack::single(Arc::new(policy)).unwrap()
}

fn in_world(text: &str, look: impl FnOnce(&World<'_>)) {
    let cluster = Cluster { domain: "cluster.local".into(), operator_namespace: "kaos-system".into(), served: vec![] };
    let (documents, errors) = parse(&"kites.yaml".into(), text, "default");
    assert!(errors.is_empty(), "{errors:?}");
    TRANSLATED.take();
    let (stacks, objects) = (BTreeMap::from([(kite(), stack())]), documents.iter().map(|document| &document.object));
    let started = Started { cluster, checks: Checks::Fields, ..Started::default() };
    let brought = Brought::new(&stacks, &[], &started, |_| true, objects).unwrap();
    look(&World::new(&StoredObjects::new(&documents, &Scopes::default()), &brought, &|_| None));
}

fn written(name: &str, peers: &[&str]) -> String {
    format!(
        "---\napiVersion: example.org/v1\nkind: Kite\nmetadata: {{name: {name}}}\nspec: {{peers: [{}]}}\n",
        peers.join(", ")
    )
}

fn peers(world: &World<'_>, position: usize) -> String {
    let entry = world.entry(position).unwrap().unwrap();
    entry.rendered.manifests()[0]["data"]["peers"].as_str().unwrap().to_owned()
}

#[test]
fn an_object_is_rendered_again_only_if_it_needs_other_objects() {
    in_world(&(written("a", &["b", "c"]) + &written("b", &["c"]) + &written("c", &[])), |world| {
        assert_eq!(peers(world, 0), "kite://b,kite://c");
        assert_eq!(peers(world, 1), "kite://c");
        assert_eq!(peers(world, 2), "");
        assert_eq!(TRANSLATED.take().into_values().collect::<Vec<_>>(), [2, 2, 1]);
    });
}

#[test]
fn objects_in_a_circle_see_each_other_after_at_most_three_passes() {
    in_world(&(written("a", &["b", "c"]) + &written("b", &["a", "c"]) + &written("c", &["a", "b"])), |world| {
        assert_eq!(peers(world, 0), "kite://b,kite://c");
        assert_eq!(peers(world, 1), "kite://a,kite://c");
        assert_eq!(peers(world, 2), "kite://a,kite://b");
        assert!(TRANSLATED.take().values().all(|times| *times <= 3));
    });
}

#[test]
fn a_long_chain_is_followed_to_its_end() {
    const FAR: usize = 500;
    let link = |number: usize| written(&format!("k{number}"), &[&format!("k{}", number + 1)]);
    in_world(&(0..FAR).map(link).collect::<String>(), |world| {
        for position in 0..FAR - 1 {
            assert_eq!(peers(world, position), format!("kite://k{}", position + 1));
        }
        assert_eq!(peers(world, FAR - 1), "none");
        assert!(TRANSLATED.take().values().all(|times| *times <= 2));
    });
}

#[test]
fn many_objects_with_the_same_need_are_rendered_once() {
    let others: String = (0..100).map(|number| written(&format!("k{number}"), &["hub"])).collect();
    in_world(&(others + &written("hub", &[])), |world| {
        for position in 0..100 {
            assert_eq!(peers(world, position), "kite://hub");
        }
        assert_eq!(TRANSLATED.take().into_values().sum::<usize>(), 102);
    });
}

#[test]
fn other_objects_see_the_status_in_the_file() {
    let given = written("b", &[]) + "status: {endpoint: 'kite://elsewhere'}\n";
    in_world(&(written("a", &["b"]) + &given), |world| assert_eq!(peers(world, 0), "kite://elsewhere"));
}

#[test]
fn a_refused_object_has_a_status_too() {
    in_world(&(written("a", &["refused"]) + &written("refused", &[])), |world| {
        assert_eq!(peers(world, 0), "?");
        let status = world.entry(1).unwrap().unwrap().status.clone();
        assert_eq!(status["conditions"][0]["reason"], "Unsupported");
        assert_eq!(status.get("appliedGeneration"), None, "a policy must not say that its plan was applied");
        assert_eq!((&status["phase"], &status["policy"]["name"]), (&json!("Pending"), &json!("kite")));
    });
}

#[test]
fn an_object_that_names_an_unknown_policy_gets_the_operators_refusal() {
    let named = |policy: &str| {
        written("a", &[]).replace("{name: a}", &format!("{{name: a, annotations: {{kaos.tools/policy: {policy}}}}}"))
    };
    in_world(&named("nope"), |world| {
        let entry = world.entry(0).unwrap().unwrap();
        assert!(entry.rendered.manifests().is_empty());
        let conditions = entry.status["conditions"].as_array().unwrap();
        let condition = conditions.iter().find(|condition| condition["type"] == "Applied").unwrap();
        assert_eq!(condition["reason"], "PolicyNotFound");
        let message = condition["message"].as_str().unwrap();
        assert!(
            message.contains("this namespace has no policy `nope`") && message.contains("name one of kite"),
            "{message}"
        );
    });
    in_world(&named("kite"), |world| assert_eq!(world.entry(0).unwrap().unwrap().rendered.manifests().len(), 1));
}

#[test]
fn an_object_that_is_being_deleted_gets_no_children() {
    let going = written("a", &[]).replace("{name: a}", "{name: a, deletionTimestamp: '2026-01-01T00:00:00Z'}");
    in_world(&(going + &written("b", &["a"])), |world| {
        let entry = world.entry(0).unwrap().unwrap();
        assert!(entry.rendered.manifests().is_empty() && entry.status.is_null());
        assert_eq!(entry.rendered.notes()[0].reason, "BeingDeleted");
        assert_eq!(peers(world, 1), "?");
    });
}

#[test]
fn children_in_the_files_are_live() {
    let child = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    in_world(&(written("a", &["ghost"]) + child), |world| {
        let status = world.entry(0).unwrap().unwrap().status.clone();
        assert_eq!(status["message"], "1 live");
        let condition = |of: &str| status["conditions"].as_array().unwrap().iter().find(|c| c["type"] == of).unwrap();
        assert_eq!(condition("Ready")["status"], "True");
        assert_eq!(condition("Resolved")["reason"], "NotFound");
        assert_eq!(condition("Resolved")["message"], "Kite default/ghost not found");
        assert_eq!(status["observedGeneration"], 1);
    });
}

#[test]
fn installed_settings_raise_only_grantable_privileges() {
    let stacks = BTreeMap::from([(kite(), stack())]);
    let (documents, errors) = parse(&"kites.yaml".into(), &written("mighty", &[]), "default");
    assert!(errors.is_empty(), "{errors:?}");
    let stored = StoredObjects::new(&documents, &Scopes::default());
    let fails = |origin: Origin, grantable: Option<&[Privilege]>| {
        let grantable: Option<BTreeSet<Privilege>> = grantable.map(|listed| listed.iter().copied().collect());
        let layers = [Layer::tree(origin, "kite", json!({"securityContext": {"privileged": true}}))];
        let objects = stored.objects().iter().map(|object| &**object);
        let started = Started { grantable, checks: Checks::Fields, ..Started::default() };
        let brought = Brought::new(&stacks, &layers, &started, |_| true, objects).unwrap();
        let entry = World::new(&stored, &brought, &|_| None).entry(0).unwrap().unwrap();
        entry.rendered.failed().map(ToString::to_string)
    };
    assert_eq!(fails(Origin::OperatorConfig, None), None);
    assert_eq!(fails(Origin::OperatorConfig, Some(&[Privilege::Privileged])), None);
    let told = fails(Origin::OperatorConfig, Some(&[Privilege::HostPath])).unwrap();
    assert!(told.contains("--grantable-privileges"), "{told}");
    assert_eq!(fails(Origin::CommandLine, Some(&[])), None, "flags come from the user who starts the operator");
}
