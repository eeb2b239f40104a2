//! Asks the policy to assess the live children. The operator writes the policy's report into the object's status.

use serde_json::{Map, Value};

use super::{PolicyFailure, Rendered, Renderer, secret, stripped};
use crate::{
    contract::{Child, Observation, Outcome, Reference, Report, ResourceType, Subject},
    digest::canonical,
    failure::{Failure, Verb},
    guard::{self, Breach, Rule},
    json,
};

/// The status fields that only the host writes. The host ignores these fields in the `fields` of a policy's report.
pub const HOST_FIELDS: [&str; 7] =
    ["phase", "ready", "message", "conditions", "observedGeneration", "appliedGeneration", "policy"];

/// A policy's report on an object, with its parsed fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessed {
    /// The policy's report.
    pub report: Report,
    /// The report's `fields`, parsed.
    pub fields: Map<String, Value>,
    /// The fuel that the assessment used.
    pub fuel: u64,
}

impl Child {
    /// Creates a child in the form that policies receive: the live object without managedFields and resourceVersion. If
    /// the child is a Secret, its values are empty.
    pub fn new(identity: Reference, live: Option<&Value>) -> Self {
        let is_secret = identity.of().is_secret() || live.is_some_and(|live| ResourceType::of_object(live).is_secret());
        let live = live.map(|live| {
            let mut live = stripped(live, false);
            if is_secret {
                secret::empty(&mut live);
            }
            canonical(&live)
        });
        Self { identity, live }
    }
}

impl Renderer {
    /// Asks the policy for a report on a rendered object. The policy gets the outcome of the apply and the live
    /// children. Opens a new sandbox, because the operator does I/O between the pass and the report, and a sandbox must
    /// not wait for I/O.
    pub fn assess(
        &self,
        rendered: &Rendered,
        outcome: Outcome,
        children: Vec<Child>,
    ) -> Result<Assessed, PolicyFailure> {
        self.assess_counted(rendered, outcome, children).0
    }

    /// Like [`assess`](Self::assess), but also returns the fuel of an assessment that failed, and the children.
    pub fn assess_counted(
        &self,
        rendered: &Rendered,
        outcome: Outcome,
        children: Vec<Child>,
    ) -> (Result<Assessed, PolicyFailure>, u64, Vec<Child>) {
        let seen = Observation {
            outcome,
            children,
            gates: rendered.gates().to_vec(),
            env: rendered.env().to_vec(),
            notes: rendered.notes().to_vec(),
            extra: "{}".to_owned(),
        };
        let policy = &self.0.base.policy;
        let mut fuel = 0;
        let mut assess = || {
            let mut sandbox = self.0.base.open()?;
            let report = sandbox.begin(&rendered.subject).and_then(|()| sandbox.assess(&seen));
            fuel = sandbox.fuel_used();
            let report = report?;
            let fields = parse_fields(&report.fields)?;
            guard::report(&report)?;
            Ok(Assessed { report, fields, fuel })
        };
        let Subject { object, found, .. } = &*rendered.subject;
        let assessed = assess().map_err(|failure| PolicyFailure::new(policy.id(), failure, object, found));
        (assessed, fuel, seen.children)
    }
}

fn parse_fields(text: &str) -> Result<Map<String, Value>, Failure> {
    if !json::is_bounded(std::iter::once(text)) {
        let breach = Breach { rule: Rule::Bounded, path: "fields".to_owned(), message: json::too_many() };
        return Err(Failure::Guard(vec![breach]));
    }
    serde_json::from_str(text).map_err(|error| Failure::NotJson {
        verb: Verb::Assess,
        what: "fields".to_owned(),
        reason: error.to_string(),
    })
}
