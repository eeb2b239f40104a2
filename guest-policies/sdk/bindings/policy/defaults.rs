//! Defaults of the records that a policy returns. An author sets only the fields that matter: `Claim { primary, emits,
//! ..Claim::default() }`.

use crate::kaos::policy::types::{Claim, Descriptor, Plan, Report, ResourceType, Sample};
use alloc::{borrow::ToOwned, string::String, vec::Vec};

/// Returns the text of an empty JSON object, for `extra` and other JSON fields.
fn empty() -> String {
    "{}".to_owned()
}

impl Default for ResourceType {
    fn default() -> Self {
        Self { api_version: String::new(), kind: String::new() }
    }
}

impl Default for Sample {
    fn default() -> Self {
        Self { name: String::new(), object: empty(), beside: Vec::new() }
    }
}

impl Default for Claim {
    fn default() -> Self {
        Self {
            primary: ResourceType::default(),
            emits: Vec::new(),
            reads: Vec::new(),
            wishes: Vec::new(),
            finalizer: None,
            samples: Vec::new(),
            extra: empty(),
        }
    }
}

/// The default schema allows no settings.
impl Default for Descriptor {
    fn default() -> Self {
        Self {
            name: String::new(),
            version: String::new(),
            claims: Vec::new(),
            settings_schema: r#"{"additionalProperties":false,"type":"object"}"#.to_owned(),
            extra: empty(),
        }
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            manifests: Vec::new(),
            origins: Vec::new(),
            gates: Vec::new(),
            env: Vec::new(),
            notes: Vec::new(),
            finalizer: None,
            kept: Vec::new(),
            gates_hold: false,
            extra: empty(),
        }
    }
}

impl Default for Report {
    fn default() -> Self {
        Self {
            ready: false,
            phase: String::new(),
            message: String::new(),
            fields: empty(),
            conditions: Vec::new(),
            extra: empty(),
        }
    }
}
