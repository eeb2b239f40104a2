//! The guard, the stamp and the settings, seen through the pass with a native policy that answers what it
//! finds in the object: `spec.plan` is its plan.
// The five functions have the form of the contract, and `json!` is handed over as it is written.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::unnecessary_wraps,
    clippy::needless_pass_by_value
)]

use std::sync::Arc;

use kaos_policy::{
    code::Native,
    contract::{
        Claim, Cluster, Descriptor, EnvSource, EnvVar, Need, Observation, Plan, Reference, Refusal, Report,
        ResourceType, Sample, Subject, Target,
    },
    digest::Digest,
    failure::Failure,
    guard::{Rule, UserPrivileges},
    limits::Limits,
    lookup::Fixed,
    manifest::PolicyFile,
    memo::Memo,
    policy::{Policy, Stack},
    render::{Rendered, Renderer},
    settings::{Layer, Origin, Path},
    stamp::{APPLIED_DIGEST, POD_SPEC_HASH},
};
use serde_json::{Value, json};

const SCHEMA: &str = r##"{"type":"object","additionalProperties":false,"properties":{
    "image":{"type":"string","default":"img:1","x-env":"WIDGET_IMAGE","x-annotation":true},
    "port":{"type":"integer","default":8000},
    "probe":{"$ref":"#/$defs/Probe","default":{"period":10}}},
    "$defs":{"Probe":{"type":"object","additionalProperties":false,"properties":{
        "period":{"type":"integer","minimum":1,"default":5,"x-env":"WIDGET_PERIOD"},
        "path":{"type":"string","default":"/health"}}}}}"##;

const NATIVE: Native = Native { describe, needs, map_env, translate, assess };

fn of(api_version: &str, kind: &str) -> ResourceType {
    ResourceType::new(api_version, kind)
}

fn describe() -> Descriptor {
    let claim = Claim {
        primary: of("example.com/v1", "Widget"),
        emits: vec![of("apps/v1", "Deployment"), of("v1", "ConfigMap"), of("v1", "Service")],
        reads: vec![of("v1", "ConfigMap"), of("v1", "Secret")],
        wishes: vec![],
        finalizer: None,
        retired_finalizers: vec![],
        samples: vec![Sample { name: "one".into(), object: "{}".into(), beside: vec![] }],
        extra: "{}".into(),
    };
    Descriptor {
        name: "widget".into(),
        version: "0.1.0".into(),
        claims: vec![claim],
        settings_schema: SCHEMA.into(),
        extra: "{}".into(),
    }
}

fn object(subject: &Subject) -> Value {
    serde_json::from_str(&subject.object).unwrap()
}

fn needs(subject: &Subject) -> Vec<Need> {
    let object = object(subject);
    let list = object["spec"]["needs"].as_array().cloned().unwrap_or_default();
    list.iter()
        .map(|need| Need {
            id: need["name"].as_str().unwrap().into(),
            target: Target::Named(Reference {
                api_version: "v1".into(),
                kind: need["kind"].as_str().unwrap_or("ConfigMap").into(),
                namespace: need["namespace"].as_str().map(Into::into),
                name: need["name"].as_str().unwrap().into(),
            }),
        })
        .collect()
}

/// Maps each literal of `spec.plan` in `spec.env`.
fn map_env(subject: &Subject, _: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
    let object = object(subject);
    let empty = serde_json::Map::new();
    Ok(object["spec"]["env"]
        .as_object()
        .unwrap_or(&empty)
        .iter()
        .map(|(name, value)| EnvVar {
            container: "main".into(),
            name: name.clone(),
            source: EnvSource::Literal(value.as_str().unwrap().into()),
            origin: "spec.env".into(),
        })
        .collect())
}

fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    let object = object(subject);
    let manifests = object["spec"]["plan"].as_array().cloned().unwrap_or_default();
    // A text is a manifest of the policy's own making.
    let text = |manifest: &Value| manifest.as_str().map_or_else(|| manifest.to_string(), str::to_owned);
    let manifests = manifests.iter().map(text).collect();
    Ok(Plan { manifests, gates: vec![], env, notes: vec![], extra: "{}".into() })
}

fn assess(_: &Subject, _: &Observation) -> Report {
    Report {
        ready: false,
        phase: "Pending".into(),
        message: String::new(),
        fields: "{}".into(),
        conditions: vec![],
        extra: "{}".into(),
    }
}

fn policy(file: &str) -> Arc<Policy> {
    let file = PolicyFile::parse(file).unwrap();
    Arc::new(Policy::admit(Arc::new(NATIVE), Digest::of(b"native"), &file, Limits::default()).unwrap())
}

fn renderer(file: &str, layers: &[Layer]) -> Renderer {
    Renderer::new(&Stack::single(policy(file)).unwrap(), layers, Cluster::default()).unwrap()
}

