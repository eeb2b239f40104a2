//! Tests passes in which needs find objects that are too large.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{cell::Cell, sync::Arc};

use crate::widget::{NATIVE, admitted, alone, of, renderer, widget};
use kaos_policy::{
    code::Native,
    contract::{Answer, Need, Reference, Refusal, ResourceType, Selector, Subject, Target},
    lookup::{Fixed, Lookup, Sighting},
    memo::Memo,
    render::Rendered,
};
use serde_json::{Map, Value, json};

/// Returns a cluster with one ConfigMap that has `keys` keys.
fn holding(keys: usize) -> Fixed {
    let data: Map<String, Value> = (0..keys).map(|n| (format!("k{n}"), json!("v"))).collect();
    Fixed::new([
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": data}),
    ])
}

#[test]
fn a_pass_waits_for_a_too_large_object_until_it_is_smaller() {
    let renderer = renderer("{}", &[]).with_memo(Arc::new(Memo::new(1 << 20)));
    let object = widget(json!({"needs": [{"name": "c"}]}));
    for _ in 0..2 {
        let rendered = renderer.render(&object, &holding(20_000)).unwrap();
        let Some(Refusal::Waiting(blockers)) = rendered.refused() else { panic!("{:?}", rendered.verdict) };
        let [blocker] = &blockers[..] else { panic!("{blockers:?}") };
        assert_eq!((blocker.on.to_string().as_str(), blocker.reason.as_str()), ("ConfigMap n/c", "TooLarge"));
        assert!(blocker.message.contains("data: has 20,000 fields, but the limit is 10,000"), "{}", blocker.message);
        assert_eq!(rendered.needs.len(), 1, "the operator still watches the object");
        let Answer::Objects(shown) = &rendered.subject().found[0].answer else { panic!("no object") };
        assert!(shown[0].len() < 1_000, "the policy's subject contains only the name");
        assert!(!rendered.recalled());
    }
    let rendered = renderer.render(&object, &holding(5)).unwrap();
    assert!(rendered.planned().is_some() && !rendered.recalled());
    assert!(renderer.render(&object, &holding(5)).unwrap().recalled());
    assert!(renderer.render(&object, &holding(20_000)).unwrap().refused().is_some());
}

/// A cluster that counts its lookups.
struct Counted {
    objects: Fixed,
    looks: Cell<usize>,
}

impl Lookup for Counted {
    fn look_up(&self, target: &Target) -> Sighting {
        self.looks.set(self.looks.get() + 1);
        self.objects.look_up(target)
    }

    fn is_cluster_scoped(&self, of: &ResourceType) -> bool {
        self.objects.is_cluster_scoped(of)
    }
}

/// Renders a Widget with a policy that has these needs. Returns the result and the number of lookups.
fn asking(needs: fn(&Subject) -> Vec<Need>, objects: impl IntoIterator<Item = Value>) -> (Rendered, usize) {
    let renderer = alone(admitted(Native { needs, ..NATIVE }, "{}"), &[]);
    let cluster = Counted { objects: Fixed::new(objects), looks: Cell::new(0) };
    let rendered = renderer.render(&widget(json!({})), &cluster).unwrap();
    (rendered, cluster.looks.get())
}

fn long(name: &str, bytes: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"},
        "data": {"text": "x".repeat(bytes)}})
}

#[test]
fn an_object_found_in_one_round_is_not_looked_up_in_the_next() {
    /// Adds one need in each round. The newest need has the lowest ID.
    fn growing(subject: &Subject) -> Vec<Need> {
        let named = |n: usize| {
            let reference = Reference {
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                namespace: None,
                name: format!("c{n}"),
            };
            Need { id: (9 - n).to_string(), target: Target::Named(reference), fields: Vec::new(), optional: false }
        };
        (0..=subject.found.len().min(3)).map(named).collect()
    }
    let (rendered, looks) = asking(growing, (0..4).map(|n| long(&format!("c{n}"), 10)));
    assert!(rendered.planned().is_some(), "{:?}", rendered.verdict);
    assert_eq!(looks, 4);
    let found: Vec<(&str, bool)> = rendered
        .subject()
        .found
        .iter()
        .map(|found| (found.id.as_str(), matches!(&found.answer, Answer::Objects(objects) if objects.len() == 1)))
        .collect();
    assert_eq!(found, [("6", true), ("7", true), ("8", true), ("9", true)]);
}

