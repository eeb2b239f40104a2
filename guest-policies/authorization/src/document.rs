//! The data of the decision point: the callers, and the resources that each caller is allowed to call.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::{string::String, vec::Vec};
use kaos_crds::access::{AccessGrantSpec, GrantedKind, SubjectKind};
use kaos_policy_sdk::{Decode, Object};
use serde_json::{Map, Value, json};

use crate::settings::{AgentIdentity, UserIdentity, keys};
use crate::{ids, selector};

/// The fields of an Agent's spec that affect the data: the names of the objects that the Agent calls, and its goal.
#[derive(Debug, Default, Decode)]
#[serde(rename_all = "camelCase", default)]
struct Calls {
    #[serde(rename = "modelAPI")]
    model_api: String,
    mcp_servers: Vec<String>,
    agent_network: Network,
    config: Behaviour,
}

#[derive(Debug, Default, Decode)]
#[serde(rename_all = "camelCase", default)]
struct Network {
    access: Vec<String>,
}

#[derive(Debug, Default, Decode)]
#[serde(rename_all = "camelCase", default)]
struct Behaviour {
    autonomous: Goal,
}

#[derive(Debug, Default, Decode)]
#[serde(rename_all = "camelCase", default)]
struct Goal {
    goal: String,
}

/// The objects of one namespace.
pub(crate) struct Namespace<'a> {
    pub(crate) name: &'a str,
    pub(crate) agents: Vec<Object>,
    pub(crate) grants: Vec<(Object, AccessGrantSpec)>,
    /// All objects of each kind for which an AccessGrant has a label selector.
    pub(crate) selectable: BTreeMap<GrantedKind, Vec<Object>>,
}

/// The fields of `data.json` that several functions fill.
#[derive(Default)]
struct Document {
    /// The resources that each Agent is allowed to call.
    grants: BTreeMap<String, BTreeSet<String>>,
    /// The resources that each user and each group is allowed to call.
    user_grants: BTreeMap<String, BTreeSet<String>>,
    agents: Map<String, Value>,
    /// The keys of each issuer.
    jwks: Map<String, Value>,
}

/// Returns the content of `data.json`, without callers that the decision point cannot identify. The decision point
/// denies their calls. If a setting is invalid, returns the setting's path and the reason.
pub(crate) fn of(
    namespaces: &[Namespace<'_>],
    agents: &AgentIdentity,
    users: &UserIdentity,
) -> Result<Value, (&'static str, &'static str)> {
    let mut document = Document::default();
    let (mut agent, mut user) = (json!({}), json!({}));
    if agents.is_known() {
        agent = json!({"issuer": agents.issuer, "audience": agents.audience});
        document.trust(&agents.issuer, &keys(&agents.jwks).map_err(|why| ("settings.agents.jwks", why))?);
        for namespace in namespaces {
            document.add_agents(namespace, &agents.issuer);
        }
    }
    if users.is_known() {
        user = json!({"issuer": users.issuer, "audience": users.audience});
        document.trust(&users.issuer, &keys(&users.jwks).map_err(|why| ("settings.users.jwks", why))?);
    }
    for namespace in namespaces {
        for (_, spec) in &namespace.grants {
            document.add_grant(namespace, spec, users.is_known());
        }
    }
    let Document { grants, user_grants, agents, jwks } = document;
    Ok(json!({"kaos": {
        "agent": agent, "agents": agents, "grants": grants, "jwks": jwks, "user": user, "user_grants": user_grants,
    }}))
}

impl Document {
    /// Adds the keys of an issuer to the issuer's other keys, because users and Agents can have the same issuer.
    fn trust(&mut self, issuer: &str, set: &Value) {
        let more = set.get("keys").and_then(Value::as_array).cloned().unwrap_or_default();
        let known = self.jwks.entry(issuer.to_owned()).or_insert_with(|| json!({"keys": []}));
        let keys = known.get_mut("keys").and_then(Value::as_array_mut);
        if let Some(keys) = keys {
            let new: Vec<Value> = more.into_iter().filter(|key| !keys.contains(key)).collect();
            keys.extend(new);
        }
    }

    /// Lets each Agent call the ModelAPI, the MCP servers and the peers in its own spec.
    fn add_agents(&mut self, namespace: &Namespace<'_>, issuer: &str) {
        for object in &namespace.agents {
            let Ok(calls) = object.get::<Calls>("spec") else { continue };
            let of = |kind, names: &[String]| -> Vec<String> {
                let named = names.iter().filter(|name| !name.is_empty());
                named.map(|name| ids::resource(kind, namespace.name, name)).collect()
            };
            let mut resources: BTreeSet<String> = BTreeSet::new();
            resources.extend(of(GrantedKind::ModelAPI, core::slice::from_ref(&calls.model_api)));
            resources.extend(of(GrantedKind::MCPServer, &calls.mcp_servers));
            resources.extend(of(GrantedKind::Agent, &calls.agent_network.access));
            let id = ids::agent(namespace.name, object.name());
            let known = json!({
                "autonomous": !calls.config.autonomous.goal.is_empty(),
                "issuer_sub": {"issuer": issuer, "sub": ids::account(namespace.name, object.name())},
            });
            self.agents.insert(id.clone(), known);
            self.grants.insert(id, resources);
        }
    }

    /// Lets the subjects of an AccessGrant call its resources, if the decision point can identify these subjects.
    fn add_grant(&mut self, namespace: &Namespace<'_>, spec: &AccessGrantSpec, knows_users: bool) {
        let resources = granted(namespace, spec);
        for subject in &spec.subjects {
            let caller = match subject.kind {
                SubjectKind::Agent => {
                    let id = ids::agent(namespace.name, &subject.name);
                    // The decision point can identify only Agents with an entry in `self.grants`.
                    self.grants.get_mut(&id)
                }
                SubjectKind::User if knows_users => {
                    Some(self.user_grants.entry(format!("user:{}", subject.name)).or_default())
                }
                SubjectKind::Group if knows_users => {
                    Some(self.user_grants.entry(format!("group:{}", subject.name)).or_default())
                }
                SubjectKind::User | SubjectKind::Group => None,
            };
            if let Some(caller) = caller {
                caller.extend(resources.iter().cloned());
            }
        }
    }
}

/// Returns the ids of the resources that an AccessGrant names or selects.
fn granted(namespace: &Namespace<'_>, spec: &AccessGrantSpec) -> BTreeSet<String> {
    let mut resources = BTreeSet::new();
    for resource in &spec.resources {
        if let Some(name) = resource.name() {
            resources.insert(ids::resource(resource.kind, namespace.name, name));
        } else if let Some(labels) = &resource.selector {
            let all = namespace.selectable.get(&resource.kind).into_iter().flatten();
            let selected = all.filter(|object| selector::matches(labels, object));
            resources.extend(selected.map(|object| ids::resource(resource.kind, namespace.name, object.name())));
        }
    }
    resources
}
