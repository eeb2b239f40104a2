//! Generates values from schemas. If a schema accepts any content for a field, the generator uses Kubernetes' own type
//! for the field.

use fastrand::Rng;
use serde_json::{Map, Value, json};

use super::words;

const PREFIX: &str = "#/components/schemas/";
/// Below this depth of the schema, the generator creates only required fields.
const DEEP: usize = 14;

/// The schemas of Kubernetes' own types, by their full names.
pub struct Generator {
    types: Map<String, Value>,
}

/// The random numbers for one object. Equal random numbers give equal values.
#[derive(Debug, Clone)]
pub struct Draw {
    /// The random numbers.
    pub rng: Rng,
    /// The percentage of values that are invalid for their field.
    pub nasty: u8,
}

impl Draw {
    /// Creates a draw. Chooses a random percentage of invalid values, which is often zero.
    pub fn new(mut rng: Rng) -> Self {
        let nasty = rng.choice([0, 0, 2, 5, 12]).unwrap_or_default();
        Self { rng, nasty }
    }

    /// Returns `true` once in `number` calls on average.
    pub fn one_in(&mut self, number: u32) -> bool {
        self.rng.u32(..number) == 0
    }

    fn is_nasty(&mut self) -> bool {
        self.rng.u8(..100) < self.nasty
    }
}

impl Default for Generator {
    fn default() -> Self {
        // A test checks that this text is JSON.
        Self { types: serde_json::from_str(TYPES).unwrap_or_default() }
    }
}

/// Kubernetes' own types.
const TYPES: &str = include_str!("../../../cluster/schemas/definitions.json");

impl Generator {
    /// Generates a value of a schema for a field.
    pub fn value(&self, schema: &Value, field: &str, draw: &mut Draw) -> Value {
        Maker { types: &self.types, draw }.value(schema, "", field, 0)
    }

    /// Generates a value of a Kubernetes type, such as `PodSpec`, for a field.
    pub fn named(&self, name: &str, field: &str, draw: &mut Draw) -> Value {
        Maker { types: &self.types, draw }.named(name, field, 1)
    }
}

/// The state of the generator for one value.
struct Maker<'a> {
    types: &'a Map<String, Value>,
    draw: &'a mut Draw,
}

