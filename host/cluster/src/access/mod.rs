//! Decides whether a user may send a request. Allows every request unless a test restricts access.

mod rbac;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    faults::{Attempt, Verb},
    status::{ApiError, Subject},
    storage::Store,
};

/// How the cluster decides whether a user may send a request.
#[derive(Clone, Default)]
pub(crate) enum Access {
    /// Allows every request of every user.
    #[default]
    Open,
    /// A function that the test provides decides.
    Rule(Arc<Rule>),
    /// The stored Roles and bindings decide.
    Rbac,
    /// The stored Roles and bindings decide, but a function that the test provides can deny more requests.
    Guarded(Arc<Rule>),
}

/// The error in the answer to a `SelfSubjectRulesReview` if a webhook also decides about access.
const UNLISTED: &str = "webhook authorizer does not support user rule resolution";

/// A function that a test provides. The function returns whether a request is allowed.
pub(crate) type Rule = dyn Fn(&Attempt) -> bool + Send + Sync;

impl Access {
    /// Refuses requests that are not allowed. Discovery, health and self-reviews are always allowed.
    pub(crate) fn check(&self, attempt: &Attempt, store: &Store) -> Result<(), ApiError> {
        let open = attempt.resource.is_empty() || attempt.resource.starts_with("selfsubject");
        if open || self.allows(attempt, store) { Ok(()) } else { Err(refusal(attempt)) }
    }

    fn allows(&self, attempt: &Attempt, store: &Store) -> bool {
        match self {
            Self::Open => true,
            Self::Rule(allow) => allow(attempt),
            Self::Rbac => rbac::allows(store, attempt),
            Self::Guarded(allow) => allow(attempt) && rbac::allows(store, attempt),
        }
    }

    /// Returns the result of a `SelfSubjectRulesReview`: the RBAC rules that apply to a user in a namespace. If a
    /// function of the test also decides about access, the field `incomplete` is true, because the cluster cannot list
    /// the requests that the function allows. A real server does the same if a webhook decides about access.
    pub(crate) fn rules(&self, user: &str, namespace: &str, store: &Store) -> Value {
        let resolved = |rules: Vec<Value>| json!({"incomplete": false, "nonResourceRules": [], "resourceRules": rules});
        match self {
            Self::Open => resolved(vec![rbac::everything()]),
            Self::Rbac => resolved(rbac::rules(store, user, namespace)),
            Self::Rule(_) => json!({"incomplete": true, "nonResourceRules": [], "resourceRules": [],
                "evaluationError": UNLISTED}),
            Self::Guarded(_) => json!({"incomplete": true, "nonResourceRules": [],
                "resourceRules": rbac::rules(store, user, namespace), "evaluationError": UNLISTED}),
        }
    }

    /// Returns the result of an access review: whether the user is allowed to send the request that `attributes`
    /// describe.
    pub(crate) fn review(&self, user: &str, attributes: &Value, store: &Store) -> bool {
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
            program: String::new(),
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
        asked.peek().is_some() && asked.all(|verb| self.allows(&attempt(verb), store))
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
    ApiError::forbidden(&subject, &why)
}
