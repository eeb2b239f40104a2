//! Decodes all inputs of the policy for one `Agent`. The functions of a pass share the decoded values. The policy
//! decodes again after the host has added found objects.

use alloc::{rc::Rc, vec::Vec};
use kaos_crds::AgentSpec;
use kaos_policy_sdk::types::{Need, Note, Refusal, Subject};
use kaos_policy_sdk::{Object, SubjectExt, refusal};
use kaos_workload::security::{Egress, Protection};
use kaos_workload::{Exposure, Kind, Telemetry, Workload, bounds};

use crate::account;
use crate::harness::{self, Entry};
use crate::linked::{self, Linked};
use crate::memory::{self, Remembering};
use crate::routed::Routing;
use crate::settings::Settings;
use crate::wanted::{self, Links};

/// The names and labels that all objects of the kind share.
pub(crate) static KIND: Kind = Kind { app: "agent", prefix: "agent", container: "agent", route: "agent" };

/// The limits for the lists of MCP servers and peers. The host allows 256 needs. Each entry causes one need. An MCP
/// server that is not ready causes one more. The ModelAPI, the MemoryStore and the harness registry also cause needs.
const LINKS: [bounds::List; 2] = [(&["spec", "mcpServers"], 90), (&["spec", "agentNetwork", "access"], 160)];

/// The object, its settings, and the objects to which it refers.
pub(crate) struct Request {
    pub(crate) object: Object,
    pub(crate) spec: Rc<AgentSpec>,
    pub(crate) settings: Rc<Settings>,
    pub(crate) linked: Linked,
    pub(crate) memory: Remembering,
    pub(crate) harness: Option<Entry>,
}

/// Returns the needs of an Agent. Returns none if the policy cannot decode the spec or the settings: `translate` then
/// refuses the Agent.
pub(crate) fn needs(subject: &Subject) -> Vec<Need> {
    let object = subject.object();
    let (Ok(spec), Ok(settings)) = (spec(subject), settings(subject)) else { return Vec::new() };
    let mut needs = linked::needs(subject, &spec.model_api, spec.model(), &Links::of(&spec, object.name()));
    needs.extend(memory::needs(subject, &spec));
    if spec.harness.is_some() {
        needs.push(harness::need(&settings.harness, &subject.cluster.operator_namespace));
    }
    needs
}

/// Decodes the spec. Refuses fields that are too large or malformed.
pub(crate) fn spec(subject: &Subject) -> Result<Rc<AgentSpec>, Refusal> {
    let read = |subject: &Subject| {
        let object = subject.object();
        bounds::check(&object, &LINKS)?;
        object.get("spec").map(Rc::new)
    };
    subject.once(read).cloned()
}

/// Decodes the settings.
pub(crate) fn settings(subject: &Subject) -> Result<Rc<Settings>, Refusal> {
    let read = |subject: &Subject| {
        let mut settings: Settings = subject.settings()?;
        settings.memory.user_identity |= settings.security.has_users();
        Ok(Rc::new(settings))
    };
    subject.once(read).cloned()
}

impl Request {
    /// Decodes the subject. If the object is invalid, the refusal lists all violations at once. If a referenced object
    /// is missing, the refusal waits for this object.
    pub(crate) fn of(subject: &Subject) -> Result<&Self, Refusal> {
        subject.once(Self::read)
    }

    fn read(subject: &Subject) -> Result<Self, Refusal> {
        let object = subject.object();
        let (settings, spec) = (settings(subject)?, spec(subject)?);
        let mut wrong = workload(&object, subject).check_name(spec.exposed());
        wanted::check(&spec, &mut wrong);
        account::check(&settings.service_account, &mut wrong);
        if let Some(harness) = &spec.harness {
            harness::check(harness, &mut wrong);
        }
        let links = Links::of(&spec, object.name());
        let mut linked = Linked::of(subject, &spec.model_api, spec.model(), &links, &mut wrong);
        let mut memory = Remembering::of(subject, &spec, &settings.memory, &mut wrong);
        if let Some(routing) = Routing::of(&settings, object.namespace(), &mut wrong) {
            routing.lead(&mut linked, &mut memory);
        }
        linked.depends.missing.extend(memory.unreadable.clone());
        let own_image =
            spec.container.as_ref().and_then(|own| own.image.as_ref()).is_some_and(|image| !image.is_empty());
        let read = |harness| Entry::of(subject, harness, &settings.harness, own_image);
        let harness = match spec.harness.as_ref().map(read).transpose() {
            Err(Refusal::Waiting(blockers)) => {
                linked.depends.missing.extend(blockers);
                None
            }
            other => wrong.collect(other)?.flatten(),
        };
        wrong.into_result()?;
        if !linked.depends.missing.is_empty() {
            return Err(refusal::waiting(linked.depends.missing));
        }
        Ok(Self { object, spec, settings, linked, memory, harness })
    }

    /// Returns the effective telemetry.
    pub(crate) fn telemetry(&self) -> Telemetry<'_> {
        telemetry(&self.spec, &self.settings)
    }

    /// Returns the data for the Agent's Service, route and protection.
    pub(crate) fn exposure(&self) -> Exposure<'_> {
        let security = &self.settings.security;
        Exposure {
            path: "settings",
            service_port: self.settings.service_port,
            container_port: self.settings.container_port,
            port_name: &self.settings.port_name,
            service_type: self.settings.service_type,
            gateway: &self.settings.gateway,
            timeout: self.spec.gateway_route.as_ref().and_then(|route| route.timeout.as_deref()),
            protection: Protection {
                settings: security,
                audience: self.settings.audience(),
                // As in the Go operator of KAOS, Agents get no NetworkPolicy without a decision point.
                network: security.network(Egress::Inside).filter(|_| security.is_on()),
            },
            extra: self.settings.extra(),
        }
    }
}

/// Returns the effective telemetry of `spec` and `settings`.
pub(crate) fn telemetry<'a>(spec: &'a AgentSpec, settings: &'a Settings) -> Telemetry<'a> {
    let own = spec.config.as_ref().and_then(|config| config.telemetry.as_ref());
    let endpoint = own.and_then(|own| own.endpoint.as_deref());
    Telemetry::merge(own.and_then(|own| own.enabled), endpoint, &settings.telemetry, "spec.config.telemetry")
}

/// Returns the object's workload, which determines the names and addresses of the children.
pub(crate) fn workload<'a>(object: &'a Object, subject: &'a Subject) -> Workload<'a> {
    Workload { kind: &KIND, name: object.name(), namespace: object.namespace(), domain: &subject.cluster.domain }
}

/// Returns the notes on the object's fields. `translate` adds them to the plan. `assess` reports deprecated fields.
pub(crate) fn notes(object: &Object, spec: &AgentSpec, settings: &Settings) -> Vec<Note> {
    let mut notes = wanted::older_fields(spec);
    if Links::of(spec, object.name()).itself {
        notes.push(wanted::self_reference());
    }
    notes.extend(wanted::unlikely(spec));
    notes.extend(wanted::unused_limits(spec, &settings.memory.local));
    notes.extend(telemetry(spec, settings).note());
    notes
}
