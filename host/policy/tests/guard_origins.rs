//! Tests the origins that a hostile policy declares: origins with other values, of other fields or of other authors,
//! and too many origins. None of these origins allows a privilege or a reference.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::needless_pass_by_value)]

use crate::widget::{NATIVE, admitted, alone, deployment, planned, policy, rules, translate_planned, widget};
use kaos_policy::{
    code::Native,
    contract::{EnvSource, EnvVar, Origin, Plan, Refusal, Subject},
    failure::Failure,
    guard::{Rule, UserPrivileges},
    lookup::Fixed,
    render::Rendered,
};
use serde_json::{Value, json};

const POD: &str = "spec.template.spec";

/// Renders a plan with this pod and with these origins. `user` is the rest of the user's spec.
fn run(pod: Value, origins: &[(&str, &str)], mut user: Value) -> Rendered {
    let declared: Vec<_> = origins.iter().map(|(path, from)| json!([format!("{POD}{path}"), from])).collect();
    user["origins"] = declared.into();
    planned("{}", &[], &json!([deployment(pod)]), user, UserPrivileges::Allowed)
}

fn host_network() -> Value {
    json!({"containers": [{"name": "main"}], "hostNetwork": true})
}

fn pull(name: &str) -> Value {
    json!({"containers": [{"name": "main"}], "imagePullSecrets": [{"name": name}]})
}

fn messages(rendered: &Rendered) -> String {
    rendered.failed().unwrap_or_else(|| panic!("{:?}", rendered.verdict)).to_string()
}

#[test]
fn an_origin_with_another_value_of_another_field_or_of_another_author_allows_nothing() {
    let user = json!({"hostNetwork": false, "debug": true, "net": {"hostNetwork": true}});
    for (from, reason) in [
        ("spec.hostNetwork", "the declared origin spec.hostNetwork has another value"),
        ("spec.debug", "spec.debug is not a field for such values: the path must end in hostNetwork"),
        ("spec.nothing", "the declared origin has no value"),
        ("metadata.name", "the declared origin metadata.name has another value"),
        ("settings.hostNetwork", "the declared origin has no value"),
        ("found status.hostNetwork", "the declared origin has no value"),
    ] {
        let refused = run(host_network(), &[(".hostNetwork", from)], user.clone());
        assert_eq!(rules(&refused), [Rule::NoPrivilege], "{from}");
        assert!(messages(&refused).contains(reason), "{from}: {}", messages(&refused));
    }
    assert!(run(host_network(), &[(".hostNetwork", "spec.net.hostNetwork")], user.clone()).planned().is_some());
    assert!(run(host_network(), &[("", "spec.net")], user.clone()).planned().is_some());
    let undeclared = run(host_network(), &[], user);
    assert!(
        messages(&undeclared)
            .contains("declare the origin of the value in the plan's `origins`, or grant privilege hostNetwork")
    );
}

#[test]
fn a_name_comes_only_from_a_field_for_such_names() {
    let user = json!({"modelAPI": "llm", "pullSecret": "other", "secretName": "llm"});
    for (from, reason) in [
        (
            "spec.modelAPI",
            "is not a field for such values: the last name of the path, before `.name`, must contain `secret`",
        ),
        ("spec.pullSecret", "the declared origin spec.pullSecret has another value"),
        ("settings.pullSecrets[0]", "the declared origin settings.pullSecrets[0] has another value"),
    ] {
        let refused = run(pull("llm"), &[(".imagePullSecrets[0].name", from)], user.clone());
        assert_eq!(rules(&refused), [Rule::NamedReferences], "{from}");
        assert!(messages(&refused).contains(reason), "{from}: {}", messages(&refused));
    }
    let default = run(pull("of-the-policy"), &[(".imagePullSecrets[0].name", "settings.pullSecrets[0]")], json!({}));
    assert!(messages(&default).contains("settings.pullSecrets[0] has the policy's own default"));
    assert!(run(pull("llm"), &[(".imagePullSecrets[0].name", "spec.secretName")], user).planned().is_some());
}

