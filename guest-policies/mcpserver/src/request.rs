//! Decodes all inputs of the policy for one `MCPServer`. `map_env`, `translate` and `assess` share the decoded
//! [`Request`].

use alloc::vec::Vec;
use kaos_crds::MCPServerSpec;
use kaos_policy_sdk::types::{Need, Refusal, Subject};
use kaos_policy_sdk::{NeedExt as _, Object, SubjectExt, need};
use kaos_workload::{Kind, Telemetry, Workload, bounds};

use crate::launch::{Launch, Own, registry_reference};
use crate::settings::Settings;
use crate::wanted::{Source, Wanted};

/// The id of the need for the registry.
pub(crate) const REGISTRY: &str = "registry";

/// The names and labels that all objects of the kind share.
pub(crate) static KIND: Kind = Kind { app: "mcpserver", prefix: "mcpserver", container: "mcp-server", route: "mcp" };

/// The decoded object, its settings, and the launch of its container.
pub(crate) struct Request {
    pub(crate) object: Object,
    pub(crate) spec: MCPServerSpec,
    pub(crate) settings: Settings,
    pub(crate) wanted: Wanted,
    pub(crate) launch: Launch,
}

impl Request {
    /// Decodes the subject. Refuses an object for which the policy cannot start a container.
    pub(crate) fn of(subject: &Subject) -> Result<&Self, Refusal> {
        subject.once(Self::read)
    }

    fn read(subject: &Subject) -> Result<Self, Refusal> {
        let object = subject.object();
        let settings: Settings = subject.settings()?;
        let spec = spec(&object)?;
        let wanted = Wanted::of(&spec)?;
        let registry = subject.one(REGISTRY);
        let namespace = &subject.cluster.operator_namespace;
        let launch = Launch::of(&wanted.source, &settings, namespace, registry, Own::of(spec.container.as_ref()))?;
        Ok(Self { object, spec, settings, wanted, launch })
    }

    /// Returns the effective telemetry.
    pub(crate) fn telemetry(&self) -> Telemetry<'_> {
        let own = self.wanted.telemetry.as_ref();
        let endpoint = own.and_then(|own| own.endpoint.as_deref());
        Telemetry::merge(
            own.and_then(|own| own.enabled),
            endpoint,
            &self.settings.telemetry,
            self.wanted.telemetry_path,
        )
    }
}

/// Returns the need for the registry, if the object uses a runtime of the registry. The need is optional if the
/// settings contain the runtime.
pub(crate) fn needs(subject: &Subject) -> Vec<Need> {
    let (object, settings) = (subject.object(), subject.settings::<Settings>());
    let wanted = spec(&object).and_then(|spec| Wanted::of(&spec));
    let (Ok(Wanted { source: Source::Registry(name), .. }), Ok(settings)) = (wanted, settings) else {
        return Vec::new();
    };
    let reference = registry_reference(&settings, &subject.cluster.operator_namespace);
    let registry = need::named(REGISTRY, reference).fields([need::key("data", &settings.registry.key)]);
    vec![if settings.runtimes.contains_key(&name) { need::optional(registry) } else { registry }]
}

/// Decodes the spec. Refuses fields that are too large or malformed.
pub(crate) fn spec(object: &Object) -> Result<MCPServerSpec, Refusal> {
    bounds::check(object, &[])?;
    object.get("spec")
}

/// Returns the object's workload, which determines the names and addresses of the children.
pub(crate) fn workload<'a>(object: &'a Object, subject: &'a Subject) -> Workload<'a> {
    Workload { kind: &KIND, name: object.name(), namespace: object.namespace(), domain: &subject.cluster.domain }
}