impl Maker<'_> {
    fn one_in(&mut self, number: u32) -> bool {
        self.draw.one_in(number)
    }

    fn is_nasty(&mut self) -> bool {
        self.draw.is_nasty()
    }

    fn named(&mut self, name: &str, field: &str, depth: usize) -> Value {
        let (types, end) = (self.types, format!(".{name}"));
        let schema = types.iter().find(|(full, _)| full.ends_with(&end)).map_or(&Value::Null, |(_, schema)| schema);
        self.value(schema, name, field, depth)
    }

    /// Generates a value of a schema for a field. The parameter `of` is the name of the type or field around this
    /// field.
    fn value(&mut self, schema: &Value, of: &str, field: &str, depth: usize) -> Value {
        let types = self.types;
        if let Some(name) = schema["$ref"].as_str() {
            let full = name.trim_start_matches(PREFIX);
            let short = full.rsplit('.').next().unwrap_or_default();
            return self.value(types.get(full).unwrap_or(&Value::Null), short, field, depth);
        }
        if let Some(allowed) = schema["enum"].as_array() {
            let is_nasty = self.is_nasty();
            return if is_nasty { json!("Else") } else { self.draw.rng.choice(allowed).cloned().unwrap_or_default() };
        }
        if let Some(open) = Self::open(schema, field) {
            return self.named(open, field, depth);
        }
        let is_nasty = self.is_nasty();
        if schema["oneOf"].is_array() || schema["x-kubernetes-int-or-string"] == true {
            // Only quantities and ports have a schema that accepts both numbers and texts. A port's text is the port's
            // name.
            return match (field, self.draw.rng.bool()) {
                ("port" | "targetPort", true) => {
                    json!(words::text("ContainerPort", "name", &mut self.draw.rng, is_nasty))
                }
                ("port" | "targetPort", false) => words::number(field, &mut self.draw.rng, is_nasty),
                _ => words::amount(&mut self.draw.rng, is_nasty),
            };
        }
        match schema["type"].as_str() {
            Some("string") => json!(words::text(of, field, &mut self.draw.rng, is_nasty)),
            Some("integer" | "number") => {
                let number = words::number(field, &mut self.draw.rng, is_nasty);
                if is_nasty { number } else { within(number, schema) }
            }
            Some("boolean") => json!(self.draw.rng.bool()),
            Some("array") => {
                let count = self.draw.rng.choice([1, 1, 1, 1, 2, 2, 3, 0]).unwrap_or_default();
                (0..count).map(|_| self.value(&schema["items"], of, field, depth + 1)).collect()
            }
            Some("object") if schema["properties"].is_object() => {
                // Inside a type of Kubernetes, pass on this type's name. Elsewhere, pass on the field's name.
                let is_type = of.starts_with(|c: char| c.is_ascii_uppercase());
                self.object(schema, if is_type { of } else { field }, depth)
            }
            Some("object") if schema["additionalProperties"].is_object() => {
                let count = self.draw.rng.usize(..3);
                let entry = |maker: &mut Self| {
                    let is_nasty = maker.is_nasty();
                    let key = words::key(field, &mut maker.draw.rng, is_nasty);
                    (key, maker.value(&schema["additionalProperties"], of, field, depth + 1))
                };
                Value::Object((0..count).map(|_| entry(self)).collect())
            }
            _ => json!({}),
        }
    }

    /// Returns the Kubernetes type that a kind expects in a field whose schema accepts any content. Returns `None` for
    /// all other fields.
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
            "env" => "EnvVar",
            "volumes" => "Volume",
            "tolerations" => "Toleration",
            "affinity" => "Affinity",
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
            self.draw.rng.choice(COMMON).unwrap_or_default().to_owned()
        } else {
            self.draw.rng.choice(choices.iter()).cloned().unwrap_or_default()
        };
        Some((choices, chosen))
    }
}

/// Moves a whole number into the bounds of a schema.
fn within(number: Value, schema: &Value) -> Value {
    let bound = |name: &str| schema[name].as_i64();
    match number.as_i64() {
        Some(whole) => {
            let least = bound("minimum").map_or(whole, |least| whole.max(least));
            json!(bound("maximum").map_or(least, |most| least.min(most)))
        }
        None => number,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(schema: &Value, field: &str, nasty: u8) -> Vec<Value> {
        let generator = Generator::default();
        let value = |seed| generator.value(schema, field, &mut Draw { rng: Rng::with_seed(seed), nasty });
        (0..50).map(value).collect()
    }

    #[test]
    fn equal_random_numbers_give_equal_values() {
        let generator = Generator::default();
        let pod = |seed| generator.named("PodSpec", "podSpec", &mut Draw::new(Rng::with_seed(seed)));
        assert_eq!(pod(7), pod(7));
        assert!((0..20).any(|seed| pod(seed) != pod(7)));
        assert!((0..20).any(|seed| pod(seed)["containers"].is_array()), "the types of Kubernetes are readable");
    }

    #[test]
    fn valid_values_fit_the_schema_and_some_nasty_values_do_not() {
        let schema = json!({"type": "integer", "minimum": 3, "maximum": 4});
        assert!(drawn(&schema, "n", 0).iter().all(|value| [json!(3), json!(4)].contains(value)));
        assert!(drawn(&schema, "n", 100).iter().any(|value| ![json!(3), json!(4)].contains(value)));
        let schema = json!({"type": "string", "enum": ["red", "blue"]});
        assert!(drawn(&schema, "colour", 0).iter().all(|value| value == "red" || value == "blue"));
    }
}
