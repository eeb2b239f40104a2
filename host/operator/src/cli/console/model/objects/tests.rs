use serde_json::json;

use super::*;

fn widget(name: &str, version: u32) -> Value {
    json!({"apiVersion": "x.io/v1", "kind": "Widget", "metadata":
        {"name": name, "namespace": "team", "uid": name, "resourceVersion": version.to_string()}})
}

#[test]
fn a_list_replaces_what_the_watch_missed_and_answers_for_its_place_only() {
    let of = ResourceType::new("x.io/v1", "Widget");
    let target = |namespace: &str, name: &str| {
        let (api_version, kind) = (of.api_version.clone(), of.kind.clone());
        Target::Named(Reference { api_version, kind, namespace: Some(namespace.to_owned()), name: name.to_owned() })
    };
    let mut objects = Objects::default();
    for name in ["a", "b"] {
        objects.put(identity_of(&widget(name, 1)), widget(name, 1), true);
    }
    assert!(objects.find(&target("team", "a")).is_none(), "the list has not ended");
    objects.listed(&of, Some("team"), &BTreeSet::from([identity_of(&widget("a", 1))]), true);
    assert_eq!(objects.find(&target("team", "a")).map(|found| found.len()), Some(1));
    assert_eq!(objects.find(&target("team", "b")).map(|found| found.len()), Some(0));
    assert!(objects.find(&target("other", "a")).is_none());
}

#[test]
fn connections_follow_both_ways_until_the_object_changes_or_goes() {
    let (user, used) = (identity_of(&widget("a", 1)), identity_of(&widget("b", 1)));
    let mut objects = Objects::default();
    objects.put(user.clone(), widget("a", 1), true);
    let [Unconnected { wanted, .. }] = objects.unconnected(9).try_into().unwrap_or_else(|_| panic!("one object"));
    let change = objects.connect(&user, wanted, vec![used.clone()]).expect("a change");
    assert_eq!(change.related, BTreeSet::from([user.clone(), used.clone()]));
    assert_eq!((objects.uses(&user).len(), objects.users(&used).count()), (1, 1));
    assert!(objects.unconnected(9).is_empty());
    objects.disconnect(|_, identity| *identity == used);
    assert!(objects.unconnected(9).is_empty(), "other policies, but not for this object");
    objects.disconnect(|_, identity| *identity == user);
    assert_eq!(objects.unconnected(9).len(), 1, "other policies may ask for other objects");
    assert_eq!(objects.connect(&user, wanted, vec![used.clone()]), None, "the object uses the same as before");
    objects.remove(&user);
    assert_eq!((objects.uses(&user).len(), objects.users(&used).count()), (0, 0));
}

#[test]
fn an_answer_about_an_object_that_went_or_changed_meanwhile_leaves_nothing() {
    let (user, used) = (identity_of(&widget("a", 1)), identity_of(&widget("b", 1)));
    let mut objects = Objects::default();
    objects.put(user.clone(), widget("a", 1), true);
    let wanted = objects.unconnected(9)[0].wanted;
    objects.remove(&user);
    assert_eq!(objects.connect(&user, wanted, vec![used.clone()]), None);
    assert_eq!(objects.connected(), (0, 0));
    let mut edited = widget("a", 2);
    edited["metadata"]["generation"] = json!(2);
    objects.put(user.clone(), edited, true);
    assert_eq!(objects.connect(&user, wanted, vec![used]), None);
    assert_eq!(objects.connected(), (0, 0));
    assert_eq!(objects.unconnected(9).len(), 1, "the console asks again for the edited object");
}

#[test]
fn an_object_that_comes_again_in_the_same_version_changes_nothing_and_a_child_touches_its_owner() {
    let owner = identity_of(&widget("a", 1));
    let mut child = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata":
        {"name": "widget-a", "namespace": "team", "uid": "d", "resourceVersion": "1", "ownerReferences":
            [{"apiVersion": "x.io/v1", "kind": "Widget", "name": "a", "uid": "a"}]}});
    let mut objects = Objects::default();
    let change = objects.put(owner.clone(), widget("a", 1), true).expect("a change");
    assert!(change.is_listed);
    assert_eq!(objects.put(owner.clone(), widget("a", 1), true), None);
    let change = objects.put(owner.clone(), widget("a", 2), true).expect("a change");
    assert!(!change.is_listed, "the object looks the same in a list");
    let change = objects.put(identity_of(&child), child.clone(), false).expect("a change");
    assert!(change.related.contains(&owner) && !change.is_listed);
    assert_eq!(objects.owned_by("a").len(), 1);
    child["metadata"]["resourceVersion"] = json!("2");
    child["metadata"]["ownerReferences"] = json!([]);
    let change = objects.put(identity_of(&child), child.clone(), false).expect("a change");
    assert!(change.related.contains(&owner), "the owner lost its child");
    assert_eq!(objects.owned_by("a").len(), 0);
}

#[test]
fn the_numbers_follow_every_change() {
    let mut objects = Objects::default();
    for name in ["a", "b"] {
        objects.put(identity_of(&widget(name, 1)), widget(name, 1), true);
    }
    let counts = |objects: &Objects| objects.counts().iter().map(|(_, count)| count).collect::<Vec<_>>();
    assert_eq!(counts(&objects), [super::super::counts::Count { open: 2, total: 2 }]);
    let mut ready = widget("a", 2);
    ready["metadata"]["generation"] = json!(1);
    ready["status"] = json!({"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]});
    objects.put(identity_of(&ready), ready, true);
    assert_eq!(counts(&objects), [super::super::counts::Count { open: 1, total: 2 }]);
    objects.forget(&ResourceType::new("x.io/v1", "Widget"));
    assert!(counts(&objects).is_empty());
}

#[test]
fn children_keep_neither_pod_specs_nor_data() {
    let mut child = json!({"kind": "Deployment", "spec": {"replicas": 1, "template": {"spec": {"containers": []}}}});
    slim(&mut child, false);
    assert_eq!(child, json!({"kind": "Deployment", "metadata": null, "spec": {"replicas": 1, "template": {}}}));
    let mut map = json!({"kind": "ConfigMap", "data": {"a": "b"}, "metadata": {"managedFields": []}});
    slim(&mut map, false);
    assert_eq!(map, json!({"kind": "ConfigMap", "metadata": {}}));
}