#[test]
fn lookups_stop_once_the_objects_exceed_the_limit() {
    /// Returns many needs, each of which selects all ConfigMaps.
    fn everything(_: &Subject) -> Vec<Need> {
        let all = Selector { of: of("v1", "ConfigMap"), namespace: None, labels: vec![] };
        (0..200)
            .map(|n| Need {
                id: n.to_string(),
                target: Target::Labelled(all.clone()),
                fields: Vec::new(),
                optional: false,
            })
            .collect()
    }
    let (rendered, looks) = asking(everything, (0..20).map(|n| long(&format!("c{n}"), 1 << 20)));
    let Some(Refusal::Waiting(blockers)) = rendered.refused() else { panic!("{:?}", rendered.verdict) };
    assert!(blockers[0].message.contains("together have more than 4 MiB"), "{blockers:?}");
    assert_eq!(looks, 1);
    assert_eq!(rendered.needs.len(), 200, "the operator still watches all needs");
    let shown: usize = rendered
        .subject()
        .found
        .iter()
        .map(|found| match &found.answer {
            Answer::Objects(objects) => objects.len(),
            _ => 0,
        })
        .sum();
    assert!(shown < 6, "{shown}");
    let (rendered, looks) = asking(everything, [long("c", 10)]);
    assert!(rendered.planned().is_some() && looks == 200, "several needs may have the same target");
}

/// A function that returns the needs of a policy.
type Needs = fn(&Subject) -> Vec<Need>;

#[test]
fn an_invalid_label_selector_is_a_breach_that_names_the_label() {
    fn asks(labels: &[(&str, &str)]) -> Vec<Need> {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let selector = Selector { of: of("v1", "ConfigMap"), namespace: None, labels };
        vec![Need { id: "s".to_owned(), target: Target::Labelled(selector), fields: Vec::new(), optional: false }]
    }
    let needs: [(Needs, Option<&str>); 6] = [
        (|_| asks(&[("kaos.tools/a_B", "b.c"), ("a", "")]), None),
        (|_| asks(&[("a", "b,!c")]), Some("needs[0]: `a=b,!c` is not a valid label to select by")),
        (
            |_| asks(&[("fine", "x"), ("x in (a)", "y")]),
            Some("needs[0]: `x in (a)=y` is not a valid label to select by"),
        ),
        (|_| asks(&[("", "y")]), Some("needs[0]: `=y` is not a valid label to select by")),
        (|_| asks(&[("a", &"b".repeat(64))]), Some("is not a valid label to select by")),
        (|_| asks(&[("a", "b"); 33]), Some("needs[0]: a selector has at most 32 labels, but this one has 33")),
    ];
    for (needs, wrong) in needs {
        let (rendered, looks) = asking(needs, []);
        let told = rendered.failed().map(ToString::to_string);
        assert_eq!(told.is_some(), wrong.is_some(), "{told:?}");
        assert!(told.is_none_or(|told| told.contains(wrong.unwrap_or_default())), "{wrong:?}");
        assert_eq!(looks, usize::from(wrong.is_none()));
    }
}

#[test]
fn objects_that_a_policy_may_not_see_are_not_watched() {
    fn elsewhere(_: &Subject) -> Vec<Need> {
        let namespace = Some("another".to_owned());
        let reference = Reference {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            namespace: namespace.clone(),
            name: "c".into(),
        };
        let selector = Selector { of: of("v1", "ConfigMap"), namespace, labels: vec![] };
        [Target::Named(reference), Target::Labelled(selector)]
            .into_iter()
            .enumerate()
            .map(|(id, target)| Need { id: id.to_string(), target, fields: Vec::new(), optional: false })
            .collect()
    }
    let (rendered, looks) = asking(elsewhere, []);
    assert!(rendered.subject().found.iter().all(|found| matches!(found.answer, Answer::Forbidden(_))));
    assert_eq!((rendered.needs.len(), looks), (0, 0));
}
