//! Decodes all inputs of the policy for one `ModelAPI`. `map_env`, `translate` and `assess` share the decoded
//! [`Request`].

use alloc::{string::String, vec::Vec};
use kaos_crds::ModelAPISpec;
use kaos_crds::modelapi::Mode;
use kaos_policy_sdk::types::{Note, Refusal, Subject};
use kaos_policy_sdk::{Object, SubjectExt};
use kaos_workload::{Kind, Telemetry, Workload, bounds};
use serde_json::Value;

use crate::settings::{Server, Settings};
use crate::wanted::Wanted;

/// The names and labels that all objects of the kind share.
pub(crate) static KIND: Kind = Kind { app: "modelapi", prefix: "modelapi", container: "model-api", route: "modelapi" };

/// The variable with the provider's address. The proxy's configuration refers to this variable.
pub(crate) const API_BASE: &str = "PROXY_API_BASE";
/// The variable with the provider's key. The proxy's configuration refers to this variable.
pub(crate) const API_KEY: &str = "PROXY_API_KEY";

/// The object, its decoded fields, and its settings.
pub(crate) struct Request {
    pub(crate) object: Object,
    pub(crate) spec: ModelAPISpec,
    pub(crate) settings: Settings,
    pub(crate) wanted: Wanted,
    /// Notes on the spec.
    pub(crate) notes: Vec<Note>,
}

impl Request {
    /// Decodes the subject. Refuses an incomplete or invalid object.
    pub(crate) fn of(subject: &Subject) -> Result<&Self, Refusal> {
        subject.once(Self::read)
    }

    fn read(subject: &Subject) -> Result<Self, Refusal> {
        let object = subject.object();
        let settings: Settings = subject.settings()?;
        bounds::check(&object, &[])?;
        let spec: ModelAPISpec = object.get("spec")?;
        let mut notes = Vec::new();
        let wanted = Wanted::of(&spec, &mut notes)?;
        Ok(Self { object, spec, settings, wanted, notes })
    }

    /// Returns the effective telemetry.
    pub(crate) fn telemetry(&self) -> Telemetry<'_> {
        let own = self.spec.telemetry.as_ref();
        let endpoint = own.and_then(|own| own.endpoint.as_deref());
        Telemetry::merge(own.and_then(|own| own.enabled), endpoint, &self.settings.telemetry, "spec.telemetry")
    }

    /// Returns whether telemetry is enabled and the object's mode supports telemetry.
    pub(crate) fn has_telemetry(&self) -> bool {
        matches!(self.wanted, Wanted::Proxy(_)) && self.telemetry().enabled
    }

    /// Returns the settings of the server, and their path.
    pub(crate) fn server(&self) -> (&Server, &'static str) {
        let mode = self.spec.mode;
        let path = if mode == Mode::Proxy { "settings.proxy" } else { "settings.hosted" };
        (server(&self.settings, mode), path)
    }

    /// Returns the lists of the user's variables for the object's mode, each list with its path. Deprecated fields come
    /// first, so newer fields win.
    pub(crate) fn user_env(&self) -> impl Iterator<Item = (String, &[Value])> {
        const PLACES: [&[&str]; 4] = [
            &["spec", "serverConfig", "env"],
            &["spec", "hostedConfig", "env"],
            &["spec", "proxyConfig", "env"],
            &["spec", "container", "env"],
        ];
        let of_this_mode = |place: &[&str]| match self.wanted {
            Wanted::Proxy(_) => !place.contains(&"serverConfig") && !place.contains(&"hostedConfig"),
            Wanted::Hosted { .. } => !place.contains(&"proxyConfig"),
        };
        PLACES.into_iter().filter(move |place| of_this_mode(place)).filter_map(|place| {
            let list = self.object.at(place)?.as_array()?;
            Some((place.join("."), list.as_slice()))
        })
    }
}

/// Returns the settings of the server that runs in `mode`.
pub(crate) fn server(settings: &Settings, mode: Mode) -> &Server {
    match mode {
        Mode::Proxy => &settings.proxy,
        Mode::Hosted => &settings.hosted,
    }
}

/// Returns the object's workload, which determines the names and addresses of the children.
pub(crate) fn workload<'a>(object: &'a Object, subject: &'a Subject) -> Workload<'a> {
    Workload { kind: &KIND, name: object.name(), namespace: object.namespace(), domain: &subject.cluster.domain }
}
