//! Decodes all inputs of the policy for one `MemoryStore`. `map_env` and `translate` share the decoded [`Request`].
//! `needs` and `assess` decode only the inputs that they use.

use alloc::vec::Vec;
use kaos_crds::MemoryStoreSpec;
use kaos_policy_sdk::types::{Need, Refusal, Subject};
use kaos_policy_sdk::{Object, SubjectExt, refusal};
use kaos_workload::security::{Egress, Protection};
use kaos_workload::{Exposure, Kind, Telemetry, Workload, bounds};

use crate::claim::{self, Claims};
use crate::models::{self, Served};
use crate::settings::Settings;
use crate::wanted;

/// The names and labels that all objects of the kind share.
pub(crate) static KIND: Kind =
    Kind { app: "memorystore", prefix: "memorystore", container: "memory", route: "memorystore" };

/// The object, its settings, and the referenced objects.
pub(crate) struct Request {
    pub(crate) object: Object,
    pub(crate) spec: MemoryStoreSpec,
    pub(crate) settings: Settings,
    pub(crate) served: Served,
    pub(crate) claims: Claims,
}

/// Returns the needs of a store. Returns none if the policy cannot decode the spec: `translate` then refuses the store.
pub(crate) fn needs(subject: &Subject) -> Vec<Need> {
    let object = subject.object();
    let Ok(spec) = spec(&object) else { return Vec::new() };
    let mut needs = models::needs(subject, &spec);
    let workload = workload(&object, subject);
    if workload.check_name(true).is_empty() {
        needs.push(claim::need(&workload));
    }
    needs
}

/// Decodes the spec. Refuses fields that are too large or malformed.
pub(crate) fn spec(object: &Object) -> Result<MemoryStoreSpec, Refusal> {
    bounds::check(object, &[])?;
    object.get("spec")
}

impl Request {
    /// Decodes the subject. If the object is invalid, the refusal lists all violations at once. If a referenced object
    /// is missing, the refusal waits for this object.
    pub(crate) fn of(subject: &Subject) -> Result<&Self, Refusal> {
        subject.once(Self::read)
    }

    fn read(subject: &Subject) -> Result<Self, Refusal> {
        let object = subject.object();
        let settings: Settings = subject.settings()?;
        let spec = spec(&object)?;
        let workload = workload(&object, subject);
        let mut wrong = workload.check_name(true);
        wanted::check(&spec, &mut wrong);
        let served = Served::of(subject, &spec.models, &mut wrong);
        let claims = Claims::of(subject, &workload, &spec, &settings.volume, &mut wrong);
        wrong.into_result()?;
        if !served.depends.missing.is_empty() {
            return Err(refusal::waiting(served.depends.missing));
        }
        let claims = claims?;
        Ok(Self { object, spec, settings, served, claims })
    }

    /// Returns the effective telemetry.
    pub(crate) fn telemetry(&self) -> Telemetry<'_> {
        telemetry(&self.spec, &self.settings)
    }

    /// Returns the data for the store's Service, route and protection.
    pub(crate) fn exposure(&self) -> Exposure<'_> {
        Exposure {
            path: "settings",
            service_port: self.settings.service_port,
            container_port: self.settings.container_port,
            port_name: &self.settings.port_name,
            service_type: self.settings.service_type,
            gateway: &self.settings.gateway,
            timeout: self.spec.gateway_route.as_ref().and_then(|route| route.timeout.as_deref()),
            protection: Protection {
                settings: &self.settings.security,
                audience: &self.settings.security.agents.audience,
                network: self.settings.security.network(Egress::Inside),
            },
            extra: self.settings.extra(),
        }
    }
}

/// Returns the effective telemetry of `spec` and `settings`.
pub(crate) fn telemetry<'a>(spec: &'a MemoryStoreSpec, settings: &'a Settings) -> Telemetry<'a> {
    let own = spec.telemetry.as_ref();
    let endpoint = own.and_then(|own| own.endpoint.as_deref());
    Telemetry::merge(own.and_then(|own| own.enabled), endpoint, &settings.telemetry, "spec.telemetry")
}

/// Returns the object's workload, which determines the names and addresses of the children.
pub(crate) fn workload<'a>(object: &'a Object, subject: &'a Subject) -> Workload<'a> {
    Workload { kind: &KIND, name: object.name(), namespace: object.namespace(), domain: &subject.cluster.domain }
}