fn widget(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "n", "uid": "u"}, "spec": spec})
}

fn render(spec: Value) -> Rendered {
    renderer("{}", &[]).render(&widget(spec), &Fixed::default()).unwrap()
}

fn rules(rendered: &Rendered) -> Vec<Rule> {
    match rendered.failed().map(|failed| &*failed.failure) {
        Some(Failure::Guard(breaches)) => breaches.iter().map(|breach| breach.rule).collect(),
        other => panic!("{other:?}"),
    }
}

fn config(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

fn deployment(pod: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"},
        "spec": {"selector": {}, "template": {"metadata": {"labels": {"app": "w"}}, "spec": pod}}})
}

#[test]
fn a_plan_is_stamped_with_its_owner_and_digests() {
    let pod = json!({"containers": [{"name": "main", "image": "i"}],
        "volumes": [{"name": "c", "configMap": {"name": "c"}}]});
    let plan = |data: &str| {
        let mut config = config("c");
        config["data"]["a"] = json!(data);
        render(json!({"plan": [config, deployment(pod.clone())]}))
    };
    let (one, other) = (plan("1"), plan("2"));
    let live = &one.manifests()[1];
    assert_eq!(live["metadata"]["namespace"], "n");
    assert_eq!(
        live["metadata"]["ownerReferences"],
        json!([{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "u",
            "controller": true, "blockOwnerDeletion": true}])
    );
    assert_eq!(live["metadata"]["labels"]["app.kubernetes.io/managed-by"], "kaos-operator");
    assert!(live["metadata"]["annotations"][APPLIED_DIGEST].as_str().unwrap().starts_with("sha256:"));
    let hash = |rendered: &Rendered| {
        rendered.manifests()[1]["spec"]["template"]["metadata"]["annotations"][POD_SPEC_HASH].clone()
    };
    assert_eq!(hash(&one).as_str().unwrap().len(), 16);
    assert_ne!(hash(&one), hash(&other), "a ConfigMap that the pod mounts rolls it");
    assert_eq!(live["spec"]["selector"], json!({}), "selectors are never stamped");
}

#[test]
fn a_value_of_a_wrong_type_is_refused_where_the_user_wrote_it() {
    let pod = json!({"containers": [{"name": "main", "image": "i", "resources": 3}], "volumes": "x"});
    let refused = render(json!({"plan": [config("c"), deployment(pod)]}));
    let Some(Refusal::Invalid(violations)) = refused.refused() else { panic!("{:?}", refused.verdict) };
    let told: Vec<String> = violations.iter().map(|it| format!("{}: {}", it.path, it.message)).collect();
    assert_eq!(
        told,
        [
            "spec.plan[1].spec.template.spec.containers[0].resources: must be an object of type \
             ResourceRequirements, and is a number: no Deployment can hold it; correct it or take it out",
            "spec.plan[1].spec.template.spec.volumes: must be a list, and is a text: \
             no Deployment can hold it; correct it or take it out",
        ]
    );
}

#[test]
fn a_value_of_a_wrong_type_that_no_user_wrote_is_the_policys_failure() {
    let own = deployment(json!({"containers": [{"name": "main", "image": "i"}], "volumes": "x"})).to_string();
    assert_eq!(rules(&render(json!({"plan": [own]}))), [Rule::FitsKind]);
}

#[test]
fn each_rule_of_the_guard_is_told_by_name() {
    let with = |field: &str, value: Value| {
        let mut config = config("c");
        config["metadata"][field] = value;
        render(json!({"plan": [config]}))
    };
    assert_eq!(rules(&with("namespace", json!("other"))), [Rule::OwnNamespace]);
    assert_eq!(rules(&with("name", json!("No"))), [Rule::ValidNames]);
    assert_eq!(rules(&with("finalizers", json!(["a/b"]))), [Rule::HostMetadata]);
    assert_eq!(rules(&with("ownerReferences", json!([]))), [Rule::HostMetadata]);
    assert_eq!(rules(&with("labels", json!({"kaos.tools/policy": "x"}))), [Rule::HostMetadata]);
    assert_eq!(rules(&with("labels", json!({"a": "no label"}))), [Rule::ValidNames]);
    assert_eq!(rules(&with("annotations", json!({APPLIED_DIGEST: "x"}))), [Rule::HostMetadata]);
    assert_eq!(rules(&render(json!({"plan": [config("c"), config("c")]}))), [Rule::NoDuplicates]);
    assert!(
        rules(&render(json!({"plan": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}]})))
            .contains(&Rule::NoClusterPower)
    );
    assert!(rules(&render(json!({"plan": [[]]}))).contains(&Rule::WellFormed));
    let itself = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}});
    assert!(rules(&render(json!({"plan": [itself]}))).contains(&Rule::NotItself));
}

