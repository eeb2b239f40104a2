//! Finds the code of recorded policies: in the case itself, among the default policies of this program, or in files
//! that the user names.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use kaos_policy::{
    digest::Digest,
    gate::{self, LoadError},
    manifest::PolicyFile,
    policy::{Policy, PolicyId},
    render::{LayerInputs, RenderError},
    settings::SettingsErrors,
};
use serde_json::json;

use crate::{
    locking::lock,
    policies::{Candidate, ComponentOrigin, Loader, PolicyError},
    record::PolicySource,
};

/// A reason why a case cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The case does not have all inputs.
    #[error("the case cannot be replayed: {0}")]
    Incomplete(String),
    /// This program does not have the code of a policy.
    #[error(
        "the case needs policy {policy} from {from}: name its file with --component, or record the case with \
         --with-policy"
    )]
    NoCode {
        /// The policy.
        policy: Box<PolicyId>,
        /// The origin of the code, as the case names it.
        from: String,
    },
    /// The gate refuses a recorded policy.
    #[error("policy {policy} does not pass the checks of this program")]
    Refused {
        /// The policy.
        policy: Box<PolicyId>,
        /// The error.
        source: Arc<LoadError>,
    },
    /// The case contains the code of another policy than the recorded one.
    #[error("the code in the case is {found}, but the case needs {policy}")]
    OtherCode {
        /// The recorded policy.
        policy: Box<PolicyId>,
        /// The policy whose code the case contains.
        found: Box<PolicyId>,
    },
    /// The candidate does not accept the recorded settings.
    #[error("the policy does not accept the settings of the case")]
    Settings(#[from] SettingsErrors),
    /// The recorded policies do not claim the object.
    #[error(transparent)]
    Render(#[from] RenderError),
}

type LoadResult = Result<Arc<Policy>, Arc<LoadError>>;

/// The code of policies that this program has, and the policies that it has loaded from this code.
pub struct KnownCode<'a> {
    loader: &'a Loader,
    candidates: BTreeMap<Digest, Candidate>,
    loaded: Mutex<BTreeMap<Digest, LoadResult>>,
}

impl<'a> KnownCode<'a> {
    /// Starts with the default policies and with the policies in these files.
    pub fn new(loader: &'a Loader, files: &[PathBuf]) -> Result<Self, PolicyError> {
        let mut candidates = BTreeMap::new();
        for candidate in Candidate::embedded()? {
            candidates.insert(Digest::of(&candidate.inner.bytes), candidate);
        }
        for file in files {
            let candidate = Candidate::read(file)?;
            let digest = match loader.check(&candidate).result {
                Ok(policy) => policy.id().digest,
                Err(source) => {
                    return Err(PolicyError::Rejected { origin: candidate.origin, source: Box::new(source) });
                }
            };
            candidates.insert(digest, candidate);
        }
        Ok(Self { loader, candidates, loaded: Mutex::default() })
    }

    /// Returns a recorded policy with its recorded grants and limits. Compiles its code at most once.
    pub fn policy(&self, layer: &LayerInputs, source: Option<&PolicySource>) -> Result<Arc<Policy>, ReplayError> {
        let LayerInputs { policy, grants, limits, .. } = layer;
        let key = Digest::of_json(&json!([policy, grants, limits]));
        let mut loaded = lock(&self.loaded);
        if let Some(known) = loaded.get(&key) {
            return of(policy, known.clone());
        }
        let file = |file: &PolicyFile| PolicyFile { grants: grants.clone(), limits: Some(*limits), ..file.clone() };
        let packed = source.and_then(|source| Some((source.form, source.code.as_ref()?)));
        let candidate = match (packed, self.candidates.get(&policy.digest)) {
            (Some((form, code)), _) => {
                let file = file(&PolicyFile::default());
                let inner = gate::Candidate { form, bytes: code.0.clone(), file, settings_from: None };
                Candidate { origin: ComponentOrigin::File(PathBuf::from("the case")), inner }
            }
            (None, Some(known)) => {
                let mut candidate = known.clone();
                candidate.inner.file = file(&candidate.inner.file);
                // Remove the settings from the policy file, because the settings come from the case.
                candidate.inner.file.settings = serde_json::Value::Null;
                candidate
            }
            (None, None) => {
                let from = source.map_or_else(|| "an unknown place".to_owned(), |source| source.from.clone());
                return Err(ReplayError::NoCode { policy: Box::new(policy.clone()), from });
            }
        };
        let result = self.loader.check(&candidate).result.map_err(Arc::new);
        loaded.insert(key, result.clone());
        of(policy, result)
    }
}

fn of(policy: &PolicyId, result: LoadResult) -> Result<Arc<Policy>, ReplayError> {
    let found = result.map_err(|source| ReplayError::Refused { policy: Box::new(policy.clone()), source })?;
    if found.id() == policy {
        return Ok(found);
    }
    Err(ReplayError::OtherCode { policy: Box::new(policy.clone()), found: Box::new(found.id().clone()) })
}
