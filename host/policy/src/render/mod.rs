//! From an object to what Kubernetes should hold: the one function that the operator, the command line and
//! the gate run.

mod annotations;
mod document;
mod found;
mod load;
mod object;
mod pass;
mod report;
mod secret;
mod size;

use std::{collections::BTreeSet, sync::Arc};

use serde::Serialize;
use serde_json::{Value, json};

pub use document::{Document, Message, Refused};
pub(crate) use found::Asked;
pub use load::TOO_LARGE;
pub use object::{ObjectError, ObjectRef, stripped};
pub use report::{Assessed, HOST_FIELDS};

use crate::{
    contract::{Blocker, Cluster, EnvVar, Found, Json, Need, Note, Refusal, ResourceType, Subject},
    failure::Failure,
    guard::UserPrivileges,
    kubernetes::Checks,
    lookup::Lookup,
    manifest::Privilege,
    memo::Memo,
    policy::{Policy, PolicyId, Stack},
    settings::{Effective, Layer, SettingsErrors},
};

/// A stack of policies with their settings and the cluster's facts: everything but the object.
pub struct Renderer {
    base: Bound,
    overlays: Vec<Bound>,
    cluster: Cluster,
    user_privileges: UserPrivileges,
    grantable: Option<BTreeSet<Privilege>>,
    checks: Checks,
    memo: Option<Arc<Memo>>,
}

/// A policy and its settings.
#[derive(Clone)]
struct Bound {
    policy: Arc<Policy>,
    settings: Arc<Effective>,
}

/// What came of one object.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// The object.
    pub object: ObjectRef,
    /// The policy that translated.
    pub policy: PolicyId,
    /// The overlays over it, the lowest first.
    pub overlays: Vec<PolicyId>,
    /// Fuel of all layers together; the same for the same input, on every machine.
    pub fuel: u64,
    /// Every object that was asked for and may be shown, with its namespace filled in. Ids are prefixed with the name of the
    /// layer that asked. To be watched, whatever the verdict.
    pub needs: Vec<Need>,
    /// The settings of each layer, the lowest first.
    pub settings: Vec<Arc<Effective>>,
    /// What was decided.
    pub verdict: Verdict,
    subject: Arc<Subject>,
    recalled: bool,
}

/// What was decided.
#[derive(Debug, Clone)]
pub enum Verdict {
    /// There is a plan, and the guard let it pass.
    Planned(Arc<Planned>),
    /// A policy says that there can be no plan.
    Refused(Refusal),
    /// A policy did not answer as it must. What exists stays as it is.
    Failed(PolicyFailure),
}

/// What Kubernetes should hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Planned {
    /// The manifests, stamped: exactly what is to be applied, in the policy's order.
    pub manifests: Vec<Value>,
    /// What binds until the plan was applied once in full.
    pub gates: Vec<Blocker>,
    /// The mapping that the manifests carry.
    pub env: Vec<EnvVar>,
    /// What the user should know.
    pub notes: Vec<Note>,
    /// As in the contract.
    pub extra: Json,
}

/// Which policy failed, and how.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("policy {policy}: {failure}{}", .largest.as_ref().map(|largest| format!(": {largest}")).unwrap_or_default())]
pub struct PolicyFailure {
    /// The layer that failed.
    pub policy: PolicyId,
    /// How.
    pub failure: Box<Failure>,
    /// Where a pass has too little room: the largest part of what the policy reads, where that is large.
    pub largest: Option<String>,
}

impl PolicyFailure {
    /// A failure over an object and what was found beside it.
    fn new(policy: &PolicyId, failure: Failure, object: &str, found: &[Found]) -> Self {
        let largest = if failure.is_of_size() { size::largest(object, found) } else { None };
        Self { policy: policy.clone(), failure: Box::new(failure), largest }
    }
}

/// Why an object cannot be given to a renderer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// It is not an object of Kubernetes.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// A layer does not answer for the kind.
    #[error("policy {policy} does not claim {of}")]
    NotClaimed {
        /// The layer's name.
        policy: String,
        /// The object's type.
        of: ResourceType,
    },
}

