//! A request for one resource, with the helpers that all verbs share.

use std::sync::Arc;

use serde_json::Value;

use super::{Answer, Call, Context, present};
use crate::{
    apply::{self, FieldSet, Manager},
    catalogue::Resource,
    faults::{Attempt, Verb},
    state::State,
    status::ApiError,
    storage::Key,
};

/// A request for one resource.
pub(super) struct Request<'a> {
    pub(super) resource: &'a Arc<Resource>,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) subresource: &'a str,
    pub(super) call: &'a Call,
    pub(super) context: &'a Context<'a>,
}

impl Request<'_> {
    pub(super) fn key(&self) -> Key {
        Key::new(self.namespace, self.name)
    }

    /// Returns the requested object.
    pub(super) fn stored(&self, state: &State) -> Result<Arc<Value>, ApiError> {
        let found = state.store.get(&self.resource.storage(), &self.key());
        found.cloned().ok_or_else(|| ApiError::not_found(&self.resource.subject(self.name)))
    }

    /// Returns the field manager of the request.
    pub(super) fn manager(&self, applies: bool) -> Manager {
        let program = self.call.program.split('/').next().unwrap_or_default();
        let name =
            [self.call.options.field_manager.as_str(), program, "unknown"].into_iter().find(|name| !name.is_empty());
        Manager {
            name: name.unwrap_or_default().to_owned(),
            applies,
            api_version: self.resource.api_version(),
            subresource: self.subresource.to_owned(),
        }
    }

    /// Converts this request to an [`Attempt`] with the given verb. Access decisions use this form.
    pub(super) fn attempt(&self, verb: Verb) -> Attempt {
        Attempt {
            user: self.call.user.clone(),
            program: self.call.program.clone(),
            verb,
            group: self.resource.group.clone(),
            resource: self.resource.plural.clone(),
            subresource: self.subresource.to_owned(),
            namespace: self.namespace.to_owned(),
            name: self.name.to_owned(),
            content_type: self.call.content_type.clone(),
            dry_run: self.call.options.dry_run,
        }
    }

    /// Answers with one object at the requested version.
    pub(super) fn answer(&self, code: http::StatusCode, object: &Arc<Value>, warnings: Vec<String>) -> Answer {
        let object = present::present(self.resource, object);
        Answer::Object { code, object, resource: Arc::clone(self.resource), warnings }
    }

    /// Returns the facts about this request that the server needs to compute the owners of fields.
    pub(super) fn rules<'r>(&'r self, ignored: &'r FieldSet) -> apply::managers::OwnershipRules<'r> {
        apply::managers::OwnershipRules { node: &self.resource.node, ignored, now: self.context.now }
    }
}
