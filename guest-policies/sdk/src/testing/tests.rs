mod needs;

use super::{env_value, manifest, manifests, observation, overlaid, plan, subject};
use crate::types::{Claim, Descriptor, EnvVar, Need, Observation, Outcome, Plan, Refusal, Report, Subject};
use crate::{Lookup, NeedExt as _, Overlay, Policy, SubjectExt, amend, blocker, need, note, refusal};
use serde_json::{Value, json};

/// A policy that needs a ConfigMap, and then a Secret. The ConfigMap contains the name of the Secret.
struct Chain;

impl Policy for Chain {
    fn describe() -> Descriptor {
        let reads = [("v1", "ConfigMap"), ("v1", "Pod"), ("v1", "Secret")];
        let reads = reads.map(|(api_version, kind)| need::resource_type(api_version, kind)).into();
        let claims = vec![Claim { primary: need::resource_type("v1", "Thing"), reads, ..Claim::default() }];
        Descriptor { name: "chain".to_owned(), version: "0.1.0".to_owned(), claims, ..Descriptor::default() }
    }

    fn needs(subject: &Subject) -> Vec<Need> {
        let mut needs = vec![
            need::named("config", need::reference("v1", "ConfigMap", "c")),
            need::labelled("pods", need::resource_type("v1", "Pod"), &[("app", "a")]),
        ];
        if let Lookup::There(config) = subject.one("config") {
            let secret = config.str_at(&["data", "secret"]).unwrap_or_default();
            needs.push(need::named("a-secret", need::reference("v1", "Secret", secret)));
        }
        needs
    }

    fn map_env(_: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        let mut env = crate::env::Env::over(base);
        env.container("c").set("A", "1", "x").bind("B", crate::env::field("metadata.name"), "y");
        Ok(env.into_vars())
    }

    fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        if subject.object().name().is_empty() {
            return Err(refusal::invalid("metadata.name", "is required"));
        }
        Ok(crate::plan::of(&["One", "Two", "Two"].map(|kind| json!({"kind": kind}).into()), env))
    }

    fn assess(_: &Subject, _: &Observation) -> Report {
        Report { ready: true, ..Report::default() }
    }
}

fn object(kind: &str, name: &str, namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}})
}

#[test]
fn defaults_fill_in_the_settings_that_a_test_does_not_set() {
    let schema = r##"{"type": "object", "properties": {
        "image": {"default": "x:1"}, "port": {"default": 80}, "free": {"type": "string"},
        "probe": {"default": {"path": "/"}, "properties": {"path": {"default": "/a"}, "after": {"default": 5}}},
        "limit": {"$ref": "#/$defs/limit"}
    }, "$defs": {"limit": {"properties": {"cpu": {"default": "1"}}}}}"##;
    let subject = subject(&json!({})).settings(&json!({"port": 81, "probe": {"after": 6}})).defaults(schema).build();
    let filled = json!({"image": "x:1", "port": 81, "probe": {"path": "/", "after": 6}, "limit": {"cpu": "1"}});
    assert_eq!(subject.settings::<Value>().unwrap(), filled);
}

/// An overlay that sets a variable and a label from a ConfigMap.
struct Labels;

impl Overlay for Labels {
    fn describe() -> Descriptor {
        Chain::describe()
    }

    fn needs(_: &Subject) -> Vec<Need> {
        vec![need::named("labels", need::reference("v1", "ConfigMap", "labels")).fields(["data.team"])]
    }

    fn map_env(_: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
        let mut env = crate::env::Env::over(base);
        env.container("c").set("A", "2", "overlay");
        Ok(env.into_vars())
    }

    fn amend(subject: &Subject, mut below: Plan) -> Result<Plan, Refusal> {
        let team = subject.one("labels").there().and_then(|it| it.str_at(&["data", "team"]).map(str::to_owned));
        amend::manifests(&mut below, |manifest| {
            amend::add_labels(manifest, [("team", team.as_deref().unwrap_or("none"))]);
        });
        Ok(below)
    }
}

#[test]
fn an_overlay_sees_its_own_needs_and_changes_the_plan_below() {
    let mut labels = object("ConfigMap", "labels", "n");
    labels["data"] = json!({"team": "a", "other": "b"});
    let thing = subject(&object("Thing", "t", "n"));
    let above = thing.clone().beside_overlay::<Labels>(&[labels]).build();
    assert_eq!(above.one("labels").there().unwrap().at(&["data"]), Some(&json!({"team": "a"})));
    let plan = overlaid::<Chain, Labels>(&thing.beside::<Chain>(&[]).build(), &above).unwrap();
    assert_eq!(manifest(&plan, "One").label("team"), Some("a"));
    assert_eq!(env_value(&plan.env, "c", "A"), Some("2"));
}

#[test]
fn a_plan_consists_of_the_mapping_and_the_translation() {
    let plan = plan::<Chain>(&subject(&object("Thing", "t", "n")).build()).unwrap();
    assert_eq!(manifests(&plan).len(), 3);
    assert_eq!(manifest(&plan, "One").kind(), "One");
    assert_eq!(env_value(&plan.env, "c", "A"), Some("1"));
    assert_eq!((env_value(&plan.env, "c", "B"), env_value(&plan.env, "d", "A")), (None, None));
    assert!(super::plan::<Chain>(&subject(&json!({})).build()).is_err());
}

#[test]
#[should_panic(expected = "the plan has no Three")]
fn a_manifest_that_is_missing_fails_the_test() {
    let _ = manifest(&plan::<Chain>(&subject(&object("Thing", "t", "n")).build()).unwrap(), "Three");
}

#[test]
#[should_panic(expected = "the plan has more than one Two")]
fn two_manifests_where_one_is_wanted_fail_the_test() {
    let _ = manifest(&plan::<Chain>(&subject(&object("Thing", "t", "n")).build()).unwrap(), "Two");
}

#[test]
fn an_observation_has_live_and_missing_children_and_the_plan() {
    let on = need::reference("v1", "ConfigMap", "c");
    let mut plan = plan::<Chain>(&subject(&object("Thing", "t", "n")).build()).unwrap();
    plan.gates.push(blocker::not_found(on.clone()));
    let seen = observation(Outcome::Gated)
        .child(&object("Pod", "p", "n"))
        .missing(need::reference("v1", "Service", "s"))
        .plan(&plan)
        .gate(blocker::no_endpoint(on))
        .note(note::info("R", "m"))
        .build();
    assert_eq!(seen.children[0].identity, need::reference("v1", "Pod", "p"));
    assert!(seen.children[0].live.is_some() && seen.children[1].live.is_none());
    assert_eq!((seen.gates.len(), seen.notes.len(), seen.env), (2, 1, plan.env));
}
