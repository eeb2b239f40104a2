//! Who may do what: everything, unless a test says otherwise.

use std::sync::Arc;

use http::StatusCode;
use serde_json::Value;

use crate::{
    faults::{Attempt, Verb},
    status::{ApiError, Subject},
};

/// The rule in force; none lets everything pass.
#[derive(Clone, Default)]
pub(crate) struct Access(Option<Arc<Rule>>);

type Rule = dyn Fn(&Attempt) -> bool + Send + Sync;

/// A rule.
pub(crate) fn rule(allow: impl Fn(&Attempt) -> bool + Send + Sync + 'static) -> Access {
    Access(Some(Arc::new(allow)))
}

impl Access {
    /// Refuses what the rule does not allow. Discovery, health and reviews of oneself are for everybody.
    pub(crate) fn check(&self, attempt: &Attempt) -> Result<(), ApiError> {
        let open = attempt.resource.is_empty() || attempt.resource.starts_with("selfsubject");
        match &self.0 {
            Some(allow) if !open && !allow(attempt) => Err(refusal(attempt)),
            _ => Ok(()),
        }
    }

    /// Answers an access review.
    pub(crate) fn review(&self, user: &str, attributes: &Value) -> bool {
        let Some(allow) = &self.0 else { return true };
        let text = |field: &str| attributes[field].as_str().unwrap_or_default().to_owned();
        let verbs = [
            Verb::Get,
            Verb::List,
            Verb::Watch,
            Verb::Create,
            Verb::Update,
            Verb::Patch,
            Verb::Delete,
            Verb::DeleteCollection,
        ];
        let wanted = text("verb");
        let attempt = |verb| Attempt {
            user: user.to_owned(),
            user_agent: String::new(),
            verb,
            group: text("group"),
            resource: text("resource"),
            subresource: text("subresource"),
            namespace: text("namespace"),
            name: text("name"),
            content_type: String::new(),
            dry_run: false,
        };
        let mut asked = verbs.into_iter().filter(|verb| wanted == "*" || verb.name() == wanted).peekable();
        asked.peek().is_some() && asked.all(|verb| allow(&attempt(verb)))
    }
}

fn refusal(attempt: &Attempt) -> ApiError {
    let Attempt { user, verb, group, resource, subresource, namespace, name, .. } = attempt;
    let slash = if subresource.is_empty() { "" } else { "/" };
    let place = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{namespace}\"")
    };
    let why = format!(
        "User \"{user}\" cannot {} resource \"{resource}{slash}{subresource}\" in API group \"{group}\" {place}",
        verb.name()
    );
    let subject = Subject { group: group.clone(), kind: resource.clone(), name: name.clone() };
    let error = ApiError::forbidden(&subject, &why);
    debug_assert_eq!(error.code, StatusCode::FORBIDDEN);
    error
}