#[test]
fn a_value_of_one_container_is_not_the_origin_of_another_containers_value() {
    let privileged = |name: &str| json!({"name": name, "securityContext": {"privileged": true}});
    let user = json!({"own": {"containers": [privileged("main")]}});
    let side = json!({"containers": [{"name": "main"}, privileged("side")]});
    let from = "spec.own.containers[name=\"main\"]";
    assert_eq!(rules(&run(side, &[(".containers[1]", from)], user.clone())), [Rule::NoPrivilege]);
    let own = json!({"containers": [{"name": "side"}, privileged("main")]});
    assert!(run(own, &[(".containers[name=\"main\"]", from)], user).planned().is_some());
}

#[test]
fn an_origin_without_a_place_is_refused() {
    for (path, from) in [
        (".hostNetwork", "status.hostNetwork"),
        (".hostNetwork", "kind"),
        (".hostNetwork", ""),
        (".hostNetwork", "spec..x"),
        (".hostNetwork[", "spec.x"),
        ("..hostNetwork", "spec.x"),
    ] {
        let refused = run(json!({"containers": [{"name": "main"}]}), &[(path, from)], json!({}));
        assert_eq!(rules(&refused), [Rule::ValidOrigins], "{path} {from}");
    }
    let long = format!("spec.{}", "a.".repeat(10_000) + "a");
    assert_eq!(rules(&run(json!({"containers": []}), &[("", &long)], json!({}))), [Rule::ValidOrigins]);
}

fn render(translate: fn(&Subject, Vec<EnvVar>) -> Result<Plan, Refusal>, spec: Value) -> Rendered {
    let renderer = alone(admitted(Native { translate, ..NATIVE }, "{}"), &[]);
    renderer.render(&widget(spec), &Fixed::default()).unwrap()
}

#[test]
fn a_place_with_fewer_steps_than_the_value_is_refused_without_a_panic() {
    let nested = |value: Value| json!({"containers": [{"name": "main"}], "nodeName": [[[[value]]]]});
    for rule in [UserPrivileges::Allowed, UserPrivileges::Forbidden] {
        let mut user = json!({"nodeName": "x"});
        user["origins"] = json!([[format!("{POD}.nodeName[0][0][0][0]"), "spec.nodeName"]]);
        let rendered = planned("{}", &[], &json!([deployment(nested(json!("x")))]), user, rule);
        assert!(rendered.planned().is_none(), "{:?}", rendered.verdict);
    }
}

#[test]
fn an_origin_of_a_manifest_that_the_plan_lacks_is_refused() {
    fn beyond(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
        let mut plan = translate_planned(subject, env)?;
        plan.origins.push(Origin { manifest: 7, path: String::new(), from: "spec".into() });
        Ok(plan)
    }
    assert_eq!(rules(&render(beyond, json!({"planned": "[]"}))), [Rule::ValidOrigins]);
}

