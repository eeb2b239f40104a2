//! Reads the parts of a CRD that offline admission needs.

use jsonschema::Validator;
use kaos_policy::objections::objections;
use serde_json::Value;

use super::{Finding, finding, json_schema, structural};

/// The reason why the program cannot use a CRD.
#[derive(Debug, thiserror::Error)]
pub enum CrdError {
    /// The document is not a CRD.
    #[error("not a CustomResourceDefinition of apiextensions.k8s.io/v1")]
    OtherKind,
    /// A required field is missing.
    #[error("{0}: missing")]
    Missing(&'static str),
    /// The program cannot compile the schema into a validator.
    #[error("the schema of version {version} cannot be used: {message}")]
    Schema {
        /// The version.
        version: String,
        /// The problem.
        message: String,
    },
}

/// A kind and the schemas of its versions.
#[derive(Debug)]
pub struct Crd {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) is_cluster_scoped: bool,
    versions: Vec<Version>,
}

/// One served version.
#[derive(Debug)]
pub(super) struct Version {
    name: String,
    pub(super) schema: Value,
    validator: Validator,
}

impl Crd {
    /// Reads a CRD.
    pub fn new(crd: &Value) -> Result<Self, CrdError> {
        if crd["apiVersion"] != "apiextensions.k8s.io/v1" || crd["kind"] != "CustomResourceDefinition" {
            return Err(CrdError::OtherKind);
        }
        let spec = &crd["spec"];
        let text = |value: &Value, path| value.as_str().map(str::to_owned).ok_or(CrdError::Missing(path));
        let mut versions = Vec::new();
        for version in spec["versions"].as_array().ok_or(CrdError::Missing("spec.versions"))? {
            if version["served"] == true {
                versions.push(Version::new(version)?);
            }
        }
        Ok(Self {
            group: text(&spec["group"], "spec.group")?,
            kind: text(&spec["names"]["kind"], "spec.names.kind")?,
            is_cluster_scoped: spec["scope"] == "Cluster",
            versions,
        })
    }

    pub(super) fn version(&self, api_version: &str) -> Option<&Version> {
        let name = api_version.split_once('/')?.1;
        self.versions.iter().find(|version| version.name == name)
    }

    /// Returns the served `apiVersion`s.
    pub(super) fn served(&self) -> Vec<String> {
        self.versions.iter().map(|version| format!("{}/{}", self.group, version.name)).collect()
    }
}

impl Version {
    fn new(version: &Value) -> Result<Self, CrdError> {
        let name = version["name"].as_str().ok_or(CrdError::Missing("spec.versions[].name"))?.to_owned();
        let schema = version["schema"]["openAPIV3Schema"].clone();
        if !schema.is_object() {
            return Err(CrdError::Missing("spec.versions[].schema.openAPIV3Schema"));
        }
        match jsonschema::validator_for(&json_schema::of_kind(&schema)) {
            Ok(validator) => Ok(Self { name, schema, validator }),
            Err(error) => Err(CrdError::Schema { version: name, message: error.to_string() }),
        }
    }

    /// Returns the fields of an object that violate the schema, sorted by path.
    pub(super) fn violations(&self, object: &Value) -> Vec<Finding> {
        let errors: Vec<_> = self.validator.iter_errors(object).collect();
        let mut findings: Vec<_> =
            errors.iter().flat_map(objections).map(|objection| finding(&objection, "the kind's schema")).collect();
        findings.extend(structural::repeated_keys(&self.schema, object));
        findings.sort_by(|a, b| a.path.cmp(&b.path));
        findings
    }
}
