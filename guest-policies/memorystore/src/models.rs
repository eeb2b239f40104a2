//! The models of a store, and the ModelAPI that serves these models.
//!
//! The service has a single address for both models: the address of the ModelAPI for summaries. So this ModelAPI also
//! serves the embedding model, even if the object names another ModelAPI for this model.

use alloc::{borrow::ToOwned, string::String, vec::Vec};
use kaos_crds::memorystore::Models;
use kaos_crds::modelapi::offered;
use kaos_crds::{API_VERSION, MemoryStoreSpec};
use kaos_policy_sdk::names::is_dns1123_subdomain;
use kaos_policy_sdk::need::reference;
use kaos_policy_sdk::quote::shown;
use kaos_policy_sdk::types::{Need, Note, Reference, Subject};
use kaos_policy_sdk::{Lookup, Object, Violations, blocker, note};
use kaos_workload::dependencies::{self, Dependency};
use kaos_workload::{Dependencies, models};

/// The kind that serves models.
pub(crate) const MODEL_API: &str = "ModelAPI";

/// The reason code of the note on a model that the ModelAPI does not offer.
const NOT_OFFERED: &str = "ModelNotOffered";

/// The ModelAPIs of a store.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// The address of the ModelAPI for summaries, and the origin of this address.
    pub(crate) endpoint: Option<(String, String)>,
    /// The ModelAPIs that are missing or not ready.
    pub(crate) depends: Dependencies,
    /// Notes for the user.
    pub(crate) notes: Vec<Note>,
}

/// Returns the two roles, each with the ModelAPI that the object names for this role.
fn roles(models: &Models) -> [(&'static str, &str); 2] {
    [("summarization", &models.summarization.model_api), ("embedding", &models.embedding.model_api)]
}

/// Returns the needs of a store.
pub(crate) fn needs(subject: &Subject, spec: &MemoryStoreSpec) -> Vec<Need> {
    let Models { summarization, embedding } = &spec.models;
    let [(_, first), (_, second)] = roles(&spec.models);
    let mut needs = Vec::new();
    if is_dns1123_subdomain(first) {
        let models = [summarization.model.as_str(), &embedding.model];
        let api = Dependency { on: to(first), all: models::offer(), brief: models::offer_of(models) };
        needs.extend(api.needs(subject, |found| models.iter().all(|model| offers(found, model))));
    }
    if second != first && is_dns1123_subdomain(second) {
        needs.extend(Dependency::new(to(second), &[]).needs(subject, |_| true));
    }
    needs
}

/// Returns whether a ModelAPI offers a model. Returns true if the ModelAPI is invalid, because its models are unknown.
fn offers(api: &Object, model: &str) -> bool {
    api.at(&["spec"]).and_then(offered).is_none_or(|offered| models::allowed(&offered, model))
}

fn to(name: &str) -> Reference {
    reference(API_VERSION, MODEL_API, name)
}

impl Served {
    /// Reads the ModelAPIs. Checks whether the ModelAPI for summaries offers both models.
    pub(crate) fn of(subject: &Subject, models: &Models, wrong: &mut Violations) -> Self {
        let mut served = Self::default();
        let [first, second] = roles(models);
        let summarization = served.find(subject, first);
        if first.1 != second.1 {
            drop(served.find(subject, second));
        }
        if let Some(api) = summarization {
            served.check_models(models, &api, wrong);
        }
        served
    }

    /// Reads the ModelAPI of the summaries or of the embeddings (`role`). Stores the address of that of the summaries.
    fn find(&mut self, subject: &Subject, (role, name): (&str, &str)) -> Option<Object> {
        let on = to(name);
        let quoted = shown(name, 253);
        let found = match dependencies::found(subject, &on) {
            Lookup::There(found) => found,
            Lookup::Absent | Lookup::Unasked => {
                let message = format!("{role} ModelAPI \"{quoted}\" not found");
                self.depends.missing.push(blocker::new(on, "NotFound", message));
                return None;
            }
            Lookup::Unserved => {
                let message = format!("this cluster does not serve {MODEL_API} of {API_VERSION}");
                self.depends.missing.push(blocker::new(on, "Unserved", message));
                return None;
            }
            Lookup::Forbidden(why) => {
                let message = format!("{role} ModelAPI \"{quoted}\" cannot be read: {why}");
                self.depends.missing.push(blocker::new(on, "Forbidden", message));
                return None;
            }
        };
        let unready = format!("{role} ModelAPI \"{quoted}\" is not ready");
        let endpoint = self.depends.endpoint(&on, &unready, &found).map(ToOwned::to_owned);
        if let (None, Some(endpoint)) = (&self.endpoint, endpoint)
            && role == "summarization"
        {
            self.endpoint = Some((endpoint, format!("{MODEL_API}/{name} status.endpoint")));
        }
        Some(found)
    }

    /// Adds notes. If `api` lacks an embedding model that names another ModelAPI, adds a violation instead.
    fn check_models(&mut self, models: &Models, api: &Object, wrong: &mut Violations) {
        const PATH: &str = "spec.models.embedding.modelAPI";
        let (summarization, embedding) = (&models.summarization, &models.embedding);
        let (asked, other) = (shown(&summarization.model_api, 253), shown(&embedding.model_api, 253));
        let model = shown(&embedding.model, 100);
        if asked != other && !offers(api, &embedding.model) {
            let message = format!(
                "the store sends requests for both models to ModelAPI {asked}, which does not offer {model}: name one \
                 ModelAPI that offers both models, or add the model to ModelAPI {asked}"
            );
            return wrong.add(PATH, message);
        }
        if asked != other {
            let message = format!(
                "the store sends requests for both models to ModelAPI {asked}, so ModelAPI {asked} also serves \
                 {model}; the store waits for ModelAPI {other}, but does not use it: name {asked} here"
            );
            self.notes.push(note::at(PATH, note::warning("EmbeddingElsewhere", message)));
        }
        for (role, model) in [("summarization", summarization), ("embedding", embedding)] {
            if !offers(api, &model.model) {
                let model = shown(&model.model, 100);
                let message =
                    format!("ModelAPI {asked} does not offer {model}: name one of its models, or add {model} to it");
                self.notes.push(note::at(format!("spec.models.{role}.model"), note::warning(NOT_OFFERED, message)));
            }
        }
    }
}
