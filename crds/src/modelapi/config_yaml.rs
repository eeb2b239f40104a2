//! The field `configYaml` with a complete proxy configuration. The value of the field is an object that names the
//! source of the configuration text. In older manifests, the value is the text itself.

use alloc::{borrow::ToOwned, string::String};

use kaos_decode::{Decode, Fields};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::KeySelector;

/// The accepted forms, for error messages.
const EXPECTED: &str = "an object with fromString or fromSecretKeyRef, or a string";

/// A whole proxy configuration.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ConfigYaml {
    /// The older form: the text itself. The successor is `fromString`.
    Text(String),
    /// The source of the text.
    From(ConfigSource),
}

/// The source of a configuration text.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ConfigSource {
    /// The text, used unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_string: Option<String>,
    /// A key of a Secret in the same namespace that holds the text. Used if the field fromString is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_secret_key_ref: Option<KeySelector>,
    /// The first unknown field. The API server keeps unknown fields of this object, because this part of the schema is
    /// open.
    #[serde(skip)]
    pub unknown: Option<String>,
}

impl ConfigSource {
    /// The known fields.
    pub const FIELDS: [&str; 2] = ["fromString", "fromSecretKeyRef"];
}

// A structural schema cannot express "object or string". So the schema leaves the value open and lists the fields only
// as an explanation.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for ConfigYaml {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "ConfigYaml".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = ConfigSource::json_schema(generator);
        schema.remove("type");
        schema.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
        schema
    }
}

impl Decode for ConfigYaml {
    fn decode(value: &Value) -> Result<Self, kaos_decode::Error> {
        match value {
            Value::String(text) => Ok(Self::Text(text.clone())),
            Value::Object(_) => ConfigSource::decode(value).map(Self::From),
            _ => Err(kaos_decode::Error::mismatch(EXPECTED, value)),
        }
    }
}

impl Decode for ConfigSource {
    fn decode(value: &Value) -> Result<Self, kaos_decode::Error> {
        let fields = Fields::of(value)?;
        let [from_string, from_secret_key_ref] = Self::FIELDS;
        Ok(Self {
            from_string: fields.get(from_string)?,
            from_secret_key_ref: fields.get(from_secret_key_ref)?,
            unknown: fields.others(&Self::FIELDS).next().map(ToOwned::to_owned),
        })
    }
}

// Policies decode with `Decode`. This implementation is for callers that use only serde.
impl<'de> Deserialize<'de> for ConfigYaml {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Self::decode(&Value::deserialize(from)?).map_err(D::Error::custom)
    }
}
