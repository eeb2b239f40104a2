//! Memory of an Agent in a MemoryStore: the store, the scope that the Agent can read, and the store's health.
//!
//! | the store | an Agent without pods | an Agent with running pods |
//! |---|---|---|
//! | has an address, is not ready | waits | keeps the address |
//! | is missing, or has no address yet | waits | its pods keep running with their old address |
//! | must not be read by the policy | waits | its pods stay unchanged |
//!
//! With these rules, no pod restarts if a store fails for a short time, or if a user deletes a store and creates it
//! again. With `waitForDependencies: false`, an Agent whose store is missing starts without the store's address.

use alloc::{borrow::ToOwned, string::String};
use kaos_crds::agent::{Memory, MemoryType, ReadScope};
use kaos_crds::{API_VERSION, AgentSpec};
use kaos_policy_sdk::names::is_dns1123_subdomain;
use kaos_policy_sdk::need::reference;
use kaos_policy_sdk::quote::shown;
use kaos_policy_sdk::types::{Blocker, Condition, Need, Reference, Subject};
use kaos_policy_sdk::{Lookup, Object, Violations, blocker, condition};
use kaos_workload::Dependencies;
use kaos_workload::dependencies::{self, Dependency};

use crate::settings::MemorySettings;

/// The kind of the store.
const KIND: &str = "MemoryStore";
/// The path of the field that sets the widest scope that the Agent can read.
const SCOPE: &str = "spec.config.memory.maxReadScope";
/// The path of the field with the name of the store.
pub(crate) const STORE: &str = "spec.config.memory.memoryStore";
/// The Agent's variable with the address of the MemoryStore.
pub(crate) const ENDPOINT: &str = "MEMORY_STORE_ENDPOINT";
/// The type of the condition that reports a problem with the store.
const DEGRADED: &str = "MemoryDegraded";

/// The effective memory configuration of an Agent. Without a memory block in the spec, the configuration is empty.
#[derive(Debug, Default)]
pub(crate) struct Remembering {
    /// The store's name, if the store exists.
    pub(crate) store: Option<String>,
    /// The store's address and its origin.
    pub(crate) endpoint: Option<(String, String)>,
    /// The widest scope that the Agent can read, and the origin of this scope.
    pub(crate) scope: Option<(ReadScope, String)>,
    /// The reason to delay the first pods of the Agent, for example a store that is not ready.
    pub(crate) gate: Option<Blocker>,
    /// Whether the plan lacks the store's address, because the store is missing or has no address yet. Until the plan
    /// has an address, running pods keep the address with which they started.
    pub(crate) lacks_address: bool,
    /// The reason why the policy cannot read the store. `None` if the policy can read the store.
    pub(crate) unreadable: Option<Blocker>,
    /// The problem of the store. A running Agent reports this problem as the condition `MemoryDegraded`.
    degraded: Option<String>,
    /// The reason why the Agent's scope is not allowed.
    invalid: Option<Invalid>,
}

/// A scope that the store or the cluster does not allow.
#[derive(Debug)]
struct Invalid {
    /// The Agent's field that sets the scope.
    path: &'static str,
    /// The message to the user: why the scope is not allowed, and how to fix the object.
    why: String,
}

/// Returns the field `config.memory` of a spec, or `None` without this field.
fn block(spec: &AgentSpec) -> Option<&Memory> {
    spec.config.as_ref()?.memory.as_ref()
}

/// Returns the name of the store in a spec. Returns `None` if the policy reads no store: the memory is local, the name
/// is invalid, or the user sets the store's address in a variable.
pub(crate) fn named_store(spec: &AgentSpec) -> Option<&str> {
    let memory = block(spec).filter(|memory| memory.effective_type() == MemoryType::Remote)?;
    let name = memory.memory_store.as_deref().filter(|name| is_dns1123_subdomain(name))?;
    let mut own = spec.container.iter().flat_map(|container| &container.env);
    (!own.any(|variable| variable.name == ENDPOINT)).then_some(name)
}

fn to(name: &str) -> Reference {
    reference(API_VERSION, KIND, name)
}

/// Returns the needs for the store that the spec names.
pub(crate) fn needs(subject: &Subject, spec: &AgentSpec) -> impl Iterator<Item = Need> {
    let store = named_store(spec).map(|name| Dependency::new(to(name), &["spec.maxReadScope"]));
    store.into_iter().flat_map(|store| store.needs(subject, |_| true))
}

/// Returns the name of a scope.
pub(crate) const fn word(scope: ReadScope) -> &'static str {
    match scope {
        ReadScope::Session => "session",
        ReadScope::Agent => "agent",
        ReadScope::User => "user",
    }
}

