//! A native policy for Widgets that reads its answers from the object. The policy returns `spec.plan` as its plan. If a
//! test uses `spec.planned` instead, this field contains the manifests as text. So the guard does not find the values
//! of the plan in the user's spec.
#![allow(dead_code, clippy::unnecessary_wraps, clippy::needless_pass_by_value)]

use std::sync::Arc;

use kaos_policy::{
    code::Native,
    contract::{
        Claim, Cluster, Descriptor, EnvSource, EnvVar, Need, Observation, Origin, Plan, Reference, Refusal, Report,
        ResourceType, Sample, Subject, Target,
    },
    digest::Digest,
    failure::Failure,
    guard::{Rule, UserPrivileges},
    limits::Limits,
    lookup::Fixed,
    manifest::PolicyFile,
    policy::{Policy, Stack},
    render::{Rendered, Renderer},
    settings::Layer,
};
use serde_json::{Value, json};

pub(crate) const SCHEMA: &str = r##"{"type":"object","additionalProperties":false,"properties":{
    "image":{"type":"string","default":"img:1","x-env":"WIDGET_IMAGE","x-annotation":true},
    "port":{"type":"integer","default":8000},
    "pullSecrets":{"type":"array","default":["of-the-policy"],"x-annotation":true},
    "security":{"type":"object","default":{}},
    "probe":{"$ref":"#/$defs/Probe","default":{"period":10}}},
    "$defs":{"Probe":{"type":"object","additionalProperties":false,"properties":{
        "period":{"type":"integer","minimum":1,"default":5,"x-env":"WIDGET_PERIOD"},
        "path":{"type":"string","default":"/health"}}}}}"##;

pub(crate) const NATIVE: Native = Native { describe, needs, map_env, translate, assess };

pub(crate) fn of(api_version: &str, kind: &str) -> ResourceType {
    ResourceType::new(api_version, kind)
}

pub(crate) fn describe() -> Descriptor {
    let claim = Claim {
        primary: of("example.com/v1", "Widget"),
        emits: ["ConfigMap", "Service", "Secret", "ServiceAccount", "PersistentVolumeClaim"]
            .map(|kind| of("v1", kind))
            .into_iter()
            .chain(["Deployment", "StatefulSet"].map(|kind| of("apps/v1", kind)))
            .chain([of("jobset.x-k8s.io/v1alpha2", "JobSet"), of("networking.k8s.io/v1", "NetworkPolicy")])
            .collect(),
        reads: vec![of("v1", "ConfigMap"), of("v1", "Secret")],
        wishes: vec![],
        finalizer: None,
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

pub(crate) fn object(subject: &Subject) -> Value {
    serde_json::from_str(&subject.object).unwrap()
}

pub(crate) fn needs(subject: &Subject) -> Vec<Need> {
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
            fields: need["fields"].as_array().into_iter().flatten().map(|path| path.as_str().unwrap().into()).collect(),
            optional: false,
        })
        .collect()
}

/// Adds each literal in `spec.env` to the mapping.
pub(crate) fn map_env(subject: &Subject, _: Vec<EnvVar>) -> Result<Vec<EnvVar>, Refusal> {
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

pub(crate) fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    let object = object(subject);
    let manifests = object["spec"]["plan"].as_array().cloned().unwrap_or_default();
    // If a manifest is a text in the object, the manifest's values are the policy's own values.
    let users = (0..).zip(&manifests).filter(|(_, manifest)| !manifest.is_string());
    let whole = |(i, _): (u32, &Value)| Origin { manifest: i, path: String::new(), from: format!("spec.plan[{i}]") };
    let origins = users.map(whole).chain(declared(&object, manifests.len())).collect();
    let text = |manifest: &Value| manifest.as_str().map_or_else(|| manifest.to_string(), str::to_owned);
    let manifests = manifests.iter().map(text).collect();
    Ok(Plan {
        manifests,
        origins,
        gates: vec![],
        env,
        notes: vec![],
        finalizer: None,
        kept: vec![],
        gates_hold: false,
        extra: "{}".into(),
    })
}

pub(crate) fn assess(_: &Subject, _: &Observation) -> Report {
    Report {
        ready: false,
        phase: "Pending".into(),
        message: String::new(),
        fields: "{}".into(),
        conditions: vec![],
        extra: "{}".into(),
    }
}

