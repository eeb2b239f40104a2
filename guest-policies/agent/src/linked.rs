//! The objects that an Agent refers to: its ModelAPI, its MCP servers and its peers.
//!
//! An Agent waits until its ModelAPI and each of its MCP servers have an address, because the Agent's manifests contain
//! these addresses. If the ModelAPI or an MCP server has an address but is not ready, the plan gets a plan gate. A
//! missing peer never delays an Agent: the plan includes a peer as soon as the peer has an address.

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_crds::API_VERSION;
use kaos_crds::modelapi::offered;
use kaos_policy_sdk::names::is_dns1123_subdomain;
use kaos_policy_sdk::need::{named, reference};
use kaos_policy_sdk::quote::shown;
use kaos_policy_sdk::types::{Need, Note, Reference, Refusal, Subject};
use kaos_policy_sdk::{Lookup, NeedExt as _, Object, SubjectExt, Violations, note};
use kaos_workload::dependencies::{self, Dependency, id};
use kaos_workload::{Dependencies, models};

use crate::wanted::Links;

const MODEL_API: &str = "ModelAPI";
const MCP_SERVER: &str = "MCPServer";
const AGENT: &str = "Agent";

/// A referenced object, with its address.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) endpoint: String,
    /// The origin of the variables with this address.
    pub(crate) origin: String,
}

/// The referenced objects that have an address, and the problems of the other referenced objects.
#[derive(Debug, Default)]
pub(crate) struct Linked {
    pub(crate) model_api: Option<Link>,
    pub(crate) servers: Vec<Link>,
    pub(crate) peers: Vec<Link>,
    /// Problems with the ModelAPI and the MCP servers.
    pub(crate) depends: Dependencies,
    /// A note on each peer that the plan leaves out, because the peer has no address.
    pub(crate) absent_peers: Vec<Note>,
}

/// Returns the needs for the ModelAPI, the MCP servers and the peers.
pub(crate) fn needs(subject: &Subject, model_api: &str, model: Option<&str>, links: &Links<'_>) -> Vec<Need> {
    let mut needs = Vec::new();
    let model = model.filter(|model| !model.is_empty());
    if is_dns1123_subdomain(model_api) {
        let (all, brief) = model.map(|model| (models::offer(), models::offer_of([model]))).unwrap_or_default();
        let api = Dependency { on: to(MODEL_API, model_api), all, brief };
        // If the ModelAPI does not offer the model, the policy reads all models of the ModelAPI for the list in its
        // message.
        needs.extend(api.needs(subject, |found| offers(found, model).is_ok()));
    }
    for server in links.servers.iter().filter(|name| is_dns1123_subdomain(name)) {
        needs.extend(Dependency::new(to(MCP_SERVER, server), &[]).needs(subject, |_| true));
    }
    for peer in links.peers.iter().filter(|name| is_dns1123_subdomain(name)) {
        let on = to(AGENT, peer);
        needs.push(named(id(&on), on).fields(["status.endpoint", "spec.agentNetwork.expose"]));
    }
    needs
}

/// Checks that the ModelAPI `api` offers `model`. The error lists the offered models. If the ModelAPI is invalid, its
/// models are unknown, so the function accepts every model.
fn offers(api: &Object, model: Option<&str>) -> Result<(), Vec<String>> {
    let (Some(offered), Some(model)) = (api.at(&["spec"]).and_then(offered), model) else { return Ok(()) };
    if models::allowed(&offered, model) { Ok(()) } else { Err(offered) }
}

fn to(kind: &str, name: &str) -> Reference {
    reference(API_VERSION, kind, name)
}

impl Linked {
    /// Reads the referenced objects. Collects a violation if the ModelAPI does not offer the model.
    pub(crate) fn of(
        subject: &Subject,
        model_api: &str,
        wanted: Option<&str>,
        links: &Links<'_>,
        wrong: &mut Violations,
    ) -> Self {
        let mut linked = Self::default();
        if let Some(api) = linked.find(subject, MODEL_API, model_api) {
            linked.model_api = linked.depend(MODEL_API, model_api, "ModelAPI is not ready", &api);
            let model = wanted.filter(|model| !model.is_empty());
            if let Err(offered) = offers(&api, model) {
                wrong.add("spec.model", not_offered(model.unwrap_or_default(), model_api, &offered));
            }
        }
        for server in &links.servers {
            if let Some(found) = linked.find(subject, MCP_SERVER, server) {
                let link = linked.depend(MCP_SERVER, server, &format!("MCPServer {server} is not ready"), &found);
                linked.servers.extend(link);
            }
        }
        for peer in &links.peers {
            linked.peer(subject, peer);
        }
        linked
    }

    /// Returns the object. If the policy cannot find or read the object, records the reason and returns `None`.
    fn find(&mut self, subject: &Subject, kind: &str, name: &str) -> Option<Object> {
        let on = to(kind, name);
        match dependencies::found(subject, &on).or_wait(on) {
            Ok(found) => Some(found),
            Err(Refusal::Waiting(blockers)) => {
                self.depends.missing.extend(blockers);
                None
            }
            Err(_) => None,
        }
    }

    /// Returns the link to an object, or `None` if the object has no address. Records the object's problems.
    fn depend(&mut self, kind: &str, name: &str, unready: &str, found: &Object) -> Option<Link> {
        let endpoint = self.depends.endpoint(&to(kind, name), unready, found)?;
        Some(link(kind, name, endpoint))
    }

    fn peer(&mut self, subject: &Subject, name: &str) {
        if !is_dns1123_subdomain(name) {
            let why = "is ignored, since no object can have this name: use lower-case letters, digits, `-` and `.`";
            return self.without(name, "PeerNameInvalid", why);
        }
        let found = match subject.one(&id(&to(AGENT, name))) {
            Lookup::There(found) => found,
            Lookup::Forbidden(why) => return self.without(name, "PeerForbidden", &format!("cannot be read: {why}")),
            Lookup::Absent | Lookup::Unserved | Lookup::Unasked => {
                let why = "not found; the operator adds the peer when the peer exists";
                return self.without(name, "PeerNotFound", why);
            }
        };
        match found.endpoint() {
            Some(endpoint) => self.peers.push(link(AGENT, name, endpoint)),
            None if found.at(&["spec", "agentNetwork", "expose"]) == Some(&false.into()) => {
                let why = "is not exposed; set spec.agentNetwork.expose of the peer to true";
                self.without(name, "PeerNotExposed", why);
            }
            None => {
                let why = "has no endpoint yet; when this Agent has an endpoint, the operator adds the Agent as a peer";
                self.without(name, "PeerNoEndpoint", why);
            }
        }
    }

    fn without(&mut self, name: &str, reason: &str, why: &str) {
        let note = note::warning(reason, format!("peer Agent {} {why}", shown(name, 63)));
        self.absent_peers.push(note::at("spec.agentNetwork.access", note));
    }
}

/// Builds the message about a model that the ModelAPI does not offer. The message has a maximum length, even if the
/// spec contains long texts.
fn not_offered(model: &str, model_api: &str, offered: &[String]) -> String {
    let (model, model_api, offered) = (shown(model, 100), shown(model_api, 253), shown(&offered.join(" "), 1000));
    format!("model \"{model}\" not supported by ModelAPI \"{model_api}\" (supported: [{offered}])")
}

fn link(kind: &str, name: &str, endpoint: &str) -> Link {
    Link { name: name.to_owned(), endpoint: endpoint.to_owned(), origin: format!("{kind}/{name} status.endpoint") }
}