#[test]
fn the_mapping_must_be_what_the_manifests_carry() {
    let run = |env: Value, carried: Value| {
        render(json!({"env": env, "plan": [deployment(json!({"containers": [{"name": "main", "env": carried}]}))]}))
    };
    let a = json!({"name": "A", "value": "1"});
    assert!(run(json!({"A": "1"}), json!([a])).planned().is_some());
    assert_eq!(rules(&run(json!({}), json!([a]))), [Rule::EnvAsMapped]);
    assert_eq!(rules(&run(json!({"A": "2"}), json!([a]))), [Rule::EnvAsMapped]);
    assert_eq!(rules(&run(json!({"A": "1", "B": "1"}), json!([a]))), [Rule::EnvAsMapped]);
    assert_eq!(rules(&run(json!({"A": "1"}), json!([a, a]))), [Rule::NoDuplicateEnv]);
}

#[test]
fn privilege_is_the_users_own_word_for_the_same_container_or_granted() {
    let raised = json!({"containers": [{"name": "main", "securityContext": {"privileged": true}}],
        "volumes": [{"name": "h", "hostPath": {"path": "/"}}]});
    let plan = json!([deployment(raised)]);
    // The plan of this policy stands in the spec, which is not where users write pods: keep it elsewhere.
    let spec = |own: Value| json!({"planned": plan.to_string(), "podSpec": own});
    let run = |file: &str, own: Value, rule: UserPrivileges| {
        let policy = {
            let native = Native { translate: translate_planned, ..NATIVE };
            let file = PolicyFile::parse(file).unwrap();
            Arc::new(Policy::admit(Arc::new(native), Digest::of(b"n"), &file, Limits::default()).unwrap())
        };
        Renderer::new(&Stack::single(policy).unwrap(), &[], Cluster::default())
            .unwrap()
            .with_user_privileges(rule)
            .render(&widget(spec(own)), &Fixed::default())
            .unwrap()
    };
    let own = json!({"containers": [{"name": "main", "securityContext": {"privileged": true}}],
        "volumes": [{"name": "x", "hostPath": {"path": "/"}}]});
    let sidecar = json!({"containers": [{"name": "other", "securityContext": {"privileged": true}}],
        "volumes": [{"name": "x", "hostPath": {"path": "/"}}]});
    assert_eq!(rules(&run("{}", json!({}), UserPrivileges::Allowed)), [Rule::NoPrivilege; 2]);
    assert!(run("{}", own.clone(), UserPrivileges::Allowed).planned().is_some());
    assert_eq!(rules(&run("{}", sidecar, UserPrivileges::Allowed)), [Rule::NoPrivilege]);
    assert_eq!(rules(&run("{}", own, UserPrivileges::Forbidden)), [Rule::NoPrivilege; 2]);
    let granted = "grants: {privileges: [privileged, hostPath]}";
    assert!(run(granted, json!({}), UserPrivileges::Forbidden).planned().is_some());
}

fn translate_planned(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    let object = object(subject);
    let manifests: Vec<Value> = serde_json::from_str(object["spec"]["planned"].as_str().unwrap()).unwrap();
    // A text is a manifest of the policy's own making.
    let text = |manifest: &Value| manifest.as_str().map_or_else(|| manifest.to_string(), str::to_owned);
    let manifests = manifests.iter().map(text).collect();
    Ok(Plan { manifests, gates: vec![], env, notes: vec![], extra: "{}".into() })
}

#[test]
fn other_namespaces_are_read_by_grant_and_secrets_never() {
    let elsewhere = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "sizes", "namespace": "kaos-system"}, "data": {"x": "found"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "s", "namespace": "n"}, "data": {"k": "c2VjcmV0"}});
    let lookup = Fixed::new([elsewhere, secret]);
    let object =
        widget(json!({"needs": [{"name": "sizes", "namespace": "kaos-system"}, {"name": "s", "kind": "Secret"}]}));
    let answers = |file: &str| {
        let rendered = renderer(file, &[]).render(&object, &lookup).unwrap();
        assert_eq!(
            rendered.needs.iter().map(|need| need.id.as_str()).collect::<Vec<_>>(),
            ["widget/s", "widget/sizes"]
        );
        serde_json::to_string(&rendered.subject().found).unwrap()
    };
    assert!(answers("{}").contains("no grant"));
    let grant =
        "grants: {reads: [{apiVersion: v1, kind: ConfigMap, namespace: $(OPERATOR_NAMESPACE), names: [sizes]}]}";
    let granted = answers(grant);
    assert!(granted.contains("found") && !granted.contains("c2VjcmV0"));
}

