//! One `Agent` with everything that decides about it, read once for each of the five functions.

use alloc::{string::String, vec::Vec};
use kaos_crds::AgentSpec;
use kaos_policy_sdk::types::{Need, Note, Refusal, Subject};
use kaos_policy_sdk::{Kept, Memo, Object, SubjectExt, refusal};
use kaos_workload::{Exposure, Kind, Telemetry, Workload, bounds};

use crate::harness::{self, Entry};
use crate::linked::{self, Linked};
use crate::memory::{self, Remembering};
use crate::settings::Settings;
use crate::wanted::{self, Links};

/// The fixed names of the kind.
pub(crate) static KIND: Kind = Kind { app: "agent", prefix: "agent", container: "agent", route: "agent" };

/// MCP servers and peers of one Agent. Each is looked up, beside its ModelAPI and the registry of runtimes; the host lets
/// a policy ask for 256 objects.
const LINKS: [bounds::List; 2] = [(&["spec", "mcpServers"], 90), (&["spec", "agentNetwork", "access"], 160)];

/// What the object says, its settings, and what it refers to.
pub(crate) struct Request {
    pub(crate) object: Object,
    pub(crate) spec: Kept<AgentSpec>,
    pub(crate) settings: Kept<Settings>,
    pub(crate) linked: Linked,
    pub(crate) memory: Remembering,
    pub(crate) harness: Option<Entry>,
}

/// Which objects an Agent must be seen with. One that cannot be read needs none: it is refused.
pub(crate) fn needs(subject: &Subject) -> Vec<Need> {
    let object = subject.object();
    let (Ok(spec), Ok(settings)) = (spec(subject), settings(subject)) else { return Vec::new() };
    let mut needs = linked::needs(&spec.model_api, &Links::of(&spec, object.name()));
    needs.extend(memory::need(&spec));
    if spec.harness.is_some() {
        needs.push(harness::need(&settings.harness, &subject.cluster.operator_namespace));
    }
    needs
}

/// The spec, or what is wrong with its size or the form of a field.
pub(crate) fn spec(subject: &Subject) -> Result<Kept<AgentSpec>, Refusal> {
    static LAST: Memo<String, AgentSpec> = Memo::new();
    LAST.get(&subject.object, |_| {
        let object = subject.object();
        bounds::check(&object, &LINKS)?;
        object.get("spec")
    })
}

/// The settings.
pub(crate) fn settings(subject: &Subject) -> Result<Kept<Settings>, Refusal> {
    static LAST: Memo<String, Settings> = Memo::new();
    LAST.get(&subject.settings, |_| subject.settings())
}

impl Request {
    /// Reads the subject; refuses what is wrong with it, all at once, and waits for what is missing.
    pub(crate) fn of(subject: &Subject) -> Result<Kept<Self>, Refusal> {
        static LAST: Memo<Subject, Request> = Memo::new();
        LAST.get(subject, Self::read)
    }

    fn read(subject: &Subject) -> Result<Self, Refusal> {
        let object = subject.object();
        let (settings, spec) = (settings(subject)?, spec(subject)?);
        let mut wrong = workload(&object, subject).check_name(spec.exposed());
        wanted::check(&spec, &mut wrong);
        if let Some(harness) = &spec.harness {
            harness::check(harness, &mut wrong);
        }
        let links = Links::of(&spec, object.name());
        let mut linked = Linked::of(subject, &spec.model_api, spec.model(), &links, &mut wrong);
        let memory = Remembering::of(subject, &spec, &settings.memory, &mut wrong);
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

    /// The effective telemetry.
    pub(crate) fn telemetry(&self) -> Telemetry<'_> {
        telemetry(&self.spec, &self.settings)
    }

    /// How others reach the Agent.
    pub(crate) fn exposure(&self) -> Exposure<'_> {
        Exposure {
            service_port: self.settings.service_port,
            container_port: self.settings.container_port,
            port_name: &self.settings.port_name,
            service_type: self.settings.service_type,
            gateway: &self.settings.gateway,
            timeout: self.spec.gateway_route.as_ref().and_then(|route| route.timeout.as_deref()),
            extra: self.settings.extra(),
        }
    }
}

/// What `spec` and `settings` say about telemetry together.
pub(crate) fn telemetry<'a>(spec: &'a AgentSpec, settings: &'a Settings) -> Telemetry<'a> {
    let own = spec.config.as_ref().and_then(|config| config.telemetry.as_ref());
    let endpoint = own.and_then(|own| own.endpoint.as_deref());
    Telemetry::merge(own.and_then(|own| own.enabled), endpoint, &settings.telemetry, "spec.config.telemetry")
}

/// Names and addresses of the object.
pub(crate) fn workload<'a>(object: &'a Object, subject: &'a Subject) -> Workload<'a> {
    Workload { kind: &KIND, name: object.name(), namespace: object.namespace(), domain: &subject.cluster.domain }
}

/// What the user should know of the object as it is, whatever becomes of it.
pub(crate) fn notes(object: &Object, spec: &AgentSpec, settings: &Settings) -> Vec<Note> {
    let mut notes = wanted::older_fields(spec);
    if Links::of(spec, object.name()).itself {
        notes.push(wanted::self_reference());
    }
    notes.extend(wanted::unlikely(spec));
    notes.extend(telemetry(spec, settings).note());
    notes
}
