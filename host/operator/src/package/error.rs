//! The errors of ConfigMaps that are not a valid package.

use kaos_policy::{digest::Digest, gate::LoadError, manifest::PolicyFileError};

/// The reason why ConfigMaps are not a valid package, or why a policy cannot be packed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("ConfigMap {config_map}: {problem}")]
pub struct PackageError {
    /// The namespace and name of the ConfigMap.
    pub config_map: String,
    /// The problem.
    #[source]
    pub problem: Box<Problem>,
}

impl PackageError {
    pub(super) fn new(config_map: impl Into<String>, problem: Problem) -> Self {
        Self { config_map: config_map.into(), problem: Box::new(problem) }
    }

    /// Returns whether chunks are missing, or do not match the pinned digest. The user may still apply the right
    /// chunks.
    pub fn is_incomplete(&self) -> bool {
        matches!(*self.problem, Problem::MissingChunk { .. } | Problem::OtherChunks { .. })
    }
}

/// The problem of a ConfigMap.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// The ConfigMap is empty.
    #[error("is empty: write policy.yaml and a component, or delete the ConfigMap")]
    Empty,
    /// A key is missing.
    #[error("`{key}` is missing: {remedy}")]
    MissingKey {
        /// The key.
        key: &'static str,
        /// The required content.
        remedy: &'static str,
    },
    /// A key is empty.
    #[error("`{key}` is empty: {remedy}")]
    EmptyKey {
        /// The key.
        key: &'static str,
        /// The required content.
        remedy: &'static str,
    },
    /// Several keys contain the policy's code, or list its chunks.
    #[error("has {}: keep one of these keys", .0.join(" and "))]
    SeveralComponents(Vec<&'static str>),
    /// A key that belongs under `data` is under `binaryData`, or the reverse.
    #[error("`{key}` must be under {field}: `kubectl create configmap --from-file` and `policy pack` put it there")]
    WrongField {
        /// The key.
        key: &'static str,
        /// The right field.
        field: &'static str,
    },
    /// A script is not UTF-8. `kubectl create configmap` puts such files under `binaryData`.
    #[error("`{key}` is under binaryData, where kubectl puts files that are not text: save the script as UTF-8")]
    NotText {
        /// The key.
        key: &'static str,
    },
    /// A key starts with `policy`, but is not a key of a package.
    #[error("`{key}` is not a key of a policy \
             package{}", hint.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default())]
    UnknownKey {
        /// The key.
        key: String,
        /// The key that the user probably meant.
        hint: Option<&'static str>,
    },
    /// The policy file is invalid.
    #[error(transparent)]
    File(#[from] PolicyFileError),
    /// A package without code does not name the policy that its settings are for.
    #[error("policy.yaml has no `name`: a package without a component must name the policy of its settings")]
    NoName,
    /// The package has neither a component nor settings.
    #[error("has neither a component nor `settings` in policy.yaml: add one of them")]
    Nothing,
    /// The policy file has a field that requires a component, and the package has no component.
    #[error(
        "policy.yaml has `{0}`, which needs a component, but the package has none: add policy.wasm.gz or \
         policy.js, or remove the field"
    )]
    WithoutComponent(&'static str),
    /// The component is in chunks, and the policy file lacks the field `sha256` with the digest of the whole component.
    #[error(
        "policy.yaml has no `sha256`: a component in chunks needs the digest of the whole component; `policy pack` \
         writes the digest"
    )]
    NotPinned,
    /// A line in the list of chunks is not a valid name, or repeats a name.
    #[error("`policy.chunks`, line {line}: `{name}` {problem}: write one ConfigMap name in each line, in order")]
    BadChunkName {
        /// The number of the line, from 1.
        line: usize,
        /// The text of the line.
        name: String,
        /// The problem.
        problem: &'static str,
    },
    /// The index lists too many chunks.
    #[error("`policy.chunks` lists more than {limit} ConfigMaps: use fewer and larger chunks, as `policy pack` does")]
    TooManyChunks {
        /// The maximum.
        limit: usize,
    },
    /// A chunk does not exist.
    #[error("waits for its chunk {name}, {number} of {count}: apply this chunk in the same namespace")]
    MissingChunk {
        /// The name of the chunk.
        name: String,
        /// The number of the chunk, from 1.
        number: usize,
        /// The number of all chunks.
        count: usize,
    },
    /// A chunk belongs to another package.
    #[error("is listed as a chunk of {index}, but {}", says(.annotated.as_deref()))]
    ForeignChunk {
        /// The index that lists the chunk.
        index: String,
        /// The index in the chunk's annotation.
        annotated: Option<String>,
    },
    /// All chunks exist, but together they do not have the digest that the policy file pins.
    #[error(
        "its chunks have the digest {found}, but policy.yaml pins {wanted}: apply the index and all its chunks again"
    )]
    OtherChunks {
        /// The digest of the chunks.
        found: Digest,
        /// The pinned digest.
        wanted: Digest,
    },
    /// A value exceeds its maximum size.
    #[error("`{key}` has {bytes} bytes, and the limit is {limit}: {remedy}")]
    TooLarge {
        /// The key.
        key: &'static str,
        /// The size.
        bytes: usize,
        /// The maximum.
        limit: usize,
        /// The remedy.
        remedy: &'static str,
    },
    /// The name is not valid for ConfigMaps.
    #[error("is not a name for a policy's ConfigMaps: use at most 200 lower-case letters, digits, dots and hyphens")]
    BadName,
    /// The component cannot be packed.
    #[error(transparent)]
    Component(#[from] LoadError),
    /// The policy file cannot be written as text.
    #[error("policy.yaml cannot be written: {0}")]
    NotWritten(String),
}

fn says(annotated: Option<&str>) -> String {
    let remedy = "set the annotation, or list another ConfigMap";
    annotated.map_or_else(
        || format!("has no annotation kaos.tools/policy-index: {remedy}"),
        |index| format!("its annotation kaos.tools/policy-index names {index}: {remedy}"),
    )
}
