//! Tests that `kaos-operator upgrade-check` names the namespaces that do not fit into an AuthorizationPolicy.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};

use crate::{
    support::{Folder, Ran},
    today::sample,
    upgrading::{check, of},
};

const COMPLETE: &str = "security: {userAuth: {jwks: '{\"keys\": []}'}, gatewayHost: gw, \
                        agentAuth: {identity: {serviceAccount: {issuer: i, jwks: '{\"keys\": []}'}}}}";

/// Returns the ConfigMap of a secured release, and one ModelAPI in each namespace. `namespaces` is the number of
/// namespaces.
fn cluster(namespaces: usize, annotations: &Value, further: &Value) -> Vec<Value> {
    let mut data = json!({"SECURITY_PDP_ENABLED": "true", "SECURITY_STRICT_GATEWAY_API_ENABLED": "true"});
    data.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": "kaos-operator-config", "namespace": "kaos-system", "annotations": annotations}});
    let model = |number: usize| {
        json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "ModelAPI",
            "metadata": {"name": "llm", "namespace": format!("n{number:03}")},
            "spec": {"mode": "Hosted", "hostedConfig": {"model": "x"}}})
    };
    [config].into_iter().chain((0..namespaces).map(model)).collect()
}

fn ran(objects: &[Value], further: &str) -> Ran {
    let folder = Folder::new("upgrade-left-out");
    let objects: Vec<String> = objects.iter().map(Value::to_string).collect();
    let objects = folder.write("objects.yaml", objects.join("\n---\n"));
    let (complete, further) = (folder.write("complete.yaml", COMPLETE), folder.write("further.yaml", further));
    let values = [sample("values/secured.yaml"), complete, further];
    let values: Vec<&str> = values.iter().flat_map(|file| ["--values", file]).collect();
    check(&[&["-f", &objects, "-o", "json"], &values[..]].concat())
}

/// Returns the messages of the findings about the AuthorizationPolicy that have this value of `sort`.
fn about_the_list(ran: &Ran, sort: &str) -> Vec<String> {
    let all = of(ran, sort).into_iter();
    all.filter(|(about, _)| about == "AuthorizationPolicy kaos-system/kaos-authz").map(|(_, message)| message).collect()
}

#[test]
fn namespaces_for_which_the_list_has_no_room_lose_access() {
    let told = ran(&cluster(103, &json!({}), &json!({})), "{}");
    let message = "lists at most 100 namespaces, but it needs 103: the decision point denies all requests to the objects \
                   in n100, n101, n102";
    assert_eq!((told.code, about_the_list(&told, "breaks")), (2, vec![message.to_owned()]), "{}", told.stdout);
    assert_eq!(ran(&cluster(100, &json!({}), &json!({})), "{}").code, 0);
    // If the data of the decision point have the source `manual`, the operator does not write them.
    let manual = json!({"SECURITY_AUTHORIZATION_POLICY_DATA_SOURCE": "manual"});
    let told =
        ran(&cluster(103, &json!({}), &manual), "{security: {agentAuth: {authorization: {policyDataSource: manual}}}}");
    assert_eq!(told.code, 0, "{}", told.stdout);
}

#[test]
fn a_list_of_namespaces_counts_instead_of_the_objects() {
    let list = |namespaces: usize| (0..namespaces).map(|number| format!("n{number:03}")).collect::<Vec<_>>().join(",");
    for (namespaces, left_out) in [(2, 0), (101, 1)] {
        let earlier = cluster(103, &json!({}), &json!({"AUTHZ_PROJECTION_NAMESPACES": list(namespaces)}));
        let values = format!("{{security: {{agentAuth: {{projection: {{namespaces: [{}]}}}}}}}}", list(namespaces));
        let told = ran(&earlier, &values);
        assert_eq!(about_the_list(&told, "breaks").len(), left_out, "{}", told.stdout);
    }
}

#[test]
fn after_the_first_upgrade_the_namespaces_that_are_left_out_are_a_note() {
    let mut objects = cluster(101, &json!({"kaos.tools/compatibility": "kaos-0.8"}), &json!({}));
    // The AuthorizationPolicy keeps the namespaces that it already lists.
    let listed: Vec<String> = (1..101).map(|number| format!("n{number:03}")).collect();
    objects.push(json!({"apiVersion": "kaos.tools/v1alpha1", "kind": "AuthorizationPolicy",
        "metadata": {"name": "kaos-authz", "namespace": "kaos-system"},
        "spec": {"namespaces": listed, "configMap": "kaos-authz-policy"}}));
    let told = ran(&objects, "{}");
    assert_eq!(about_the_list(&told, "breaks"), [""; 0], "{}", told.stdout);
    let notes = about_the_list(&told, "note");
    assert!(notes.len() == 1 && notes[0].ends_with("the objects in n000"), "{notes:?}");
}