/// Creates a policy with this code. `file` is the `policy.yaml` with the policy's grants and limits.
pub(crate) fn admitted(code: Native, file: &str) -> Arc<Policy> {
    let file = PolicyFile::parse(file).unwrap();
    Arc::new(Policy::admit(Arc::new(code), Digest::of(b"native"), &file, Limits::default()).unwrap())
}

/// Returns a renderer of this policy without overlays.
pub(crate) fn alone(policy: Arc<Policy>, layers: &[Layer]) -> Renderer {
    Renderer::new(&Stack::single(policy).unwrap(), layers, Cluster::default()).unwrap()
}

pub(crate) fn policy(file: &str) -> Arc<Policy> {
    admitted(NATIVE, file)
}

pub(crate) fn renderer(file: &str, layers: &[Layer]) -> Renderer {
    alone(policy(file), layers)
}

pub(crate) fn widget(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "n", "uid": "u"}, "spec": spec})
}

pub(crate) fn render(spec: Value) -> Rendered {
    renderer("{}", &[]).render(&widget(spec), &Fixed::default()).unwrap()
}

pub(crate) fn rules(rendered: &Rendered) -> Vec<Rule> {
    match rendered.failed().map(|failed| &*failed.failure) {
        Some(Failure::Guard(breaches)) => breaches.iter().map(|breach| breach.rule).collect(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn config(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "b"}})
}

pub(crate) fn deployment(pod: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w"},
        "spec": {"selector": {}, "template": {"metadata": {"labels": {"app": "w"}}, "spec": pod}}})
}

/// Returns the origins of each manifest: the pod spec comes from `spec.podSpec`, and the first container from
/// `spec.container`. `spec.origins` contains further pairs of a path and a source.
fn declared(object: &Value, manifests: usize) -> Vec<Origin> {
    let given = object["spec"]["origins"].as_array().into_iter().flatten();
    let given = given.map(|pair| (pair[0].as_str().unwrap(), pair[1].as_str().unwrap()));
    let merged = [("spec.template.spec", "spec.podSpec"), ("spec.template.spec.containers[0]", "spec.container")];
    let declared: Vec<_> = merged.into_iter().chain(given).collect();
    let origin =
        |manifest, (path, from): &(&str, &str)| Origin { manifest, path: (*path).into(), from: (*from).into() };
    let of_one = |manifest| declared.iter().map(move |pair| origin(manifest, pair));
    (0..u32::try_from(manifests).unwrap()).flat_map(of_one).collect()
}

/// Returns a plan with the manifests in `spec.planned`, the `extra` in `spec.extra`, and the finalizer in
/// `spec.finalizer`.
pub(crate) fn translate_planned(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    let object = object(subject);
    let manifests: Vec<Value> = serde_json::from_str(object["spec"]["planned"].as_str().unwrap()).unwrap();
    let origins = declared(&object, manifests.len());
    let text = |manifest: &Value| manifest.as_str().map_or_else(|| manifest.to_string(), str::to_owned);
    let manifests = manifests.iter().map(text).collect();
    let extra = object["spec"]["extra"].as_str().unwrap_or("{}").to_owned();
    let finalizer = object["spec"]["finalizer"].as_str().map(str::to_owned);
    let (gates, notes, kept) = (vec![], vec![], vec![]);
    Ok(Plan { manifests, origins, gates, env, notes, finalizer, kept, gates_hold: false, extra })
}

/// Renders manifests whose values do not come from the user's spec, together with the user's own spec.
pub(crate) fn planned(file: &str, layers: &[Layer], plan: &Value, user: Value, rule: UserPrivileges) -> Rendered {
    planned_by(file, layers, plan, user, |renderer| renderer.with_user_privileges(rule))
}

/// Renders manifests whose values do not come from the user's spec. The function `told` sets options of the renderer
/// first.
pub(crate) fn planned_by(
    file: &str,
    layers: &[Layer],
    plan: &Value,
    user: Value,
    told: impl FnOnce(Renderer) -> Renderer,
) -> Rendered {
    let mut spec = user;
    spec["planned"] = json!(plan.to_string());
    let renderer = alone(admitted(Native { translate: translate_planned, ..NATIVE }, file), layers);
    told(renderer).render(&widget(spec), &Fixed::default()).unwrap()
}
