//! Generates objects from the schemas of their kinds. If a schema accepts any content for a field, the generator uses
//! Kubernetes' own type for the field.

use std::collections::BTreeMap;

use fastrand::Rng;
use kaos_policy::lookup::Fixed;
use serde_json::{Map, Value, json};

use crate::server::NAMESPACE;
use crate::words;

const PREFIX: &str = "#/components/schemas/";
/// Below this depth of the schema, the generator creates only required fields.
const DEEP: usize = 14;

/// The schemas for the generated objects.
pub(crate) struct Generator {
    /// The schema of each kind's spec.
    kinds: BTreeMap<String, Value>,
    /// Kubernetes' own types, by their full names.
    types: Map<String, Value>,
}

impl Generator {
    pub(crate) fn new() -> Self {
        let mut kinds = BTreeMap::new();
        for definition in kaos_crds::manifests::ALL {
            let definition: Value = serde_saphyr::from_str(definition).unwrap();
            let kind = definition["spec"]["names"]["kind"].as_str().unwrap().to_owned();
            let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
            kinds.insert(kind, definition.pointer(schema).cloned().unwrap_or_default());
        }
        let types = serde_json::from_str(include_str!("../../../host/cluster/schemas/definitions.json")).unwrap();
        Self { kinds, types }
    }

    /// Generates a random object. Equal random numbers give equal objects.
    pub(crate) fn object(&self, rng: Rng) -> Value {
        let mut maker = Maker { generator: self, rng, nasty: 0 };
        // About half of the objects get few invalid values or none.
        maker.nasty = maker.rng.choice([0, 0, 2, 5, 12]).unwrap_or_default();
        let kind = maker.rng.choice(["Agent", "MCPServer", "ModelAPI"]).unwrap_or_default();
        let mut spec = maker.value(&self.kinds[kind], kind, "spec", 0);
        for (field, value) in maker.base(kind) {
            if maker.one_in(30) {
                continue;
            }
            spec[field] = value;
        }
        if maker.rng.bool() {
            let pod = maker.named("PodSpec", "podSpec", 1);
            spec["podSpec"] = pod;
        }
        json!({"apiVersion": "kaos.tools/v1alpha1", "kind": kind, "metadata": {"name": "it", "namespace": NAMESPACE, "uid": "u"}, "spec": spec})
    }

    fn named(&self, name: &str) -> &Value {
        let end = format!(".{name}");
        self.types.iter().find(|(full, _)| full.ends_with(&end)).map_or(&Value::Null, |(_, schema)| schema)
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

/// The state of the generator for one object.
struct Maker<'a> {
    generator: &'a Generator,
    rng: Rng,
    /// The percentage of values that are invalid for their field.
    nasty: u8,
}

impl Maker<'_> {
    fn one_in(&mut self, number: u32) -> bool {
        self.rng.u32(..number) == 0
    }

    fn is_nasty(&mut self) -> bool {
        self.rng.u8(..100) < self.nasty
    }

    /// Returns the fields that every object of `kind` must have.
    fn base(&mut self, kind: &str) -> Vec<(&'static str, Value)> {
        match kind {
            "Agent" => {
                let servers = if self.rng.bool() { json!(["tools"]) } else { json!([]) };
                vec![
                    ("modelAPI", json!("llm")),
                    ("model", json!("gpt-4o")),
                    ("mcpServers", servers),
                    ("agentNetwork", json!({})),
                    ("harness", Value::Null),
                ]
            }
            "MCPServer" if self.rng.bool() => {
                vec![("runtime", json!("python-string")), ("params", json!("def a(): pass")), ("type", Value::Null)]
            }
            "MCPServer" => {
                vec![("runtime", json!("custom")), ("container", json!({"image": "img:1"})), ("type", Value::Null)]
            }
            _ if self.rng.bool() => {
                vec![("mode", json!("Hosted")), ("hostedConfig", json!({"model": "m"})), ("proxyConfig", Value::Null)]
            }
            _ => {
                vec![("mode", json!("Proxy")), ("proxyConfig", json!({"models": ["*"]})), ("hostedConfig", Value::Null)]
            }
        }
    }

    fn named(&mut self, name: &str, field: &str, depth: usize) -> Value {
        let generator = self.generator;
        self.value(generator.named(name), name, field, depth)
    }