impl Renderer {
    /// Binds a stack to settings and facts. The settings of each layer are resolved and checked here, once
    /// for all objects.
    pub fn new(stack: &Stack, settings: &[Layer], cluster: Cluster) -> Result<Self, SettingsErrors> {
        let bind = |policy: &Arc<Policy>| {
            let settings = Arc::new(policy.schema().resolve(&policy.id().name, settings)?);
            Ok(Bound { policy: Arc::clone(policy), settings })
        };
        let base = bind(stack.base())?;
        let overlays = stack.overlays().iter().map(bind).collect::<Result<_, SettingsErrors>>()?;
        let user_privileges = UserPrivileges::default();
        let checks = Checks::default();
        Ok(Self { base, overlays, cluster, user_privileges, grantable: None, checks, memo: None })
    }

    /// Remembers answers in, and recalls them from, this memo.
    #[must_use]
    pub fn with_memo(mut self, memo: Arc<Memo>) -> Self {
        self.memo = Some(memo);
        self
    }

    /// Whether a user's own spec may raise privilege.
    #[must_use]
    pub fn with_user_privileges(mut self, rule: UserPrivileges) -> Self {
        self.user_privileges = rule;
        self
    }

    /// The privileges that settings may raise which somebody installs, or writes into the operator's own ConfigMap; all,
    /// where none are listed. Those of the process's own flags are not held to it.
    #[must_use]
    pub fn with_grantable_privileges(mut self, listed: Option<BTreeSet<Privilege>>) -> Self {
        self.grantable = listed;
        self
    }

    /// What is found out of manifests before an API server refuses them; nothing, unless it is said.
    #[must_use]
    pub fn with_checks(mut self, checks: Checks) -> Self {
        self.checks = checks;
        self
    }

    /// Each layer's policy and settings, the lowest first.
    pub fn layers(&self) -> impl Iterator<Item = (&Arc<Policy>, &Arc<Effective>)> {
        std::iter::once(&self.base).chain(&self.overlays).map(|bound| (&bound.policy, &bound.settings))
    }

    /// What decides answers beside the policies and their settings.
    pub(crate) fn context(&self) -> Value {
        json!([self.cluster, self.user_privileges == UserPrivileges::Allowed, self.grantable, self.checks])
    }

    /// What Kubernetes should hold for an object. The object may carry a status; policies do not see it.
    pub fn render(&self, object: &Value, lookup: &dyn Lookup) -> Result<Rendered, RenderError> {
        pass::run(self, object, lookup)
    }
}

impl Rendered {
    /// The plan, if there is one.
    pub fn planned(&self) -> Option<&Planned> {
        match &self.verdict {
            Verdict::Planned(planned) => Some(planned),
            Verdict::Refused(_) | Verdict::Failed(_) => None,
        }
    }

    /// The manifests; none without a plan.
    pub fn manifests(&self) -> &[Value] {
        self.planned().map_or(&[], |planned| &planned.manifests)
    }

    /// The gates; none without a plan.
    pub fn gates(&self) -> &[Blocker] {
        self.planned().map_or(&[], |planned| &planned.gates)
    }

    /// The mapping; empty without a plan.
    pub fn env(&self) -> &[EnvVar] {
        self.planned().map_or(&[], |planned| &planned.env)
    }

    /// The notes; none without a plan.
    pub fn notes(&self) -> &[Note] {
        self.planned().map_or(&[], |planned| &planned.notes)
    }

    /// The refusal, if there is one.
    pub fn refused(&self) -> Option<&Refusal> {
        match &self.verdict {
            Verdict::Refused(refusal) => Some(refusal),
            Verdict::Planned(_) | Verdict::Failed(_) => None,
        }
    }

    /// The failure, if there is one.
    pub fn failed(&self) -> Option<&PolicyFailure> {
        match &self.verdict {
            Verdict::Failed(failure) => Some(failure),
            Verdict::Planned(_) | Verdict::Refused(_) => None,
        }
    }

    /// What the translating policy was handed.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// Whether the answer came out of the memo.
    pub fn recalled(&self) -> bool {
        self.recalled
    }
}
