//! The API: computes the effect and the answer of each request, from the request and the state alone. [`crate::http`]
//! handles bytes and connections.

mod answer;
mod bounds;
mod call;
mod create;
mod decode;
mod delete;
mod discovery;
#[cfg(feature = "kubectl")]
mod kubectl;
mod options;
mod patch;
mod present;
mod read;
mod request;
mod review;
mod route;
mod scale;
mod start_watch;
mod undone;
mod update;
mod watch;
mod write;
mod yaml_text;

pub(crate) use answer::Answer;
pub(crate) use call::{Call, Context};
pub(crate) use create::stamp;
pub(crate) use delete::{Deletion, delete};
#[cfg(feature = "kubectl")]
pub(crate) use kubectl::render_table;
pub(crate) use options::Options;
pub(crate) use present::{Presentation, metadata_of};
pub(crate) use route::{Route, Target, route};
pub(crate) use update::controller_update;
pub(crate) use watch::{Event as WatchEvent, Watch, is_served as watch_is_served};

use crate::{faults::Verb, state::State, status::ApiError, storage::Key};

/// Answers a request.
pub(crate) fn handle(state: &mut State, call: &Call, context: &Context<'_>) -> Result<Answer, ApiError> {
    let (resource, namespace, name, subresource) = match &call.target {
        Target::Objects { resource, namespace } => (resource, namespace.as_str(), "", ""),
        Target::Object { resource, namespace, name, subresource } => {
            (resource, namespace.as_str(), name.as_str(), subresource.as_str())
        }
        Target::Document(path) => return document(state, call, path),
    };
    if subresource.is_empty() && !resource.verbs.contains(&call.verb.name()) {
        return Err(ApiError::method_not_allowed());
    }
    let key = Key::new(namespace, name);
    if let Some(refusal) = undone::refusal(state, resource, &key, subresource) {
        return Err(refusal);
    }
    let served = match subresource {
        "" => true,
        "status" => resource.status,
        "scale" => resource.scale.is_some(),
        "finalize" => resource.plural == "namespaces",
        _ => false,
    };
    if !served {
        return Err(ApiError::no_route());
    }
    if call.verb == Verb::Create && !subresource.is_empty() {
        return Err(ApiError::method_not_allowed());
    }
    let request = request::Request { resource, namespace, name, subresource, call, context };
    match call.verb {
        Verb::Get if subresource == "scale" => scale::get(state, &request),
        Verb::Get => read::get(state, &request),
        Verb::List => read::list(state, &request),
        Verb::Watch => start_watch::start(state, &request).map(Answer::Watch),
        Verb::Create => create::create(state, &request),
        Verb::Update if subresource == "scale" => scale::update(state, &request),
        Verb::Update => update::update(state, &request),
        Verb::Patch if subresource == "scale" => scale::patch(state, &request),
        Verb::Patch => patch::patch(state, &request),
        Verb::Delete => delete::delete_one(state, &request),
        Verb::DeleteCollection => delete::delete_many(state, &request),
    }
}

/// Answers requests for documents that are not objects.
fn document(state: &State, call: &Call, path: &str) -> Result<Answer, ApiError> {
    if call.verb != Verb::Get {
        return Err(ApiError::method_not_allowed());
    }
    match path {
        "healthz" | "readyz" | "livez" => Ok(Answer::Text("ok".into())),
        "version" => Ok(Answer::Document(discovery::version(state.minor))),
        #[cfg(feature = "kubectl")]
        path if path.starts_with("openapi/") => kubectl::openapi::document(&state.catalogue, path),
        path => discovery::document(&state.catalogue, path, &call.accept),
    }
}
