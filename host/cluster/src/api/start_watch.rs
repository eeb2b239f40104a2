//! Starts a watch, either from a resource version or with the existing objects.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use super::{Presentation, Watch, read, request::Request, watch::Event};
use crate::{state::State, status::ApiError};

/// Starts a watch.
pub(super) fn start(state: &mut State, request: &Request<'_>) -> Result<Watch, ApiError> {
    read::check_fields(request)?;
    let options = &request.call.options;
    // A fault can make the watch stale: it then starts at an older revision, and sends all later changes.
    let current = state.store.earlier_revision(&request.resource.storage(), request.context.back);
    let from = match options.resource_version.as_str() {
        "" | "0" => None,
        text => Some(text.parse::<u64>().map_err(|_| {
            ApiError::bad_request(format!(
                "invalid resource version {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            ))
        })?),
    };
    if options.initial_events && options.resource_version_match != "NotOlderThan" {
        return Err(ApiError::bad_request("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
    }
    let mut watch = Watch {
        resource: Arc::clone(request.resource),
        storage: request.resource.storage(),
        namespace: request.namespace.to_owned(),
        labels: options.labels.clone(),
        fields: options.fields.clone(),
        revision: from.filter(|_| !options.initial_events).unwrap_or(current),
        initial: VecDeque::new(),
        bookmarks: options.bookmarks,
        timeout: Duration::from_secs(options.timeout_seconds.unwrap_or(1800)),
        form: Presentation::of_accept(&request.call.accept),
        include_object: options.include_object.clone(),
    };
    if options.initial_events || from.is_none() {
        let objects = read::choose(state, request)?;
        watch.initial =
            objects.into_iter().map(|(_, object)| Event { kind: "ADDED", object: watch.shape(&object) }).collect();
    }
    if options.initial_events && options.bookmarks {
        watch.initial.push_back(watch.bookmark_at(current, true));
    }
    Ok(watch)
}
