//! A policy that passed the gate, and the stack of policies that answers for one object.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use serde::{Deserialize, Serialize};

use crate::{
    code::{Code, World},
    contract::{Claim, Descriptor, ResourceType},
    describe::{self, DescribeError},
    digest::Digest,
    failure::Failure,
    limits::Limits,
    manifest::{Grants, PolicyFile},
    settings::{Effective, Layer, Resolved, Schema, SettingsErrors},
};

/// The identity of a policy, including the digest of its bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PolicyId {
    /// The policy's name.
    pub name: String,
    /// The policy's version.
    pub version: String,
    /// The digest of the policy's component.
    pub digest: Digest,
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({})", self.name, self.version, self.digest.short())
    }
}

/// A policy that passed all checks and can answer for objects.
pub struct Policy {
    id: PolicyId,
    descriptor: Descriptor,
    schema: Schema,
    resolved: Resolved,
    grants: Grants,
    limits: Limits,
    code: Arc<dyn Code>,
    remarks: OnceLock<Vec<String>>,
    answers: OnceLock<Digest>,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A reason why code cannot become a policy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AdmitError {
    /// The code failed when the host asked for its description.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The description is invalid.
    #[error(transparent)]
    Describe(#[from] DescribeError),
}

impl Policy {
    /// Asks code for its description, and creates a policy if the description is valid. [`crate::gate`] runs the other
    /// checks. Without the gate, the caller must pass only code that is compiled into this process.
    pub fn admit(code: Arc<dyn Code>, digest: Digest, file: &PolicyFile, ceiling: Limits) -> Result<Self, AdmitError> {
        let limits = file.limits.unwrap_or(ceiling).at_most(ceiling);
        let descriptor = code.open(&limits)?.describe()?;
        let schema = describe::check(&descriptor, code.world(), file)?;
        let id = PolicyId { name: descriptor.name.clone(), version: descriptor.version.clone(), digest };
        let (resolved, grants) = (Resolved::default(), file.grants.clone());
        let (remarks, answers) = (OnceLock::new(), OnceLock::new());
        Ok(Self { id, descriptor, schema, resolved, grants, limits, code, remarks, answers })
    }

    /// Creates a policy from code of this program, without checks.
    pub(crate) fn trusted(code: Arc<dyn Code>, descriptor: Descriptor, digest: Digest) -> Result<Self, DescribeError> {
        let id = PolicyId { name: descriptor.name.clone(), version: descriptor.version.clone(), digest };
        let schema = Schema::parse(&descriptor.settings_schema)?;
        let (resolved, grants, limits) = (Resolved::default(), Grants::default(), Limits::default());
        let (remarks, answers) = (OnceLock::new(), OnceLock::new());
        Ok(Self { id, descriptor, schema, resolved, grants, limits, code, remarks, answers })
    }

    /// The policy's identity.
    pub fn id(&self) -> &PolicyId {
        &self.id
    }

    /// The policy's description.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The policy's world.
    pub fn world(&self) -> World {
        self.code.world()
    }

    /// The policy's settings schema.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Returns the policy's effective settings for these layers. Caches the results of the last calls.
    pub fn settings(&self, layers: &[Layer]) -> Result<Arc<Effective>, SettingsErrors> {
        self.resolved.of(&self.schema, &self.id.name, layers)
    }

    /// The policy's grants.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// The limits of one pass of this policy.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The gate's remarks for the policy's author. A policy can have remarks although it passed the gate.
    pub fn remarks(&self) -> &[String] {
        self.remarks.get().map_or(&[], Vec::as_slice)
    }

    /// Sets the gate's remarks. Only the first call has an effect.
    pub(crate) fn remark(&self, remarks: Vec<String>) {
        let _ = self.remarks.set(remarks);
    }

    /// The digest of the policy's description, its `policy.yaml` and its answers for its samples; `None` if the gate
    /// did not check the policy. Two builds of the same source have the same digest.
    pub fn answers(&self) -> Option<Digest> {
        self.answers.get().copied()
    }

    /// Sets the digest of the policy's answers. Only the first call has an effect.
    pub(crate) fn answered(&self, answers: Digest) {
        let _ = self.answers.set(answers);
    }

    /// The policy's code, which opens sandboxes.
    pub fn code(&self) -> &dyn Code {
        &*self.code
    }

    /// The digest of the script engine that runs the policy; `None` if the policy is a component.
    pub fn script_engine(&self) -> Option<Digest> {
        self.code.script_engine()
    }

    /// Returns the policy's claim on a kind; `None` if the policy does not claim the kind.
    pub fn claim(&self, primary: &ResourceType) -> Option<&Claim> {
        self.descriptor.claim(primary)
    }
}

/// The policies that answer for an object: one policy that is not an overlay, and the overlays that change its answer,
/// the lowest overlay first. A pass uses the same stack until its end, even if a swap happens during the pass.
#[derive(Debug, Clone)]
pub struct Stack {
    base: Arc<Policy>,
    overlays: Vec<Arc<Policy>>,
}

/// A reason why policies cannot form a stack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StackError {
    /// The base is an overlay, which cannot compute a plan without a policy below it.
    #[error("{0} is an overlay: it needs a policy to overlay")]
    BaseIsOverlay(PolicyId),
    /// One of the overlays is an ordinary policy, which would ignore the answer of the policy below.
    #[error("{0} is a whole policy: only an overlay can be added to another policy")]
    OverlayIsPolicy(PolicyId),
    /// Two layers have the same name, so the host could not distinguish their needs and settings.
    #[error("two layers have the name {0}: choose another name for the overlay")]
    SameName(String),
}

impl Stack {
    /// Creates a stack of one policy without overlays.
    pub fn single(base: Arc<Policy>) -> Result<Self, StackError> {
        Self::new(base, Vec::new())
    }

    /// Creates a stack of a policy and overlays, the lowest overlay first.
    pub fn new(base: Arc<Policy>, overlays: Vec<Arc<Policy>>) -> Result<Self, StackError> {
        if base.world() != World::Policy {
            return Err(StackError::BaseIsOverlay(base.id.clone()));
        }
        for (i, overlay) in overlays.iter().enumerate() {
            if overlay.world() != World::Overlay {
                return Err(StackError::OverlayIsPolicy(overlay.id.clone()));
            }
            let mut below = std::iter::once(&base).chain(&overlays[..i]);
            if below.any(|layer| layer.id.name == overlay.id.name) {
                return Err(StackError::SameName(overlay.id.name.clone()));
            }
        }
        Ok(Self { base, overlays })
    }

    /// The policy at the bottom of the stack, which is not an overlay.
    pub fn base(&self) -> &Arc<Policy> {
        &self.base
    }

    /// The overlays, the lowest first.
    pub fn overlays(&self) -> &[Arc<Policy>] {
        &self.overlays
    }
}
