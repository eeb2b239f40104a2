//! Tests the answers to needs, and the needs that fail a test.

use super::{Chain, object};
use crate::testing::subject;
use crate::types::{Answer, Descriptor, EnvVar, Need, Observation, Plan, Refusal, Report, SecretFacts, Subject};
use crate::{Lookup, NeedExt as _, Policy, SubjectExt, need};
use serde_json::{Value, json};

#[test]
fn needs_are_answered_round_by_round_and_in_the_order_of_their_ids() {
    let mut config = object("ConfigMap", "c", "n");
    config["data"] = json!({"secret": "s"});
    let mut secret = object("Secret", "s", "n");
    (secret["data"], secret["stringData"]) = (json!({"b": ""}), json!({"a": ""}));
    let subject = subject(&object("Thing", "t", "n")).beside::<Chain>(&[config.clone(), secret]).build();
    let ids: Vec<_> = subject.found.iter().map(|found| found.id.as_str()).collect();
    assert_eq!(ids, ["a-secret", "config", "pods"]);
    assert_eq!(subject.one("config").there().unwrap().value(), &config);
    assert_eq!(subject.secret("a-secret").there().unwrap().keys, ["a", "b"]);
}

/// Defines a policy like [`Chain`] with other needs.
macro_rules! chain_with_needs {
    ($(#[$doc:meta])* $name:ident, $needs:expr) => {
        $(#[$doc])*
        struct $name;

        impl Policy for $name {
            fn describe() -> Descriptor {
                Chain::describe()
            }

            fn needs(subject: &Subject) -> Vec<Need> {
                let needs: fn(&Subject) -> Vec<Need> = $needs;
                needs(subject)
            }

            fn map_env(subject: &Subject, base: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
                Chain::map_env(subject, base)
            }

            fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
                Chain::translate(subject, env)
            }

            fn assess(subject: &Subject, seen: &Observation) -> Report {
                Chain::assess(subject, seen)
            }
        }
    };
}

chain_with_needs!(
    /// A policy that reads one field of a ConfigMap, and a second field before the first apply.
    Reader,
    |subject| {
        let fields = if subject.applied { vec!["data.a"] } else { vec!["data.a", "data.b?"] };
        vec![need::named("config", need::reference("v1", "ConfigMap", "c")).fields(fields)]
    }
);

chain_with_needs!(
    /// A policy that needs all Secrets with a label.
    Greedy,
    |_| vec![need::labelled("secrets", need::resource_type("v1", "Secret"), &[("app", "a")])]
);

#[test]
fn a_policy_sees_the_fields_that_it_names_as_from_the_host() {
    let mut config = object("ConfigMap", "c", "n");
    config["data"] = json!({"a": "1", "b": "2", "c": "3"});
    let data = |subject: Subject| subject.one("config").there().unwrap().at(&["data"]).cloned();
    let new = subject(&object("Thing", "t", "n"));
    assert_eq!(data(new.clone().beside::<Reader>(&[config.clone()]).build()), Some(json!({"a": "1", "b": true})));
    assert_eq!(data(new.applied().beside::<Reader>(&[config]).build()), Some(json!({"a": "1"})));
}

#[test]
fn an_object_of_another_namespace_name_or_label_is_not_found() {
    let mut pod = object("Pod", "p", "n");
    pod["metadata"]["labels"] = json!({"app": "b"});
    let beside = [object("ConfigMap", "c", "other"), object("ConfigMap", "d", "n"), pod];
    let subject = subject(&object("Thing", "t", "n")).beside::<Chain>(&beside).build();
    assert_eq!(subject.one("config"), Lookup::Absent);
    assert_eq!(subject.list("pods"), Lookup::There(Vec::new()));
}

#[test]
fn a_secret_that_is_not_there_is_answered_as_absent() {
    let mut config = object("ConfigMap", "c", "n");
    config["data"] = json!({"secret": "s"});
    let subject = subject(&object("Thing", "t", "n")).beside::<Chain>(&[config]).build();
    let answer = &subject.found[0].answer;
    assert!(matches!(answer, Answer::Secret(SecretFacts { present: false, .. })), "{answer:?}");
    assert_eq!(subject.secret("a-secret"), Lookup::Absent);
}

#[test]
fn a_lookup_of_secrets_by_label_finds_nothing() {
    let mut secret = object("Secret", "s", "n");
    (secret["data"], secret["metadata"]["labels"]) = (json!({"key": "c2VjcmV0"}), json!({"app": "a"}));
    let subject = subject(&object("Thing", "t", "n")).beside::<Greedy>(&[secret]).build();
    let answer = &subject.found[0].answer;
    assert!(matches!(answer, Answer::Forbidden(why) if why.contains("by name")), "{answer:?}");
    assert!(matches!(subject.list("secrets"), Lookup::Forbidden(_)));
}

#[test]
fn the_digest_of_a_secret_depends_on_its_content() {
    let mut config = object("ConfigMap", "c", "n");
    config["data"] = json!({"secret": "s"});
    let facts = |value: &str| {
        let mut secret = object("Secret", "s", "n");
        secret["data"] = json!({"key": value});
        subject(&object("Thing", "t", "n")).beside::<Chain>(&[config.clone(), secret]).build().secret("a-secret")
    };
    let (one, other) = (facts("MQ==").there().unwrap(), facts("Mg==").there().unwrap());
    assert_eq!((one.keys.clone(), one.digest.len()), (other.keys.clone(), 16));
    assert_ne!(one.digest, other.digest);
    assert_eq!(facts("MQ==").there().unwrap(), one);
}

#[test]
fn an_operator_that_does_not_look_at_secrets_forbids_each_need_for_a_secret() {
    let mut config = object("ConfigMap", "c", "n");
    config["data"] = json!({"secret": "s"});
    let beside = [config, object("Secret", "s", "n")];
    let subject = subject(&object("Thing", "t", "n")).no_secrets().beside::<Chain>(&beside).build();
    assert!(matches!(subject.secret("a-secret"), Lookup::Forbidden(why) if why.contains("--watch-secrets")));
    assert!(subject.one("config").there().is_some());
}

#[test]
fn beside_keeps_an_answer_that_the_test_gave() {
    let unserved = subject(&object("Thing", "t", "n")).answer("config", Answer::Unserved).beside::<Chain>(&[]).build();
    assert_eq!(unserved.one("config"), Lookup::Unserved);
    assert_eq!(unserved.found.len(), 2);
}

chain_with_needs!(
    /// A policy that needs a type that its claim does not list.
    Stranger,
    |_| vec![need::named("node", need::reference("v1", "Node", "n"))]
);

chain_with_needs!(
    /// A policy that gives two needs the same id.
    Twice,
    |_| vec![need::named("x", need::reference("v1", "Pod", "a")), need::named("x", need::reference("v1", "Pod", "b"))]
);

chain_with_needs!(
    /// A policy with a new need in each round.
    Endless,
    |subject| {
        let id = |at: usize| need::named(format!("pod-{at}"), need::reference("v1", "Pod", &at.to_string()));
        (0..=subject.found.len()).map(id).collect()
    }
);

chain_with_needs!(
    /// A policy that needs a ConfigMap with the name of the object, and all Pods with this name in a label.
    Namesake,
    |subject| {
        let name = subject.object().name().to_owned();
        vec![
            need::named("config", need::reference("v1", "ConfigMap", &name)),
            need::labelled("pods", need::resource_type("v1", "Pod"), &[("app", &name)]),
        ]
    }
);

chain_with_needs!(
    /// A policy with more needs than the host answers.
    Crowd,
    |_| {
        let pod = |at: usize| need::named(at.to_string(), need::reference("v1", "Pod", &at.to_string()));
        (0..257).map(pod).collect()
    }
);

#[test]
#[should_panic(expected = "need config: `a/b` is not a valid name")]
fn a_need_with_an_invalid_name_fails_the_test() {
    let _ = subject(&object("Thing", "a/b", "n")).beside::<Namesake>(&[]);
}

#[test]
#[should_panic(expected = "need pods: `app=No Label` is not a valid label to select by")]
fn a_need_with_an_invalid_label_fails_the_test() {
    let _ = subject(&object("Thing", "No Label", "n")).beside::<Namesake>(&[]);
}

#[test]
#[should_panic(expected = "the policy has 257 needs, but the host answers at most 256")]
fn too_many_needs_fail_the_test() {
    let _ = subject(&object("Thing", "t", "n")).beside::<Crowd>(&[]);
}

#[test]
fn found_objects_are_sorted_by_name_and_are_in_the_namespace_of_the_subject() {
    let pod = |name: &str| {
        let metadata = json!({"name": name, "labels": {"app": "t"}});
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})
    };
    let subject = subject(&object("Thing", "t", "n")).beside::<Namesake>(&[pod("b"), pod("a")]).build();
    let Lookup::There(pods) = subject.list("pods") else { panic!("no pods") };
    let names: Vec<_> = pods.iter().map(|pod| (pod.namespace(), pod.name())).collect();
    assert_eq!(names, [("n", "a"), ("n", "b")]);
}

