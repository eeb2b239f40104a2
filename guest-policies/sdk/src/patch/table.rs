//! The tables of merge rules: which list merges by which key, and which members exclude each other.
//!
//! The keys come from the tags `patchMergeKey` and `patchStrategy` in `k8s.io/api` v0.36. If the tables have no rule
//! for a list, the patch replaces the whole list. If the tables have no rule for a map, the patch merges into the map.

use super::directive::is_directive;

/// The fields of a type that have a merge rule, and its members that exclude each other.
pub(super) struct Type {
    pub(super) fields: &'static [(&'static str, Field)],
    pub(super) exclusive: Exclusive,
}

/// The merge rule of one field.
#[derive(Clone, Copy)]
pub(super) enum Field {
    /// An object whose type has its own merge rules.
    Object(&'static Type),
    /// A list of objects that merge by this key.
    List(&'static str, &'static Type),
    /// A list of plain values without duplicates.
    Set,
}

/// Members of an object that exclude each other.
pub(super) enum Exclusive {
    None,
    /// A patch can set at most one of these members.
    Among(&'static [&'static str]),
    /// A patch can set this member and at most one other member.
    AllBut(&'static str),
    /// If the patch gives this member a new value, the merge removes all members of the base object.
    By(&'static str),
}

impl Exclusive {
    /// Returns whether `key` excludes the other members of its group.
    pub(super) fn rivals(&self, key: &str) -> bool {
        match self {
            Self::None | Self::By(_) => false,
            Self::Among(members) => members.contains(&key),
            Self::AllBut(name) => key != *name && !is_directive(key),
        }
    }
}

impl Type {
    pub(super) fn field(&self, name: &str) -> Option<Field> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, field)| *field)
    }
}

use Field::{List, Object, Set};

const fn keys(fields: &'static [(&'static str, Field)]) -> Type {
    Type { fields, exclusive: Exclusive::None }
}

pub(super) static PLAIN: Type = keys(&[]);

pub(super) static DEPLOYMENT: Type =
    keys(&[("metadata", Object(&METADATA)), ("spec", Object(&DEPLOYMENT_SPEC)), ("status", Object(&WITH_CONDITIONS))]);

static DEPLOYMENT_SPEC: Type = keys(&[("strategy", Object(&BY_TYPE)), ("template", Object(&POD_TEMPLATE))]);

static POD_TEMPLATE: Type = keys(&[("metadata", Object(&METADATA)), ("spec", Object(&POD_SPEC))]);

pub(super) static SERVICE: Type =
    keys(&[("metadata", Object(&METADATA)), ("spec", Object(&SERVICE_SPEC)), ("status", Object(&WITH_CONDITIONS))]);

static SERVICE_SPEC: Type = keys(&[("ports", List("port", &PLAIN))]);

static METADATA: Type = keys(&[("finalizers", Set), ("ownerReferences", List("uid", &PLAIN))]);

static WITH_CONDITIONS: Type = keys(&[("conditions", List("type", &PLAIN))]);

pub(super) static POD_SPEC: Type = keys(&[
    ("containers", List("name", &CONTAINER)),
    ("ephemeralContainers", List("name", &CONTAINER)),
    ("hostAliases", List("ip", &PLAIN)),
    ("imagePullSecrets", List("name", &PLAIN)),
    ("initContainers", List("name", &CONTAINER)),
    ("resourceClaims", List("name", &NAMED_SOURCE)),
    ("schedulingGates", List("name", &PLAIN)),
    ("securityContext", Object(&SECURITY_CONTEXT)),
    ("topologySpreadConstraints", List("topologyKey", &PLAIN)),
    ("volumes", List("name", &VOLUME)),
]);

pub(super) static CONTAINER: Type = keys(&[
    ("env", List("name", &ENV)),
    ("lifecycle", Object(&LIFECYCLE)),
    ("livenessProbe", Object(&HANDLER)),
    ("ports", List("containerPort", &PLAIN)),
    ("readinessProbe", Object(&HANDLER)),
    ("securityContext", Object(&SECURITY_CONTEXT)),
    ("startupProbe", Object(&HANDLER)),
    ("volumeDevices", List("devicePath", &PLAIN)),
    ("volumeMounts", List("mountPath", &PLAIN)),
]);

static ENV: Type =
    Type { fields: &[("valueFrom", Object(&ONE_MEMBER))], exclusive: Exclusive::Among(&["value", "valueFrom"]) };

/// The type of a variable's `valueFrom`, in which exactly one member is set.
static ONE_MEMBER: Type = Type { fields: &[], exclusive: Exclusive::AllBut("") };

static LIFECYCLE: Type = keys(&[("postStart", Object(&HANDLER)), ("preStop", Object(&HANDLER))]);

static HANDLER: Type =
    Type { fields: &[], exclusive: Exclusive::Among(&["exec", "grpc", "httpGet", "sleep", "tcpSocket"]) };

static SECURITY_CONTEXT: Type = keys(&[("appArmorProfile", Object(&BY_TYPE)), ("seccompProfile", Object(&BY_TYPE))]);

static BY_TYPE: Type = Type { fields: &[], exclusive: Exclusive::By("type") };

static NAMED_SOURCE: Type = Type { fields: &[], exclusive: Exclusive::AllBut("name") };

static VOLUME: Type = Type { fields: &[("ephemeral", Object(&EPHEMERAL))], exclusive: Exclusive::AllBut("name") };

static EPHEMERAL: Type = keys(&[("volumeClaimTemplate", Object(&CLAIM_TEMPLATE))]);

static CLAIM_TEMPLATE: Type = keys(&[("metadata", Object(&METADATA))]);
