//! An AccessGrant: its fields, and whether the decision point's data contains the AccessGrant.

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_crds::access::{AccessGrantSpec, DataSource, PROJECTION_NAME, SubjectKind};
use kaos_crds::{API_VERSION, Phase};
use kaos_policy_sdk::need::{named, optional, reference_in};
use kaos_policy_sdk::types::{Condition, EnvVar, Need, Plan, Reference, Refusal, Subject};
use kaos_policy_sdk::{Decode, Lookup, Object, SubjectExt, Violations, blocker, condition, note, plan, refusal};

use crate::ids::PROJECTION;
use crate::selector;
use crate::settings::Settings;

/// The id of the need for the AuthorizationPolicy.
const NEED: &str = "projection";
/// The type of the condition that reports whether the AccessGrant is in force.
const ENFORCED: &str = "Enforced";

/// Whether the data of the decision point contains an AccessGrant. If not, the variant is the reason.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Standing {
    /// The cluster has no decision point, so the AccessGrant has no effect.
    Disabled,
    /// The AccessGrant is for users, but the settings let the decision point identify no users.
    NoUsers,
    /// The AccessGrant is for Agents, but the settings let the decision point identify no Agents.
    NoAgents,
    /// The operator does not write the decision point's data for this namespace. The text is the reason, which a user
    /// must remove.
    Inactive(String),
    /// There is no AuthorizationPolicy yet.
    Missing,
    /// The operator could not write the decision point's data.
    Failed(String),
    /// The decision point's data does not contain this generation of the AccessGrant yet.
    Pending,
    /// The decision point's data contains this generation of the AccessGrant.
    Enforced,
}

/// Returns the reference to the AuthorizationPolicy, whose status lists the AccessGrants in the decision point's data.
fn projection(subject: &Subject) -> Reference {
    reference_in(&subject.cluster.operator_namespace, API_VERSION, PROJECTION, PROJECTION_NAME)
}

/// Returns the needs of an AccessGrant.
pub(crate) fn needs(subject: &Subject) -> Vec<Need> {
    vec![optional(named(NEED, projection(subject)))]
}

/// Decodes and checks the spec.
pub(crate) fn spec(object: &Object) -> Result<AccessGrantSpec, Refusal> {
    let spec: AccessGrantSpec = object.get("spec")?;
    let mut wrong = Violations::new();
    wrong.require(!spec.subjects.is_empty(), "spec.subjects", "name at least one subject");
    wrong.require(!spec.resources.is_empty(), "spec.resources", "name at least one resource");
    for (at, subject) in spec.subjects.iter().enumerate() {
        wrong.require(!subject.name.is_empty(), &format!("spec.subjects[{at}].name"), "must not be empty");
    }
    for (at, resource) in spec.resources.iter().enumerate() {
        let path = format!("spec.resources[{at}]");
        match (resource.name(), &resource.selector) {
            (Some(_), Some(_)) => wrong.add(path, "give either name or selector, not both"),
            (None, None) => wrong.add(path, "give name or selector: a resource with neither of them grants nothing"),
            (Some(_), None) => {}
            (None, Some(selector)) => selector::check(selector, &format!("{path}.selector"), &mut wrong),
        }
    }
    wrong.into_result()?;
    Ok(spec)
}

/// Finds out whether the decision point's data contains the AccessGrant. Refuses an invalid spec.
pub(crate) fn standing(subject: &Subject) -> Result<Standing, Refusal> {
    let object = subject.object();
    let settings: Settings = subject.settings()?;
    let spec = spec(&object)?;
    let is_for = |kinds: &[SubjectKind]| spec.subjects.iter().any(|subject| kinds.contains(&subject.kind));
    if !settings.is_on() {
        return Ok(Standing::Disabled);
    }
    if is_for(&[SubjectKind::User, SubjectKind::Group]) && !settings.users.is_known() {
        return Ok(Standing::NoUsers);
    }
    if is_for(&[SubjectKind::Agent]) && !settings.agents.is_known() {
        return Ok(Standing::NoAgents);
    }
    Ok(match subject.one(NEED) {
        Lookup::There(projection) => in_projection(&object, &projection),
        Lookup::Absent | Lookup::Unasked => Standing::Missing,
        Lookup::Unserved => Standing::Inactive(format!("this cluster does not serve {PROJECTION}")),
        Lookup::Forbidden(why) => Standing::Inactive(format!("{PROJECTION} {PROJECTION_NAME} cannot be read: {why}")),
    })
}