#[test]
fn the_origin_of_a_variable_is_a_place_too() {
    fn from(origin: &str) -> EnvVar {
        let source = EnvSource::Other(json!({"secretKeyRef": {"name": "s", "key": "k"}}).to_string());
        EnvVar { container: "main".into(), name: "A".into(), source, origin: origin.into() }
    }
    fn mapped(subject: &Subject, _: Vec<EnvVar>) -> Result<Plan, Refusal> {
        let object: Value = serde_json::from_str(&subject.object).unwrap();
        translate_planned(subject, vec![from(object["spec"]["from"].as_str().unwrap())])
    }
    let variable = json!({"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
    let plan = json!([deployment(json!({"containers": [{"name": "main", "env": [variable]}]}))]).to_string();
    let rendered = |origin: &str| {
        let token = json!({"name": "s", "key": "k"});
        let env = json!([{"name": "A", "valueFrom": {"secretKeyRef": token}}]);
        render(mapped, json!({"planned": plan, "from": origin, "tokenSecret": token, "list": env, "title": "s"}))
    };
    for origin in ["spec.list[0]", "spec.list[0].valueFrom", "spec.tokenSecret", "spec.tokenSecret.name"] {
        assert!(rendered(origin).planned().is_some(), "{origin}: {:?}", rendered(origin).verdict);
    }
    for origin in ["spec.title", "spec.tokenSecret.key", "settings.image", "metadata.name", "Secret/s data.k"] {
        assert_eq!(rules(&rendered(origin)), [Rule::NamedReferences], "{origin}");
    }
    assert!(rules(&rendered("nonsense")).contains(&Rule::ValidOrigins));
}

#[test]
fn looking_up_an_origin_in_endless_lists_ends() {
    let ports = |count: u64| (1..count).map(|port| json!({"containerPort": port, "hostPort": port})).collect::<Value>();
    let users: Value = (0..3000).map(|i| json!({"hostPort": 70_000 + i})).collect();
    let pod = json!({"containers": [{"name": "main", "ports": ports(19)}]});
    let refused = run(pod, &[(".containers[0].ports", "spec.ports"); 200], json!({"ports": users}));
    let Some(Failure::Guard(breaches)) = refused.failed().map(|failed| &*failed.failure) else { panic!() };
    assert_eq!(breaches.iter().map(|breach| breach.rule).collect::<Vec<_>>(), [Rule::Bounded]);
    assert!(breaches[0].message.contains("too many steps"), "{breaches:?}");
    let nested = (0..100).fold(json!(true), |inner, _| json!([inner]));
    let pod = json!({"containers": [{"name": "main"}], "hostNetwork": true});
    assert_eq!(rules(&run(pod, &[(".hostNetwork", "spec.nested")], json!({"nested": nested}))), [Rule::NoPrivilege]);
}

#[test]
fn a_plan_has_a_limited_number_of_origins() {
    assert_eq!(policy("{}").limits().origins, 2000);
    let many = vec![(".hostNetwork", "spec.x"); 2001];
    assert_eq!(rules(&run(json!({"containers": [{"name": "main"}]}), &many, json!({}))), [Rule::Bounded]);
    assert_eq!(policy("limits: {origins: 5}").limits().origins, 5);
}

#[test]
fn an_object_of_a_wrong_type_is_the_users_only_if_it_has_a_value_of_the_user() {
    let wrong = json!({"containers": [{"name": "main", "image": "i"}], "hostname": {"a": 1, "c": 3}});
    let of = |user: Value| run(wrong.clone(), &[(".hostname", "spec.other")], json!({"other": user}));
    assert_eq!(rules(&of(json!({"b": 2, "a": 2}))), [Rule::FitsKind], "the policy made the object");
    let merged = of(json!({"a": 1, "b": null}));
    let Some(Refusal::Invalid(violations)) = merged.refused() else { panic!("{:?}", merged.verdict) };
    assert_eq!(violations[0].path, "spec.other");
    let cases = [
        (json!({"$retainKeys": false}), json!({})),
        (json!({"$retainKeys": [], "a": [null]}), json!({"a": []})),
        (json!({"a": [{"$patch": "delete"}], "b": {"$patch": "delete", "c": 1}}), json!({"a": []})),
        (json!({"a": {"b": null, "$setElementOrder/c": ["d"]}}), json!({"a": {}})),
    ];
    for (other, hostname) in cases {
        let pod = json!({"containers": [{"name": "main", "image": "i"}], "hostname": hostname});
        let merged = run(pod, &[(".hostname", "spec.other")], json!({"other": other}));
        assert!(matches!(merged.refused(), Some(Refusal::Invalid(_))), "{other}: {:?}", merged.verdict);
    }
}
