//! A policy that passed the gate, and the stack of policies that answers for one object.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serde::Serialize;

use crate::{
    code::{Code, World},
    contract::{Claim, Descriptor, ResourceType},
    describe::{self, DescribeError},
    digest::Digest,
    failure::Failure,
    limits::Limits,
    manifest::{Grants, PolicyFile},
    settings::Schema,
};

/// Which policy, to the byte.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PolicyId {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The digest of its component.
    pub digest: Digest,
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.name, self.version, self.digest.short())
    }
}

/// A policy that can be asked.
pub struct Policy {
    id: PolicyId,
    descriptor: Descriptor,
    schema: Schema,
    grants: Grants,
    limits: Limits,
    code: Arc<dyn Code>,
    remarks: OnceLock<Vec<String>>,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Why code is not a policy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AdmitError {
    /// It did not answer.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// What it says of itself cannot be.
    #[error(transparent)]
    Describe(#[from] DescribeError),
}

impl Policy {
    /// Asks code what it is and takes it at its word, if the word is good. The rest of the gate is
    /// [`crate::gate`]; this alone is for code that was compiled into the process.
    pub fn admit(code: Arc<dyn Code>, digest: Digest, file: &PolicyFile, ceiling: Limits) -> Result<Self, AdmitError> {
        let limits = file.limits.unwrap_or(ceiling).at_most(ceiling);
        let descriptor = code.open(&limits)?.describe()?;
        let schema = describe::check(&descriptor, code.world(), file)?;
        let id = PolicyId { name: descriptor.name.clone(), version: descriptor.version.clone(), digest };
        Ok(Self { id, descriptor, schema, grants: file.grants.clone(), limits, code, remarks: OnceLock::new() })
    }

    /// Code of the host's own, which nobody has to check.
    pub(crate) fn trusted(code: Arc<dyn Code>, descriptor: Descriptor, digest: Digest) -> Result<Self, DescribeError> {
        let id = PolicyId { name: descriptor.name.clone(), version: descriptor.version.clone(), digest };
        let schema = Schema::parse(&descriptor.settings_schema)?;
        let (grants, limits, remarks) = (Grants::default(), Limits::default(), OnceLock::new());
        Ok(Self { id, descriptor, schema, grants, limits, code, remarks })
    }

    /// Which policy it is.
    pub fn id(&self) -> &PolicyId {
        &self.id
    }

    /// What it says of itself.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// Which functions it has.
    pub fn world(&self) -> World {
        self.code.world()
    }

    /// The schema of its settings.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// What it was granted.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// What one pass may cost.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What the gate has to tell its author, although it let the policy in.
    pub fn remarks(&self) -> &[String] {
        self.remarks.get().map_or(&[], Vec::as_slice)
    }

    /// Keeps what the gate has to tell, once.
    pub(crate) fn remark(&self, remarks: Vec<String>) {
        let _ = self.remarks.set(remarks);
    }

    /// Its code, to open sandboxes.
    pub fn code(&self) -> &dyn Code {
        &*self.code
    }

    /// Its claim on a kind.
    pub fn claim(&self, primary: &ResourceType) -> Option<&Claim> {
        self.descriptor.claim(primary)
    }
}

/// The policies that answer for an object: one that translates, and overlays on its env mapping, the lowest
/// first. The set is fixed for a pass, whatever is swapped meanwhile.
#[derive(Debug, Clone)]
pub struct Stack {
    base: Arc<Policy>,
    overlays: Vec<Arc<Policy>>,
}

/// Why policies do not make a stack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StackError {
    /// An overlay cannot translate.
    #[error("{0} is an environment overlay: it needs a policy below it")]
    BaseIsOverlay(PolicyId),
    /// A policy would hide the one below.
    #[error("{0} is a whole policy: only environment overlays can lie over another")]
    OverlayIsPolicy(PolicyId),
    /// Their needs and settings could not be told apart.
    #[error("two layers have the name {0}: give the overlay a name of its own")]
    SameName(String),
}

impl Stack {
    /// A policy without overlays.
    pub fn single(base: Arc<Policy>) -> Result<Self, StackError> {
        Self::new(base, Vec::new())
    }

    /// A policy and overlays over it, the lowest first.
    pub fn new(base: Arc<Policy>, overlays: Vec<Arc<Policy>>) -> Result<Self, StackError> {
        if base.world() != World::Policy {
            return Err(StackError::BaseIsOverlay(base.id.clone()));
        }
        for (i, overlay) in overlays.iter().enumerate() {
            if overlay.world() != World::EnvironmentOverlay {
                return Err(StackError::OverlayIsPolicy(overlay.id.clone()));
            }
            let mut below = std::iter::once(&base).chain(&overlays[..i]);
            if below.any(|layer| layer.id.name == overlay.id.name) {
                return Err(StackError::SameName(overlay.id.name.clone()));
            }
        }
        Ok(Self { base, overlays })
    }

    /// The policy that translates.
    pub fn base(&self) -> &Arc<Policy> {
        &self.base
    }

    /// What lies over it, the lowest first.
    pub fn overlays(&self) -> &[Arc<Policy>] {
        &self.overlays
    }
}