    /// Generates a value of a schema for a field. `of` is the type or the field that contains this field.
    fn value(&mut self, schema: &Value, of: &str, field: &str, depth: usize) -> Value {
        let generator = self.generator;
        if let Some(name) = schema["$ref"].as_str() {
            let full = name.trim_start_matches(PREFIX);
            let short = full.rsplit('.').next().unwrap_or_default();
            return self.value(&generator.types[full], short, field, depth);
        }
        if let Some(allowed) = schema["enum"].as_array() {
            return if self.is_nasty() { json!("Else") } else { self.rng.choice(allowed).cloned().unwrap_or_default() };
        }
        if let Some(open) = Self::open(schema, field) {
            return self.named(open, field, depth);
        }
        let is_nasty = self.is_nasty();
        if schema["oneOf"].is_array() || schema["x-kubernetes-int-or-string"] == true {
            // A schema that accepts a number or a text belongs to a quantity, or to a port that has a number or a name.
            return match (field, self.rng.bool()) {
                ("port" | "targetPort", true) => json!(words::text("ContainerPort", "name", &mut self.rng, is_nasty)),
                ("port" | "targetPort", false) => words::number(field, &mut self.rng, is_nasty),
                _ => words::amount(&mut self.rng, is_nasty),
            };
        }
        match schema["type"].as_str() {
            Some("string") => json!(words::text(of, field, &mut self.rng, is_nasty)),
            Some("integer" | "number") => words::number(field, &mut self.rng, is_nasty),
            Some("boolean") => json!(self.rng.bool()),
            Some("array") => {
                let count = self.rng.choice([1, 1, 1, 1, 2, 2, 3, 0]).unwrap_or_default();
                (0..count).map(|_| self.value(&schema["items"], of, field, depth + 1)).collect()
            }
            Some("object") if schema["properties"].is_object() => {
                // Inside a type of Kubernetes, keep this type's name as the context. Elsewhere, use the field's name.
                let is_type =
                    of.starts_with(|c: char| c.is_ascii_uppercase()) && !self.generator.kinds.contains_key(of);
                self.object(schema, if is_type { of } else { field }, depth)
            }
            Some("object") if schema["additionalProperties"].is_object() => {
                let count = self.rng.usize(..3);
                let entry = |maker: &mut Self| {
                    let is_nasty = maker.is_nasty();
                    let key = words::key(field, &mut maker.rng, is_nasty);
                    (key, maker.value(&schema["additionalProperties"], of, field, depth + 1))
                };
                Value::Object((0..count).map(|_| entry(self)).collect())
            }
            _ => json!({}),
        }
    }

    /// Returns the Kubernetes type of the content that a kind expects in an open field, or `None` if the field is not
    /// open.
    fn open(schema: &Value, field: &str) -> Option<&'static str> {
        if schema["x-kubernetes-preserve-unknown-fields"] != true {
            return None;
        }
        Some(match field {
            "podSpec" => "PodSpec",
            "valueFrom" => "EnvVarSource",
            "securityContext" => "SecurityContext",
            "resources" => "ResourceRequirements",
            "volumeMounts" => "VolumeMount",
            _ => return None,
        })
    }

    fn object(&mut self, schema: &Value, of: &str, depth: usize) -> Value {
        let mut object = Map::new();
        let required: Vec<&str> =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let variant = self.variant(schema, of);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let is_kept = if name == "status" || (of == "ObjectMeta") {
                false
            } else if required.contains(&name.as_str()) {
                !self.is_nasty()
            } else if let Some((choices, chosen)) = &variant
                && choices.contains(name)
            {
                chosen == name
            } else {
                depth < DEEP && self.one_in(if of == "PodSpec" { 9 } else { 6 })
            };
            if is_kept {
                let value = self.value(property, of, name, depth + 1);
                object.insert(name.clone(), value);
            }
        }
        if self.is_nasty() && self.one_in(4) {
            object.insert("nodeSelecter".to_owned(), json!({"a": "b"}));
        }
        Value::Object(object)
    }

    /// Handles types that need exactly one of several fields. Returns the names of these fields, and the field that the
    /// generator chose. Returns `None` at random, so that some objects get two of the fields, or none of them.
    fn variant(&mut self, schema: &Value, of: &str) -> Option<(Vec<String>, String)> {
        const COMMON: [&str; 11] = [
            "emptyDir",
            "secret",
            "configMap",
            "persistentVolumeClaim",
            "projected",
            "downwardAPI",
            "ephemeral",
            "image",
            "csi",
            "nfs",
            "hostPath",
        ];
        if self.is_nasty() {
            return None;
        }
        let all: Vec<String> =
            schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let among = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let choices: Vec<String> = match of {
            "Volume" => all.into_iter().filter(|name| name != "name").collect(),
            "EnvVarSource" => among(&["secretKeyRef", "configMapKeyRef", "fieldRef", "resourceFieldRef"]),
            "VolumeProjection" => among(&["secret", "configMap", "downwardAPI", "serviceAccountToken"]),
            "Probe" => among(&["exec", "httpGet", "tcpSocket", "grpc"]),
            "LifecycleHandler" => among(&["exec", "httpGet", "tcpSocket", "sleep"]),
            "EnvFromSource" => among(&["configMapRef", "secretRef"]),
            "DownwardAPIVolumeFile" => among(&["fieldRef", "resourceFieldRef"]),
            _ => return None,
        };
        let chosen = if of == "Volume" && !self.one_in(8) {
            self.rng.choice(COMMON).unwrap_or_default().to_owned()
        } else {
            self.rng.choice(choices.iter()).cloned().unwrap_or_default()
        };
        Some((choices, chosen))
    }
}