fn in_projection(object: &Object, projection: &Object) -> Standing {
    let source = projection.at(&["spec", "dataSource"]).and_then(|source| DataSource::decode(source).ok());
    if source == Some(DataSource::Manual) {
        let why = format!("{PROJECTION} {PROJECTION_NAME} has `dataSource: manual`, so you write the grants yourself");
        return Standing::Inactive(why);
    }
    let namespace = object.namespace();
    let namespaces = projection.at(&["spec", "namespaces"]).and_then(serde_json::Value::as_array);
    if !namespaces.is_some_and(|all| all.iter().any(|listed| listed == namespace)) {
        let why =
            format!("{PROJECTION} {PROJECTION_NAME} does not list namespace {namespace}: add it to spec.namespaces");
        return Standing::Inactive(why);
    }
    let key = format!("{namespace}/{}", object.name());
    let included = projection.at(&["status", "grants", &key]).and_then(serde_json::Value::as_i64);
    let is_failed = projection.str_at(&["status", "phase"]) == Some(Phase::Failed.as_str());
    if included == Some(object.generation()) {
        Standing::Enforced
    } else if is_failed {
        Standing::Failed(projection.str_at(&["status", "message"]).unwrap_or_default().to_owned())
    } else {
        Standing::Pending
    }
}

impl Standing {
    /// Returns the reason code for the condition `Enforced`.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Disabled => "AuthorizationDisabled",
            Self::NoUsers => "NoUserIdentityProvider",
            Self::NoAgents => "NoAgentIdentityProvider",
            Self::Inactive(_) | Self::Missing => "PolicyProjectionInactive",
            Self::Failed(_) => "ProjectionFailed",
            Self::Pending => "ProjectionPending",
            Self::Enforced => ENFORCED,
        }
    }

    /// Returns the message of the condition `Enforced`.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Disabled => "Gateway authorization is not enabled; this AccessGrant is not enforced".to_owned(),
            Self::NoUsers => {
                "A user identity provider must be configured for this AccessGrant to be enforced: set the \
                              policy settings users.issuer, users.audience and users.jwks"
                    .to_owned()
            }
            Self::NoAgents => {
                "The identities of Agents must be known for this AccessGrant to be enforced: set the policy \
                               settings agents.issuer and agents.jwks"
                    .to_owned()
            }
            Self::Inactive(why) => format!("Automated policy projection must be active: {why}"),
            Self::Missing => {
                format!("Automated policy projection must be active: {PROJECTION} {PROJECTION_NAME} not found")
            }
            Self::Failed(why) => {
                format!("Policy projection failed; this AccessGrant is not currently enforced: {why}")
            }
            Self::Pending => "The authorization policy does not contain this generation yet".to_owned(),
            Self::Enforced => "AccessGrant is included in the successfully projected authorization policy".to_owned(),
        }
    }

    /// Builds the condition `Enforced`.
    pub(crate) fn condition(&self) -> Condition {
        let (reason, message) = (self.reason(), self.message());
        match self {
            Self::Enforced => condition::yes(ENFORCED, reason, message),
            Self::Pending => condition::unknown(ENFORCED, reason, message),
            _ => condition::no(ENFORCED, reason, message),
        }
    }
}

/// Returns a plan without children if the AccessGrant is in force, or if authorization is disabled. Otherwise returns a
/// refusal.
pub(crate) fn translate(subject: &Subject, env: Vec<EnvVar>) -> Result<Plan, Refusal> {
    let standing = standing(subject)?;
    let message = standing.message();
    match standing {
        Standing::Enforced => Ok(plan::of(&[], env)),
        // A refusal would make the gate fail on all samples, because by default there is no decision point.
        Standing::Disabled => {
            let mut plan = plan::of(&[], env);
            plan.notes.push(note::warning(standing.reason(), message));
            Ok(plan)
        }
        Standing::NoUsers | Standing::NoAgents | Standing::Inactive(_) => Err(refusal::unsupported(message)),
        Standing::Missing | Standing::Failed(_) | Standing::Pending => {
            Err(refusal::waiting(vec![blocker::new(projection(subject), standing.reason(), message)]))
        }
    }
}
