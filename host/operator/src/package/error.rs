//! One case for each way in which ConfigMaps can fail to be a package.

use kaos_policy::{digest::Digest, gate::LoadError, manifest::PolicyFileError};

/// Why a ConfigMap is not a package, or cannot become one.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("ConfigMap {config_map}: {problem}")]
pub struct PackageError {
    /// Which one, with its namespace.
    pub config_map: String,
    /// What is wrong with it.
    #[source]
    pub problem: Box<Problem>,
}

impl PackageError {
    pub(super) fn new(config_map: impl Into<String>, problem: Problem) -> Self {
        Self { config_map: config_map.into(), problem: Box::new(problem) }
    }

    /// Whether other ConfigMaps can set it right, which may be on their way.
    pub fn is_incomplete(&self) -> bool {
        matches!(*self.problem, Problem::MissingChunk { .. } | Problem::OtherChunks { .. })
    }
}

/// What is wrong with a ConfigMap.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Problem {
    /// Nothing is in it.
    #[error("is empty: write policy.yaml and a component, or delete it")]
    Empty,
    /// A key is missing.
    #[error("`{key}` is missing: {remedy}")]
    MissingKey {
        /// Which.
        key: &'static str,
        /// What to write there.
        remedy: &'static str,
    },
    /// A key has nothing in it.
    #[error("`{key}` is empty: {remedy}")]
    EmptyKey {
        /// Which.
        key: &'static str,
        /// What to write there.
        remedy: &'static str,
    },
    /// Several keys say where the component is.
    #[error("has {}: keep one of them", .0.join(" and "))]
    SeveralComponents(Vec<&'static str>),
    /// Text where there must be bytes, or the other way round.
    #[error("`{key}` must stand under {field}: `kubectl create configmap --from-file` and `policy pack` put it there")]
    WrongField {
        /// Which key.
        key: &'static str,
        /// Where it belongs.
        field: &'static str,
    },
    /// A key that only looks like one of a package.
    #[error("`{key}` is no key of a policy package{}", hint.map(|near| format!(": did you mean `{near}`?")).unwrap_or_default())]
    UnknownKey {
        /// Which.
        key: String,
        /// What was probably meant.
        hint: Option<&'static str>,
    },
    /// The policy file does not parse.
    #[error(transparent)]
    File(#[from] PolicyFileError),
    /// Settings for nobody.
    #[error("policy.yaml has no `name`: without a component it must name the policy whose settings it changes")]
    NoName,
    /// Neither a component nor settings.
    #[error("has neither a component nor `settings` in policy.yaml: add one of them")]
    Nothing,
    /// Something that only a component can be given.
    #[error("policy.yaml has `{0}`, which belongs to a component, but there is none: add policy.wasm.gz, or remove it")]
    WithoutComponent(&'static str),
    /// In chunks, and nobody says what they must come to.
    #[error(
        "policy.yaml has no `sha256`: a component in chunks needs the digest of the whole; `policy pack` writes it"
    )]
    NotPinned,
    /// A line of the list of chunks is no name, or a name for the second time.
    #[error("`policy.chunks`, line {line}: `{name}` {problem}: write the name of one ConfigMap a line, in order")]
    BadChunkName {
        /// Counted from 1.
        line: usize,
        /// What stands there.
        name: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// More chunks than anybody needs.
    #[error("`policy.chunks` lists more than {limit} ConfigMaps: cut larger pieces; `policy pack` does")]
    TooManyChunks {
        /// How many there may be.
        limit: usize,
    },
    /// A chunk is not there.
    #[error("awaits its chunk {name}, {number} of {count}: apply it in the same namespace")]
    MissingChunk {
        /// The chunk.
        name: String,
        /// Which, counted from 1.
        number: usize,
        /// How many there are to be.
        count: usize,
    },
    /// A chunk of another package.
    #[error("is listed as a chunk of {index}, but {}", says(.annotated.as_deref()))]
    ForeignChunk {
        /// Who lists it.
        index: String,
        /// Whose it says that it is.
        annotated: Option<String>,
    },
    /// The chunks are there, but others than those that were meant.
    #[error("its chunks come to {found}, but policy.yaml pins {wanted}: apply the index and all its chunks again")]
    OtherChunks {
        /// Their digest.
        found: Digest,
        /// What they must come to.
        wanted: Digest,
    },
    /// More than a package may be.
    #[error("`{key}` has {bytes} bytes, at most {limit}: {remedy}")]
    TooLarge {
        /// Which key.
        key: &'static str,
        /// How many there are.
        bytes: usize,
        /// How many there may be.
        limit: usize,
        /// What to do.
        remedy: &'static str,
    },
    /// What is to become the name of ConfigMaps is none.
    #[error("is no name for a policy's ConfigMaps: use at most 200 lower-case letters, digits, dots and hyphens")]
    BadName,
    /// The component cannot be packed.
    #[error(transparent)]
    Component(#[from] LoadError),
    /// The policy file cannot be written down.
    #[error("policy.yaml cannot be written: {0}")]
    NotWritten(String),
}

fn says(annotated: Option<&str>) -> String {
    let remedy = "set its annotation kaos.tools/policy-index, or list another";
    annotated.map_or_else(
        || format!("does not say so: {remedy}"),
        |index| format!("says that it is one of {index}: {remedy}"),
    )
}
