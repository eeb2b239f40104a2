//! Generates objects from the schemas of their kinds.

use std::collections::BTreeMap;

use fastrand::Rng;
use kaos_operator::fuzz::{Draw, Generator};
use kaos_policy::lookup::Fixed;
use serde_json::{Value, json};

use crate::server::NAMESPACE;

/// The schemas from which the tests generate objects.
pub(crate) struct Objects {
    /// The schema of each kind's spec.
    kinds: BTreeMap<String, Value>,
    generator: Generator,
}

impl Objects {
    pub(crate) fn new() -> Self {
        let mut kinds = BTreeMap::new();
        for definition in kaos_crds::manifests::ALL {
            let definition: Value = serde_saphyr::from_str(definition).unwrap();
            let kind = definition["spec"]["names"]["kind"].as_str().unwrap().to_owned();
            let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
            kinds.insert(kind, definition.pointer(schema).cloned().unwrap_or_default());
        }
        Self { kinds, generator: Generator::default() }
    }

    /// Generates a random object. Equal random numbers give equal objects.
    pub(crate) fn object(&self, rng: Rng) -> Value {
        let mut draw = Draw::new(rng);
        let kind = draw.rng.choice(["Agent", "MCPServer", "ModelAPI"]).unwrap_or_default();
        let mut spec = self.generator.value(&self.kinds[kind], "spec", &mut draw);
        for (field, value) in base(&mut draw, kind) {
            if draw.one_in(30) {
                continue;
            }
            spec[field] = value;
        }
        if draw.rng.bool() {
            spec["podSpec"] = self.generator.named("PodSpec", "podSpec", &mut draw);
        }
        json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": "it", "namespace": NAMESPACE, "uid": "u"}, "spec": spec})
    }
}

/// Returns the objects to which Agents refer.
pub(crate) fn beside() -> Fixed {
    let object = |kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": spec, "status": {"ready": true, "phase": "Ready", "endpoint": "http://x:8000"}})
    };
    Fixed::new([
        object("ModelAPI", "llm", json!({"mode": "Proxy", "proxyConfig": {"models": ["*"]}})),
        object("MCPServer", "tools", json!({"runtime": "python-string", "params": "def a(): pass"})),
    ])
}

/// Returns the fields that every object of `kind` must have.
fn base(draw: &mut Draw, kind: &str) -> Vec<(&'static str, Value)> {
    match kind {
        "Agent" => {
            let servers = if draw.rng.bool() { json!(["tools"]) } else { json!([]) };
            vec![
                ("modelAPI", json!("llm")),
                ("model", json!("gpt-4o")),
                ("mcpServers", servers),
                ("agentNetwork", json!({})),
                ("harness", Value::Null),
            ]
        }
        "MCPServer" if draw.rng.bool() => {
            vec![("runtime", json!("python-string")), ("params", json!("def a(): pass")), ("type", Value::Null)]
        }
        "MCPServer" => {
            vec![("runtime", json!("custom")), ("container", json!({"image": "img:1"})), ("type", Value::Null)]
        }
        _ if draw.rng.bool() => {
            vec![("mode", json!("Hosted")), ("hostedConfig", json!({"model": "m"})), ("proxyConfig", Value::Null)]
        }
        _ => {
            vec![("mode", json!("Proxy")), ("proxyConfig", json!({"models": ["*"]})), ("hostedConfig", Value::Null)]
        }
    }
}