/// A policy that needs the Namespace `other`, and a Sky in this namespace.
struct Wide;

impl Policy for Wide {
    fn describe() -> Descriptor {
        let mut described = Chain::describe();
        described.claims[0].reads =
            vec![need::resource_type("v1", "Namespace"), need::resource_type("sky.io/v1", "Sky")];
        described
    }

    fn needs(_: &Subject) -> Vec<Need> {
        vec![
            need::named("namespace", need::reference("v1", "Namespace", "other")),
            need::named("sky", need::reference_in("other", "sky.io/v1", "Sky", "blue")),
        ]
    }

    fn translate(_: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        Ok(crate::plan::of(&[], env))
    }

    fn assess(_: &Subject, _: &Observation) -> Report {
        Report { ready: true, ..Report::default() }
    }
}

#[test]
fn every_need_finds_a_cluster_scoped_object() {
    let of = |api_version: &str, kind: &str, name: &str, namespace: Option<&str>| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": namespace}});
    let answers = |sky: Value| {
        let beside = [of("v1", "Namespace", "other", None), sky];
        let subject = subject(&object("Thing", "t", "n")).beside::<Wide>(&beside).build();
        ["namespace", "sky"].map(|id| subject.one(id).there().is_some())
    };
    assert_eq!(answers(of("sky.io/v1", "Sky", "blue", None)), [true, true]);
    assert_eq!(answers(of("sky.io/v1", "Sky", "blue", Some("other"))), [true, true]);
    assert_eq!(answers(of("sky.io/v1", "Sky", "blue", Some("n"))), [true, false]);
}

#[test]
#[should_panic(expected = "need node: v1 Node is not a type that the claim reads: add it to `reads`")]
fn a_need_of_a_type_that_the_claim_does_not_read_fails_the_test() {
    let _ = subject(&object("Thing", "t", "n")).beside::<Stranger>(&[]);
}

#[test]
#[should_panic(expected = "need x: two needs have this id")]
fn two_needs_with_one_id_fail_the_test() {
    let _ = subject(&object("Thing", "t", "n")).beside::<Twice>(&[]);
}

#[test]
#[should_panic(expected = "the policy still has new needs in round 5")]
fn needs_without_an_end_fail_the_test() {
    let _ = subject(&object("Thing", "t", "n")).beside::<Endless>(&[]);
}