impl Remembering {
    /// Reads the store. Collects a violation if the Agent's scope is not allowed.
    pub(crate) fn of(subject: &Subject, spec: &AgentSpec, settings: &MemorySettings, wrong: &mut Violations) -> Self {
        let mut known = Self::default();
        let Some(memory) = block(spec) else { return known };
        let own = memory.max_read_scope.map(|scope| (scope, SCOPE.to_owned()));
        let most = named_store(spec).and_then(|name| known.find(subject, name));
        known.scope = own.clone().or_else(|| most.clone());
        if named_store(spec).is_some() {
            known.invalid = invalid(own.as_ref(), most.as_ref(), known.store.as_deref(), settings);
        }
        if let Some(invalid) = &known.invalid {
            wrong.add(invalid.path, invalid.why.as_str());
        }
        known
    }

    /// Reads the store `name`: its address, and the widest scope that the store allows.
    fn find(&mut self, subject: &Subject, name: &str) -> Option<(ReadScope, String)> {
        let unready = format!("{KIND} {} is not ready", shown(name, 253));
        let found = match dependencies::found(subject, &to(name)) {
            Lookup::There(found) => found,
            Lookup::Forbidden(why) => {
                let message = format!("{KIND} {name} cannot be read: {why}", name = shown(name, 253));
                self.degraded = Some(message.clone());
                self.unreadable = Some(blocker::new(to(name), "Forbidden", message));
                return None;
            }
            Lookup::Absent | Lookup::Unserved | Lookup::Unasked => {
                self.is_without(blocker::not_found(to(name)));
                return None;
            }
        };
        self.store = Some(name.to_owned());
        let mut depends = Dependencies::default();
        let endpoint = depends.endpoint(&to(name), &unready, &found);
        self.endpoint = endpoint.map(|endpoint| (endpoint.to_owned(), format!("{KIND}/{name} status.endpoint")));
        self.lacks_address = self.endpoint.is_none();
        self.gate = depends.missing.iter().chain(&depends.unready).next().cloned();
        self.degraded = depends.missing.iter().chain(&depends.failing).next().map(|it| it.message.clone());
        Some((most(&found), format!("{KIND}/{name} spec.maxReadScope")))
    }

    fn is_without(&mut self, blocker: Blocker) {
        self.degraded = Some(blocker.message.clone());
        self.gate = Some(blocker);
        self.lacks_address = true;
    }

    /// Builds the condition `MemoryDegraded` of an Agent with a memory block. Also builds the condition `Ready` if the
    /// scope is not allowed.
    pub(crate) fn conditions(&self, spec: &AgentSpec) -> impl Iterator<Item = Condition> {
        let degraded = block(spec).map(|_| match (&self.degraded, &self.store) {
            (Some(message), _) => condition::yes(DEGRADED, "MemoryStoreNotReady", message.clone()),
            (None, Some(name)) => condition::no(DEGRADED, "MemoryHealthy", format!("{KIND} {name} is ready")),
            (None, None) => condition::no(DEGRADED, "MemoryHealthy", "Memory is healthy"),
        });
        let invalid = self.invalid.as_ref();
        let invalid = invalid.map(|it| condition::no("Ready", "InvalidMemoryReadScope", it.why.clone()));
        degraded.into_iter().chain(invalid)
    }
}

/// Returns the widest scope that a store allows.
fn most(store: &Object) -> ReadScope {
    match store.str_at(&["spec", "maxReadScope"]) {
        Some("session") => ReadScope::Session,
        Some("user") => ReadScope::User,
        _ => ReadScope::Agent,
    }
}

/// Returns why this store or this cluster does not allow the Agent's scope, or `None` if both allow it. The scope comes
/// from the Agent or from the store.
fn invalid(
    own: Option<&(ReadScope, String)>,
    most: Option<&(ReadScope, String)>,
    store: Option<&str>,
    settings: &MemorySettings,
) -> Option<Invalid> {
    let rank = |scope: ReadScope| scope as u8;
    let is_beyond_cluster = |scope: ReadScope| scope == ReadScope::User && !settings.user_identity;
    let Some((scope, _)) = own else {
        let (_, store) = most.filter(|(most, _)| is_beyond_cluster(*most)).zip(store)?;
        let why = format!(
            "MemoryStore \"{store}\" allows user scope, but cluster security posture has no user identity: set \
             config.memory.maxReadScope to session or agent, change spec.maxReadScope of the store, or set the policy \
             setting memory.userIdentity if requests carry the identity of a user"
        );
        return Some(Invalid { path: STORE, why });
    };
    if is_beyond_cluster(*scope) {
        let why = "config.memory.maxReadScope references user scope, but cluster security posture has no user \
                   identity: use session or agent, or set the policy setting memory.userIdentity if requests carry the \
                   identity of a user";
        return Some(Invalid { path: SCOPE, why: why.to_owned() });
    }
    let ((most, _), store) = most.zip(store)?;
    (rank(*scope) > rank(*most)).then(|| {
        let (scope, most) = (word(*scope), word(*most));
        let why = format!(
            "config.memory.maxReadScope \"{scope}\" exceeds MemoryStore \"{store}\" maxReadScope \"{most}\": set it \
             to {most}, or raise maxReadScope of the store"
        );
        Invalid { path: SCOPE, why }
    })
}