#[test]
fn settings_are_merged_in_the_order_of_their_origins_and_know_their_source() {
    let env = |origin, pairs: &[(&str, &str)]| {
        Layer::env(origin, pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
    };
    let layers = [
        Layer::tree(Origin::ClusterPolicy("p".into()), "widget", json!({"probe": {"path": "/x"}})),
        env(Origin::OperatorConfig, &[("WIDGET_IMAGE", ""), ("WIDGET_PERIOD", "7")]),
        env(Origin::Environment, &[("WIDGET_IMAGE", "img:env"), ("WIDGET_PERIOD", "6")]),
    ];
    let renderer = renderer("{}", &layers);
    let (_, settings) = renderer.layers().next().unwrap();
    assert_eq!(settings.tree(), &json!({"image": "img:env", "port": 8000, "probe": {"period": 7, "path": "/x"}}));
    let source = |path: &str| settings.source(&Path::parse(path)).unwrap().origin.clone();
    assert_eq!(source("image"), Origin::Environment);
    assert_eq!(source("probe.period"), Origin::OperatorConfig);
    assert_eq!(source("probe.path"), Origin::ClusterPolicy("p".into()));
    assert_eq!(source("port"), Origin::SchemaDefault);
}

#[test]
fn a_setting_that_does_not_fit_is_told_with_path_layer_and_remedy() {
    let new = |layer| Renderer::new(&Stack::single(policy("{}")).unwrap(), &[layer], Cluster::default());
    let wrong = |layer| new(layer).err().unwrap().to_string();
    let text = wrong(Layer::env(Origin::OperatorConfig, [("WIDGET_PERIOD".to_owned(), "soon".to_owned())]));
    assert!(
        text.contains("widget.probe.period") && text.contains("WIDGET_PERIOD of ConfigMap kaos-operator-config"),
        "{text}"
    );
    let text = wrong(Layer::tree(Origin::File("s.yaml".into()), "widget", json!({"probe": {"period": 0}})));
    assert!(text.contains("file s.yaml") && text.contains("default 10"), "{text}");
    let text = wrong(Layer::tree(Origin::CommandLine, "widget", json!({"colour": "red"})));
    assert!(text.contains("widget.colour") && text.contains("does not exist"), "{text}");
}

#[test]
fn annotations_override_where_the_schema_says_so_and_are_the_users_error_elsewhere() {
    let renderer = renderer("{}", &[]);
    let run = |key: &str, value: &str| {
        let mut object = widget(json!({}));
        object["metadata"]["annotations"] = json!({format!("settings.kaos.tools/{key}"): value});
        renderer.render(&object, &Fixed::default()).unwrap()
    };
    assert!(run("image", "mine").subject().settings.contains("\"image\":\"mine\""));
    for (key, value) in [("port", "1"), ("colour", "red")] {
        let refusal = run(key, value);
        let Some(Refusal::Invalid(violations)) = refusal.refused() else { panic!("{key}") };
        assert_eq!(violations[0].path, format!("metadata.annotations[\"settings.kaos.tools/{key}\"]"));
    }
}

#[test]
fn assignments_take_the_type_of_their_setting() {
    let policy = policy("{}");
    let policies = [("widget", policy.schema())];
    let set = |text: &str| kaos_policy::settings::assignments(&[text.to_owned()], &policies);
    assert_eq!(set("widget.port=1").unwrap(), [Layer::tree(Origin::CommandLine, "widget", json!({"port": 1}))]);
    assert_eq!(
        set("probe.path=5").unwrap(),
        [Layer::tree(Origin::CommandLine, "widget", json!({"probe": {"path": "5"}}))]
    );
    for wrong in ["port", "nothing=1", "port=x", "=", ""] {
        assert!(set(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_memo_answers_as_long_as_nothing_that_was_looked_at_changes() {
    let memo = Arc::new(Memo::new(1 << 20));
    let renderer = renderer("{}", &[]).with_memo(Arc::clone(&memo));
    let object = widget(json!({"needs": [{"name": "c"}]}));
    let found = |data: &str| {
        Fixed::new([json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "c", "namespace": "n", "resourceVersion": data}, "data": {"x": data}})])
    };
    assert!(!renderer.render(&object, &found("1")).unwrap().recalled());
    assert!(renderer.render(&object, &found("1")).unwrap().recalled());
    assert!(!renderer.render(&object, &found("2")).unwrap().recalled());
    let small = Arc::new(Memo::new(1));
    let renderer = renderer_with(&small);
    renderer.render(&object, &found("1")).unwrap();
    assert_eq!(small.size(), (0, 0));
}

fn renderer_with(memo: &Arc<Memo>) -> Renderer {
    renderer("{}", &[]).with_memo(Arc::clone(memo))
}
