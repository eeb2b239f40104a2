//! Collects the secret values of objects, and masks them wherever they appear. The name of a field does not suffice: a
//! policy can copy a secret value into a field whose name does not show that the value is secret.

use std::collections::BTreeSet;

use k8s_openapi::ByteString;
use serde_json::Value;

use crate::masking::{self, MASK};

/// The minimum length of a secret value, in bytes. Shorter values would mask unrelated text.
const SHORTEST: usize = 5;

/// The secret values of some objects.
#[derive(Debug, Default)]
pub(crate) struct SecretValues(BTreeSet<String>);

impl SecretValues {
    /// Collects the secret values of these objects.
    pub(crate) fn of<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut found = Self::default();
        for object in objects {
            if object["kind"] == "Secret" {
                found.add_secret(object);
            }
            found.walk(object);
        }
        found
    }

    /// Masks the secret values in a text.
    pub(crate) fn text(&self, text: &str) -> String {
        // A value can contain another value, so mask the longest values first.
        let mut values: Vec<&String> = self.0.iter().filter(|value| text.contains(*value)).collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        values.into_iter().fold(text.to_owned(), |text, value| text.replace(value, MASK))
    }

    /// Masks the secret values in the strings of a value.
    pub(crate) fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.text(text).into(),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(fields) => {
                Value::Object(fields.iter().map(|(key, value)| (key.clone(), self.value(value))).collect())
            }
            other => other.clone(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn walk(&mut self, value: &Value) {
        match value {
            Value::String(text) => masking::hidden(text).for_each(|hidden| self.add(hidden)),
            Value::Array(items) => items.iter().for_each(|item| self.walk(item)),
            Value::Object(fields) => {
                let named = fields.get("name").and_then(Value::as_str).is_some_and(masking::is_secret);
                for (key, value) in fields {
                    if (named && key == "value") || is_secret_key(key) {
                        self.add_all(value);
                    }
                    self.walk(value);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Adds all values below a secret field, except references: `apiKey: {value: x}` contains the value, and
    /// `apiKey: {valueFrom: {secretKeyRef: …}}` only names it.
    fn add_all(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Number(number) => self.add(&number.to_string()),
            Value::Array(items) => items.iter().for_each(|item| self.add_all(item)),
            Value::Object(fields) => {
                let values = fields.iter().filter(|(key, _)| !is_reference_key(key));
                values.for_each(|(_, value)| self.add_all(value));
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Adds the data of a Secret, as base64 and decoded.
    fn add_secret(&mut self, secret: &Value) {
        for value in
            ["data", "stringData"].iter().filter_map(|field| secret[*field].as_object()).flat_map(|it| it.values())
        {
            self.add(value.as_str().unwrap_or_default());
            if let Ok(ByteString(bytes)) = serde_json::from_value(value.clone())
                && let Ok(text) = String::from_utf8(bytes)
            {
                self.add(&text);
            }
        }
    }

    fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.len() >= SHORTEST && value != "false" && !value.contains(MASK) {
            self.0.insert(value.to_owned());
            // A text that contains JSON contains the value in its escaped form.
            let escaped = Value::from(value).to_string();
            self.0.extend(escaped.get(1..escaped.len() - 1).filter(|inner| *inner != value).map(str::to_owned));
        }
    }
}

/// Returns whether the value of this key is secret. Keys of references only name a secret.
pub(crate) fn is_secret_key(key: &str) -> bool {
    !is_reference_key(key) && masking::is_secret(key)
}

/// Returns whether a key belongs to a reference to a secret.
pub(crate) fn is_reference_key(key: &str) -> bool {
    matches!(key, "key" | "name" | "valueFrom" | "from") || key.ends_with("Name") || key.ends_with("Ref")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_secret_value_is_masked_wherever_it_appears() {
        let secret = json!({"kind": "Secret", "data": {"a": "c2VjcmV0LW9uZQ=="}, "stringData": {"b": "secret-two"}});
        let config =
            json!({"kind": "ConfigMap", "data": {"api-key": "secret-three", "c.yaml": "password: secret-four\n"}});
        let agent = json!({"spec": {"env": [{"name": "API_TOKEN", "value": "secret-five"}, {"name": "A", "value": "plain"}],
            "ref": {"name": "some-secret", "key": "api-token"}, "secretName": "my-secret", "isSecret": "false"}});
        let nested = json!({"apiKey": {"value": "secret-six", "valueFrom": {"secretKeyRef": {"name": "other-secret"}}},
            "tokens": ["secret-seven", {"of": 8_800_800}]});
        let values = SecretValues::of([&secret, &config, &agent, &nested]);
        for hidden in [
            "secret-one",
            "c2VjcmV0LW9uZQ==",
            "secret-two",
            "secret-three",
            "secret-four",
            "secret-five",
            "secret-six",
            "secret-seven",
            "8800800",
        ] {
            let told = values.value(&json!([format!("url?{hidden}&x")]));
            assert_eq!(told, json!([format!("url?{MASK}&x")]), "{hidden}");
        }
        for shown in ["plain", "api-token", "my-secret", "some-secret", "other-secret", "false"] {
            assert_eq!(values.text(shown), shown);
        }
    }
}
